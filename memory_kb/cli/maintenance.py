"""The commands consolidate, maintain, reinforce, promote, compact, contradictions and stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, shared_options
from memory_kb.cli.output import (
    CONFLICT,
    Options,
    clean,
    finish_run,
    one_line,
    print_json,
    say,
    style,
    tell_id,
    use_colour,
)
from memory_kb.model import SCOPE_ALIASES, SCOPES
from memory_kb.reports import StageReport

if TYPE_CHECKING:
    from memory_kb.learning.compaction import CompactReport
    from memory_kb.learning.contradictions import Contradiction
    from memory_kb.reports import StepReport
    from memory_kb.store.plan import Memory


_COLOURS = {"done": "green", "failed": "red"}
#: So many new files are named below a step.
_MOST_NEW = 8


def steps_as_json(steps: Sequence[StepReport], *, dry_run: bool = False) -> list[dict[str, Any]]:
    """Return steps as `--json` prints them."""
    listed = [
        dataclasses.asdict(step) | {"conflicts": [conflict._asdict() for conflict in step.conflicts]} for step in steps
    ]
    return listed if dry_run else [{name: value for name, value in step.items() if name != "diff"} for step in listed]


def print_steps(steps: Sequence[StepReport], *, dry_run: bool = False, with_new: bool = False) -> None:
    """Print a line for each step: its name, what it came to, how long it took; with the files of new entries below it."""
    width = max((len(step.name) for step in steps), default=0)
    for step in steps:
        told = "would be done" if dry_run and step.outcome == "done" else step.outcome
        word = style(f"{told:<7}", fg=_COLOURS.get(step.outcome), dim=step.outcome in ("nothing", "skipped"))
        click.echo(f"{step.name:<{width}}  {word}  {step.seconds:6.2f} s  {one_line(step.message)}".rstrip())
        new = [change.path for change in step.changes if change.action == "create" and change.id] if with_new else []
        for path in new[:_MOST_NEW]:
            click.echo(style(f"{'':<{width}}  + {one_line(path)}", dim=True))
        if len(new) > _MOST_NEW:
            click.echo(style(f"{'':<{width}}  + {len(new) - _MOST_NEW} more", dim=True))
    if dry_run:
        for line in "".join(step.diff for step in steps).splitlines():
            click.echo(clean(line) if not use_colour() else style(clean(line), dim=line.startswith(" ")))


def exit_code(steps: Sequence[StepReport]) -> int:
    """Return what a verb ends with whose steps came to this: what failed counts more than what was left, and a bug most."""
    failed = [step.exit_code for step in steps if step.exit_code]
    if failed:
        return 1 if 1 in failed else failed[0]
    return CONFLICT if any(step.conflicts for step in steps) else 0


@click.command("consolidate")
@shared_options
@click.option(
    "--stage", metavar="NAME", help="One of semantic, dedup, age, archive, promote [default: all, in this order]."
)
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def consolidate_verb(options: Options, /, stage: str | None, dry_run: bool) -> int:
    """Turn what recurs into rules, merge doubles, age and archive.

    What several jobs share is promoted.

    Running it twice changes nothing the second time. `undo` takes each step back.

    \b
    memory-kb consolidate --dry-run
    memory-kb consolidate --stage dedup
    """
    with options.open() as kb:
        steps = kb.consolidate(stage, dry_run=dry_run)
    return _finish(options, steps, "memory-kb consolidate", dry_run=dry_run)


@click.command("maintain")
@shared_options
@click.option("--force", is_flag=True, help="Do all of it, due or not.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def maintain_verb(options: Options, /, force: bool, dry_run: bool) -> int:
    """Do what is due: each step of the maintenance once a week.

    It counts what was retrieved outside of sessions, consolidates, sweeps over the rules, looks for damage and
    forgets what in the logs is older than anybody will ask for. `session end` does it by itself when it is due.

    \b
    memory-kb maintain
    memory-kb maintain --force --dry-run
    """
    with options.open() as kb:
        report = kb.maintain(force=force, dry_run=dry_run)
    if options.as_json:
        print_json(
            {
                "steps": steps_as_json(report.steps, dry_run=dry_run),
                "next_due": report.next_due.isoformat(timespec="seconds"),
            }
        )
        return exit_code(report.steps)
    if not report.steps:
        say(f"Nothing is due before {report.next_due:%Y-%m-%d}.")
    return _finish(options, report.steps, "memory-kb maintain", dry_run=dry_run)


def tell_failures(steps: Sequence[StepReport], command: str) -> None:
    """Say how many steps failed, and which command does them yet."""
    failed = sum(step.outcome == "failed" for step in steps)
    if failed:
        what = f"{failed} of the {len(steps)} steps failed" if len(steps) > 1 else "The step failed"
        say(f"{what}; once that is fixed, `{command}` again does what is left.")


def _finish(options: Options, steps: Sequence[StepReport], command: str, *, dry_run: bool) -> int:
    if options.as_json:
        print_json({"steps": steps_as_json(steps, dry_run=dry_run)})
    else:
        print_steps(steps, dry_run=dry_run)
    tell_failures(steps, command)
    return exit_code(steps)


@click.command("reinforce")
@shared_options
@click.option("--session", metavar="ID", help="The session whose retrievals count [default: those outside any].")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def reinforce_verb(options: Options, /, session: str | None, dry_run: bool) -> int:
    """Count which entries were used, so that these stay prominent.

    Each entry counts once for a session, and once a day outside of any. `session end` does this by itself.

    \b
    memory-kb reinforce
    memory-kb reinforce --session 0b1c42 --dry-run
    """
    with options.open() as kb:
        report = kb.reinforce(session, dry_run=dry_run)
    return finish_run(options, report, dry_run=dry_run, nothing="Nothing was retrieved that is not counted yet.")


@click.command("promote")
@shared_options
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def promote_verb(options: Options, /, dry_run: bool) -> int:
    """Copy what several jobs learned to the project or the home.

    What three jobs learned goes to the project, what holds everywhere to the home.

    Only a language model decides about the home; without one nothing goes there. Preferences of people never promote.

    \b
    memory-kb promote --dry-run
    """
    with options.open() as kb:
        report = kb.promote(dry_run=dry_run)
    return finish_run(
        options, report, dry_run=dry_run, nothing="No three jobs learned the same that the project does not know."
    )


@click.group("stage", cls=Family, alone="show")
def stage_verb() -> None:
    """Which stage a project is in, and what is over when it ends.

    \b
    memory-kb stage show
    memory-kb stage detect
    memory-kb stage set implementation --job api
    """


_JOB = click.option("--job", help="The job whose stage it is [default: the project's].")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")


@stage_verb.command("show")
@shared_options
@_JOB
@click.pass_obj
def show_verb(options: Options, /, job: str | None) -> None:
    """Print the stage that was last entered."""
    with options.open() as kb:
        stage = kb.stage.show(job)
    if options.as_json:
        print_json({"stage": stage})
    else:
        click.echo(stage)


@stage_verb.command("detect")
@shared_options
@_JOB
@_DRY_RUN
@click.pass_obj
def detect_verb(options: Options, /, job: str | None, dry_run: bool) -> int:
    """Read INTENT.md; when it mentions another stage, retire what was learned for the one before.

    Only learnings of domain `task` are retired, only those of the stage that ended, and none that is pinned.
    """
    with options.open() as kb:
        report = kb.stage.detect(job, dry_run=dry_run)
    return _print_stage(options, report, dry_run=dry_run)


@stage_verb.command("set")
@shared_options
@click.argument("stage")
@_JOB
@_DRY_RUN
@click.pass_obj
def set_verb(options: Options, /, stage: str, job: str | None, dry_run: bool) -> int:
    """Enter STAGE: specification, planning, design, implementation, review or maintenance."""
    with options.open() as kb:
        report = kb.stage.set(stage, job, dry_run=dry_run)
    return _print_stage(options, report, dry_run=dry_run)


@stage_verb.command("retire")
@shared_options
@click.argument("stage")
@_JOB
@_DRY_RUN
@click.pass_obj
def retire_verb(options: Options, /, stage: str, job: str | None, dry_run: bool) -> int:
    """Retire what was learned for STAGE, without entering another."""
    with options.open() as kb:
        report = kb.stage.retire(stage, job, dry_run=dry_run)
    return finish_run(options, report, dry_run=dry_run, nothing=f"Nothing live was learned for the stage {stage}.")


def _print_stage(options: Options, report: StageReport, *, dry_run: bool) -> int:
    def show() -> None:
        retired = sum(change.action == "set" for change in report.run.changes)
        said = f"{report.before} is over, {retired} retired" if retired else f"it was {report.before}"
        click.echo(f"{report.stage} ({said})" if report.is_new else report.stage)

    told = {"before": report.before, "stage": report.stage, "notice": report.notice or None}
    return finish_run(options, report.run, dry_run=dry_run, told=told, notes=filter(None, [report.notice]), show=show)


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
    """Merge entries that say the same.

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
    """Find entries that contradict each other.

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
            "older": _entry_as_json(one.older),
            "newer": _entry_as_json(one.newer),
        }
        for one in report.found
    ]
    told = {"contradictions": found}
    return finish_run(options, report.run, dry_run=resolve and dry_run, told=told, notes=report.notices, show=show)


def _print_contradiction(found: Contradiction, *, is_done: bool) -> None:
    words = (_DONE if is_done else _TO_DO)[found.resolution]
    click.echo(f"{style(found.cause, bold=True)}: {one_line(found.signal)}; {words}")
    for word, entry in (("older", found.older), ("newer", found.newer)):
        click.echo(f"  {word}  {_show(entry)}")


def _entry_as_json(entry: Memory) -> dict[str, Any]:
    return {"id": entry.id, "path": entry.path, "line": entry.line, "title": entry.title}


def _show(entry: Memory) -> str:
    place = style(f"{one_line(entry.path)}:{entry.line}", fg="green")
    return f"{clean(entry.title)}  {place}  {style(tell_id(entry.id), dim=True)}"
