"""Coming from elsewhere: what the notes, memories and conversations of other tools become."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, write_files
from hypothesis import given, settings
from hypothesis import strategies as st
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.learning.imports import basic_memory, conversations, daily_logs, mem0, obsidian
from memory_kb.learning.imports.agents_md import read as read_instructions
from memory_kb.learning.imports.basic_memory import take_apart
from memory_kb.learning.imports.lists import read_outline
from memory_kb.learning.imports.offering import ImportReport
from memory_kb.learning.imports.pieces import FORMATS, TextFile
from memory_kb.notes.jsonarrays import iterate
from memory_kb.notes.sessionlog import SessionFiles
from memory_kb.reports import EntryView

Open = Callable[..., KnowledgeBase]

BASIC_MEMORY = {
    "coffee/Coffee Brewing Methods.md": """---
title: Coffee Brewing Methods
type: note
tags: [coffee, brewing]
permalink: coffee/coffee-brewing-methods
created: 2025-10-24
---

# Coffee Brewing Methods

A summary in prose, see [[Tea Brewing Methods]].

## Observations
- [method] Pour over provides more flavor clarity than French press
- [decision] Use water of 92 degrees #brewing #water (based on own tests)
- [preference] Lighter roasts are better
- A line with a #tag but no category
- [ ] buy beans
- [link](https://example.com)

## Relations
- relates_to [[Tea Brewing Methods]]
- requires [[Proper Grinding Technique]]
- "based on" [[tea/tea-brewing-methods]] (an interview)
""",
    "tea/Tea Brewing Methods.md": """---
title: Tea Brewing Methods
type: guide
permalink: tea/tea-brewing-methods
---
- [technique] Green tea wants 70 degrees
- [status] active
""",
    "people/Ada.md": "---\ntitle: Ada\ntype: Person\npermalink: people/ada\n---\n- [status] active\n- works_at [[Nowhere]]\n",
    "schema/Person.md": "---\ntitle: Person\ntype: schema\npermalink: schema/person\nentity: Person\n---\nA person.\n",
}
OBSIDIAN = {
    ".obsidian/app.json": "{}",
    ".obsidian/hidden.md": "Not a note.",
    "Daily/2026-01-02.md": "Worked on [[Deploy guide#Steps]].\n",
    "Deploy guide.md": """---
aliases: [Releasing, deploys]
tags:
  - ops
created: 2026-02-03
---
# Deploy guide

Start at [[Servers]], or ![[Servers#^prod]]. #deploy/prod `#not-a-tag`

![[diagram.png|400]] and [[Missing note]].

1. Tag. ^first
""",
    "Servers.md": "---\ntitle: Our servers\n---\nThree of them. ^prod\n",
    "Empty.md": "---\ntags: [x]\n---\n",
    "Board.md": "---\nkanban-plugin: board\n---\n## Doing\n",
    "diagram.png": b"\x89PNG",
}
DAILY = {
    "MEMORY.md": "# Memory\n\n## Preferences\n- Answers should be short.\n\n"
    "## Facts\n- Staging runs Postgres 15.\n- Never deploy on Fridays.\n\nSome prose.\n",
    "memory/2026-03-01.md": "# 2026-03-01\n\n## 09:30 Deploy\n- Rolled back v2.\n- Cause: a missing index.\n\n## Lunch\n\n",
    "memory/2026-03-02-api.md": "Talked about the API <!-- secret comment --> design.\n",
    "memory/.dreams/state.md": "machine\n",
    "AGENTS.md": "- You are an assistant.\n",
}
AGENTS = {
    "AGENTS.md": """# Agents

@docs/rules.md

This project is a service.

## Code style
- Use tabs.
  They are shorter.
- You MUST run the linter.
- Prefer composition over inheritance

## Commands
- `make test` runs the tests

<!-- memory-kb:begin rules -->
- This is ours.
<!-- memory-kb:end -->

<!-- - commented out -->

```
- not a rule
```
""",
    "web/CLAUDE.md": "- Keep components small\n",
    "docs/other.md": "- no rule\n",
}
CLAUDE = [
    {
        "uuid": "11111111-aaaa",
        "name": "Validation",
        "created_at": "2026-01-05T10:00:00.000000Z",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "",
                "content": [{"type": "text", "text": "Always use zod for validation."}],
                "created_at": "2026-01-05T10:00:01Z",
            },
            {"uuid": "m2", "sender": "assistant", "text": "I always use zod for validation, then.", "created_at": "2026-01-05T10:00:02Z"},
            {"uuid": "m3", "sender": "human", "text": "Can you show me an example of that, please?", "created_at": "2026-01-05T10:00:03Z"},
        ],
    },
    {"uuid": "22222222-bbbb", "name": "", "created_at": "2026-01-06T10:00:00Z", "chat_messages": []},
]
CHATGPT = [
    {
        "conversation_id": "c-1",
        "title": "Style",
        "create_time": 1767225600.0,
        "current_node": "n4",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["n0"]},
            "n0": {
                "id": "n0",
                "parent": "root",
                "children": ["n1"],
                "message": {"id": "n0", "author": {"role": "system"}, "content": {"content_type": "text", "parts": [""]}, "create_time": None},
            },
            "n1": {
                "id": "n1",
                "parent": "n0",
                "children": ["n2", "x2"],
                "message": {
                    "id": "n1",
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["Hello, a question about Python style."]},
                    "create_time": 1767225601.5,
                },
            },
            "x2": {
                "id": "x2",
                "parent": "n1",
                "children": [],
                "message": {
                    "id": "x2",
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["Never use single quotes in this project."]},
                    "create_time": 1767225602.0,
                },
            },
            "n2": {
                "id": "n2",
                "parent": "n1",
                "children": ["n3"],
                "message": {
                    "id": "n2",
                    "author": {"role": "assistant"},
                    "content": {"content_type": "text", "parts": ["Yes?"]},
                    "create_time": 1767225602.0,
                },
            },
            "n3": {
                "id": "n3",
                "parent": "n2",
                "children": ["n4"],
                "message": {
                    "id": "n3",
                    "author": {"role": "user"},
                    "content": {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "I prefer double quotes in Python code."]},
                    "create_time": 1767225603.0,
                },
            },
            "n4": {
                "id": "n4",
                "parent": "n3",
                "children": [],
                "message": {
                    "id": "n4",
                    "author": {"role": "assistant"},
                    "content": {"content_type": "text", "parts": ["Noted."]},
                    "create_time": 1767225604.0,
                },
            },
        },
    }
]
MEM0 = {
    "count": 3,
    "results": [
        {
            "id": "a1",
            "memory": "Dev works at TechCorp",
            "user_id": "dev",
            "hash": "x",
            "metadata": {"type": "professional"},
            "categories": ["work"],
            "created_at": "2024-09-03T10:16:05.490548-07:00",
            "updated_at": None,
        },
        {"id": "a2", "memory": "Arjun prefers morning meetings", "user_id": "arjun", "metadata": None, "categories": ["user_preferences"]},
        {"id": "a3", "memory": "  "},
    ],
}


@pytest.fixture
def kb(open_kb: Open, folder: Path) -> KnowledgeBase:
    return open_kb(folder)


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., Path]:
    def make(files: dict[str, Any], name: str = "source") -> Path:
        return write_files(tmp_path / name, {path: text if isinstance(text, str | bytes) else json.dumps(text) for path, text in files.items()})

    return make


def counts(report: ImportReport) -> dict[tuple[str, str], int]:
    return report.count()


def entries(kb: KnowledgeBase) -> dict[str, EntryView]:
    """Return what was imported, by its title."""
    return {view.title: view for view in kb.list() if "imported_from" in view.metadata}


def everything(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


SOURCES: list[tuple[str, dict[str, Any], str]] = [
    ("basic-memory", BASIC_MEMORY, ""),
    ("obsidian", OBSIDIAN, ""),
    ("daily-logs", DAILY, ""),
    ("agents-md", AGENTS, ""),
    ("agents-md", {"CLAUDE.md": AGENTS["AGENTS.md"]}, "CLAUDE.md"),
    ("claude-export", {"conversations.json": CLAUDE}, ""),
    ("claude-export", {"chats.json": CLAUDE}, "chats.json"),
    ("chatgpt-export", {"conversations.json": CHATGPT}, "conversations.json"),
    ("mem0", {"memories.json": MEM0}, "memories.json"),
    ("mem0", {"memories.json": MEM0["results"]}, "memories.json"),
]


@pytest.mark.parametrize(("wanted", "files", "name"), SOURCES)
def test_a_source_is_recognised_and_importing_it_twice_changes_nothing(
    kb: KnowledgeBase, folder: Path, source: Callable[..., Path], wanted: str, files: dict[str, Any], name: str
) -> None:
    origin = source(files)
    before = everything(origin)
    preview = kb.import_(origin / name, dry_run=True)
    assert preview.format == wanted
    assert preview.run.diff
    assert len(notes_of(folder)) == 0
    first = kb.import_(origin / name)
    assert {action for _, action in counts(first)} <= {"created"}
    assert len(notes_of(folder)) == len(first.pieces) == len(preview.pieces) > 0
    assert all(
        view.metadata["imported_from"].startswith(
            (
                "basic-memory: ",
                "obsidian: ",
                "daily log: ",
                "mem0: ",
                "claude-export: ",
                "chatgpt-export: ",
                "AGENTS.md",
                "web/CLAUDE.md",
                "CLAUDE.md",
            )
        )
        for view in kb.list()
    )
    written = notes_of(folder)
    second = kb.import_(origin / name)
    assert {action for _, action in counts(second)} == {"known"}
    assert second.run.run is None
    assert notes_of(folder) == written
    assert everything(origin) == before
    assert all("the wikilink to" in problem.message for problem in kb.lint())


def test_what_was_forgotten_or_reworded_is_not_brought_back(kb: KnowledgeBase, folder: Path, source: Callable[..., Path]) -> None:
    origin = source(AGENTS)
    kb.import_(origin)
    tabs, linter = (next(view for view in kb.list() if word in kb.show(view.id).text) for word in ("tabs", "linter"))  # type: ignore[operator]
    kb.forget(tabs.id)
    file = folder / linter.path
    file.write_text(file.read_text(encoding="utf-8").replace("You MUST run the linter.", "Reworded."), encoding="utf-8")
    written = notes_of(folder)
    again = kb.import_(origin)
    assert {action for _, action in counts(again)} == {"known"}
    assert [one.line for one in again.pieces if "differ by now" in one.message] == [10]
    assert notes_of(folder) == written


def test_what_the_vault_says_already_is_reinforced_once_for_a_source(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    known = kb.learn("Use tabs. They are shorter.", kind="rule")
    origin = source({"AGENTS.md": "- Use tabs. They are shorter.\n"})
    assert counts(kb.import_(origin / "AGENTS.md")) == {("bullet", "reinforced"): 1}
    assert counts(kb.import_(origin / "AGENTS.md")) == {("bullet", "known"): 1}
    view = kb.show(known.id)
    assert view.metadata["reinforcement_count"] == 1
    assert view.metadata["sources"] == ["AGENTS.md"]


def test_credentials_are_refused_and_the_rest_goes_on(run: Run, folder: Path, source: Callable[..., Path]) -> None:
    origin = source({"AGENTS.md": "- The key is AKIAIOSFODNN7EXAMPLQ\n- Use tabs.\n"})
    done = run("--vault", folder, "import", origin / "AGENTS.md")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2 bullets: 1 refused, 1 created\n"
    assert "AGENTS.md:1: refused: not stored" in done.stderr
    assert not any(b"AKIA" in text for text in notes_of(folder).values())


def test_words_are_counted_as_people_count_them(run: Run, folder: Path, source: Callable[..., Path]) -> None:
    origin = source(
        {"m.json": {"results": [{"id": "1", "memory": ""}, {"id": "2", "memory": ""}, {"id": "3", "memory": "A."}, {"id": "4", "memory": "B."}]}}
    )
    done = run("--vault", folder, "import", origin / "m.json", "--format", "mem0")
    assert done.stdout == "2 memories: 2 created\n"
    assert "left out: 2 memories: it is empty" in done.stderr


# -- basic-memory ------------------------------------------------------------------------------


def test_observations_become_entries_and_relations_links(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source(BASIC_MEMORY))
    assert counts(report) == {("note", "created"): 3, ("observation", "created"): 7}
    assert [(one.what, one.why, one.number) for one in report.left_out] == [("schema", "it describes notes and is none", 1)]
    made = entries(kb)
    coffee, tea = made["Coffee Brewing Methods"], made["Tea Brewing Methods"]
    assert coffee.metadata["links"] == [{"to": tea.id, "relation": "related_to"}, {"to": tea.id, "relation": "derived_from"}]
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


def test_permalinks_go_on_leading_to_their_notes(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    kb.import_(source(BASIC_MEMORY))
    learned = kb.learn("As [[tea/tea-brewing-methods]] says.", title="Other")
    (reference,) = kb.links(learned.id).outgoing
    assert reference.entry and reference.entry.title == "Tea Brewing Methods"


def test_links_lead_to_what_the_vault_had_already(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    known = kb.learn("Green tea wants exactly seventy degrees, says everybody.", title="Tea")
    origin = source(
        {
            "a.md": "---\npermalink: a\n---\nSee below.\n- relates_to [[b]]\n",
            "b.md": "---\npermalink: b\n---\nGreen tea wants exactly seventy degrees, says everybody.\n- [rule] Wait for it\n",
        }
    )
    report = kb.import_(origin, format="basic-memory")
    assert counts(report)[("note", "reinforced")] == 1
    made = entries(kb)
    assert made["a"].metadata["links"] == [{"to": known.id, "relation": "related_to"}]
    assert made["b: Wait for it"].metadata["links"] == [{"to": known.id, "relation": "elaborates"}]


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
        ("- tagged #x", "Note"),
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
    assert [one.word for one in take_apart(line).relations] == ([word] if word else [])


def test_code_holds_no_observations() -> None:
    assert take_apart("```\n- [idea] no\n```\n- [idea] yes\n").observations[0].line == 4


# -- Obsidian ----------------------------------------------------------------------------------


def test_notes_keep_their_text_names_tags_and_embeds(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source(OBSIDIAN, "brain"))
    made = entries(kb)
    assert set(made) == {"2026-01-02", "Deploy guide", "Our servers"}
    guide, servers = made["Deploy guide"], made["Our servers"]
    assert guide.tags == ("ops", "deploy/prod")
    assert guide.metadata["aliases"] == ["Releasing", "deploys"]
    assert servers.metadata["aliases"] == ["Servers"]
    assert guide.metadata["links"] == [{"to": servers.id, "relation": "related_to"}]
    assert (guide.metadata["created_at"], guide.metadata["imported_from"]) == ("2026-02-03", "obsidian: brain/Deploy guide.md")
    text = kb.show(guide.id).text or ""
    assert "![[Servers#^prod]]. #deploy/prod `#not-a-tag`" in text and "1. Tag. ^first" in text
    assert Counter(one.what for one in report.left_out) == {"note": 2, "attachment": 1, "link": 1}
    outgoing = {one.target: one.entry and one.entry.title for one in kb.links(guide.id).outgoing}
    assert outgoing == {servers.id: "Our servers", "Servers": "Our servers", "Missing note": None}
    assert [problem.message for problem in kb.lint()] == [
        "the wikilink to 'Deploy guide#Steps' leads to a note without the heading 'Steps'",
        "the wikilink to 'Missing note' leads to no entry",
    ]


def test_a_block_that_is_not_there_is_told(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source({"a.md": "[[b#^one]] [[b#^two]]\n", "b.md": "Text ^one\n"}), format="obsidian")
    assert [one.why for one in report.left_out] == ["b has no block ^two; the text still names it"]


# -- logs, instructions ------------------------------------------------------------------------


def test_days_become_episodes_and_the_curated_file_facts(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source(DAILY))
    made = {(view.kind, (kb.show(view.id).text or "").rpartition("---\n")[2].strip().splitlines()[0]): view for view in kb.list()}
    assert set(made) == {
        ("preference", "Answers should be short."),
        ("fact", "Staging runs Postgres 15."),
        ("rule", "Never deploy on Fridays."),
        ("episode", "- Rolled back v2."),
        ("episode", "Talked about the API  design."),
    }
    deploy = made["episode", "- Rolled back v2."]
    assert (deploy.title, deploy.metadata["created_at"], deploy.dated) == ("09:30 Deploy", "2026-03-01", "2026-03-01")
    assert deploy.path.startswith("memory/episodes/2026-03-01/")
    assert {(one.what, one.first) for one in report.left_out} == {("paragraph", "MEMORY.md:10"), ("file", "AGENTS.md:1")}


def test_bullets_become_rules_policies_and_preferences(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source(AGENTS))
    made = {one.kind: one for one in report.pieces}
    assert Counter(one.kind for one in report.pieces) == {"rule": 2, "policy": 1, "preference": 1, "fact": 1}
    assert "Use tabs.\nThey are shorter." in (kb.show(next(one.id for one in report.pieces if one.line == 8)).text or "")
    small = next(view for view in kb.list() if view.metadata.get("applies_to"))
    assert small.metadata["applies_to"] == ["web/**"]
    assert kb.show(made["policy"].id).metadata["source"] == "observed"
    reasons = {(one.what, one.why): one.first for one in report.left_out}
    assert reasons == {
        ("block", "memory-kb keeps this block itself"): "AGENTS.md:16",
        ("import", "names another file, @docs/rules.md; import that by itself"): "AGENTS.md:3",
        ("paragraph", "a paragraph, not a rule in a list"): "AGENTS.md:5",
    }


def test_our_own_rules_in_a_file_are_not_learned_again(kb: KnowledgeBase, run: Run, folder: Path, source: Callable[..., Path]) -> None:
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
    assert [item.text for item in read_outline(text).items] == items


def test_lines_of_an_outline_are_right() -> None:
    text = "# A\n\n<!-- memory-kb:begin rules -->\nx\n<!-- memory-kb:end -->\n- one\n\n```\ncode\n```\n- two\n"
    outline = read_outline(text)
    assert [(item.text.splitlines()[0], item.line) for item in outline.items if item.is_bullet] == [("one", 6), ("two", 11)]
    assert outline.ours == (3,)


def test_globs_of_a_rules_file_are_kept() -> None:
    (piece,) = read_instructions(TextFile("rules.md", "---\nglobs: src/**, tests/**\n---\n- Use tabs.\n"))
    assert piece.draft and piece.draft.applies_to == ("src/**", "tests/**")


# -- conversations -----------------------------------------------------------------------------


def test_only_what_people_state_is_kept_of_conversations(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source({"conversations.json": CLAUDE}))
    assert counts(report) == {("statement", "created"): 1}
    (view,) = kb.list()
    assert "Always use zod for validation." in (kb.show(view.id).text or "")
    assert (view.kind, view.metadata["session_id"], view.metadata["created_at"][:10]) == ("preference", "claude-11111111-aaaa", "2026-01-05")
    assert view.metadata["imported_from"] == "claude-export: Validation"
    assert {(one.what, one.number) for one in report.left_out} == {("message", 1), ("conversation", 1)}


def test_of_a_branched_conversation_the_shown_branch_counts(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source({"conversations.json": CHATGPT}))
    (piece,) = report.pieces
    assert "I prefer double quotes in Python code." in (kb.show(piece.id).text or "")


@pytest.mark.parametrize(
    ("wanted", "export", "session", "events"), [("claude-export", CLAUDE, "claude-11111111-aaaa", 3), ("chatgpt-export", CHATGPT, "chatgpt-c-1", 4)]
)
def test_conversations_become_sessions_once(
    kb: KnowledgeBase, folder: Path, source: Callable[..., Path], wanted: str, export: Any, session: str, events: int
) -> None:
    origin = source({"conversations.json": export})
    assert kb.import_(origin, as_sessions=True, dry_run=True).sessions == 1
    assert SessionFiles(kb.machine).ids() == []
    report = kb.import_(origin, as_sessions=True)
    assert (report.format, report.sessions, report.events) == (wanted, 1, events + 1)
    logged = [event for event in SessionFiles(kb.machine).read(session) if event.type == "message"]
    assert len(logged) == events and logged[0].role == "user" and logged[0].ts.startswith("2026-01-0")
    assert notes_of(folder) == {}
    again = kb.import_(origin, as_sessions=True)
    assert (again.sessions, again.events) == (0, 0)
    assert len(list(SessionFiles(kb.machine).read(session))) == events + 1


def test_the_archive_of_an_export_is_read_as_it_is(kb: KnowledgeBase, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("data-2026/users.json", "[]")
        archive.writestr("data-2026/conversations.json", json.dumps(CLAUDE))
    assert counts(kb.import_(tmp_path / "export.zip")) == {("statement", "created"): 1}
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "")
    with pytest.raises(UnreadableInput, match=r"holds no conversations\.json"):
        kb.import_(tmp_path / "other.zip")


def test_a_broken_export_gives_what_stands_before_the_break(run: Run, folder: Path, source: Callable[..., Path]) -> None:
    origin = source({"conversations.json": json.dumps(CLAUDE)[:-1] + ", {oops]"})
    done = run("--vault", folder, "import", origin / "conversations.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 statement: 1 created")
    assert "not valid JSON after element 2" in done.stderr


def test_a_long_array_is_read_in_pieces() -> None:
    largest = 0

    def pieces() -> Iterator[str]:
        yield "["
        for number in range(2_000):
            yield json.dumps({"number": number, "text": ']}[{\\" ' * 500})
            yield "," if number < 1_999 else "]"

    for one in iterate(pieces()):
        assert one.wrong is None
        largest = one.value["number"]
    assert largest == 1_999


@pytest.mark.parametrize(
    ("text", "values", "wrong"),
    [
        ("[]", [], None),
        (" [ 1 , 2 ] ", [1, 2], None),
        ("\ufeff[1]", [1], None),
        ("", [], "it is empty"),
        ("hello", [], "not a JSON array"),
        ("[1 2]", [1], "not valid JSON after element 1"),
        ("[1", [1], "the array is not closed"),
        ('{"a": {"results": [9]}, "results": [1]}', [1], None),
        ('{"a": "\\"results\\": [9]"}', [{"a": '"results": [9]'}], None),
        ("[" * 100_000, [], "element 1 is nested too deeply"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1_000_000])
def test_arrays_in_pieces_of_any_size(text: str, values: list[object], wrong: str | None, size: int) -> None:
    if size == 1 and len(text) > 10_000:
        pytest.skip("slow, and the same as with three")
    found = list(iterate([text[at : at + size] for at in range(0, len(text), size)], ("results",)))
    assert [one.value for one in found if one.wrong is None] == values
    assert [one.wrong for one in found if one.wrong] == ([wrong] if wrong else [])


def test_memories_of_mem0_keep_their_owners_and_days(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source({"m.json": MEM0}) / "m.json")
    assert [(one.what, one.why) for one in report.left_out] == [("memory", "it is empty")]
    made = {view.kind: view for view in kb.list()}
    assert made["fact"].tags == ("work", "professional", "dev")
    assert made["fact"].metadata["created_at"].startswith("2024-09-03")
    assert made["preference"].metadata["imported_from"] == "mem0: a2, user_id arjun"


# -- the verb ----------------------------------------------------------------------------------


def test_the_place_may_be_named(kb: KnowledgeBase, folder: Path, source: Callable[..., Path]) -> None:
    origin = source(AGENTS)
    kb.import_(origin / "AGENTS.md", job="api")
    assert {view.scope for view in kb.list()} == {"job"}
    kb.import_(origin / "AGENTS.md", scope="global")
    assert Counter(view.scope for view in kb.list()) == {"job": 4, "global": 4}
    notes = source(BASIC_MEMORY, "notes")
    kb.import_(notes, scope="global")
    kb.import_(notes)
    assert {problem.message.partition(" to ")[0] for problem in kb.lint()} == {"the wikilink"}


def test_what_makes_no_sense_is_said(kb: KnowledgeBase, folder: Path, source: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}', encoding="utf-8")
    (folder / "memory/learnings").mkdir()
    with pytest.raises(UnreadableInput, match="does not exist"):
        kb.import_(tmp_path / "nothing")
    with pytest.raises(UsageError, match="cannot tell what"):
        kb.import_(tmp_path / "x.json")
    with pytest.raises(UsageError, match="unknown format"):
        kb.import_(tmp_path / "x.json", format="evernote")
    with pytest.raises(UsageError, match="part of this vault already"):
        kb.import_(folder / "memory" / "learnings", format="obsidian")
    with pytest.raises(UsageError, match="holds no conversations"):
        kb.import_(source(AGENTS) / "AGENTS.md", as_sessions=True)
    assert kb.import_(tmp_path / "x.json", format="mem0").left_out[0].why.startswith("it is no memory")


def test_an_import_is_taken_back_at_once(run: Run, folder: Path, source: Callable[..., Path]) -> None:
    origin = source(BASIC_MEMORY)
    done = run("--vault", folder, "import", origin, "--json")
    told = json.loads(done.stdout)
    assert told["format"] == "basic-memory" and len(told["pieces"]) == 10 and told["run"]
    assert run("--vault", folder, "undo").returncode == 0
    assert notes_of(folder) == {}


def test_a_thousand_notes_are_no_matter_of_pairs(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    """Offers were held against each other in pairs, which took minutes for an import."""
    lines = "".join(
        f"- Rule {number} says that {' '.join(f'word{(number * 7 + step) % 997}' for step in range(12))} is so\n" for number in range(1_000)
    )
    report = kb.import_(source({"AGENTS.md": lines + lines}) / "AGENTS.md", dry_run=True)
    assert counts(report) == {("bullet", "created"): 1_000, ("bullet", "known"): 1_000}


def test_the_help_lists_all_formats(run: Run) -> None:
    told = run("import", "--help").stdout
    assert all(one in told for one in FORMATS)


# -- odd sources -------------------------------------------------------------------------------

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
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["user", "Always use tabs.", "2026-01-01", "m1", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "mapping",
                    "chat_messages",
                    "message",
                    "author",
                    "role",
                    "content",
                    "parts",
                    "text",
                    "sender",
                    "uuid",
                    "id",
                    "parent",
                    "create_time",
                    "memory",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(_LINES, max_size=12))
def test_no_note_breaks_a_reader(lines: list[str]) -> None:
    for newline in ("\n", "\r\n"):
        file = TextFile("source/2026-01-01.md", newline.join(lines))
        for pieces in (basic_memory.read([file]), obsidian.read([file]), daily_logs.read(file), read_instructions(file)):
            for piece in pieces:
                assert piece.line >= 1
                assert (piece.draft is None) == bool(piece.why)
                assert piece.draft is None or (piece.key and piece.draft.text.strip())


@settings(max_examples=200, deadline=None)
@given(value=_JSON)
def test_no_export_breaks_a_reader(value: Any) -> None:
    mem0.read(value, "m.json", 1)
    for record in (
        value,
        {"uuid": "u", "chat_messages": [value]},
        {"id": "u", "mapping": {"a": value, "b": {"message": value}}, "current_node": "a"},
    ):
        if conversations.kind_of(record):
            talk = conversations.read(record)
            assert talk is None or talk.events
