"""The embedding cache: what of a chunk is embedded, and every vector that was ever made, by the hash of its text.

It survives rebuilds, renames and branch switches.
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from memory_kb.ports import Space

if TYPE_CHECKING:
    from memory_kb.ports import Vectors

_T = TypeVar("_T")

_PUT = "INSERT OR REPLACE INTO embedding_cache (hash, provider, model, dimension, embedding, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
_ADD = _PUT.replace("REPLACE", "IGNORE")
_DELETE = "DELETE FROM embedding_cache WHERE hash = ? AND provider = ? AND model = ? AND dimension = ?"

#: What the squares of a vector's float32 numbers may miss of 1.
_LENGTH_SLACK = 1e-3


class Passage(NamedTuple):
    """The text of a chunk as it is embedded, and the hash it is cached by."""

    key: int
    hash: str
    text: str


def make_passage(key: int, title: str, headings: str, content: str) -> Passage:
    """Return what is embedded of a chunk; `title` is empty if it is only the file's name."""
    text = embedded_text(title, headings, content)
    return Passage(key, hash_text(text), text)


def embedded_text(title: str, headings: str, content: str) -> str:
    """Return a chunk's text under its title and headings, where they do not open it anyway.

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


class Lender:
    """The caches of other indexes, of which vectors are taken instead of being made.

    They are only read; nothing waits for them, and whatever is wrong with one lends nothing.
    """

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files

    def known(self, space: Space, hashes: Collection[str]) -> tuple[Space, dict[str, bytes]]:
        """Return the vectors of texts that there are, and their space: a dimension that was not known is."""
        found: dict[str, bytes] = {}
        for file in self._files() if hashes else ():
            with contextlib.suppress(sqlite3.Error, OSError, ValueError), _reading(file) as cache:
                own = space if space.dimension else space._replace(dimension=cache.find_dimension(space))
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

    def find_dimension(self, space: Space) -> int:
        """Return the dimension of a model's vectors, 0 if there are none."""
        row = self._connection.execute(
            "SELECT dimension FROM embedding_cache WHERE provider = ? AND model = ? ORDER BY updated_at DESC LIMIT 1",
            space[:2],
        ).fetchone()
        return int(row[0]) if row else 0

    def remember(self, space: Space, hashes: Sequence[str], vectors: Vectors) -> None:
        """Keep the vectors of some texts."""
        now = _now()
        blobs = (row.tobytes() for row in vectors.astype("<f4", copy=False))
        with transaction(self._connection):
            self._connection.executemany(
                _PUT, ((digest, *space, blob, now) for digest, blob in zip(hashes, blobs, strict=True))
            )

    def take_over(self, broken: Path) -> None:
        """Keep the vectors of another index, as far as they can be read, from either end of its table."""
        source = f"{broken.absolute().as_uri()}?mode=ro"
        with transaction(self._connection), contextlib.closing(sqlite3.connect(source, uri=True)) as other:
            for order in ("ASC", "DESC"):
                with contextlib.suppress(sqlite3.DatabaseError):
                    self._connection.executemany(_ADD, (row for row in _read_rows(other, order) if _is_whole(row)))
                    return

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


def _read_rows(connection: sqlite3.Connection, order: str) -> Iterator[tuple[Any, ...]]:
    columns = "hash, provider, model, dimension, embedding, updated_at"
    yield from connection.execute(f"SELECT {columns} FROM embedding_cache ORDER BY hash {order}")


def _is_whole(row: tuple[Any, ...]) -> bool:
    """Tell whether a row of a damaged file is as it was written: what it holds is of length 1."""
    *words, dimension, embedding, updated_at = row
    if (
        not all(isinstance(word, str) for word in (*words, updated_at))
        or not isinstance(dimension, int)
        or not isinstance(embedding, bytes)
    ):
        return False
    return _is_unit(embedding, dimension)


def _is_unit(embedding: bytes, dimension: int) -> bool:
    if not 0 < 4 * dimension == len(embedding):
        return False
    numbers = struct.unpack(f"<{dimension}f", embedding)
    return abs(math.fsum(number * number for number in numbers) - 1) < _LENGTH_SLACK


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write within one short transaction, which Ctrl-C at any moment leaves closed."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
