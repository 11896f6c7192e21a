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
    from postgres_server import OpenTeam

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
    assert here.degraded == there.degraded


@pytest.mark.parametrize("files", [MANY, ODD, MANY | ODD], ids=["many", "odd", "all"])
def test_the_same_hits_in_the_same_order(files: Files, vault: Callable[[Files], Path], open_team: OpenTeam) -> None:
    kb = open_team(vault(files))
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
    for query in QUERIES:
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
    for query in (*QUERIES, "quokkas"):
        assert_alike(kb, query)


def test_the_home_stays_here(vault: Callable[[Files], Path], open_team: OpenTeam, home: Path) -> None:
    write_files(home, {"private.md": "# Diary\n\nmy aardvark\n"})
    kb = open_team(vault({"a.md": "# A\n\nteam\n"}))
    assert [hit.path for hit in kb.search("aardvark").hits]
    assert not kb.search("aardvark", vaults=["all"]).hits
