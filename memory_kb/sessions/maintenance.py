"""Run steps one after the other: those of consolidation and maintenance, which process the whole vault."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol

from memory_kb.errors import MemoryKBError, UnreadableInput, UsageError, explain_refusal
from memory_kb.reports import MaintenanceReport, RunReport, StepReport
from memory_kb.store.logs import MaintenanceLog, RetrievalLog

if TYPE_CHECKING:
    from memory_kb.episodes.service import Episodes
    from memory_kb.index.maintenance import Indexing
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.citation_service import Citations
    from memory_kb.learning.compaction import Compactor
    from memory_kb.learning.lifecycle import Lifecycle
    from memory_kb.learning.rules import Rules
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


class Done(NamedTuple):
    """What a step came to: a sentence, "" where there was nothing to do, and what it wrote.

    With an `exit_code` a part of it failed.
    """

    message: str = ""
    runs: tuple[RunReport, ...] = ()
    is_skipped: bool = False
    exit_code: int = 0


#: The name of a step, and the work.
Step = tuple[str, Callable[[], Done]]


def run_steps(steps: Iterable[Step]) -> tuple[StepReport, ...]:
    """Run some steps in order and report the result of each.

    A step that fails is reported with its reason; only an interrupt of a person stops the rest, and
    the next time completes it.
    """
    return tuple(_run_step(name, work) for name, work in steps)


def _run_step(name: str, work: Callable[[], Done]) -> StepReport:
    started = time.perf_counter()
    done = Done()
    try:
        done = work()
        code = done.exit_code
        notices = (notice for run in done.runs for notice in run.notices)
        message = "; ".join(filter(None, (done.message, *notices, _conflicts(done.runs))))
    except MemoryKBError as exc:
        message, code = str(exc), exc.exit_code
    except OSError as exc:
        message, code = explain_refusal(exc), UnreadableInput.exit_code
    except Exception as exc:  # noqa: BLE001 - a bug in one step must not cost the others
        message, code = f"bug: {type(exc).__name__}: {exc}", MemoryKBError.exit_code
    changes = tuple(change for run in done.runs for change in run.changes)
    conflicts = tuple(conflict for run in done.runs for conflict in run.conflicts)
    runs = tuple(run.run for run in done.runs if run.run)
    diff = "".join(run.diff for run in done.runs)
    outcome = "failed" if code else "skipped" if done.is_skipped else "done" if changes else "nothing"
    return StepReport(name, outcome, message, time.perf_counter() - started, runs, changes, conflicts, diff, code)


def merge_steps(reports: Iterable[StepReport], groups: Mapping[str, Sequence[str]]) -> tuple[StepReport, ...]:
    """Return one report for each group of steps: what its parts say, each with its name."""
    by_name = {report.name: report for report in reports}
    merged = []
    for name, parts in groups.items():
        found = [by_name[part] for part in parts if part in by_name]
        outcomes = [one.outcome for one in found]
        outcome = next((word for word in ("failed", "done", "skipped") if word in outcomes), "nothing")
        merged.append(
            StepReport(
                name,
                outcome,
                "; ".join(f"{one.name}: {one.message}" for one in found if one.message),
                sum(one.seconds for one in found),
                tuple(run for one in found for run in one.runs),
                tuple(change for one in found for change in one.changes),
                tuple(conflict for one in found for conflict in one.conflicts),
                "".join(one.diff for one in found),
                next((one.exit_code for one in found if one.exit_code), 0),
            )
        )
    return tuple(merged)


def _conflicts(runs: Iterable[RunReport]) -> str:
    left = [conflict.path for run in runs for conflict in run.conflicts]
    return f"left alone: {', '.join(dict.fromkeys(left))}" if left else ""


def changed(runs: Sequence[RunReport], one: str, many: str) -> Done:
    """Return what a step came to that changed entries; one that was marked and then moved counts once."""
    count = sum(len({change.id or change.path for change in run.changes}) for run in runs)
    return Done(f"{count} {one if count == 1 else many}" if count else "", tuple(runs))


#: The parts of `consolidate`, in their order.
STAGES = ("semantic", "dedup", "age", "archive", "promote")
#: Maintenance is due a week after it was done last.
_EVERY = timedelta(days=7)
#: What was shown is remembered this long; runs can be undone this long.
_KEEP_RETRIEVALS, _KEEP_DECISIONS = timedelta(days=400), timedelta(days=90)


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
    _rules: Rules

    def consolidate(self, stage: str | None = None, *, dry_run: bool = False) -> tuple[StepReport, ...]:
        """Make rules of recurring episodes, merge doubles, age, archive and promote; or one of these.

        Steps are independent: an error in one is reported, and the next one runs.

        Args:
            stage: `semantic`, `dedup`, `age`, `archive` or `promote`; all of them when not given.
            dry_run: write nothing; the reports say what would change, each for the notes as they are.

        Raises:
            UsageError: there is no such stage.
        """
        if stage is not None and stage not in STAGES:
            raise UsageError(f"unknown stage {stage!r}", f"stages are {', '.join(STAGES)}")
        return run_steps(step for step in self.consolidation(dry_run=dry_run) if stage in (None, step[0]))

    def consolidation(self, *, dry_run: bool = False) -> tuple[Step, ...]:
        """Return the steps of `consolidate`."""
        cycle = self._lifecycle
        return (
            ("semantic", lambda: self._semantic_step(dry_run=dry_run)),
            ("dedup", lambda: self._dedup_step(dry_run=dry_run)),
            ("age", lambda: changed([self._episodes.age_episodes(dry_run=dry_run)], "aged", "aged")),
            ("archive", lambda: changed([cycle.archive(dry_run=dry_run)], "archived", "archived")),
            ("promote", lambda: changed([cycle.promote(dry_run=dry_run)], "promoted", "promoted")),
        )

    def maintain(self, *, force: bool = False, dry_run: bool = False) -> MaintenanceReport:
        """Do what is due: each step a week after it was done last, or all of it with `force`.

        That is counting what was retrieved outside of sessions, the steps of `consolidate`, the
        sweep over the rules, a look for damage, and the trimming of the logs.
        """
        return self.run_due(force=force, dry_run=dry_run)

    def run_due(self, *, fresh: Collection[str] = (), force: bool = False, dry_run: bool = False) -> MaintenanceReport:
        """Do what is due; the steps in `fresh` were done a moment ago and count as done now."""
        log, now = MaintenanceLog(self._vault.machine / "log"), self._vault.clock().astimezone(UTC)
        last = log.last()
        checked = last.get("contradictions")
        steps = (
            ("reinforce", lambda: changed([self._lifecycle.reinforce(dry_run=dry_run)], "counted", "counted")),
            *self.consolidation(dry_run=dry_run),
            ("contradictions", lambda: self.contradictions_step(checked.date() if checked else None, dry_run=dry_run)),
            ("claims", lambda: changed([self._citations.verify_claims(dry_run=dry_run)], "flagged", "flagged")),
            ("sweep", lambda: self._sweep_step(dry_run=dry_run)),
            ("doctor", self._doctor_step),
            ("trim", lambda: self._trim_step(now, dry_run=dry_run)),
        )
        due = [step for step in steps if force or _is_due(last.get(step[0]), now)]
        with self._index.settled():
            reports = run_steps(step for step in due if step[0] not in fresh)
        if not dry_run:
            failed = {report.name for report in reports if report.outcome == "failed"}
            for name, _ in due:
                if name not in failed:
                    log.done(name, now)
        later = [last[name] for name, work in steps if name in last and (name, work) not in due]
        return MaintenanceReport(reports, min([*later, now]) + _EVERY)

    def is_maintenance_due(self) -> bool:
        """Return whether the last maintenance was a week ago, or there was none."""
        last = MaintenanceLog(self._vault.machine / "log").last()
        return _is_due(min(last.values(), default=None), self._vault.clock().astimezone(UTC))

    def _semantic_step(self, *, dry_run: bool) -> Done:
        done = self._episodes.consolidate_semantic(dry_run=dry_run)
        counts = Counter(one.action for one in done.taken) + Counter(extended=len(done.extended))
        return Done("; ".join(f"{count} {word}" for word, count in counts.items()), (done.run,))

    def _dedup_step(self, *, dry_run: bool) -> Done:
        report = self._compactor.compact(dry_run=dry_run)
        return Done(report.sentence, (report.run,))

    def contradictions_step(self, since: date | None, *, dry_run: bool) -> Done:
        """Resolve the contradictions of what is new since a day, as a step."""
        report = self._compactor.contradictions(resolve=True, since=since, dry_run=dry_run)
        return changed([report.run], "entry retired or flagged", "entries retired or flagged")

    def _sweep_step(self, *, dry_run: bool) -> Done:
        report = self._rules.sweep(dry_run=dry_run)
        counts = {"promoted": report.promoted, "demoted": report.demoted, "flagged": report.flagged}
        summary = ", ".join(f"{len(ids):,} {word}" for word, ids in counts.items() if ids)
        return Done(summary if report.run.changes else "", (report.run,))

    def _doctor_step(self) -> Done:
        count = len(
            (*self._writer.killed_run(), *self._indexing.check_index(is_thorough=False), *self._indexing.lint())
        )
        return Done(f"{count} finding{'s' * (count != 1)}; `memory-kb doctor` lists them" if count else "")

    def _trim_step(self, now: datetime, *, dry_run: bool) -> Done:
        if dry_run:
            return Done(is_skipped=True)
        with self._writer.lock():
            self._writer.recover_held()
            dropped = RetrievalLog(self._vault.machine / "log").trim((now - _KEEP_RETRIEVALS).isoformat())
            freed = self._writer.journal.trim((now - _KEEP_DECISIONS).strftime("%Y-%m-%dT%H:%M:%SZ"))
        return Done(f"{dropped:,} retrievals and {freed:,} runs forgotten" if dropped or freed else "")


def _is_due(last: datetime | None, now: datetime) -> bool:
    if last is None:
        return True
    aware = last if last.tzinfo else last.replace(tzinfo=UTC)
    return now - aware >= _EVERY or aware > now


class IdleMaintenance:
    """The maintenance that is due, done by a watcher while nobody works in the vault."""

    def __init__(self, open_again: Callable[[], AbstractContextManager[Maintained]]) -> None:
        self._open_again = open_again
        self._seen = -1

    def __call__(self, stop: threading.Event) -> Iterator[str]:
        """Do the maintenance that is due when nothing was written since the last call; say what was done."""
        with self._open_again() as own:
            before, self._seen = self._seen, own.generation
            if before != self._seen or stop.is_set() or not own.maintenance.is_maintenance_due():
                return
            for step in own.maintenance.maintain().steps:
                if step.outcome in ("done", "failed"):
                    yield f"maintenance, {step.name}: {step.message or step.outcome}"


class Maintained(Protocol):
    """An open vault, as far as its maintenance goes."""

    @property
    def generation(self) -> int:
        """The number of the index's state."""

    @property
    def maintenance(self) -> Maintenance:
        """The maintenance of the vault."""
