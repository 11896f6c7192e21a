"""The tables of the index."""

from memory_kb.index.database import LOCK, Schema
from memory_kb.model import Chunk

#: "mkb1", so that a foreign SQLite file in our place is known as one.
APPLICATION_ID = 0x6D6B6231
#: Versions: 1, the first; 2, is_titled and rowids that grow; 3, text_tags; 4, indexes of what is little; 5, faults;
#: 6, sections instead of passages; 7, supersedes; 10, indexes of what hooks ask for; 11, names; 12, headings below
#: comments; 13, parts of words in more scripts; 14, titles that are no heading of a section; 15, vectors of chunks.
SCHEMA_VERSION = 15

#: The key under which `meta` says of which model the vectors of the chunks are, and how often they changed.
VECTORS = "vectors"

_SCRIPT = """
-- Facts about the index itself, one per key.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY, -- generation, settings, indexed_at, last_rowid, is_partial,
                            -- made_here, and vectors, the model of chunk_vectors
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One row per indexed file: how it looked when its chunks were made.
CREATE TABLE file_meta (
    path     TEXT PRIMARY KEY, -- as in output: relative to the vault, or ~global/...
    mtime    INTEGER NOT NULL, -- nanoseconds
    size     INTEGER NOT NULL, -- bytes
    inode    INTEGER NOT NULL, -- -1 where another save may have the same time
    hash     TEXT NOT NULL,    -- sha256 of the bytes read
    problems TEXT              -- JSON [[line, message], ...] or NULL
) WITHOUT ROWID;
CREATE INDEX file_meta_problems ON file_meta (path) WHERE problems IS NOT NULL;

-- The searchable pieces, in file order. Chunks of one entry have consecutive rowids, and between
-- two entries at least one rowid is free: neighbours in rowid are neighbours in the text.
-- Everything here follows from a file's bytes and path; rowids do not count as content.
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
    title_terms         TEXT,             -- parts of the words of the title and the names
    terms               TEXT,             -- parts of words and spelled-out names of the rest
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

CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    title, headings, content, tags, applies_to, dated, terms, source UNINDEXED, chunk_id UNINDEXED,
    content = 'chunk_texts', content_rowid = 'chunk_rowid', tokenize = '{tokenizer}'
);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('hashsize', 16777216);
-- What fits into a page of the file.
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('pgsz', 8100);

-- The vectors of one model that chunks have, for all passages of each.
CREATE TABLE chunk_vectors (
    chunk     INTEGER PRIMARY KEY, -- its rowid
    embedding BLOB NOT NULL        -- as in embedding_cache, one behind the other
);
CREATE INDEX chunk_vectors_chunk ON chunk_vectors (chunk);

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
DROP TABLE IF EXISTS chunk_vectors;
DROP TABLE IF EXISTS file_meta;
DROP TABLE IF EXISTS meta;
"""

#: The columns that the full-text index is built from, in the order of its bm25 weights.
TEXT_COLUMNS = ("title", "headings", "content", "tags", "applies_to", "dated", "terms")

#: Put in the files, and the chunks, whose rows follow.
PUT_FILES = "INSERT OR REPLACE INTO file_meta (path, mtime, size, inode, hash, problems) VALUES"
ROW_OF_FILE = "(?, ?, ?, ?, ?, ?)"
INSERT_CHUNKS = f"INSERT INTO chunks (rowid, {', '.join(Chunk._fields)}) VALUES"
ROW_OF_CHUNK = f"(?{', ?' * len(Chunk._fields)})"

_TEXT_LIST = ", ".join(TEXT_COLUMNS)
INDEX_ROWS = f"INSERT INTO chunks_fts (rowid, {_TEXT_LIST}) SELECT chunk_rowid, {_TEXT_LIST} FROM chunk_texts WHERE chunk_rowid BETWEEN ? AND ?"
UNINDEX_FILE = f"INSERT INTO chunks_fts (chunks_fts, rowid, {_TEXT_LIST}) SELECT 'delete', chunk_rowid, {_TEXT_LIST} FROM chunk_texts WHERE source = ?"


def index_schema(tokenizer: str) -> Schema:
    """Return the tables of the index with the words cut by a tokenizer.

    Example:
        >>> "tokenize = 'porter ascii'" in index_schema("porter ascii").script
        True
    """
    script = DROP + _SCRIPT.replace("{tokenizer}", tokenizer.replace("'", ""))
    return Schema((APPLICATION_ID, SCHEMA_VERSION), script, LOCK)
