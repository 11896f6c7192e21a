"""Open, check, replace and scrub the databases of the machine folder."""

import contextlib
import errno
import itertools
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.regular_files import SIDE_FILES, open_regular
from memory_kb.vault import hold_lock

#: Seconds a statement waits for another process's commit.
BUSY_SECONDS = 30.0
#: In the place of a path: an index in memory, for a moment.
MEMORY = Path(":memory:")
#: The lock file of the process that writes to the index, beside the database.
LOCK = "index.lock"
#: Called with a new index and its path; copies into it what can be known without reading the notes.
Fill = Callable[[sqlite3.Connection, Path], None]
#: The key of the table `meta` under which a database says by whom it was made.
MADE_HERE = "made_here"


class Schema(NamedTuple):
    """The tables of a database: its application id and version, what makes them anew, and the lock beside it.

    One of them is `meta`, with facts about the database by their keys. A new file that `is_private` can be read by its
    owner alone.
    """

    header: tuple[int, int]
    script: str
    lock: str
    is_private: bool = False


_DAMAGE = lazy_regex(
    "malformed|not a database|disk image|vtable constructor failed|no such (?:table|column)|Could not decode|invalid fts5"
)
#: Bytes of a page. With pages of twice the usual size a first index takes a tenth less time, and the file is smaller.
_PAGE_SIZE = 8_192
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
    path: Path, schema: Schema, wait: float, mark: str | None, fill: Fill | None = None
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Open a database, making it anew if needed; return the connection and sentences about why it was made anew.

    One without `mark` was made on another machine and is not used. `fill` is called with a new one.
    """
    if path == MEMORY:
        connection = connect_sqlite(path)
        _make_current(connection, schema, None)
        return connection, ()
    _make_private(path, schema)
    current = _open_if_current(path, schema, wait, mark)
    if current:
        return current, ()
    # Other processes may be opening it, too.
    with hold_lock(path.with_name(schema.lock), wait):
        notices = []
        if ending := _find_foreign(path, schema, mark):
            why = "was not a usable index" if ending == ".broken" else "was not made by this machine"
            notices.append(f"{path.name} {why}; it is kept as {_set_aside(path, ending)} and rebuilt")
        _make_private(path, schema)
        connection = connect_sqlite(path, wait)
        with _closing_on_error(connection):
            _, version = read_version(connection)
            if version not in (0, schema.header[1]):
                said = f"is of version {version}, this program writes {schema.header[1]}"
                notices.append(f"{path.name} {said}; it is rebuilt")
            _make_current(connection, schema, mark)
            if fill and not version:
                fill(connection, path)
        return connection, tuple(notices)


def _make_private(path: Path, schema: Schema) -> None:
    """Make the file of a private database where there is none, as SQLite would make one that others may read."""
    if schema.is_private and not path.exists():
        os.close(open_regular(path, os.O_RDWR | os.O_CREAT, 0o600))


def _open_if_current(place: Path | str, schema: Schema, wait: float, mark: str | None) -> sqlite3.Connection | None:
    """Return a connection to a database of this version that this machine made, or None."""
    connection = connect_sqlite(place, wait)
    with _closing_on_error(connection):
        if read_version(connection) == schema.header and mark in (None, read_meta(connection, MADE_HERE)):
            return connection
    connection.close()
    return None


def open_or_read(
    path: Path, schema: Schema, wait: float, mark: str | None, fill: Fill
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Call `open_database`, or read a database as it is, without the files that SQLite keeps beside it.

    There may be no room or no right for these. It is an error if what is in them would be missing.
    """
    try:
        return open_database(path, schema, wait, mark, fill)
    except sqlite3.DatabaseError as exc:
        is_whole = _has_content(path) and not _has_content(path.with_name(f"{path.name}-wal"))
        if not is_whole or is_damage(exc) or "locked" in str(exc):
            raise
        frozen = _open_if_current(f"{path.absolute().as_uri()}?immutable=1", schema, 0.0, mark)
        if frozen is None:
            raise
        return frozen, ()


def read_meta(connection: sqlite3.Connection, key: str) -> str | None:
    """Return a fact about a database, or None."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def put_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Store a fact about a database."""
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def _find_foreign(path: Path, schema: Schema, mark: str | None) -> str:
    """Return the ending for setting aside a file that is no database of ours; empty if the file can be used."""
    if not path.exists():
        return ""
    with contextlib.closing(connect_sqlite(path)) as connection:
        header = read_version(connection)
        if header == schema.header:
            return "" if mark in (None, read_meta(connection, MADE_HERE)) else ".foreign"
        has_tables = connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        return ".broken" if has_tables and header[0] != schema.header[0] else ""


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _make_current(connection: sqlite3.Connection, schema: Schema, mark: str | None) -> None:
    """Make the tables in one transaction and with a write-ahead log, unless they are of this version."""
    connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")  # of a new file; another keeps its own
    # SQLite refuses to change to a write-ahead log while another connection is open.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as exc:
            if "locked" not in str(exc) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
    with transaction(connection):
        if read_version(connection) != schema.header:
            make_tables(connection, schema, mark)


def make_tables(connection: sqlite3.Connection, schema: Schema, mark: str | None) -> None:
    """Make the tables anew inside the transaction that is open."""
    statement = ""
    for line in schema.script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    if mark:
        put_meta(connection, MADE_HERE, mark)
    application_id, version = schema.header
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.execute(f"PRAGMA user_version = {version}")


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
    return isinstance(error, sqlite3.Error) and _DAMAGE.search(str(error)) is not None


def scrub(connection: sqlite3.Connection, full_text: str) -> bool:
    """Merge a full-text index into one segment and rewrite the file; return whether nothing deleted is left in it.

    It is not where another process still reads the write-ahead log. Rows without a key of their own may be renumbered.
    """
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"INSERT INTO {full_text} ({full_text}) VALUES ('optimize')")
    connection.execute("VACUUM")
    (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy
