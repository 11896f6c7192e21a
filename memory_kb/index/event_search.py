"""Search the events of sessions and list sessions, in `.sessions.db`."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from memory_kb.errors import VaultBusy
from memory_kb.index.database import (
    BUSY_SECONDS,
    connect,
    create_tables,
    identify_file,
    is_damage,
    read_version,
    replace_damaged,
    scrub,
    transaction,
)
from memory_kb.injected import strip
from memory_kb.model import wrap
from memory_kb.plainfiles import open_plain, read_plain
from memory_kb.reports import SessionHit
from memory_kb.seal import Seal
from memory_kb.store.events import Event, EventFilter, NoEvent, searchable
from memory_kb.store.session_log import SessionFiles, outcome_of, read_lines
from memory_kb.text import MARKED_WORD, cjk_terms, cut_cjk, has_cjk, printable, query_terms, shorten
from memory_kb.vault import hold_lock

#: "mkbs", so that a foreign SQLite file in our place is known as one.
APPLICATION_ID = 0x6D6B6273
SCHEMA_VERSION = 3
_LOCK = "sessions.lock"
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


def open_sessions(path: Path, mark: str = "") -> sqlite3.Connection:
    """Open the index of the sessions, making it where there is none of this version that bears this mark."""
    if not path.exists():
        # What is said in sessions is nobody else's business.
        os.close(open_plain(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = connect(path)
    try:
        if not _is_current(connection, mark):
            with hold_lock(path.with_name(_LOCK), BUSY_SECONDS):
                _create(connection, mark)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_current(connection: sqlite3.Connection, mark: str) -> bool:
    if read_version(connection) != (APPLICATION_ID, SCHEMA_VERSION):
        return False
    row = connection.execute("SELECT value FROM meta WHERE key = 'made_here'").fetchone()
    return row is not None and row[0] == mark


def _create(connection: sqlite3.Connection, mark: str = "") -> None:
    if read_version(connection)[0] != APPLICATION_ID and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise sqlite3.DatabaseError("not a database of ours")
    script = f"{_SCHEMA}INSERT INTO meta VALUES ('made_here', '{mark}');\n"
    create_tables(connection, script, (APPLICATION_ID, SCHEMA_VERSION), lambda: _is_current(connection, mark))


_PIECE = re.compile(r'"[^"]*"\*?|[^\s"()]+|[()]')
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_SYNTAX = ("fts5:", "no such column", "unterminated string", "unknown special query", "syntax error")
#: A match in the name of the tool says less than one in the text.
_WEIGHTS = "1.0, 0.5, 1.0, 0.0"
_SNIPPET = "snippet(events_fts, 0, '>>>', '<<<', '...', 16)"
_FIELDS = "e.session, e.seq, e.ts, e.job, e.task, e.agent, e.type, e.event, e.role, e.tool, e.ok, e.injected, e.offset"
_PLAIN_LENGTH = 120
_COLUMN = re.compile(r"(?:^|[\s(])(?:content|tool|agent):\w")
#: Of a longer query, the first different words count.
_MOST_TERMS = 200
#: Groups the events of a session by whose words they are: a person's, the agent's, calls, results, and the rest.
_EVIDENCE = "CASE WHEN e.type = 'event' AND e.role = 'assistant' THEN 'message' ELSE e.type END, e.role = 'user'"


def _conditions(wanted: EventFilter, *, with_injected: bool) -> tuple[str, tuple[object, ...]]:
    parts: list[str] = [] if with_injected else ["NOT e.injected"]
    values: list[object] = []
    if wanted.types:
        marks = ", ".join("?" * len(wanted.types))
        parts.append(f"(e.type IN ({marks}) OR e.event IN ({marks}))")
        values += [*wanted.types, *wanted.types]
    for name in ("agent", "job", "task", "session"):
        if getattr(wanted, name) is not None:
            parts.append(f"e.{name} = ?")
            values.append(getattr(wanted, name))
    for sign, moment in ((">=", wanted.since), ("<", wanted.until)):
        if moment is not None:
            parts.append(f"e.ts {sign} ?")
            values.append(moment)
    return "".join(f" AND {part}" for part in parts), tuple(values)


class _EventFinder:
    """The events of an index that pass some filters.

    `sessions` are those that may be found; all when None.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        wanted: EventFilter,
        sessions: Sequence[str] | None,
        *,
        with_injected: bool,
    ) -> None:
        self._connection = connection
        self._where, self._values = _conditions(wanted, with_injected=with_injected)
        if sessions is not None:
            self._where += " AND e.session IN (SELECT value FROM json_each(?))"
            self._values += (json.dumps(sessions),)

    def newest(self, limit: int) -> tuple[SessionHit, ...]:
        rows = self._connection.execute(
            f"SELECT {_FIELDS}, substr(e.content, 1, 2000) FROM events e WHERE 1{self._where} "
            "ORDER BY e.ts DESC, e.id DESC LIMIT ?",
            (*self._values, limit),
        )
        return tuple(
            _make(rank, fields, 0.0, shorten(text, _PLAIN_LENGTH)) for rank, (*fields, text) in enumerate(rows, 1)
        )

    def find(self, query: str, limit: int, *, every_event: bool) -> tuple[tuple[SessionHit, ...], list[str]]:
        """Return the best hits, and what to say about the query.

        Plain words are alternatives, the rarer the better; a query with operators is taken at its word if
        FTS5 understands it. A session is one hit, its best event, unless `every_event` is set.
        """
        problem = "there is no word in the query"
        for expression in expressions(query):
            try:
                best = (self._best_events if every_event else self._best_sessions)(expression, limit)
            except sqlite3.OperationalError as exc:
                if not str(exc).startswith(_SYNTAX):
                    raise
                problem = f"the query is not in the query language ({str(exc).removeprefix('fts5: ')})"
                continue
            hits = enumerate(best, 1)
            return tuple(self._hit(rank, key, score, expression, query) for rank, (key, score) in hits), []
        return (), [problem]

    def _best_events(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """Return the row ids and scores of the best events."""
        statement = (
            f"SELECT e.id, -bm25(events_fts, {_WEIGHTS}) FROM events_fts JOIN events e ON e.id = events_fts.rowid "
            f"WHERE events_fts MATCH ?{self._where} ORDER BY bm25(events_fts, {_WEIGHTS}), e.ts DESC, e.id DESC LIMIT ?"
        )
        return self._connection.execute(statement, (expression, *self._values, limit)).fetchall()

    def _best_sessions(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """Return the row id of the best event of each of the best sessions, and the session's score.

        What was asked, said, done and seen is evidence of its own: the score of a session is the sum of
        the best event of each.
        """
        statement = (
            f"WITH hits AS MATERIALIZED (SELECT rowid AS id, -bm25(events_fts, {_WEIGHTS}) AS score FROM events_fts "
            "WHERE events_fts MATCH ?) "
            "SELECT e.session, e.id, max(h.score), max(e.ts) FROM hits h JOIN events e ON e.id = h.id "
            f"WHERE 1{self._where} GROUP BY e.session, {_EVIDENCE}"
        )
        evidence: dict[str, list[tuple[float, int, str]]] = {}
        for session, key, score, ts in self._connection.execute(statement, (expression, *self._values)):
            evidence.setdefault(session, []).append((score, key, ts))
        ranked = sorted(
            (sum(score for score, _, _ in rows), max(ts for *_, ts in rows), session, max(rows)[1])
            for session, rows in evidence.items()
        )
        return [(key, total) for total, _, _, key in ranked[::-1][:limit]]

    def _hit(self, rank: int, key: int, score: float, expression: str, query: str) -> SessionHit:
        *fields, snippet, content = self._connection.execute(
            f"SELECT {_FIELDS}, {_SNIPPET}, CASE WHEN e.terms IS NULL THEN '' ELSE e.content END "
            "FROM events_fts JOIN events e ON e.id = events_fts.rowid WHERE events_fts MATCH ? AND events_fts.rowid = ?",
            (expression, key),
        ).fetchone()
        text = str(snippet)
        return _make(rank, fields, score, text if ">>>" in text else _cjk_snippet(content, query) or text)


def expressions(query: str) -> Iterator[str]:
    """Yield the query as it is where it has operators, then its words as alternatives.

    Example:
        >>> list(expressions("edge-case foo.bar"))
        ['"edge" OR "case" OR "foo" OR "bar"']
        >>> next(expressions("検索機能 AND test"))
        '("検索 索機 機能") AND test'
    """
    pieces = _PIECE.findall(query)
    if any(piece in _OPERATORS for piece in pieces) or _COLUMN.search(query):
        cut = (_cjk_phrase(piece) if has_cjk(piece) else piece for piece in pieces)
        yield " ".join(cut) if has_cjk(query) else query
    terms = [term for piece in pieces if piece not in _OPERATORS for term in _terms(piece)]
    if terms:
        yield " OR ".join(list(dict.fromkeys(terms))[:_MOST_TERMS])


def _terms(piece: str) -> Iterator[str]:
    """Yield a piece of a query as it is if it is a phrase or a word, else the words in it."""
    words = re.findall(r"\w+", piece)
    if has_cjk(piece):
        yield _cjk_phrase(piece)
    elif len(words) == 1 or piece.startswith('"'):
        text = piece.rstrip("*").replace('"', "")
        yield f'"{text}"{"*" if piece.endswith("*") else ""}'
    else:
        yield from (f'"{word}"' for word in words)


def _cjk_phrase(text: str) -> str:
    """Return an expression for words in a script without spaces."""
    phrases = []
    for word in MARKED_WORD.findall(text):
        for piece, is_cjk in cut_cjk(word):
            if not is_cjk:
                phrases.append(f'"{piece}"')
            else:
                terms, is_short = query_terms(piece)
                phrases.append(f'"{" ".join(terms)}"' + "*" * is_short)
    return f"({' AND '.join(phrases)})"


def _cjk_snippet(content: str, query: str) -> str | None:
    """Return the surroundings of the first of the query's CJK words in a text."""
    for word in filter(has_cjk, MARKED_WORD.findall(query)):
        head, found, tail = content.partition(word)
        if found:
            before, after = "..." * (len(head) > 40), "..." * (len(tail) > 40)
            return f"{before}{head[-40:]}>>>{word}<<<{tail[:40]}{after}"
    return None


def _make(rank: int, fields: Sequence[Any], score: float, snippet: str) -> SessionHit:
    *named, ok, injected, offset = fields
    is_ok = None if ok is None else bool(ok)
    return SessionHit._make((rank, *named, is_ok, bool(injected), offset, round(float(score), 6), snippet))


#: An event that comes after the end opens the session again.
_STATEMENT = """
WITH seen AS (
    SELECT m.session, count(e.id) AS events, min(e.id) AS first, max(e.id) AS last
    FROM file_meta m LEFT JOIN events e ON e.session = m.session GROUP BY m.session
)
SELECT s.session, {agent}, {job}, {task}, f.ts, l.ts, s.events, CASE WHEN l.event IS 'end' THEN 'ended' ELSE 'open' END, l.offset
FROM seen s LEFT JOIN events f ON f.id = s.first LEFT JOIN events l ON l.id = s.last
WHERE (:agent IS NULL OR EXISTS (SELECT 1 FROM events e WHERE e.session = s.session AND e.agent = :agent))
  AND (:job IS NULL OR EXISTS (SELECT 1 FROM events e WHERE e.session = s.session AND e.job = :job))
  AND (NOT :only_open OR l.event IS NOT 'end')
ORDER BY l.ts DESC, s.session DESC
"""
_FIRST = "(SELECT e.{0} FROM events e WHERE e.session = s.session AND e.{0} IS NOT NULL ORDER BY e.id LIMIT 1)"


@dataclass(frozen=True, slots=True)
class SessionSeen:
    """A session as a list shows it.

    Attributes:
        agent: who works in it, the first that its events name; job and task likewise.
        started: the moment of its first event; None where there is none yet.
        last: the moment of its last event.
        events: how many there are.
        state: `open`, or `ended` where nothing came after its end.
        outcome: how it went, where its end says so.
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


def _seen(row: Sequence[Any], files: SessionFiles) -> SessionSeen:
    """Return a session; its outcome is among the arguments of its end, which only the session's file has."""
    *fields, offset = row
    one = SessionSeen(*fields)
    if one.state == "open":
        return one
    try:
        event = next(line.parse() for line in read_lines(files.path(one.session), offset))
    except (OSError, NoEvent, StopIteration):
        return one
    return replace(one, outcome=outcome_of(event) if event else None)


_T = TypeVar("_T")
#: Bytes at the beginning and before the offset that must still be the same for reading on.
_SAMPLE = 1024
_TEXT_COLUMNS = "content, tool, terms, agent"
_COLUMNS = "session, offset, seq, ts, job, task, agent, type, event, role, tool, ok, injected, content, terms"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?{', ?' * _COLUMNS.count(',')})"
_INDEX_ROWS = f"INSERT INTO events_fts (rowid, {_TEXT_COLUMNS}) SELECT id, {_TEXT_COLUMNS} FROM events WHERE id > ?"
_UNINDEX = f"INSERT INTO events_fts (events_fts, rowid, {_TEXT_COLUMNS}) SELECT 'delete', id, {_TEXT_COLUMNS} FROM events WHERE session = ?"

Row = tuple[object, ...]


class SessionIndex:
    """The index of a vault's sessions; it is opened when it is first used."""

    def __init__(self, machine: Path, seal: Seal) -> None:
        self.path = machine / ".sessions.db"
        self._mark = seal.sign(b"sessions") if seal.key else ""
        self.notices: list[str] = []
        self._files = SessionFiles(machine)
        self._opened: sqlite3.Connection | None = None

    def close(self) -> None:
        """Give the file back."""
        if self._opened:
            self._opened.close()
            self._opened = None

    def sync(self, session: str | None = None) -> int:
        """Read what the session files have more than the index, of all or of one; return the number of events."""
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
            events = _EventFinder(connection, wanted, sessions, with_injected=with_injected)
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
        return tuple(_seen(row, self._files) for row in rows)

    def _use(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do something with the database, once more from nothing where it is damaged."""
        seen = identify_file(self.path)
        try:
            return work(self._connection())
        except sqlite3.DatabaseError as exc:
            if not is_damage(exc):
                raise
        self.close()
        if replace_damaged(self.path, seen, _LOCK):
            self.notices.append(f"{self.path.name} was damaged; it was made again from the sessions")
        self._sync(self._connection(), None)
        return work(self._connection())

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            try:
                self._opened = open_sessions(self.path, self._mark)
            except (sqlite3.OperationalError, OSError, VaultBusy) as exc:
                if isinstance(exc, sqlite3.Error) and is_damage(exc):
                    raise
                self.notices.append(f"{self.path.name} cannot be used ({exc}); everything was read for this one search")
                self._opened = connect(Path(":memory:"))
                _create(self._opened)
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
            if isinstance(exc, sqlite3.Error) and is_damage(exc):
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
    """Return from where on a session's file has to be read, None where it is as it was."""
    known = connection.execute(
        "SELECT size, mtime, inode, offset, sample FROM file_meta WHERE session = ?", (session,)
    ).fetchone()
    if known is None:
        return 0
    *seen, offset, sample = known
    stat = path.stat()
    if seen == [stat.st_size, wrap(stat.st_mtime_ns), wrap(stat.st_ino)]:
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
    reader = _Reader(path, session, offset)
    connection.executemany(_INSERT, reader.rows())
    connection.execute(_INDEX_ROWS, (last,))
    connection.execute(
        "INSERT OR REPLACE INTO file_meta (session, size, mtime, inode, offset, sample) VALUES (?, ?, ?, ?, ?, ?)",
        (
            *(session, stat.st_size, wrap(stat.st_mtime_ns), wrap(stat.st_ino)),
            *(reader.offset, _sample(path, reader.offset)),
        ),
    )
    return reader.count


class _Reader:
    """Reads the events of a session's file; afterwards `offset` is how far, and `count` how many there were."""

    def __init__(self, path: Path, session: str, offset: int) -> None:
        self._path, self._session = path, session
        self.offset, self.count = offset, 0

    def rows(self) -> Iterator[Row]:
        """Yield a row for each event; a last line that is not finished is left for the next time, unless it is one already."""
        for line in read_lines(self._path, self.offset):
            event = None
            try:
                event = line.parse()
            except NoEvent:
                if line.text is not None and not line.text.endswith(b"\n"):
                    return
            self.offset = line.end
            if event:
                self.count += 1
                yield _row(event, self._session, line.offset)


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

    with read_plain(path) as file:
        head = file.read(min(offset, _SAMPLE))
        file.seek(max(0, offset - _SAMPLE))
        tail = file.read(min(offset, _SAMPLE))
    return hashlib.sha256(head + b"\n" + tail, usedforsecurity=False).digest()
