"""Write what always holds into agents' own memories, and merge what was changed there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.agents.agent_files import AgentFiles
from memory_kb.agents.agents_md import select_standing
from memory_kb.agents.config_files import MarkedLines
from memory_kb.agents.memory_check import examine_agent_memories
from memory_kb.context.framing import as_line
from memory_kb.errors import UsageError
from memory_kb.learning.playbook import rule_text
from memory_kb.markdown import managed_block
from memory_kb.markdown.splice import find_entry
from memory_kb.memory import Memory
from memory_kb.model import Problem
from memory_kb.reports import RunReport
from memory_kb.store.agent_memory_files import (
    INDEX,
    SUMMARY,
    claude_home,
    claude_memory_folders,
    codex_home,
    explain_excess,
)
from memory_kb.store.changes import Change, replace_entry
from memory_kb.text import decode

if TYPE_CHECKING:
    from memory_kb.learning.memories import Memories
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

#: The word of our block in a file of ours.
WORD = "bridge"
_FILE = "memory-kb.md"
_ABOUT = "policies and rules from memory-kb"
_CLAUDE_HEAD = """---
name: memory-kb
description: Policies and rules of this project that always hold, from memory-kb
type: project
---

"""
#: Codex reads the instructions of an extension of its memory before it consolidates what is there.
_CODEX_EXTENSION = Path("extensions/memory-kb")
_CODEX_INSTRUCTIONS = """# memory-kb

Each file in resources/ holds the policies and rules of one project, written by memory-kb; an entry has its id in a comment.
They are complete: leave them as they are, and copy nothing of them into MEMORY.md, memory_summary.md or skills/.
Keep the lines of memory_summary.md between the marks of memory-kb to the letter. Each names the file that an agent is
to open before it works in that project."""
_CODEX_IS_OFF = "Codex reads its memories only with `memories = true` under [features] of its config.toml"
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
#: A line of the block, and how long the text of an entry may be in it.
_LINE = re.compile(r"- (?P<text>.*?) <!-- (?P<id>[^\s<>]+) -->")
_MAX_ENTRY = 2_000


class BridgedMemory(NamedTuple):
    """The memory of an agent, as far as a bridge writes to it.

    Our `file` is named by the `pointer` in the `index_file` that the agent loads; `explained` are further files of ours,
    with their text. `heads` are how files begin that are not there yet.
    """

    title: str
    file: Path
    index_file: Path
    pointer: MarkedLines
    heads: Mapping[Path, str]
    explained: Mapping[Path, str] = {}
    notice: str = ""

    def blocks(self, lines: Sequence[str] = ()) -> dict[Path, MarkedLines]:
        """Return what of ours is in which file, the index last."""
        texts = {self.file: "\n".join(lines), **self.explained}
        return {file: MarkedLines(WORD, text) for file, text in texts.items()} | {self.index_file: self.pointer}


def find_memory(agent: str, vault: Vault) -> BridgedMemory:
    """Return where an agent keeps its memory of a vault's project."""
    makers = {"claude-code": _claude_code, "codex": _codex}
    if agent not in makers:
        raise UsageError(
            f"there is no bridge to {agent[:40]!r}",
            "there is one to claude-code and codex; `memory-kb export agents-md --file AGENTS.md` serves the others",
        )
    return makers[agent](vault)


def _claude_code(vault: Vault) -> BridgedMemory:
    claude, home = claude_home(vault.environ)
    _require_folder("Claude Code", claude)
    folders = list(claude_memory_folders(vault.project, claude, home, others=False))
    folder = Path(os.path.realpath(next((one for one in folders if one.is_dir()), folders[0])))
    pointer = MarkedLines(WORD, f"- [What always holds here]({_FILE}): {_ABOUT}")
    file = folder / _FILE
    return BridgedMemory("Claude Code", file, folder / INDEX, pointer, {file: _CLAUDE_HEAD})


