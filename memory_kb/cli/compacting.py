"""The verbs compact and contradictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, say, style, tell_id
from memory_kb.cli.runs import finish_run
from memory_kb.words import SCOPE_ALIASES, SCOPES

if TYPE_CHECKING:
    from memory_kb.learning.upkeep.compact import CompactReport
    from memory_kb.learning.upkeep.contradict import ContradictionView, Side

_DONE = {"retire": "the older is retired", "weaken": "both are flagged for review", "keep": "both are kept"}
_TO_DO = {"retire": "would retire the older", "weaken": "would flag both for review", "keep": "keeps both"}


@click.command("compact")
@shared_options
@click.option(
    "--scope",
    type=click.Choice((*SCOPES, *SCOPE_ALIASES)),
    help="Compact this scope alone [default: job, project and global].",
)
@click.option("--job", help="Compact this job alone.")
@click.option("--task", help="Compact this task of --job alone.")
@click.option(
    "--threshold",
    type=float,
    metavar="SHARE",
    help="Merge paraphrases too, whose stemmed words overlap by this much; 0.4 merges a lot.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def compact_verb(
    options: Options, /, scope: str | None, job: str | None, task: str | None, threshold: float | None, dry_run: bool
) -> int:
    """Say once what is said twice.

    Entries that say the same become one, which keeps the longest text and what all of them have counted; the others go to archive/
    with a link to it. Retired entries go there too. What differs in a number, a name or a negation is never merged.

    \b
    memory-kb compact --dry-run
    memory-kb compact --job api
    """
    with options.open() as kb:
        report = kb.compact(scope, job, task, threshold=threshold, dry_run=dry_run)
    told = {
        "before": report.before,
        "after": report.after,
        "retired": report.retired,
        "repeated": report.repeated,
        "merged": report.merged,
    }
    return finish_run(options, report.run, dry_run=dry_run, told=told, show=lambda: _print_counts(report))


def _print_counts(report: CompactReport) -> None:
    click.echo(report.sentence or f"{report.before:,} {'entry' if report.before == 1 else 'entries'}, nothing to do")


@click.command("contradictions")
@shared_options
@click.option("--resolve", is_flag=True, help="Do what is proposed.")
@click.option("--dry-run", is_flag=True, help="With --resolve: show what would change, write nothing.")
@click.pass_obj
def contradictions_verb(options: Options, /, resolve: bool, dry_run: bool) -> int:
    """Tell which entries contradict each other.

    Of two that are 90 days apart, --resolve retires the older in favour of the newer; two others stay, linked and flagged for review,
    with less importance than before. Nothing is deleted.

    \b
    memory-kb contradictions
    memory-kb contradictions --resolve --dry-run
    """
    with options.open() as kb:
        report = kb.contradictions(resolve=resolve, dry_run=dry_run)

    def show() -> None:
        for one in report.found:
            _print_contradiction(one, is_done=resolve)
        if not report.found:
            say("No entry contradicts another, beyond what was settled or waits for review.")

    found = [
        {
            "cause": one.cause,
            "signal": one.signal,
            "resolution": one.resolution,
            "older": one.older._asdict(),
            "newer": one.newer._asdict(),
        }
        for one in report.found
    ]
    told = {"contradictions": found}
    return finish_run(options, report.run, dry_run=resolve and dry_run, told=told, notes=report.notices, show=show)


def _print_contradiction(found: ContradictionView, *, is_done: bool) -> None:
    words = (_DONE if is_done else _TO_DO)[found.resolution]
    click.echo(f"{style(found.cause, bold=True)}: {one_line(found.signal)}; {words}")
    for word, side in (("older", found.older), ("newer", found.newer)):
        click.echo(f"  {word}  {_show(side)}")


def _show(side: Side) -> str:
    place = style(f"{one_line(side.path)}:{side.line}", fg="green")
    return f"{clean(side.title)}  {place}  {style(tell_id(side.id), dim=True)}"
