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

from memory_kb.index.database import put_meta, read_meta, transaction
from memory_kb.index.port import VectorTable
from memory_kb.markdown.sections import cut_passages
from memory_kb.providers.protocols import VectorSpace
from memory_kb.regular_files import DATABASE, open_regular
from memory_kb.text import hash_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_kb.providers.protocols import Vectors

    Keys = NDArray[np.int64]

_T = TypeVar("_T")

_PUT = "INSERT OR {} INTO embedding_cache (hash, provider, model, dimension, embedding, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
_ALL = (
    "SELECT hash, provider, model, dimension, embedding, updated_at FROM embedding_cache "
    "WHERE typeof(dimension) = 'integer' AND typeof(embedding) = 'blob'"
)
_DELETE = "DELETE FROM embedding_cache WHERE hash = ? AND provider = ? AND model = ? AND dimension = ?"
#: How far the sum of squares of a vector's float32 numbers may be from 1.
_LENGTH_SLACK = 1e-3


class EmbeddedPassage(NamedTuple):
    """The text of a chunk's passage as it is embedded, the hash it is cached by, and the chunk's key."""

    key: int
    hash: str
    text: str


def make_passages(key: int, title: str, headings: str, content: str) -> list[EmbeddedPassage]:
    """Return the passages of a chunk with the texts to embed; `title` is empty if it is only the file's name."""
    pieces = [content[piece.start : piece.end] for piece in cut_passages(content)] or [content]
    texts = (embedded_text(title, headings, piece) for piece in pieces)
    return [EmbeddedPassage(key, hash_of(text.encode(errors="surrogatepass")), text) for text in texts]


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


def batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield the items in lists of at most `size`.

    Example:
        >>> list(batched("abc", 2))
        [['a', 'b'], ['c']]
    """
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch


class Pruned(NamedTuple):
    """The number of vectors deleted from the cache, and the bytes of those and of the rest."""

    deleted: int
    freed: int
    kept: int


def find_in_siblings(
    machine: Path, space: VectorSpace, hashes: Collection[str]
) -> tuple[VectorSpace, dict[str, bytes]]:
    """Return the space with its dimension, and the vectors that other working trees of the repository have of texts.

    Their indexes are only read; nothing waits for them, and a broken one is ignored.
    """
    from memory_kb.store.worktrees import find_siblings

    found: dict[str, bytes] = {}
    for folder in find_siblings(machine) if hashes else ():
        with (
            contextlib.suppress(sqlite3.Error, OSError, ValueError),
            contextlib.closing(_open_to_read(folder / DATABASE)) as connection,
        ):
            cache = EmbeddingCache(connection)
            own = cache.resolve(space)
            lent = cache.known(own, [one for one in hashes if one not in found])
            whole = {digest: vector for digest, vector in lent.items() if _is_unit(vector, own.dimension)}
            space = own if whole else space
            found |= whole
    return space, found


def _open_to_read(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=0)


class EmbeddingCache:
    """The table `embedding_cache`.

    Whoever calls a method that writes holds the index lock.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def known(self, space: VectorSpace, hashes: Iterable[str]) -> dict[str, bytes]:
        """Return the cached vectors of these texts, as the bytes of float32 numbers."""
        rows = self._connection.execute(
            "SELECT hash, embedding FROM embedding_cache WHERE provider = ? AND model = ? AND dimension = ? "
            "AND hash IN (SELECT value FROM json_each(?))",
            (*space, json.dumps(list(hashes))),
        )
        return {digest: embedding for digest, embedding in rows if len(embedding) == 4 * space.dimension}

    def resolve(self, space: VectorSpace) -> VectorSpace:
        """Return a space with the dimension that its vectors have, if it has none of its own."""
        if space.dimension:
            return space
        row = self._connection.execute(
            "SELECT dimension FROM embedding_cache WHERE provider = ? AND model = ? ORDER BY updated_at DESC LIMIT 1",
            space[:2],
        ).fetchone()
        return space._replace(dimension=int(row[0])) if row else space

    def remember(self, space: VectorSpace, vectors: Mapping[str, bytes]) -> None:
        """Store the vectors of some texts, as the bytes of float32 numbers."""
        now = _now()
        rows = ((digest, *space, vector, now) for digest, vector in vectors.items())
        with transaction(self._connection):
            self._connection.executemany(_PUT.format("REPLACE"), rows)

    def take_over(self, broken: Path) -> None:
        """Store the vectors of another index, up to the first that cannot be read."""
        with (
            transaction(self._connection),
            contextlib.closing(_open_to_read(broken)) as other,
            # A name in what SQLite says of the damage may be damaged itself.
            contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError),
        ):
            rows = (row for row in other.execute(_ALL) if _is_unit(row[4], row[3]))
            self._connection.executemany(_PUT.format("IGNORE"), rows)

    def discard(self, hashes: Iterable[str]) -> None:
        """Delete the vectors of some texts, those of every model."""
        with transaction(self._connection):
            self._connection.executemany("DELETE FROM embedding_cache WHERE hash = ?", ((digest,) for digest in hashes))

    def touch(self, space: VectorSpace, hashes: Iterable[str]) -> None:
        """Set the last-used day of some vectors to today."""
        now = _now()
        with transaction(self._connection):
            self._connection.execute(
                "UPDATE embedding_cache SET updated_at = ? WHERE provider = ? AND model = ? AND dimension = ? "
                "AND hash IN (SELECT value FROM json_each(?)) AND updated_at < ?",
                (now, *space, json.dumps(list(hashes)), now[:10]),
            )

    def prune(self, used: frozenset[str], before: str, max_bytes: int | None, *, dry_run: bool) -> Pruned:
        """Delete vectors of texts that are not in `used`, if they were last used before a time.

        With `max_bytes`, further ones go until no more than that is left, those longest out of use
        first; the used ones stay.
        """
        rows = self._connection.execute(
            "SELECT hash, provider, model, dimension, updated_at, length(embedding) FROM embedding_cache ORDER BY updated_at"
        ).fetchall()
        total, freed = sum(row[-1] for row in rows), 0
        deleted: list[Sequence[object]] = []
        for *key, updated_at, size in rows:
            is_over = max_bytes is not None and total - freed > max_bytes
            if key[0] not in used and (updated_at < before or is_over):
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


