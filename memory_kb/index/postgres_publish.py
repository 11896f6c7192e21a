"""Update a vault of a team's index from the index of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.index import postgres_vectors
from memory_kb.index.postgres_schema import (
    BLOCK_BITS,
    KEY_BITS,
    LENGTH_BITS,
    MOST_TERM_CHARS,
    PLACE_KEY,
    WORD_BITS,
    VaultRow,
    list_vaults,
)
from memory_kb.index.schema import VECTORS
from memory_kb.index.tokenizer import TermTable
from memory_kb.index.vectors import batched
from memory_kb.model import Chunk
from memory_kb.vault import GLOBAL_PREFIX

if TYPE_CHECKING:
    import numpy as np
    from psycopg import Connection, Copy

    from memory_kb.index.port import VectorTable
    from memory_kb.index.sqlite import SqliteIndex

    Array = np.ndarray[Any, np.dtype[Any]]

#: Files that are removed or sent at a time.
_BATCH = 2_000
#: From `_MANY` sent chunks on, if they are one in `_SHARE` of all, the server must renew its statistics.
_MANY, _SHARE = 1_000, 4
_COLUMNS = ", ".join(Chunk._fields)
#: Terms that are worked on at a time, and the columns of a row of postings.
_TERMS, _POSTING = 500, "vault, block, term, places, chunks"


class VaultCopy(NamedTuple):
    """A folder with the notes of a vault, on some machine; in git with the commit it is at and its time in seconds."""

    name: str
    commit: str = ""
    time: int = 0


def publish(
    connection: Connection, vault: str, local: SqliteIndex, clone: VaultCopy, made_with: str, patience: float
) -> str:
    """Send what a vault of the team's index lacks, in one transaction that no reader waits for; return why it failed.

    The notes of the home stay on the machine. One clone indexes a revision, and the newest one wins. Another writer is
    waited for, at most `patience` seconds; the server frees the lock of one that is gone.
    """
    import psycopg

    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {1 + int(1000 * patience)}".encode())
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('memory-kb vault'), hashtext(%s))", (vault,))
            connection.execute("SET LOCAL lock_timeout = 0")
            reason, sent = _send(connection, vault, local, clone, made_with)
    except psycopg.errors.LockNotAvailable:
        return "another machine is indexing it"
    if sent > _MANY and sent * _SHARE > sum(one.chunks for one in list_vaults(connection)):
        # Only where the role may: without it the server plans badly until its own ANALYZE, a minute later.
        connection.execute("ANALYZE files, chunks, postings, vectors")
    if sent:
        postgres_vectors.create_nearest_indexes(connection)
    return reason


def _send(connection: Connection, vault: str, local: SqliteIndex, clone: VaultCopy, made_with: str) -> tuple[str, int]:
    """Write what a vault lacks, if this clone may; return why not, and how many chunks and vectors were sent."""
    state = _read_state(connection, vault)
    seen = f"{local.generation} {local.read_meta('indexed_at')} {local.read_meta(VECTORS)}"
    if (made_with, clone.commit, clone.name, seen) == (state.made_with, state.revision, state.writer, state.seen):
        return "", 0
    files = {path: one for path, one in local.file_hashes().items() if not path.startswith(GLOBAL_PREFIX)}
    found = connection.execute("SELECT path, hash FROM files WHERE vault = %s", (state.id,))
    there: dict[str, str] = dict(found.fetchall())
    is_kept = state.made_with == made_with
    if reason := _refuse(state, clone):
        return "" if files == there and is_kept else reason, 0
    gone = [path for path, digest in there.items() if not is_kept or files.get(path) != digest]
    new = [path for path in files if not is_kept or there.get(path) != files[path]]
    writer = _Writer(connection, state)
    writer.delete(gone)
    sent = sum(writer.add(local, some, files) for some in batched(new, _BATCH))
    embedded = writer.add_vectors(local)
    writer.record(
        "made_with = %s, revision = %s, committed = %s, writer = %s, seen = %s, generation = generation + %s, "
        "(vectors, passages) = (SELECT count(DISTINCT key), count(*) FROM vectors e WHERE e.vault = id)",
        *(made_with, clone.commit, clone.time, clone.name, seen, int(bool(gone or new or embedded))),
    )
    return "", sent + embedded


def _read_state(connection: Connection, vault: str) -> VaultRow:
    """Return the server's state of a vault; a new vault is created."""
    found = [one for one in list_vaults(connection) if one.name == vault]
    if not found:
        connection.execute("INSERT INTO vaults (name, made_with) VALUES (%s, '')", (vault,))
    return found[0] if found else _read_state(connection, vault)


