"""Verbs that look after what is there: reinforce and stage."""

from __future__ import annotations

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import print_json
from memory_kb.cli.runs import finish_run
from memory_kb.reports import StageReport


@click.command("reinforce")
@shared_options
@click.option("--session", metavar="ID", help="The session whose retrievals count [default: those outside any].")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def reinforce_verb(options: Options, /, session: str | None, dry_run: bool) -> int:
    """Count how often entries were retrieved, so that what is used stays prominent.

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
    """Copy to the project what three of its jobs learned, and to the home what holds everywhere.

    Only a language model decides about the home; without one nothing goes there. Preferences of people never promote.

    \b
    memory-kb promote --dry-run
    """
    with options.open() as kb:
        report = kb.promote(dry_run=dry_run)
    return finish_run(
        options, report, dry_run=dry_run, nothing="No three jobs learned the same that the project does not know."
    )


@click.group("stage")
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
    """Read INTENT.md; when it tells of another stage, retire what was learned for the one before.

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
