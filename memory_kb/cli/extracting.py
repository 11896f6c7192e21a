"""Verbs about sessions that are over, and about what was assumed before: extract, premortem, assume."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, say, style
from memory_kb.cli.runs import end_run, finish_run, print_preview, run_as_json
from memory_kb.errors import UsageError
from memory_kb.learning.extraction.checkpoints import RECOMMENDATIONS

if TYPE_CHECKING:
    from memory_kb.learning.extraction.checkpoints import Checkpoints
    from memory_kb.learning.extraction.scopereports import ExtractionReport, ScopeReport, Used
    from memory_kb.reports import RunReport

_SHOWN = {
    "created": "created",
    "reinforced": "reinforced",
    "known": "known",
    "forgotten": "kept before and taken away since",
    "withdrawn": "withdrawn",
    "refused": "refused",
}
_COLOURS = {"done": "green", "failed": "red", "skipped": "yellow"}


@click.command("extract")
@shared_options
@click.argument("session", metavar="ID")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME",
    help="Only this scope, such as corrective; may be given several times.",
)
@click.option(
    "--again", is_flag=True, help="Ask again what was asked before, and keep what was taken back or deleted since."
)
@click.option("--dry-run", is_flag=True, help="Ask nothing and write nothing; show what asking would cost.")
@click.pass_obj
def extract_verb(options: Options, /, session: str, scopes: tuple[str, ...], again: bool, dry_run: bool) -> int:
    """Learn from session ID, which is over: ten scopes, each asked for by itself.

    A language model reads what was said and done; without one, failures and what people stated are found by rules. What a scope cannot do is told and
    leaves the others alone. Norms become proposals in review/; everything else is kept with the events that it rests on.

    \b
    memory-kb extract 0b1c42
    memory-kb extract 0b1c42 --scope corrective --scope observations
    memory-kb extract 0b1c42 --dry-run
    """
    with options.open() as kb:
        report = kb.extract(session, scopes=scopes or None, again=again, dry_run=dry_run)
    is_left = any(run.conflicts for run in report.runs)
    if options.as_json:
        print_json(_as_json(report, dry_run=dry_run))
        return 6 if is_left else 0
    _print_extraction(report, dry_run=dry_run)
    return max((end_run(run) for run in report.runs), default=0)


def _as_json(report: ExtractionReport, *, dry_run: bool) -> dict[str, Any]:
    scopes = [
        dataclasses.asdict(one)
        | {
            "used": one.used._asdict(),
            "kept": [kept._asdict() for kept in one.kept],
            "dropped": [dropped._asdict() for dropped in one.dropped],
        }
        for one in report.scopes
    ]
    runs = [run_as_json(run, dry_run=dry_run) for run in report.runs]
    told = {
        "session": report.session,
        "summary": report.summary,
        "scopes": scopes,
        "used": report.used._asdict(),
        "runs": runs,
    }
    return told | ({"dry_run": True} if dry_run else {})


def _print_extraction(report: ExtractionReport, *, dry_run: bool) -> None:
    width = max(len(one.scope) for one in report.scopes)
    for one in report.scopes:
        state = style(f"{one.outcome:<9}", fg=_COLOURS.get(one.outcome))
        click.echo(f"{one.scope:<{width}}  {state}  {one_line(_describe(one))}".rstrip())
        for kept in one.kept:
            where = f"  {one_line(kept.path)}" if kept.path else ""
            word = "left out" if kept.action == "forgotten" else kept.action
            click.echo(f"{'':<{width}}  {word:<10} {clean(kept.title)}{style(where, dim=True)}")
    for run in report.runs if dry_run else ():
        print_preview(run)
    if report.was_taken_away:
        say(
            f"What was taken back or deleted before stays so; `memory-kb extract {report.session} --again` keeps it again."
        )
    say(f"{report.session}: {report.summary}; {_cost(report.used, dry_run=dry_run)}")
    for run in report.runs:
        if run.run:
            say(
                f"`memory-kb undo {run.run}` takes back what was written ({len(run.changes)} change{'' if len(run.changes) == 1 else 's'})."
            )


def _describe(one: ScopeReport) -> str:
    """Return what one scope came to, in words."""
    if one.outcome == "planned":
        return _cost(one.used, dry_run=True)
    counts = [f"{count} {said}" for word, said in _SHOWN.items() if (count := one.count(word))]
    dropped = [f"{drop.times} dropped: {drop.reason}" for drop in one.dropped]
    return "; ".join(filter(None, (one.message, ", ".join(counts), *dropped)))


def _cost(used: Used, *, dry_run: bool) -> str:
    if not used.calls:
        return "no call to a language model"
    return f"would take {used}, estimated" if dry_run else str(used)


@click.command("premortem")
@shared_options
@click.argument("text", nargs=-1)
@click.option("--title", help="What the plan is called [default: its first line].")
@click.option("--job", help="The job it is for.")
@click.option("--task", help="The task of that job.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def premortem_verb(options: Options, /, text: tuple[str, ...], dry_run: bool, **chosen: Any) -> int:
    """Write down, before the work begins, the plan and what may go wrong with it: TEXT, or - for stdin.

    It is kept in .premortem.md beside the notes and rewritten when the plan changes. `extract` holds the session against it.

    \b
    memory-kb premortem "The import may be too slow for 10,000 files." --job api --task import
    memory-kb premortem - --title "Move to Postgres" < plan.md
    """
    words = " ".join(text)
    if text == ("-",):
        words = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin else ""
    with options.open() as kb:
        report = kb.premortem(words, dry_run=dry_run, **chosen)
    return _tell_written(options, report, dry_run=dry_run)


@click.command("assume")
@shared_options
@click.argument("milestone", required=False)
@click.option("--complexity", default="", help="How hard the work is taken to be.")
@click.option("--approach", default="", help="Whether the approach is taken to be viable.")
@click.option("--preferences", default="", help="What the person is taken to want.")
@click.option("--scope-note", default="", help="What is taken to belong to the work.")
@click.option(
    "--recommendation",
    type=click.Choice(RECOMMENDATIONS),
    default="continue",
    show_default=True,
    help="What to do now.",
)
@click.option("--job", help="The job it is about.")
@click.option("--task", help="The task of that job.")
@click.option("--list", "is_list", is_flag=True, help="Show what was assumed so far.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def assume_verb(options: Options, /, milestone: str | None, is_list: bool, dry_run: bool, **chosen: Any) -> int:
    """Write down what is assumed when MILESTONE is reached.

    It is kept in .assumptions.jsonl beside the notes. `extract` holds the session against it.

    \b
    memory-kb assume planned --complexity "small: two modules" --approach "one transaction per file"
    memory-kb assume built --scope-note "no migration" --recommendation notify --job api
    memory-kb assume --list --job api
    """
    with options.open() as kb:
        if is_list:
            return _list_assumptions(options, kb.assumptions(job=chosen["job"], task=chosen["task"]))
        if not milestone:
            raise UsageError(
                "no milestone is named", "try: memory-kb assume planned --complexity medium, or memory-kb assume --list"
            )
        report = kb.assume(milestone, dry_run=dry_run, **chosen)
    return _tell_written(options, report, dry_run=dry_run)


def _list_assumptions(options: Options, found: Checkpoints) -> int:
    if options.as_json:
        listed = [
            {
                "milestone": one.milestone,
                "timestamp": one.timestamp,
                "assumptions": one.assumptions,
                "recommendation": one.recommendation,
            }
            for one in found.checkpoints
        ]
        print_json({"checkpoints": listed, "torn": list(found.torn)})
        return 0
    for one in found.checkpoints:
        assumed = "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in one.assumptions.items() if text)
        click.echo(
            f"{one_line(one.timestamp)}  {style(one_line(one.milestone), bold=True)}  {one.recommendation}  {one_line(assumed)}"
        )
    for number in found.torn:
        say(f".assumptions.jsonl:{number}: no checkpoint; the line is passed over")
    if not found.checkpoints:
        say("Nothing was assumed yet.")
    return 0


def _tell_written(options: Options, report: RunReport, *, dry_run: bool) -> int:
    return finish_run(options, report, dry_run=dry_run, nothing="Nothing is new; nothing was written.")
