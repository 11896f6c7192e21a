"""The commands consolidate, maintain, reinforce, promote, stage, compact and contradictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from memory_kb.cli.app import Family, flag, job_options, option, verb
from memory_kb.cli.output import Options, as_plain, dim_id, echo, format_place, pick, say, style
from memory_kb.cli.print_runs import end_steps, finish_run, print_steps
from memory_kb.model import SCOPE_ALIASES, SCOPES
from memory_kb.reports import StageReport, StepReport
from memory_kb.text import pluralize


@verb("consolidate", dry_run=True)
@option("--stage", "One of semantic, dedup, age, archive, promote [default: all, in this order].", metavar="NAME")
def consolidate_verb(options: Options, /, stage: str | None) -> int:
    """Turn what recurs in episodes into rules, merge duplicates, age and archive.

    What several jobs share is promoted. Running it twice changes nothing the second time. `undo` reverts each step.

    \b
    memory-kb consolidate --dry-run
    memory-kb consolidate --stage dedup
    """
    return _finish_steps(options, options.kb.consolidate(stage, dry_run=options.dry_run), "memory-kb consolidate")


@verb("maintain", dry_run=True)
@flag("--force", "Do all of it, due or not.")
def maintain_verb(options: Options, /, force: bool) -> int:
    """Do what is due: each step of the maintenance once a week.

    It counts what was retrieved outside of sessions, does `consolidate`, `sweep` and `doctor`, and deletes what is old
    in the logs. `session end` does it by itself when it is due.

    \b
    memory-kb maintain
    memory-kb maintain --force --dry-run
    """
    report = options.kb.maintain(force=force, dry_run=options.dry_run)
    if not (report.steps or options.as_json):
        say(f"Nothing is due before {report.next_due:%Y-%m-%d}.")
    return _finish_steps(options, report.steps, "memory-kb maintain", report.next_due.isoformat(timespec="seconds"))


def _finish_steps(options: Options, steps: Sequence[StepReport], command: str, due: str | None = None) -> int:
    shown = [as_plain(step) for step in steps]
    for step in shown if not options.dry_run else ():
        del step["diff"]
    if not options.printed_as_json({"steps": shown} | ({"next_due": due} if due else {})):
        print_steps(steps, dry_run=options.dry_run)
    return end_steps(steps, command)


@verb("reinforce", dry_run=True)
@option("--session", "The session whose retrievals count [default: those outside any].", metavar="ID")
def reinforce_verb(options: Options, /, session: str | None) -> int:
    """Count which entries were used, so that they rank higher.

    Each entry counts once for a session, and once a day outside of any. `session end` does this by itself.

    \b
    memory-kb reinforce
    memory-kb reinforce --session 0b1c42 --dry-run
    """
    run = options.kb.reinforce(session, dry_run=options.dry_run)
    return finish_run(options, run, nothing="Nothing was retrieved that is not counted yet.")


@verb("promote", dry_run=True)
def promote_verb(options: Options, /) -> int:
    """Copy what several jobs learned to the project or the home.

    What three jobs learned goes to the project, what holds everywhere to the home. Only a language model decides about
    the home; without one nothing goes there. People's preferences are never promoted.

    \b
    memory-kb promote --dry-run
    """
    report = options.kb.promote(dry_run=options.dry_run)
    return finish_run(options, report, nothing="No three jobs learned the same that the project does not know.")


@click.group("stage", cls=Family, alone="show")
def stage_verb() -> None:
    """Show, detect or set the stage that a project is in.

    \b
    memory-kb stage set implementation --job api
    """


_JOB = option("--job", "The job whose stage it is [default: the project's].")


@verb("show", stage_verb)
@_JOB
def show_verb(options: Options, /, job: str | None) -> None:
    """Print the stage that was last entered."""
    stage = options.kb.stage.show(job)
    if not options.printed_as_json({"stage": stage}):
        echo(stage)


@verb("detect", stage_verb, dry_run=True)
@_JOB
def detect_verb(options: Options, /, job: str | None) -> int:
    """Read INTENT.md; when it mentions another stage, retire what was learned for the one before.

    Only learnings of domain `task` are retired, only those of the stage that ended, and none that is pinned.
    """
    return _print_stage(options, options.kb.stage.detect(job, dry_run=options.dry_run))


@verb("set", stage_verb, dry_run=True)
@click.argument("stage")
@_JOB
def set_verb(options: Options, /, stage: str, job: str | None) -> int:
    """Enter STAGE: specification, planning, design, implementation, review or maintenance."""
    return _print_stage(options, options.kb.stage.set(stage, job, dry_run=options.dry_run))


@verb("retire", stage_verb, dry_run=True)
@click.argument("stage")
@_JOB
def retire_verb(options: Options, /, stage: str, job: str | None) -> int:
    """Retire what was learned for STAGE, without entering another."""
    report = options.kb.stage.retire(stage, job, dry_run=options.dry_run)
    return finish_run(options, report, nothing=f"Nothing live was learned for the stage {stage}.")


def _print_stage(options: Options, report: StageReport) -> int:
    retired = sum(change.action == "set" for change in report.run.changes)
    said = f"{report.stage} ({report.before} is over, {retired} retired)" if report.is_new else report.stage
    fields = pick(report, "before", "stage") | {"notice": report.notice or None}
    return finish_run(options, report.run, fields, notes=filter(None, [report.notice]), said=said)


_THRESHOLD = "Merge paraphrases too, whose stemmed words overlap by this much; 0.4 merges a lot."
_DONE = {"retire": "the older is retired", "weaken": "both are flagged for review", "keep": "both are kept"}
_TO_DO = {"retire": "would retire the older", "weaken": "would flag both for review", "keep": "keeps both"}


@verb("compact", dry_run=True)
@option("--scope", "Compact this scope alone [default: job, project and global].", choice=(*SCOPES, *SCOPE_ALIASES))
@job_options("Compact this job alone.", "Compact this task of --job alone.")
@option("--threshold", _THRESHOLD, type=float, metavar="SHARE")
def compact_verb(options: Options, /, **chosen: Any) -> int:
    """Merge entries that say the same.

    They become one entry, with the longest text and the counts of all; the others go to archive/ with a link to it.
    Retired entries go there too. Entries that differ in a number, a name or a negation are never merged.

    \b
    memory-kb compact --dry-run
    memory-kb compact --job api
    """
    report = options.kb.compact(dry_run=options.dry_run, **chosen)
    fields = pick(report, "before", "after", "retired", "repeated", "merged")
    said = report.sentence or f"{pluralize(report.before, 'entry')}, nothing to do"
    return finish_run(options, report.run, fields, said=said)


@verb("contradictions", dry_run="With --resolve: show what would change, write nothing.")
@flag("--resolve", "Do what is proposed.")
def contradictions_verb(options: Options, /, resolve: bool) -> int:
    """Find entries that contradict each other.

    Of two that are at least 90 days apart, --resolve retires the older. Two that are closer in time both stay: they are
    linked, flagged for review and weigh less than before. Nothing is deleted.

    \b
    memory-kb contradictions
    memory-kb contradictions --resolve --dry-run
    """
    report = options.kb.contradictions(resolve=resolve, dry_run=options.dry_run)

    words = _DONE if resolve and not options.dry_run else _TO_DO

    def show() -> None:
        for one in report.found:
            echo(f"{style(one.cause, bold=True)}: {one.signal}; {words[one.resolution]}")
            for word, entry in (("older", one.older), ("newer", one.newer)):
                echo(f"  {word}  {entry.title}  {format_place(entry.path, entry.line)}  {dim_id(entry.id)}")
        if not report.found:
            say("No entry contradicts another, beyond what was settled or waits for review.")

    found = [
        pick(one, "cause", "signal", "resolution")
        | {name: pick(getattr(one, name), "id", "path", "line", "title") for name in ("older", "newer")}
        for one in report.found
    ]
    return finish_run(options, report.run, {"contradictions": found}, notes=report.notices, report=show)
