"""`.sessions.db`: the events of all sessions, searchable by their words (S0-5 to S0-7).

It follows from the session files alone. What was appended to a file is read from where the last
reading ended; a file that is no longer what was read is read anew.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from memory_kb.errors import VaultBusy
from memory_kb.index.database import is_damage
from memory_kb.index.eventsearch import find
from memory_kb.index.sessiondb import open_in_memory, open_sessions, set_aside
from memory_kb.index.sessionlist import SessionSeen, list_sessions
from memory_kb.model import wrap
from memory_kb.notes.events import Event, EventFilter, NoEvent, searchable
from memory_kb.notes.injected import strip
from memory_kb.notes.sessionlog import SessionFiles, read_lines
from memory_kb.reports import SessionHit
from memory_kb.text import cjk_terms, has_cjk, printable

_T = TypeVar("_T")
#: What is read before it is written: other processes wait for no more than this.
_BATCH_BYTES, _BATCH_EVENTS = 4_000_000, 2_000
#: Bytes at the beginning and before the offset that must still be the same for reading on.
_SAMPLE = 1024
_TEXT_COLUMNS = "content, tool, terms, agent"
_COLUMNS = "session, offset, seq, ts, job, task, agent, type, event, role, tool, ok, injected, content, terms"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?{', ?' * _COLUMNS.count(',')})"
_INDEX_ROWS = f"INSERT INTO events_fts (rowid, {_TEXT_COLUMNS}) SELECT id, {_TEXT_COLUMNS} FROM events WHERE id > ?"
_UNINDEX = f"INSERT INTO events_fts (events_fts, rowid, {_TEXT_COLUMNS}) SELECT 'delete', id, {_TEXT_COLUMNS} FROM events WHERE session = ?"

Row = tuple[object, ...]


class SessionSync(NamedTuple):
    """What a look at the session files brought into their index."""

    sessions: int = 0
    events: int = 0
    removed: int = 0
    problems: int = 0


class _Known(NamedTuple):
    """A session file as it was when it was read, up to `offset`."""

    size: int
    mtime: int
    inode: int
    offset: int
    sample: bytes


class _Batch(NamedTuple):
    rows: list[Row]
    known: _Known
    problems: int
    is_last: bool


class SessionIndex:
    """The index of a vault's sessions; it is opened when it is first used."""

    def __init__(self, machine: Path) -> None:
        self.path = machine / ".sessions.db"
        self.notices: list[str] = []
        self._files = SessionFiles(machine)
        self._opened: sqlite3.Connection | None = None

    def close(self) -> None:
        """Give the file back."""
        if self._opened:
            self._opened.close()
            self._opened = None

    def sync(self, session: str | None = None) -> SessionSync:
        """Read what the session files have more than the index, of all sessions or of one."""
        return self._use(lambda connection: self._sync(connection, session))

    def search(
        self,
        query: str,
        wanted: EventFilter,
        limit: int,
        *,
        with_injected: bool = False,
        outcome: str | None = None,
        every_event: bool = False,
    ) -> tuple[SessionHit, ...]:
        """Return the sessions that fit a query, best first, or their events; the newest events for an empty query."""
        sessions = None if outcome is None else [one.session for one in self.seen() if one.outcome == outcome]
        hits, notes = self._use(
            lambda connection: find(
                connection,
                query,
                wanted,
                limit,
                with_injected=with_injected,
                sessions=sessions,
                every_event=every_event,
            )
        )
        self.notices += notes
        return hits

    def seen(
        self, *, only_open: bool = False, agent: str | None = None, job: str | None = None
    ) -> tuple[SessionSeen, ...]:
        """Return the sessions, the one with the newest event first."""
        return self._use(
            lambda connection: list_sessions(connection, self._files, only_open=only_open, agent=agent, job=job)
        )

    def _use(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do something with the database, once more from nothing where it is damaged."""
        inode = None
        try:
            inode = self._inode()
            return work(self._connection())
        except sqlite3.DatabaseError as exc:
            if not is_damage(exc):
                raise
        self.close()
        if set_aside(self.path, inode):
            self.notices.append(f"{self.path.name} was damaged; it was made again from the sessions")
        self._sync(self._connection(), None)
        return work(self._connection())

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            try:
                self._opened = open_sessions(self.path)
            except (sqlite3.OperationalError, PermissionError, VaultBusy) as exc:
                if isinstance(exc, sqlite3.Error) and is_damage(exc):
                    raise
                self.notices.append(f"{self.path.name} cannot be used ({exc}); everything was read for this one search")
                self._opened = open_in_memory()
        return self._opened

    def _inode(self) -> int | None:
        try:
            return self.path.stat().st_ino
        except FileNotFoundError:
            return None

    def _sync(self, connection: sqlite3.Connection, only: str | None) -> SessionSync:
        there = self._files.ids()
        total = SessionSync()
        try:
            for session in there if only is None else [only] if only in there else []:
                total = self._sync_file(connection, session, total)
            if only is None:
                gone = {row[0] for row in connection.execute("SELECT session FROM file_meta")} - set(there)
                for session in sorted(gone):
                    with _writing(connection):
                        _forget(connection, session)
                total = total._replace(removed=len(gone))
        except (sqlite3.OperationalError, VaultBusy) as exc:
            if isinstance(exc, sqlite3.Error) and is_damage(exc):
                raise
            self.notices.append(f"the newest events may be missing: {exc}")
        return total

    def _sync_file(self, connection: sqlite3.Connection, session: str, total: SessionSync) -> SessionSync:
        path = self._files.path(session)
        while True:
            known = _known(connection, session)
            try:
                stat = path.stat()
                if known and (stat.st_size, wrap(stat.st_mtime_ns), wrap(stat.st_ino)) == known[:3]:
                    return total
                offset = (
                    known.offset
                    if known and stat.st_size > known.size and _sample(path, known.offset) == known.sample
                    else 0
                )
                batch = _read_batch(path, session, offset, stat)
            except FileNotFoundError:
                return total
            with _writing(connection):
                if _known(connection, session) != known:
                    continue  # another process was faster: look again at what is left
                if offset == 0 and known:
                    _forget(connection, session)
                _store(connection, session, batch)
            total = total._replace(events=total.events + len(batch.rows), problems=total.problems + batch.problems)
            if batch.is_last:
                return total._replace(sessions=total.sessions + 1)


def _known(connection: sqlite3.Connection, session: str) -> _Known | None:
    row = connection.execute(
        "SELECT size, mtime, inode, offset, sample FROM file_meta WHERE session = ?", (session,)
    ).fetchone()
    return _Known(*row) if row else None


@contextlib.contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _forget(connection: sqlite3.Connection, session: str) -> None:
    connection.execute(_UNINDEX, (session,))
    connection.execute("DELETE FROM events WHERE session = ?", (session,))
    connection.execute("DELETE FROM file_meta WHERE session = ?", (session,))


def _store(connection: sqlite3.Connection, session: str, batch: _Batch) -> None:
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()
    connection.executemany(_INSERT, batch.rows)
    connection.execute(_INDEX_ROWS, (last,))
    connection.execute(
        "INSERT OR REPLACE INTO file_meta (session, size, mtime, inode, offset, sample) VALUES (?, ?, ?, ?, ?, ?)",
        (session, *batch.known),
    )


def _read_batch(path: Path, session: str, offset: int, stat: os.stat_result) -> _Batch:
    """Read lines from an offset, until there is enough for one commit.

    A last line that is not finished is left for the next time, unless it is an event already.
    Until the end is reached, the size noted is that of what was read, so that it is read on.
    """
    rows: list[Row] = []
    begin, problems, is_last = offset, 0, True
    for line in read_lines(path, offset):
        try:
            event = line.parse()
        except NoEvent:
            if line.text is not None and not line.text.endswith(b"\n"):
                break
            event, problems = None, problems + 1
        if event:
            rows.append(_row(event, session, line.offset))
        offset = line.end
        if len(rows) >= _BATCH_EVENTS or offset - begin >= _BATCH_BYTES:
            is_last = offset >= stat.st_size
            break
    size, mtime = (stat.st_size, wrap(stat.st_mtime_ns)) if is_last else (offset - 1, 0)
    return _Batch(rows, _Known(size, mtime, wrap(stat.st_ino), offset, _sample(path, offset)), problems, is_last)


def _row(event: Event, session: str, offset: int) -> Row:
    text = searchable(event)
    if event.injected == "part":
        text = strip(text)
    text = printable(text).replace("\0", " ")
    terms = cjk_terms(text) if has_cjk(text) else None
    kind = (event.ts, event.job, event.task, event.agent, event.type, event.event, event.role, event.tool)
    return (session, offset, event.seq, *kind, event.ok, event.injected == "whole", text, terms)


def _sample(path: Path, offset: int) -> bytes:
    """Return a fingerprint of what was read: its beginning and its end."""
    import hashlib

    with path.open("rb") as file:
        head = file.read(min(offset, _SAMPLE))
        file.seek(max(0, offset - _SAMPLE))
        tail = file.read(min(offset, _SAMPLE))
    return hashlib.sha256(head + b"\n" + tail, usedforsecurity=False).digest()
