"""Write what always holds into agents' own memories, and merge what was changed there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
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
from memory_kb.regular_files import open_for_reading, replace_file
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
from memory_kb.text import decode, load_json

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
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
#: A line of the block, and how long the text of an entry may be in it.
_LINE = re.compile(r"- (?P<text>.*?) <!-- (?P<id>[^\s<>]+) -->")
_MAX_ENTRY = 2_000


class BridgedMemory(NamedTuple):
    """The memory of an agent, as far as a bridge writes to it.

    Our file is `link` in the `index_file` that the agent loads, which gets a block of our `word` with the pointer line.
    `heads` are how files begin that are not there yet, `instructions` a further file that explains ours, with its text.
    """

    title: str
    file: Path
    index_file: Path
    word: str
    link: str
    pointer: str
    heads: dict[Path, str]
    instructions: tuple[Path, str] | None = None
    notice: str = ""


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
    pointer = f"- [What always holds here]({_FILE}): {_ABOUT}"
    return BridgedMemory(
        "Claude Code", folder / _FILE, folder / INDEX, WORD, _FILE, pointer, {folder / _FILE: _CLAUDE_HEAD}
    )


def _codex(vault: Vault) -> BridgedMemory:
    """Return Codex's memory, which is one for all projects; what is in it for one of them bears its name."""
    codex = codex_home(vault.environ)
    _require_folder("Codex", codex)
    folder = Path(os.path.realpath(codex / "memories"))
    name = _NO_WORD.sub("-", str(vault.project)).strip("-")[-100:]
    link = (_CODEX_EXTENSION / "resources" / f"{name}.md").as_posix()
    return BridgedMemory(
        "Codex",
        folder / link,
        folder / SUMMARY,
        f"{WORD}-{name}",
        link,
        f"- [What always holds in {vault.project}]({link}): {_ABOUT}; open it before you work there",
        {folder / SUMMARY: "v1\n\n"},
        (folder / _CODEX_EXTENSION / "instructions.md", _CODEX_INSTRUCTIONS),
        ""
        if folder.is_dir()
        else "Codex reads its memories only with `memories = true` under [features] of its config.toml",
    )


