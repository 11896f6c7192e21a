"""Measure a team's index in PostgreSQL against SQLite in the same run; `scripts/bench --engine postgres` runs this."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from measuring import percentile

from memory_kb import KnowledgeBase

#: A generated page is cut into about so many passages, which only chooses how many pages are made.
PASSAGES_PER_FILE = 4.67
#: With many vaults, one vault is measured at the sizes up to this.
MOST_IN_ONE = 100_000
#: Targets: of indexing with a server over indexing without one, and of a warm query.
INDEX_TARGET, QUERY_TARGET = 4.0, 3.0
_INDEX = "from memory_kb.cli import main; main()"


class Figure(NamedTuple):
    """A figure of PostgreSQL, the same of SQLite where there is one, and the most that their ratio may be."""

    passages: int
    vaults: int
    what: str
    unit: str
    postgres: float
    sqlite: float | None = None
    target: float | None = None

    def line(self) -> str:
        """Return the figure as a line of the table."""
        ratio = f"{self.postgres / self.sqlite:.2f}" if self.sqlite else ""
        other = f"{self.sqlite:,.2f} {self.unit}" if self.sqlite else ""
        goal = f"<= {self.target:g}" if self.target else ""
        return f"  {self.what:42}{ratio:>7}{f'{self.postgres:,.2f} {self.unit}':>16}{other:>16}{goal:>8}"


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a server of our own on loopback."""
    script = str(Path(__file__).with_name("postgres"))
    done = subprocess.run([sys.executable, script, "start", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())
    try:
        yield done.stdout.strip()
    finally:
        subprocess.run([sys.executable, script, "stop", str(folder)], check=False)


def ask(url: str, statement: str) -> Any:
    """Run a statement; return the first value that it gives, if any."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def time_index(vault: Path, environ: dict[str, str]) -> float:
    """Return the seconds that indexing a vault from nothing takes as a process."""
    shutil.rmtree(vault / ".memory-kb", ignore_errors=True)
    started = time.perf_counter()
    command = [sys.executable, "-c", _INDEX, "index", "--vault", str(vault), "--json"]
    subprocess.run(command, env=os.environ | environ, check=True, capture_output=True)
    return time.perf_counter() - started


def time_queries(queries: Sequence[str], ways: Sequence[Callable[[str], object]]) -> list[list[float]]:
    """Return the milliseconds of every query in each way, in turns, after every way was warmed."""
    taken: list[list[float]] = [[] for _ in ways]
    for number, query in enumerate((*queries[:5], *queries)):
        for way, kept in zip(ways, taken, strict=True):
            started = time.perf_counter()
            way(query)
            if number >= 5:
                kept.append(1000 * (time.perf_counter() - started))
    return taken


def measure_one(folder: Path, url: str, queries: Sequence[str], number: int) -> Iterator[Figure]:
    """Measure one vault that is there: indexing from nothing, warm queries, and what a passage takes."""
    plain = {"HOME": str(folder), "MEMORY_KB_HOME": str(folder / "home"), "MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}
    vault = folder / "vault"
    database = f"{url.rpartition('/')[0]}/one{number}"
    ask(url, f"CREATE DATABASE one{number}")
    team = plain | {"MEMORY_KB_INDEX_URL": database, "MEMORY_KB_INDEX_VAULTS": f"own={vault}"}
    alone = time_index(vault, plain)
    together = time_index(vault, team)
    passages = int(ask(database, "SELECT chunks FROM memory_kb.vaults"))
    yield Figure(passages, 1, "index from nothing", "s", together, alone, INDEX_TARGET)
    yield Figure(passages, 1, "passages indexed a second", "", passages / together, passages / alone)
    with KnowledgeBase.open(vault, folder / "home", environ=team) as kb:
        here, there = time_queries(
            queries,
            [lambda query: kb.search(query, sync=False), lambda query: kb.search(query, vaults=["own"], sync=False)],
        )
    for share in (0.5, 0.95):
        figures = percentile(there, share), percentile(here, share)
        yield Figure(passages, 1, f"warm query, p{100 * share:.0f}", "ms", *figures, QUERY_TARGET)
    size = ask(database, "SELECT pg_database_size(current_database())")
    local = (vault / ".memory-kb" / ".memory.db").stat().st_size
    yield Figure(passages, 1, "bytes a passage", "", size / passages, local / passages)


def measure_many(folders: Sequence[Path], url: str, queries: Sequence[str], stops: Sequence[int]) -> Iterator[Figure]:
    """Index many vaults one after the other; at some numbers of them query the first one and all at once."""
    database = f"{url.rpartition('/')[0]}/many"
    ask(url, "CREATE DATABASE many")
    home = folders[0].parent / "home"
    plain = {"HOME": str(home), "MEMORY_KB_EMBEDDINGS_PROVIDER": "none", "MEMORY_KB_INDEX_URL": database}
    before, seconds = 0, 0.0
    for count, folder in enumerate(folders, 1):
        started = time.perf_counter()
        environ = plain | {"MEMORY_KB_INDEX_VAULTS": f"{folder.name}={folder}"}
        with KnowledgeBase.open(folder, home, environ=environ) as kb:
            kb.sync()
        seconds += time.perf_counter() - started
        if count not in stops:
            continue
        ask(database, "ANALYZE")
        passages = int(ask(database, "SELECT sum(chunks)::bigint FROM memory_kb.vaults"))
        yield Figure(passages, count, "passages indexed a second", "", (passages - before) / seconds)
        size = ask(database, "SELECT pg_database_size(current_database())")
        yield Figure(passages, count, "bytes a passage", "", size / passages)
        with KnowledgeBase.open(folders[0], home, environ=plain) as kb:
            ways = [
                lambda query, kb=kb: kb.search(query, vaults=[folders[0].name], sync=False),
                lambda query, kb=kb: kb.search(query, vaults=["all"], sync=False),
            ]
            for what, taken in zip(("in one vault", "across all"), time_queries(queries, ways), strict=True):
                for share in (0.5, 0.95):
                    yield Figure(
                        passages, count, f"warm query {what}, p{100 * share:.0f}", "ms", percentile(taken, share)
                    )
        before, seconds = passages, 0.0


def run(
    work: Path,
    sizes: Sequence[int],
    vaults: int,
    generate: Callable[[Path, int], None],
    draw_queries: Callable[[Sequence[Path]], list[str]],
) -> Iterator[Figure]:
    """Measure one vault of each size; with `vaults` the largest number is in so many, measured at each size on the way."""
    with server(work / "server") as url:
        for number, passages in enumerate(size for size in sorted(sizes) if vaults == 1 or size <= MOST_IN_ONE):
            folder = work / f"size{number}"
            generate(folder / "vault", round(passages / PASSAGES_PER_FILE))
            queries = draw_queries(sorted((folder / "vault").rglob("*.md")))
            yield from measure_one(folder, url, queries, number)
            shutil.rmtree(folder)
        if vaults > 1:
            each = max(1, round(max(sizes) / PASSAGES_PER_FILE / vaults))
            generate(work / "all", each * vaults)
            files = sorted((work / "all").rglob("*.md"))
            queries = draw_queries(files)
            folders = [work / f"v{number:03}" for number in range(vaults)]
            for number, folder in enumerate(folders):
                folder.mkdir()
                for file in files[number * each : (number + 1) * each]:
                    file.rename(folder / file.name)
            stops = {max(1, round(passages / PASSAGES_PER_FILE / each)) for passages in sizes} | {vaults}
            yield from measure_many(folders, url, queries, sorted(stops))
