"""Create the tables of the index; open, check and replace the database."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memory_kb.model import Chunk
from memory_kb.vault import hold_lock

_META = """
-- Facts about the index itself, one per key.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY, -- generation, settings, synced_from, synced_to (ns), indexed_at, last_rowid,
                            -- rowids_used, made_here, and a `passage vectors ...` key for every space of vectors
    value TEXT NOT NULL
) WITHOUT ROWID;
"""

_FILE_META = """
-- One row per indexed file: how it looked when its chunks were made.
CREATE TABLE file_meta (
    path     TEXT PRIMARY KEY, -- as in output: relative to the vault, or ~global/...
    mtime    INTEGER NOT NULL, -- nanoseconds
    size     INTEGER NOT NULL, -- bytes
    inode    INTEGER NOT NULL,
    hash     TEXT NOT NULL,    -- sha256 of the bytes read
    problems TEXT              -- JSON [[line, message], ...] or NULL
) WITHOUT ROWID;
CREATE INDEX file_meta_problems ON file_meta (path) WHERE problems IS NOT NULL;
"""

_CHUNKS = """
-- The searchable pieces, in file order. Chunks of one entry have consecutive rowids, and between
-- two entries at least one rowid is free: neighbours in rowid are neighbours in the text.
-- Everything here follows from a file's bytes and path; rowids do not count as content.
-- They grow: the rowid of a chunk that is gone is not given again before the next rebuild.
CREATE TABLE chunks (
    id                  TEXT GENERATED ALWAYS AS (source || '#' || position) VIRTUAL,
    source              TEXT NOT NULL,    -- file_meta.path
    position            INTEGER NOT NULL, -- counts the chunks of the file from 0
    part                INTEGER NOT NULL, -- counts the chunks of the entry from 0
    entry_id            TEXT NOT NULL,
    kind                TEXT NOT NULL,
    type                TEXT NOT NULL,
    status              TEXT NOT NULL,
    scope               TEXT NOT NULL,
    job                 TEXT,
    task                TEXT,
    learning_type       TEXT NOT NULL,
    importance          REAL NOT NULL,
    reinforcement_count INTEGER NOT NULL,
    seen                TEXT,             -- the day age counts from, or NULL
    is_superseded       INTEGER NOT NULL, -- as its own links say; see supersedes
    char_offset         INTEGER NOT NULL, -- characters from the start of the file
    line                INTEGER NOT NULL, -- first and last line, from 1
    end_line            INTEGER NOT NULL,
    title               TEXT NOT NULL,
    is_titled           INTEGER NOT NULL, -- 0 if the title is only the file's name
    headings            TEXT NOT NULL,    -- the heading path, ' > ' between levels
    content             TEXT NOT NULL,    -- exactly the file's text from char_offset
    tags                TEXT NOT NULL,
    applies_to          TEXT NOT NULL,    -- one glob per line
    dated               TEXT,             -- the entry's day as 2026-03-01
    names               TEXT NOT NULL,    -- the entry's other names, its aliases and its file's, one per line
    title_terms         TEXT,             -- CJK bigrams of the title and the names
    terms               TEXT,             -- bigrams and spelled-out names of the rest
    metadata            TEXT,             -- the frontmatter as JSON, or NULL
    text_tags           TEXT NOT NULL,    -- the #tags of the entry's text, for filters alone
    fault               INTEGER,          -- the line from which its frontmatter cannot be read, or NULL
    supersedes          TEXT              -- JSON of the ids that the entry supersedes, with part 0, or NULL
);
CREATE INDEX chunks_source ON chunks (source);
CREATE INDEX chunks_entry ON chunks (entry_id, scope, job, task, kind) WHERE part = 0;
-- What every context asks for by itself, and what most vaults hold little of.
CREATE INDEX chunks_few_kinds ON chunks (kind) WHERE kind <> 'fact';
CREATE INDEX chunks_few_types ON chunks (learning_type) WHERE learning_type <> 'task';
CREATE INDEX chunks_few_statuses ON chunks (status) WHERE status IN ('proposed', 'rejected', 'retired');
-- What hooks ask for: entries that name files, that cite some, and that people stated.
CREATE INDEX chunks_naming ON chunks (source) WHERE applies_to <> '';
CREATE INDEX chunks_citing ON chunks (source) WHERE part = 0 AND instr(metadata, '"cites"');
CREATE INDEX chunks_stated ON chunks (source) WHERE instr(metadata, '"user_explicit"');
CREATE INDEX chunks_faults ON chunks (source) WHERE fault IS NOT NULL;
CREATE INDEX chunks_supersedes ON chunks (status) WHERE supersedes IS NOT NULL;
"""

_TEXTS = """
-- What the full-text index holds of a chunk; months are spelled out for questions in words.
CREATE VIEW chunk_texts AS SELECT
    rowid AS chunk_rowid,
    title || ' ' || names || ' ' || COALESCE(title_terms, '') AS title,
    headings, content, tags, applies_to,
    CASE WHEN dated IS NULL THEN NULL ELSE dated || ' ' || CAST(substr(dated, 9) AS INTEGER) || ' ' ||
        CASE substr(dated, 6, 2)
            WHEN '01' THEN 'January' WHEN '02' THEN 'February' WHEN '03' THEN 'March' WHEN '04' THEN 'April'
            WHEN '05' THEN 'May' WHEN '06' THEN 'June' WHEN '07' THEN 'July' WHEN '08' THEN 'August'
            WHEN '09' THEN 'September' WHEN '10' THEN 'October' WHEN '11' THEN 'November' ELSE 'December'
        END END AS dated,
    terms, source, id AS chunk_id
