"""Cache what `lint` finds: in each file by the hash of its content, in all of them together, and its last run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.credentials import describe_secret, locate_secrets
from memory_kb.index.database import connect_sqlite, transaction
from memory_kb.index.entry_texts import EntryText
from memory_kb.markdown.links import find_links, find_percent_comments
from memory_kb.model import Problem
from memory_kb.regular_files import make_folder, open_regular

#: Its path in the machine folder.
LINT_CACHE = "lint/facts.db"
#: Grows with every change of what is found, so that findings of an older version are not used.
_VERSION = 7
#: From `_MANY` files on, further processes help; they get `_BATCH` files at a time, in rounds of `_ROUND` batches each.
_MANY, _BATCH, _ROUND = 1_000, 64, 8
_CONFLICT = re.compile(r"^<{7} \S.*$(?=[\s\S]*?^={7}$[\s\S]*?^>{7} \S)", re.MULTILINE)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (path TEXT PRIMARY KEY, hash TEXT NOT NULL, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS whole (id INTEGER PRIMARY KEY, state TEXT NOT NULL, found TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS nodes (key INTEGER PRIMARY KEY, id TEXT, title TEXT, kind TEXT, scope TEXT, status TEXT,
    path TEXT, line INTEGER, degree INTEGER);
CREATE INDEX IF NOT EXISTS nodes_id ON nodes (id);
CREATE TABLE IF NOT EXISTS edges (source INTEGER, target INTEGER, relation TEXT, PRIMARY KEY (source, target, relation))
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS edges_target ON edges (target);
CREATE TABLE IF NOT EXISTS agreed (path TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS looks (verb TEXT PRIMARY KEY, generation INTEGER, moment TEXT, total INTEGER, first TEXT);
"""


class LinkInText(NamedTuple):
    """A link of a text: what it names, the heading or `^block` within that, how it is written, and its line."""

    target: str
    anchor: str
    is_wikilink: bool
    line: int

    @property
    def kind(self) -> str:
        """Its name in messages."""
        return "wikilink" if self.is_wikilink else "link"


class FileFindings(NamedTuple):
    """The findings in one file that depend on no other: lines and messages, and the links of each entry, each once."""

    problems: Sequence[tuple[int, str]] = ()
    links: Mapping[str, Sequence[LinkInText]] = {}


#: Returns the texts of the entries of files.
Fetch = Callable[[Sequence[str]], Sequence[Sequence[EntryText]]]


class LintPass(NamedTuple):
    """The last findings of `lint` or `doctor`: state of the index, time, number, and the first of them."""

    generation: int
    moment: str
    total: int
    first: tuple[Problem, ...]


class Node(NamedTuple):
    """An entry among others: enough to name and colour it. `key` is its place in the map."""

    key: int
    id: str
    title: str
    kind: str
    scope: str
    status: str
    path: str
    line: int


class Edge(NamedTuple):
    """A link from one entry to another, by their keys."""

    source: int
    target: int
    relation: str


class VaultFindings(NamedTuple):
    """The findings in all files together: problems, entries, and the links whose two ends exist.

    `probes` are the paths that are no notes and were looked for, and whether they were there.
    """

    problems: Sequence[Problem]
    probes: Mapping[str, bool]
    nodes: Sequence[Node]
    edges: Collection[Edge]


def examine_texts(texts: Iterable[EntryText]) -> FileFindings:
    """Return the findings in one file from the texts of its entries."""
    problems: list[tuple[int, str]] = []
    links: dict[str, list[LinkInText]] = {}
    for entry_id, title, line, body in texts:
        # One that spans title and text is said at the text.
        secrets = {one.line: one for one in reversed(list(locate_secrets(f"{title}\n{body}")))}
        if 2 in secrets:
            secrets.pop(1, None)
        problems += [(line + max(0, number - 2), describe_secret(one)) for number, one in secrets.items()]
        problems += _conflicts(body, line)
        if found := list(_links(body, line)):
            links.setdefault(entry_id, []).extend(found)
    return FileFindings(problems, links)


