"""Lint notes as they are in an editor, saved or not."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memory_kb.errors import MemoryKBError
from memory_kb.index.doctor import NoteCheck, is_file
from memory_kb.index.entry_texts import make_memory
from memory_kb.index.link_names import entries_named, typed_links
from memory_kb.index.lint_cache import examine_texts
from memory_kb.index.note_chunks import RawNote, read_note
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning.citations import assess, citation_problems
from memory_kb.learning.render_entry import Draft
from memory_kb.learning.similar_entries import FORGOTTEN, find_duplicate
from memory_kb.markdown.document import find_line, parse_document
from memory_kb.markdown.headings import find_anchor
from memory_kb.markdown.links import escape_address, find_links, find_pictures
from memory_kb.memory import Memory
from memory_kb.model import Entry, FileStat, Problem, Span, StoredEntry
from memory_kb.store.project_files import Attachments, project_files
from memory_kb.store.writer import Writer
from memory_kb.text import count_tokens, encode, hash_of, short_id, shorten
from memory_kb.vault import Vault, place_of_path

#: Texts that are in an editor and perhaps nowhere else, by their paths in output.
Drafts = Mapping[str, str]
#: The columns of the index that an entry is made of.
_COLUMNS = tuple({"id": "entry_id", "path": "source"}.get(name, name) for name in StoredEntry._fields)
_QUOTED = re.compile(r" '([^']+)'")


class Remark(NamedTuple):
    """Something to fix in a text.

    Attributes:
        code: `note` for what cannot be read as it is meant, `id`, `link`, `picture`, `secret`, `twin`, `budget` or `claim`.
        weight: `error`, `warning` or `hint`.
        about: the id of the entry that says the same.
    """

    span: Span
    code: str
    weight: str
    message: str
    about: str = ""


class DraftEntry(NamedTuple):
    """An entry of a text that may not be saved: as it is in the text, as the index would have it, and to plan with."""

    entry: Entry
    stored: StoredEntry
    memory: Memory


class DraftNote(NamedTuple):
    """The entries of a text, and what reading it found: lines and messages."""

    entries: Sequence[DraftEntry]
    problems: Sequence[tuple[int, str]]


def read_draft(path: str, text: str, *, is_memory: bool) -> DraftNote:
    """Return what a text would be in the index; changes are planned against it as its bytes are.

    Example:
        >>> [(one.memory.id, one.memory.text) for one in read_draft("a.md", "---\\nid: x\\n---\\nOne.\\n", is_memory=False).entries]
        [('x', 'One.')]
    """
    data, place = encode(text), place_of_path(path, is_memory=is_memory)
    note = read_note(RawNote(FileStat(path, path, len(data), 0, 0), data, is_cut=False), is_memory=is_memory)
    firsts = [chunk for chunk in note.chunks if chunk.part == 0]
    entries = []
    for chunk, entry in zip(firsts, parse_document(text, path).entries, strict=False):
        stored = StoredEntry._make(getattr(chunk, name) for name in _COLUMNS)
        body = text[entry.body.start : entry.body.end].strip()
        entries.append(DraftEntry(entry, stored, make_memory(stored, hash_of(data), place, body)))
    return DraftNote(entries, note.problems)


class Examination:
    """Says what `lint` would say of a note that may not be saved yet, and that something is said twice."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer

    def examine(self, path: str, text: str) -> tuple[Remark, ...]:
        """Return the findings in a note that may not be saved yet, each with its place.

        The rules are those of `lint`, that nothing is said twice, and that pictures and parts of the note itself are there.
        Other notes count as they are saved.
        """
        note = read_draft(path, text, is_memory=self._vault.memory is not None)
        found = [("note", "warning", Problem(path, *one)) for one in note.problems]
        found += self._lint(path, text, note)
        remarks = [
            Remark(_place_of(text, problem), code, weight, problem.message)
            for code, weight, problem in found
            if problem.path == path
        ]
        remarks += self._check_pictures(path, text)
        remarks += [
            Remark(link.whole, "link", "hint", f"there is no {link.anchor!r} in this note")
            for link in find_links(text, with_own=True)
            if link.is_wikilink and not link.target and find_anchor(text, link.anchor) is None
        ]
        for one in note.entries:
            if one.memory.is_live and one.memory.is_ours:
                remarks += self._check_text(text, one.entry, one.memory)
        return tuple(remarks)

    def _lint(self, path: str, text: str, note: DraftNote) -> Iterator[tuple[str, str, Problem]]:
        """Yield what `lint` finds in a text beside the other notes of the vault: code, weight and problem."""
        findings = examine_texts((one.stored, one.memory.text) for one in note.entries)
        wanted = {(path, link.target) for links in findings.links.values() for link in links}
        wanted |= {(path, target) for one in note.entries for _, target in typed_links(one.stored)}
        ids = {one.stored.id for one in note.entries}
        # All entries of a large vault would fill the memory of the page.
        named = self._index.read(lambda index: entries_named(index, wanted, ids))
        entries = [*(one for one in named if one.path != path), *(one.stored for one in note.entries)]
        check = NoteCheck(self._vault, entries, {path: findings}, lambda other: self._read(other, path, text))
        yield from (("secret", "error", Problem(path, *one)) for one in findings.problems)
        yield from (("id", "warning", one) for one in check.find_duplicate_ids())
        for problem in check.find_dead_links(with_unwritten=True):
            # In a plain folder such a note may be yet to be written.
            is_hint = self._vault.memory is None and problem.message.startswith("the wikilink ")
            yield "link", "hint" if is_hint else "warning", problem

    def _read(self, path: str, own: str, text: str) -> str:
        try:
            return text if path == own else self._writer.read(path).text
        except (MemoryKBError, OSError):
            return ""

    def _check_pictures(self, path: str, text: str) -> Iterator[Remark]:
        attachments = Attachments(self._vault)
        for name, place in find_pictures(text):
            is_there = any(is_file(self._vault, source, name) for source in (path, ""))
            if not is_there and not attachments.named(posixpath.basename(name)):
                yield Remark(place, "picture", "hint", f"there is no file {name!r} in the vault")

    def _check_text(self, text: str, entry: Entry, memory: Memory) -> Iterator[Remark]:
        head, draft = _line_span(text, memory.line), Draft(memory.text, memory.kind)
        if memory.text and (
            twin := self._index.read(lambda index: find_duplicate(index, draft, memory.place, memory.id))
        ):
            said = "the same was forgotten before:" if twin.status in FORGOTTEN else "says the same as"
            there = f"{short_id(twin.id)} ({shorten(twin.title, 60)}), {twin.path}:{twin.line}"
            yield Remark(head, "twin", "warning", f"{said} {there}", twin.id)
        most = self._vault.settings.context.rule_tokens
        if memory.kind in ("rule", "pitfall") and (tokens := count_tokens(memory.text)) > most:
            message = f"{tokens:,} tokens; context.rule_tokens allows {most:,} for all rules, so that `context` never shows it"
            yield Remark(head, "budget", "warning", message)
        if not memory.metadata.keys().isdisjoint(("cites", "valid_until")):
            verdict = assess(memory, project_files(self._vault, 5.0), self._vault.today())
            for message, words in citation_problems(memory, verdict):
                yield Remark(_line_span(text, find_line(text, entry, *words)), "claim", "warning", message)


def _place_of(text: str, problem: Problem) -> Span:
    """Return where a problem is in a text: the name in quotes that its message has, else its whole line."""
    line, named = _line_span(text, problem.line), _QUOTED.search(problem.message)
    for words in (named[1], escape_address(named[1])) if named else ():
        if (start := text.find(words, line.start, line.end)) >= 0:
            return Span(start, start + len(words))
    return line


def _line_span(text: str, line: int) -> Span:
    """Return where the words of a line are, counted from 1.

    Example:
        >>> _line_span("one\\n  two \\n", 2)
        Span(start=6, end=9)
    """
    lines = text.split("\n")[: max(1, line)]
    words = lines[-1]
    start = sum(len(one) + 1 for one in lines[:-1])
    lead = len(words) - len(words.lstrip())
    return Span(start + lead, start + max(lead, len(words.rstrip())))