def _refuse(state: VaultRow, clone: VaultCopy) -> str:
    """Return why a clone may not index a vault now, or nothing."""
    if not state.revision or state.writer is None:
        return ""
    if not clone.commit:
        return f"it is indexed from git, at {state.revision[:10]}, and this folder is in no repository"
    if clone.commit == state.revision and clone.name != state.writer:
        return f"another clone indexed {state.revision[:10]}, and this one differs"
    if (clone.time, clone.commit) < (state.committed or 0, state.revision):
        return f"a newer commit is indexed, {state.revision[:10]}"
    return ""


#: Take chunks out of blocks of postings: terms that only they say, and where they say others.
_UNPOST = (
    f"""DELETE FROM postings WHERE block = ANY(%(blocks)s)
    AND NOT EXISTS (SELECT FROM unnest(places) place WHERE NOT {PLACE_KEY} = ANY(%(gone)s))""",
    f"""UPDATE postings p SET (places, chunks) = (SELECT array_agg(place), count(DISTINCT {PLACE_KEY})
        FROM unnest(p.places) place WHERE NOT {PLACE_KEY} = ANY(%(gone)s))
    WHERE block = ANY(%(blocks)s) AND EXISTS (SELECT FROM unnest(p.places) place WHERE {PLACE_KEY} = ANY(%(gone)s))""",
)


class _Writer:
    """The changes of one publication to a vault, which was in some state before."""

    def __init__(self, connection: Connection, state: VaultRow) -> None:
        self._connection, self._state, self._vault = connection, state, state.id
        self._last = max(state.last_key, state.id << KEY_BITS)

    def record(self, changes: str, *values: object) -> None:
        """Change the row of the vault."""
        self._connection.execute(f"UPDATE vaults SET {changes} WHERE id = %s".encode(), (*values, self._vault))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files with their chunks and postings."""
        for batch in batched(paths, _BATCH):
            self._connection.execute("DELETE FROM files WHERE vault = %s AND path = ANY(%s)", (self._vault, batch))
            rows = self._connection.execute(
                "DELETE FROM chunks WHERE vault = %s AND source = ANY(%s) RETURNING key, length", (self._vault, batch)
            ).fetchall()
            keys = [key for key, _ in rows]
            self._connection.execute("DELETE FROM vectors WHERE vault = %s AND key = ANY(%s)", (self._vault, keys))
            for statement in _UNPOST:
                blocks = list({key >> BLOCK_BITS for key in keys})
                self._connection.execute(statement.encode(), {"blocks": blocks, "gone": keys})
            self.record("chunks = chunks - %s, terms = terms - %s", len(rows), sum(length for _, length in rows))

    def add(self, local: SqliteIndex, paths: Sequence[str], hashes: dict[str, str]) -> int:
        """Add files as the machine's own index holds them; return the number of their chunks."""
        problems: dict[str, list[list[object]]] = {}
        for problem in local.problems():
            problems.setdefault(problem.path, []).append([problem.line, problem.message])
        with self._arriving("files", "vault, path, hash, problems") as copy:
            for path in paths:
                listed = json.dumps(problems[path]) if path in problems else None
                copy.write_row((self._vault, path, hashes[path], listed))
        terms = local.term_table(paths)
        keys = self._add_chunks(local.numbered_chunks(paths), terms.lengths)
        with self._arriving("postings", _POSTING) as copy:
            for row in posting_rows(self._vault, terms, keys):
                copy.write_row(row)
        return len(keys)

    def _add_chunks(self, chunks: Iterable[tuple[int, Chunk]], lengths: Mapping[int, int]) -> dict[int, int]:
        """Add chunks; return the key of each: those of one entry follow each other, others do not."""
        keys: dict[int, int] = {}
        # Blocks are never added to.
        last = self._last | ((1 << BLOCK_BITS) - 1)
        with self._arriving("chunks", f"vault, key, length, {_COLUMNS}") as copy:
            for number, chunk in chunks:
                last += 1 if chunk.part else 2
                keys[number] = last
                # PostgreSQL's texts hold every character but this one.
                values = (value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in chunk)
                copy.write_row((self._vault, last, lengths[number], *values))
        self._last = last
        added = (last, len(keys), sum(lengths[number] for number in keys))
        self.record("last_key = %s, chunks = chunks + %s, terms = terms + %s", *added)
        return keys

    def add_vectors(self, local: SqliteIndex) -> int:
        """Add the vectors that the machine has and the vault lacks; return how many.

        Those of another model go first, if the machine has no fewer.
        """
        held = local.vectors.space
        table = local.vectors.table(held) if held else None
        if held is None or table is None:
            return 0
        space = postgres_vectors.write_space(held)
        if self._state.space != space:
            if self._state.space and len(table.keys) < self._state.passages:
                return 0
            self._connection.execute("DELETE FROM vectors WHERE vault = %s", (self._vault,))
            self.record("space = %s", space)
        return self._send_vectors(local, table)

    def _send_vectors(self, local: SqliteIndex, table: VectorTable) -> int:
        """Send the vectors of the chunks that have none there; return the number of chunks that got some."""
        import numpy as np

        missing = self._connection.execute(
            "SELECT c.source, c.position, c.key FROM chunks c WHERE c.vault = %s AND NOT EXISTS "
            "(SELECT FROM vectors e WHERE e.vault = c.vault AND e.key = c.key)",
            (self._vault,),
        ).fetchall()
        keys = {(source, position): key for source, position, key in missing}
        sent = 0
        with self._arriving("vectors", "vault, key, passage, embedding", "(FORMAT BINARY)") as copy:
            copy.set_types(["int4", "int8", "int4", "float4[]"])
            for sources in batched(dict.fromkeys(source for source, *_ in missing), _BATCH):
                for number, chunk in local.numbered_chunks(sources):
                    key = keys.get((chunk.source, chunk.position))
                    start, end = np.searchsorted(table.keys, (number, number + 1))
                    if key is not None and start < end:
                        for passage, row in enumerate(table.rows[start:end]):
                            copy.write_row((self._vault, key, passage, row.tolist()))
                        sent += 1
        return sent

    @contextmanager
    def _arriving(self, table: str, columns: str, form: str = "") -> Iterator[Copy]:
        """Take rows, by way of a table of our own: nobody may copy into a table that has policies."""
        with self._connection.cursor() as cursor:
            made = f"CREATE TEMP TABLE arriving ON COMMIT DROP AS SELECT {columns} FROM {table} LIMIT 0"
            cursor.execute(made.encode())
            with cursor.copy(f"COPY arriving ({columns}) FROM STDIN {form}".encode()) as copy:
                yield copy
            cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM arriving".encode())
            cursor.execute("DROP TABLE arriving")


