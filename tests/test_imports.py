"""Coming from elsewhere: a source of another tool is recognised, and comes in once, where it may and where it was meant to."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import importing
import pytest
from importing import AGENTS, BASIC_MEMORY, CHATGPT, CLAUDE, DAILY, MEM0, OBSIDIAN, counts
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.importers import FORMATS

if TYPE_CHECKING:
    from conftest import Run

source = importing.source

Open = Callable[..., KnowledgeBase]


@pytest.fixture
def kb(open_kb: Open, folder: Path) -> KnowledgeBase:
    return open_kb(folder)


def everything(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }


SOURCES: list[tuple[str, dict[str, Any], str]] = [
    ("basic-memory", BASIC_MEMORY, ""),
    ("obsidian", OBSIDIAN, ""),
    ("daily-logs", DAILY, ""),
    ("agents-md", AGENTS, ""),
    ("agents-md", {"CLAUDE.md": AGENTS["AGENTS.md"]}, "CLAUDE.md"),
    ("agents-md", {"style.mdc": "---\nalwaysApply: true\n---\n- Use tabs.\n", "README.md": "Rules.\n"}, ""),
    ("agents-md", {"web/style.mdc": "---\nalwaysApply: true\n---\n- Use tabs.\n"}, ""),
    ("agents-md", {".cursorrules": "- Use tabs.\n"}, ".cursorrules"),
    ("obsidian", {"brief.md": "# Brief\n\nA shop.\n", "sub/state.md": "It sells tea.\n"}, ""),
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
                "style.mdc",
                "web/style.mdc",
                ".cursorrules",
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


def test_what_was_forgotten_or_reworded_is_not_brought_back(
    kb: KnowledgeBase, folder: Path, source: Callable[..., Path]
) -> None:
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


def test_what_the_vault_says_already_is_reinforced_once_for_a_source(
    kb: KnowledgeBase, source: Callable[..., Path]
) -> None:
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
        {
            "m.json": {
                "results": [
                    {"id": "1", "memory": ""},
                    {"id": "2", "memory": ""},
                    {"id": "3", "memory": "A."},
                    {"id": "4", "memory": "B."},
                ]
            }
        }
    )
    done = run("--vault", folder, "import", origin / "m.json", "--format", "mem0")
    assert done.stdout == "2 memories: 2 created\n"
    assert "left out: 2 memories: it is empty" in done.stderr


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


@pytest.mark.parametrize("globs", ["*.ts,src/**", "'*.ts, src/**'", "['*.ts', 'src/**']"])
def test_a_rule_of_cursor_holds_for_its_files(kb: KnowledgeBase, source: Callable[..., Path], globs: str) -> None:
    origin = source({"web/types.mdc": f"---\ndescription: Types\nglobs: {globs}\nalwaysApply: false\n---\n- No any.\n"})
    kb.import_(origin / "web")
    assert [view.metadata["applies_to"] for view in kb.list()] == [["*.ts", "src/**"]]


def test_a_rule_in_a_folder_of_rules_holds_everywhere(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    kb.import_(source({"a.mdc": "- Use tabs.\n", "web/b.mdc": "---\nglobs:\n---\n- No any.\n"}))
    assert [view.metadata.get("applies_to") for view in kb.list()] == [None, None]


def test_what_makes_no_sense_is_said(
    kb: KnowledgeBase, folder: Path, source: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}', encoding="utf-8")
    (folder / "memory/learnings").mkdir()
    with pytest.raises(UnreadableInput, match="does not exist"):
        kb.import_(tmp_path / "nothing")
    with pytest.raises(UsageError, match=r"the format of .* is unknown"):
        kb.import_(tmp_path / "x.json")
    (folder / "notes.md").write_text("Beside the memories.\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"the format of .* is unknown"):
        kb.import_(folder)
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
    assert told["format"] == "basic-memory" and len(told["pieces"]) == 9 and told["run"]
    assert run("--vault", folder, "undo").returncode == 0
    assert notes_of(folder) == {}
    again = run("--vault", folder, "import", origin).stderr
    assert "it was reverted or deleted before; where a run did that, `memory-kb undo --list` names it" in again


@pytest.mark.slow
def test_many_notes_are_no_matter_of_pairs(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    """Offers were held against each other in pairs, which took minutes for an import."""
    lines = "".join(
        f"- Rule {number} says that {' '.join(f'word{(number * 7 + step) % 997}' for step in range(12))} is so\n"
        for number in range(120)
    )
    report = kb.import_(source({"AGENTS.md": lines + lines}) / "AGENTS.md", dry_run=True)
    assert counts(report) == {("bullet", "created"): 120, ("bullet", "known"): 120}


def test_the_help_lists_all_formats(run: Run) -> None:
    told = run("import", "--help").stdout
    assert all(one in told for one in FORMATS)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_where_a_person_names_it_and_not_in_a_folder(kb: KnowledgeBase, tmp_path: Path) -> None:
    pipe, export = tmp_path / "pipe", tmp_path / "export"
    export.mkdir()
    for one in (pipe, export / "conversations.json"):
        os.mkfifo(one)
    threading.Thread(target=pipe.write_text, args=(json.dumps(MEM0),), daemon=True).start()
    assert kb.import_(pipe, format="mem0", dry_run=True).pieces
    with pytest.raises(UnreadableInput, match="a pipe"):
        kb.import_(export, format="claude-export")
