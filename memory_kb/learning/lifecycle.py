"""The verbs reinforce and promote, and archiving."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from memory_kb.errors import ProviderFailed, explain_failure
from memory_kb.learning.archiving import NEW_DAYS, plan_archiving
from memory_kb.learning.outcomes import find_marks, find_used, may_hold_marks, resolve_marks
from memory_kb.learning.promotion import (
    ask_judge,
    choose_for_judge,
    judgment_key,
    plan_global_promotion,
    plan_job_promotion,
)
from memory_kb.learning.reinforcement import changed_files, find_due, keep_used, plan_reinforcements, words_of_work
from memory_kb.store import logs as jsonlines
from memory_kb.store.logs import OutcomeLog, Retrieval, RetrievalLog, format_time
from memory_kb.store.plan import Memory
from memory_kb.store.session_log import SessionFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.reinforcement import Due
    from memory_kb.providers.models import Models
    from memory_kb.reports import RunReport
    from memory_kb.store.plan import Memory
    from memory_kb.store.session_log import TraceSession
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


class Lifecycle:
    """Reinforcement, promotion and archiving of entries."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore, models: Models, trace: TraceSession) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._models = models
        self._trace = trace

    def reinforce(self, session: str | None = None, *, dry_run: bool = False) -> RunReport:
        """Count what a session used of what it was shown, once for each entry.

        An entry was used that an outcome named as used or an agent as helpful, or of whose longer words a third occur in
        what the session did; nothing counts if the session changed no file and made no commit. With
        `reinforcement.counts: shown` everything that was shown counts, and without a session what was
        shown outside any, once a day for each entry. What is counted is not counted again.

        Raises:
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        logs, now = self._vault.machine / "log", self._vault.clock()
        log = RetrievalLog(logs)
        with self._writer.lock():
            shown = list(log.read(session))
            used = find_used(OutcomeLog(logs).read_all(), shown, session) if session else ()
            named = Retrieval(format_time(now), "outcome", used, session=session)
            due = self._choose_due(find_due([*shown, named], log.credits(session), session), session, used)
            planned = plan_reinforcements(due, self._store.all(), now) if due else None
            counted = [credit for credit in planned.credits if credit.counts] if planned else []
            if counted and not dry_run:
                log.credit(format_time(now), counted)
            report = self._store.carry_out(
                "reinforce",
                lambda memories: plan_reinforcements(due, memories, now).changes,
                planned.changes if planned else (),
                dry_run=dry_run,
            )
            if counted and not dry_run:
                left = {conflict.id for conflict in report.conflicts}
                kept = (
                    one._replace(counts={name: count for name, count in one.counts.items() if name not in left})
                    for one in counted
                )
                log.credit(format_time(now), (one._replace(is_done=True) for one in kept))
        return report

    def _choose_due(self, due: tuple[Due, ...], session: str | None, used: Collection[str]) -> tuple[Due, ...]:
        """Return what counts of what was shown or named as used, as the settings have it."""
        if self._vault.settings.reinforcement.counts == "shown" or not due:
            return due
        files = SessionFiles(self._vault.machine)
        if session is None or session not in files.ids():
            return ()
        if not changed_files(self._trace(session)):
            return ()
        shown = [entry_id for one in due for entry_id in one.ids]
        marks = resolve_marks(find_marks(files.read(session, only=may_hold_marks)), shown)
        helpful = [name for name, word in marks.items() if word == "success"]
        kept = keep_used(shown, self._store.all(), words_of_work(files.read(session)), {*used, *helpful})
        left = (one._replace(ids=tuple(name for name in one.ids if name in kept)) for one in due)
        return tuple(one for one in left if one.ids)

    def promote(self, *, dry_run: bool = False) -> RunReport:
        """Copy to the project what three jobs learned, and to the home what a judge calls general.

        The judge is a language model; without one, or when it fails, nothing goes to the home and
        the report's notices say so. A dry run asks no judge.
        """
        now = self._vault.clock()
        with self._store.planning(dry_run=dry_run):
            memories = self._store.all()
            rising = plan_job_promotion(memories, now)
            chosen, notices = ((), ()) if dry_run else self._judge(memories)
            offers = (*rising.offers, *plan_global_promotion(chosen, now))
            intake = self._store.plan_intake(offers)
            report = self._store.carry_out(
                "promote",
                lambda fresh: plan_job_promotion(fresh, now).changes,
                (*rising.changes, *intake.changes),
                dry_run=dry_run,
            )
        return replace(report, notices=(*report.notices, *notices))

    def _judge(self, memories: Sequence[Memory]) -> tuple[tuple[Memory, ...], tuple[str, ...]]:
        """Return the project's entries that hold everywhere, and what went wrong asking for them."""
        log = self._vault.machine / "log" / "judged.jsonl"
        try:
            if (llm := self._models.llm) is None:
                return (), ()
            asked = choose_for_judge(memories, frozenset(str(line.get("key")) for line in jsonlines.read(log)))
            if not asked:
                return (), ()
            chosen = ask_judge(llm, asked)
        except ProviderFailed as exc:
            return (), (f"{explain_failure(exc)}; nothing was promoted to the home",)
        jsonlines.append(log, [{"key": judgment_key(one), "everywhere": one in chosen} for one in asked])
        return chosen, ()

    def archive(self, *, dry_run: bool = False) -> RunReport:
        """Archive what nobody looked at for long."""
        half_life, now = self._vault.settings.ranking.half_life_days, self._vault.clock()
        taken_in = self._store.taken_in(self._vault.today() - timedelta(days=NEW_DAYS))
        return self._store.carry_out(
            "archive",
            lambda memories: plan_archiving(memories, self._vault.folder_of, now, half_life, taken_in),
            dry_run=dry_run,
        )
