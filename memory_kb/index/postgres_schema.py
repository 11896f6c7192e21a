"""The tables of a team's index in PostgreSQL, and connections to it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import InvalidSettings
from memory_kb.index.tokenizer import COLUMN_BITS, PLACE_BITS
from memory_kb.model import Chunk

if TYPE_CHECKING:
    from psycopg import Connection

#: The version of the tables below; another one is made anew by the owner.
VERSION = "10"
#: The key of a chunk is the number of its vault followed by its number in the vault, in this many bits.
KEY_BITS = 40
#: Seconds after which a server counts as unreachable.
CONNECT_SECONDS = 10

#: Postings are stored in blocks, each for the chunks whose keys differ only in this many lowest bits.
BLOCK_BITS = 12
#: A place is, in bits, the number of a chunk in its block, the chunk's length, a column and a word of it.
LENGTH_BITS, WORD_BITS = 19, PLACE_BITS + COLUMN_BITS
#: The key of a chunk, from a place.
PLACE_KEY = f"(block << {BLOCK_BITS}) + (place >> {LENGTH_BITS + WORD_BITS})"
#: Longer terms are not indexed: no key of PostgreSQL holds them, and nobody types them.
MOST_TERM_CHARS = 600

_TYPES = {
    **dict.fromkeys(("position", "part", "reinforcement_count", "is_superseded"), "integer"),
    **dict.fromkeys(("char_offset", "line", "end_line", "is_titled", "fault"), "integer"),
    "importance": "double precision",
}
_COLUMNS = ", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in Chunk._fields)

_CREATE = f"""
CREATE SCHEMA memory_kb;
COMMENT ON SCHEMA memory_kb IS '{VERSION}';
-- Who may search a vault, and who may index it; the owner of the tables may do both, and alone writes here.
CREATE TABLE memory_kb.grants (
    vault     text    NOT NULL,
    role      name    NOT NULL,
    may_write boolean NOT NULL DEFAULT false,
    PRIMARY KEY (vault, role)
);
CREATE TABLE memory_kb.vaults (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    made_with  text NOT NULL,              -- what rows and words depend on beside the files
    generation bigint NOT NULL DEFAULT 0,  -- grows by one with every visible change
    revision   text,                       -- the commit that was indexed, if the vault is in git
    committed  bigint,                     -- its time
    writer     text,                       -- which clone indexed it
    seen       text,                       -- the state of that clone's own index then
    last_key   bigint NOT NULL DEFAULT 0,
    chunks     bigint NOT NULL DEFAULT 0,
    terms      bigint NOT NULL DEFAULT 0,  -- the length of all chunks together
    space      text NOT NULL DEFAULT '',   -- the model of its vectors and their dimension
    vectors    bigint NOT NULL DEFAULT 0,  -- how many chunks have some
    passages   bigint NOT NULL DEFAULT 0   -- how many vectors these have
);
CREATE TABLE memory_kb.files (
    vault    integer NOT NULL REFERENCES memory_kb.vaults ON DELETE CASCADE,
    path     text COLLATE "C" NOT NULL,
    hash     text NOT NULL,
    problems text,
    PRIMARY KEY (vault, path)
);
CREATE INDEX files_problems ON memory_kb.files (vault) WHERE problems IS NOT NULL;
CREATE TABLE memory_kb.chunks (
    vault  integer NOT NULL,
    key    bigint  NOT NULL CHECK (key >> {KEY_BITS} = vault),
    length integer NOT NULL,               -- in terms
    {_COLUMNS},
    PRIMARY KEY (key)
);
ALTER TABLE memory_kb.chunks ALTER source TYPE text COLLATE "C", ALTER entry_id TYPE text COLLATE "C",
    ALTER seen TYPE text COLLATE "C", ALTER dated TYPE text COLLATE "C";
CREATE INDEX chunks_source ON memory_kb.chunks (vault, source);
CREATE INDEX chunks_entry ON memory_kb.chunks (vault, entry_id) WHERE part = 0;
CREATE INDEX chunks_faults ON memory_kb.chunks (vault) WHERE fault IS NOT NULL;
CREATE INDEX chunks_supersedes ON memory_kb.chunks (vault) WHERE supersedes IS NOT NULL;
-- Where the chunks of a block say a term: the number of the chunk, its length, the column and the word, in bits.
CREATE TABLE memory_kb.postings (
    vault   integer NOT NULL,
    block   bigint  NOT NULL CHECK (block >> {KEY_BITS - BLOCK_BITS} = vault),
    term    text COLLATE "C" NOT NULL,
    places  bigint[] NOT NULL,
    chunks  integer NOT NULL,              -- how many do
    PRIMARY KEY (vault, term, block)
);
-- The planner learns nothing from what is in these, and would look at it for long.
ALTER TABLE memory_kb.chunks ALTER content SET STATISTICS 0, ALTER metadata SET STATISTICS 0, ALTER terms SET STATISTICS 0;
ALTER TABLE memory_kb.postings ALTER places SET STATISTICS 0;
CREATE INDEX postings_block ON memory_kb.postings (block);
CREATE TABLE memory_kb.vectors (
    vault     integer NOT NULL,
    key       bigint  NOT NULL CHECK (key >> {KEY_BITS} = vault),
    passage   integer NOT NULL,            -- its number in the chunk
    embedding real[]  NOT NULL,
    PRIMARY KEY (vault, key, passage)
);
ALTER TABLE memory_kb.vectors ALTER embedding SET STORAGE EXTERNAL;

