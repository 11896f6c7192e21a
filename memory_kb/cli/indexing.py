"""Verbs about the index and the health of the notes: index, status, doctor, lint."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import (
    FileProgress,
    ShareProgress,
    one_line,
    print_json,
    print_note_problems,
    print_table,
    say,
)
from memory_kb.model import Problem

#: Exit code of a verb that found something to mend.
FINDINGS = 7


@click.command("index")
@shared_options
@click.option("--rebuild", is_flag=True, help="Start from nothing; searches see the old state until it is done.")
@click.option("--no-embed", is_flag=True, help="Index the words only.")
@click.option(
    "--dry-run", is_flag=True, help="Tell what would be indexed and embedded, and what that costs; write nothing."
)
@click.pass_obj
def index_verb(options: Options, /, rebuild: bool, no_embed: bool, dry_run: bool) -> None:
    """Bring the index to what the files say. Searches do this by themselves.

    With an embedding provider, vectors are made too, for what has none yet. They are kept as they
    come: Ctrl-C loses nothing, and nothing is paid for twice.

    \b
    memory-kb index
    memory-kb index --dry-run
    memory-kb --vault ~/notes index --rebuild
    """
    if dry_run:
        _print_plan(options, embed=not no_embed)
        return
    with options.open() as kb, FileProgress() as progress, ShareProgress("Embedding", "passages") as embedding:
        report = kb.sync(
            rebuild=rebuild,
            embed=not no_embed,
            progress=progress,
            embed_progress=embedding.report,
            on_wait=lambda: say("waiting for another process that is indexing …"),
        )
    if options.as_json:
        problems = [dataclasses.asdict(problem) for problem in report.problems]
        print_json(report._asdict() | {"problems": problems, "seconds": round(report.seconds, 3)})
        return
    for notice in report.notices:
        say(f"note: {notice}")
    print_note_problems(report.problems)
    counts = f"{report.added:,} added, {report.changed:,} changed, {report.removed:,} removed, {report.unchanged:,} unchanged"
    embedded = f", {report.embedded:,} embedded" if report.embedded else ""
    click.echo(f"{counts}{embedded} in {report.seconds:.2f} s")


def _print_plan(options: Options, *, embed: bool) -> None:
    """Tell what `index` would do."""
    with options.open() as kb:
        status = kb.status()
        estimate = kb.estimate() if embed else None
    counts = {"added": len(status.added), "changed": len(status.changed), "removed": len(status.removed)}
    if options.as_json:
        print_json(counts | {"embed": estimate and estimate._asdict(), "dry_run": True})
        return
    rows: dict[str, object] = {f"to be {name}": f"{count:,} files" for name, count in counts.items()}
    if estimate:
        price = (
            "no price known"
            if estimate.usd is None
            else f"about ${estimate.usd:,.4f}"
            if estimate.usd
            else "free of charge"
        )
        rows["to be embedded"] = f"{estimate.texts:,} passages, about {estimate.tokens:,} tokens, {price}"
    print_table(rows)


@click.command("status")
@shared_options
@click.option("--check", is_flag=True, help="Read every file: finds an edit that kept size and time, too.")
@click.pass_obj
def status_verb(options: Options, /, check: bool) -> None:
    """Compare disk and index as they are now. Nothing is changed.

    By size and time; an edit of the same size with its time put back shows with --check, or in `doctor`, and `index --rebuild` takes it in.

    \b
    memory-kb status --json
    memory-kb status --check
    """
    with options.open() as kb:
        status = kb.status(check=check)
    if options.as_json:
        print_json(
            dataclasses.asdict(status)
            | {"pending": status.pending, "vectors": [one._asdict() for one in status.vectors]}
        )
        return
    when = status.indexed_at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if status.indexed_at else "never"
    pending = (
        f"{len(status.added):,} new, {len(status.changed):,} changed, {len(status.removed):,} gone"
        if status.pending
        else "none"
    )
    print_table(
        {
            "vault": status.vault,
            "home": status.home,
            "index": status.index,
            "files": f"{status.files:,}",
            "not indexed yet": pending,
            "last change": f"{when} (generation {status.generation})",
            "problems": f"{len(status.problems):,}",
        }
        | {
            f"vectors of {one.model}": f"{one.chunks:,} passages{f', {one.missing:,} still without' if one.missing else ''}"
            for one in status.vectors
        }
    )


def _report(
    options: Options, problems: tuple[Problem, ...], extra: dict[str, Any], repaired: tuple[str, ...] = ()
) -> int:
    if options.as_json:
        print_json({"problems": [dataclasses.asdict(problem) for problem in problems]} | extra)
        return FINDINGS if problems else 0
    for line in repaired:
        say(f"repaired: {line}")
    for problem in problems:
        click.echo(one_line(str(problem)))
    say(f"{len(problems):,} finding{'' if len(problems) == 1 else 's'}" if problems else "Nothing to mend.")
    return FINDINGS if problems else 0


@click.command("doctor")
@shared_options
@click.option("--fix", is_flag=True, help="Repair what is safe: the index, and leftovers of killed writes.")
@click.option(
    "--adopt",
    is_flag=True,
    help="Show what a machine folder holds that was set aside; with --fix, take its sessions and vectors over.",
)
@click.pass_obj
def doctor_verb(options: Options, /, fix: bool, adopt: bool) -> int:
    """Examine notes and index thoroughly. Exits with 7 when there is something to mend.

    \b
    memory-kb doctor
    memory-kb doctor --fix
    memory-kb doctor --adopt --fix
    """
    with options.open() as kb:
        if adopt:
            for line in kb.adopt(dry_run=not fix) or ("Nothing was set aside.",):
                say(line)
        findings = kb.doctor(fix=fix)
    return _report(options, findings.problems, {"repaired": list(findings.repaired)}, findings.repaired)


@click.command("lint")
@shared_options
@click.argument("paths", nargs=-1)
@click.pass_obj
def lint_verb(options: Options, /, paths: tuple[str, ...]) -> int:
    """Check the notes, or those at PATHS.

    Fields, blocks, ids, links, secrets. Exits with 7 on findings.

    \b
    memory-kb lint
    memory-kb lint memory/rules
    """
    with options.open() as kb:
        problems = kb.lint(paths)
    return _report(options, problems, {})