FROM chunks;
"""

_FTS = """
CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    title, headings, content, tags, applies_to, dated, terms, source UNINDEXED, chunk_id UNINDEXED,
    content = 'chunk_texts', content_rowid = 'chunk_rowid', tokenize = '{tokenizer}'
);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('hashsize', 16777216);
"""

_EMBEDDING_CACHE = """
-- Vectors by content hash; the one table that a rebuild keeps.
CREATE TABLE IF NOT EXISTS embedding_cache (
    hash       TEXT NOT NULL,
    provider   TEXT NOT NULL,
    model      TEXT NOT NULL,
    dimension  INTEGER NOT NULL,
    embedding  BLOB NOT NULL,    -- float32, little-endian, unit length
    updated_at TEXT NOT NULL,
    PRIMARY KEY (hash, provider, model, dimension)
) WITHOUT ROWID;
"""

DROP = """
DROP TABLE IF EXISTS chunks_fts;
DROP VIEW IF EXISTS chunk_texts;
DROP TABLE IF EXISTS chunks;
DROP TABLE IF EXISTS file_meta;
DROP TABLE IF EXISTS meta;
"""

#: The columns that the full-text index is built from, in the order of its bm25 weights.
TEXT_COLUMNS = ("title", "headings", "content", "tags", "applies_to", "dated", "terms")

INSERT_CHUNK = f"INSERT INTO chunks (rowid, {', '.join(Chunk._fields)}) VALUES (?{', ?' * len(Chunk._fields)})"

_TEXT_LIST = ", ".join(TEXT_COLUMNS)
INDEX_ROWS = f"INSERT INTO chunks_fts (rowid, {_TEXT_LIST}) SELECT chunk_rowid, {_TEXT_LIST} FROM chunk_texts WHERE chunk_rowid BETWEEN ? AND ?"
UNINDEX_FILE = f"INSERT INTO chunks_fts (chunks_fts, rowid, {_TEXT_LIST}) SELECT 'delete', chunk_rowid, {_TEXT_LIST} FROM chunk_texts WHERE source = ?"


def create_statements(tokenizer: str) -> str:
    """Return the statements that make an empty index.

    Example:
        >>> "tokenize = 'porter ascii'" in create_statements("porter ascii")
        True
    """
    return "".join(
        (_META, _FILE_META, _CHUNKS, _TEXTS, _FTS.format(tokenizer=tokenizer.replace("'", "")), _EMBEDDING_CACHE)
    )


#: "mkb1", so that a foreign SQLite file in our place is known as one.
APPLICATION_ID = 0x6D6B6231
#: Versions: 1, the first; 2, is_titled and rowids that grow; 3, text_tags; 4, indexes of what is little; 5, faults;
#: 6, sections instead of passages; 7, supersedes; 10, indexes of what hooks ask for; 11, names; 12, headings below comments.
SCHEMA_VERSION = 12
#: Seconds a statement waits for another process's commit.
BUSY_SECONDS = 30.0
#: The key of `meta` under which an index says by whom it was made; a rebuild keeps it.
MADE_HERE = "made_here"
#: The index in a machine folder.
DATABASE = ".memory.db"
#: In the place of a path: an index in memory, for a moment.
MEMORY = Path(":memory:")
#: The lock of whoever indexes, beside the database.
LOCK = "index.lock"
#: Given a new index and its path: puts in what can be had without reading the notes.
Fill = Callable[[sqlite3.Connection, Path], None]
_DAMAGE = (
    "malformed",
    "not a database",
    "disk image",
    "vtable constructor failed",
    "no such table",
    "Could not decode",
    "invalid fts5",
)
SIDE_FILES = ("", "-wal", "-shm", "-journal")
#: With less room SQLite cannot begin to work: its shared memory alone takes half of this.
_LEAST_ROOM = 65_536


def connect(place: Path | str, wait: float = 0.0) -> sqlite3.Connection:
    """Open a connection in autocommit mode with our settings, to a path or a URI.

    Nothing is checked yet. A statement waits for another process so many seconds, as long as usual with 0.
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


