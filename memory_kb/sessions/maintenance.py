"""The verbs consolidate and maintain, which process the whole vault, and the end of a session in five steps.

A part of a step that fails does not stop the others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import MemoryKBError, ProviderFailed, UnreadableInput, UsageError, explain_refusal
from memory_kb.learning.playbook import parse_outcome
from memory_kb.model import Location, place_of_work
from memory_kb.reports import MaintenanceReport, RunReport, StepReport
from memory_kb.store.logs import MaintenanceLog, RetrievalLog
from memory_kb.store.session_events import SESSION_OUTCOMES
from memory_kb.text import moment_text, parse_date, pluralize

if TYPE_CHECKING:
    from memory_kb.episodes.service import Episodes
    from memory_kb.index.indexing import Indexing
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.capture import Captures
    from memory_kb.learning.citations import Citations
    from memory_kb.learning.compaction import Compactor
    from memory_kb.learning.extraction import Extraction
    from memory_kb.learning.lifecycle import Lifecycle
    from memory_kb.learning.memories import Memories
    from memory_kb.learning.outcomes import Outcomes
    from memory_kb.learning.review import Review
    from memory_kb.learning.rules import Rules
    from memory_kb.learning.stages import Stages
    from memory_kb.store.session_events import Event
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault
    from memory_kb.working.continuity import Continuity


#: The parts of `consolidate`, in their order.
CONSOLIDATE_PARTS = ("semantic", "dedup", "age", "archive", "promote")
#: Maintenance is due a week after it was done last.
_EVERY = timedelta(days=7)
#: What was shown is remembered this long; runs can be undone this long.
_KEEP_RETRIEVALS, _KEEP_DECISIONS = timedelta(days=400), timedelta(days=90)


class EndedSession(NamedTuple):
    """A session that is closed, or would be in a preview: its first event, and the one that ends it.

    With `dry_run` nothing is written; `unwritten_end` is then the end if the log has none yet.
    """

    session: str
    start: Event | None
    end: Event | None
    dry_run: bool
    unwritten_end: Event | None


class PartResult(NamedTuple):
    """The result of one part of a step: a sentence for the report, and the runs it wrote.

    The sentence is empty if there was nothing to do. A nonzero `exit_code` means that the part failed.
    """

    message: str = ""
    runs: tuple[RunReport, ...] = ()
    is_skipped: bool = False
    exit_code: int = 0


Part = Callable[[], PartResult]


def run_step(name: str, parts: Iterable[tuple[str, Part]]) -> StepReport:
    """Run the parts of a step in order, and return one report for all of them.

    A part that fails is reported with its reason; only an interrupt of a person stops the rest, and
    the next time completes it.
    """
    started = time.perf_counter()
    made, outcomes, said = list[RunReport](), list[str](), list[str]()
    code = 0
    for part, work in parts:
        done = _attempt(work)
        made += done.runs
        code = code or done.exit_code
        changes = any(run.changes for run in done.runs)
        outcomes.append("failed" if done.exit_code else "skipped" if done.is_skipped else "done" if changes else "")
        conflicts = dict.fromkeys(conflict.path for run in done.runs for conflict in run.conflicts)
        left = f"left alone: {', '.join(conflicts)}" if conflicts else ""
        notices = [notice for run in done.runs for notice in run.notices]
        message = "; ".join(filter(None, (done.message, *notices, left)))
        said += [f"{part}: {message}" if part else message] if message else []
    return StepReport(
        name,
        next((word for word in ("failed", "done", "skipped") if word in outcomes), "nothing"),
        "; ".join(said),
        time.perf_counter() - started,
        tuple(run.run for run in made if run.run),
        tuple(change for run in made for change in run.changes),
        tuple(conflict for run in made for conflict in run.conflicts),
        "".join(run.diff for run in made),
        code,
    )


def _attempt(work: Part) -> PartResult:
    try:
        return work()
    except MemoryKBError as exc:
        return PartResult(str(exc), exit_code=exc.exit_code)
    except OSError as exc:
        return PartResult(explain_refusal(exc), exit_code=UnreadableInput.exit_code)
    except Exception as exc:  # noqa: BLE001 - a bug in one step must not cost the others
        return PartResult(f"bug: {type(exc).__name__}: {exc}", exit_code=MemoryKBError.exit_code)


def report_changes(runs: Sequence[RunReport], one: str, many: str = "") -> PartResult:
    """Return the result of a part that changed entries: how many, each counted once per run."""
    count = sum(len({change.id or change.path for change in run.changes}) for run in runs)
    return PartResult(pluralize(count, one, many or one) if count else "", tuple(runs))


@dataclass(frozen=True)
class Maintenance:
    """The verbs consolidate and maintain."""

    _vault: Vault
    _index: VaultIndex
    _writer: Writer
    _citations: Citations
    _compactor: Compactor
    _episodes: Episodes
    _indexing: Indexing
    _lifecycle: Lifecycle
    _outcomes: Outcomes
    _rules: Rules

    def consolidate(self, stage: str | None = None, *, dry_run: bool = False) -> tuple[StepReport, ...]:
        """Make rules of recurring episodes, merge duplicates, age, archive and promote; or one of these.

        Steps are independent: an error in one is reported, and the next one runs.
        """
        if stage is not None and stage not in CONSOLIDATE_PARTS:
            raise UsageError(f"unknown stage {stage!r}", f"stages are {', '.join(CONSOLIDATE_PARTS)}")
        parts = self.all_parts(dry_run=dry_run)
        return tuple(run_step(name, [("", parts[name])]) for name in CONSOLIDATE_PARTS if stage in (None, name))

    def maintain(self, *, force: bool = False, dry_run: bool = False) -> MaintenanceReport:
        """Do what is due: each step a week after it was done last, or all of it with `force`.

        That is counting what was retrieved outside of sessions, the steps of `consolidate`, the
        sweep over the rules, a look for damage, and the trimming of the logs.
        """
        last, now = self._log().last(), self._now()
        due = self.due_parts(force=force, dry_run=dry_run)
        with self._index.up_to_date():
            reports = tuple(run_step(name, [("", work)]) for name, work in due.items())
        later = (last[name] for name in self.all_parts(dry_run=dry_run) if name in last and name not in due)
        return MaintenanceReport(reports, min((*later, now)) + _EVERY)

    def all_parts(self, *, dry_run: bool) -> dict[str, Part]:
        """Return the parts of maintenance by their names, in their order."""
        cycle, checked = self._lifecycle, self._log().last().get("contradictions")
        return {
            "reinforce": lambda: report_changes([self._outcomes.reinforce(dry_run=dry_run)], "counted"),
            "semantic": lambda: self._semantic_part(dry_run=dry_run),
            "dedup": lambda: self._dedup_part(dry_run=dry_run),
            "age": lambda: report_changes([self._episodes.age_episodes(dry_run=dry_run)], "aged"),
            "archive": lambda: report_changes([cycle.archive(dry_run=dry_run)], "archived"),
            "promote": lambda: report_changes([cycle.promote(dry_run=dry_run)], "promoted"),
            "contradictions": lambda: self.contradictions_part(checked.date() if checked else None, dry_run=dry_run),
            "claims": lambda: report_changes([self._citations.verify_claims(dry_run=dry_run)], "flagged"),
            "sweep": lambda: self._sweep_part(dry_run=dry_run),
            "doctor": self._doctor_part,
            "trim": lambda: self._trim_part(dry_run=dry_run),
        }

    def due_parts(self, *, force: bool = False, dry_run: bool) -> dict[str, Part]:
        """Return the parts that are due; each records when it was done, unless it failed or is a preview."""
        last, now = self._log().last(), self._now()

        def record(name: str, work: Part) -> PartResult:
            done = work()
            if not (dry_run or done.exit_code):
                self._log().done(name, now)
            return done

        parts = self.all_parts(dry_run=dry_run)
        due = {name: work for name, work in parts.items() if force or _is_due(last.get(name), now)}
        return {name: partial(record, name, work) for name, work in due.items()}

    def is_maintenance_due(self) -> bool:
        """Return whether the last maintenance was a week ago, or there was none."""
        return _is_due(min(self._log().last().values(), default=None), self._now())

    def _log(self) -> MaintenanceLog:
        return MaintenanceLog(self._vault.machine / "log")

    def _now(self) -> datetime:
        return self._vault.clock().astimezone(UTC)

    def _semantic_part(self, *, dry_run: bool) -> PartResult:
        done = self._episodes.consolidate_semantic(dry_run=dry_run)
        counts = Counter(one.action for one in done.taken) + Counter(extended=len(done.extended))
        return PartResult("; ".join(f"{count} {word}" for word, count in counts.items()), (done.run,))

    def _dedup_part(self, *, dry_run: bool) -> PartResult:
        report = self._compactor.compact(dry_run=dry_run)
        return PartResult(report.sentence, (report.run,))

    def contradictions_part(self, since: date | None, *, dry_run: bool) -> PartResult:
        """Resolve the contradictions of what is new since a day, as a part of a step; a preview asks no model."""
        report = self._compactor.contradictions(resolve=True, since=since, ask_model=not dry_run, dry_run=dry_run)
        return report_changes([report.run], "entry retired or flagged", "entries retired or flagged")

    def _sweep_part(self, *, dry_run: bool) -> PartResult:
        report = self._rules.sweep(dry_run=dry_run)
        counts = {"promoted": report.promoted, "demoted": report.demoted, "flagged": report.flagged}
        summary = ", ".join(f"{len(ids):,} {word}" for word, ids in counts.items() if ids)
        return PartResult(summary if report.run.changes else "", (report.run,))

    def _doctor_part(self) -> PartResult:
        found = (*self._writer.killed_run(), *self._indexing.check_index(), *self._indexing.lint())
        return PartResult(f"{pluralize(len(found), 'finding')}; `memory-kb doctor` lists them" if found else "")

    def _trim_part(self, *, dry_run: bool) -> PartResult:
        if dry_run:
            return PartResult()
        now = self._now()
        with self._writer.lock():
            dropped = RetrievalLog(self._vault.machine / "log").trim((now - _KEEP_RETRIEVALS).isoformat())
            freed = self._writer.journal.trim(moment_text(now - _KEEP_DECISIONS))
        return PartResult(f"{dropped:,} retrievals and {freed:,} runs forgotten" if dropped or freed else "")


def _is_due(last: datetime | None, now: datetime) -> bool:
    if last is None:
        return True
    aware = last if last.tzinfo else last.replace(tzinfo=UTC)
    return now - aware >= _EVERY or aware > now


@dataclass(frozen=True)
class SessionEnd:
    """What follows a session that is closed, with the services that do it.

    Whatever is done already is not done again, so that a session may be ended again after an
    interruption, or when it went on.
    """

    ended: EndedSession
    vault: Vault
    index: VaultIndex
    writer: Writer
    memories: Memories
    captures: Captures
    continuity: Continuity
    episodes: Episodes
    extraction: Extraction
    stages: Stages
    maintenance: Maintenance
    outcomes: Outcomes
    review: Review
    index_events: Callable[[str], PartResult]

    def run(self) -> tuple[StepReport, ...]:
        """Run the five steps, and return one report for each, after those of runs that were recovered."""
        sentences = () if self.dry_run else self.writer.recover()
        recovered = tuple(StepReport("recovery", "done", sentence, 0.0) for sentence in sentences)
        with self.index.up_to_date():
            # The parts take theirs from all entries, which are read once.
            self.memories.all()
            return (*recovered, *(run_step(name, parts) for name, parts in self.steps().items()))

    @property
    def session(self) -> str:
        return self.ended.session

    @property
    def dry_run(self) -> bool:
        return self.ended.dry_run

    def steps(self) -> dict[str, list[tuple[str, Part]]]:
        """Return the five steps, each with its parts in the order in which they run."""
        due = self.maintenance.due_parts(dry_run=self.dry_run) if self.maintenance.is_maintenance_due() else {}
        # A due part also records in the maintenance log when it was done.
        parts = self.maintenance.all_parts(dry_run=self.dry_run) | due
        # These parts run in the steps below, due or not; all other due parts run at the end of "maintain".
        placed_below = {"semantic", "dedup", "promote"}
        if self.dry_run:  # In a preview nothing is resolved: the due part would report the same contradictions again.
            placed_below.add("contradictions")
        further = [(f"maintenance: {name}", part) for name, part in due.items() if name not in placed_below]
        return {
            "episode": [("index", self._index), ("episodes", self._episodes), ("stage", self._stage)],
            "capture": [("extraction", self._extraction), ("capture", self._capture)],
            "credit": [("feedback", self._feedback), ("reinforcement", self._reinforcement)],
            "merge": [("contradictions", self._contradictions), ("compaction", parts["dedup"])],
            "maintain": [
                ("consolidation", parts["semantic"]),
                ("promotion", parts["promote"]),
                ("anti-patterns", self._anti_patterns),
                ("continuity", self._continuity),
                *further,
            ],
        }

    @property
    def _place(self) -> Location:
        start = self.ended.start
        return place_of_work(start.job, start.task) if start and self.vault.memory else Location()

    def _index(self) -> PartResult:
        return PartResult() if self.dry_run else self.index_events(self.session)

    def _episodes(self) -> PartResult:
        done = self.episodes.reflect(self.session, dry_run=self.dry_run)
        counts = Counter(one.action for one in done.episodes)
        away = counts.pop("forgotten", 0)
        counted = (f"{count} {word}" for word, count in counts.items())
        message = "; ".join((*counted, *self._say_left_out(away, "reflect"), *done.notices))
        return PartResult(message, (done.run,), is_skipped=bool(away) and not done.run.changes)

    def _stage(self) -> PartResult:
        jobs = dict.fromkeys((None, self._place.job))
        reports = [self.stages.detect(job, dry_run=self.dry_run) for job in jobs]
        new = (f"{one.before} -> {one.stage}" for one in reports if one.is_new)
        return PartResult("; ".join(new), tuple(report.run for report in reports))

    def _capture(self) -> PartResult:
        runs = []
        if self.vault.settings.learning.capture != "off":
            runs.append(self.captures.capture(session=self.session, dry_run=self.dry_run).run)
        runs.append(self.episodes.propose_hard_events(self.session, dry_run=self.dry_run))
        return report_changes(runs, "learning kept or proposed", "learnings kept or proposed")

    def _extraction(self) -> PartResult:
        done = self.extraction.extract(self.session, dry_run=self.dry_run)
        if done.scopes and done.scopes[0].outcome == "skipped":
            return PartResult(f"skipped: {done.scopes[0].message}", done.runs)
        kept = sum(scope.count(action) for scope in done.scopes for action in ("created", "reinforced"))
        away = done.was_taken_away
        is_incomplete = any(one.outcome in ("planned", "failed") for one in done.scopes)
        quiet = [] if away or is_incomplete else ["nothing worth keeping"]
        parts = [f"{pluralize(kept, 'learning')} kept"] if kept else quiet
        parts += self._say_left_out(away, "extract")
        for reason in dict.fromkeys(scope.message for scope in done.failed):
            names = ", ".join(one.scope for one in done.failed if one.message == reason)
            parts.append(f"{names} failed: {reason}")
        parts += [done.summary] if is_incomplete else []
        parts += [str(done.used)] if done.used.calls and not self.dry_run else []
        code = ProviderFailed.exit_code if done.is_failure else 0
        is_skipped = bool(away) and not any(run.changes for run in done.runs)
        return PartResult("; ".join(parts), done.runs, is_skipped, code)

    def _feedback(self) -> PartResult:
        """Credit what the session's agents were shown, by the stated outcome, else by what they said of entries."""
        outcome = (self.ended.end.args or {}).get("outcome") if self.ended.end else None
        word = parse_outcome(outcome) if outcome in SESSION_OUTCOMES else None
        runs = self.outcomes.credit_session(self.session, word, dry_run=self.dry_run)
        if word is None and not any(run.changes for run in runs):
            return PartResult("nobody said how it went", is_skipped=True)
        return report_changes(runs, "credited")

    def _reinforcement(self) -> PartResult:
        run = self.outcomes.reinforce(self.session, dry_run=self.dry_run)
        return report_changes([run], "entry counted", "entries counted")

    def _contradictions(self) -> PartResult:
        day = parse_date(self.ended.start.ts) if self.ended.start else None
        return self.maintenance.contradictions_part(day, dry_run=self.dry_run)

    def _anti_patterns(self) -> PartResult:
        run = self.review.scan(dry_run=self.dry_run).run
        return report_changes([run], "proposal for review", "proposals for review")

    def _continuity(self) -> PartResult:
        report = self.continuity.refresh(job=self._place.job, only_if_there=True, dry_run=self.dry_run)
        return PartResult(report.path if report.run.changes else "", (report.run,))

    def _say_left_out(self, count: int, verb: str) -> list[str]:
        """Return the remark on what a person has reverted or deleted before, if anything."""
        words = f"{count} left out that {'were' if count > 1 else 'was'} reverted or deleted before"
        return [f"{words}; `memory-kb {verb} {self.session} --again`"] if count else []