-- What a policy names is bound when it is made: no search path of a client can put something else in.
ALTER TABLE memory_kb.grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON memory_kb.grants FOR SELECT USING (
    role IN (SELECT rolname FROM pg_catalog.pg_roles WHERE pg_catalog.pg_has_role(current_user, oid, 'usage'))
);
ALTER TABLE memory_kb.vaults ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON memory_kb.vaults FOR SELECT USING (name IN (SELECT vault FROM memory_kb.grants));
CREATE POLICY adds ON memory_kb.vaults FOR INSERT WITH CHECK (name IN (SELECT vault FROM memory_kb.grants WHERE may_write));
CREATE POLICY changes ON memory_kb.vaults FOR UPDATE USING (name IN (SELECT vault FROM memory_kb.grants WHERE may_write));
GRANT USAGE ON SCHEMA memory_kb TO PUBLIC;
GRANT SELECT ON memory_kb.grants TO PUBLIC;
GRANT SELECT, INSERT, UPDATE ON memory_kb.vaults TO PUBLIC;
"""

_WRITES = "vault = ANY (ARRAY(SELECT id FROM memory_kb.vaults WHERE name IN (SELECT vault FROM memory_kb.grants WHERE may_write)))"
_GUARD = f"""
ALTER TABLE memory_kb.{{table}} ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON memory_kb.{{table}} FOR SELECT USING (vault = ANY (ARRAY(SELECT id FROM memory_kb.vaults)));
CREATE POLICY adds ON memory_kb.{{table}} FOR INSERT WITH CHECK ({_WRITES});
CREATE POLICY changes ON memory_kb.{{table}} FOR UPDATE USING ({_WRITES});
CREATE POLICY deletes ON memory_kb.{{table}} FOR DELETE USING ({_WRITES});
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_kb.{{table}} TO PUBLIC;
"""


class VaultRow(NamedTuple):
    """A vault of a team's index."""

    id: int
    name: str
    made_with: str
    generation: int
    revision: str | None
    committed: int | None
    writer: str | None
    seen: str | None
    last_key: int
    chunks: int
    terms: int
    space: str
    vectors: int
    passages: int


def list_vaults(connection: Connection) -> list[VaultRow]:
    """Return the vaults that this role may search, by name."""
    query = f"SELECT {', '.join(VaultRow._fields)} FROM vaults ORDER BY name"
    return list(map(VaultRow._make, connection.execute(query.encode())))


def connect_postgres(url: str) -> Connection:
    """Open a team's index; the first connection creates its tables.

    Raises:
        InvalidSettings: the address is none, or the tables are not there and may not be made.
        psycopg.Error: the server cannot be reached, or refuses.
    """
    import psycopg

    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            application_name="memory-kb",
            prepare_threshold=None,
            connect_timeout=CONNECT_SECONDS,
            # A network that is gone is otherwise noticed after a quarter of an hour.
            tcp_user_timeout=1000 * CONNECT_SECONDS,
            keepalives_idle=CONNECT_SECONDS,
        )
    except psycopg.ProgrammingError as exc:
        raise InvalidSettings("index.url is no address of a PostgreSQL database", "postgresql://host/database") from exc
    try:
        # The order in which scores are added up, and so their last digits, is the same every time.
        connection.execute(
            "SET search_path = memory_kb, pg_catalog, pg_temp; SET max_parallel_workers_per_gather = 0; SET jit = off; "
            "SET work_mem = '64MB'"
        )
        if _version(connection) != VERSION:
            _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: Connection) -> str | None:
    """Return the version of the tables that are there, "" if they have none."""
    query = "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = 'memory_kb'"
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def _create(connection: Connection) -> None:
    """Make the tables, unless another one did meanwhile; with pgvector where it is installed or may be."""
    import psycopg

    # The lock comes before the transaction, which so sees what others made meanwhile; it ends with the connection too.
    connection.execute("SELECT pg_advisory_lock(hashtext('memory-kb tables'))")
    try:
        with connection.transaction():
            version = _version(connection)
            if version is None:
                guards = (_GUARD.format(table=table) for table in ("files", "chunks", "postings", "vectors"))
                connection.execute((_CREATE + "".join(guards)).encode())
                with suppress(psycopg.Error), connection.transaction():
                    connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            elif version != VERSION:
                raise InvalidSettings(
                    f"the team's index is of version {version or 'unknown'}, this program reads {VERSION}",
                    "use the program of the others, or let the owner drop the schema memory_kb and index again",
                )
        connection.execute("SELECT pg_advisory_unlock(hashtext('memory-kb tables'))")
    except psycopg.errors.InsufficientPrivilege as exc:
        raise InvalidSettings(
            "the team's index has no tables yet, and this role may not make them",
            "let the owner of the database index first",
        ) from exc
