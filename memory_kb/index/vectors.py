"""Store vectors: a cache by text hash, and a file of all vectors in order."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import sqlite3
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from memory_kb.index.port import VectorTable
from memory_kb.index.schema import transaction
from memory_kb.markdown.sections import cut_passages
from memory_kb.plainfiles import open_plain
from memory_kb.providers.base import Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_T = TypeVar("_T")

_PUT = "INSERT OR REPLACE INTO embedding_cache (hash, provider, model, dimension, embedding, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
_ADD = _PUT.replace("REPLACE", "IGNORE")
_ALL = (
    "SELECT hash, provider, model, dimension, embedding, updated_at FROM embedding_cache "
    "WHERE typeof(dimension) = 'integer' AND typeof(embedding) = 'blob'"
)
_DELETE = "DELETE FROM embedding_cache WHERE hash = ? AND provider = ? AND model = ? AND dimension = ?"

#: What the squares of a vector's float32 numbers may miss of 1.
_LENGTH_SLACK = 1e-3


class EmbeddedPassage(NamedTuple):
    """The text of a chunk's passage as it is embedded, the hash it is cached by, and the chunk's key."""

    key: int
    hash: str
    text: str


def make_passages(key: int, title: str, headings: str, content: str) -> list[EmbeddedPassage]:
    """Return what is embedded of a chunk, passage by passage; `title` is empty if it is only the file's name."""
    pieces = cut_passages(content)
    texts = [embedded_text(title, headings, content[piece.start : piece.end]) for piece in pieces] or [
        embedded_text(title, headings, content)
    ]
    return [EmbeddedPassage(key, hash_text(text), text) for text in texts]


def embedded_text(title: str, headings: str, content: str) -> str:
    """Return a passage's text under its title and headings, where they do not open it anyway.

    Example:
        >>> embedded_text("Deploy", "Rollback > By hand", "Stop the queue.")
        'Deploy\\nRollback > By hand\\n\\nStop the queue.'
        >>> embedded_text("Deploy", "", "# Deploy\\n\\nStop the queue.")
        '# Deploy\\n\\nStop the queue.'
    """
    opening = content[: len(title) + 16]
    head = [part for part in (title, headings) if part and part not in opening]
    return "\n".join(head) + "\n\n" + content if head else content


