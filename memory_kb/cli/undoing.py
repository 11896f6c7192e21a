"""The verb undo, and how every writing verb shows what it did or would do."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, say, style, use_colour

if TYPE_CHECKING:
    from memory_kb.reports import RunReport, RunView

#: What a run ends with that had to leave files alone.
CONFLICT = 6
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def run_as_json(report: RunReport, *, dry_run: bool) -> dict[str, Any]:
    """Return a run as the object that `--json` prints."""
    listed = {
        "run": report.run,
        "verb": report.verb,
        "changes": [dataclasses.asdict(change) for change in report.changes],
        "conflicts": [conflict._asdict() for conflict in report.conflicts],
    }
    return listed | ({"dry_run": True, "diff": report.diff} if dry_run else {})


def print_preview(report: RunReport) -> None:
    """Print what a run would change: the reasons on stderr, a unified diff on stdout."""
    for change in report.changes:
        say(f"would {change.action} {one_line(change.path)}{f' to {one_line(change.to)}' if change.to else ''}: {change.reason}")
    for line in report.diff.splitlines():
        click.echo(_coloured(clean(line)) if use_colour() else clean(line))
    if not report.changes:
        say("Nothing would change.")


def _coloured(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return click.style(line, bold=True)
    colour = _COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line


def end_run(report: RunReport) -> int:
    """Tell what was mended and what had to be left; return the exit code."""
    for notice in report.notices:
        say(notice)
    for conflict in report.conflicts:
        say(f"left: {conflict.message}")
    return CONFLICT if report.conflicts else 0


def finish_run(options: Options, report: RunReport, *, dry_run: bool, nothing: str) -> int:
    """Print a run as every verb that writes by itself does; return the exit code.

    `nothing` is said when it changed nothing.
    """
    if options.as_json:
        print_json(run_as_json(report, dry_run=dry_run))
        return CONFLICT if report.conflicts else 0
    if dry_run:
        print_preview(report)
        return end_run(report)
    for change in report.changes:
        click.echo(f"{change.action} {one_line(change.path)}{f' to {one_line(change.to)}' if change.to else ''}: {clean(change.reason)}")
    if report.run:
        say(f"`memory-kb undo {report.run}` takes this back.")
    elif not (report.changes or report.conflicts):
        say(nothing)
    return end_run(report)


@click.command("undo")
@shared_options
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--session", metavar="ID", help="Take back all that the end of this session wrote.")
@click.option("--list", "is_list", is_flag=True, help="Show the runs that can be taken back, newest first.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def undo_verb(options: Options, /, run: str | None, session: str | None, is_list: bool, dry_run: bool) -> int:
    """Take back what the last run wrote, or the one named, byte for byte.

    Files that somebody has edited since are left, and the exit code is 6. Without a name, each undo goes one run further
    back; an undo is taken back by its own name.

    \b
    memory-kb undo
    memory-kb undo --list
    memory-kb undo 3f9a0c12 --dry-run
    memory-kb undo --session 0b1c42
    """
    with options.open() as kb:
        if is_list:
            return _list_runs(options, kb.runs())
        if session is not None:
            if dry_run:
                return _list_runs(options, kb.runs_of_session(session))
            return _undo_session(options, kb.undo_session(session))
        report = kb.undo(run, dry_run=dry_run)
    if options.as_json:
        print_json(run_as_json(report, dry_run=dry_run))
        return CONFLICT if report.conflicts else 0
    return _print_undone(report, dry_run=dry_run)


def _undo_session(options: Options, reports: tuple[RunReport, ...]) -> int:
    if options.as_json:
        print_json({"runs": [run_as_json(report, dry_run=False) for report in reports]})
        return CONFLICT if any(report.conflicts for report in reports) else 0
    if not reports:
        say("All of it is taken back already.")
    return max((_print_undone(report, dry_run=False) for report in reports), default=0)


def _print_undone(report: RunReport, *, dry_run: bool) -> int:
    if dry_run:
        print_preview(report)
        return end_run(report)
    for change in report.changes:
        click.echo(f"{_PAST[change.action]} {one_line(change.path)}")
    if report.run:
        say(f"`memory-kb undo {report.run}` takes this back.")
    elif not report.conflicts:
        say("There is nothing to take back.")
    return end_run(report)


_PAST = {"create": "brought back", "restore": "restored", "remove": "removed"}


def _list_runs(options: Options, runs: tuple[RunView, ...]) -> int:
    if options.as_json:
        print_json({"runs": [dataclasses.asdict(run) for run in runs]})
        return 0
    for run in runs:
        state = f" (taken back by {run.undone_by})" if run.undone_by else ""
        click.echo(f"{style(run.run, fg='green')}  {run.time}  {clean(run.verb):<10}  {one_line(run.summary)}{style(state, dim=True)}")
    if not runs:
        say("No run has changed anything yet.")
    return 0