def _conflicts(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Yield line and message of each unresolved merge conflict; an example in a code block is none."""
    for found in _CONFLICT.finditer(text) if "<<<<<<<" in text else ():
        if text.count("```", 0, found.start()) % 2 == 0:
            message = "a conflict of a merge is not settled here; agents are shown both sides"
            yield line + text.count("\n", 0, found.start()), message


def _links(text: str, line: int) -> Iterator[LinkInText]:
    """Yield the links of a text, each once. What is commented out may name a heading that is yet to be written."""
    seen: dict[tuple[str, str], bool] = {}
    place, comments = 0, find_percent_comments(text)
    for link in find_links(text):
        anchor = "" if any(one.start < link.span.start < one.end for one in comments) else link.anchor
        if (link.target, anchor) in seen or link.is_attachment:
            continue
        seen[link.target, anchor] = True
        line += text.count("\n", place, link.whole.start)
        place = link.whole.start
        yield LinkInText(link.target, anchor, link.is_wikilink, line)


class LintCache:
    """The findings of `lint`, in a database of their own that anyone may delete, else in memory."""

    def __init__(self, file: Path | None = None) -> None:
        #: Whether the findings are stored for the next process.
        self.has_file = file is not None
        try:
            self._connection = _open(file)
        except (sqlite3.Error, OSError):
            self._connection, self.has_file = _open(None), False

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def of_files(self, hashes: Mapping[str, str], fetch: Fetch) -> dict[str, FileFindings]:
        """Return the findings in files, given by the hashes of their content, examining those that are not kept."""
        kept = {path: (digest, facts) for path, digest, facts in self.rows("SELECT path, hash, facts FROM facts")}
        found = {path: _unpack(kept[path][1]) for path in hashes if path in kept and kept[path][0] == hashes[path]}
        unknown = [path for path in hashes if path not in found]
        new = dict(zip(unknown, _examine_all(unknown, fetch), strict=True))
        gone = [(path,) for path in kept if path not in hashes]
        rows = [(path, hashes[path], json.dumps(facts, ensure_ascii=False)) for path, facts in new.items()]
        self._write(("DELETE FROM facts WHERE path = ?", gone), ("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", rows))
        return found | new

    def read_findings(self, state: str) -> tuple[list[Problem], list[tuple[str, bool]]] | None:
        """Return the problems found in a state of the index, and the paths outside of it that they depend on."""
        rows = self.rows("SELECT found FROM whole WHERE state = ?", (state,))
        if not rows:
            return None
        problems, probes = json.loads(rows[0][0])
        return [Problem(*one) for one in problems], probes

    def keep_findings(self, state: str, whole: VaultFindings) -> None:
        """Store the findings in a state of the index."""
        found = json.dumps([whole.problems, list(whole.probes.items())], ensure_ascii=False)
        degrees = Counter(key for pair in {edge[:2] for edge in whole.edges} for key in pair)
        nodes = [(*one, degrees[one.key]) for one in whole.nodes]
        self._write(
            ("DELETE FROM nodes", None),
            ("DELETE FROM edges", None),
            ("INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", nodes),
            ("INSERT INTO edges VALUES (?, ?, ?)", whole.edges),
            ("INSERT OR REPLACE INTO whole (id, state, found) VALUES (1, ?, ?)", [(state, found)]),
        )

    def read_last(self, verb: str) -> LintPass | None:
        """Return the findings of the last call of a verb."""
        rows = self.rows("SELECT generation, moment, total, first FROM looks WHERE verb = ?", (verb,))
        for generation, moment, total, first in rows:
            return LintPass(generation, moment, total, tuple(Problem(*one) for one in json.loads(first)))
        return None

    def keep_last(self, verb: str, look: LintPass) -> None:
        """Store the findings of a verb."""
        row = (verb, look.generation, look.moment, look.total, json.dumps(look.first, ensure_ascii=False))
        self._write(("INSERT OR REPLACE INTO looks VALUES (?, ?, ?, ?, ?)", [row]))

    def read_agreed(self) -> dict[str, str]:
        """Return the digests of the files that `doctor` found indexed as they are."""
        return dict(self.rows("SELECT path, digest FROM agreed"))

    def keep_agreed(self, digests: Mapping[str, str]) -> None:
        """Store the digests of the files that `doctor` found indexed as they are."""
        self._write(("DELETE FROM agreed", None), ("INSERT INTO agreed VALUES (?, ?)", list(digests.items())))

    def rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a query; no rows if the database cannot be read."""
        with contextlib.suppress(sqlite3.Error):
            return self._connection.execute(query, values).fetchall()
        return []

    def _write(self, *statements: tuple[str, Collection[Sequence[object]] | None]) -> None:
        # A full disk or another process at it costs no finding.
        with contextlib.suppress(sqlite3.Error):
            if any(rows is None or rows for _, rows in statements):
                with transaction(self._connection):
                    for statement, rows in statements:
                        self._connection.executemany(statement, [()] if rows is None else rows)


def _examine_all(paths: Sequence[str], fetch: Fetch) -> Iterator[FileFindings]:
    """Yield the findings in files; of many, all processors examine some."""
    batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    processes = os.cpu_count() or 1
    # A fork of a process with threads may wait for ever for a lock that one of them held.
    is_parallel = sys.platform == "linux" and processes > 1 and threading.active_count() == 1
    done = 0
    if is_parallel and len(paths) >= _MANY:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        # Without room for processes this one does it all.
        with (
            contextlib.suppress(BrokenProcessPool, OSError),
            ProcessPoolExecutor(processes, get_context("fork"), _end_with_parent) as pool,
        ):
            # Some batches at a time, so that not all texts are in memory.
            for start in range(0, len(batches), _ROUND * processes):
                texts = [fetch(batch) for batch in batches[start : start + _ROUND * processes]]
                for found in pool.map(_examine_batch, texts):
                    yield from found
                    done += 1
    for batch in batches[done:]:
        yield from _examine_batch(fetch(batch))


def _end_with_parent() -> None:
    """End this process when its parent is gone."""
    from multiprocessing import parent_process

    def wait() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _examine_batch(batch: Sequence[Sequence[EntryText]]) -> list[FileFindings]:
    return [examine_texts(texts) for texts in batch]


def _unpack(facts: str) -> FileFindings:
    problems, links = json.loads(facts)
    return FileFindings(problems, {entry_id: [LinkInText(*one) for one in found] for entry_id, found in links.items()})


def _open(file: Path | None) -> sqlite3.Connection:
    if file:
        make_folder(file.parent)
        os.close(open_regular(file, os.O_RDWR | os.O_CREAT, 0o600))
    connection = connect_sqlite(file or Path(":memory:"))
    if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
        connection.executescript(
            f"DROP TABLE IF EXISTS facts; DROP TABLE IF EXISTS whole; {_SCHEMA} PRAGMA user_version = {_VERSION};"
        )
    return connection