def posting_rows(vault: int, table: TermTable, keys: Mapping[int, int]) -> Iterator[tuple[int, int, str, str, int]]:
    """Yield the rows for the chunks that have a key, given by their numbers in the table; both ascend."""
    import numpy as np

    size = 1 + max(table.lengths, default=0)
    key_of, length_of = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    key_of[list(keys)] = list(keys.values())
    length_of[list(table.lengths)] = np.minimum(list(table.lengths.values()), (1 << LENGTH_BITS) - 1)
    indexed = (one for one in table.terms if len(one.term) <= MOST_TERM_CHARS and "\0" not in one.term)
    for some in batched(indexed, _TERMS):
        found = np.fromstring(",".join(one.places for one in some), np.int64, sep=",")
        term = np.repeat(np.arange(len(some)), [one.number for one in some])
        has_key = key_of[found >> WORD_BITS] >= 0
        found, term = found[has_key], term[has_key]
        key, length = key_of[found >> WORD_BITS], length_of[found >> WORD_BITS]
        block, number = key >> BLOCK_BITS, key & ((1 << BLOCK_BITS) - 1)
        places = (number << LENGTH_BITS | length) << WORD_BITS | found & ((1 << WORD_BITS) - 1)
        starts = np.flatnonzero(_differ(term) | _differ(block))
        chunks = np.add.reduceat(_differ(term) | _differ(key), starts) if len(starts) else starts
        for start, end, said in zip(starts, [*starts[1:], len(places)], chunks.tolist(), strict=True):
            listed = str(places[start:end].tolist())[1:-1]
            yield vault, int(block[start]), some[term[start]].term, f"{{{listed}}}", said


def _differ(column: Array) -> Array:
    """Return which values are others than the one before."""
    import numpy as np

    differs: Array = np.diff(column, prepend=-1) != 0
    return differs
