"""The verbs compact and contradictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_kb.errors import CannotSplice, ProviderFailed, UnreadableInput, UsageError, explain_failure
from memory_kb.learning.compaction import CompactReport, Surroundings, plan_compaction
from memory_kb.learning.contradictions import (
    ContradictionsReport,
    LlmClassifier,
    find_contradictions,
    plan_resolutions,
)
from memory_kb.markdown.fields import parse_date
from memory_kb.model import SCOPE_ALIASES, SCOPES, make_place
from memory_kb.reports import RunReport
from memory_kb.store.files import NoteText

if TYPE_CHECKING:
    from datetime import date

    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.entry_store import EntryStore, Meanings
    from memory_kb.model import Location
    from memory_kb.providers.models import Models
    from memory_kb.store.plan import Memory
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

#: What is compacted when nobody says what: not the tasks, which end soon.
_USUAL = ("job", "project", "global")


class Compactor:
    """Merges what says the same, and finds what contradicts each other."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, store: EntryStore, models: Models) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._store = store
        self._models = models

    def compact(
        self,
        scope: str | None = None,
        job: str | None = None,
        task: str | None = None,
        *,
        threshold: float | None = None,
        dry_run: bool = False,
    ) -> CompactReport:
        """Merge what is said twice, and move what is retired out of the live files.

        Without words it compacts jobs, project and home. Run twice, it changes nothing the second
        time. What is merged away goes to the archive, with a link to what stays.

        Args:
            scope: this one alone.
            job: this one alone.
            task: this task of the job alone.
            threshold: merge paraphrases too, whose stemmed words overlap by this much;
                0.4 merges much.
            dry_run: write nothing; the report's run says what would be written.

        Raises:
            UsageError: there is no such scope, or the threshold is not above 0 and at most 1.
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        if threshold is not None and not 0 < threshold <= 1:
            raise UsageError(
                f"the threshold {threshold} is not above 0 and at most 1",
                "0.4 merges paraphrases; leave it out to merge near copies",
            )
        is_meant = _choose(scope, job, task)
        with self._writer.lock(dry_run=dry_run):
            memories, meanings = self._store.with_meanings(lambda memory: is_meant(memory.place))
            planned, changes = plan_compaction(memories, self._surroundings(meanings), threshold)
            # What somebody writes to in this moment is left for the next run, with all that belongs to it.
            run = self._writer.run("compact", changes, dry_run=dry_run)
        gone = sum(change.action in ("move", "create") for change in run.changes)
        return replace(planned, after=planned.before - gone, run=run)

    def contradictions(
        self, *, resolve: bool = False, since: date | None = None, dry_run: bool = False
    ) -> ContradictionsReport:
        """Return which entries contradict each other, why, and what is to become of them.

        With `resolve` it is done: the older of two that are 90 days apart is retired in favour of
        the newer; two that contradict each other are linked, flagged for review, and lowered
        in importance once. The cause comes from a language model if one is configured, else from a rule.
        With `since` only what was made or taken in on that day or later, or has no date, is held
        against all.

        Raises:
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        classify, notice = self._classifier()
        notices: list[str] = []
        taken_in = self._store.taken_in(since) if since else frozenset[str]()

        def is_new(memory: Memory) -> bool:
            made = parse_date(memory.created_at)
            return since is not None and (made is None or made >= since or memory.id in taken_in)

        with self._writer.lock(dry_run=dry_run or not resolve):
            found = find_contradictions(self._store.all(), classify, is_new if since else None, notices.append)
            run = RunReport(None, "contradictions")
            if resolve:
                run = self._writer.run("contradictions", plan_resolutions(found), dry_run=dry_run)
        if classify and classify.failure:
            notice = f"{explain_failure(classify.failure)}; the rule decided"
        return ContradictionsReport(found, run, (*notices, *filter(None, [notice])))

    def _classifier(self) -> tuple[LlmClassifier | None, str]:
        """Return the language model as a classifier, or None and why there is none."""
        if self._vault.settings.llm.provider in ("none", "offline"):
            return None, ""
        try:
            llm = self._models.llm
        except ProviderFailed as exc:
            return None, f"{explain_failure(exc)}; the rule decided"
        return (LlmClassifier(llm), "") if llm else (None, "")

    def _surroundings(self, meanings: Meanings | None) -> Surroundings:
        def note_of(path: str) -> NoteText:
            try:
                return self._writer.read(path)
            except UnreadableInput:  # gone since it was indexed: what is planned for it no longer fits
                return NoteText(path, b"")

        def body_of(memory: Memory) -> str:
            try:
                return self._store.as_written(memory).text
            except (CannotSplice, UnreadableInput):
                return memory.text

        return Surroundings(self._vault.clock(), self._vault.folder_of, note_of, body_of, meanings)


def _choose(scope: str | None, job: str | None, task: str | None) -> Callable[[Location], bool]:
    """Return the SQL condition for some places."""
    word = SCOPE_ALIASES.get(scope, scope) if scope else None
    if word is not None and word not in SCOPES:
        raise UsageError(f"unknown scope {scope!r}", f"it may be {', '.join(SCOPES)}")
    if job or task:
        wanted = make_place(word or "project", job, task)[:3]
        return lambda place: place[:3] == wanted
    return lambda place: place.scope == word if word else place.scope in _USUAL
