"""What the notes, logs and instructions of other tools become: basic-memory, Obsidian, daily logs, AGENTS.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import importing
import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import AGENTS, BASIC_MEMORY, DAILY, OBSIDIAN, counts

from memory_kb import KnowledgeBase
from memory_kb.importers import bullets, notes
from memory_kb.importers.bullets import read_agents_md
from memory_kb.importers.notes import read_source_note, take_apart
from memory_kb.markdown.headings import read_outline
from memory_kb.reports import EntryView

if TYPE_CHECKING:
    from conftest import Run

source = importing.source

Open = Callable[..., KnowledgeBase]


@pytest.fixture
def kb(open_kb: Open, folder: Path) -> KnowledgeBase:
    return open_kb(folder)


def entries(kb: KnowledgeBase) -> dict[str, EntryView]:
    """Return what was imported, by its title."""
    return {view.title: view for view in kb.list() if "imported_from" in view.metadata}


def test_observations_become_entries_and_relations_links(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source(BASIC_MEMORY))
    assert counts(report) == {("note", "created"): 3, ("observation", "created"): 6}
    assert [(one.what, one.why, one.number) for one in report.left_out] == [
        ("schema", "it describes notes and is none", 1)
    ]
    made = entries(kb)
    coffee, tea = made["Coffee Brewing Methods"], made["Tea Brewing Methods"]
    assert coffee.metadata["links"] == [
        {"to": tea.id, "relation": "related_to"},
    ]
    assert (coffee.metadata["created_at"], coffee.tags, tea.tags) == ("2025-10-24", ("coffee", "brewing"), ("guide",))
    text = kb.show(coffee.id).text or ""
    assert "- requires [[Proper Grinding Technique]]" in text and "- [ ] buy beans" in text and "[method]" not in text
    decision = made["Coffee Brewing Methods: Use water of 92 degrees (based on own tests)"]
    assert (decision.kind, decision.tags, decision.metadata["links"]) == (
        "decision",
        ("brewing", "water"),
        [{"to": coffee.id, "relation": "elaborates"}],
    )
    assert {view.kind for view in made.values()} == {"fact", "decision", "preference"}
    statuses = [view for title, view in made.items() if title.endswith(": active")]
    assert len(statuses) == 2
    assert {one.entry.title for one in kb.links(coffee.id).outgoing if one.entry} == {"Tea Brewing Methods"}


def test_categories_that_agents_use_are_kinds(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    observed = (
        "- [gotcha] Masks need a folder.\n- [convention] Clicks select a project.\n- [insight] Epics are whole.\n"
    )
    kb.import_(source({"notes/a.md": f"---\npermalink: a\ntitle: A\n---\n{observed}"}))
    kinds = {title: (one.kind, one.tags) for title, one in entries(kb).items()}
    assert kinds["A: Masks need a folder."] == ("pitfall", ("gotcha",))
    assert kinds["A: Clicks select a project."] == ("rule", ("convention",))
    assert kinds["A: Epics are whole."] == ("fact", ("insight",))


def test_permalinks_go_on_leading_to_their_notes(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    kb.import_(source(BASIC_MEMORY))
    learned = kb.learn("As [[tea/tea-brewing-methods]] says.", title="Other")
    (reference,) = kb.links(learned.id).outgoing
    assert reference.entry and reference.entry.title == "Tea Brewing Methods"


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("- [x] done", None),
        ("- [-] cancelled", None),
        ("- [text](url)", None),
        ("- [[Target]]", None),
        ("* [idea] yes", "idea"),
        ("  - [deep idea] indented", "deep idea"),
        ("- plain", None),
        ("- see issue#12", None),
        ("- tagged #x", None),
        ("[idea] no list", None),
        ("- [a] #x", None),
    ],
)
def test_what_is_an_observation(line: str, category: str | None) -> None:
    found = take_apart(line).observations
    assert [one.category for one in found] == ([category] if category else [])


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("- implements [[Search Design]]", "implements"),
        ('- "based on" [[Customer Interview]]', "based on"),
        ("- 'in response to' [[Incident]] (why)", "in response to"),
        ("- [[Bare]]", "links_to"),
        ("- some other thing [[Entity]]", None),
        ("in prose [[Entity]]", None),
    ],
)
def test_what_is_a_relation(line: str, word: str | None) -> None:
    assert [found for found, _ in take_apart(line).relations] == ([word] if word else [])


def test_the_number_of_an_issue_is_no_tag() -> None:
    (found,) = take_apart("- [fact] It is open (issue #8369, PR #12) #blocker #2fa\n").observations
    assert (found.text, found.tags) == ("It is open (issue #8369, PR #12)", ("blocker", "2fa"))


def test_code_holds_no_observations() -> None:
    assert take_apart("```\n- [idea] no\n```\n- [idea] yes\n").observations[0].line == 4


def test_notes_keep_their_text_names_tags_and_embeds(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source(OBSIDIAN, "brain"))
    made = entries(kb)
    assert set(made) == {"2026-01-02", "Deploy guide", "Our servers"}
    guide, servers = made["Deploy guide"], made["Our servers"]
    assert guide.tags == ("ops", "deploy/prod")
    assert guide.metadata["aliases"] == ["Releasing", "deploys"]
    assert servers.metadata["aliases"] == ["Servers"]
    assert guide.metadata["links"] == [{"to": servers.id, "relation": "related_to"}]
    assert (guide.metadata["created_at"], guide.metadata["imported_from"]) == (
        "2026-02-03",
        "obsidian: brain/Deploy guide.md",
    )
    assert "session_id" not in guide.metadata
    text = kb.show(guide.id).text or ""
    assert "![[Servers#^prod]]. #deploy/prod `#not-a-tag`" in text and "1. Tag. ^first" in text
    assert Counter(one.what for one in report.left_out) == {"note": 2}
    outgoing = {one.target: one.entry and one.entry.title for one in kb.links(guide.id).outgoing}
    assert outgoing == {servers.id: "Our servers", "Servers": "Our servers", "Missing note": None}
    assert [problem.message for problem in kb.lint()] == [
        "the wikilink to 'Deploy guide#Steps' leads to a note without the heading 'Steps'",
        "the wikilink to 'Missing note' leads to no entry",
    ]


def test_days_become_episodes_and_the_curated_file_facts(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source(DAILY))
    made = {
        (view.kind, (kb.show(view.id).text or "").rpartition("---\n")[2].strip().splitlines()[0]): view
        for view in kb.list()
    }
    assert set(made) == {
        ("fact", "Answers should be short."),
        ("fact", "Staging runs Postgres 15."),
        ("fact", "Never deploy on Fridays."),
        ("episode", "- Rolled back v2."),
        ("episode", "Talked about the API  design."),
    }
    deploy = made["episode", "- Rolled back v2."]
    assert (deploy.title, deploy.metadata["created_at"], deploy.dated) == ("09:30 Deploy", "2026-03-01", "2026-03-01")
    assert deploy.path.startswith("memory/episodes/2026-03-01/")
    assert {(one.what, one.first) for one in report.left_out} == {
        ("paragraph", "MEMORY.md:10"),
        ("file", "AGENTS.md:1"),
    }


def test_bullets_become_rules(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source(AGENTS))
    assert Counter(one.kind for one in report.pieces) == {"rule": 5}
    assert "Use tabs.\nThey are shorter." in (
        kb.show(next(one.id for one in report.pieces if one.line == 8)).text or ""
    )
    small = next(view for view in kb.list() if view.metadata.get("applies_to"))
    assert small.metadata["applies_to"] == ["web/**"]
    assert small.metadata["source"] == "observed"
    reasons = {(one.what, one.why): one.first for one in report.left_out}
    assert reasons == {
        ("block", "memory-kb keeps this block itself"): "AGENTS.md:16",
        ("import", "names another file, @docs/rules.md; import that by itself"): "AGENTS.md:3",
        ("paragraph", "a paragraph, not a rule in a list"): "AGENTS.md:5",
    }


def test_our_own_rules_in_a_file_are_not_learned_again(
    kb: KnowledgeBase, run: Run, folder: Path, source: Callable[..., Path]
) -> None:
    origin = source({"AGENTS.md": "<!-- memory-kb:begin rules -->\n- Ours.\n- Ours, too.\n<!-- memory-kb:end -->\n"})
    done = run("--vault", folder, "import", origin / "AGENTS.md")
    assert done.stdout == "Nothing to import in AGENTS.md, read as agents-md.\n"
    assert "memory-kb keeps this block itself" in done.stderr


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("- a\n- b\n", ["a", "b"]),
        ("- a\n\n- b\n", ["a", "b"]),
        ("1. a\n2) b\n", ["a", "b"]),
        ("- a\n  - b\n    c\n- d\n", ["a\n- b\n  c", "d"]),
        ("- a\n\n  more\n\ntext\n", ["a\n\nmore", "text"]),
        ("- a\n  ```\n  - code\n  ```\n- b\n", ["a\n```\n- code\n```", "b"]),
        ("text\nmore\n\nother\n", ["text\nmore", "other"]),
        ("# H\r\n- a\r\n- b\r\n", ["a", "b"]),
        ("<!-- - a -->\n- b <!-- c -->\n", ["b"]),
        ("", []),
    ],
)
def test_outlines(text: str, items: list[str]) -> None:
    assert [item.text for item in read_outline(text)] == items


def test_lines_of_an_outline_are_right() -> None:
    text = "# A\n\n<!-- memory-kb:begin rules -->\nx\n<!-- memory-kb:end -->\n- one\n\n```\ncode\n```\n- two\n"
    bullets = [item for item in read_outline(text) if item.is_bullet]
    assert [(item.text.splitlines()[0], item.line) for item in bullets] == [("one", 6), ("two", 11)]
    (block,) = (piece for piece in read_agents_md(read_source_note("AGENTS.md", text)) if piece.what == "block")
    assert block.line == 3


def test_globs_of_a_rules_file_are_kept() -> None:
    (piece,) = read_agents_md(read_source_note("rules.md", "---\nglobs: src/**, tests/**\n---\n- Use tabs.\n"))
    assert piece.draft and piece.draft.applies_to == ("src/**", "tests/**")


def test_frontmatter_that_cannot_be_read_is_no_rule() -> None:
    (piece,) = read_agents_md(read_source_note("a/rules.md", "---\nglobs: [ts\npaths:\n  - src/**\n---\n- Use tabs.\n"))
    assert piece.draft
    assert (piece.draft.text, piece.draft.applies_to, piece.line) == ("Use tabs.", ("a/**",), 6)


_LINES = st.sampled_from(
    [
        "---",
        "- [a] b #c",
        "- r [[T]]",
        "[[T#^x]]",
        "![[x.png]]",
        "```",
        "# H",
        "## 2026-01-01",
        "  - sub",
        "<!--",
        "-->",
        "a: [",
        "title: T",
        "",
        "\x00",
        "\ud7ff",
        "%%",
    ]
)


@given(lines=st.lists(_LINES, max_size=12))
def test_no_note_breaks_a_reader(lines: list[str]) -> None:
    for newline in ("\n", "\r\n"):
        file = read_source_note("source/2026-01-01.md", newline.join(lines))
        for pieces in (
            notes.read_basic_memory([file]),
            notes.read_obsidian([file]),
            bullets.read_daily_log(file),
            read_agents_md(file),
        ):
            for piece in pieces:
                assert piece.line >= 1
                assert (piece.draft is None) == bool(piece.why)
                assert piece.draft is None or (piece.key and piece.draft.text.strip())
