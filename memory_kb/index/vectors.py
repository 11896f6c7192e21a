"""Store vectors: a cache by text hash, and those of each chunk."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import sqlite3
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from memory_kb.index.database import put_meta, read_meta, transaction
from memory_kb.index.port import VectorTable
from memory_kb.index.schema import VECTORS
from memory_kb.markdown.sections import cut_passages
from memory_kb.providers.protocols import VectorSpace
from memory_kb.regular_files import DATABASE
from memory_kb.text import hash_of

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


#: Chunks whose vectors are looked up at a time.
_LOOKED_UP = 500
_SELECT_TEXT = "SELECT rowid, CASE WHEN is_titled THEN title ELSE '' END, headings, content FROM chunks"


class VectorStore:
    """The vectors of the chunks of one index, of one embedding model at a time.

    Whoever calls a method that writes holds the index lock.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.cache = EmbeddingCache(connection)
        self._connection = connection
        #: What was read last, and the state of the database that it is of.
        self._state: object = None
        self._table: VectorTable | None = None
        self._missing: list[int] | None = None

    @property
    def space(self) -> VectorSpace | None:
        """The space that the chunks have vectors of."""
        described = read_meta(self._connection, VECTORS)
        return VectorSpace(*json.loads(described)[:-1]) if described else None

    def fitting(self, space: VectorSpace) -> VectorSpace | None:
        """Return the space of the chunks' vectors, with its dimension, if it is the given one."""
        held = self.space
        is_fitting = held and held[:2] == space[:2] and space.dimension in (0, held.dimension)
        return held if is_fitting else None

    def table(self, space: VectorSpace) -> VectorTable | None:
        """Return the vectors of a space as they are now, or None; the same object until something changes."""
        held = self.fitting(space)
        if held is None:
            return None
        self._forget_old()
        self._table = self._table or self._read(held.dimension)
        return self._table if len(self._table.keys) else None

    def missing(self, space: VectorSpace) -> list[int]:
        """Return the keys of the chunks that have no vector of a space."""
        if self.fitting(space) is None:
            return self._keys("SELECT rowid FROM chunks ORDER BY 1")
        self._forget_old()
        if self._missing is None:
            self._missing = self._keys("SELECT rowid FROM chunks EXCEPT SELECT chunk FROM chunk_vectors ORDER BY 1")
        return self._missing

    def _forget_old(self) -> None:
        state = [read_meta(self._connection, key) for key in (VECTORS, "generation")]
        if state != self._state:
            self._state, self._table, self._missing = state, None, None

    def _keys(self, query: str) -> list[int]:
        return [key for (key,) in self._connection.execute(query)]

    def _read(self, dimension: int) -> VectorTable:
        import numpy as np

        rows = self._connection.execute("SELECT chunk, embedding FROM chunk_vectors ORDER BY chunk").fetchall()
        passages = [len(vectors) // (4 * dimension) for _, vectors in rows]
        keys = np.repeat(np.fromiter((key for key, _ in rows), np.int64, len(rows)), passages)
        numbers = np.frombuffer(b"".join([vectors for _, vectors in rows]), "<f4")
        return VectorTable(keys, numbers.reshape(-1, dimension))

    def passages(self, keys: Iterable[int] | None = None) -> Iterator[EmbeddedPassage]:
        """Yield the passages of all chunks, or of those with some keys, in their order."""
        wanted = self._keys("SELECT rowid FROM chunks ORDER BY 1") if keys is None else keys
        for batch in batched(wanted, _LOOKED_UP):
            yield from itertools.chain.from_iterable(self._by_chunk(batch))

    def _by_chunk(self, keys: Sequence[int]) -> list[list[EmbeddedPassage]]:
        statement = f"{_SELECT_TEXT} WHERE rowid IN (SELECT value FROM json_each(?)) ORDER BY rowid"
        return list(itertools.starmap(make_passages, self._connection.execute(statement, (json.dumps(keys),))))

    def attach(self, space: VectorSpace) -> None:
        """Give the vectors of a space to every chunk for whose passages they are cached, instead of other ones."""
        if self.fitting(space) is None:
            self._write(space, "DELETE FROM chunk_vectors", [()])
        for batch in batched(self.missing(space), _LOOKED_UP):
            self._attach_cached(space, batch)

    def _attach_cached(self, space: VectorSpace, keys: Sequence[int]) -> None:
        """Give their vectors to those of some chunks whose passages all have one in the cache."""
        chunks = self._by_chunk(keys)
        vectors = self.cache.known(space, {passage.hash for chunk in chunks for passage in chunk})
        found = [chunk for chunk in chunks if all(passage.hash in vectors for passage in chunk)]
        if found:
            self.cache.touch(space, vectors)
            rows = [(chunk[0].key, b"".join(vectors[passage.hash] for passage in chunk)) for chunk in found]
            self._write(space, "INSERT OR REPLACE INTO chunk_vectors (chunk, embedding) VALUES (?, ?)", rows)

    def _write(self, space: VectorSpace, statement: str, rows: Iterable[Sequence[object]]) -> None:
        described = read_meta(self._connection, VECTORS)
        changes = json.loads(described)[-1] + 1 if described else 1
        with transaction(self._connection):
            self._connection.executemany(statement, rows)
            put_meta(self._connection, VECTORS, json.dumps([*space, changes]))
