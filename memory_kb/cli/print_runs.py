"""Print what a run or the steps of one wrote, or would write, and return the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memory_kb.cli.output import CONFLICT, Options, echo, pick, print_json, say, style
from memory_kb.text import pluralize

if TYPE_CHECKING:
    from memory_kb.reports import ChangeView, RunReport, StepReport

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def finish_run(
    options: Options,
    run: RunReport,
    fields: Mapping[str, Any] | None = None,
    *,
    notes: Iterable[str] = (),
    report: Callable[[], object] | None = None,
    said: str = "",
    nothing: str = "Nothing changed: it is so already.",
) -> int:
    """Print a run in the way that was asked for; return the exit code.

    Args:
        fields: what `--json` says beside the run.
        notes: what a person should know, each in a sentence.
        report: prints what was found, in a preview too.
        said: what was done, in a line; without it and `report` every change has a line.
        nothing: said when nothing was changed.
    """
    if options.as_json:
        for notice in run.notices:
            say(notice)
        print_json({**(fields or {}), **run_as_json(run, dry_run=options.dry_run)})
        return CONFLICT if run.conflicts else 0
    if report:
        report()
    for note in notes:
        say(note)
    if options.dry_run:
        print_preview(run)
    elif said and not run.conflicts:
        echo(said)
    elif not (said or report):
        _print_changes(run, nothing)
    if run.run:
        say(f"`memory-kb undo {run.run}` reverts this.")
    return end_run(run)


def _print_changes(run: RunReport, nothing: str) -> None:
    for line in dict.fromkeys(map(_describe, run.changes)):
        echo(line)
    if not (run.changes or run.conflicts):
        say(nothing)


def finish_entry(options: Options, run: RunReport, fields: Mapping[str, Any], line: str) -> int:
    """Print the result for one entry; return the exit code. With `--json` the run is left out if it was written."""
    if options.as_json:
        print_json({**fields, **(run_as_json(run, dry_run=True) if options.dry_run else {})})
    elif options.dry_run:
        print_preview(run)
    elif not run.conflicts:
        echo(line)
    return end_run(run)


def _describe(change: ChangeView) -> str:
    to = f" to {change.to}" if change.to else ""
    return f"{change.action} {change.path}{to}: {change.reason}"


def run_as_json(report: RunReport, *, dry_run: bool) -> dict[str, Any]:
    """Return a run as the object that `--json` prints."""
    listed = pick(report, "run", "verb", "changes", "conflicts")
    return listed | ({"dry_run": True, "diff": report.diff} if dry_run else {})


def print_preview(report: RunReport) -> None:
    """Print what a run would change: the reasons on stderr, a unified diff on stdout."""
    for change in report.changes:
        say(f"would {_describe(change)}")
    print_diff(report.diff)
    if not report.changes:
        say("No note would change.")


def print_diff(diff: str) -> None:
    """Print a unified diff, in colour where that is wanted."""
    for line in diff.splitlines():
        is_file = line.startswith(("--- ", "+++ "))
        echo(style(line, fg=None if is_file else _COLOURS.get(line[:1]), bold=is_file))


def end_run(report: RunReport) -> int:
    """Say what was fixed and what had to be left; return the exit code."""
    for notice in report.notices:
        say(notice)
    for conflict in report.conflicts:
        say(f"left: {conflict.message}")
    return CONFLICT if report.conflicts else 0


_STEP_COLOURS = {"done": "green", "failed": "red"}
#: So many new files are named below a step.
_MOST_NEW = 8


def print_steps(steps: Sequence[StepReport], *, dry_run: bool, with_new: bool = False) -> None:
    """Print a line for each step: name, outcome, seconds and message; `with_new` lists the files of new entries."""
    width = max((len(step.name) for step in steps), default=0)
    for step in steps:
        outcome = "would be done" if dry_run and step.outcome == "done" else step.outcome
        word = style(f"{outcome:<7}", fg=_STEP_COLOURS.get(step.outcome), dim=step.outcome in ("nothing", "skipped"))
        echo(f"{step.name:<{width}}  {word}  {step.seconds:6.2f} s  {step.message}".rstrip())
        new = [change.path for change in step.changes if change.action == "create" and change.id] if with_new else []
        more = [f"{len(new) - _MOST_NEW} more"] if len(new) > _MOST_NEW else []
        for line in new[:_MOST_NEW] + more:
            echo(style(f"{'':<{width}}  + {line}", dim=True))
    if dry_run:
        print_diff("".join(step.diff for step in steps))


def end_steps(steps: Sequence[StepReport], command: str = "") -> int:
    """Say how many steps failed, where a command repeats them; return the exit code.

    That is the code of a failure, a bug first, else that of files that were left.
    """
    failed = sum(step.outcome == "failed" for step in steps)
    if failed and command:
        of_all = f"{failed} of {pluralize(len(steps), 'step')} failed"
        say(f"{of_all}; once that is fixed, `{command}` again does what is left.")
    if codes := [step.exit_code for step in steps if step.exit_code]:
        return 1 if 1 in codes else codes[0]
    return CONFLICT if any(step.conflicts for step in steps) else 0
