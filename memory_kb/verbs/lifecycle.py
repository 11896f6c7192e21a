"""Looking after what is there: counting use, stages, archiving."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from memory_kb.errors import ProviderFailed, UsageError, explain_failure
from memory_kb.filters import make_place
from memory_kb.model import Location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_kb.index.keeper import VaultIndex
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.memories import Memory
    from memory_kb.learning.upkeep.reinforce import Due
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.providers.models import Models
    from memory_kb.reports import RunReport, StageReport


class Stages:
    """The stage of the work: requirements, implementation, tests and so on."""

    def __init__(self, vault: Vault, store: EntryStore, models: Models) -> None:
        self._vault = vault
        self._store = store
        self._models = models

    def show(self, job: str | None = None) -> str:
        """Return the stage that the project, or one of its jobs, is in; `unknown` if nobody said."""
        from memory_kb.learning.upkeep.stages import UNKNOWN, read_stage
        from memory_kb.notes.changes import read_if_there

        for place in dict.fromkeys((make_place("project", job, None), Location())):
            path = self._stage_file(place)
            data = read_if_there(path, self._vault.resolve(path))
            stage = read_stage(data.decode("utf-8", "replace")) if data else UNKNOWN
            if stage != UNKNOWN:
                return stage
        return UNKNOWN

    def detect(self, job: str | None = None, *, dry_run: bool = False) -> StageReport:
        """Find out from INTENT.md which stage the project or a job is in (S3-56).

        When it is another than before, what was learned for the one before is retired. A language
        model reads the text where there is one; else its words are counted.
        """
        from memory_kb.learning.upkeep.stages import UNKNOWN, guess_stage
        from memory_kb.notes.changes import read_if_there

        place = make_place("project", job, None)
        path = f"{self._vault.folder_of(place)}INTENT.md" if place.job else "INTENT.md"
        data = read_if_there(path, self._vault.resolve(path))
        intent = data.decode("utf-8", "replace") if data else ""
        guessed, notice = guess_stage(intent), ""
        if intent.strip() and not dry_run:
            guessed, notice = self._ask_stage(intent, guessed)
        if guessed == UNKNOWN:
            notice = notice or (f"{path} does not tell the stage" if data else f"there is no {path}")
        return self._enter(place, guessed, notice, dry_run=dry_run)

    def set(self, stage: str, job: str | None = None, *, dry_run: bool = False) -> StageReport:
        """Say which stage the project or a job is in; what was learned for another is retired.

        Raises:
            UsageError: there is no such stage.
        """
        return self._enter(make_place("project", job, None), _read_stage(stage), "", dry_run=dry_run)

    def retire(self, stage: str, job: str | None = None, *, dry_run: bool = False) -> RunReport:
        """Retire what was learned for a stage that is over (S3-57).

        Raises:
            UsageError: there is no such stage.
        """
        from memory_kb.learning.upkeep.stages import plan_retirements

        ended = _read_stage(stage)
        place = make_place("project", job, None)
        return self._store.carry_out(
            "stage", lambda memories: plan_retirements(memories, ended, place), dry_run=dry_run
        )

    def _ask_stage(self, intent: str, guessed: str) -> tuple[str, str]:
        from memory_kb.learning.upkeep.stages import ask_stage

        try:
            return (ask_stage(self._models.llm, intent), "") if self._models.llm is not None else (guessed, "")
        except ProviderFailed as exc:
            return guessed, f"{explain_failure(exc)}; the words of INTENT.md were counted"

    def _enter(self, place: Location, stage: str, notice: str, *, dry_run: bool) -> StageReport:
        from memory_kb.learning.upkeep.stages import UNKNOWN, Transition, plan_retirements
        from memory_kb.notes.changes import read_if_there
        from memory_kb.notes.plans import NoteText, create_file, write_file
        from memory_kb.reports import RunReport, StageReport

        path = self._stage_file(place)
        with self._store.planning(dry_run=dry_run):
            data = read_if_there(path, self._vault.resolve(path))
            before = self.show(place.job) if data else UNKNOWN
            if stage in (UNKNOWN, before) or not self._vault.memory:
                return StageReport(before, before if stage == UNKNOWN else stage, notice, RunReport(None, "stage"))
            ended = Transition(before, stage).ends
            reason = f"The stage is {stage} now."
            mark = (
                create_file(path, f"{stage}\n", reason)
                if data is None
                else write_file(NoteText(path, data), f"{stage}\n", reason)
            )
            run = self._store.carry_out(
                "stage",
                lambda memories: (mark, *(plan_retirements(memories, ended, place) if ended else ())),
                dry_run=dry_run,
            )
        return StageReport(before, stage, notice, run)

    def _stage_file(self, place: Location) -> str:
        return f"{self._vault.folder_of(place)}.current-stage"


class Lifecycle:
    """Reinforcement, promotion and archiving of entries."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, store: EntryStore, models: Models) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._store = store
        self._models = models

    def reinforce(self, session: str | None = None, *, dry_run: bool = False) -> RunReport:
        """Count what a session used of what it was shown, once for each entry.

        An entry was used that an agent named as helpful, or of whose longer words a third occur in
        what the session did; nothing counts if the session changed no file and made no commit. With
        `reinforcement.counts: shown` everything that was shown counts, and without a session what was
        shown outside any, once a day for each entry. What is counted is not counted again.

        Raises:
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        from memory_kb.learning.upkeep.reinforce import find_due, plan_reinforcements
        from memory_kb.notes.events import format_time
        from memory_kb.notes.retrievals import RetrievalLog

        log, now = RetrievalLog(self._vault.machine / "log"), self._vault.clock()
        with self._writer.lock():
            due = self._choose_due(find_due(log.read(session), log.credits(session), session), session)
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

    def _choose_due(self, due: tuple[Due, ...], session: str | None) -> tuple[Due, ...]:
        """Return what counts of what was shown, as the settings have it."""
        from memory_kb.learning.rules.outcomes import find_marks, resolve_marks
        from memory_kb.learning.upkeep.reinforce import keep_used, words_of_work
        from memory_kb.notes.sessionlog import SessionFiles
        from memory_kb.sessions.trace import trace_session

        if self._vault.settings.reinforcement.counts == "shown" or not due:
            return due
        files = SessionFiles(self._vault.machine)
        if session is None or session not in files.ids():
            return ()
        if not any(trace.changed or trace.commits for trace in trace_session(session, files.read(session))):
            return ()
        shown = [entry_id for one in due for entry_id in one.ids]
        marks = resolve_marks(find_marks(files.read(session)), shown)
        named = [name for name, word in marks.items() if word == "success"]
        return keep_used(due, self._store.all(), words_of_work(files.read(session)), named)

    def promote(self, *, dry_run: bool = False) -> RunReport:
        """Copy to the project what three jobs learned, and to the home what a judge calls general.

        The judge is a language model; without one, or when it fails, nothing goes to the home and
        the report's notices say so. A dry run asks no judge.
        """
        from memory_kb.learning.intake import plan_intake
        from memory_kb.learning.upkeep.promote import plan_global_promotion, plan_job_promotion

        now = self._vault.clock()
        with self._store.planning(dry_run=dry_run):
            memories = self._store.all()
            rising = plan_job_promotion(memories, now)
            chosen, notices = ((), ()) if dry_run else self._judge(memories)
            offers = (*rising.offers, *plan_global_promotion(chosen, now))
            intake = self._index.read(
                lambda index: plan_intake(offers, index, self._vault.folder_of, now, self._store.was_made)
            )
            report = self._store.carry_out(
                "promote",
                lambda fresh: plan_job_promotion(fresh, now).changes,
                (*rising.changes, *intake.changes),
                dry_run=dry_run,
            )
        return replace(report, notices=(*report.notices, *notices))

    def _judge(self, memories: Sequence[Memory]) -> tuple[tuple[Memory, ...], tuple[str, ...]]:
        """Return the project's entries that hold everywhere, and what went wrong asking for them."""
        from memory_kb.learning.upkeep.promote import ask_judge, choose_for_judge, judgment_key
        from memory_kb.notes import jsonlines

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
        """Archive what nobody looked at for long (S1-34)."""
        from memory_kb.learning.upkeep.archive import NEW_DAYS, plan_archiving

        half_life, now = self._vault.settings.ranking.half_life_days, self._vault.clock()
        taken_in = self._store.taken_in(self._vault.today() - timedelta(days=NEW_DAYS))
        return self._store.carry_out(
            "archive",
            lambda memories: plan_archiving(memories, self._vault.folder_of, now, half_life, taken_in),
            dry_run=dry_run,
        )


def _read_stage(word: str) -> str:
    from memory_kb.learning.upkeep.stages import STAGES, UNKNOWN, read_stage

    stage = read_stage(word)
    if stage == UNKNOWN:
        raise UsageError(f"unknown stage {word!r}", f"stages are {', '.join(STAGES)}")
    return stage