def _require_folder(title: str, folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{title} keeps nothing here: there is no folder {folder}", f"start {title} once")


class MergedBlock(NamedTuple):
    """What the block is to hold, the text of each entry that both sides agree on, and what was changed in the block.

    `edits` have the old and the new text; `notices` say what was left alone, and why.
    """

    lines: tuple[str, ...]
    base: Mapping[str, str]
    edits: Mapping[str, tuple[str, str]]
    notices: tuple[str, ...]


def merge_block(
    ours: Mapping[str, str],
    theirs: Sequence[str],
    base: Mapping[str, str],
    why_not: Callable[[str, str, str], str],
    name: str,
) -> MergedBlock:
    """Merge the entries of the vault, by id and in order, with the lines of the block, from the texts that both had.

    `why_not` returns why the new text of an entry cannot go into the vault in the place of the old one, "" where it
    can; `name` is what notices call the file with the block.

    Example:
        >>> ours, theirs, base = {"a": "Use tabs.", "b": "Be kind."}, ["- Use spaces. <!-- a -->"], {"a": "Use tabs."}
        >>> made = merge_block(ours, theirs, base, lambda entry, old, new: "", "memory-kb.md")
        >>> made.lines, made.edits
        (('- Use spaces. <!-- a -->', '- Be kind. <!-- b -->'), {'a': ('Use tabs.', 'Use spaces.')})
    """
    there = {found["id"]: found["text"] for line in theirs if (found := _LINE.fullmatch(line))}
    lines, agreed, edits, notices = list[str](), dict(ours), dict[str, tuple[str, str]](), list[str]()
    for entry, text in ours.items():
        old, now = base.get(entry), there.get(entry)
        shown = text
        if now is None and old == text:
            notices.append(f"{entry} was taken out of {name} and stays out; the vault keeps it")
            continue
        if now is not None and old is not None and now not in (old, text):
            shown, changed_here = now, "it was changed in the vault, too, and stays as it is in both"
            if reason := changed_here if old != text else why_not(entry, old, now):
                agreed[entry] = old
                notices.append(f"{entry} was changed in {name}; {reason}")
            else:
                agreed[entry], edits[entry] = now, (old, now)
        lines.append(f"- {shown} <!-- {entry} -->")
    for line in theirs:
        found = _LINE.fullmatch(line)
        known = base.get(found["id"]) if found else None
        if not line.strip() or (found and (found["id"] in ours or found["text"] == known)):
            continue
        lines.append(line)
        if found and known is not None:
            agreed[found["id"]] = known
        notices.append(
            f"{found['id']} was changed in {name} and always holds no more; its line is left there"
            if found
            else f"a line of {name} is none of ours and is left there: {line[:80]}"
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
        files, bases = self._agent_files(), self._read_bases()
        place = str(store.file)
        before = files.read(store.file)
        held, changes = {one.id: one for one in self._holding()}, dict[str, Change]()

        def why_not(entry: str, old: str, new: str) -> str:
            change = self._plan_edit(held[entry], old, new, store.title)
            if change is None:
                return f"its place in the vault is not found: change it in {held[entry].path}"
            changes[entry] = change
            return "" if take else "--yes takes the change into the vault"

        ours = {name: _line_text(memory) for name, memory in held.items()}
        made = merge_block(ours, _block_lines(store.file, before), bases.get(place, {}), why_not, store.file.name)
        if before is None and not made.lines:
            nothing = "the vault has no policy, preference or rule in force that always holds"
            return RunReport(None, "bridge", notices=(nothing,))
        for file, part in _blocks_by_file(store, "\n".join(made.lines)).items():
            if file == store.index_file:
                text = decode(files.read(file) or b"")
                if f"]({store.link})" in text and managed_block.begin(store.word) not in text:
                    continue
            after = files.put(file, [part], f"What always holds, for {store.title}.", head=store.heads.get(file, ""))
            if file == store.index_file and (excess := explain_excess(file.name, decode(after))):
                raise UsageError(f"{file.name} would have {excess}", "shorten it first")
        report = files.write("bridge", [*map(changes.__getitem__, made.edits)], dry_run=dry_run)
        if not (dry_run or report.conflicts):
            self._write_bases(bases | {place: dict(made.base)})
        return report._replace(notices=tuple(filter(None, (*report.notices, *made.notices, store.notice))))

    def remove(self, agent: str, *, dry_run: bool = False) -> RunReport:
        """Take our file and our line out of the memory of an agent.

        Files that nobody wrote to since are byte for byte what they were; from others only our parts go.
        """
        store = find_memory(agent, self._vault)
        _refuse_links(store)
        with self._writer.lock(dry_run=dry_run):
            files = self._agent_files()
            for file, part in _blocks_by_file(store, "").items():
                are_others_here = any(one != store.file for one in store.file.parent.glob("*.md"))
                if store.instructions and file == store.instructions[0] and are_others_here:
                    continue
                inner = len(file.parent.relative_to(store.index_file.parent).parts)
                head = store.heads.get(file, "")
                files.take(file, [part], f"Taken out of {store.title}.", head=head, folders=inner)
            report = files.write("bridge", dry_run=dry_run)
            if not (dry_run or report.conflicts):
                bases = self._read_bases()
                self._write_bases({name: base for name, base in bases.items() if name != str(store.file)})
        return report

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

    def _read_bases(self) -> dict[str, dict[str, str]]:
        try:
            with open_for_reading(self._vault.machine / "bridge-base.json") as stream:
                return {
                    str(name): {str(one): str(text) for one, text in base.items()}
                    for name, base in load_json(stream.read()).items()
                }
        except (OSError, ValueError, AttributeError):
            return {}

    def _write_bases(self, bases: Mapping[str, Mapping[str, str]]) -> None:
        file = self._vault.machine / "bridge-base.json"
        if bases:
            replace_file(file, json.dumps(bases, ensure_ascii=False, indent=1).encode(), 0o644)
        else:
            file.unlink(missing_ok=True)


def _blocks_by_file(store: BridgedMemory, lines: str) -> dict[Path, MarkedLines]:
    """Return what of ours is in which file, the index last."""
    blocks_of = {store.file: (WORD, lines)}
    if store.instructions:
        blocks_of[store.instructions[0]] = (WORD, store.instructions[1])
    blocks_of[store.index_file] = (store.word, store.pointer)
    return {file: MarkedLines(*block) for file, block in blocks_of.items()}


def _refuse_links(store: BridgedMemory) -> None:
    """Refuse to write through a link to where a file of ours would be; the index is the person's own."""
    for file in _blocks_by_file(store, ""):
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
