"""What the verbs share that look after the entries: all of them as values, and the way in for new ones."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_kb.filters import EVERYTHING
from memory_kb.model import Location
from memory_kb.verbs.entrycache import EntryCache
from memory_kb.verbs.running import Running

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from memory_kb.learning.intake import Gate, Intake, Offer
    from memory_kb.learning.memories import Memory
    from memory_kb.model import Filters
    from memory_kb.notes.creations import Creations
    from memory_kb.notes.events import Event
    from memory_kb.notes.plans import Change
    from memory_kb.notes.projectfiles import ProjectFiles
    from memory_kb.providers.tokenizing import ChosenCounter
    from memory_kb.reports import RunReport

    Planner = Callable[[Sequence[Memory]], Sequence[Change]]


class Keeping(Running):
    """Entries to plan with, and offers taken in."""

    @functools.cached_property
    def _entries(self) -> EntryCache:
        """The entries that were read before."""
        return EntryCache()

    #: While the end of a session is previewed: the event that would be written, and the entries that steps would take in.
    _coming: Event | None = None
    _shown: set[str | None] | None = None
    #: The entries that runs have made, as far as the log was read.
    _creations: Creations | None = None

    @functools.cached_property
    def _counter(self) -> ChosenCounter:
        """What counts the tokens of budgets."""
        from memory_kb.providers.tokenizing import choose_counter

        return choose_counter(self.settings.context.tokenizer)

    def _memories(self, filters: Filters = EVERYTHING) -> tuple[Memory, ...]:
        """Return the entries that pass the filters as they stand now, in path order."""
        return self._reading(lambda index: self._entries.read(index, filters).memories)

    def _planning(self, *, dry_run: bool) -> AbstractContextManager[None]:
        """Hold the vault's lock from reading to writing, so that two at once count both."""
        return nullcontext() if dry_run else self._writing()

    def _carry_out(
        self, verb: str, planner: Planner, plan: Sequence[Change] | None = None, *, dry_run: bool = False
    ) -> RunReport:
        """Plan changes for the entries as they are, and carry them out as one run.

        A file that somebody writes to in the same moment is planned anew. `plan` is what the
        planner gave already.

        Raises:
            UnreadableInput: a file cannot be written; everything is as it was.
            VaultBusy: another process has been writing for a minute.
        """

        def replan(path: str) -> Sequence[Change]:
            return [change for change in planner(self._memories()) if change.path == path]

        if dry_run:
            return self.run_plan(verb, plan if plan is not None else planner(self._memories()), dry_run=True)
        with self._writing():
            self.recover()
            return self.run_plan(verb, plan if plan is not None else planner(self._memories()), replan=replan)

    def _take_in(
        self,
        verb: str,
        offers: Sequence[Offer],
        *,
        again: bool = False,
        dry_run: bool = False,
        gate: Gate | None = None,
    ) -> tuple[Intake, RunReport]:
        """Keep the learnings that are new, as one run; tell what became of each.

        With `again` also what was kept before and is gone since. A `gate` is asked what becomes of
        those that would be new.

        Raises:
            UnreadableInput: a file cannot be written; everything is as it was.
            VaultBusy: another process has been writing for a minute.
        """
        from memory_kb.learning.intake import open_gate, plan_intake

        if not self.vault.memory:
            offers = [offer if offer.place.scope == "global" else replace(offer, place=Location()) for offer in offers]
        if not dry_run:
            # What a killed run was about to make counts as made: it is completed first.
            self.recover()
        was_made = (lambda _: False) if again else self._was_made
        intake = self._reading(
            lambda index: plan_intake(offers, index, self._folder_of, self._clock(), was_made, gate or open_gate)
        )
        changes = intake.changes
        if self._shown is not None:
            # What one step of a preview would make, the next would find.
            changes = tuple(change for change in changes if change.entry_id not in self._shown)
            self._shown.update(change.entry_id for change in changes)
        return intake, self.run_plan(verb, changes, dry_run=dry_run)

    def _was_made(self, entry_id: str) -> bool:
        """Tell whether a run ever made an entry with this id."""
        return entry_id in self._read_creations().times

    def _taken_in(self, since: date) -> frozenset[str]:
        """Return the entries that runs have made since a day, however long ago what they tell was said or done."""
        return self._read_creations().since(since.isoformat())

    def _read_creations(self) -> Creations:
        self._creations = self._decisions.creations(self._creations)
        return self._creations

    def _project_files(self, seconds: float = 60.0) -> ProjectFiles:
        """Return the files around the notes, for what these cite; git gets so many seconds for all questions."""
        from memory_kb.notes.projectfiles import ProjectFiles

        return ProjectFiles(self._project_folder, self._environ, seconds)

    def _folder_of(self, place: Location) -> str:
        """Return the folder of a scope as paths stand in output, ending in a slash."""
        shown = self.vault.show(self.vault.scope_folder(place.scope, place.job, place.task) / "x")
        return shown.removesuffix("x")
