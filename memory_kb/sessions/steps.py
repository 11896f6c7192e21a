"""Run the parts of a step one after the other, and report their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import MemoryKBError, UnreadableInput, explain_refusal
from memory_kb.reports import RunReport, StepReport

if TYPE_CHECKING:
    from memory_kb.store.events import Event


class EndedSession(NamedTuple):
    """A session that is closed, or would be in a preview: its first event, and the one that ends it.

    With `is_preview` nothing is written; `is_closed` is then whether the end is in the log already.
    """

    session: str
    start: Event | None
    end: Event | None
    is_preview: bool
    is_closed: bool

    @property
    def unwritten_end(self) -> Event | None:
        """The end event of a preview if the log has none yet, else None."""
        return self.end if self.is_preview and not self.is_closed else None


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


def report_changes(runs: Sequence[RunReport], one: str, many: str) -> PartResult:
    """Return the result of a part that changed entries: how many, each counted once per run."""
    count = sum(len({change.id or change.path for change in run.changes}) for run in runs)
    return PartResult(f"{count} {one if count == 1 else many}" if count else "", tuple(runs))
