"""Update a vault of a team's index from the index of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.index import postgres_vectors
from memory_kb.index.postgres_schema import COUNTS, KEY_BITS, VaultRow, list_vaults
from memory_kb.index.postgres_words import MOST_TERM_CHARS
from memory_kb.index.vectors import batched
from memory_kb.index.words import COLUMN_BITS, WordCutter
from memory_kb.model import Chunk
from memory_kb.vault import GLOBAL_PREFIX

if TYPE_CHECKING:
    from psycopg import Connection, Copy

    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.providers.base import Space

#: Chunks whose words are sent at a time, and rows or files.
_CHUNKS, _BATCH = 5_000, 2_000
#: So many chunks sent change what the server has to plan for.
_MANY = 1_000
#: The largest number of a smallint.
_MOST_COUNTED = 32_767
#: What COPY reads as more than itself.
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_COLUMNS = ", ".join(Chunk._fields)
_COPIED = f"vault, length, key, {', '.join(COUNTS)}, term, places"


class Revision(NamedTuple):
    """The commit that a clone is at, and its time in seconds."""

    commit: str
    time: int


class Clone(NamedTuple):
    """A folder with the notes of a vault, on some machine, and the commit it is at, if it is in git."""

    name: str
    revision: Revision | None = None


def publish(
    connection: Connection, vault: str, local: SqliteIndex, clone: Clone, made_with: str, tokenizer: str
) -> str:
    """Send what a vault of the team's index lacks, in one transaction that no reader waits for; return why not, if so.

    The notes of the home stay on the machine. One clone indexes a revision, the newest one wins, and nobody waits
    for another who is at it: the server frees the lock of a writer that is gone.
    """
    with connection.transaction():
        lock = "SELECT pg_try_advisory_xact_lock(hashtext('memory-kb vault'), hashtext(%s))"
        if not _ask(connection, lock, vault)[0]:
            return "another machine is indexing it"
        state = _read_state(connection, vault)
        revision, vectors = clone.revision or _NOWHERE, postgres_vectors.describe_space(local)
        seen = f"{local.generation} {local.read_meta('indexed_at')} {vectors}"
        if (state.made_with, state.revision, state.writer, state.seen) == (
            made_with,
            revision.commit,
            clone.name,
            seen,
        ):
            return ""
        files = {path: one for path, one in local.file_hashes().items() if not path.startswith(GLOBAL_PREFIX)}
        found = connection.execute("SELECT path, hash FROM files WHERE vault = %s", (state.id,))
        there: dict[str, str] = dict(found.fetchall())
        reason = _refuse(state, clone)
        if reason:
            is_same = files == there and state.made_with == made_with
            return "" if is_same else reason
        is_kept = state.made_with == made_with
        gone = [path for path, digest in there.items() if not is_kept or files.get(path) != digest]
        new = [path for path in files if path not in there or not is_kept or there[path] != files[path]]
        writer = _Writer(connection, state, WordCutter(tokenizer))
        writer.delete(gone)
        sent = writer.add(local, new, files)
        embedded = writer.add_vectors(local, vectors)
        writer.finish(clone.name, revision, made_with, seen, is_changed=bool(gone or new or embedded))
    if sent > _MANY or embedded > _MANY:
        # Where the role may: the server plans badly for what it has not looked at, and does so by itself a minute later.
        connection.execute("ANALYZE chunks; ANALYZE postings; ANALYZE vectors")
    if embedded and vectors and not writer.is_guarded:
        postgres_vectors.index_nearest(connection, vectors[0])
    return ""


_NOWHERE = Revision("", 0)


def _read_state(connection: Connection, vault: str) -> VaultRow:
    """Return a vault as the server has it, made if it is new."""
    found = [one for one in list_vaults(connection) if one.name == vault]
    if not found:
        connection.execute("INSERT INTO vaults (name, made_with) VALUES (%s, '')", (vault,))
    return found[0] if found else _read_state(connection, vault)


def _ask(connection: Connection, query: str, *values: object) -> tuple[Any, ...]:
    row = connection.execute(query.encode(), values).fetchone()
    assert row is not None
    return row


def _refuse(state: VaultRow, clone: Clone) -> str:
    """Return why a clone may not index a vault now, or nothing."""
    if not state.revision or state.writer is None:
        return ""
    if clone.revision is None:
        return f"it is indexed from git, at {state.revision[:10]}, and this folder is in no repository"
    if clone.revision.commit == state.revision:
        return (
            "" if clone.name == state.writer else f"another clone indexed {state.revision[:10]}, and this one differs"
        )
    if (clone.revision.time, clone.revision.commit) < (state.committed or 0, state.revision):
        return f"a newer commit is indexed, {state.revision[:10]}"
    return ""


class _Writer:
    """The changes of one publication."""

    def __init__(self, connection: Connection, state: VaultRow, cutter: WordCutter) -> None:
        self._connection, self._state, self._cutter = connection, state, cutter
        self._last = max(state.last_key, state.id << KEY_BITS)
        self._chunks, self._terms, self._space = state.chunks, state.terms, state.space
        self.is_guarded = bool(_ask(connection, "SELECT row_security_active('chunks')")[0])

    def delete(self, paths: Sequence[str]) -> None:
        """Take files out, with their chunks and the words of these."""
        vault = self._state.id
        for batch in batched(paths, _BATCH):
            rows = self._connection.execute(
                f"SELECT key, {_COLUMNS} FROM chunks WHERE vault = %s AND source = ANY(%s)".encode(), (vault, batch)
            ).fetchall()
            for some in batched(rows, _BATCH):
                keys = [row[0] for row in some]
                texts = [(row[0], texts_of(Chunk._make(row[1:]))) for row in some]
                lengths, found = self._cutter.postings(texts, MOST_TERM_CHARS)
                gone = list(found)
                self._connection.execute(
                    "DELETE FROM postings p USING unnest(%s::text[], %s::bigint[]) gone (term, key) "
                    "WHERE p.vault = %s AND p.term = gone.term AND p.key = gone.key",
                    ([term for _, term, _ in gone], [key for key, _, _ in gone], vault),
                )
                self._terms -= sum(lengths.values())
                self._chunks -= len(keys)
                self._connection.execute("DELETE FROM chunks WHERE key = ANY(%s)", (keys,))
                self._connection.execute("DELETE FROM vectors WHERE vault = %s AND key = ANY(%s)", (vault, keys))
            self._connection.execute("DELETE FROM files WHERE vault = %s AND path = ANY(%s)", (vault, batch))

    def add(self, local: SqliteIndex, paths: Sequence[str], hashes: dict[str, str]) -> int:
        """Add files as the machine's own index holds them; return the number of their chunks."""
        before = self._chunks
        problems: dict[str, list[list[object]]] = {}
        for problem in local.problems():
            problems.setdefault(problem.path, []).append([problem.line, problem.message])
        vault = self._state.id
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO files (vault, path, hash, problems) VALUES (%s, %s, %s, %s)",
                [
                    (vault, path, hashes[path], json.dumps(problems[path]) if path in problems else None)
                    for path in paths
                ],
            )
        for batch in batched((chunk for path in paths for chunk in local.chunks_of(path)), _CHUNKS):
            self._add_chunks(batch)
        return self._chunks - before

    def _add_chunks(self, batch: Sequence[Chunk]) -> None:
        vault, keys, chunks = self._state.id, list[int](), list(map(_storable, batch))
        for chunk in chunks:
            # As in a machine's own index: chunks of one entry follow each other, others do not.
            self._last += 1 if chunk.part else 2
            keys.append(self._last)
        with self._arriving("chunks", f"vault, key, {_COLUMNS}") as copy:
            for key, chunk in zip(keys, chunks, strict=True):
                copy.write_row((vault, key, *chunk))
        texts = [(key, texts_of(chunk)) for key, chunk in zip(keys, chunks, strict=True)]
        lengths, postings = self._cutter.postings(texts, MOST_TERM_CHARS)
        with self._arriving("postings", _COPIED) as copy:
            for some in batched(_copied(vault, lengths, postings), _BATCH):
                copy.write("".join(some))
        self._chunks += len(chunks)
        self._terms += sum(lengths.values())

    def add_vectors(self, local: SqliteIndex, theirs: tuple[Space, int] | None) -> int:
        """Add the vectors that the machine has and the vault lacks; return how many.

        Those of another model go first, if the machine has no fewer.
        """
        if theirs is None:
            return 0
        space = postgres_vectors.write_space(theirs[0])
        if self._space != space:
            if self._space and theirs[1] < self._state.vectors:
                return 0
            self._connection.execute("DELETE FROM vectors WHERE vault = %s", (self._state.id,))
            self._space = space
        return postgres_vectors.fill(self._connection, self._state.id, theirs[0], local, self._arriving)

    @contextmanager
    def _arriving(self, table: str, columns: str, form: str = "") -> Iterator[Copy]:
        """Take rows, by way of a table of our own where policies hold: nobody may copy into a table that has them."""
        with self._connection.cursor() as cursor:
            if not self.is_guarded:
                with cursor.copy(f"COPY {table} ({columns}) FROM STDIN {form}".encode()) as copy:
                    yield copy
                return
            made = f"CREATE TEMP TABLE arriving ON COMMIT DROP AS SELECT {columns} FROM {table} LIMIT 0"
            cursor.execute(made.encode())
            with cursor.copy(f"COPY arriving ({columns}) FROM STDIN {form}".encode()) as copy:
                yield copy
            cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM arriving".encode())
            cursor.execute("DROP TABLE arriving")

    def finish(self, clone: str, revision: Revision, made_with: str, seen: str, *, is_changed: bool) -> None:
        """Record what the vault holds now."""
        self._connection.execute(
            "UPDATE vaults SET made_with = %s, generation = generation + %s, revision = %s, committed = %s, writer = %s, "
            "seen = %s, last_key = %s, chunks = %s, terms = %s, space = %s, "
            "vectors = (SELECT count(*) FROM vectors e WHERE e.vault = id) WHERE id = %s",
            (
                *(made_with, int(is_changed), revision.commit, revision.time, clone),
                *(seen, self._last, self._chunks, self._terms, self._space, self._state.id),
            ),
        )


