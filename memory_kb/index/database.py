"""Open, check, replace and scrub the databases of the machine folder."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memory_kb.index.schema import APPLICATION_ID, DROP, MADE_HERE, SCHEMA_VERSION, create_statements
from memory_kb.vault import hold_lock

#: Seconds a statement waits for another process's commit.
BUSY_SECONDS = 30.0
#: The index in a machine folder.
DATABASE = ".memory.db"
#: In the place of a path: an index in memory, for a moment.
MEMORY = Path(":memory:")
#: The lock file of the process that writes to the index, beside the database.
LOCK = "index.lock"
#: Called with a new index and its path; copies into it what can be known without reading the notes.
Fill = Callable[[sqlite3.Connection, Path], None]
_OURS = (APPLICATION_ID, SCHEMA_VERSION)
_DAMAGE = (
    "malformed",
    "not a database",
    "disk image",
    "vtable constructor failed",
    "no such table",
    "no such column",
    "Could not decode",
    "invalid fts5",
)
#: Bytes of a page. With pages of twice the usual size a first index takes a tenth less time, and the file is smaller.
PAGE_SIZE = 8_192
SIDE_FILES = ("", "-wal", "-shm", "-journal")
#: With less room SQLite cannot begin to work: its shared memory alone takes half of this.
_LEAST_ROOM = 65_536


def connect_sqlite(place: Path | str, wait: float = 0.0) -> sqlite3.Connection:
    """Return a connection in autocommit mode with our settings, to a path or a URI.

    Nothing is checked yet. A statement waits up to `wait` seconds for another process, `BUSY_SECONDS` with 0.
    """
    connection = sqlite3.connect(
        place,
        uri=isinstance(place, str),
        timeout=wait or BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    with _closing_on_error(connection):
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
        except UnicodeDecodeError as exc:  # the damaged name of a table or an index, in what SQLite says of it
            raise sqlite3.DatabaseError("malformed database schema") from exc
        connection.execute("PRAGMA cache_size = -16000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


@contextlib.contextmanager
def _closing_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def explain_unusable(error: Exception, path: Path) -> tuple[str, str]:
    """Return why a database cannot be used, and what to do about it.

    SQLite reports a full disk as many different errors, so the free space of the disk is checked.
    """
    import shutil

    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    try:
        is_full = shutil.disk_usage(path.parent).free < _LEAST_ROOM
    except OSError:
        is_full = False
    if is_full or "is full" in reason or getattr(error, "errno", None) == errno.ENOSPC:
        return f"the disk is full ({reason})", "make room on the disk, or set index.path in your own configuration"
    return reason, "check the folder's permissions, or set index.path in your own configuration"


def read_version(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and schema version. A file that is no database raises an error."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def open_database(
    path: Path, tokenizer: str, wait: float, mark: str | None, fill: Fill
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Open the index, making it anew if needed; return the connection and sentences about why it was made anew.

    An index without `mark` was made on another machine and is not used. `fill` is called with a new index.
    """
    if path == MEMORY:
        connection = connect_sqlite(path)
        create_index_tables(connection, tokenizer)
        return connection, ()
    current = _open_current(path, wait, mark)
    if current:
        return current, ()
    # Other processes may be opening it, too.
    with hold_lock(path.with_name(LOCK), wait):
        return _remake(path, tokenizer, wait, mark, fill)


def _open_current(path: Path, wait: float, mark: str | None) -> sqlite3.Connection | None:
    """Return a connection to an index of this version that this machine made, or None.

    Where there is no room or no right for the files that SQLite keeps beside it, it can be read all the same, as it is.
    """
    try:
        return _open_if_current(path, wait, mark)
    except sqlite3.DatabaseError as exc:
        is_whole = _has_content(path) and not _has_content(path.with_name(f"{path.name}-wal"))
        if is_damage(exc) or "locked" in str(exc) or not is_whole:
            raise
    return _open_if_current(f"{path.absolute().as_uri()}?immutable=1", wait, mark)


def _open_if_current(place: Path | str, wait: float, mark: str | None) -> sqlite3.Connection | None:
    connection = connect_sqlite(place, wait)
    with _closing_on_error(connection):
        if read_version(connection) == _OURS and mark in (None, _read_mark(connection)):
            return connection
    connection.close()
    return None


