"""The index of a vault's sessions, `.sessions.db`: what it holds of each file, and the list of sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from memory_kb.errors import VaultBusy
from memory_kb.index.database import (
    BUSY_SECONDS,
    MEMORY,
    Schema,
    identify_file,
    is_damage,
    open_database,
    replace_damaged,
    scrub,
    transaction,
)
from memory_kb.index.event_search import EventFinder
from memory_kb.injected_text import remove_injected
from memory_kb.machine_seal import sign
from memory_kb.model import to_int64
from memory_kb.regular_files import SESSIONS_DATABASE, open_for_reading
from memory_kb.reports import SessionHit
from memory_kb.store.session_events import Event, EventFilter, NoEvent, searchable
from memory_kb.store.session_log import SessionFiles, outcome_of, read_lines
from memory_kb.terms import extra_terms, has_cjk
from memory_kb.text import printable

#: "mkbs", so that a foreign SQLite file in our place is known as one.
APPLICATION_ID = 0x6D6B6273
SCHEMA_VERSION = 4
_SCHEMA = """
DROP TABLE IF EXISTS events_fts;
DROP TABLE IF EXISTS events;
DROP TABLE IF EXISTS file_meta;
DROP TABLE IF EXISTS meta;

-- `made_here`: the signature of the machine folder that it was made in.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One row per session file: how it looked when it was read, and how far it was read.
CREATE TABLE file_meta (
    session TEXT PRIMARY KEY,
    size    INTEGER NOT NULL, -- bytes
    mtime   INTEGER NOT NULL, -- nanoseconds
    inode   INTEGER NOT NULL,
    offset  INTEGER NOT NULL, -- what comes after it is not indexed yet
    sample  BLOB NOT NULL     -- sha256 of the first and the last kilobyte before the offset
) WITHOUT ROWID;

-- One row per event, in the order of its file.
CREATE TABLE events (
    id       INTEGER PRIMARY KEY,
    session  TEXT NOT NULL,
    offset   INTEGER NOT NULL, -- bytes from the beginning of the session's file to its line
    seq      INTEGER NOT NULL,
    ts       TEXT NOT NULL,    -- UTC, 2026-03-21T12:00:00.000Z
    job      TEXT,
    task     TEXT,
    agent    TEXT,
    type     TEXT NOT NULL,
    event    TEXT,
    role     TEXT,
    tool     TEXT,
    ok       INTEGER,
    outcome  TEXT,             -- how the session went, where its end says so
    injected INTEGER NOT NULL, -- 1 where all of it is text that memory-kb gave the agent
    content  TEXT NOT NULL,    -- its words, those of its arguments and its error
    terms    TEXT              -- CJK bigrams
);
CREATE INDEX events_session ON events (session);
CREATE INDEX events_ts ON events (ts);

CREATE VIRTUAL TABLE events_fts USING fts5 (
    content, tool, terms, agent UNINDEXED,
    content = 'events', content_rowid = 'id', tokenize = 'porter unicode61'
);
INSERT INTO events_fts (events_fts, rank) VALUES ('hashsize', 16777216);
"""


#: What is said in sessions is nobody else's business.
_TABLES = Schema((APPLICATION_ID, SCHEMA_VERSION), _SCHEMA, "sessions.lock", is_private=True)

#: An event that comes after the end opens the session again.
_STATEMENT = """
WITH seen AS (
    SELECT m.session, count(e.id) AS events, min(e.id) AS first, max(e.id) AS last
    FROM file_meta m LEFT JOIN events e ON e.session = m.session GROUP BY m.session
)
SELECT s.session, {agent}, {job}, {task}, f.ts, l.ts, s.events, CASE WHEN l.event IS 'end' THEN 'ended' ELSE 'open' END, l.outcome
FROM seen s LEFT JOIN events f ON f.id = s.first LEFT JOIN events l ON l.id = s.last
WHERE (:agent IS NULL OR EXISTS (SELECT 1 FROM events e WHERE e.session = s.session AND e.agent = :agent))
  AND (:job IS NULL OR EXISTS (SELECT 1 FROM events e WHERE e.session = s.session AND e.job = :job))
  AND (NOT :only_open OR l.event IS NOT 'end')