def _copied(vault: int, lengths: dict[int, int], postings: Iterable[tuple[int, str, list[int]]]) -> Iterator[str]:
    """Yield postings as COPY takes them."""
    columns = range(len(COUNTS))
    once = ["\t".join("1" if column == chosen else "0" for column in columns) for chosen in columns]
    heads = {key: f"{vault}\t{length}\t{key}\t" for key, length in lengths.items()}
    before = written = ""
    for key, term, places in postings:
        if term != before:
            before, written = term, f"\t{term.translate(_ESCAPES)}\t{{"
        if len(places) == 1:
            yield f"{heads[key]}{once[places[0] >> COLUMN_BITS]}{written}{places[0]}}}\n"
            continue
        counts = [0] * len(COUNTS)
        for place in places:
            counts[place >> COLUMN_BITS] += 1
        numbers = "\t".join(str(min(count, _MOST_COUNTED)) for count in counts)
        yield f"{heads[key]}{numbers}{written}{','.join(map(str, places))}}}\n"


def _storable(chunk: Chunk) -> Chunk:
    # PostgreSQL's texts hold every character but this one.
    return Chunk._make(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in chunk)


_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")  # fmt: skip


def texts_of(chunk: Chunk) -> tuple[str | None, ...]:
    """Return what is indexed of a chunk, by column, as a machine's own index does."""
    title = f"{chunk.title} {chunk.names} {chunk.title_terms or ''}"
    dated = chunk.dated
    if dated is not None:
        dated = f"{dated} {int(dated[8:10] or 0)} {_MONTHS[int(dated[5:7]) - 1]}"
    return (title, chunk.headings, chunk.content, chunk.tags, chunk.applies_to, dated, chunk.terms)
