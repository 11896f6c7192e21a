"""Run steps one after the other; an error in one does not stop the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from memory_kb.errors import MemoryKBError, UnreadableInput, explain_refusal
from memory_kb.reports import RunReport, StepReport


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
