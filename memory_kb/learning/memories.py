"""`Memories`: all entries of the vault as values, and the one way in for new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import MemoryKBError
from memory_kb.index.listing import find_entry_by_name
from memory_kb.learning.ingest import Gate, IngestPlan, IngestPlanner, Learning
from memory_kb.markdown.sections import SECTION
from memory_kb.markdown.splice import find_entry
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, Filters, Location, make_filters
from memory_kb.reports import RunReport
from memory_kb.similarity import Pair, cosine_pairs
from memory_kb.text import as_read

if TYPE_CHECKING:
    from datetime import date

    import numpy as np
    from numpy.typing import NDArray

    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.providers.protocols import Vectors
    from memory_kb.store.changes import Change, Plan
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

    Planner = Callable[[Sequence[Memory]], Plan]


class EntryVectors(NamedTuple):
    """The vectors of some entries, each of length 1; `row_of` maps the path and line of an entry to its row."""

    rows: Vectors
    row_of: Mapping[tuple[str, int], int]

    def near_pairs(self, entries: Sequence[Memory], threshold: float) -> Iterator[Pair]:
        """Yield the pairs of some entries, by their places, whose cosine is at least a threshold."""
        have = [place for place, one in enumerate(entries) if (one.path, one.line) in self.row_of]
        rows = self.rows[[self.row_of[entries[place].path, entries[place].line] for place in have]]
        for one, other, similarity in cosine_pairs(rows, threshold):
            yield Pair(have[one], have[other], similarity)


class MemoryCache:
    """All entries as they were read last."""

    def __init__(self) -> None:
        self._generation: int | None = None
        self._all: tuple[Memory, ...] = ()

    def read(self, index: SqliteIndex) -> tuple[Memory, ...]:
        """Return all entries; they are read again when the index has changed."""
        if self._generation != index.generation:
            self._generation, self._all = index.generation, tuple(index.memories(EVERYTHING))
        return self._all


class Memories:
    """All entries of the vault as values to plan with, and the way in for new ones."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, cache: MemoryCache | None = None) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self.cache = cache or MemoryCache()
        self._made: tuple[int, Mapping[str, str]] = 0, {}

    def all(self, filters: Filters = EVERYTHING, *, may_wait: bool = True) -> tuple[Memory, ...]:
        """Update the index, and return the entries that pass the filters, in path order."""

        def read(index: SqliteIndex) -> tuple[Memory, ...]:
            return self.cache.read(index) if filters == EVERYTHING else tuple(index.memories(filters))

        return self._index.read(read, may_wait=may_wait)

    def of_kinds(self, *kinds: str, job: str | None = None, task: str | None = None) -> tuple[Memory, ...]:
        """Update the index, and return the entries of some kinds, of any status, that a job and task see."""
        seen = make_filters(kind=kinds, job=job, task=task)
        return self.all(EVERYTHING._replace(kinds=seen.kinds, job=seen.job, task=seen.task))

    def find(self, wanted: str) -> Memory:
        """Return the entry that an id, its unique beginning or `path.md:LINE` names."""

        def read(index: SqliteIndex) -> Memory:
            entry = find_entry_by_name(self._vault, index, wanted)
            return next(one for one in index.memories(EVERYTHING, entry.path) if one.id == entry.id)

        return self._index.read(read)

    def read_with_vectors(
        self, is_wanted: Callable[[Memory], bool], needs_vector: Callable[[Memory], bool] = lambda _: True
    ) -> tuple[tuple[Memory, ...], EntryVectors | None]:
        """Update the index; return the wanted entries, and the vectors of those that need one, if there are vectors."""

        def read(index: SqliteIndex) -> tuple[tuple[Memory, ...], EntryVectors | None]:
            wanted = tuple(filter(is_wanted, self.cache.read(index)))
            return wanted, _read_vectors(index, filter(needs_vector, wanted)) if self._index.may_embed else None

        return self._index.read(read)

    def with_fields(self, fields: Sequence[str]) -> list[Memory]:
        """Return the entries of the files in which one has one of some fields, in path order."""

        def read(index: SqliteIndex) -> list[Memory]:
            paths = index.files_with_metadata([f'"{field}"' for field in fields])
            return [one for path in paths for one in index.memories(EVERYTHING, path)]

        return self._index.read(read)

    def read_from_file(self, memory: Memory) -> Memory:
        """Return an entry with its text, and the hash of its file, as they are in the file now.

        Raises:
            UnreadableInput: the file cannot be read.
            CannotSplice: the entry is not there any more.
        """
        note = self._writer.read(memory.path)
        entry = find_entry(note.text, note.path, memory.id)
        return memory._replace(hash=note.hash, text=note.text[entry.body.start : entry.body.end])

    def whole_text_of(self, memory: Memory) -> str:
        """Return the whole text of an entry, from its file or, if the file has it no more, as it was indexed."""
        if len(memory.text) < SECTION.whole:
            return memory.text
        try:
            return as_read(self.read_from_file(memory).text.strip())
        except MemoryKBError:
            return memory.text

    def run_plan(
        self, verb: str, planner: Planner, filters: Filters = EVERYTHING, *, dry_run: bool = False
    ) -> RunReport:
        """Run a plan for entries as they are now; a file that somebody writes to meanwhile is planned anew."""

        def replan(path: str) -> Plan:
            return (change for change in planner(self.all(filters)) if change and change.path == path)

        if dry_run:
            return self._writer.run(verb, planner(self.all(filters)), dry_run=True)
        with self._writer.lock():
            return self._writer.run(verb, planner(self.all(filters, may_wait=False)), replan=replan)

    def change_entries(
        self, verb: str, entries: Sequence[Memory], plan: Callable[[Memory], Change | None], *, dry_run: bool
    ) -> RunReport:
        """Run what `plan` returns for each of some entries; one that somebody writes to meanwhile is planned anew."""
        wanted = {(one.path, one.id) for one in entries}

        def replan(path: str) -> Plan:
            return [plan(one) for one in self.all() if one.path == path and (one.path, one.id) in wanted]

        return self._writer.run(verb, map(plan, entries), replan=replan, dry_run=dry_run)

    def ingest(
        self,
        verb: str,
        learnings: Sequence[Learning],
        *,
        again: bool = False,
        dry_run: bool = False,
        gate: Gate | None = None,
    ) -> tuple[IngestPlan, RunReport]:
        """Keep the learnings that are new, as one run; return what was decided about each, and what was written.

        With `again` also what was kept before and is gone since. A `gate` decides about those that would be new.
        """
        if not learnings:
            return IngestPlan((), ()), RunReport(None, verb)
        with self._writer.lock(*{one.place.scope for one in learnings}, dry_run=dry_run):
            plan = self.plan_ingest(learnings, again=again, gate=gate)
            return plan, self._writer.run(verb, plan.changes, dry_run=dry_run)

    def plan_ingest(
        self, learnings: Sequence[Learning], *, again: bool = False, gate: Gate | None = None
    ) -> IngestPlan:
        """Plan to keep the learnings that are new, as `ingest` does, without doing it."""
        now = self._vault.clock()
        made = frozenset() if again else self.made_ids()
        if not self._vault.memory:  # a plain folder of notes has no jobs and tasks
            learnings = [one if one.place.scope == "global" else replace(one, place=Location()) for one in learnings]

        def plan(index: SqliteIndex) -> IngestPlan:
            return IngestPlanner(index, self._vault.folder_of, now, made.__contains__, gate).plan(learnings)

        return self._index.read(plan, may_wait=False)

    def made_ids(self) -> frozenset[str]:
        """Return the ids of the entries that runs have ever made."""
        return frozenset(self._creations())

    def made_since(self, since: date) -> frozenset[str]:
        """Return the ids of the entries that runs have made since a day, however old what they report is."""
        return frozenset(entry_id for entry_id, time in self._creations().items() if time >= since.isoformat())

    def _creations(self) -> Mapping[str, str]:
        """Return which entries runs have made, and when; the journal is read again when it has grown."""
        journal = self._writer.journal
        if journal.size != self._made[0]:
            self._made = journal.size, journal.creations()
        return self._made[1]


def _read_vectors(index: SqliteIndex, entries: Iterable[Memory]) -> EntryVectors | None:
    held = index.vectors.space
    table = index.vectors.table(held) if held else None
    if table is None:
        return None
    import numpy as np

    row_of: dict[tuple[str, int], int] = {}
    means: list[NDArray[np.float32]] = []
    for entry in entries:
        keys = np.asarray(index.keys_of(entry), np.int64)
        places = np.searchsorted(table.keys, keys)
        if len(keys) and (places < len(table.keys)).all() and (table.keys[places] == keys).all():
            mean = np.asarray(table.rows[places], np.float32).mean(axis=0)
            row_of[entry.path, entry.line] = len(means)
            means.append(mean / max(float(np.linalg.norm(mean)), 1e-9))
    return EntryVectors(np.stack(means).astype(np.float32), row_of) if means else None
