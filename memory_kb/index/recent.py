"""List the notes that changed last, and the folders and tags of a vault."""

from __future__ import annotations

import heapq
from collections import Counter
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from memory_kb.index.listing import view
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.model import Filters, StoredEntry
from memory_kb.reports import EntryView

_NOTES, _FOLDERS, _TAGS = 10, 30, 20


class ChangedNote(NamedTuple):
    """The first entry of a note, and the local time at which its file was written last."""

    view: EntryView
    time: str


class Recent(NamedTuple):
    """The notes that changed last, and the folders and tags with the most entries, each with their number.

    `total` counts all entries. A folder's number includes the folders below it; one that holds every entry is left out.
    """

    notes: tuple[ChangedNote, ...]
    folders: tuple[tuple[str, int], ...]
    tags: tuple[tuple[str, int], ...]
    total: int


def find_recent(index: SqliteIndex) -> Recent:
    """Return what changed last, of the entries that a list shows without filters."""
    times = index.file_times()
    first: dict[str, StoredEntry] = {}
    folders, tags = Counter[str](), Counter[str]()
    total = 0
    for entry in index.entries(Filters()):
        total += 1
        first.setdefault(entry.source, entry)
        folders.update(str(folder) for folder in PurePosixPath(entry.source).parents if folder.name)
        tags.update({tag for tag in f"{entry.tags},{entry.text_tags}".split(",") if tag})
    notes = heapq.nlargest(_NOTES, first, key=lambda path: times.get(path, 0))
    chosen = [(name, number) for name, number in folders.most_common() if number < total][:_FOLDERS]
    return Recent(
        tuple(ChangedNote(view(first[path]), _write_time(times.get(path, 0))) for path in notes),
        tuple(sorted(chosen)),
        tuple(sorted(tags.items(), key=lambda one: (-one[1], one[0]))[:_TAGS]),
        total,
    )


def _write_time(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9).astimezone().strftime("%Y-%m-%d %H:%M") if nanoseconds else ""
