"""`Change` values: what a plan does to notes and fields."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from memory_kb.memory import Memory
from memory_kb.model import Link
from memory_kb.private_text import cut_private_values
from memory_kb.text import encode

if TYPE_CHECKING:
    from memory_kb.markdown.splice import Value
    from memory_kb.store.file_edits import NoteText


class Change(NamedTuple):
    """One change to one entry or file.

    Attributes:
        path: the file, as paths are written in output.
        action: `write` the `data` of a whole file, `set` the `values` of an entry's fields, `edit` the `text` below
            its fields, `replace` it by a `text` with fields, `move` it to a file of its own, or `remove` it. A file
            that holds nothing else is moved or removed whole.
        reason: why, in one sentence for the person who reads the log.
        entry_id: the entry; None for the whole file.
        planned: the hash of the file that it was planned against; None for no file.
        to: the file that the entry moves to, or that has its text by another change of the same plan.
        together: changes of one plan that share this word are made together or not at all, as are those of one entry.
    """

    path: str
    action: Literal["write", "set", "edit", "replace", "move", "remove"]
    reason: str
    entry_id: str | None = None
    planned: str | None = None
    data: bytes = b""
    values: Mapping[str, Any] = {}
    text: str = ""
    to: str | None = None
    together: str | None = None

    @property
    def word(self) -> str:
        """What is done, in one word: create, write, set, edit, replace, move or remove."""
        if self.action == "write" and self.planned is None:
            return "create"
        return "move" if self.to else self.action


def create_file(path: str, text: str, reason: str, entry_id: str | None = None) -> Change:
    """Plan a new file, such as that of a new entry."""
    return Change(path, "write", reason, entry_id, data=encode(text))


def write_file(note: "Memory | NoteText", text: str, reason: str) -> Change:
    """Plan to replace the whole text of a file."""
    return Change(note.path, "write", reason, planned=note.hash, data=encode(text))


def set_fields(note: "Memory | NoteText", entry_id: str, values: "Mapping[str, Value]", reason: str) -> Change:
    """Plan to set fields of an entry; those that have the value already stay as written."""
    public = {name: cut_private_values(value) for name, value in values.items()}
    return Change(note.path, "set", reason, entry_id, note.hash, values=public)


def set_body(note: "Memory | NoteText", entry_id: str, text: str, reason: str) -> Change:
    """Plan to replace an entry's text below its frontmatter."""
    return Change(note.path, "edit", reason, entry_id, note.hash, text=text)


def replace_entry(note: "Memory | NoteText", entry_id: str, text: str, reason: str) -> Change:
    """Plan to put another text, frontmatter included, in an entry's place."""
    return Change(note.path, "replace", reason, entry_id, note.hash, text=text)


def move(note: "Memory | NoteText", to: str, reason: str, entry_id: str | None = None) -> Change:
    """Plan to move a file, or one entry to a file of its own."""
    return Change(note.path, "move", reason, entry_id, note.hash, to=to)


def remove(note: "Memory | NoteText", reason: str, entry_id: str | None = None, to: str | None = None) -> Change:
    """Plan to remove a file, or one entry of it, whose text is written to another file by the same plan."""
    return Change(note.path, "remove", reason, entry_id, note.hash, to=to)


#: Changes to make; None stands for what is as it should be already.
Plan = Iterable[Change | None]


def plan_fields(memory: Memory, values: "Mapping[str, Value]", reason: str) -> Change | None:
    """Plan to set fields of an entry, or return None if they have these values already.

    An entry without an id of its own gets the one by which the index knows it, since that would change with its text.

    Example:
        >>> from memory_kb.model import Location
        >>> memory = Memory("x", "a.md", "", Location(), "T", "Text.", metadata={"id": "x", "status": "active"})
        >>> plan_fields(memory, {"status": "active"}, "Again.") is None
        True
        >>> plan_fields(memory, {"status": "retired"}, "It is over.").values
        {'status': 'retired'}
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
    """Return a list of words of the entry, such as `sources`, with some more, without repetitions."""
    return list(dict.fromkeys((*memory.words(name), *words)))
