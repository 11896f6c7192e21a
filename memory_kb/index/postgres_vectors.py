"""Store the vectors of a team's index, and compare them with a query on the server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from memory_kb.index.port import VectorTable
from memory_kb.index.vectors import batched, make_passage
from memory_kb.providers.base import Space

if TYPE_CHECKING:
    from psycopg import Connection, Copy

    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.providers.base import Vectors

#: Up to so many vectors are read and compared here, as those of a machine's own index are, to the last digit. Of more,
#: pgvector's HNSW finds the nearest.
MOST_READ = 20_000
#: So many nearest are looked for there, beside a sample of about so many, from which the ordinary cosine is known.
_NEAREST, _SAMPLED = 400, 10_000
#: Files whose vectors are sent at a time.
_FILES = 200
#: HNSW holds no longer ones.
_MOST_DIMENSIONS = 4_000

Copying = Callable[[str, str, str], AbstractContextManager["Copy"]]


def write_space(space: Space) -> str:
    """Return a space as the server holds it."""
    return json.dumps(list(space))


def find_extension(connection: Connection) -> str | None:
    """Return the schema of pgvector's types where the vectors are of them, None where they are bytes."""
    row = connection.execute(
        "SELECT n.nspname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace "
        "WHERE a.attrelid = 'vectors'::regclass AND a.attname = 'embedding' AND t.typname = 'vector'"
    ).fetchone()
    return f'"{row[0]}"' if row else None


def describe_space(local: SqliteIndex) -> tuple[Space, int] | None:
    """Return the space in which a machine's index has the most vectors, and how many."""
    found = max(local.vectors.vector_files(), key=lambda one: one.rows, default=None)
    return (found.space, found.rows) if found and found.rows else None


def fill(connection: Connection, vault: int, space: Space, local: SqliteIndex, copying: Copying) -> int:
    """Send the vectors that chunks of a vault lack and the machine has; return how many."""
    missing = connection.execute(
        "SELECT c.source, c.position, c.part, c.key FROM chunks c WHERE c.vault = %s AND NOT EXISTS "
        "(SELECT FROM vectors e WHERE e.vault = c.vault AND e.key = c.key) ORDER BY 1, 2, 3",
        (vault,),
    ).fetchall()
    files = itertools.groupby(missing, key=lambda row: str(row[0]))
    pack = _pack if find_extension(connection) else bytes
    sent = 0
    for some in batched(((source, list(rows)) for source, rows in files), _FILES):
        found = list(_look_up(some, space, local))
        with copying("vectors", "vault, key, embedding", "(FORMAT BINARY)") as copy:
            copy.set_types(["int4", "int8", "bytea"])
            for key, vector in found:
                copy.write_row((vault, key, pack(vector)))
        sent += len(found)
    return sent


def _look_up(
    files: Sequence[tuple[str, list[tuple[str, int, int, int]]]], space: Space, local: SqliteIndex
) -> Iterator[tuple[int, bytes]]:
    hashes: dict[int, str] = {}
    for source, rows in files:
        chunks = {(one.position, one.part): one for one in local.chunks_of(source)}
        for _, position, part, key in rows:
            if one := chunks.get((position, part)):
                hashes[key] = make_passage(key, one.title if one.is_titled else "", one.headings, one.content).hash
    known = local.vectors.cache.known(space, set(hashes.values()))
    return ((key, known[digest]) for key, digest in hashes.items() if digest in known)


