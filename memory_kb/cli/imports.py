"""The verb import."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import one_line, print_json, say
from memory_kb.cli.runs import CONFLICT, end_run, print_preview, run_as_json

if TYPE_CHECKING:
    from memory_kb.learning.imports.offering import ImportReport

#: As `learning/imports/pieces.py` has them, which is not loaded for the help.
_FORMATS = ("auto", "basic-memory", "obsidian", "daily-logs", "claude-export", "chatgpt-export", "mem0", "agents-md")
_SHOWN = 20


@click.command("import")
@shared_options
@click.argument("source", type=click.Path())
@click.option("--format", type=click.Choice(_FORMATS), default="auto", show_default=True, help="What SOURCE is.")
@click.option(
    "--as",
    "wanted",
    type=click.Choice(["entries", "sessions"]),
    default="entries",
    show_default=True,
    help="What an export becomes.",
)
@click.option(
    "--scope",
    type=click.Choice(["global", "project"]),
    default="project",
    show_default=True,
    help="Where the entries go.",
)
@click.option("--job", help="Keep them with this job.")
@click.option("--task", help="Keep them with this task of --job.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def import_verb(options: Options, /, source: str, wanted: str, dry_run: bool, **chosen: Any) -> int:
    """Bring in what another tool keeps: notes, memories, instructions or conversations.

    SOURCE is a folder of basic-memory or Obsidian notes, MEMORY.md with its daily logs, an AGENTS.md or CLAUDE.md, a JSON file of
    mem0, or the ZIP archive or conversations.json that Claude or ChatGPT exports. Of conversations only what a person states as a
    preference, a correction or a constraint is kept; with --as sessions they become session logs instead.

    SOURCE stays as it is. Importing it again brings in what is new.

    \b
    memory-kb import AGENTS.md --dry-run
    memory-kb import ~/basic-memory
    memory-kb import ~/Downloads/data-export.zip --as sessions
    """
    with options.open() as kb:
        report = kb.import_(source, as_sessions=wanted == "sessions", dry_run=dry_run, **chosen)
    if options.as_json:
        print_json(_as_json(report) | run_as_json(report.run, dry_run=dry_run))
        return CONFLICT if report.run.conflicts else 0
    if dry_run and wanted == "entries":
        print_preview(report.run)
    _print_report(report, dry_run=dry_run)
    return end_run(report.run)


def _as_json(report: ImportReport) -> dict[str, Any]:
    return {
        "format": report.format,
        "source": report.source,
        "pieces": [dataclasses.asdict(one) for one in report.pieces],
        "left_out": [one._asdict() for one in report.left_out],
        "sessions": report.sessions,
        "events": report.events,
    }


def _print_report(report: ImportReport, *, dry_run: bool) -> None:
    tell = say if dry_run else click.echo
    if report.sessions or report.events:
        tell(f"{_count(report.sessions, 'session')}, {_count(report.events, 'event')}")
    for what in dict.fromkeys(one.what for one in report.pieces):
        counts = {action: count for (name, action), count in report.count().items() if name == what}
        tell(
            f"{_count(sum(counts.values()), what)}: {', '.join(f'{count:,} {word}' for word, count in counts.items())}"
        )
    for one in [one for one in report.pieces if one.message][:_SHOWN]:
        say(f"{one_line(one.origin)}:{one.line}: {one.action}: {one_line(one.message)}")
    for left in sorted(report.left_out, key=lambda one: -one.number)[:_SHOWN]:
        where = f", the first at {one_line(left.first)}" if left.number > 1 else f", at {one_line(left.first)}"
        say(f"left out: {_count(left.number, left.what)}: {one_line(left.why)}{where}")
    if len(report.left_out) > _SHOWN:
        say(f"and {len(report.left_out) - _SHOWN:,} more reasons; --json lists them")
    if not report.pieces and not report.events:
        tell(f"Nothing to import in {one_line(report.source)}, read as {report.format}.")
    if report.run.run:
        say(f"`memory-kb undo {report.run.run}` takes this back.")


def _count(number: int, what: str) -> str:
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else many}"
