"""Steps of a long verb as a short table, and the verbs consolidate and maintain."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, say, style, use_colour
from memory_kb.cli.runs import CONFLICT

if TYPE_CHECKING:
    from memory_kb.reports import StepReport

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
    """Turn what recurs into rules, merge doubles, age episodes, archive what faded, promote what jobs share.

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
        say(f"{what}; once that is mended, `{command}` again does what is left.")


def _finish(options: Options, steps: Sequence[StepReport], command: str, *, dry_run: bool) -> int:
    if options.as_json:
        print_json({"steps": steps_as_json(steps, dry_run=dry_run)})
    else:
        print_steps(steps, dry_run=dry_run)
    tell_failures(steps, command)
    return exit_code(steps)