def explain_unusable(error: Exception, path: Path) -> tuple[str, str]:
    """Return why a database cannot be used, and what to do about it.

    SQLite calls a disk without room anything, an I/O error too; so the disk is asked.
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


@contextlib.contextmanager
def _closing_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def read_version(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and schema version. Reading them also finds out a file that is no database."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def open_database(
    path: Path, tokenizer: str, wait: float, mark: str | None, fill: Fill
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Open the index, making or remaking it as needed; one that does not bear `mark` was made elsewhere.

    Return what had to be remade too.
    """
    connection, notices = _open_any(path, tokenizer, wait, fill)
    with _closing_on_error(connection):
        if mark is None or path == MEMORY or _bears(connection, mark):
            return connection, notices
    seen = identify_file(path)
    connection.close()
    with hold_lock(path.with_name(LOCK), wait):
        if identify_file(path) == seen:
            notices += (
                f"{path.name} was not made by this machine; it is kept as {_set_aside(path, '.foreign')} and rebuilt",
            )
    connection, more = _open_any(path, tokenizer, wait, fill)
    with _closing_on_error(connection):
        _bears(connection, mark)
    return connection, notices + more


def _bears(connection: sqlite3.Connection, mark: str) -> bool:
    """Return whether an index bears a mark; an empty one is given it."""
    try:
        held = connection.execute("SELECT value FROM meta WHERE key = ?", (MADE_HERE,)).fetchone()
        if held:
            return bool(held[0] == mark)
        if connection.execute("SELECT 1 FROM file_meta UNION ALL SELECT 1 FROM chunks LIMIT 1").fetchone():
            return False
        connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", (MADE_HERE, mark))
    except sqlite3.OperationalError as exc:
        return not is_damage(exc)  # a disk that is full, or may not be written to, leaves an empty index without it
    return True