ORDER BY l.ts DESC, s.session DESC
"""
_FIRST = "(SELECT e.{0} FROM events e WHERE e.session = s.session AND e.{0} IS NOT NULL ORDER BY e.id LIMIT 1)"


@dataclass(frozen=True, slots=True)
class SessionSeen:
    """A session as a list shows it, with the moments of its first and last event, None where there is none yet.

    Agent, job and task are the first that its events name. Its state is `open`, or `ended` where nothing came after its
    end, and the outcome is what its end says.
    """

    session: str
    agent: str | None
    job: str | None
    task: str | None
    started: str | None
    last: str | None
    events: int
    state: str
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class SessionList:
    """Sessions, the one with the newest event first, how many fit in all, and how far that can be trusted."""

    sessions: tuple[SessionSeen, ...]
    total: int
    degraded: tuple[str, ...] = ()


_T = TypeVar("_T")
#: Bytes at the beginning and before the offset that must still be the same for reading on.
_SAMPLE = 1024
_TEXT_COLUMNS = "content, tool, terms, agent"
_COLUMNS = "session, offset, seq, ts, job, task, agent, type, event, role, tool, ok, outcome, injected, content, terms"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?{', ?' * _COLUMNS.count(',')})"
_INDEX_ROWS = f"INSERT INTO events_fts (rowid, {_TEXT_COLUMNS}) SELECT id, {_TEXT_COLUMNS} FROM events WHERE id > ?"
_UNINDEX = f"INSERT INTO events_fts (events_fts, rowid, {_TEXT_COLUMNS}) SELECT 'delete', id, {_TEXT_COLUMNS} FROM events WHERE session = ?"


class SessionIndex:
    """The index of a vault's sessions; it is opened when it is first used."""

    def __init__(self, machine: Path, seal: bytes) -> None:
        self.path = machine / SESSIONS_DATABASE
        self._mark = sign(seal, b"sessions") if seal else None
        self.notices: list[str] = []
        self._files = SessionFiles(machine)
        self._opened: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the database; it is opened again when it is used again."""
        if self._opened:
            self._opened.close()
            self._opened = None

    def sync(self, session: str | None = None) -> int:
        """Index new events of all session files or of one; return the number of events."""
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

        def find(connection: sqlite3.Connection) -> tuple[tuple[SessionHit, ...], list[str]]:
            events = EventFinder(connection, wanted, sessions, with_injected=with_injected)
            return events.find(query, limit, every_event=every_event) if query.strip() else (events.newest(limit), [])

        hits, notes = self._use(find)
        self.notices += notes
        return hits

    def scrub(self) -> bool:
        """Leave no byte of deleted events in the file; return whether that was done."""
        self.sync()
        return self._use(lambda connection: scrub(connection, "events_fts"))

    def seen(
        self, *, only_open: bool = False, agent: str | None = None, job: str | None = None
    ) -> tuple[SessionSeen, ...]:
        """Return the sessions that fit, the one with the newest event first; those without any come last."""
        statement = _STATEMENT.format(**{name: _FIRST.format(name) for name in ("agent", "job", "task")})
        wanted = {"only_open": only_open, "agent": agent, "job": job}
        rows = self._use(lambda connection: connection.execute(statement, wanted).fetchall())
        return tuple(SessionSeen(*row) for row in rows)

    def _use(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return the result of `work` with the database; a damaged one is made anew, and `work` called again."""
        seen = identify_file(self.path)
        try:
            return work(self._connection())
        except sqlite3.DatabaseError as exc:
            if not is_damage(exc):
                raise
        self.close()
        if replace_damaged(self.path, seen, _TABLES.lock):
            self.notices.append(f"{self.path.name} was damaged; it was made again from the sessions")
        self._sync(self._connection(), None)
        return work(self._connection())

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            try:
                self._opened, notices = open_database(self.path, _TABLES, BUSY_SECONDS, self._mark)
                self.notices += notices
            except (sqlite3.OperationalError, OSError, VaultBusy) as exc:
                if is_damage(exc):
                    raise
                self.notices.append(f"{self.path.name} cannot be used ({exc}); everything was read for this one search")
                self._opened, _ = open_database(MEMORY, _TABLES, BUSY_SECONDS, None)
        return self._opened

    def _sync(self, connection: sqlite3.Connection, only: str | None) -> int:
        there, events = self._files.ids(), 0
        try:
            for session in there if only is None else [only] if only in there else []:
                events += self._sync_file(connection, session)
            if only is None:
                gone = {row[0] for row in connection.execute("SELECT session FROM file_meta")} - set(there)
                for session in sorted(gone):
                    with transaction(connection):
                        _forget(connection, session)
        except (sqlite3.OperationalError, VaultBusy) as exc:
            if is_damage(exc):
                raise
            self.notices.append(f"the newest events may be missing: {exc}")
        return events

    def _sync_file(self, connection: sqlite3.Connection, session: str) -> int:
        path = self._files.path(session)
        try:
            if _find_offset(connection, path, session) is None:
                return 0
            with transaction(connection):
                # Another process may have been faster meanwhile.
                offset = _find_offset(connection, path, session)
                return 0 if offset is None else _store(connection, path, session, offset)
        except FileNotFoundError:
            return 0


