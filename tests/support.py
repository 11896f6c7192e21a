"""Words that several test files share, beside the fixtures."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from conftest import NOW

from memory_kb import KnowledgeBase

Row = tuple[object, ...]

#: For the code of a process: `peak()` is the most memory that it had. The kernel's account of that process is asked
#: where there is one, for `ru_maxrss` begins with the peak of the process that started it, which is pytest here.
PEAK = """
import resource
def peak():
    try:
        with open("/proc/self/status") as status:
            return int(status.read().partition("VmHWM:")[2].split()[0])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
"""

#: An entry whose frontmatter has words of its own in every field.
RICH = """---
id: quokka-1
kind: pitfall
status: active
phase: planning
importance: 0.8
owner: wombat
title: Numbat budget
tags: [bilby, "deep sea"]
applies_to: ['src/possum/**']
created_at: '2026-03-01'
links: [{to: dingo, relation: related_to}]
---
# Koala chapter

Platypus text.
"""


def notes_of(*folders: Path) -> dict[str, bytes]:
    """Return every note below some folders, by path."""
    return {
        f"{folder.name}/{file.relative_to(folder).as_posix()}": file.read_bytes()
        for folder in folders
        for file in sorted(folder.rglob("*.md"))
    }


def entry(body: str, **fields: object) -> str:
    """Return an entry with these fields."""
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in fields.items()) + f"---\n{body}\n"


def days_ago(days: int) -> str:
    return f"'{(NOW - timedelta(days=days)).date()}'"


def found(kb: KnowledgeBase, query: str = "", **how: object) -> list[str]:
    return [hit.path for hit in kb.search(query, **how).hits]  # type: ignore[arg-type]


def ids(kb: KnowledgeBase, query: str = "", **how: object) -> list[str]:
    return [hit.id for hit in kb.search(query, **how).hits]  # type: ignore[arg-type]


def query(kb: KnowledgeBase, statement: str) -> list[Row]:
    """Ask the database file itself."""
    with closing(sqlite3.connect(kb.vault.machine / ".memory.db")) as connection:
        return connection.execute(statement).fetchall()


def rows(kb: KnowledgeBase) -> tuple[list[Row], list[Row]]:
    """Return all that the index holds of the files: chunks in order, and files without their times."""
    return query(kb, "SELECT * FROM chunks ORDER BY source, position"), query(
        kb, "SELECT path, size, hash, problems FROM file_meta ORDER BY path"
    )


def check_full_text(kb: KnowledgeBase) -> None:
    """Let SQLite hold the full-text index against the chunks."""
    with closing(sqlite3.connect(kb.vault.machine / ".memory.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def rebuilt(kb: KnowledgeBase, folder: Path) -> KnowledgeBase:
    """Return a knowledge base over the same files whose index was made from nothing in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    fresh = KnowledgeBase.open(
        kb.vault.folder,
        kb.vault.home,
        environ={"HOME": str(kb.vault.home.parent), "MEMORY_KB_INDEX_PATH": str(folder)},
        clock=lambda: NOW,
    )
    fresh.sync(rebuild=True)
    return fresh


def assert_equals_rebuild(kb: KnowledgeBase, folder: Path, queries: tuple[str, ...]) -> None:
    with rebuilt(kb, folder) as fresh:
        assert rows(kb) == rows(fresh)
        assert kb.sync().problems == fresh.sync().problems
        for text in queries:
            assert kb.search(text, limit=50).hits == fresh.search(text, limit=50).hits
    check_full_text(kb)


def body_of(folder: Path, path: str) -> str:
    """Return the text of a note below its frontmatter."""
    return (folder / path).read_text().split("\n---\n", 1)[1].strip("\n")


def fields_of(folder: Path, path: str) -> dict[str, Any]:
    """Return the frontmatter of a note."""
    found = yaml.safe_load((folder / path).read_text().split("---\n")[1])
    assert isinstance(found, dict)
    return found
