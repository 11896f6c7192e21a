"""Store the vectors of a team's index, and compare them with a query on the server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memory_kb.index.port import Cosines, VectorTable
from memory_kb.index.postgres_schema import VaultRow

if TYPE_CHECKING:
    from psycopg import Connection

    from memory_kb.providers.protocols import Vectors, VectorSpace

#: Up to this many bytes of vectors are read and compared here, exactly as those of a machine's own index are.
#: For more, pgvector's HNSW finds the nearest.
MOST_READ = 64_000_000
#: The number of nearest vectors that HNSW returns, and the size of the sample that shows the ordinary cosine.
_NEAREST, _SAMPLED = 1_000, 10_000
#: How widely HNSW searches. In strict order it would drop what it finds late, which is much if a filter passes few.
_SEARCH = "SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.ef_search = 800; SET LOCAL hnsw.max_scan_tuples = 40000"
#: HNSW indexes no longer vectors.
_MOST_DIMENSIONS = 4_000
#: What sends a vector, with the bytes before the first number and each number; in an array each has its size.
_ARRAY = "array_send(embedding)", 20, [("size", ">i4"), ("number", ">f4")]
_VECTOR = "{0}.vector_send(embedding::{0}.vector)", 4, [("number", ">f4")]

#: The vectors that were read last, with the state of the vaults that they are of.
VectorTables = dict[tuple[VaultRow, ...], VectorTable]


def write_space(space: VectorSpace) -> str:
    """Return a space as the server holds it."""
    return json.dumps(list(space))


def find_extension(connection: Connection) -> str | None:
    """Return the schema of pgvector, None where the server does not have it."""
    query = "SELECT n.oid::regnamespace FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'vector'"
    row = connection.execute(query).fetchone()
    return str(row[0]) if row else None


def create_nearest_indexes(connection: Connection) -> None:
    """Create the HNSW index for every dimension with too many vectors to read, if the role may."""
    import psycopg

    extension = find_extension(connection)
    found = connection.execute(
        "SELECT (space::json ->> 2)::integer AS dimension FROM vaults WHERE space <> '' GROUP BY 1 HAVING sum(passages) > %s / (4 * (space::json ->> 2)::integer)",
        (MOST_READ,),
    )
    for (dimension,) in found.fetchall() if extension else ():
        if dimension <= _MOST_DIMENSIONS:
            with suppress(psycopg.errors.InsufficientPrivilege):
                connection.execute(
                    f"CREATE INDEX IF NOT EXISTS vectors_near_{dimension} ON vectors USING hnsw "
                    f"((embedding::{extension}.halfvec({dimension})) {extension}.halfvec_ip_ops) "
                    f"WHERE cardinality(embedding) = {dimension}".encode()
                )


def _has_index(connection: Connection, dimensions: str) -> bool:
    query = "SELECT FROM pg_indexes WHERE schemaname = 'memory_kb' AND indexname LIKE 'vectors_near_' || %s"
    return connection.execute(query, (dimensions,)).fetchone() is not None


def describe_search(connection: Connection) -> str:
    """Return a sentence about how the nearest vectors are found."""
    if find_extension(connection) is None:
        return "exact, on this machine: the server has no pgvector"
    if _has_index(connection, "%"):
        return f"exact on this machine up to {MOST_READ:,} bytes of vectors, above approximate by pgvector's HNSW over halfvec"
    return f"exact, on this machine; above {MOST_READ:,} bytes of vectors the owner's next `memory-kb index` makes HNSW's index"


def compare_vectors(
    connection: Connection, vaults: Sequence[VaultRow], asked: tuple[VectorSpace, Vectors], passing: tuple[str, Mapping[str, object]],
    tables: VectorTables,
) -> tuple[Cosines | None, tuple[str, ...]]:  # fmt: skip
    """Return the cosines of a query with the vectors of its space, None without any, and notes about missing ones.

    `passing` is a condition, with its values, for the chunks `c` that may be found; if only the nearest are returned,
    they are the nearest of those.
    """
    space, vector = asked
    fitting = tuple(vault for vault in vaults if vault.space == write_space(space))
    total = sum(vault.passages for vault in fitting)
    notes: tuple[str, ...] = ()
    if others := [vault.name for vault in vaults if vault.chunks and (vault not in fitting or not vault.vectors)]:
        notes += (f"no vectors of {space}, so found by words alone: {', '.join(others)}",)
    if missing := sum(vault.chunks - vault.vectors for vault in fitting if vault.vectors):
        notes += (f"{missing:,} passages have no vector yet and are found by their words alone",)
    if not total:
        return None, notes
    if fitting in tables:
        return tables[fitting].compare(vector), notes
    extension = find_extension(connection)
    if extension and 4 * space.dimension * total > MOST_READ and _has_index(connection, str(space.dimension)):
        condition, values = passing
        values = {**values, "query": vector.tolist(), "near": [vault.id for vault in fitting]}
        return _find_near(connection, extension, condition, values, 100.0 * _SAMPLED / total), notes
    tables.clear()
    tables[fitting] = _read_all(connection, fitting, extension)
    return tables[fitting].compare(vector), notes


def _find_near(
    connection: Connection, extension: str, condition: str, values: Mapping[str, object], percent: float
) -> Cosines:
    """Return the cosines of the passages of the chunks nearest to a query, and of a sample of all."""
    import numpy as np

    dimension = len(values["query"])  # type: ignore[arg-type]
    half, whole = f"{extension}.halfvec({dimension})", f"{extension}.vector({dimension})"
    distance = f"OPERATOR({extension}.<#>) %(query)s::real[]"
    near = (
        f"SELECT e.key FROM vectors e JOIN chunks c ON c.key = e.key WHERE {condition} AND e.vault = ANY(%(near)s) "
        f"AND cardinality(e.embedding) = {dimension} ORDER BY e.embedding::{half} {distance}::{half} LIMIT {_NEAREST}"
    )
    cosine = f"-(embedding::{whole} {distance}::{whole}) AS cosine"
    query = (
        f"WITH near AS MATERIALIZED ({near}), found AS (SELECT key, passage, {cosine}, false AS sampled FROM vectors "
        "WHERE vault = ANY(%(near)s) AND key IN (SELECT key FROM near) UNION ALL "
        f"SELECT key, passage, {cosine}, true FROM vectors TABLESAMPLE SYSTEM ({min(100.0, percent)}) REPEATABLE (1) "
        "WHERE vault = ANY(%(near)s)) SELECT DISTINCT ON (key, passage) * FROM found ORDER BY key, passage, sampled DESC"
    )
    connection.execute(_SEARCH)
    rows = connection.execute(query.encode(), values, binary=True).fetchall()
    found = np.array(rows, [("key", np.int64), ("passage", np.int32), ("cosine", np.float32), ("sampled", np.bool_)])
    return Cosines(found["key"], found["cosine"], found["sampled"])


def _read_all(connection: Connection, vaults: Sequence[VaultRow], extension: str | None) -> VectorTable:
    """Return all vectors of some vaults."""
    import numpy as np

    sent, head, element = _VECTOR if extension else _ARRAY
    query = f"SELECT key, {sent.format(extension)} FROM vectors WHERE vault = ANY(%s) ORDER BY key, passage"
    rows = connection.execute(query.encode(), ([vault.id for vault in vaults],), binary=True).fetchall()
    numbers = np.frombuffer(b"".join(vector[head:] for _, vector in rows), element)["number"]
    keys = np.fromiter((key for key, _ in rows), np.int64, len(rows))
    return VectorTable(keys, numbers.astype(np.float32).reshape(len(rows), -1))
