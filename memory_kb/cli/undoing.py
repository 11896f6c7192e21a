"""The verb undo."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, say, style
from memory_kb.cli.runs import CONFLICT, finish_run, run_as_json

if TYPE_CHECKING:
    from memory_kb.reports import RunReport, RunView


@click.command("undo")
@shared_options
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--session", metavar="ID", help="Take back all that the end of this session wrote.")
@click.option("--list", "is_list", is_flag=True, help="Show the runs that can be taken back, newest first; with --session, only its own.")
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
    memory-kb undo --session 0b1c42 --dry-run
    """
    with options.open() as kb:
        if is_list:
            return _list_runs(options, kb.runs(session))
        if session is not None:
            return _undo_session(options, kb.undo_session(session, dry_run=dry_run), dry_run=dry_run)
        report = kb.undo(run, dry_run=dry_run)
    return _finish(options, report, dry_run=dry_run)


def _undo_session(options: Options, reports: tuple[RunReport, ...], *, dry_run: bool) -> int:
    if options.as_json:
        print_json({"runs": [run_as_json(report, dry_run=dry_run) for report in reports]})
        return CONFLICT if any(report.conflicts for report in reports) else 0
    if not reports:
        say("All of it is taken back already.")
    return max((_finish(options, report, dry_run=dry_run) for report in reports), default=0)


def _finish(options: Options, report: RunReport, *, dry_run: bool) -> int:
    def show() -> None:
        for change in report.changes:
            click.echo(f"{_PAST[change.action]} {one_line(change.path)}")
        if not (report.changes or report.conflicts):
            say("There is nothing to take back.")

    return finish_run(options, report, dry_run=dry_run, show=show)


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
