"""Keep a file of ours in an agent's own memory, merged with what was changed there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.agents.agent import MarkedLines
from memory_kb.agents.agents_md import select_standing
from memory_kb.agents.bridge_stores import WORD, Store, find_store
from memory_kb.agents.files import AgentFiles
from memory_kb.context.framing import as_line
from memory_kb.errors import UsageError
from memory_kb.learning.playbook import rule_text
from memory_kb.markdown import text_blocks
from memory_kb.markdown.splice import find_entry
from memory_kb.model import Memory
from memory_kb.plainfiles import read_plain
from memory_kb.reports import RunReport
from memory_kb.store.plan import Change, replace_entry
from memory_kb.text import decode, load_json
from memory_kb.trust import write_plain

if TYPE_CHECKING:
    from memory_kb.learning.memories import Memories
    from memory_kb.model import Problem
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

_LINE = re.compile(r"- (?P<text>.*?) <!-- (?P<id>[^\s<>]+) -->")
_MAX_ENTRY = 2_000


class Merged(NamedTuple):
    """What the block is to hold, and what follows for the vault.

    Attributes:
        lines: the lines of the block.
        base: the text of each entry that both sides agree on, by id.
        edits: the old and the new text of entries that were changed in the agent's memory.
        notices: what was left alone, and why.
    """

    lines: tuple[str, ...]
    base: Mapping[str, str]
    edits: Mapping[str, tuple[str, str]]
    notices: tuple[str, ...]


def merge(
    ours: Mapping[str, str],
    theirs: Sequence[str],
    base: Mapping[str, str],
    why_not: Callable[[str, str, str], str] = lambda *_: "",
    name: str = "the file",
) -> Merged:
    """Merge the entries of the vault with the lines of the block, from what both were.

    Args:
        ours: the texts of the entries as they are now, by id, in order.
        theirs: the lines of the block as they are now.
        base: the texts that both sides had.
        why_not: returns why the new text of an entry cannot go into the vault in the place of the old one; "" where it can.
        name: what notices call the file with the block.

    Example:
        >>> made = merge({"a": "Use tabs.", "b": "Be kind."}, ["- Use spaces. <!-- a -->"], {"a": "Use tabs."})
        >>> made.lines, made.edits
        (('- Use spaces. <!-- a -->', '- Be kind. <!-- b -->'), {'a': ('Use tabs.', 'Use spaces.')})
    """
    there = {found["id"]: found["text"] for line in theirs if (found := _LINE.fullmatch(line))}
    lines, agreed, notices = list[str](), dict[str, str](), list[str]()
    edits = dict[str, tuple[str, str]]()
    for entry, text in ours.items():
        old, now = base.get(entry), there.get(entry)
        agreed[entry] = text
        if now is None and old == text:
            notices.append(f"{entry} was taken out of {name} and stays out; the vault keeps it")
            continue
        if now is None or old is None or now in (old, text):
            lines.append(f"- {text} <!-- {entry} -->")
            continue
        lines.append(f"- {now} <!-- {entry} -->")
        reason = (
            why_not(entry, old, now) if old == text else "it was changed in the vault, too, and stays as it is in both"
        )
        if reason:
            agreed[entry] = old
            notices.append(f"{entry} was changed in {name}; {reason}")
        else:
            agreed[entry], edits[entry] = now, (old, now)
    for line in theirs:
        found = _LINE.fullmatch(line)
        if found is None and line.strip():
            lines.append(line)
            notices.append(f"a line of {name} is none of ours and is left there: {line[:80]}")
        elif found and found["id"] not in ours and found["text"] != base.get(found["id"]):
            lines.append(line)
            agreed |= {found["id"]: base[found["id"]]} if found["id"] in base else {}
            notices.append(f"{found['id']} was changed in {name} and always holds no more; its line is left there")
    return Merged(tuple(lines), agreed, edits, tuple(notices))


class Bridge:
    """The verbs bridge and bridge --remove."""

    def __init__(self, vault: Vault, writer: Writer, memories: Memories) -> None:
        self._vault = vault
        self._writer = writer
        self._memories = memories

    def bridge(self, agent: str, *, take: bool = False, dry_run: bool = False) -> RunReport:
        """Write what always holds into the memory of an agent: one pointer line, and one file of ours.

        What was changed in that file since goes into the vault, each text for itself, where the vault has not changed it too.
        """
        store = find_store(agent, self._vault)
        with self._writer.lock(dry_run=dry_run):
            return self._put(store, take=take, dry_run=dry_run)

    def _put(self, store: Store, *, take: bool, dry_run: bool) -> RunReport:
        _refuse_links(store)
        files, bases = self._files(), self._read_bases()
        place = str(store.file)
        before = files.read(store.file)
        held, changes = {one.id: one for one in self._holding()}, dict[str, Change]()

        def why_not(entry: str, old: str, new: str) -> str:
            change = self._plan(held[entry], old, new, store.title)
            if change is None:
                return f"its place in the vault is not found: `memory-kb edit {entry}`"
            changes[entry] = change
            return "" if take else "--yes takes the change into the vault"

        ours = {name: _text(memory) for name, memory in held.items()}
        made = merge(ours, _block_lines(store.file, before), bases.get(place, {}), why_not, store.file.name)
        if before is None and not made.lines:
            nothing = "the vault has no policy, preference or rule in force that always holds"
            return RunReport(None, "bridge", notices=(nothing,))
        for file, part in _parts(store, "\n".join(made.lines)).items():
            if file == store.index_file:
                text = decode(files.read(file) or b"")
                if f"]({store.link})" in text and text_blocks.begin(store.word) not in text:
                    continue
            after = files.put(file, [part], f"What always holds, for {store.title}.", head=store.heads.get(file, ""))
            if file == store.index_file:
                store.check_size(after)
        report = files.write("bridge", [*map(changes.__getitem__, made.edits)], dry_run=dry_run)
        if not (dry_run or report.conflicts):
            self._write_bases(bases | {place: dict(made.base)})
        notices = (store.notice,) if store.notice else ()
        return report._replace(notices=(*report.notices, *made.notices, *notices))

    def remove(self, agent: str, *, dry_run: bool = False) -> RunReport:
        """Take our file and our line out of the memory of an agent.

        Files that nobody wrote to since are byte for byte what they were; from others only our parts go.
        """
        store = find_store(agent, self._vault)
        _refuse_links(store)
        with self._writer.lock(dry_run=dry_run):
            files = self._files()
            for file, part in _parts(store, "").items():
                if store.instructions and file == store.instructions[0] and _is_shared(store):
                    continue
                inner = len(file.parent.relative_to(store.index_file.parent).parts)
                head = store.heads.get(file, "")
                files.take(file, [part], f"Ingested out of {store.title}.", head=head, folders=inner)
            report = files.write("bridge", dry_run=dry_run)
            if not (dry_run or report.conflicts):
                bases = self._read_bases()
                self._write_bases({name: base for name, base in bases.items() if name != str(store.file)})
        return report

    def examine(self) -> tuple[Problem, ...]:
        """Return what is wrong with the memories that agents keep of this project, also without a bridge."""
        from memory_kb.agents.bridge_doctor import examine

        return tuple(examine(self._vault))

    def _plan(self, memory: Memory, old: str, new: str, title: str) -> Change | None:
        """Return the change of an entry whose text was changed in our file, None where the old text is not in it once."""
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
        named = {(one.path, one.id): one for one in seen}
        limits, today = self._vault.settings.context, self._vault.clock().date()
        baseline, rules = select_standing(seen, today, limits.max_rules)
        held = [*baseline, *(named[one.path, one.id] for one in rules)]
        return list({one.id: one for one in held if _text(one)}.values())

    def _files(self) -> AgentFiles:
        return AgentFiles(self._vault, self._writer, self._vault.machine / "bridges.json")

    def _read_bases(self) -> dict[str, dict[str, str]]:
        try:
            with read_plain(self._vault.machine / "bridge-base.json") as stream:
                return {
                    str(name): {str(one): str(text) for one, text in base.items()}
                    for name, base in load_json(stream.read()).items()
                }
        except (OSError, ValueError, AttributeError):
            return {}

    def _write_bases(self, bases: Mapping[str, Mapping[str, str]]) -> None:
        file = self._vault.machine / "bridge-base.json"
        if bases:
            write_plain(file, json.dumps(bases, ensure_ascii=False, indent=1).encode(), 0o644)
        else:
            file.unlink(missing_ok=True)


def _parts(store: Store, lines: str) -> dict[Path, MarkedLines]:
    """Return what of ours is in which file, the index last."""
    blocks_of = {store.file: (WORD, lines)}
    if store.instructions:
        blocks_of[store.instructions[0]] = (WORD, store.instructions[1])
    blocks_of[store.index_file] = (store.word, store.pointer)
    return {file: MarkedLines(*block) for file, block in blocks_of.items()}


def _refuse_links(store: Store) -> None:
    """Refuse to write through a link to where a file of ours would be; the index is the person's own."""
    for file in _parts(store, ""):
        if file != store.index_file and os.path.realpath(file) != os.fspath(file):
            raise UsageError(
                f"{file} is not written: it leads to {os.path.realpath(file)}", "delete the link, or move it away"
            )


def _is_shared(store: Store) -> bool:
    """Return whether the files of other projects are beside ours."""
    return any(one != store.file for one in store.file.parent.glob("*.md"))


def _text(memory: Memory) -> str:
    return as_line(rule_text(memory), _MAX_ENTRY)


def _block_lines(file: Path, data: bytes | None) -> list[str]:
    text = decode(data or b"")
    span = text_blocks.find(str(file), text, WORD)
    return text[span[0] : span[1]].splitlines()[1:-1] if span else []
