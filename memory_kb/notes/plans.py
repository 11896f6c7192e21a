"""What a planner returns: changes to notes, each with its reason and what it was planned against.

A planner is a pure function of notes, events and the time. It writes nothing; `composing` turns
its changes into bytes, `applying` puts those on the disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from memory_kb.notes.splice import Value


class Planned(Protocol):
    """A file that changes are planned against: where it is, and the hash of what was seen of it."""

    @property
    def path(self) -> str:
        """The file, as paths stand in output."""

    @property
    def hash(self) -> str:
        """The hash of its bytes."""


@dataclass(frozen=True, slots=True)
class NoteText:
    """A file as it is to be changed.

    Undecodable bytes are kept as surrogates, line ends as they are.
    """

    path: str
    data: bytes

    @property
    def text(self) -> str:
        """The bytes as text that encodes back to them."""
        return decode(self.data)

    @property
    def hash(self) -> str:
        """The hash of the bytes, the same that the index keeps."""
        return hash_of(self.data)


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Make a file, or replace the whole text of one that is nobody's notes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class SetFields:
    """Set values of one entry's frontmatter."""

    values: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class SetBody:
    """Replace the text below one entry's frontmatter."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplaceEntry:
    """Replace an entry, frontmatter and text."""

    text: str


@dataclass(frozen=True, slots=True)
class Move:
    """Give an entry a file of its own elsewhere; a file that holds nothing else moves whole."""

    to: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Take an entry out of its file, or the file away when it holds nothing else."""


Action = WriteFile | SetFields | SetBody | ReplaceEntry | Move | Remove


@dataclass(frozen=True, slots=True)
class Change:
    """One change to one entry or file.

    Attributes:
        path: the file, as paths stand in output.
        reason: why, in one sentence for the person who reads the log.
        entry_id: the entry; None for the whole file.
        planned: the hash of the file that it was planned against; None for no file.
        together: changes of one plan that share this word are made together or not at all, as
            are those of one entry.
    """

    path: str
    action: Action
    reason: str
    entry_id: str | None = None
    planned: str | None = None
    together: str | None = None

    @property
    def word(self) -> str:
        """What is done, in one word: create, write, set, edit, replace, move or remove."""
        if isinstance(self.action, WriteFile):
            return "create" if self.planned is None else "write"
        return _WORDS[type(self.action)]

    @property
    def to(self) -> str | None:
        """The file that the entry moves to."""
        return self.action.to if isinstance(self.action, Move) else None

    def joined(self, together: str) -> Change:
        """Return the change tied to all others of its plan that bear the same word."""
        return replace(self, together=together)


_WORDS: dict[type, str] = {SetFields: "set", SetBody: "edit", ReplaceEntry: "replace", Move: "move", Remove: "remove"}


def create_file(path: str, text: str, reason: str, entry_id: str | None = None) -> Change:
    """Plan a new file, such as that of a new entry."""
    return Change(path, WriteFile(encode(text)), reason, entry_id)


def write_file(note: Planned, text: str, reason: str) -> Change:
    """Plan to replace the whole text of a file."""
    return Change(note.path, WriteFile(encode(text)), reason, planned=note.hash)


def set_fields(note: Planned, entry_id: str, values: Mapping[str, Value], reason: str) -> Change:
    """Plan to set fields of an entry; those that have the value already stay as written.

    Example:
        >>> set_fields(NoteText("a.md", b"---\\nid: x\\n---\\n"), "x", {"status": "retired"}, "It is over.").word
        'set'
    """
    return Change(note.path, SetFields(tuple(values.items())), reason, entry_id, note.hash)


def set_body(note: Planned, entry_id: str, text: str, reason: str) -> Change:
    """Plan to replace an entry's text below its frontmatter."""
    return Change(note.path, SetBody(text), reason, entry_id, note.hash)


def replace_entry(note: Planned, entry_id: str, text: str, reason: str) -> Change:
    """Plan to put another text, frontmatter included, in an entry's place."""
    return Change(note.path, ReplaceEntry(text), reason, entry_id, note.hash)


def move(note: Planned, to: str, reason: str, entry_id: str | None = None) -> Change:
    """Plan to move a file, or one entry to a file of its own."""
    return Change(note.path, Move(to), reason, entry_id, note.hash)


def remove(note: Planned, reason: str, entry_id: str | None = None) -> Change:
    """Plan to remove a file, or one entry of it."""
    return Change(note.path, Remove(), reason, entry_id, note.hash)


def hash_of(data: bytes) -> str:
    """Return the hash of a file's bytes.

    Example:
        >>> hash_of(b"")[:8]
        'e3b0c442'
    """
    return hashlib.sha256(data, usedforsecurity=False).hexdigest()


def decode(data: bytes) -> str:
    """Return bytes as text that `encode` turns back into them."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes of a text."""
    return text.encode("utf-8", "surrogateescape")
