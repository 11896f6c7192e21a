"""`Change` values: what a plan does to notes and fields."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.memory import Memory
from memory_kb.model import Link
from memory_kb.private_text import cut_private_values
from memory_kb.text import encode

if TYPE_CHECKING:
    from memory_kb.markdown.splice import Value
    from memory_kb.store.file_edits import NoteText


class WriteFile(NamedTuple):
    """Make a file, or replace the whole text of one that is nobody's notes."""

    data: bytes


class SetFields(NamedTuple):
    """Set values of one entry's frontmatter."""

    values: tuple[tuple[str, Any], ...]


class SetBody(NamedTuple):
    """Replace the text below one entry's frontmatter."""

    text: str


class ReplaceEntry(NamedTuple):
    """Replace an entry, frontmatter and text."""

    text: str


class Move(NamedTuple):
    """Give an entry a file of its own elsewhere; a file that holds nothing else moves whole."""

    to: str


class Remove(NamedTuple):
    """Take an entry out of its file, or the file away when it holds nothing else.

    Its text may be in another file now, `to`, by a change of the same plan.
    """

    to: str | None = None


Action = WriteFile | SetFields | SetBody | ReplaceEntry | Move | Remove


class Change(NamedTuple):
    """One change to one entry or file.

    Attributes:
        path: the file, as paths are written in output.
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
        return "move" if self.to else _WORDS[type(self.action)]

    @property
    def to(self) -> str | None:
        """The file that the entry moves to."""
        return self.action.to if isinstance(self.action, Move | Remove) else None

    def joined(self, together: str) -> "Change":
        """Return the change tied to all others of its plan that bear the same word."""
        return self._replace(together=together)


_WORDS: dict[type, str] = {SetFields: "set", SetBody: "edit", ReplaceEntry: "replace", Remove: "remove"}


def create_file(path: str, text: str, reason: str, entry_id: str | None = None) -> Change:
    """Plan a new file, such as that of a new entry."""
    return Change(path, WriteFile(encode(text)), reason, entry_id)


def write_file(note: "Memory | NoteText", text: str, reason: str) -> Change:
    """Plan to replace the whole text of a file."""
    return Change(note.path, WriteFile(encode(text)), reason, planned=note.hash)


def set_fields(note: "Memory | NoteText", entry_id: str, values: "Mapping[str, Value]", reason: str) -> Change:
    """Plan to set fields of an entry; those that have the value already stay as written.

    Example:
        >>> from memory_kb.store.file_edits import NoteText
        >>> set_fields(NoteText("a.md", b"---\\nid: x\\n---\\n"), "x", {"status": "retired"}, "It is over.").word
        'set'
    """
    return Change(
        note.path,
        SetFields(tuple((name, cut_private_values(value)) for name, value in values.items())),
        reason,
        entry_id,
        note.hash,
    )


def set_body(note: "Memory | NoteText", entry_id: str, text: str, reason: str) -> Change:
    """Plan to replace an entry's text below its frontmatter."""
    return Change(note.path, SetBody(text), reason, entry_id, note.hash)


def replace_entry(note: "Memory | NoteText", entry_id: str, text: str, reason: str) -> Change:
    """Plan to put another text, frontmatter included, in an entry's place."""
    return Change(note.path, ReplaceEntry(text), reason, entry_id, note.hash)


def move(note: "Memory | NoteText", to: str, reason: str, entry_id: str | None = None) -> Change:
    """Plan to move a file, or one entry to a file of its own."""
    return Change(note.path, Move(to), reason, entry_id, note.hash)


def remove(note: "Memory | NoteText", reason: str, entry_id: str | None = None, to: str | None = None) -> Change:
    """Plan to remove a file, or one entry of it, whose text is written to another file by the same plan."""
    return Change(note.path, Remove(to), reason, entry_id, note.hash)


#: Changes to make; None stands for what is as it should be already.
Plan = Iterable[Change | None]


def plan_fields(memory: Memory, values: "Mapping[str, Value]", reason: str) -> Change | None:
    """Plan to set fields of an entry, or return None if they have these values already.

    An entry without an id of its own gets the one by which the index knows it, since that would
    change with its text.

    Example:
        >>> from memory_kb.memory import Memory
        >>> from memory_kb.model import Location
        >>> memory = Memory("x", "a.md", "", Location(), "T", "Text.", metadata={"id": "x", "status": "active"})
        >>> plan_fields(memory, {"status": "active"}, "Again.") is None
        True
        >>> plan_fields(memory, {"status": "retired"}, "It is over.").action.values
        (('status', 'retired'),)
    """
    new = {
        name: value for name, value in values.items() if name not in memory.metadata or memory.metadata[name] != value
    }
    if not new:
        return None
    own: dict[str, Value] = {} if memory.metadata.get("id") is not None else {"id": memory.id}
    return set_fields(memory, memory.id, own | new, reason)


def last_seen(memory: Memory, at: datetime) -> str:
    """Return the day of the last sighting of an entry when there is one more, of a moment that may be long ago.

    Example:
        >>> from memory_kb.memory import Memory
        >>> from memory_kb.model import Location
        >>> memory = Memory("x", "a.md", "", Location(), "T", "", metadata={"last_reinforced": "2026-03-01"})
        >>> last_seen(memory, datetime(2026, 1, 2, tzinfo=UTC)), last_seen(memory, datetime(2026, 5, 1, tzinfo=UTC))
        ('2026-03-01', '2026-05-01')
    """
    day = at.astimezone(UTC).date()
    return max(day, memory.day("last_reinforced") or day).isoformat()


def with_links(memory: Memory, *links: Link) -> list[dict[str, str]]:
    """Return the entry's links with some more, as its frontmatter holds them; none is there twice.

    Example:
        >>> from memory_kb.memory import Memory
        >>> from memory_kb.model import Location
        >>> with_links(Memory("x", "a.md", "", Location(), "T", ""), Link("y", "superseded_by"))
        [{'to': 'y', 'relation': 'superseded_by'}]
    """
    written = memory.metadata.get("links")
    listed = list(written) if isinstance(written, list) else [written] if written else []
    new = dict.fromkeys(link for link in links if link not in memory.links)
    return [*listed, *({"to": link.to, "relation": link.relation} for link in new)]


def plan_replaced(memory: Memory, by: str, reason: str, values: "Mapping[str, Value] | None" = None) -> Change | None:
    """Plan to link an entry to the one that takes its place; `values` are set with it."""
    return plan_fields(memory, {**(values or {}), "links": with_links(memory, Link(by, "superseded_by"))}, reason)


def with_words(memory: Memory, name: str, *words: str) -> list[str]:
    """Return a list of words of the entry, such as `sources`, with some more, without repetitions.

    Example:
        >>> from memory_kb.memory import Memory
        >>> from memory_kb.model import Location
        >>> with_words(Memory("x", "a.md", "", Location(), "T", "", metadata={"flags": ["review"]}), "flags", "review", "stale")
        ['review', 'stale']
    """
    return list(dict.fromkeys((*memory.words(name), *words)))
