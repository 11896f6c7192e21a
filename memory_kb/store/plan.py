"""`Change` values: what a plan does to notes and fields."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from memory_kb.markdown.fields import Fields, parse_date, read_fields, read_text, read_words
from memory_kb.model import INSTRUCTING, LIVE_STATUSES, UNVERIFIED, Link, Location, StoredMemory
from memory_kb.private import cut_private_values
from memory_kb.text import encode

if TYPE_CHECKING:
    from memory_kb.markdown.splice import Value


class Planned(Protocol):
    """A file that changes are planned against: where it is, and the hash of what was seen of it."""

    @property
    def path(self) -> str:
        """The file, as paths are written in output."""

    @property
    def hash(self) -> str:
        """The hash of its bytes."""


class WriteFile(NamedTuple):
    """Make a file, or replace the whole text of one that is nobody's notes."""

    data: bytes


class SetFields(NamedTuple):
    """Set values of one entry's frontmatter."""

    values: tuple[tuple[str, Value], ...]


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
    """Take an entry out of its file, or the file away when it holds nothing else."""


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
        return _WORDS[type(self.action)]

    @property
    def to(self) -> str | None:
        """The file that the entry moves to."""
        return self.action.to if isinstance(self.action, Move) else None

    def joined(self, together: str) -> Change:
        """Return the change tied to all others of its plan that bear the same word."""
        return self._replace(together=together)


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
        >>> from memory_kb.store.files import NoteText
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


