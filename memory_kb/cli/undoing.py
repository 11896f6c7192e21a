"""The verb undo."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, say, style
from memory_kb.cli.runs import CONFLICT, end_run, finish_run, print_preview, run_as_json
from memory_kb.errors import UsageError
from memory_kb.reports import RunReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_kb.reports import RunView


@click.command("undo")
@shared_options
@click.argument("named", metavar="[RUN]...", nargs=-1)
@click.option("--session", metavar="ID", help="Take back all that the end of this session wrote.")
@click.option(
    "--list",
    "is_list",
    is_flag=True,
    help="Show the runs that can be taken back, newest first; with --session, only its own.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def undo_verb(options: Options, /, named: tuple[str, ...], session: str | None, is_list: bool, dry_run: bool) -> int:
    """Take back what the last run wrote, or those named, one after the other, byte for byte.

    Files that somebody has edited since are left, and the exit code is 6. Without a name, each undo goes one run further
    back; an undo is taken back by its own name.

    \b
    memory-kb undo
    memory-kb undo --list
    memory-kb undo 3f9a0c12 --dry-run
    memory-kb undo --session 0b1c42 --dry-run
    memory-kb undo 77ab0c1e 3f9a0c12
    """
    with options.open() as kb:
        if is_list:
            return _list_runs(options, kb.runs(session))
        if session is not None and named:
            raise UsageError("a run and a session are named", "name the one or the other")
        if session is not None:
            return _finish_all(options, kb.undo_session(session, dry_run=dry_run), dry_run=dry_run)
        if len(named) > 1:
            return _finish_all(options, kb.undo_runs(named, dry_run=dry_run), dry_run=dry_run)
        report = kb.undo(*named, dry_run=dry_run)
    return finish_run(options, report, dry_run=dry_run, show=lambda: _show(report))


def _finish_all(options: Options, reports: Sequence[RunReport], *, dry_run: bool) -> int:
    """Print several runs, with one way back for all of them; return the exit code."""
    if options.as_json:
        print_json({"runs": [run_as_json(report, dry_run=dry_run) for report in reports]})
        return CONFLICT if any(report.conflicts for report in reports) else 0
    if not reports:
        say("All of it is taken back already.")
    for report in reports:
        if dry_run:
            print_preview(report)
        else:
            _show(report)
    made = [report.run for report in reports if report.run]
    if made:
        say(f"`memory-kb undo {' '.join(reversed(made))}` takes this back.")
    notices = tuple(dict.fromkeys(notice for report in reports for notice in report.notices))
    return end_run(
        RunReport(
            None,
            "undo",
            conflicts=tuple(conflict for report in reports for conflict in report.conflicts),
            notices=notices,
        )
    )


def _show(report: RunReport) -> None:
    for change in report.changes:
        click.echo(f"{_PAST[change.action]} {one_line(change.path)}")
    if not (report.changes or report.conflicts):
        say("There is nothing to take back.")


_PAST = {"create": "brought back", "restore": "restored", "remove": "removed"}


def _list_runs(options: Options, runs: tuple[RunView, ...]) -> int:
    if options.as_json:
        print_json({"runs": [dataclasses.asdict(run) for run in runs]})
        return 0
    for run in runs:
        state = f" (taken back by {run.undone_by})" if run.undone_by else ""
        click.echo(
            f"{style(run.run, fg='green')}  {run.time}  {clean(run.verb):<10}  {one_line(run.summary)}{style(state, dim=True)}"
        )
    if not runs:
        say("No run has changed anything yet.")
    return 0
