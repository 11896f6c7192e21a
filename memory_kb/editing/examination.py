"""Lint notes as they are in an editor, saved or not."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from memory_kb.credentials import describe_secret, locate_secrets
from memory_kb.errors import MemoryKBError
from memory_kb.index.doctor import is_file, say_dead, say_double
from memory_kb.index.editor_catalog import (
    EMPTY,
    Catalog,
    FoundHeading,
    find_note_headings,
    make_catalog,
    make_part,
    read_unsaved,
)
from memory_kb.index.link_names import find_rival, find_targets, say_rival
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning.citations import assess, citation_problems
from memory_kb.learning.render_entry import Draft
from memory_kb.learning.similar_entries import FORGOTTEN, find_duplicate
from memory_kb.markdown.document import find_line, parse_document
from memory_kb.markdown.fields import read_fields
from memory_kb.markdown.headings import find_anchor, say_missing
from memory_kb.markdown.links import TextLink, find_links, find_percent_comments, find_pictures, is_within
from memory_kb.memory import Memory
from memory_kb.model import Entry, Span
from memory_kb.store.file_edits import NoteText
from memory_kb.store.project_files import Attachments, project_files
from memory_kb.store.writer import Writer
from memory_kb.terms import name_key
from memory_kb.text import count_tokens, encode, short_id, shorten
from memory_kb.vault import Vault, default_status, place_of_path

#: Texts that are in an editor and perhaps nowhere else, by their paths in output.
Drafts = Mapping[str, str]


class Remark(NamedTuple):
    """Something to fix in a text.

    Attributes:
        code: `block`, `field`, `link`, `picture`, `id`, `twin`, `secret`, `budget` or `claim`.
        weight: `error`, `warning` or `hint`.
        about: what it is about: the field, the target of a link, or the entry that says the same.
    """

    span: Span
    code: str
    weight: str
    message: str
    about: str = ""


class Examination:
    """The queries of an editor about notes, saved or not."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._catalog = EMPTY

    def catalog(self) -> Catalog:
        """Return all entries with their names and links, as they are now in the files."""

        def read(index: SqliteIndex) -> Catalog:
            if self._catalog.generation != index.generation:
                self._catalog = make_catalog(index, self._catalog)
            return self._catalog

        return self._index.read(read)

    def find_headings(self, words: str, limit: int) -> tuple[FoundHeading, ...]:
        """Return headings of saved notes that hold all of some words, the shortest first, without titles of entries."""
        return self._index.read(lambda index: find_note_headings(index, words, limit))

    def examine(self, path: str, text: str) -> tuple[Remark, ...]:
        """Return the findings in a note that may not be saved yet, each with its place.

        The rules are those of `lint`, and that nothing is said twice. Other notes count as they are saved.
        """
        return tuple(_DraftCheck(self._vault, self._index, self._writer, path, text).find_remarks())

    def draft_note(self, path: str, drafts: Drafts) -> NoteText:
        """Return a note as it is in an editor, or as it is saved if no editor has it open."""
        return NoteText(path, encode(drafts[path])) if path in drafts else self._writer.read(path)