def hash_text(text: str) -> str:
    """Return the name under which the vector of a text is cached."""
    import hashlib

    return hashlib.sha256(text.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()


def batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield the items in lists of at most `size`.

    Example:
        >>> list(batched("abc", 2))
        [['a', 'b'], ['c']]
    """
    batch: list[_T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class Pruned(NamedTuple):
    """The number of vectors deleted from the cache, and the bytes of those and of the rest."""

    deleted: int
    freed: int
    kept: int


def find_elsewhere(files: Iterable[Path], space: Space, hashes: Collection[str]) -> tuple[Space, dict[str, bytes]]:
    """Return the vectors of texts that other indexes have, and their space: a dimension that was not known is.

    The files are only read; nothing waits for them, and a broken one is ignored.
    """
    found: dict[str, bytes] = {}
    for file in files if hashes else ():
        with contextlib.suppress(sqlite3.Error, OSError, ValueError), _reading(file) as cache:
            own = cache.resolve(space)
            lent = cache.known(own, [one for one in hashes if one not in found])
            whole = {digest: vector for digest, vector in lent.items() if _is_unit(vector, own.dimension)}
            space = own if whole else space
            found |= whole
    return space, found


@contextlib.contextmanager
def _reading(file: Path) -> Iterator[EmbeddingCache]:
    if not file.is_file():
        raise FileNotFoundError(file)
    with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
        yield EmbeddingCache(connection)


class EmbeddingCache:
    """The table `embedding_cache`.

    Whoever calls a method that writes holds the index lock.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def known(self, space: Space, hashes: Iterable[str]) -> dict[str, bytes]:
        """Return the vectors of these texts that there are, as the bytes of float32 numbers."""
        rows = self._connection.execute(
            "SELECT hash, embedding FROM embedding_cache WHERE provider = ? AND model = ? AND dimension = ? "
            "AND hash IN (SELECT value FROM json_each(?))",
            (*space, json.dumps(list(hashes))),
        )
        return {digest: embedding for digest, embedding in rows if len(embedding) == 4 * space.dimension}

    def resolve(self, space: Space) -> Space:
        """Return a space with the dimension that its vectors have, if it has none of its own."""
        if space.dimension:
            return space
        row = self._connection.execute(
            "SELECT dimension FROM embedding_cache WHERE provider = ? AND model = ? ORDER BY updated_at DESC LIMIT 1",
            space[:2],
        ).fetchone()
        return space._replace(dimension=int(row[0])) if row else space

    def remember(self, space: Space, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of some texts, as the bytes of float32 numbers."""
        now = _now()
        with transaction(self._connection):
            self._connection.executemany(_PUT, ((digest, *space, vector, now) for digest, vector in vectors.items()))

    def take_over(self, broken: Path) -> None:
        """Keep the vectors of another index, up to the first that cannot be read."""
        source = f"{broken.absolute().as_uri()}?mode=ro"
        with (
            transaction(self._connection),
            contextlib.closing(sqlite3.connect(source, uri=True)) as other,
            # A name in what SQLite says of the damage may be damaged itself.
            contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError),
        ):
            rows = (row for row in other.execute(_ALL) if _is_unit(row[4], row[3]))
            self._connection.executemany(_ADD, rows)

    def discard(self, hashes: Iterable[str]) -> None:
        """Delete the vectors of some texts, those of every model."""
        with transaction(self._connection):
            self._connection.executemany("DELETE FROM embedding_cache WHERE hash = ?", ((digest,) for digest in hashes))

    def touch(self, space: Space, hashes: Iterable[str]) -> None:
        """Note that vectors are of use today."""
        now = _now()
        with transaction(self._connection):
            self._connection.execute(
                "UPDATE embedding_cache SET updated_at = ? WHERE provider = ? AND model = ? AND dimension = ? "
                "AND hash IN (SELECT value FROM json_each(?)) AND updated_at < ?",
                (now, *space, json.dumps(list(hashes)), now[:10]),
            )

    def prune(self, used: frozenset[str], before: str, max_bytes: int | None, *, dry_run: bool = False) -> Pruned:
        """Delete vectors of texts that are not in `used`, if they were last of use before a moment.

        With `max_bytes`, further ones go until no more than that is left, those longest out of use
        first; the used ones stay.
        """
        rows = self._connection.execute(
            "SELECT hash, provider, model, dimension, updated_at, length(embedding) FROM embedding_cache ORDER BY updated_at"
        )
        total, freed = 0, 0
        unused: list[tuple[list[object], str, int]] = []
        for *key, updated_at, size in rows:
            total += size
            if key[0] not in used:
                unused.append((key, updated_at, size))
        deleted: list[list[object]] = []
        for key, updated_at, size in unused:
            if updated_at < before or (max_bytes is not None and total - freed > max_bytes):
                deleted.append(key)
                freed += size
        if deleted and not dry_run:
            with transaction(self._connection):
                self._connection.executemany(_DELETE, deleted)
        return Pruned(len(deleted), freed, total - freed)


def _is_unit(embedding: bytes, dimension: int) -> bool:
    if not 0 < 4 * dimension == len(embedding):
        return False
    numbers = struct.unpack(f"<{dimension}f", embedding)
    return abs(math.fsum(number * number for number in numbers) - 1) < _LENGTH_SLACK


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


_META = "passage vectors "
_NO_END = 2**63 - 1
_KEY_BYTES, _FLOAT_BYTES = 8, 4
#: Rows of chunks that are gone are dropped when there are more of them than of the others.
_DEAD_SHARE = 0.5
_SELECT_TEXT = "SELECT rowid, CASE WHEN is_titled THEN title ELSE '' END, headings, content FROM chunks"


class VectorFile(NamedTuple):
    """A file of vectors as the database knows it.

    Every chunk with a key up to `through` is in it, with a row for each of its passages; of those up to `checked`,
    the ones whose vectors were cached when they were looked up.
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
        self._mapped: dict[Space, tuple[VectorFile, VectorTable]] = {}
        self._living: dict[Space, tuple[tuple[object, ...], VectorTable]] = {}

    def vector_files(self) -> list[VectorFile]:
        """Return what files there are."""
        rows = self._connection.execute(
            "SELECT value FROM meta WHERE key >= ? AND key < ? ORDER BY key", (_META, _META + "\U0010ffff")
        )
        found = [json.loads(value) for (value,) in rows]
        return [VectorFile(Space(*space), *rest) for space, *rest in found]

    def vector_file(self, space: Space) -> VectorFile | None:
        """Return the file of a space; one of unknown dimension fits any."""
        fitting = [
            vector_file
            for vector_file in self.vector_files()
            if vector_file.space[:2] == space[:2] and space.dimension in (0, vector_file.space.dimension)
        ]
        return max(fitting, key=lambda vector_file: vector_file.rows, default=None)

    def count_missing(self, vector_file: VectorFile) -> int:
        """Return the number of chunks that have no vector in a file."""
        (after,) = self._connection.execute(
            "SELECT count(*) FROM chunks WHERE rowid > ?", (vector_file.through,)
        ).fetchone()
        if not after:
            return 0
        table = self.table(vector_file.space)
        if table is None:
            return int(after)
        later = json.dumps(table.keys[table.keys > vector_file.through].tolist())
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

    def is_checked(self, vector_file: VectorFile) -> bool:
        """Return whether every chunk was looked up, by one look at the database."""
        (last,) = self._connection.execute("SELECT max(rowid) FROM chunks").fetchone()
        return vector_file.checked >= (last or 0)

    def passages(self, after: int = 0, last: int = _NO_END) -> Iterator[EmbeddedPassage]:
        """Yield the passages of the chunks whose key is greater than `after` and at most `last`, in their order."""
        return itertools.chain.from_iterable(self._by_chunk(after, last))

    def _by_chunk(self, after: int, last: int) -> Iterator[list[EmbeddedPassage]]:
        statement = f"{_SELECT_TEXT} WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT 2000"
        while rows := self._connection.execute(statement, (after, last)).fetchall():
            yield from itertools.starmap(make_passages, rows)
            after = rows[-1][0]

    def attach(self, space: Space, *, only_new: bool = False, until: int | None = None) -> None:
        """Put every chunk whose passages' vectors are cached into the space's file.

        With `only_new`, chunks that were looked up before are taken to be still without one; with
        `until`, only chunks with a key up to that are looked at.
        """
        vector_file, table = self._begin(space)
        start = vector_file.checked if only_new else vector_file.through
        through, is_whole = vector_file.through, start == vector_file.through
        there = set(table.keys[table.keys > start].tolist()) if table else set()
        last = self._rowids_used() if until is None else until
        for batch in batched(self._by_chunk(start, last), 500):
            vectors = self.cache.known(space, {passage.hash for chunk in batch for passage in chunk})
            whole = [chunk for chunk in batch if all(passage.hash in vectors for passage in chunk)]
            new = [passage for chunk in whole for passage in chunk if passage.key not in there]
            if new:
                self.cache.touch(space, vectors)
                vector_file = self._extend(
                    vector_file, [passage.key for passage in new], b"".join(vectors[passage.hash] for passage in new)
                )
            there.update(passage.key for passage in new)
            for chunk in batch:
                is_whole = is_whole and chunk[0].key in there
                through = chunk[0].key if is_whole else through
        self._note(
            vector_file._replace(
                through=max(last, through) if is_whole else through, checked=max(last, vector_file.checked)
            )
        )

    def _begin(self, space: Space) -> tuple[VectorFile, VectorTable | None]:
        """Return the file to write to, begun anew if it is lost or mostly holds what is gone."""
        vector_file = self.vector_file(space)
        table = self._map(vector_file) if vector_file else None
        if vector_file is None or table is None:
            return VectorFile(space, _new_name(), 0, 0, 0), None
        alive = self._find_alive(table)
        if vector_file.rows - int(alive.sum()) > max(1000, _DEAD_SHARE * vector_file.rows):
            vector_file = self._rewrite(vector_file, VectorTable(table.keys[alive], table.rows[alive]))
            table = self._map(vector_file)
        return vector_file, table

    def drop(self, space: Space) -> None:
        """Forget a space's file; its cached vectors stay."""
        with transaction(self._connection):
            self._connection.execute("DELETE FROM meta WHERE key = ?", (_meta_key(space),))
        self.sweep()

    def table(self, space: Space) -> VectorTable | None:
        """Return the vectors of a space as they are now, or None."""
        vector_file = self.vector_file(space)
        mapped = self._map(vector_file) if vector_file and vector_file.rows else None
        if vector_file is None or mapped is None:
            return None
        state = (*vector_file[:3], self._meta("generation"))
        if vector_file.space not in self._living or self._living[vector_file.space][0] != state:
            alive = self._find_alive(mapped)
            self._living[vector_file.space] = (
                state,
                mapped if alive.all() else VectorTable(mapped.keys, mapped.rows, alive),
            )
        return self._living[vector_file.space][1]

    def sweep(self) -> None:
        """Delete files that no space uses any more."""
        used = {vector_file.file for vector_file in self.vector_files()}
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

    def _note(self, vector_file: VectorFile) -> None:
        if vector_file in self.vector_files():
            return
        with transaction(self._connection):
            value = json.dumps([list(vector_file.space), *vector_file[1:]])
            self._connection.execute(
                "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_meta_key(vector_file.space), value)
            )
        self.sweep()

    def _extend(self, vector_file: VectorFile, keys: Sequence[int], rows: bytes) -> VectorFile:
        """Write rows behind those of a file, in the order of the keys.

        Nobody reads them before the database knows of them.
        """
        import numpy as np

        table = self._map(vector_file) if vector_file.rows else None
        if table is not None and keys[0] < table.keys[-1]:
            vectors = np.frombuffer(rows, "<f4").reshape(len(keys), vector_file.space.dimension)
            together = np.concatenate([table.keys, np.array(keys, np.int64)])
            order = np.argsort(together, kind="stable")
            return self._rewrite(
                vector_file, VectorTable(together[order], np.concatenate([table.rows, vectors])[order])
            )
        self._folder.mkdir(exist_ok=True)
        _write_at(
            self._folder / f"{vector_file.file}.f32",
            vector_file.rows * vector_file.space.dimension * _FLOAT_BYTES,
            rows,
        )
        _write_at(
            self._folder / f"{vector_file.file}.keys", vector_file.rows * _KEY_BYTES, np.array(keys, "<i8").tobytes()
        )
        return vector_file._replace(rows=vector_file.rows + len(keys))

    def _rewrite(self, vector_file: VectorFile, table: VectorTable) -> VectorFile:
        """Write a table into a new file."""
        empty = vector_file._replace(file=_new_name(), rows=0)
        return self._extend(empty, table.keys.tolist(), table.rows.tobytes()) if len(table.keys) else empty

    def _find_alive(self, table: VectorTable) -> NDArray[np.bool_]:
        """Return which rows belong to a chunk that is there."""
        import numpy as np

        rows = self._connection.execute("SELECT rowid FROM chunks ORDER BY rowid").fetchall()
        keys = np.fromiter((key for (key,) in rows), np.int64, len(rows))
        return np.isin(table.keys, keys)

    def _map(self, vector_file: VectorFile) -> VectorTable | None:
        """Map a file into memory; None if it is not as the database knows it."""
        before = self._mapped.get(vector_file.space)
        if before and before[0][:3] == vector_file[:3]:
            return before[1]
        import numpy as np

        shape = (vector_file.rows, vector_file.space.dimension)
        try:
            keys: NDArray[np.int64] = np.fromfile(self._folder / f"{vector_file.file}.keys", "<i8", vector_file.rows)
            rows = (
                np.memmap(self._folder / f"{vector_file.file}.f32", "<f4", "r", shape=shape)
                if vector_file.rows
                else np.empty(shape, np.float32)
            )
        except (OSError, ValueError):
            return None
        if len(keys) != vector_file.rows:
            return None
        table = VectorTable(keys, np.asarray(rows))
        self._mapped[vector_file.space] = (vector_file, table)
        return table


def _new_name() -> str:
    return os.urandom(8).hex()


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
