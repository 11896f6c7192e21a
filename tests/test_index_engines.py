"""Both engines answer alike: the index of this machine, and a team's index in PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import REPOSITORY, Files, write_files
from support import RICH, entry

from memory_kb import KnowledgeBase
from memory_kb.model import Hit

if TYPE_CHECKING:
    from fake_provider import FakeProvider
    from postgres_server import OpenTeam, Server

pytestmark = pytest.mark.slow  # PostgreSQL takes that long to start

WORDS = [
    "queue",
    "worker",
    "retry",
    "cache",
    "token",
    "deploy",
    "rollback",
    "index",
    "branch",
    "merge",
    "lock",
    "flaky",
    "test",
    "timeout",
]


def _pick(start: int, step: int, number: int) -> str:
    return " ".join(WORDS[(start + step * place) % len(WORDS)] for place in range(number))


MANY: dict[str, str] = {
    f"notes/n{number}.md": f"# Note {number}\n\n{_pick(number, 1, number % 9 + 1)}\n\n## Part\n\n"
    f"{_pick(number, number, number % 7)} user_name resetConnection C++\n"
    for number in range(80)
}
ODD: dict[str, str] = {
    "a.md": RICH,
    "cjk.md": "# 数据库\n\n连接池在重启之后失效。\n",
    "german.md": "# Größe\n\nDie Straße ist naß, der Café-Besitzer auch. \0 Ende.\n",
    "long.md": "# Long\n\n" + "x" * 5_000 + " needle\n",
    "same1.md": "# Same\n\nthe very same words\n",
    "same2.md": "# Same\n\nthe very same words\n",
    "dated.md": entry(
        "A lesson about numbats.", id="d-1", kind="pitfall", created_at="'2026-03-01'", tags="[deep/sea]"
    ),
    "newer.md": entry("A newer lesson about numbats.", id="d-3", links="[{to: d-1, relation: supersedes}]"),
    "old.md": entry("A retired lesson about numbats.", id="d-2", status="retired"),
    "sub/broken.md": "---\nid: [\n---\n# Broken\n\nnumbat\n",
}
QUERIES = (
    *("queue", "flaky test timeout", '"cache token"', "deploy -rollback", '"lock flaky" merge -test', "user_name"),
    *(
        "reset connection",
        "C++",
        "queues retried deploying",
        "no such words here",
        "note part",
        '"no such phrase" queue',
    ),
    *("numbat", "连接池", "数", "strasse naß cafe", "same words", "march", "needle", "platypus koala", "the of"),
)
FILTERS: tuple[dict[str, object], ...] = (
    {"kind": "pitfall"},
    {"tag": ["deep"]},
    {"file": "src/possum/a.py"},
    {"status": "retired"},
    {"scope": "project"},
)


def plain(hits: Sequence[Hit]) -> list[tuple[object, ...]]:
    # PostgreSQL stores every character but NUL.
    texts = [hit.text.replace("\0", "\ufffd") for hit in hits]
    copies = [[copy.removeprefix("own:") for copy in hit.copies] for hit in hits]
    return [
        (hit.path, hit.line, hit.end_line, hit.id, hit.scope, *more)
        for hit, *more in zip(hits, texts, copies, strict=True)
    ]


def assert_alike(kb: KnowledgeBase, query: str, **how: object) -> None:
    here = kb.search(query, limit=50, **how)  # type: ignore[arg-type]
    there = kb.search(query, limit=50, vaults=["own"], **how)  # type: ignore[arg-type]
    assert plain(here.hits) == plain(there.hits), query
    assert [hit.score for hit in here.hits] == pytest.approx([hit.score for hit in there.hits], abs=1e-6)
    assert {hit.vault for hit in there.hits} <= {"own"}
    assert here.degraded == tuple(line.replace(" own:", " ") for line in there.degraded)


def test_the_same_hits_in_the_same_order(vault: Callable[[Files], Path], open_team: OpenTeam) -> None:
    kb = open_team(vault(MANY | ODD))
    assert kb.sync().notices == ()
    for query in QUERIES:
        assert_alike(kb, query)
    for filters in FILTERS:
        assert_alike(kb, "numbat lesson platypus", **filters)
    assert_alike(kb, "", file="src/possum/a.py")
    assert_alike(kb, "tim", is_typing=True)


def test_the_sample_vault_too(open_team: OpenTeam, tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    shutil.copytree(REPOSITORY / "sample_vault", folder)
    kb = open_team(folder)
    for query in ("how do we deploy", "flaky tests", "postgres", '"feature branch"', "retry -network"):
        assert_alike(kb, query)


@pytest.mark.parametrize("tokenizer", ["trigram", "porter ascii", "unicode61 remove_diacritics 2"])
def test_other_tokenizers(tokenizer: str, vault: Callable[[Files], Path], open_team: OpenTeam) -> None:
    files = {name: text for name, text in (MANY | ODD).items() if "\0" not in str(text)}
    kb = open_team(vault(files), MEMORY_KB_INDEX_TOKENIZER=tokenizer)
    for query in QUERIES[::2]:
        assert_alike(kb, query)


def test_what_changed_is_found_and_what_is_gone_is_not(vault: Callable[[Files], Path], open_team: OpenTeam) -> None:
    folder = vault(MANY | ODD)
    kb = open_team(folder)
    first = kb.search("queue", vaults=["own"]).freshness.generation
    assert kb.search("queue", vaults=["own"]).freshness.generation == first
    write_files(folder, {"new.md": "# Wombat\n\nburrow\n", "notes/n3.md": "# Note 3\n\nonly quokkas now\n"})
    (folder / "same1.md").unlink()
    assert [hit.path for hit in kb.search("wombat", vaults=["own"]).hits] == ["new.md"]
    assert kb.search("wombat", vaults=["own"]).freshness.generation == first + 1
    for query in (*QUERIES[::5], "quokkas"):
        assert_alike(kb, query)


def test_the_home_stays_here(vault: Callable[[Files], Path], open_team: OpenTeam, home: Path) -> None:
    write_files(home, {"private.md": "# Diary\n\nmy aardvark\n"})
    kb = open_team(vault({"a.md": "# A\n\nteam\n"}))
    assert [hit.path for hit in kb.search("aardvark").hits]
    assert not kb.search("aardvark", vaults=["all"]).hits


def embedding(fake: FakeProvider) -> dict[str, str]:
    return {
        "MEMORY_KB_EMBEDDINGS_PROVIDER": "openai",
        "MEMORY_KB_EMBEDDINGS_BASE_URL": fake.base_url,
        "MEMORY_KB_EMBEDDINGS_MODEL": "m",
    }


def without_pgvector(kb: KnowledgeBase, server: Server) -> None:
    """Make the tables of a new database, as where the extension is not installed."""
    kb.sync()
    server.run(str(kb.vault.settings.index.url), "DROP EXTENSION IF EXISTS vector")


@pytest.mark.parametrize("has_extension", [True, False], ids=["pgvector", "no extension"])
def test_by_meaning_too(
    has_extension: bool, vault: Callable[[Files], Path], open_team: OpenTeam, server: Server, fake: FakeProvider
) -> None:
    folder = vault(MANY | ODD)
    if not has_extension:
        without_pgvector(open_team(folder), server)
    kb = open_team(folder, **embedding(fake))
    assert kb.sync().notices == ()
    team = kb.status().team
    assert team
    assert has_extension or "no pgvector" in team.nearest
    assert team.vaults[0].vectors == team.vaults[0].chunks
    for query in QUERIES[::2]:
        assert_alike(kb, query, mode="hybrid")
    for query in QUERIES[1:6:2]:
        assert_alike(kb, query, mode="vector")
    assert_alike(kb, "queue")
    assert_alike(kb, "numbat lesson", mode="vector", kind="pitfall")
    write_files(folder, {"notes/n3.md": "# Note 3\n\nonly quokkas now\n"})
    (folder / "same1.md").unlink()
    for query in ("quokkas", "queue flaky"):
        assert_alike(kb, query, mode="hybrid")


def test_the_nearest_by_an_approximate_index(
    vault: Callable[[Files], Path],
    open_team: OpenTeam,
    server: Server,
    fake: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memory_kb.index.postgres_vectors.MOST_READ", 20)
    kb = open_team(vault(MANY | ODD), **embedding(fake))
    kb.sync()
    url = str(kb.vault.settings.index.url)
    if not server.run(url, "SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
        pytest.skip("this PostgreSQL has no pgvector")
    assert server.run(url, "SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")
    team = kb.status().team
    assert team
    assert "HNSW" in team.nearest
    for query in ("queue", "flaky test timeout", "same words", "numbat"):
        here, there = (kb.search(query, mode="hybrid", vaults=vaults).hits for vaults in ((), ("own",)))
        assert here[0].path == there[0].path
        assert [hit.score for hit in here] == pytest.approx([hit.score for hit in there], abs=0.05)


def test_what_counts_as_much_are_the_vectors_of_passages(
    vault: Callable[[Files], Path],
    open_team: OpenTeam,
    server: Server,
    fake: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memory_kb.index.postgres_vectors.MOST_READ", 3 * 4 * fake.dimension)
    kb = open_team(
        vault({"long.md": "# Long\n\n" + "\n\n".join(_pick(start, 1, 60) for start in range(4))}), **embedding(fake)
    )
    kb.sync()
    url = str(kb.vault.settings.index.url)
    if not server.run(url, "SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
        pytest.skip("this PostgreSQL has no pgvector")
    assert server.run(url, "SELECT vectors, passages FROM memory_kb.vaults") == [(1, 4)]
    assert server.run(url, "SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")


def test_vaults_without_vectors_are_found_by_words(tmp_path: Path, open_team: OpenTeam, fake: FakeProvider) -> None:
    plain_kb = open_team(write_files(tmp_path / "plain", {"a.md": "# Wombat\n\nburrows\n"}), "plain")
    plain_kb.sync()
    kb = open_team(write_files(tmp_path / "near", MANY), "near", **embedding(fake))
    kb.sync()
    result = kb.search("wombat burrows", vaults=["all"], mode="hybrid")
    assert result.hits[0].vault == "plain"
    assert any("found by words alone: plain" in reason for reason in result.degraded)
    assert "needs an embedding provider" in plain_kb.search("wombat", vaults=["all"], mode="hybrid").degraded[0]
