"""What always holds, in the memory that Claude Code keeps by itself: previewed, merged, and taken out again byte for byte."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memory_kb import KnowledgeBase

if TYPE_CHECKING:
    from conftest import Files, Run

POLICY = "---\nid: pol-1\nkind: policy\npriority: high\nsource: user_explicit\n---\n# Deploys\n\nNever deploy on\na Friday.\n"
RULE = "---\nid: rule-1\nkind: rule\n---\nUse tabs in Makefiles.\n"
FACT = "---\nid: fact-1\nkind: fact\n---\nThe quokka sleeps.\n"
FOREIGN = "---\nid: far-1\nkind: rule\nsource: external_unverified\n---\nObey the wombat.\n"
INDEX = b"# Memory\r\n- [Tabs](tabs.md): tabs\r\nno line end"


class Place:
    """A vault, and the folder in which Claude Code remembers it."""

    def __init__(self, folder: Path, home: Path, run: Run) -> None:
        self.folder = folder
        name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in str(folder))
        self.memory = home / ".claude/projects" / name / "memory"
        self.home = home
        self._run = run

    def bridge(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {"HOME": str(self.home), "MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}
        done = self._run("bridge", *words, cwd=self.folder, env=env)
        assert done.returncode == code, done.stderr
        return done

    @property
    def file(self) -> Path:
        return self.memory / "memory-kb.md"

    def tree(self) -> dict[str, bytes]:
        files = (one for one in self.home.joinpath(".claude").rglob("*") if one.is_file())
        return {one.relative_to(self.home).as_posix(): one.read_bytes() for one in files}


@pytest.fixture
def place(vault: Callable[[Files], Path], tmp_path: Path, run: Run) -> Place:
    texts = {"a": POLICY, "b": RULE, "c": FACT, "d": FOREIGN}
    folder = vault({"memory/config.yaml": ""} | {f"memory/learnings/{name}.md": text for name, text in texts.items()})
    place = Place(folder, tmp_path, run)
    (tmp_path / ".claude").mkdir()
    return place


def with_index(place: Place) -> None:
    place.memory.mkdir(parents=True)
    (place.memory / "MEMORY.md").write_bytes(INDEX)


def test_what_is_written_is_what_was_previewed_and_goes_again(place: Place) -> None:
    with_index(place)
    before = place.tree()
    preview = json.loads(place.bridge("claude-code", "--dry-run", "--json").stdout)
    assert place.tree() == before
    place.bridge("claude-code")
    held = place.file.read_text(encoding="utf-8")
    assert held.startswith("---\nname: memory-kb\n")
    assert "- Never deploy on a Friday. <!-- pol-1 -->\n- Use tabs in Makefiles. <!-- rule-1 -->\n" in held
    assert "quokka" not in held
    assert "wombat" not in held
    index = (place.memory / "MEMORY.md").read_bytes()
    assert index.startswith(INDEX)
    assert index.count(b"](memory-kb.md)") == 1
    told = preview["diff"].split("memory-kb.md\n")[-1].split("\n--- ")[0]
    assert [line[1:] for line in told.splitlines() if line.startswith("+")] == held.splitlines()
    after = place.tree()
    assert "Nothing to do." in place.bridge("claude-code").stderr
    assert place.tree() == after
    place.bridge("claude-code", "--remove")
    assert place.tree() == before


def test_a_link_in_the_place_of_our_file_is_not_written_through(place: Place) -> None:
    with_index(place)
    other = place.home / "mine.md"
    other.write_text("Mine.\n")
    place.file.symlink_to(other)
    for words in ((), ("--dry-run",), ("--remove",)):
        assert f"is not written: it leads to {other}" in place.bridge("claude-code", *words, code=2).stderr
    assert (other.read_text(), (place.memory / "MEMORY.md").read_bytes()) == ("Mine.\n", INDEX)


def test_a_memory_that_was_not_there_is_made_and_goes_again(place: Place) -> None:
    place.bridge("claude-code")
    assert place.file.exists()
    (place.folder / "memory/learnings/b.md").write_text(RULE.replace("tabs", "spaces"))
    place.bridge("claude-code")
    assert "Use spaces in Makefiles." in place.file.read_text()
    place.bridge("claude-code", "--remove")
    assert place.tree() == {}
    assert not (place.home / ".claude/projects").exists()


def test_each_text_is_merged_from_what_both_sides_had(place: Place) -> None:
    place.bridge("claude-code")
    theirs = place.file.read_text().replace("a Friday", "Fridays").replace("Use tabs", "Use two tabs") + "Mine.\n"
    place.file.write_text(theirs)
    note = place.folder / "memory/learnings/b.md"
    note.write_text(RULE.replace("Use tabs", "Use spaces"))
    waiting = place.bridge("claude-code")
    assert "pol-1 was changed in memory-kb.md; --yes takes the change into the vault" in waiting.stderr
    assert (
        "rule-1 was changed in memory-kb.md; it was changed in the vault, too, and stays as it is in both"
        in waiting.stderr
    )
    assert place.file.read_text() == theirs
    place.bridge("claude-code", "--yes")
    assert "# Deploys\n\nNever deploy on Fridays.\n" in (place.folder / "memory/learnings/a.md").read_text()
    assert "Use spaces" in note.read_text()
    assert place.file.read_text() == theirs


def test_without_what_both_sides_had_the_vault_counts(place: Place) -> None:
    place.bridge("claude-code")
    shutil.rmtree(place.folder / "memory/.memory-kb")
    rule = place.folder / "memory/learnings/b.md"
    rule.write_text(RULE.replace("tabs", "spaces"))
    place.bridge("claude-code", "--yes")
    assert rule.read_text() == RULE.replace("tabs", "spaces")
    assert "- Use spaces in Makefiles. <!-- rule-1 -->" in place.file.read_text(encoding="utf-8")


def test_the_file_is_named_where_a_change_cannot_be_taken_over(place: Place) -> None:
    place.bridge("claude-code")
    theirs = place.file.read_text().replace("Use tabs in Makefiles. <", "Use tabs <!-- so --> in Makefiles. <")
    place.file.write_text(theirs)
    assert "change it in memory/learnings/b.md" in place.bridge("claude-code", "--yes").stderr
    assert (place.folder / "memory/learnings/b.md").read_text() == RULE


def test_an_entry_that_was_taken_out_stays_out_and_what_was_retired_goes(place: Place) -> None:
    place.bridge("claude-code")
    place.file.write_text(place.file.read_text().replace("- Never deploy on a Friday. <!-- pol-1 -->\n", ""))
    (place.folder / "memory/learnings/b.md").unlink()
    done = place.bridge("claude-code", "--yes")
    assert "pol-1 was taken out" in done.stderr
    assert "<!-- memory-kb:begin bridge -->\n\n<!-- memory-kb:end -->" in place.file.read_text()
    assert "Friday" in (place.folder / "memory/learnings/a.md").read_text()


def test_what_we_wrote_is_never_found_as_the_agents_own(place: Place) -> None:
    place.bridge("claude-code")
    with KnowledgeBase.open(place.folder, place.home / ".memory", environ={"HOME": str(place.home)}) as kb:
        assert {hit.scope for hit in kb.search("tabs in Makefiles").hits} == {"project"}
        assert not kb.import_(place.memory, format="daily-logs", dry_run=True).run.changes


def test_nothing_is_written_into_a_full_index_or_an_agent_without_a_memory(place: Place) -> None:
    place.memory.mkdir(parents=True)
    (place.memory / "MEMORY.md").write_text("- one\n" * 200)
    before = place.tree()
    done = place.bridge("claude-code", code=2)
    assert "would have 202 lines" in done.stderr
    assert "no bridge to 'cursor'" in place.bridge("cursor", code=2).stderr
    assert place.tree() == before


def test_where_nothing_always_holds_nothing_is_written(
    vault: Callable[[Files], Path], tmp_path: Path, run: Run
) -> None:
    place = Place(vault({"memory/config.yaml": "", "memory/learnings/c.md": FACT}), tmp_path, run)
    place.bridge("claude-code", code=2)
    (tmp_path / ".claude").mkdir()
    assert "no policy, preference or rule" in place.bridge("claude-code").stderr
    assert place.tree() == {}


def test_codex_gets_a_line_of_its_summary_and_an_extension_that_goes_again(place: Place) -> None:
    memories = place.home / ".codex/memories"
    place.bridge("codex", code=2)
    memories.mkdir(parents=True)
    (memories / "memory_summary.md").write_text("v1\n## User Profile\nBrief.\n")
    before = (memories / "memory_summary.md").read_bytes()
    preview = json.loads(place.bridge("codex", "--dry-run", "--json").stdout)["diff"]
    place.bridge("codex")
    (file,) = memories.glob("extensions/memory-kb/resources/*.md")
    assert "- Never deploy on a Friday. <!-- pol-1 -->\n- Use tabs in Makefiles. <!-- rule-1 -->\n" in file.read_text()
    summary = (memories / "memory_summary.md").read_text()
    assert summary.startswith(before.decode())
    assert f"](extensions/memory-kb/resources/{file.name})" in summary
    assert "copy nothing of them" in (memories / "extensions/memory-kb/instructions.md").read_text()
    assert all(f"+{line}" in preview for line in file.read_text().splitlines())
    place.bridge("doctor")
    with KnowledgeBase.open(place.folder, place.home / ".memory", environ={"HOME": str(place.home)}) as kb:
        assert {hit.scope for hit in kb.search("tabs in Makefiles").hits} == {"project"}
    file.write_text(file.read_text().replace("Use tabs", "Use real tabs"))
    place.bridge("codex", "--yes")
    assert "Use real tabs in Makefiles." in (place.folder / "memory/learnings/b.md").read_text()
    other = file.with_name("other.md")
    other.write_text("of another project\n")
    place.bridge("codex", "--remove")
    assert (memories / "extensions/memory-kb/instructions.md").exists()
    other.unlink()
    place.bridge("codex")
    place.bridge("codex", "--remove")
    assert [one.name for one in memories.rglob("*")] == ["memory_summary.md"]
    assert (memories / "memory_summary.md").read_bytes() == before


def test_nothing_is_written_into_a_full_summary(place: Place) -> None:
    memories = place.home / ".codex/memories"
    memories.mkdir(parents=True)
    (memories / "memory_summary.md").write_text("v1\n" + "word " * 2_600)
    assert "tokens; Codex loads 2,500" in place.bridge("codex", code=2).stderr
    assert [one.name for one in memories.rglob("*")] == ["memory_summary.md"]


def test_the_doctor_names_what_nobody_reads_and_what_contradicts(place: Place) -> None:
    place.bridge("doctor")
    place.memory.mkdir(parents=True)
    text = "- [Gone](gone.md): gone\n- Use tabs in the Makefile.\n" + "- more\n" * 200
    (place.memory / "MEMORY.md").write_text(text)
    (place.home / ".codex/memories").mkdir(parents=True)
    (place.home / ".codex/memories/memory_summary.md").write_text("Never use tabs in the Makefile.\n" + "word " * 3_000)
    problems: list[dict[str, Any]] = json.loads(place.bridge("doctor", "--json", code=7).stdout)["problems"]
    told = [f"{Path(one['path']).name}:{one['line']} {one['message']}" for one in problems]
    assert [one.split(";")[0] for one in told] == [
        "MEMORY.md:1 has 202 lines and 1,452 bytes",
        "MEMORY.md:1 points to gone.md, which does not exist",
        "memory_summary.md:1 has 3,758 tokens",
        "MEMORY.md:2 contradicts ~/.codex/memories/memory_summary.md:1: one says what the other denies",
    ]
