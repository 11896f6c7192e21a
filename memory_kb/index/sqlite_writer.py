"""One transaction per change of the SQLite index."""

from __future__ import annotations

import itertools
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memory_kb.index.database import MADE_HERE, Schema, make_tables, put_meta, read_meta
from memory_kb.index.schema import INDEX_ROWS, INSERT_CHUNKS, PUT_FILES, ROW_OF_CHUNK, ROW_OF_FILE, UNINDEX_FILE
from memory_kb.model import Chunk, FileStat

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_Row = tuple[object, ...]
#: Characters of text gathered before they are written.
_BATCH_CHARS = 2_000_000
#: Rows that one statement puts in.
_ROWS = 500
#: Batches that may wait for the one that is being written.
_MOST_WAITING = 2
_MOST_VALUES = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER


class SqliteWriter:
    """A writer that gathers rows and writes them in batches.

    All of it happens inside one transaction, unless parts of it are committed. A large batch is written, and a part
    committed, in a thread, by a few long SQL statements that do not hold Python back, so that the next batch is read
    and parsed meanwhile.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: list[_Row] = []
        self._files: list[_Row] = []
        self._chars = 0
        self._changes = 0
        self._last = 0
        self._thread: ThreadPoolExecutor | None = None
        self._running: deque[Future[None]] = deque()
        self._is_abandoned = False

    def begin(self, schema: Schema, *, rebuild: bool) -> None:
        """Begin the transaction; a rebuild makes the tables anew."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._generation = int(read_meta(self._connection, "generation") or 0)
        if rebuild:
            self._changes += 1
            make_tables(self._connection, schema, read_meta(self._connection, MADE_HERE))
        self._last = self._max_rowid()

    def end(self) -> None:
        """Write what is gathered, and commit: no file is missing any more."""
        self._flush()
        self._join()
        self._connection.execute("DELETE FROM meta WHERE key = 'is_partial'")
        self._commit()
        if self._thread:
            self._thread.shutdown()

    def put(
        self,
        file: FileStat,
        digest: str,
        problems: Sequence[tuple[int, str]],
        chunks: Sequence[Chunk],
        *,
        is_known: bool,
    ) -> None:
        """Add a file; its old rows are replaced."""
        if is_known:
            self._unindex(file.path)
        listed = None
        if problems:
            import json

            listed = json.dumps(problems, ensure_ascii=False)
        self._files.append((file.path, file.mtime_ns, file.size, file.inode, digest, listed))
        self._changes += 1
        for chunk in chunks:
            self._last += 1 if chunk.part else 2
            self._rows.append((self._last, *chunk))
            self._chars += len(chunk.content)
        if self._chars > _BATCH_CHARS:
            self._flush()

    def touch(self, file: FileStat) -> None:
        """Store the new time and size of a file whose content is unchanged."""
        self._join()
        self._connection.execute(
            "UPDATE file_meta SET mtime = ?, size = ?, inode = ? WHERE path = ?",
            (file.mtime_ns, file.size, file.inode, file.path),
        )

    def remove(self, path: str) -> None:
        """Delete a file and its chunks."""
        self._unindex(path)
        self._connection.execute("DELETE FROM file_meta WHERE path = ?", (path,))
        self._changes += 1

    def commit_part(self) -> None:
        """Commit what was put so far as a part of a first index, and begin another transaction."""
        self._flush(is_part=True)

    def _max_rowid(self) -> int:
        return int(self._connection.execute("SELECT max(rowid) FROM chunks").fetchone()[0] or 0)

    def _unindex(self, path: str) -> None:
        self._join()
        self._connection.execute(UNINDEX_FILE, (path,))
        gone = "SELECT rowid FROM chunks WHERE source = ?"
        self._connection.execute(f"DELETE FROM chunk_vectors WHERE chunk IN ({gone})", (path,))
        self._connection.execute("DELETE FROM chunks WHERE source = ?", (path,))

    def _flush(self, *, is_part: bool = False) -> None:
        """Write the gathered rows, then index them; a large batch, and a part to commit, in the background."""
        batch, is_large = (self._files, self._rows), self._chars > _BATCH_CHARS
        self._files, self._rows, self._chars = [], [], 0
        if not (is_large or is_part):
            self._join()
            self._write(*batch, is_part=False)
            return
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor

            self._thread = ThreadPoolExecutor(1, "memory-kb index")
        self._running.append(self._thread.submit(self._write, *batch, is_part=is_part))
        while len(self._running) > _MOST_WAITING:
            self._running.popleft().result()

    def _write(self, files: Sequence[_Row], rows: Sequence[_Row], *, is_part: bool) -> None:
        try:
            for statement, values in _statements(files, rows, self._connection.getlimit(_MOST_VALUES)):
                if self._is_abandoned:
                    return
                self._connection.execute(statement, values)
            if is_part and not self._is_abandoned:
                put_meta(self._connection, "is_partial", "1")
                self._commit()
                self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._is_abandoned = True  # what was gathered after it is not to be committed without it
            raise

    def _join(self) -> None:
        while self._running:
            self._running.popleft().result()

    def _commit(self) -> None:
        if self._changes:
            self._generation += 1
            put_meta(self._connection, "generation", str(self._generation))
            put_meta(self._connection, "last_rowid", str(self._max_rowid()))
            put_meta(self._connection, "indexed_at", datetime.now(UTC).isoformat(timespec="seconds"))
        self._connection.execute("COMMIT")

    def abandon(self) -> None:
        """Leave the index as it was before the transaction."""
        # A batch in work ends with its statement, which takes a tenth of a second: after the rollback, another one would
        # be outside of the transaction, and stay. To interrupt it would also interrupt the rollback.
        self._is_abandoned = True
        if self._thread:
            self._thread.shutdown(cancel_futures=True)
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _statements(files: Sequence[_Row], rows: Sequence[_Row], most_values: int) -> Iterator[tuple[str, _Row]]:
    """Yield what writes some rows and indexes them, with its values."""
    # Python is held back between two statements, so many rows are put in by each.
    for put, row, table in ((PUT_FILES, ROW_OF_FILE, files), (INSERT_CHUNKS, ROW_OF_CHUNK, rows)):
        most = min(_ROWS, most_values // len(table[0])) if table else _ROWS
        for start in range(0, len(table), most):
            part = table[start : start + most]
            yield f"{put} {', '.join([row] * len(part))}", tuple(itertools.chain.from_iterable(part))
    if rows:
        yield INDEX_ROWS, (rows[0][0], rows[-1][0])