def _codex(vault: Vault) -> BridgedMemory:
    """Return Codex's memory, which is one for all projects; what is in it for one of them bears its name."""
    codex = codex_home(vault.environ)
    _require_folder("Codex", codex)
    folder = Path(os.path.realpath(codex / "memories"))
    name = _NO_WORD.sub("-", str(vault.project)).strip("-")[-100:]
    link = (_CODEX_EXTENSION / "resources" / f"{name}.md").as_posix()
    line = f"- [What always holds in {vault.project}]({link}): {_ABOUT}; open it before you work there"
    return BridgedMemory(
        "Codex",
        folder / link,
        folder / SUMMARY,
        MarkedLines(f"{WORD}-{name}", line),
        {folder / SUMMARY: "v1\n\n"},
        {folder / _CODEX_EXTENSION / "instructions.md": _CODEX_INSTRUCTIONS},
        "" if folder.is_dir() else _CODEX_IS_OFF,
    )


def _require_folder(title: str, folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{title} keeps nothing here: there is no folder {folder}", f"start {title} once")


class MergedBlock(NamedTuple):
    """What the block is to hold, and the text of each entry that both sides agree on.

    `edits` have the new texts of what was changed in the block alone; `notices` say what was left alone, and why.
    """

    lines: tuple[str, ...]
    base: dict[str, str]
    edits: Mapping[str, str]
    notices: tuple[str, ...]


def merge_block(ours: Mapping[str, str], theirs: Sequence[str], base: Mapping[str, str], name: str) -> MergedBlock:
    """Merge the entries of the vault, by id and in order, with the lines of the block, from the texts that both had.

    `name` is what notices call the file with the block. Without a text that both had, that of the vault counts.

    Example:
        >>> ours, theirs, base = {"a": "Use tabs.", "b": "Be kind."}, ["- Use spaces. <!-- a -->"], {"a": "Use tabs."}
        >>> made = merge_block(ours, theirs, base, "memory-kb.md")
        >>> made.lines, made.edits
        (('- Use spaces. <!-- a -->', '- Be kind. <!-- b -->'), {'a': 'Use spaces.'})
    """
    there = {found["id"]: found["text"] for line in theirs if (found := _LINE.fullmatch(line))}
    lines, agreed, edits, notices = list[str](), dict(ours), dict[str, str](), list[str]()
    for entry, text in ours.items():
        if entry not in there and base.get(entry) == text:
            notices.append(f"{entry} was taken out of {name} and stays out; the vault keeps it")
            continue
        old, now = base.get(entry, text), there.get(entry, text)
        is_changed = entry in base and now not in (old, text)
        lines.append(f"- {now if is_changed else text} <!-- {entry} -->")
        if is_changed:
            agreed[entry] = old
        if is_changed and old == text:
            edits[entry] = now
        elif is_changed:
            why = "it was changed in the vault, too, and stays as it is in both"
            notices.append(f"{entry} was changed in {name}; {why}")
    for line in filter(str.strip, theirs):
        found = _LINE.fullmatch(line)
        if found is None or (found["id"] not in ours and found["text"] != base.get(found["id"])):
            lines.append(line)
            notices.append(
                f"a line of {name} says nothing that always holds in the vault, and is left there: {line[:80]}"
            )
    return MergedBlock(tuple(lines), agreed, edits, tuple(notices))


class Bridge:
    """The verbs bridge and bridge --remove."""

    def __init__(self, vault: Vault, writer: Writer, memories: Memories) -> None:
        self._vault = vault
        self._writer = writer
        self._memories = memories

    def bridge(self, agent: str, *, take: bool = False, dry_run: bool = False) -> RunReport:
        """Write what always holds into the memory of an agent: one pointer line, and one file of ours.

        What was changed in that file since goes into the vault, each text for itself, where the vault has not changed
        it too.
        """
        store = find_memory(agent, self._vault)
        with self._writer.lock(dry_run=dry_run):
            return self._write_block(store, take=take, dry_run=dry_run)

    def _write_block(self, store: BridgedMemory, *, take: bool, dry_run: bool) -> RunReport:
        _refuse_links(store)
        files = self._agent_files()
        before, held = files.read(store.file), {one.id: one for one in self._holding()}
        ours = {name: _line_text(memory) for name, memory in held.items()}
        made = merge_block(ours, _block_lines(store.file, before), files.texts(store.file), store.file.name)
        if before is None and not made.lines:
            nothing = "the vault has no policy, preference or rule in force that always holds"
            return RunReport(None, "bridge", notices=(nothing,))
        changes, waiting = list[Change](), list[str]()
        for entry, text in made.edits.items():
            change = self._plan_edit(held[entry], ours[entry], text, store.title)
            if change and take:
                changes.append(change)
                made.base[entry] = text
                continue
            where = f"its place in the vault is not found: change it in {held[entry].path}"
            why = "--yes takes the change into the vault" if change else where
            waiting.append(f"{entry} was changed in {store.file.name}; {why}")
        self._put_blocks(files, store, made.lines)
        files.note_texts(store.file, made.base)
        report = files.write("bridge", changes, dry_run=dry_run)
        notices = (*report.notices, *waiting, *made.notices, store.notice)
        return report._replace(notices=tuple(filter(None, notices)))

    def _put_blocks(self, files: AgentFiles, store: BridgedMemory, lines: Sequence[str]) -> None:
        """Plan to write our blocks; an index that names our file by a line of the agent's own stays as it is."""
        link = store.file.relative_to(store.index_file.parent).as_posix()
        for file, part in store.blocks(lines).items():
            text = decode(files.read(file) or b"")
            if file == store.index_file and f"]({link})" in text and managed_block.begin(part.word) not in text:
                continue
            after = files.put(file, [part], f"What always holds, for {store.title}.", head=store.heads.get(file, ""))
            if file == store.index_file and (excess := explain_excess(file.name, decode(after))):
                raise UsageError(f"{file.name} would have {excess}", "shorten it first")

    def remove(self, agent: str, *, dry_run: bool = False) -> RunReport:
        """Take our file and our line out of the memory of an agent.

        Files that nobody wrote to since are byte for byte what they were; from others only our parts go.
        """
        store = find_memory(agent, self._vault)
        _refuse_links(store)
        is_last = not any(one != store.file for one in store.file.parent.glob("*.md"))
        with self._writer.lock(dry_run=dry_run):
            files = self._agent_files()
            for file, part in store.blocks().items():
                if file not in store.explained or is_last:
                    inner = len(file.parent.relative_to(store.index_file.parent).parts)
                    head = store.heads.get(file, "")
                    files.take(file, [part], f"Taken out of {store.title}.", head=head, folders=inner)
            return files.write("bridge", dry_run=dry_run)

    def examine(self) -> tuple[Problem, ...]:
        """Return what is wrong with the memories that agents keep of this project, also without a bridge.

        That is indexes too long or pointing nowhere, memories nobody reads, and entries that contradict each other.
        """
        return tuple(examine_agent_memories(self._vault))

    def _plan_edit(self, memory: Memory, old: str, new: str, title: str) -> Change | None:
        """Return the change of an entry whose text was changed in our file.

        None if the entry does not have the old text, or has it more than once.
        """
        note = self._writer.read(memory.path)
        entry = find_entry(note.text, note.path, memory.id)
        was = note.text[entry.span.start : entry.span.end]
        body = entry.body.start - entry.span.start
        found = list(re.finditer(r"\s+".join(map(re.escape, old.split())), was[body:]))
        if len(found) != 1 or "<!--" in new:
            return None
        start, stop = (body + at for at in found[0].span())
        text = was[:start] + new + was[stop:]
        return replace_entry(note, memory.id, text, f"Changed in the memory of {title}.")

    def _holding(self) -> list[Memory]:
        """Return the entries that always hold, rules behind what is no rule, each once."""
        seen = [
            one for one in self._memories.all() if not (one.is_unverified or one.is_quarantined or one.is_superseded)
        ]
        limits, today = self._vault.settings.context, self._vault.today()
        baseline, rules = select_standing(seen, today, limits.max_rules)
        return list({one.id: one for one in (*baseline, *rules) if _line_text(one)}.values())

    def _agent_files(self) -> AgentFiles:
        return AgentFiles(self._vault, self._writer, self._vault.machine / "bridges.json")


def _refuse_links(store: BridgedMemory) -> None:
    """Refuse to write through a link to where a file of ours would be; the index is the person's own."""
    for file in store.blocks():
        if file != store.index_file and os.path.realpath(file) != os.fspath(file):
            raise UsageError(
                f"{file} is not written: it leads to {os.path.realpath(file)}", "delete the link, or move it away"
            )


def _line_text(memory: Memory) -> str:
    return as_line(rule_text(memory), _MAX_ENTRY)


def _block_lines(file: Path, data: bytes | None) -> list[str]:
    text = decode(data or b"")
    span = managed_block.find(str(file), text, WORD)
    return text[span[0] : span[1]].splitlines()[1:-1] if span else []