class Memory(NamedTuple):
    """One entry, its defaults filled in, as a value that changes are planned for.

    Attributes:
        path: the file, as paths are written in output.
        hash: of the file's bytes when it was read; a change is planned against it.
        title: as it is shown: its own, else its first heading or line.
        text: its body, as it was indexed.
        seen: the day its age counts from; None has no age.
        metadata: its frontmatter as parsed, unknown keys included.
        fault: the line from which its frontmatter cannot be read, or None.
        has_successor: whether another entry says that it supersedes this one.
    """

    id: str
    path: str
    hash: str
    place: Location
    title: str
    text: str
    kind: str = "fact"
    type: str = "declarative"
    domain: str = "team"
    importance: float = 0.5
    phase: str = "unknown"
    status: str = "active"
    reinforcement_count: int = 0
    tags: tuple[str, ...] = ()
    priority: str | None = None
    applies_to: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    last_reinforced: str | None = None
    created_at: str | None = None
    seen: date | None = None
    line: int = 1
    metadata: Mapping[str, Any] = {}
    fault: int | None = None
    has_successor: bool = False

    @property
    def is_live(self) -> bool:
        """Whether it takes part in everything: active or compacted."""
        return self.status in LIVE_STATUSES

    @property
    def is_ours(self) -> bool:
        """Whether its frontmatter says that it is a memory.

        Other notes are people's documents; no step rewrites them by itself, nor one whose
        frontmatter cannot be read.
        """
        return self.fault is None and not self.metadata.keys().isdisjoint(("id", "kind", "type"))

    @property
    def is_in_people_file(self) -> bool:
        """Whether it is in MEMORY.md, whose text is rewritten by people alone."""
        return self.path.rpartition("/")[2] == "MEMORY.md"

    @property
    def is_superseded(self) -> bool:
        """Whether a newer entry has taken its place."""
        return self.has_successor or any(link.relation == "superseded_by" for link in self.links)

    @property
    def is_failed_episode(self) -> bool:
        """Whether it is an episode that did not go well, which no context gives as an example."""
        return self.kind == "episode" and self.word("outcome") not in (None, "success", "partial")

    @property
    def is_pinned(self) -> bool:
        """Whether a person keeps it from automatic demotion, inversion and archiving."""
        return self.metadata.get("pinned") is True

    @property
    def is_evergreen(self) -> bool:
        """Whether a person says that it does not age: it never fades from contexts and is never archived."""
        return self.metadata.get("evergreen") is True

    @property
    def has_claim(self) -> bool:
        """Whether it may be anything but sound: it cites something, or has a last day."""
        return "cites" in self.metadata or "valid_until" in self.metadata

    @property
    def is_unverified(self) -> bool:
        """Whether it came from outside, and no person has approved it since or brought it in by an import."""
        is_vouched_for = self.day("reviewed") is not None or "imported_from" in self.metadata
        return self.metadata.get("source") == UNVERIFIED and not is_vouched_for

    @property
    def is_quarantined(self) -> bool:
        """Whether it would instruct an agent, and is unverified: it waits for a person.

        What it is cannot be said of one whose frontmatter cannot be read.
        """
        return self.is_unverified and (self.kind in INSTRUCTING or self.fault is not None)

    def count(self, name: str) -> int:
        """Return a counter of the evidence block, 0 where there is no good one."""
        number = self._number(name)
        return int(number) if number is not None and 0 <= number <= 1_000_000_000 else 0

    def share(self, name: str, default: float) -> float:
        """Return a number from 0 to 1, such as the confidence."""
        number = self._number(name)
        return default if number is None else min(1.0, max(0.0, number))

    def _number(self, name: str) -> float | None:
        value = self.metadata.get(name)
        try:
            number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return None
        return None if math.isnan(number) else number

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list of words, such as `sources` or `flags`."""
        return read_words(self.metadata.get(name))

    def word(self, name: str) -> str | None:
        """Return a one-line text, such as `session_id`."""
        return read_text(self.metadata.get(name))

    def day(self, name: str) -> date | None:
        """Return the day that a field names."""
        return parse_date(self.metadata.get(name))


def make_memory(stored: StoredMemory) -> Memory:
    """Return a stored entry as a value to plan with; values it cannot use have become defaults."""
    entry = stored.entry
    metadata, fields = _read(entry.metadata or "{}")
    own = fields._asdict() | {name: getattr(entry, name) for name in ("title", "kind", "type", "status")}
    del own["dated"]
    return Memory(
        **own | {"id": entry.entry_id},
        path=entry.source,
        hash=stored.hash,
        place=Location(entry.scope, stored.job, stored.task, stored.learning_type),
        text=stored.text,
        line=entry.line,
        metadata=metadata,
        fault=entry.fault,
        has_successor=bool(entry.is_superseded),
    )


# Most entries stay as they are from one look to the next.
@functools.lru_cache(maxsize=4_096)
def _read(metadata: str) -> tuple[Mapping[str, Any], Fields]:
    found = json.loads(metadata)
    return found, read_fields(found)[0]


#: Changes to make; None stands for what is as it should be already.
Plan = Iterable[Change | None]


def plan_fields(memory: Memory, values: Mapping[str, Value], reason: str) -> Change | None:
    """Plan to set fields of an entry, or return None if they have these values already.

    An entry without an id of its own gets the one by which the index knows it, since that would
    change with its text.

    Example:
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
        >>> memory = Memory("x", "a.md", "", Location(), "T", "", metadata={"last_reinforced": "2026-03-01"})
        >>> last_seen(memory, datetime(2026, 1, 2, tzinfo=UTC)), last_seen(memory, datetime(2026, 5, 1, tzinfo=UTC))
        ('2026-03-01', '2026-05-01')
    """
    day = at.astimezone(UTC).date()
    return max(day, memory.day("last_reinforced") or day).isoformat()


def with_links(memory: Memory, *links: Link) -> list[dict[str, str]]:
    """Return the entry's links with some more, as its frontmatter holds them; none is there twice.

    Example:
        >>> with_links(Memory("x", "a.md", "", Location(), "T", ""), Link("y", "superseded_by"))
        [{'to': 'y', 'relation': 'superseded_by'}]
    """
    written = memory.metadata.get("links")
    listed = list(written) if isinstance(written, list) else [written] if written else []
    new = dict.fromkeys(link for link in links if link not in memory.links)
    return [*listed, *({"to": link.to, "relation": link.relation} for link in new)]


def plan_replaced(memory: Memory, by: str, reason: str, values: Mapping[str, Value] | None = None) -> Change | None:
    """Plan to note that another entry takes the place of one; `values` are set with it."""
    return plan_fields(memory, {**(values or {}), "links": with_links(memory, Link(by, "superseded_by"))}, reason)


def with_words(memory: Memory, name: str, *words: str) -> list[str]:
    """Return a list of words of the entry, such as `sources`, with some more, without repetitions.

    Example:
        >>> with_words(Memory("x", "a.md", "", Location(), "T", "", metadata={"flags": ["review"]}), "flags", "review", "stale")
        ['review', 'stale']
    """
    return list(dict.fromkeys((*memory.words(name), *words)))
