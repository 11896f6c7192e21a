"""The commands cite and verify, about code that entries cite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memory_kb.cli.app import shared_options
from memory_kb.cli.output import (
    CONFLICT,
    Options,
    clean,
    end_run,
    finish_run,
    one_line,
    print_json,
    print_preview,
    run_as_json,
    say,
    style,
    tell_id,
)

if TYPE_CHECKING:
    from memory_kb.learning.citations import CitedReport, ClaimsReport, ClaimView

#: Exit code of a verb that found something to fix.
_FINDINGS = 7
_COLOURS = {"drifted": "yellow", "gone": "red", "fresh": "green", "moved": "green"}


@click.command("cite")
@shared_options
@click.argument("wanted", metavar="ID")
@click.argument("references", metavar="[REF]...", nargs=-1)
@click.option("--from-text", is_flag=True, help="Also what its text names in code spans and links.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def cite_verb(options: Options, /, wanted: str, references: tuple[str, ...], from_text: bool, dry_run: bool) -> int:
    """Record which code an entry is about.

    `verify` then notices when that code changes.

    A REF is `path`, `path#L10-L20`, `path:10-20` or a commit; paths begin at the project's folder. It is
    kept in `cites:` with a hash of the text. Without any, the entry's own text is looked through for what could be cited.

    \b
    memory-kb cite 69712e00 src/upload.py#L40-L62
    memory-kb cite 69712e00 docs/api.md src/api/x.py#L10-L20
    memory-kb cite 69712e00 --from-text
    """
    with options.open() as kb:
        report = kb.cite(wanted, references, from_text=from_text, dry_run=dry_run)
    told = {"id": report.id, "recorded": report.recorded, "suggested": report.suggested, "refused": report.refused}
    notes = [f"not recorded: {one_line(reason)}" for reason in report.refused] if not references else []
    is_preview = dry_run and (options.as_json or bool(report.recorded))
    return finish_run(
        options, report.run, dry_run=is_preview, told=told, notes=notes, show=lambda: _print_cited(report)
    )


def _print_cited(report: CitedReport) -> None:
    for reference in report.recorded or report.suggested:
        click.echo(one_line(reference))
    if report.recorded and not report.run.run:
        say("All of it is recorded already.")
    elif report.suggested and not report.recorded:
        say("Its text names these; `--from-text` records them.")
    elif not report.recorded:
        say("Nothing is named, and its text names no file of the project that is not recorded.")


@click.command("verify")
@shared_options
@click.argument("wanted", metavar="[ID]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All entries that cite something, also with --update.")
@click.option("--update", is_flag=True, help="They still hold: record what they cite as it is now.")
@click.option("--flag", is_flag=True, help="Put those that drifted or are gone in the review queue.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def verify_verb(
    options: Options, /, wanted: tuple[str, ...], is_all: bool, update: bool, flag: bool, dry_run: bool
) -> int:
    """Check whether the code that entries cite has changed.

    Exits with 7 when something drifted or is gone. `context` marks what drifted and leaves out what is gone.

    \b
    memory-kb verify
    memory-kb verify 69712e00 --update
    memory-kb verify --flag
    """
    with options.open() as kb:
        report = kb.verify(*wanted, all=is_all, update=update, flag=flag, dry_run=dry_run)
    if options.as_json:
        told = {
            "claims": [
                claim._asdict() | {"findings": [one._asdict() for one in claim.findings]} for claim in report.claims
            ],
            "notices": report.notices,
        }
        print_json(told | run_as_json(report.run, dry_run=dry_run))
    else:
        _print_report(report, dry_run=dry_run and (update or flag))
    code = CONFLICT if report.run.conflicts else 0 if report.is_sound or flag else _FINDINGS
    return (end_run(report.run) or code) if not options.as_json else code


def _print_report(report: ClaimsReport, *, dry_run: bool) -> None:
    for claim in report.claims:
        _print_claim(claim)
    for notice in report.notices:
        say(notice)
    if dry_run:
        print_preview(report.run)
    elif report.run.run:
        say(f"{len(report.run.changes)} written; `memory-kb undo {report.run.run}` takes this back.")
    if not report.claims:
        say("No entry cites anything yet; `memory-kb cite ID REF` records what one is about.")


def _print_claim(claim: ClaimView) -> None:
    verdict = style(f"{claim.verdict:<10}", fg=_COLOURS.get(claim.verdict))
    click.echo(
        f"{verdict}  {clean(claim.title)}  {style(f'{one_line(claim.path)}:{claim.line}', dim=True)}  {tell_id(claim.id)}"
    )
    for one in claim.findings:
        if one.verdict == "fresh":
            continue
        where = f" (now {one_line(one.now)})" if one.verdict == "drifted" and one.now not in ("", one.ref) else ""
        said = (
            "has no recorded hash; `cite` or `verify --update` records one"
            if one.verdict == "unrecorded"
            else one.reason
        )
        click.echo(f"    {one_line(one.ref)} {one_line(said)}{where}")
        for line in one.hint:
            click.echo(f"      {style(clean(line)[:160], dim=True)}")
