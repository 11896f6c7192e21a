"""The database file, whatever is found in its place: the answer comes, and says what had to be remade."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Files, Run

from memory_kb import KnowledgeBase
from memory_kb.index import sqlite_writer, sync
from memory_kb.index.schema import APPLICATION_ID, DROP, SCHEMA_VERSION

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

NOTES: dict[str, str | bytes] = {
    f"memory/learnings/{number:02}.md": f"---\nid: n{number}\nkind: fact\n---\n# Note {number}\n\nThe zebra crossed river {number}. "
    + f"word{number} again. " * 60
    for number in range(40)
}


def database(folder: Path) -> Path:
    return folder / "memory/.memory-kb/.memory.db"


def write_bytes(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def write_foreign(file: Path, word: str = "precious") -> None:
    """Make a database of some other application."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE accounts (name TEXT)")
        connection.execute("INSERT INTO accounts VALUES (?)", (word,))


def truncate(file: Path, share: float) -> None:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


def set_version(file: Path, version: int) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "no database": lambda file: write_bytes(file, b"this is not a database, it is a letter\n" * 500),
    "a short text": lambda file: write_bytes(file, b"oops"),
    "random bytes": lambda file: write_bytes(file, random.Random(1).randbytes(100_000)),
    "a broken header": lambda file: write_bytes(file, b"SQLite format 3\x00" + b"\x00" * 5_000),
    "cut to half": lambda file: truncate(file, 0.5),
    "cut to a tenth": lambda file: truncate(file, 0.1),
    "cut within a page": lambda file: truncate(file, 0.777),
    "only the header": lambda file: write_bytes(file, file.read_bytes()[:100]),
    "another application": write_foreign,
    "a newer version": lambda file: set_version(file, SCHEMA_VERSION + 1),
}


def indexed(vault: Vault, open_kb: Open) -> tuple[Path, tuple[object, ...]]:
    folder = vault(NOTES)
    kb = open_kb(folder)
    hits = kb.search("zebra river", limit=50).hits
    kb.close()
    return folder, hits


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_search_answers_over_a_damaged_index_and_says_so(
    vault: Vault, open_kb: Open, damage: Callable[[Path], None]
) -> None:
    folder, before = indexed(vault, open_kb)
    damage(database(folder))
    result = open_kb(folder).search("zebra river", limit=50)
    assert result.hits == before
    assert any(".memory.db" in reason and "rebuilt" in reason for reason in result.degraded)
    assert open_kb(folder).search("zebra river", limit=50).degraded == ()


@pytest.mark.parametrize("damage", [DAMAGES[name] for name in ("no database", "cut to half", "another application")])
def test_a_sync_rebuilds_a_damaged_index_and_says_so(
    vault: Vault, open_kb: Open, damage: Callable[[Path], None]
) -> None:
    folder, before = indexed(vault, open_kb)
    damage(database(folder))
    kb = open_kb(folder)
    report = kb.sync(rebuild=True)
    assert report.added == len(NOTES)
    assert any(".memory.db" in notice for notice in report.notices)
    assert kb.search("zebra river", limit=50).hits == before
    assert kb.doctor().problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut to half", "no database"])
@pytest.mark.parametrize("verb", ["search zebra", "index", "status", "doctor", "lint", "maintain", "session end one"])
def test_every_verb_survives_a_damaged_index(vault: Vault, open_kb: Open, run: Run, verb: str, damage: str) -> None:
    folder, _ = indexed(vault, open_kb)
    run("--vault", folder, "session", "start", "one")
    DAMAGES[damage](database(folder))
    done = run("--vault", folder, *verb.split())
    assert done.returncode in (0, 7), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("present", ["zero-length", "missing"])
def test_an_empty_or_missing_file_is_simply_a_new_index(vault: Vault, open_kb: Open, present: str) -> None:
    folder, before = indexed(vault, open_kb)
    database(folder).unlink()
    if present == "zero-length":
        database(folder).touch()
    result = open_kb(folder).search("zebra river", limit=50)
    assert (result.hits, result.degraded) == (before, ())


def test_a_search_without_sync_over_a_damaged_index_still_answers(vault: Vault, open_kb: Open) -> None:
    folder, before = indexed(vault, open_kb)
    truncate(database(folder), 0.3)
    result = open_kb(folder).search("zebra river", limit=50, sync=False)
    assert result.hits == before or result.degraded


def test_a_file_damaged_while_it_is_open_is_rebuilt(vault: Vault, open_kb: Open) -> None:
    folder = vault(NOTES)
    kb = open_kb(folder)
    before = kb.search("zebra river", limit=50).hits
    with closing(sqlite3.connect(database(folder), isolation_level=None)) as connection:
        connection.execute("UPDATE chunks_fts_data SET block = x'00ff00ff' WHERE id > 10")
    result = kb.search("zebra river", limit=50)
    assert result.hits == before
    assert any("damaged" in reason for reason in result.degraded)