#: The key of the vector file in the database.
_META = "passage vectors"
#: Rows of chunks that are gone are dropped when there are more of them than of the others, and than this.
_MOST_DEAD = 1_000
#: Chunks whose vectors are looked up at a time.
_LOOKED_UP = 500
_SELECT_TEXT = "SELECT rowid, CASE WHEN is_titled THEN title ELSE '' END, headings, content FROM chunks"


class VectorFile(NamedTuple):
    """A file of vectors as the database knows it, with a row for each passage."""

    space: VectorSpace
    file: str
    rows: int


class VectorStore:
    """The vectors of one index, of one embedding model at a time, in a file in a folder of their own.

    Whoever calls a method that writes holds the index lock.
    """

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self.cache = EmbeddingCache(connection)
        self._connection = connection
        self._folder = folder
        #: The last comparison of a vector file with the chunks, behind what it was made of.
        self._compared: tuple[object, tuple[VectorTable | None, Keys]] | None = None

    @property
    def held(self) -> VectorFile | None:
        """The vector file, of any model."""
        described = read_meta(self._connection, _META)
        if described is None:
            return None
        space, file, rows = json.loads(described)
        return VectorFile(VectorSpace(*space), file, rows)

    def vector_file(self, space: VectorSpace) -> VectorFile | None:
        """Return the vector file if it is of a space; one of unknown dimension fits any."""
        held = self.held
        is_fitting = held and held.space[:2] == space[:2] and space.dimension in (0, held.space.dimension)
        return held if is_fitting else None

    def table(self, space: VectorSpace) -> VectorTable | None:
        """Return the vectors of a space as they are now, or None."""
        vector_file = self.vector_file(space)
        return self._cover(vector_file)[0] if vector_file and vector_file.rows else None

    def missing(self, space: VectorSpace) -> list[int]:
        """Return the keys of the chunks that have no vector of a space."""
        vector_file = self.vector_file(space)
        keys: list[int] = (self._cover(vector_file)[1] if vector_file else self._chunk_keys()).tolist()
        return keys

    def passages(self, keys: Iterable[int] | None = None) -> Iterator[EmbeddedPassage]:
        """Yield the passages of all chunks, or of those with some keys, in their order."""
        wanted = self._chunk_keys().tolist() if keys is None else keys
        for batch in batched(wanted, _LOOKED_UP):
            yield from itertools.chain.from_iterable(self._by_chunk(batch))

    def _by_chunk(self, keys: Sequence[int]) -> list[list[EmbeddedPassage]]:
        statement = f"{_SELECT_TEXT} WHERE rowid IN (SELECT value FROM json_each(?)) ORDER BY rowid"
        return list(itertools.starmap(make_passages, self._connection.execute(statement, (json.dumps(keys),))))

    def attach(self, space: VectorSpace) -> None:
        """Put every chunk whose passages' vectors are cached into the space's file."""
        vector_file, empty = self.vector_file(space), VectorFile(space, _new_name(), 0)
        table, missing = self._cover(vector_file or empty)
        if vector_file is None or table is None:  # there is none, or it is lost
            vector_file = empty
        elif table.alive is not None and (~table.alive).sum() > max(_MOST_DEAD, table.alive.sum()):
            vector_file, missing = empty, self._chunk_keys()
        for batch in batched(missing.tolist(), _LOOKED_UP):
            vector_file = self._add_cached(vector_file, batch)
        self._record(vector_file)

    def _add_cached(self, vector_file: VectorFile, keys: Sequence[int]) -> VectorFile:
        """Add those of some chunks whose passages all have a vector in the cache."""
        import numpy as np

        chunks, space = self._by_chunk(keys), vector_file.space
        vectors = self.cache.known(space, {passage.hash for chunk in chunks for passage in chunk})
        found = [one for chunk in chunks if all(passage.hash in vectors for passage in chunk) for one in chunk]
        if not found:
            return vector_file
        self.cache.touch(space, vectors)
        rows = np.frombuffer(b"".join(vectors[one.hash] for one in found), "<f4").reshape(-1, space.dimension)
        return self._add(vector_file, np.array([one.key for one in found], np.int64), rows)

    def renew(self) -> None:
        """Write the vector file anew from the cache, without the rows of what is gone."""
        if held := self.held:
            self._record(VectorFile(held.space, _new_name(), 0))
            self.attach(held.space)

    def _record(self, vector_file: VectorFile) -> None:
        """Make a file the vector file, and delete what was in its place."""
        if vector_file == self.held:
            return
        with transaction(self._connection):
            put_meta(self._connection, _META, json.dumps(vector_file))
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                if name.rpartition(".")[0] != vector_file.file:
                    with contextlib.suppress(OSError):  # still mapped by somebody, on Windows
                        (self._folder / name).unlink()

    def _add(self, vector_file: VectorFile, keys: Keys, rows: Vectors) -> VectorFile:
        """Write rows behind those of a file, or all of them to a new one to keep the order of the keys.

        Nobody reads them before the database knows of them.
        """
        import numpy as np

        table = self._map(vector_file)
        if table is not None and len(table.keys) and keys[0] < table.keys[-1]:
            keys, rows = np.concatenate([table.keys, keys]), np.concatenate([table.rows, rows])
            order = np.argsort(keys, kind="stable")
            keys, rows = keys[order], rows[order]
            vector_file = vector_file._replace(file=_new_name(), rows=0)
        self._folder.mkdir(exist_ok=True)
        name, there = self._folder / vector_file.file, vector_file.rows
        _write_at(name.with_suffix(".f32"), 4 * vector_file.space.dimension * there, rows.astype("<f4").tobytes())
        _write_at(name.with_suffix(".keys"), 8 * there, keys.astype("<i8").tobytes())
        return vector_file._replace(rows=there + len(keys))

    def _cover(self, vector_file: VectorFile) -> tuple[VectorTable | None, Keys]:
        """Return the table of a file and the keys of chunks without a vector; the same until one of them changes."""
        state = vector_file, read_meta(self._connection, "generation")
        if self._compared is None or self._compared[0] != state:
            self._compared = state, self._compare(vector_file)
        return self._compared[1]

    def _compare(self, vector_file: VectorFile) -> tuple[VectorTable | None, Keys]:
        import numpy as np

        chunks, table = self._chunk_keys(), self._map(vector_file)
        if table is not None:
            alive = np.isin(table.keys, chunks)
            table = table if alive.all() else VectorTable(table.keys, table.rows, alive)
        return table, chunks if table is None else chunks[~np.isin(chunks, table.keys)]

    def _chunk_keys(self) -> Keys:
        import numpy as np

        rows = self._connection.execute("SELECT rowid FROM chunks ORDER BY rowid").fetchall()
        return np.fromiter((key for (key,) in rows), np.int64, len(rows))

    def _map(self, vector_file: VectorFile) -> VectorTable | None:
        """Map a file into memory; None if it is not as the database knows it."""
        import numpy as np

        shape, name = (vector_file.rows, vector_file.space.dimension), self._folder / vector_file.file
        if not vector_file.rows:
            return VectorTable(np.empty(0, np.int64), np.empty(shape, np.float32))
        try:
            keys: Keys = np.fromfile(name.with_suffix(".keys"), "<i8", vector_file.rows)
            rows = np.memmap(name.with_suffix(".f32"), "<f4", "r", shape=shape)
        except (OSError, ValueError):
            return None
        return VectorTable(keys, np.asarray(rows)) if len(keys) == vector_file.rows else None


def _new_name() -> str:
    return os.urandom(8).hex()


def _write_at(file: Path, place: int, data: bytes) -> None:
    descriptor = open_regular(file, os.O_RDWR | os.O_CREAT, 0o666)
    with open(descriptor, "r+b") as stream:
        stream.truncate(place)
        stream.seek(place)
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)