def _find_offset(connection: sqlite3.Connection, path: Path, session: str) -> int | None:
    """Return the offset from which a session's file has to be read, None if it has not changed."""
    known = connection.execute(
        "SELECT size, mtime, inode, offset, sample FROM file_meta WHERE session = ?", (session,)
    ).fetchone()
    if known is None:
        return 0
    *seen, offset, sample = known
    stat = path.stat()
    if seen == [stat.st_size, to_int64(stat.st_mtime_ns), to_int64(stat.st_ino)]:
        return None
    return offset if stat.st_size > seen[0] and _sample(path, offset) == sample else 0


def _forget(connection: sqlite3.Connection, session: str) -> None:
    connection.execute(_UNINDEX, (session,))
    connection.execute("DELETE FROM events WHERE session = ?", (session,))
    connection.execute("DELETE FROM file_meta WHERE session = ?", (session,))


def _store(connection: sqlite3.Connection, path: Path, session: str, offset: int) -> int:
    """Read a session's file from an offset to its end; return the number of events."""
    stat = path.stat()
    if offset == 0:
        _forget(connection, session)
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()

    def rows() -> Iterator[tuple[object, ...]]:
        nonlocal offset
        for line in read_lines(path, offset):
            event = None
            try:
                event = line.parse()
            except NoEvent:
                if line.text is not None and not line.text.endswith(b"\n"):
                    return  # what is unfinished is read the next time
            offset = line.end
            if event:
                yield _row(event, session, line.offset)

    count = connection.executemany(_INSERT, rows()).rowcount
    connection.execute(_INDEX_ROWS, (last,))
    seen = (stat.st_size, to_int64(stat.st_mtime_ns), to_int64(stat.st_ino))
    connection.execute(
        "INSERT OR REPLACE INTO file_meta (session, size, mtime, inode, offset, sample) VALUES (?, ?, ?, ?, ?, ?)",
        (session, *seen, offset, _sample(path, offset)),
    )
    return max(0, count)


def _row(event: Event, session: str, offset: int) -> tuple[object, ...]:
    text = searchable(event)
    if event.injected == "part":
        text = remove_injected(text)
    text = printable(text).replace("\0", " ")
    terms = extra_terms(text) if has_cjk(text) else None
    kind = (event.ts, event.job, event.task, event.agent, event.type, event.event, event.role, event.tool)
    outcome = printable(outcome_of(event) or "") or None if event.event == "end" else None
    return (session, offset, event.seq, *kind, event.ok, outcome, event.injected == "whole", text, terms)


def _sample(path: Path, offset: int) -> bytes:
    """Return a fingerprint of what was read: its beginning and its end."""
    import hashlib

    with open_for_reading(path) as file:
        head = file.read(min(offset, _SAMPLE))
        file.seek(max(0, offset - _SAMPLE))
        tail = file.read(min(offset, _SAMPLE))
    return hashlib.sha256(head + b"\n" + tail, usedforsecurity=False).digest()