def _remake(
    path: Path, tokenizer: str, wait: float, mark: str | None, fill: Fill
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Make the index anew.

    A file that is no database, or not ours, is moved aside. An index of another version is emptied inside a
    transaction; vectors in it stay.
    """
    notices: list[str] = []
    if ending := _find_foreign(path, mark):
        why = "was not a usable index" if ending == ".broken" else "was not made by this machine"
        notices.append(f"{path.name} {why}; it is kept as {_set_aside(path, ending)} and rebuilt")
    connection = connect_sqlite(path, wait)
    with _closing_on_error(connection):
        application, version = read_version(connection)
        if (application, version) != _OURS:
            if version:
                notices.append(
                    f"{path.name} is of version {version}, this program writes {SCHEMA_VERSION}; it is rebuilt"
                )
            create_index_tables(connection, tokenizer)
            if not version:
                fill(connection, path)
        if mark:
            connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", (MADE_HERE, mark))
    return connection, tuple(notices)


def _read_mark(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (MADE_HERE,)).fetchone()
    return row[0] if row else None


def _find_foreign(path: Path, mark: str | None) -> str:
    """Return the ending for setting aside a file that is no index of ours; empty if the file can be used."""
    if not path.exists():
        return ""
    with contextlib.closing(connect_sqlite(path)) as connection:
        application, version = read_version(connection)
        objects = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (application, version) != _OURS:
            return ".broken" if objects and application != APPLICATION_ID else ""
        rows = connection.execute("SELECT 1 FROM file_meta UNION ALL SELECT 1 FROM chunks LIMIT 1").fetchone()
        held = _read_mark(connection)
        return ".foreign" if mark and held != mark and (held or rows) else ""


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def is_frozen(connection: sqlite3.Connection) -> bool:
    """Return whether a connection cannot write, and reads the file as it was when it was opened."""
    try:
        return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal")
    except sqlite3.Error:
        return False


def create_index_tables(connection: sqlite3.Connection, tokenizer: str) -> None:
    """Make the tables of the index anew, unless another process just did."""
    create_tables(connection, DROP + create_statements(tokenizer), _OURS, lambda: read_version(connection) == _OURS)


def create_tables(
    connection: sqlite3.Connection, script: str, version: tuple[int, int], is_current: Callable[[], bool]
) -> None:
    """Run a script that makes tables, in one transaction and with a write-ahead log, unless they are current."""
    connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")  # of a new file; another keeps its own
    _begin_logging(connection)
    with transaction(connection):
        if not is_current():
            run_script(connection, script)
            set_version(connection, version)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write within one transaction, which Ctrl-C at any moment leaves closed."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise


def set_version(connection: sqlite3.Connection, version: tuple[int, int] = _OURS) -> None:
    """Record that the tables are ours, and their version."""
    connection.execute(f"PRAGMA application_id = {version[0]}")
    connection.execute(f"PRAGMA user_version = {version[1]}")


def _begin_logging(connection: sqlite3.Connection) -> None:
    """Change to a write-ahead log, which SQLite refuses while another connection is open."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as exc:
            if "locked" not in str(exc) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run several statements inside the transaction that is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def identify_file(path: Path) -> tuple[int, int] | None:
    """Return what distinguishes the file at a path from one put in its place, None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def replace_damaged(path: Path, seen: tuple[int, int] | None, lock: str = LOCK) -> str | None:
    """Set a damaged database aside; return its new name.

    This is for errors that only a query finds. What was found damaged follows from `seen`; if there
    is another file in its place, somebody else was faster, and nothing is done.
    """
    with hold_lock(path.with_name(lock), BUSY_SECONDS):
        return _set_aside(path, ".broken") if identify_file(path) == seen else None


def _set_aside(path: Path, ending: str) -> str:
    kept = path.with_name(path.name + ending)
    for number in itertools.count(2):
        if not kept.exists():
            break
        kept = path.with_name(f"{path.name}{ending}-{number}")
    for side in SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path.with_name(path.name + side), kept.with_name(kept.name + side))
    return kept.name


def is_damage(error: Exception) -> bool:
    """Return whether an error means that a database is broken. Other errors mean that it is busy or misused."""
    return isinstance(error, sqlite3.Error) and any(sign in str(error) for sign in _DAMAGE)


def scrub(connection: sqlite3.Connection, full_text: str) -> bool:
    """Merge a full-text index into one segment and rewrite the file; return whether nothing deleted is left in it.

    It is not where another process still reads the write-ahead log. Rows without a key of their own may be renumbered.
    """
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"INSERT INTO {full_text} ({full_text}) VALUES ('optimize')")
    connection.execute("VACUUM")
    (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy
