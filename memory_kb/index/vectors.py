"""Vectors of the chunks, side by side in one file per space, ready to be mapped into memory.

They follow from the chunks and the embedding cache, and anyone may delete them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.index.cache import EmbeddingCache, Passage, batched, make_passage, transaction
from memory_kb.plainfiles import open_plain
from memory_kb.ports import Space, VectorTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_META = "vectors "
_NO_END = 2**63 - 1
_KEY_BYTES, _FLOAT_BYTES = 8, 4
#: Rows of chunks that are gone are dropped when there are more of them than of the others.
_DEAD_SHARE = 0.5
_SELECT_TEXT = "SELECT rowid, CASE WHEN is_titled THEN title ELSE '' END, headings, content FROM chunks"


class Shelf(NamedTuple):
    """A file of vectors as the database knows it.

    Every chunk with a key up to `through` is in it; of those up to `checked`, the ones whose
    vector was cached when they were looked up.
    """

    space: Space
    file: str
    rows: int
    through: int
    checked: int


class VectorStore:
    """The vectors of one index, in files in a folder of their own.

    Whoever calls a method that writes holds the index lock.
    """

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self.cache = EmbeddingCache(connection)
        self._connection = connection
        self._folder = folder
        self._mapped: dict[Space, tuple[Shelf, VectorTable]] = {}
        self._living: dict[Space, tuple[tuple[object, ...], VectorTable]] = {}

    def shelves(self) -> list[Shelf]:
        """Return what files there are."""
        rows = self._connection.execute(
            "SELECT value FROM meta WHERE key >= ? AND key < ? ORDER BY key", (_META, _META + "\U0010ffff")
        )
        found = [json.loads(value) for (value,) in rows]
        return [Shelf(Space(*space), *rest) for space, *rest in found]

    def shelf(self, space: Space) -> Shelf | None:
        """Return the file of a space; one of unknown dimension fits any."""
        fitting = [
            shelf
            for shelf in self.shelves()
            if shelf.space[:2] == space[:2] and space.dimension in (0, shelf.space.dimension)
        ]
        return max(fitting, key=lambda shelf: shelf.rows, default=None)

    def count_missing(self, shelf: Shelf) -> int:
        """Return the number of chunks that have no vector in a file."""
        (after,) = self._connection.execute("SELECT count(*) FROM chunks WHERE rowid > ?", (shelf.through,)).fetchone()
        if not after:
            return 0
        table = self.table(shelf.space)
        if table is None:
            return int(after)
        later = json.dumps(table.keys[table.keys > shelf.through].tolist())
        (there,) = self._connection.execute(
            "SELECT count(*) FROM chunks WHERE rowid IN (SELECT value FROM json_each(?))", (later,)
        ).fetchone()
        return int(after - there)

    def count_chunks(self, at_most: int) -> int:
        """Return the number of chunks, counting no further than needed."""
        (number,) = self._connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM chunks LIMIT ?)", (at_most,)
        ).fetchone()
        return int(number)

    def is_checked(self, shelf: Shelf) -> bool:
        """Tell whether every chunk was looked up, by one look at the database."""
        (last,) = self._connection.execute("SELECT max(rowid) FROM chunks").fetchone()
        return shelf.checked >= (last or 0)

    def passages(self, after: int = 0, last: int = _NO_END) -> Iterator[Passage]:
        """Yield the chunks whose key is greater than `after` and at most `last`, in the order of their keys."""
        statement = f"{_SELECT_TEXT} WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT 2000"
        while rows := self._connection.execute(statement, (after, last)).fetchall():
            yield from itertools.starmap(make_passage, rows)
            after = rows[-1][0]

    def attach(self, space: Space, *, only_new: bool = False, until: int | None = None) -> None:
        """Put every chunk whose vector is cached into the space's file.

        With `only_new`, chunks that were looked up before are taken to be still without one; with
        `until`, only chunks with a key up to that are looked at.
        """
        shelf, table = self._begin(space)
        start = shelf.checked if only_new else shelf.through
        through, is_whole = shelf.through, start == shelf.through
        there = set(table.keys[table.keys > start].tolist()) if table else set()
        last = self._rowids_used() if until is None else until
        for batch in batched(self.passages(start, last), 2000):
            vectors = self.cache.known(space, {passage.hash for passage in batch})
            new = [passage for passage in batch if passage.hash in vectors and passage.key not in there]
            if new:
                self.cache.touch(space, vectors)
                shelf = self._extend(
                    shelf, [passage.key for passage in new], b"".join(vectors[passage.hash] for passage in new)
                )
            for passage in batch:
                is_whole = is_whole and (passage.hash in vectors or passage.key in there)
                through = passage.key if is_whole else through
        self._note(
            shelf._replace(through=max(last, through) if is_whole else through, checked=max(last, shelf.checked))
        )

    def _begin(self, space: Space) -> tuple[Shelf, VectorTable | None]:
        """Return the file to write to, begun anew if it is lost or mostly holds what is gone."""
        shelf = self.shelf(space)
        table = self._map(shelf) if shelf else None
        if shelf is None or table is None:
            return Shelf(space, self._new_name(space), 0, 0, 0), None
        alive = self._find_alive(table)
        if shelf.rows - int(alive.sum()) > max(1000, _DEAD_SHARE * shelf.rows):
            shelf = self._rewrite(shelf, VectorTable(table.keys[alive], table.rows[alive]))
            table = self._map(shelf)
        return shelf, table

    def drop(self, space: Space) -> None:
        """Forget a space's file; its cached vectors stay."""
        with transaction(self._connection):
            self._connection.execute("DELETE FROM meta WHERE key = ?", (_meta_key(space),))
        self.sweep()

    def table(self, space: Space) -> VectorTable | None:
        """Return the vectors of a space as they are now, or None."""
        shelf = self.shelf(space)
        mapped = self._map(shelf) if shelf and shelf.rows else None
        if shelf is None or mapped is None:
            return None
        state = (*shelf[:3], self._meta("generation"))
        if shelf.space not in self._living or self._living[shelf.space][0] != state:
            alive = self._find_alive(mapped)
            self._living[shelf.space] = (state, mapped if alive.all() else VectorTable(mapped.keys, mapped.rows, alive))
        return self._living[shelf.space][1]

    def sweep(self) -> None:
        """Delete files that no space uses any more."""
        used = {shelf.file for shelf in self.shelves()}
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                if name.rpartition(".")[0] not in used:
                    with contextlib.suppress(OSError):  # still mapped by somebody, on Windows
                        (self._folder / name).unlink()

    def _rowids_used(self) -> int:
        return int(self._meta("rowids_used") or 0)

    def _meta(self, key: str) -> str | None:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _note(self, shelf: Shelf) -> None:
        if shelf in self.shelves():
            return
        with transaction(self._connection):
            value = json.dumps([list(shelf.space), *shelf[1:]])
            self._connection.execute(
                "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_meta_key(shelf.space), value)
            )
        self.sweep()

    def _new_name(self, space: Space) -> str:
        name = "".join(
            sign if sign.isalnum() or sign in "-_." else "-"
            for sign in f"{space.provider}-{space.model}-{space.dimension}"
        )
        return f"{name[:80]}-{secrets.token_hex(4)}"

    def _extend(self, shelf: Shelf, keys: Sequence[int], rows: bytes) -> Shelf:
        """Write rows behind those of a file, in the order of the keys.

        Nobody reads them before the database knows of them.
        """
        import numpy as np

        table = self._map(shelf) if shelf.rows else None
        if table is not None and keys[0] < table.keys[-1]:
            vectors = np.frombuffer(rows, "<f4").reshape(len(keys), shelf.space.dimension)
            together = np.concatenate([table.keys, np.array(keys, np.int64)])
            order = np.argsort(together)
            return self._rewrite(shelf, VectorTable(together[order], np.concatenate([table.rows, vectors])[order]))
        self._folder.mkdir(exist_ok=True)
        _write_at(self._folder / f"{shelf.file}.f32", shelf.rows * shelf.space.dimension * _FLOAT_BYTES, rows)
        _write_at(self._folder / f"{shelf.file}.keys", shelf.rows * _KEY_BYTES, np.array(keys, "<i8").tobytes())
        return shelf._replace(rows=shelf.rows + len(keys))

    def _rewrite(self, shelf: Shelf, table: VectorTable) -> Shelf:
        """Write a table into a new file."""
        empty = shelf._replace(file=self._new_name(shelf.space), rows=0)
        return self._extend(empty, table.keys.tolist(), table.rows.tobytes()) if len(table.keys) else empty

    def _find_alive(self, table: VectorTable) -> NDArray[np.bool_]:
        """Return which rows belong to a chunk that is there."""
        import numpy as np

        rows = self._connection.execute("SELECT rowid FROM chunks ORDER BY rowid").fetchall()
        keys = np.fromiter((key for (key,) in rows), np.int64, len(rows))
        return np.isin(table.keys, keys, assume_unique=True)

    def _map(self, shelf: Shelf) -> VectorTable | None:
        """Map a file into memory; None if it is not as the database knows it."""
        before = self._mapped.get(shelf.space)
        if before and before[0][:3] == shelf[:3]:
            return before[1]
        import numpy as np

        shape = (shelf.rows, shelf.space.dimension)
        try:
            keys: NDArray[np.int64] = np.fromfile(self._folder / f"{shelf.file}.keys", "<i8", shelf.rows)
            rows = (
                np.memmap(self._folder / f"{shelf.file}.f32", "<f4", "r", shape=shape)
                if shelf.rows
                else np.empty(shape, np.float32)
            )
        except (OSError, ValueError):
            return None
        if len(keys) != shelf.rows:
            return None
        table = VectorTable(keys, np.asarray(rows))
        self._mapped[shelf.space] = (shelf, table)
        return table


def _meta_key(space: Space) -> str:
    return f"{_META}{space.provider} {space.dimension} {space.model}"


def _write_at(file: Path, place: int, data: bytes) -> None:
    descriptor = open_plain(file, os.O_RDWR | os.O_CREAT, 0o666)
    with open(descriptor, "r+b") as stream:
        stream.truncate(place)
        stream.seek(place)
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)
