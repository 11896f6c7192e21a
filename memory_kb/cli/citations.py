"""The commands cite and verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memory_kb.cli.app import dry_run_option, flag, verb
from memory_kb.cli.output import FINDINGS, Options, clean, format_id, one_line, pick, say, style
from memory_kb.cli.print_runs import finish_run

if TYPE_CHECKING:
    from memory_kb.learning.citations import CitedReport, ClaimsReport, ClaimView

_VERDICT_COLOURS = {"drifted": "yellow", "gone": "red", "fresh": "green", "moved": "green"}


@verb("cite")
@click.argument("wanted", metavar="ID")
@click.argument("references", metavar="[REF]...", nargs=-1)
@flag("--from-text", "Also what its text names in code spans and links.")
@dry_run_option()
def cite_verb(options: Options, /, wanted: str, references: tuple[str, ...], from_text: bool) -> int:
    """Record which code an entry is about.

    `verify` then notices when that code changes. A REF is `path`, `path#L10-L20`, `path:10-20` or a commit; paths begin
    at the project's folder. It is kept in `cites:` with a hash of the text. Without any, the entry's own text is looked
    through for what could be cited.

    \b
    memory-kb cite 69712e00 src/upload.py#L40-L62
    memory-kb cite 69712e00 docs/api.md src/api/x.py#L10-L20
    """
    report = options.kb.cite(wanted, references, from_text=from_text, dry_run=options.dry_run)
    fields = pick(report, "id", "recorded", "suggested", "refused")
    notes = [f"not recorded: {one_line(reason)}" for reason in report.refused] if not references else []
    preview = options.dry_run and (options.as_json or bool(report.recorded))
    return finish_run(options, report.run, fields, notes=notes, report=lambda: _print_cited(report), preview=preview)


def _print_cited(report: CitedReport) -> None:
    for reference in report.recorded or report.suggested:
        click.echo(one_line(reference))
    if report.recorded and not report.run.changes:
        say("All of it is recorded already.")
    elif report.suggested and not report.recorded:
        say("Its text names these; `--from-text` records them.")
    elif not report.recorded:
        say("No reference is given, and its text names no further file of the project.")


@verb("verify")
@click.argument("wanted", metavar="[ID]...", nargs=-1)
@flag("--all is_all", "All entries that cite something, also with --update.")
@flag("--update", "They still hold: record what they cite as it is now.")
@flag("--flag", "Put those that drifted or are gone in the review queue.")
@dry_run_option()
def verify_verb(options: Options, /, wanted: tuple[str, ...], is_all: bool, update: bool, flag: bool) -> int:
    """Check whether the code that entries cite has changed.

    Exits with 7 when something drifted or is gone. `context` marks what drifted and leaves out what is gone.

    \b
    memory-kb verify 69712e00 --update
    memory-kb verify --flag
    """
    report = options.kb.verify(*wanted, all=is_all, update=update, flag=flag, dry_run=options.dry_run)
    fields = pick(report, "claims", "notices")
    preview = options.dry_run and (options.as_json or update or flag)
    code = finish_run(
        options, report.run, fields, notes=report.notices, report=lambda: _print_claims(report), preview=preview
    )
    return code or (0 if report.is_sound or flag else FINDINGS)


def _print_claims(report: ClaimsReport) -> None:
    for claim in report.claims:
        _print_claim(claim)
    if not report.claims:
        say("No entry cites anything yet; `memory-kb cite ID REF` records what one is about.")


def _print_claim(claim: ClaimView) -> None:
    verdict = style(f"{claim.verdict:<10}", fg=_VERDICT_COLOURS.get(claim.verdict))
    place = style(f"{one_line(claim.path)}:{claim.line}", dim=True)
    click.echo(f"{verdict}  {clean(claim.title)}  {place}  {format_id(claim.id)}")
    for one in claim.findings:
        if one.verdict == "fresh":
            continue
        said = one.reason
        if one.verdict == "unrecorded":
            said = "has no recorded hash; `cite` or `verify --update` records one"
        elif one.verdict == "drifted" and one.now not in ("", one.ref):
            said += f" (now {one.now})"
        click.echo(f"    {one_line(one.ref)} {one_line(said)}")
        for line in one.hint:
            click.echo(f"      {style(clean(line)[:160], dim=True)}")