def _open_any(path: Path, tokenizer: str, wait: float, fill: Fill) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Open the index, making or remaking it as needed.

    Say what had to be remade, for which another process that indexes is waited for. A file that is not a database, or not ours, is moved aside, under a
    lock, since other processes may be opening it too. An index of another version is emptied
    inside a transaction; vectors in it stay. A new one is given what `fill` finds for it.
    """
    notices: list[str] = []
    if path == MEMORY:
        connection = connect(path)
        create(connection, tokenizer)
        return connection, ()
    usual = _open_usual(path, wait)
    if usual:
        return usual, ()
    if _is_unusable(path):
        with hold_lock(path.with_name(LOCK), wait):
            if _is_unusable(path):
                notices.append(f"{path.name} was not a usable index; it is kept as {_set_aside(path)} and rebuilt")
    connection = connect(path, wait)
    with _closing_on_error(connection):
        application, version = read_version(connection)
        if (application, version) != (APPLICATION_ID, SCHEMA_VERSION):
            if version:
                notices.append(
                    f"{path.name} is of version {version}, this program writes {SCHEMA_VERSION}; it is rebuilt"
                )
            with hold_lock(path.with_name(LOCK), wait):
                create(connection, tokenizer)
                if not version:
                    fill(connection, path)
    return connection, tuple(notices)


def _open_usual(path: Path, wait: float) -> sqlite3.Connection | None:
    """Return a connection to an index as we expect it, or None.

    It is ours and of this version; anything else gives None. Where there is no room or no right for the files
    that SQLite keeps beside it, it can be read all the same, as it is.
    """
    try:
        return _open_checked(path, wait)
    except sqlite3.OperationalError as exc:
        if is_damage(exc) or "locked" in str(exc) or _has_content(path.with_name(f"{path.name}-wal")):
            raise
        if not _has_content(path):
            raise
        frozen = _open_checked(f"{path.absolute().as_uri()}?immutable=1", wait)
        if frozen is None:
            raise
        return frozen


def _open_checked(place: Path | str, wait: float) -> sqlite3.Connection | None:
    connection = None
    try:
        connection = connect(place, wait)
        if read_version(connection) == (APPLICATION_ID, SCHEMA_VERSION):
            return connection
    except sqlite3.DatabaseError as exc:
        if connection:
            connection.close()
        if not is_damage(exc):
            raise
        return None
    connection.close()
    return None


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def is_frozen(connection: sqlite3.Connection) -> bool:
    """Return whether a connection only reads, whatever happens to the file meanwhile."""
    try:
        return bool(connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal")
    except sqlite3.Error:
        return False


def _is_unusable(path: Path) -> bool:
    """Return whether what is in our place is no index of ours. Such a file is no database, or somebody else's."""
    if not path.exists():
        return False
    connection = connect(path)
    try:
        application, _ = read_version(connection)
        objects = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return bool(objects) and application != APPLICATION_ID
    except sqlite3.DatabaseError as exc:
        if not is_damage(exc):
            raise
        return True
    finally:
        connection.close()


def create(connection: sqlite3.Connection, tokenizer: str) -> None:
    """Make the tables of the index anew, unless another process just did."""
    version = (APPLICATION_ID, SCHEMA_VERSION)
    create_tables(connection, DROP + create_statements(tokenizer), version, lambda: read_version(connection) == version)


def create_tables(
    connection: sqlite3.Connection, script: str, version: tuple[int, int], is_current: Callable[[], bool]
) -> None:
    """Run a script that makes tables, in one transaction and with a write-ahead log, unless they are current."""
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


def set_version(connection: sqlite3.Connection, version: tuple[int, int] = (APPLICATION_ID, SCHEMA_VERSION)) -> None:
    """Write down whose tables these are, and of which version."""
    connection.execute(f"PRAGMA application_id = {version[0]}")
    connection.execute(f"PRAGMA user_version = {version[1]}")


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
        return _set_aside(path) if identify_file(path) == seen else None


def _set_aside(path: Path, ending: str = ".broken") -> str:
    kept = path.with_name(path.name + ending)
    for number in itertools.count(2):
        if not kept.exists():
            break
        kept = path.with_name(f"{path.name}{ending}-{number}")
    for side in SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path.with_name(path.name + side), kept.with_name(kept.name + side))
    return kept.name


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error means that the file itself is broken. Other errors mean that it is busy or misused."""
    text = str(error)
    return any(sign in text for sign in _DAMAGE)


def scrub(connection: sqlite3.Connection, full_text: str) -> bool:
    """Merge a full-text index into one piece and write the file anew; return whether that is all that is left.

    It is not where another process still reads the write-ahead log. Rows without a key of their own may be renumbered.
    """
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"INSERT INTO {full_text} ({full_text}) VALUES ('optimize')")
    connection.execute("VACUUM")
    (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy
