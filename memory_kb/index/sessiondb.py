"""The tables of `.sessions.db`, and opening it whatever is found in its place."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

from memory_kb.index.database import BUSY_SECONDS, connect, is_damage, read_version, run_script
from memory_kb.locks import hold_lock

#: "mkbs", so that a foreign SQLite file in our place is known as one.
APPLICATION_ID = 0x6D6B6273
SCHEMA_VERSION = 1
_LOCK = "sessions.lock"
_SCHEMA = """
DROP TABLE IF EXISTS events_fts;
DROP TABLE IF EXISTS events;
DROP TABLE IF EXISTS file_meta;

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


def open_sessions(path: Path) -> sqlite3.Connection:
    """Open the index of the sessions, making it where there is none of this version.

    Raises:
        sqlite3.DatabaseError: what stands there is no database, or damaged.
    """
    if not path.exists():
        path.touch(mode=0o600)  # what is said in sessions is nobody else's business
    connection = connect(path)
    try:
        if read_version(connection) != (APPLICATION_ID, SCHEMA_VERSION):
            with hold_lock(path.with_name(_LOCK), BUSY_SECONDS):
                _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def open_in_memory() -> sqlite3.Connection:
    """Open an index that is gone when it is closed."""
    connection = connect(Path(":memory:"))
    _create(connection)
    return connection


def _create(connection: sqlite3.Connection) -> None:
    _begin_logging(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = read_version(connection)
        _check_owner(connection, found[0])
        if found != (APPLICATION_ID, SCHEMA_VERSION):
            run_script(connection, _SCHEMA)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _begin_logging(connection: sqlite3.Connection) -> None:
    """Change to a write-ahead log, which SQLite refuses while anybody else so much as looks."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as exc:
            if "locked" not in str(exc) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _check_owner(connection: sqlite3.Connection, application: int) -> None:
    """Raise if the tables are somebody else's."""
    if application != APPLICATION_ID and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise sqlite3.DatabaseError("not a database of ours")


def set_aside(path: Path, inode: int | None) -> bool:
    """Move a damaged database out of the way, unless another process just did.

    It is kept once, beside: it may be somebody else's. `inode` is that of the damaged file.
    """
    with hold_lock(path.with_name(_LOCK), BUSY_SECONDS):
        try:
            if inode is not None and path.stat().st_ino != inode and _is_usable(path):
                return False
        except FileNotFoundError:
            return False
        for side in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + side).unlink(missing_ok=True)
        path.replace(path.with_name(path.name + ".broken"))
        return True


def _is_usable(path: Path) -> bool:
    connection = connect(path)
    try:
        return read_version(connection)[0] in (0, APPLICATION_ID)
    except sqlite3.DatabaseError as exc:
        if not is_damage(exc):
            raise
        return False
    finally:
        connection.close()
