"""Join the chunks of the index to whole entries: their texts, values to plan with, and how many there are."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from memory_kb.memory import Memory
from memory_kb.model import Location, StoredEntry
from memory_kb.text import load_json

#: The values at the end of a row from which `join_texts` makes the text of an entry.
_PLACED = ("line", "end_line", "part", "char_offset", "content")
ENTRY_FIELDS = (*StoredEntry._fields, *_PLACED)
MEMORY_FIELDS = (*StoredEntry._fields, "hash", "job", "task", "learning_type", *_PLACED)
#: The attributes that have the same name in an entry of the index and in a value to plan with.
_SHARED = ("id", "path", "title", "kind", "type", "status", "line", "fault")


class EntryTally(NamedTuple):
    """How many entries share a kind, type, status and scope, and whether some of them have tags and days."""

    kind: str
    type: str
    status: str
    scope: str
    entries: int
    has_tags: bool
    has_days: bool


def join_texts(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield the first row of each entry with all of its text, from the rows of its chunks in order."""
    first: tuple[Any, ...] = ()
    pieces: list[str] = []
    end = last = 0
    for row in rows:
        line, end_line, part, offset, content = row[-len(_PLACED) :]
        if part == 0 or not first:
            if first:
                yield first, "".join(pieces)
            first, pieces = row, [content]
        elif offset < end:  # it begins inside the piece before
            pieces.append(content[end - offset :])
        else:
            pieces += ("\n" * (line - last) or " ", content)
        end, last = offset + len(content), end_line
    if first:
        yield first, "".join(pieces)


def read_memory(row: tuple[Any, ...], text: str) -> Memory:
    """Return the entry of a row of `MEMORY_FIELDS`."""
    width = len(StoredEntry._fields)
    entry, (file_hash, *place) = StoredEntry._make(row[:width]), row[width : -len(_PLACED)]
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
