"""Notes whose frontmatter has a typo: they hold back what they held back, and nothing is written to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files

from memory_kb import KnowledgeBase
from memory_kb.errors import CannotSplice
from memory_kb.git.merge import merge_files
from memory_kb.markdown.document import parse_document

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

BODY = "Always use the old gateway.\n"
HELD_BACK = [
    "status: retired\ntags: [a\n",
    "status: rejected\ntitle: one: two\n",
    "tags: [a\nstatus: proposed\n",
    'status: "retired\n',
    "tags: x\n status: retired\n",
    "status:retired\n",
    "\tstatus: retired\n",
    "source: external_unverified\ntags: [a\n",
    "<<<<<<< ours\nstatus: active\n=======\nstatus: retired\n>>>>>>> theirs\n",
    "tags: [a\n\n# how it stands\nstatus: retired\n",
]


def note(fields: str) -> str:
    return f"---\nid: old\nkind: policy\n{fields}---\n{BODY}"


@pytest.mark.parametrize("fields", HELD_BACK)
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "unclosed"])
def test_a_typo_does_not_give_agents_what_was_held_back(
    vault: Vault, open_kb: Open, fields: str, is_closed: bool
) -> None:
    if not is_closed and ("\n\n" in fields or "<<<" in fields):
        pytest.skip("nothing tells where such a block ends")
    text = note(fields) if is_closed else note(fields).replace("---\nAlways", "\nAlways")
    kb = open_kb(vault({"memory/old.md": text, "memory/b.md": "The new gateway is called Hermes.\n"}))
    context = kb.context("use the gateway")
    assert "old gateway" not in context.text
    assert "Hermes" in context.text
    (told,) = [reason for reason in context.degraded if "memory/old.md:" in reason]
    assert "cannot be read" in told
    assert (kb.vault.folder / "memory/old.md").read_text() == text


@pytest.mark.parametrize("status", ["retired", "rejected", "proposed"])
def test_a_search_says_which_note_cannot_be_read(vault: Vault, open_kb: Open, status: str) -> None:
    kb = open_kb(vault({"memory/old.md": note(f"status: {status}\ntags: [a\n")}))
    found = kb.search("gateway")
    assert found.hits == ()
    assert [reason for reason in found.degraded if "memory/old.md:5" in reason]
    assert [hit.id for hit in kb.search("gateway", status=status).hits] == ["old"]
    assert [(problem.path, problem.line) for problem in kb.lint()] == [("memory/old.md", 5)]


def test_several_broken_notes_are_reported_in_one_sentence(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault({f"memory/{name}.md": note("tags: [a\n").replace("old", name, 1) for name in "abc"}))
    (told,) = kb.search("gateway").degraded
    assert told.startswith("the frontmatter at memory/a.md:4 and in 2 more places cannot be read")


def test_a_block_that_cannot_be_read_is_text_and_keeps_its_id(vault: Vault, open_kb: Open) -> None:
    text = "---\nid: oven\nkind: pitfall\nphase: zebra\ntags: [a, b\n---\nMind it.\n"
    kb = open_kb(vault({"memory/a.md": text}))
    (hit,) = kb.search("zebra").hits
    assert (hit.id, hit.kind, hit.text.strip()) == ("oven", "fact", text.strip())


@pytest.mark.parametrize(
    ("text", "bodies"),
    [
        (
            "---\nid: a\ntags: [x\n\nA paragraph.\n\n---\n\nMore.\n",
            ["---\nid: a\ntags: [x\n\nA paragraph.\n\n---\n\nMore.\n"],
        ),
        (
            "---\nid: a\ntags: [x\n\n# A heading\n\nText.\n\n---\n",
            ["---\nid: a\ntags: [x\n\n# A heading\n\nText.\n\n---\n"],
        ),
        ("---\nid: a\ntags:\n  - x\n  - [y\n---\nText.\n", ["---\nid: a\ntags:\n  - x\n  - [y\n---\nText.\n"]),
        ("One.\n\n---\nid: a\ntags: [x\n---\nTwo.\n", ["One.\n\n", "---\nid: a\ntags: [x\n---\nTwo.\n"]),
        (
            "One.\n\n---\nAs I said,\ntype: this [one\n\n---\nTwo.\n",
            ["One.\n\n---\nAs I said,\ntype: this [one\n\n---\nTwo.\n"],
        ),
        (
            "One.\n\n---\ntype: a: b\n\nProse between rules.\n\n---\nTwo.\n",
            ["One.\n\n---\ntype: a: b\n\nProse between rules.\n\n---\nTwo.\n"],
        ),
        ("---\nAs I said: [all\nAnd then: some\n---\nTwo.\n", ["---\nAs I said: [all\nAnd then: some\n---\nTwo.\n"]),
    ],
)
def test_text_stays_text(text: str, bodies: list[str]) -> None:
    found = parse_document(text, "a.md").entries
    assert [text[entry.body.start : entry.body.end] for entry in found] == bodies


def test_a_large_broken_block_is_read_soon() -> None:
    block = "".join(f"field{number}: [x\n" for number in range(20_000))
    (entry,) = parse_document(f"---\nid: a\n{block}status: retired\n---\nText.\n", "a.md").entries
    assert (entry.id, entry.status) == ("a", "retired")


OVEN = "---\nid: oven\nkind: fact\ntags: [a, b\n---\nThe oven is hot.\n"


def test_upkeep_leaves_it_alone(vault: Vault, open_kb: Open) -> None:
    old = "---\nid: oven\nkind: fact\ncreated_at: '2020-01-01'\ntags: [a, b\n---\nThe oven is hot.\n"
    folder = vault({"memory/learnings/oven.md": old, "memory/config.yaml": ""})
    open_kb(folder).maintain()
    assert (folder / "memory/learnings/oven.md").read_text() == old


def test_branches_with_a_typo_merge_as_text() -> None:
    ours, theirs = OVEN.replace("hot", "very hot"), OVEN.replace("id: oven", "# mine\n\nid: oven")
    merged = merge_files(OVEN, ours, theirs, "a.md")
    assert (merged.conflicts, merged.text) == (0, theirs.replace("hot", "very hot"))


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda kb: kb.forget("oven"), id="forget"),
        pytest.param(lambda kb: kb.forget("memory/oven.md"), id="forget-by-path"),
        pytest.param(lambda kb: kb.forget("oven", delete=True), id="delete"),
        pytest.param(lambda kb: kb.rename("oven", "stove"), id="rename"),
    ],
)
def test_no_verb_writes_into_a_note_that_it_cannot_read(
    vault: Vault, open_kb: Open, write: Callable[[KnowledgeBase], object]
) -> None:
    folder = vault({"memory/oven.md": OVEN})
    kb = open_kb(folder)
    with pytest.raises(CannotSplice, match=r"memory/oven\.md:4 cannot be read"):
        write(kb)
    assert (folder / "memory/oven.md").read_text() == OVEN


def test_the_line_is_that_of_the_file_in_a_later_entry_too(vault: Vault, open_kb: Open) -> None:
    text = "---\nid: a\n---\nOne.\n\n" + OVEN
    folder = vault({"memory/a.md": text})
    kb = open_kb(folder)
    with pytest.raises(CannotSplice, match=r"memory/a\.md:9 cannot be read"):
        kb.forget("oven")
    kb.forget("a")
    assert (folder / "memory/a.md").read_text() == text.replace("id: a\n", "id: a\nstatus: retired\n")


def test_an_edit_may_mend_it(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/oven.md": OVEN})
    kb = open_kb(folder)
    kb.edit("oven", OVEN.replace("b\n", "b]\n"), kb.source("oven").hash)
    assert kb.lint() == ()
    assert kb.forget("oven").id == "oven"
