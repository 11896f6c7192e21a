"""Join the chunks of the index to whole entries: their texts, values to plan with, and how many there are."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import functools
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from memory_kb.memory import Memory
from memory_kb.model import Location, StoredEntry
from memory_kb.text import load_json

#: The values of a row that `join_texts` takes.
TEXT_FIELDS = ("source", "id", "title", "line", "end_line", "part", "content")
#: The values of a row that `join_memories` takes.
MEMORY_FIELDS = (*StoredEntry._fields, "hash", "job", "task", "learning_type", "content", "part", "char_offset")
#: The attributes that have the same name in an entry of the index and in a value to plan with.
_SHARED = ("id", "path", "title", "kind", "type", "status", "line", "fault")


class EntryText(NamedTuple):
    """The text of an entry as the index holds it, with its chunks as far apart as in the file."""

    entry_id: str
    title: str
    line: int
    text: str


class EntryTally(NamedTuple):
    """How many entries share a kind, type, status and scope, and whether some of them have tags and days."""

    kind: str
    type: str
    status: str
    scope: str
    entries: int
    has_tags: bool
    has_days: bool


def join_texts(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, list[EntryText]]]:
    """Yield each file with the texts of its entries, from their chunks in order."""
    for source, chunks in itertools.groupby(rows, operator.itemgetter(0)):
        found: list[tuple[str, str, int, list[str]]] = []
        last = 0
        for _, entry_id, title, line, end_line, part, content in chunks:
            if part == 0 or not found:
                found.append((entry_id, title, line, [content]))
            else:
                found[-1][-1].extend(("\n" * (line - last) or " ", content))
            last = end_line
        yield source, [EntryText(entry_id, title, line, "".join(pieces)) for entry_id, title, line, pieces in found]


def join_memories(rows: Iterable[tuple[Any, ...]]) -> Iterator[Memory]:
    """Yield entries with all of their text, from their chunks in order."""
    first: tuple[Any, ...] = ()
    pieces: list[str] = []
    end = 0
    for row in rows:
        content, part, offset = row[-3:]
        if part == 0:
            if first:
                yield _read_row(first, "".join(pieces))
            first, pieces = row, [content]
        else:
            # Where a piece begins inside the one before, their texts overlap.
            pieces.append(content[end - offset :] if offset < end else f"\n\n{content}")
        end = offset + len(content)
    if first:
        yield _read_row(first, "".join(pieces))


def _read_row(row: tuple[Any, ...], text: str) -> Memory:
    width = len(StoredEntry._fields)
    entry, (file_hash, *place) = StoredEntry._make(row[:width]), row[width : width + 4]
    return make_memory(entry, file_hash, Location(entry.scope, *place), text)


def make_memory(entry: StoredEntry, file_hash: str, place: Location, text: str) -> Memory:
    """Return an entry of the index as a value to plan with; values it cannot use have become defaults."""
    metadata, fields = _read_metadata(entry.metadata or "{}")
    own = fields | {name: getattr(entry, name) for name in _SHARED}
    del own["dated"]
    return Memory(
        **own, hash=file_hash, place=place, text=text, metadata=metadata, has_successor=bool(entry.is_superseded)
    )


# Most entries stay as they are from one reading to the next.
@functools.lru_cache(maxsize=4_096)
def _read_metadata(metadata: str) -> tuple[Mapping[str, Any], dict[str, Any]]:
    from memory_kb.markdown.fields import read_fields

    found = load_json(metadata)
    return found, read_fields(found)[0]