def test_missing_tables_are_rebuilt(vault: Vault, open_kb: Open) -> None:
    folder, before = indexed(vault, open_kb)
    with closing(sqlite3.connect(database(folder))) as connection:
        connection.executescript(DROP)
    assert open_kb(folder).search("zebra river", limit=50).hits == before


def read_accounts(file: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT name FROM accounts").fetchall()


def kept_files(folder: Path) -> list[Path]:
    """Return the databases that were set aside, without their side files."""
    return [
        file
        for file in database(folder).parent.iterdir()
        if file.name.startswith(".memory.db.") and not file.name.endswith(("-wal", "-shm"))
    ]


def test_a_column_with_a_damaged_name_is_rebuilt(vault: Vault, open_kb: Open) -> None:
    folder, before = indexed(vault, open_kb)
    with closing(sqlite3.connect(database(folder), isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'char_offset', 'char_offsex') WHERE name = 'chunks'"
        )
    kb = open_kb(folder)
    kb.doctor()
    assert any("was damaged (no such column" in notice for notice in kb.sync().notices)
    assert kb.search("zebra river", limit=50).hits == before


def test_entries_with_a_damaged_scope_are_read_as_those_of_the_project(vault: Vault, open_kb: Open) -> None:
    folder, before = indexed(vault, open_kb)
    with closing(sqlite3.connect(database(folder))) as connection, connection:
        connection.execute("UPDATE chunks SET scope = 'projecu'")
    kb = open_kb(folder)
    assert kb.search("zebra river", limit=50).hits == before
    assert {entry.scope for entry in kb.list()} == {"project"}
    assert kb.rules.list() == ()
    assert {problem.message for problem in kb.lint()} == set()


def test_the_file_of_another_application_is_kept(vault: Vault, open_kb: Open) -> None:
    folder, before = indexed(vault, open_kb)
    write_foreign(database(folder))
    result = open_kb(folder).search("zebra river", limit=50)
    assert result.hits == before
    (kept,) = kept_files(folder)
    assert kept.name in result.degraded[0]
    assert read_accounts(kept) == [("precious",)]


def test_a_second_foreign_file_does_not_replace_the_first(vault: Vault, open_kb: Open) -> None:
    folder, _ = indexed(vault, open_kb)
    for word in ("first", "second"):
        write_foreign(database(folder), word)
        kb = open_kb(folder)
        kb.search("zebra")
        kb.close()
    kept = kept_files(folder)
    assert sorted(name for file in kept for (name,) in read_accounts(file)) == ["first", "second"]


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 999], ids=["the next", "far ahead"])
def test_an_index_of_a_newer_program_is_rebuilt_with_its_tables(vault: Vault, open_kb: Open, version: int) -> None:
    folder, before = indexed(vault, open_kb)
    with closing(sqlite3.connect(database(folder))) as connection, connection:
        connection.execute("ALTER TABLE chunks ADD COLUMN novelty TEXT")
        connection.execute("CREATE TABLE gadgets (name TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
    result = open_kb(folder).search("zebra river", limit=50)
    assert result.hits == before
    assert f"of version {version}" in result.degraded[0]
    with closing(sqlite3.connect(database(folder))) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert "novelty" not in {row[1] for row in connection.execute("PRAGMA table_xinfo(chunks)")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 10, 16])
def test_damage_anywhere_never_makes_a_search_fail(vault: Vault, open_kb: Open, seed: int) -> None:
    folder, before = indexed(vault, open_kb)
    rng = random.Random(seed)
    data = bytearray(database(folder).read_bytes())
    for _ in range(rng.randint(1, 6)):
        length = rng.choice([1, 16, 512, 4_096])
        place = rng.randrange(0, len(data))
        data[place : place + length] = rng.randbytes(length) if rng.random() < 0.5 else bytes(length)
    database(folder).write_bytes(data)
    kb = open_kb(folder)
    kb.search("zebra river", limit=50)
    kb.search("word7 again", limit=50)
    kb.sync(rebuild=True)
    assert kb.search("zebra river", limit=50).hits == before
    assert kb.doctor().problems == ()


def test_what_follows_a_failed_batch_of_a_first_index_is_not_committed(
    vault: Vault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vault({f"{name}.md": f"# {name}\n\nGateway {name}.\n" for name in "abc"})
    monkeypatch.setattr(sync, "_BATCH_SECONDS", 0.0)
    monkeypatch.setattr(sqlite_writer, "_BATCH_CHARS", 0)
    with open_kb(folder) as kb:
        kb.status()
        with closing(sqlite3.connect(folder / ".memory-kb/.memory.db")) as connection, connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON chunks WHEN new.source = 'b.md' "
                "BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        with pytest.raises(Exception, match="no room"):
            kb.sync()
    with closing(sqlite3.connect(folder / ".memory-kb/.memory.db")) as connection, connection:
        connection.execute("DROP TRIGGER full")
    with open_kb(folder) as kb:
        assert sorted(hit.path for hit in kb.search("gateway").hits) == ["a.md", "b.md", "c.md"]