def _pack(vector: bytes) -> bytes:
    """Return float32 numbers as COPY takes pgvector's."""
    import struct

    import numpy as np

    return struct.pack(">HH", len(vector) // 4, 0) + np.frombuffer(vector, "<f4").astype(">f4").tobytes()


def index_nearest(connection: Connection) -> None:
    """Make HNSW's index of every dimension that has so many vectors that it is needed, where the role may."""
    import psycopg

    extension = find_extension(connection)
    found = connection.execute(
        "SELECT (space::json ->> 2)::integer AS dimension FROM vaults WHERE space <> '' GROUP BY 1 HAVING sum(vectors) > %s",
        (MOST_READ,),
    )
    for (dimension,) in found.fetchall() if extension else ():
        if dimension <= _MOST_DIMENSIONS:
            with suppress(psycopg.errors.InsufficientPrivilege):
                connection.execute(
                    f"CREATE INDEX IF NOT EXISTS {_name(dimension)} ON vectors USING hnsw "
                    f"((embedding::{extension}.halfvec({dimension})) {extension}.halfvec_ip_ops) "
                    f"WHERE {extension}.vector_dims(embedding) = {dimension}".encode()
                )


def _name(dimension: int) -> str:
    return f"vectors_near_{dimension}"


def describe_search(connection: Connection, spaces: Iterable[tuple[str, int]]) -> str:
    """Return how the nearest of the vectors in some spaces are found, each with their number, in words."""
    if find_extension(connection) is None:
        return "exact, on this machine: the server has no pgvector"
    totals: dict[str, int] = {}
    for space, vectors in spaces:
        totals[space] = totals.get(space, 0) + vectors
    large = [Space(*json.loads(space)) for space, total in totals.items() if total > MOST_READ]
    if any(_has_index(connection, space) for space in large):
        return f"exact on this machine up to {MOST_READ:,} vectors, above approximate by pgvector's HNSW over halfvec"
    if large:
        return (
            "exact, on this machine; the owner's next `memory-kb index` of a vault with new vectors makes HNSW's index"
        )
    return "exact, on this machine"


def _has_index(connection: Connection, space: Space) -> bool:
    row = connection.execute("SELECT to_regclass(%s)", (_name(space.dimension),)).fetchone()
    return row is not None and row[0] is not None


def compare(
    connection: Connection, vaults: Sequence[int], total: int, asked: tuple[Space, Vectors], passing: tuple[str, dict[str, object]]
) -> VectorTable:  # fmt: skip
    """Return the cosines of a question with the vectors of some vaults, `total` in all.

    `passing` is the condition, with its values, for the chunks `c` that may be found; where only the nearest are
    looked for, they are the nearest of those.
    """
    import numpy as np

    space, vector = asked
    extension = find_extension(connection)
    if extension is None or total <= MOST_READ or not _has_index(connection, space):
        return _read_all(connection, vaults, space.dimension, has_head=extension is not None)
    literal = f"[{','.join(map(str, vector.tolist()))}]"
    cosine = f"-(embedding OPERATOR({extension}.<#>) %(question)s::{extension}.vector) AS cosine"
    condition, more = passing
    share = min(100.0, 100.0 * _SAMPLED / total)
    connection.execute("SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.ef_search = 200")
    half = f"{extension}.halfvec({space.dimension})"
    near = (
        f"SELECT e.key FROM vectors e JOIN chunks c ON c.key = e.key WHERE {condition} AND e.vault = ANY(%(vaults)s) "
        f"AND {extension}.vector_dims(e.embedding) = {space.dimension} "
        f"ORDER BY e.embedding::{half} OPERATOR({extension}.<#>) %(question)s::{half} LIMIT {_NEAREST}"
    )
    query = (
        f"WITH near AS MATERIALIZED ({near}) SELECT key, {cosine}, false AS sampled FROM vectors WHERE vault = ANY(%(vaults)s) "
        "AND key IN (SELECT key + side FROM near, unnest(ARRAY[-1, 0, 1]) side) UNION ALL "
        f"SELECT key, {cosine}, true FROM vectors TABLESAMPLE SYSTEM ({share}) REPEATABLE (1) WHERE vault = ANY(%(vaults)s) "
        "ORDER BY key, sampled DESC"
    )
    values = more | {"question": literal, "vaults": list(vaults)}
    rows = connection.execute(query.encode(), values, binary=True).fetchall()
    keys = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    cosines = np.fromiter((row[1] for row in rows), np.float32, len(rows))
    sample = np.fromiter((row[2] for row in rows), np.bool_, len(rows))
    # What is near and of the sample comes twice; the first says that it is of the sample.
    keys, places = np.unique(keys, return_index=True)
    return VectorTable(keys, np.empty((0, 0), np.float32), cosines=cosines[places], sample=sample[places])


def _read_all(connection: Connection, vaults: Sequence[int], dimension: int, *, has_head: bool) -> VectorTable:
    """Return all vectors of some vaults; pgvector's are big-endian behind a head of four bytes."""
    import numpy as np

    query = "SELECT key, embedding FROM vectors WHERE vault = ANY(%s) ORDER BY key"
    rows = connection.execute(query, (list(vaults),), binary=True).fetchall()
    joined = b"".join(row[1][4:] if has_head else row[1] for row in rows)
    vectors = np.frombuffer(joined, ">f4" if has_head else "<f4").astype(np.float32).reshape(len(rows), dimension)
    return VectorTable(np.fromiter((key for key, _ in rows), np.int64, len(rows)), vectors)
