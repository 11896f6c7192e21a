"""Forgetting: what is retired, what is deleted, what stays away, and no byte besides."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import frontmatter
import pytest
import yaml
from conftest import NOW, Files, write_files
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import CannotSplice, Forgotten, UnknownEntry
from memory_kb.markdown.document import parse_document

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]

RULE = "Always freeze the clock before a test sleeps, or the event loop waits for real."
LATER = NOW + timedelta(days=10)


# -- forgetting --------------------------------------------------------------------------------

MANY = (
    "\ufeffPreamble, plain.\r\n\r\n---\r\nid: a # first\r\nstatus:   active   # why\r\n---\r\nAlpha walrus.\r\n\r\n"
    "---\r\nkind: rule\r\n---\r\nBeta walrus.\r\n\r\n---\r\n\r\nStill beta.\r\n\r\n"
    "---\r\nid: 'c: 1'\r\ntitle: Gamma\r\n---\r\nGamma walrus.\u2028\r\n\r\n---\r\nid: d\r\n---\r\nDelta walrus. é"
)


@pytest.fixture
def many(vault: MakeVault) -> Path:
    return vault({"memory/config.yaml": "", "memory/many.md": MANY, "memory/z.md": "---\nid: z\n---\nZeta walrus.\n"})


def test_forgetting_one_of_many_changes_its_status_alone(many: Path, open_kb: OpenKB) -> None:
    kb = open_kb(many)
    before = notes_of(many)
    kb.forget("a")
    expected = MANY.replace("status:   active   # why", "status:   retired   # why")
    assert notes_of(many) == before | {"vault/memory/many.md": expected.encode()}
    assert kb.show("a").status == "retired"
    assert {hit.text.split()[0] for hit in kb.search("walrus").hits} == {"Beta", "Gamma", "Delta", "Zeta"}


def test_forgetting_an_entry_without_an_id_gives_it_one(many: Path, open_kb: OpenKB) -> None:
    kb = open_kb(many)
    (beta,) = [hit for hit in kb.search("beta walrus").hits if hit.text.startswith("Beta")]
    kb.forget(beta.id)
    expected = MANY.replace("kind: rule\r\n", f"kind: rule\r\nid: {beta.id}\r\nstatus: retired\r\n")
    assert (many / "memory/many.md").read_bytes() == expected.encode()
    assert kb.show(beta.id).status == "retired"


def test_forgetting_a_preamble_gives_it_a_block(many: Path, open_kb: OpenKB) -> None:
    kb = open_kb(many)
    (hit,) = kb.search("preamble").hits
    kb.forget(hit.id)
    block = f"---\r\nid: {hit.id}\r\nkind: fact\r\nstatus: retired\r\n---\r\n"
    assert (many / "memory/many.md").read_bytes() == MANY.replace("\ufeff", f"\ufeff{block}").encode()
    assert kb.search("preamble").hits == ()


def test_forgetting_in_a_flow_block(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({"a.md": "---\n{id: d, tags: [x]} # mine\n---\nDelta walrus.\n"})
    open_kb(folder).forget("d")
    assert (folder / "a.md").read_text() == "---\n{id: d, tags: [x], status: retired} # mine\n---\nDelta walrus.\n"


PLAIN_NOTES = [
    pytest.param(b"Walrus text.\n", id="lf"),
    pytest.param(b"Walrus text.\r\n\r\nMore.\r\n", id="crlf"),
    pytest.param(b"\xef\xbb\xbf# Walrus\n\ntext", id="byte-order-mark"),
    pytest.param(b"\n\n  Walrus text.\n", id="blank-lines-first"),
    pytest.param(b"---\n\nWalrus text.\n\n---\n", id="rules"),
    pytest.param(b"Walrus caf\xe9 text.\n", id="not-utf-8"),
    pytest.param(b"```\nWalrus\n\n---\nid: x\n---\n", id="unclosed-fence"),
]


@pytest.mark.parametrize("data", PLAIN_NOTES)
def test_forgetting_a_plain_note_puts_a_block_before_it(vault: MakeVault, open_kb: OpenKB, data: bytes) -> None:
    folder = vault({"note.md": data})
    kb = open_kb(folder)
    (hit,) = kb.search("walrus").hits
    kb.forget(hit.id)
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    block = newline.join([b"---", f"id: {hit.id}".encode(), b"kind: fact", b"status: retired", b"---", b""])
    assert (folder / "note.md").read_bytes() == mark + block + data.removeprefix(mark)
    assert kb.search("walrus").hits == ()
    assert kb.show(hit.id).status == "retired"


@pytest.mark.parametrize(
    "data", [b'+++\ntitle = "Walrus"\n+++\nText.\n', b"\xef\xbb\xbf+++\r\ndraft = true\r\n+++\r\nWalrus.\r\n"]
)
def test_nothing_is_put_before_the_frontmatter_of_another_tool(vault: MakeVault, open_kb: OpenKB, data: bytes) -> None:
    folder = vault({"note.md": data})
    kb = open_kb(folder)
    (hit,) = kb.search("walrus").hits
    with pytest.raises(CannotSplice, match=r"note\.md is TOML"):
        kb.forget(hit.id)
    assert (folder / "note.md").read_bytes() == data
    assert kb.search("walrus").hits


@pytest.mark.parametrize("delete", [False, True])
def test_a_note_whose_block_cannot_be_read_is_left_as_it_is(vault: MakeVault, open_kb: OpenKB, delete: bool) -> None:
    data = b"---\nbad: x: y\n---\nWalrus text.\n"
    folder = vault({"note.md": data})
    with pytest.raises(CannotSplice, match=r"the frontmatter at note\.md:2 cannot be read; fix that line first"):
        open_kb(folder).forget("note.md", delete=delete)
    assert (folder / "note.md").read_bytes() == data


def test_an_entry_is_forgotten_by_its_place_or_the_beginning_of_its_id(many: Path, open_kb: OpenKB) -> None:
    kb = open_kb(many)
    assert kb.forget("memory/many.md:4").id == "a"
    assert kb.forget("memory/z.md").id == "z"
    learned = kb.learn("A walrus more.")
    assert kb.forget(learned.id[:8]).id == learned.id


def test_the_place_that_show_gives_leads_back_to_the_entry(many: Path, open_kb: OpenKB) -> None:
    kb = open_kb(many)
    for entry in parse_document(MANY, "memory/many.md").entries:
        shown = kb.show(entry.id)
        assert shown.line == entry.line
        assert kb.show(f"{shown.path}:{shown.line}").id == entry.id


def test_what_is_not_there_cannot_be_forgotten(many: Path, open_kb: OpenKB) -> None:
    before = notes_of(many)
    for wanted in ("nobody", "memory/none.md", ""):
        with pytest.raises(UnknownEntry):
            open_kb(many).forget(wanted)
    assert notes_of(many) == before


def test_forgetting_twice_changes_nothing_more(many: Path, open_kb: OpenKB) -> None:
    kb = open_kb(many)
    kb.forget("a")
    once = notes_of(many)
    kb.forget("a")
    assert notes_of(many) == once


@pytest.mark.parametrize(
    ("id_", "gone", "rest"),
    [
        pytest.param("a", "Alpha", ("Preamble", "Beta", "Gamma", "Delta", "Zeta"), id="first"),
        pytest.param("c: 1", "Gamma", ("Preamble", "Alpha", "Beta", "Delta", "Zeta"), id="id-that-needs-quotes"),
        pytest.param("d", "Delta", ("Preamble", "Alpha", "Beta", "Gamma", "Zeta"), id="last"),
    ],
)
def test_deleting_leaves_a_tombstone_in_place_of_the_text(
    many: Path, open_kb: OpenKB, id_: str, gone: str, rest: tuple[str, ...]
) -> None:
    """The bytes before and behind the entry stay, and so does everything that was found in them."""
    kb = open_kb(many)
    entries = parse_document(MANY, "memory/many.md").entries
    (entry,) = [entry for entry in entries if entry.id == id_]
    kb.forget(id_, delete=True)
    text = (many / "memory/many.md").read_bytes().decode()
    assert text.startswith(MANY[: entry.span.start])
    assert text.endswith(MANY[entry.span.end :])
    assert gone not in text
    left = parse_document(text, "memory/many.md")
    assert left.problems == ()
    assert [other.id for other in left.entries] == [other.id for other in entries]
    (tombstone,) = [other for other in left.entries if other.id == id_]
    assert (tombstone.status, tombstone.kind, tombstone.metadata["forgotten_at"]) == (
        "retired",
        entry.kind,
        "2026-11-21",
    )
    assert text[tombstone.body.start : tombstone.body.end].strip() == ""
    assert {hit.text.split()[0].strip(",") for hit in kb.search("walrus preamble").hits} == set(rest)


ODD_IDS = ["yes", "007", "1.0", "null", "2026-01-01", "# x", "[a]", "a # b", "- x", "ü: é", "'", "!t", "&a", "~"]


def test_a_tombstone_keeps_an_id_whatever_it_looks_like(vault: MakeVault, open_kb: OpenKB) -> None:
    blocks = [yaml.safe_dump({"id": id_, "kind": "rule"}, allow_unicode=True) for id_ in ODD_IDS]
    names = [f"memory/{number}.md" for number in range(len(blocks))]
    files = {name: f"---\n{block}---\nWalrus text.\n" for name, block in zip(names, blocks, strict=True)}
    folder = vault({"memory/config.yaml": ""} | files)
    kb = open_kb(folder)
    for name, id_ in zip(names, ODD_IDS, strict=True):
        kb.forget(name, delete=True)
        (tombstone,) = parse_document((folder / name).read_text(), name).entries
        assert (tombstone.id, tombstone.status, tombstone.has_frontmatter) == (id_, "retired", True)


def test_deleting_takes_title_and_tags_out_too(folder: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    learned = kb.learn("Secret walrus plan.", title="Walrus title", tags=["walrus-tag"], kind="rule")
    kb.forget(learned.id, delete=True)
    text = (folder / learned.path).read_text()
    assert "alrus" not in text
    assert list(frontmatter.loads(text).metadata) == ["id", "kind", "status", "forgotten_at", "tombstone"]
    assert kb.search("walrus").hits == ()


@pytest.mark.parametrize("data", PLAIN_NOTES)
def test_deleting_a_plain_note_leaves_nothing_of_it(vault: MakeVault, open_kb: OpenKB, data: bytes) -> None:
    folder = vault({"note.md": data, "other.md": "Walrus too.\n"})
    kb = open_kb(folder)
    kb.forget("note.md", delete=True)
    left = (folder / "note.md").read_bytes()
    assert b"alrus" not in left
    assert kb.show("note.md").status == "retired"
    assert [hit.path for hit in kb.search("walrus").hits] == ["other.md"]


@pytest.mark.parametrize("delete", [False, True], ids=["retired", "deleted"])
@pytest.mark.parametrize(
    "place",
    [{}, {"scope": "global"}, {"job": "a"}, {"job": "a", "task": "t"}],
    ids=["project", "global", "job", "task"],
)
def test_what_was_forgotten_does_not_come_back_unless_forced(
    folder: Path, home: Path, open_kb: OpenKB, place: dict[str, str], delete: bool
) -> None:
    kb = open_kb(folder)
    learned = kb.learn(RULE, **place)  # type: ignore[arg-type]
    kb.forget(learned.id, delete=delete)
    before = notes_of(folder, home)
    with pytest.raises(Forgotten) as caught:
        kb.learn(RULE.lower() + "\n", **place)  # type: ignore[arg-type]
    assert learned.id in str(caught.value)
    assert learned.path in str(caught.value)
    assert caught.value.hint
    assert "--force" in caught.value.hint
    assert notes_of(folder, home) == before
    forced = kb.learn(RULE, force=True, **place)  # type: ignore[arg-type]
    assert (forced.action, forced.id != learned.id) == ("created", True)


@pytest.mark.parametrize("delete", [False, True], ids=["retired", "deleted"])
@pytest.mark.parametrize("other", [{"job": "b"}, {}, {"scope": "global"}], ids=["job", "project", "global"])
def test_what_was_forgotten_at_one_place_may_be_learned_at_another(
    folder: Path, open_kb: OpenKB, other: dict[str, str], delete: bool
) -> None:
    kb = open_kb(folder)
    kb.forget(kb.learn(RULE, job="a").id, delete=delete)
    assert kb.learn(RULE, **other).action == "created"  # type: ignore[arg-type]


@pytest.mark.parametrize("delete", [False, True], ids=["retired", "deleted"])
@pytest.mark.parametrize(
    "other", [{"kind": "rule"}, {"job": "a"}, {"job": "a", "task": "t"}], ids=["kind", "job", "task"]
)
def test_what_was_forgotten_does_not_come_back_as_something_else(
    folder: Path, open_kb: OpenKB, other: dict[str, str], delete: bool
) -> None:
    kb = open_kb(folder)
    kb.forget(kb.learn(RULE).id, delete=delete)
    with pytest.raises(Forgotten):
        kb.learn(RULE, **other)  # type: ignore[arg-type]


def test_a_living_twin_is_reinforced_though_another_was_forgotten(folder: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    first = kb.learn(RULE)
    second = kb.learn(RULE, force=True)
    kb.forget(first.id)
    learned = kb.learn(RULE)
    assert (learned.id, learned.action) == (second.id, "reinforced")


def test_a_living_twin_is_reinforced_though_another_was_deleted(folder: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    kb.forget(kb.learn(RULE).id, delete=True)
    forced = kb.learn(RULE, force=True)
    learned = kb.learn(RULE)
    assert (learned.id, learned.action) == (forced.id, "reinforced")


def test_a_global_entry_is_forgotten_in_the_home(folder: Path, home: Path, open_kb: OpenKB) -> None:
    write_files(home, {"MEMORY.md": "---\nid: g # mine\n---\nGlobal walrus.\n"})
    kb = open_kb(folder)
    assert kb.forget("g").path == "~global/MEMORY.md"
    assert (home / "MEMORY.md").read_text() == "---\nid: g # mine\nstatus: retired\n---\nGlobal walrus.\n"


def test_times_are_written_in_utc(folder: Path, open_kb: OpenKB) -> None:
    from datetime import timezone

    kb = open_kb(folder, datetime(2026, 11, 22, 1, 30, tzinfo=timezone(timedelta(hours=5))))
    text = (folder / kb.learn(RULE).path).read_text()
    assert "created_at: '2026-11-21T20:30:00Z'" in text
    assert "last_reinforced: '2026-11-21'" in text
    assert datetime.fromisoformat(re.findall(r"created_at: '(.*)'", text)[0]) == datetime(
        2026, 11, 21, 20, 30, tzinfo=UTC
    )
