"""The verb capture."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, print_problems, say, tell_id
from memory_kb.cli.runs import end_run, print_preview, run_as_json
from memory_kb.errors import UnreadableInput
from memory_kb.model import Problem
from memory_kb.notes.events import Event, NoEvent, load_object
from memory_kb.text import printable

if TYPE_CHECKING:
    from memory_kb.learning.capture import CaptureReport


@click.command("capture")
@shared_options
@click.argument("text", nargs=-1)
@click.option("--job", help="Keep it with this job.")
@click.option("--task", help="Keep it with this task of --job.")
@click.option("--session", metavar="ID", help="Where the message comes from.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def capture_verb(
    options: Options, /, text: tuple[str, ...], job: str | None, task: str | None, session: str | None, dry_run: bool
) -> int:
    """Keep what a message states with an explicit marker, such as "from now on" or "we use X, not Y".

    TEXT is one message of a person. Without it stdin is read: one message, or JSON lines of events as `session append` takes
    them, of which only the messages of people are read. Without either, --session names a logged session.

    \b
    memory-kb capture "Looks good. Always use UTC for timestamps."
    memory-kb capture --session 0b1c42 --dry-run
    memory-kb session replay 0b1c42 --json | memory-kb capture --job api
    """
    problems: list[Problem] = []
    messages = _read(text, problems)
    with options.open() as kb:
        report = kb.capture(messages, job=job, task=task, session=session, dry_run=dry_run)
    code = 0 if dry_run else end_run(report.run)
    if options.as_json:
        told = {
            "messages": [dataclasses.asdict(one) for one in report.messages],
            "problems": [dataclasses.asdict(one) for one in problems],
        }
        print_json(told | run_as_json(report.run, dry_run=dry_run))
        return code
    print_problems(problems)
    _print_report(report, dry_run=dry_run)
    return code


def _read(text: tuple[str, ...], problems: list[Problem]) -> list[str | Event] | None:
    """Return the messages that were given, or None where there are none."""
    from memory_kb.cli.sessions import read_events

    if text and text != ("-",):
        return [" ".join(map(printable, text))]
    given = b"" if sys.stdin is None or (not text and sys.stdin.isatty()) else sys.stdin.buffer.read()
    if not given.strip():
        return None
    lines = given.splitlines(keepends=True)
    if not _is_json(next(line for line in lines if line.strip())):
        return [given.decode("utf-8", "replace")]
    events: list[str | Event] = list(read_events(lines, problems, problems))
    if problems and not events:
        raise UnreadableInput(f"stdin:{problems[0].line}: {problems[0].message}", "write one JSON object a line")
    return events


def _is_json(line: bytes) -> bool:
    try:
        return bool(load_object(line))
    except NoEvent:
        return False


def _print_report(report: CaptureReport, *, dry_run: bool) -> None:
    for one in report.kept:
        if not dry_run and one.path and one.id:
            click.echo(
                f"{one.action} {one_line(one.path)}  {tell_id(one.id)}  {clean(' '.join((one.text or '').split()))}"
            )
        elif one.action not in ("created", "reinforced"):
            say(f"{one.action}: {one.reason}")
    if dry_run:
        print_preview(report.run)
    if not report.kept:
        say(
            f"Nothing to keep: {report.messages[0].reason}."
            if len(report.messages) == 1
            else f"Nothing to keep in {len(report.messages):,} messages."
            if report.messages
            else "There is no message of a person to look at."
        )