class _DraftCheck:
    """Checks a note that may not be saved yet against the rest of the vault, whose notes count as they are saved."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, path: str, text: str) -> None:
        self._vault, self._index, self._writer, self._path, self._text = vault, index, writer, path, text
        self._is_memory = vault.memory is not None
        self._memories = read_unsaved(path, text, is_memory=self._is_memory)
        self._document = parse_document(text, path, default_status(path, is_memory=self._is_memory))
        self._own_names = {name_key(name) for one in self._memories for name in (one.id, one.title)}
        self._attachments = Attachments(vault)
        wanted = {(path, target) for one in self._memories for target in find_targets(one.text)}
        wanted |= {(path, link.to) for one in self._memories for link in one.links}
        ids = {memory.id for memory in self._memories}
        # All entries of a large vault would fill the memory of the page.
        self._catalog = index.read(lambda index: make_part(index, wanted, ids))

    def find_remarks(self) -> Iterator[Remark]:
        """Yield the findings in a note, each with its place."""
        complained: set[str] = set()
        for entry, memory in zip(self._document.entries, self._memories, strict=False):
            for one in read_fields(entry.metadata)[1] if entry.has_frontmatter else ():
                complained.add(one.message)
                yield self._remark(entry, f"\n{one.field}:", "field", one.message, one.field)
            yield from self._check_links(entry)
            yield from self._check_secrets(entry)
            if entry.has_own_id:
                for place in self._find_others(memory)[:1]:
                    said = say_double(entry.id, place)
                    yield self._remark(entry, "\nid:", "id", said, entry.id)
            if memory.is_live and memory.is_ours:
                yield from self._check_text(entry, memory)
        yield from (
            Remark(line_span(self._text, problem.line), "block", "error", problem.message)
            for problem in self._document.problems
            if problem.message not in complained
        )

    def _remark(self, entry: Entry, words: str, code: str, message: str, about: str) -> Remark:
        """Return a warning at the line of an entry's frontmatter that has some words."""
        return Remark(line_span(self._text, find_line(self._text, entry, words)), code, "warning", message, about)

    def _check_links(self, entry: Entry) -> Iterator[Remark]:
        listed = entry.metadata.get("links")
        for link in listed if isinstance(listed, list) else ():
            to = str(link["to"]) if isinstance(link, dict) and link.get("to") is not None else None
            is_own = to is not None and name_key(to.strip()) in self._own_names
            if to is not None and not is_own and self._catalog.resolve(to, self._path) is None:
                said = say_dead(f"{link.get('relation') or 'related_to'} link", to)
                yield self._remark(entry, to, "link", said, to)
        for name, place in find_pictures(self._text, entry.body.start, entry.body.end):
            is_there = any(is_file(self._vault, source, name) for source in (self._path, ""))
            if not is_there and not self._attachments.named(posixpath.basename(name)):
                yield Remark(place, "picture", "hint", f"there is no file {name!r} in the vault", name)
        comments = find_percent_comments(self._text)
        for found in find_links(self._text, entry.body.start, entry.body.end, with_own=True):
            is_commented = is_within(found.span.start, comments)
            if not found.is_attachment:
                yield from self._check_link(found._replace(anchor="") if is_commented else found)

    def _check_link(self, link: TextLink) -> Iterator[Remark]:
        """Yield a remark if a link leads nowhere, may mean several notes, or names a part that its note lacks."""
        target = link.target
        found = self._catalog.resolve(target, self._path) if target else None
        if not target:
            if link.is_wikilink and link.anchor and find_anchor(self._text, link.anchor) is None:
                yield Remark(link.whole, "link", "hint", say_missing("", link.anchor, link.kind))
        elif found is None:
            if name_key(target.strip()) in self._own_names:
                return
            if link.is_wikilink or not is_file(self._vault, self._path, target):
                weight = "warning" if self._is_memory or not link.is_wikilink else "hint"
                yield Remark(link.whole, "link", weight, say_dead(link.kind, target), target)
        elif rival := find_rival(self._catalog.stems, target, self._path, found):
            yield Remark(link.whole, "link", "warning", say_rival(target, found, rival), target)
        elif link.anchor and (text := self._read(found.path)) is not None and find_anchor(text, link.anchor) is None:
            yield Remark(link.whole, "link", "hint", say_missing(target, link.anchor, link.kind), target)

    def _read(self, path: str) -> str | None:
        if path == self._path:
            return self._text
        try:
            return self._writer.read(path).text
        except (MemoryKBError, OSError):
            return None

    def _check_secrets(self, entry: Entry) -> Iterator[Remark]:
        """Yield the lines of an entry that hold what looks like a credential."""
        before = self._text.count("\n", 0, entry.span.start)
        secrets = locate_secrets(self._text[entry.span.start : entry.span.end])
        for found in {one.line: one for one in reversed(list(secrets))}.values():
            yield Remark(line_span(self._text, before + found.line), "secret", "error", describe_secret(found))

    def _find_others(self, memory: Memory) -> list[str]:
        """Return where other entries of the same scope have an entry's id: in other files, else in its own."""
        there = [
            f"{one.path}:{one.line}"
            for one in self._catalog.ids.get(memory.id, ())
            if one.path != self._path and place_of_path(one.path, is_memory=self._is_memory)[:3] == memory.place[:3]
        ]
        is_twice = sum((one.id, one.place) == (memory.id, memory.place) for one in self._memories) > 1
        return there or ([f"{self._path}:{memory.line}"] if is_twice else [])

    def _check_text(self, entry: Entry, memory: Memory) -> Iterator[Remark]:
        head, draft = self._head_span(entry), Draft(memory.text, memory.kind)
        if memory.text.strip() and (
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
                place = line_span(self._text, find_line(self._text, entry, *words))
                yield Remark(place, "claim", "warning", message)

    def _head_span(self, entry: Entry) -> Span:
        """Return the first line of an entry's text, or of the entry."""
        start = entry.body.end - len(self._text[entry.body.start : entry.body.end].lstrip())
        line = self._text.count("\n", 0, start) + 1 if start < entry.body.end else entry.line
        return line_span(self._text, line)


def line_span(text: str, line: int) -> Span:
    """Return where the words of a line are, counted from 1.

    Example:
        >>> line_span("one\\n  two \\n", 2)
        Span(start=6, end=9)
    """
    lines = text.split("\n")[: max(1, line)]
    words = lines[-1]
    start = sum(len(one) + 1 for one in lines[:-1])
    lead = len(words) - len(words.lstrip())
    return Span(start + lead, start + max(lead, len(words.rstrip())))
