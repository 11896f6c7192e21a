"""The commands git, commit and undo."""

from __future__ import annotations

import click

from memory_kb.cli.app import Family, flag, option, verb
from memory_kb.cli.output import (
    CONFLICT,
    Options,
    as_plain,
    echo,
    pick,
    print_listing,
    print_notes,
    print_text,
    say,
    style,
)
from memory_kb.cli.print_runs import finish_run, run_as_json
from memory_kb.errors import UsageError


@click.group("git", cls=Family)
def git_verb() -> None:
    """Merge memory files entry by entry in a git repository.

    \b
    memory-kb git install
    """


@verb("install", git_verb, dry_run="Show what would be written, write nothing.")
@flag("--uninstall", "Take everything out again.")
def install_command(options: Options, /, uninstall: bool) -> None:
    """Merge memory files entry by entry and field by field when branches meet.

    Lines in the vault's .gitattributes name the files; commit them. The driver itself is in this clone's configuration,
    so that everybody runs this once in theirs; a clone without it merges as before.

    \b
    memory-kb git install
    memory-kb git install --uninstall --dry-run
    """
    setup = options.kb.git.install(uninstall=uninstall, dry_run=options.dry_run)
    if options.printed_as_json(pick(setup, "done", "attributes", "driver") | {"dry_run": options.dry_run}):
        return
    for line in setup.done:
        echo(f"{'would have ' if options.dry_run else ''}{line}")
    if not setup.done:
        say("Nothing changed: it is so already.")
    elif not uninstall and not options.dry_run:
        say("Next: commit .gitattributes; in every other clone, run `memory-kb git install` once.")


@git_verb.command("merge-file", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="BASE OURS THEIRS PATH [MARKER_SIZE]")
def merge_file_command(words: tuple[str, ...]) -> int:
    """Merge a memory file of two branches; git calls this."""
    from memory_kb.git.merge_driver import run_merge_driver

    return run_merge_driver(words)


@verb("commit", dry_run="Show the message and the files, commit nothing.")
@click.argument("run", metavar="[RUN]", required=False)
@option("-m --message", "The first line of the message; what was learned follows it.", metavar="TEXT")
@option("--session", "All that the end of this session wrote.", metavar="ID")
def commit_verb(options: Options, /, run: str | None, message: str | None, session: str | None) -> None:
    """Commit the files that the last run wrote, and no others.

    The message says what was learned. What else is staged or changed stays as it is. In the middle of a merge or rebase
    nothing is committed.

    \b
    memory-kb commit --session 0b1c42
    memory-kb commit 3f9a0c12 -m "memory: what the incident taught us"
    """
    report = options.kb.commit(run, message=message, session=session, dry_run=options.dry_run)
    if options.printed_as_json(as_plain(report) | {"dry_run": options.dry_run}):
        return
    print_notes(report.notices)
    for one in report.commits:
        if one.commit:
            echo(f"{style(one.commit[:12], fg='green')} {one.subject}")
        else:
            print_text(one.message)
        for file in one.files:
            echo(f"  {file}")


@verb("undo", dry_run=True)
@click.argument("named", metavar="[RUN]...", nargs=-1)
@option("--session", "Revert all that the end of this session wrote.", metavar="ID")
@flag("--list is_list", "Show the runs that can be reverted, newest first; with --session, only its own.")
def undo_verb(options: Options, /, named: tuple[str, ...], session: str | None, is_list: bool) -> int:
    """Undo what the last run wrote, or those named.

    Every file becomes what it was, byte for byte. Files that somebody has edited since are left, and the exit code is
    6. Without a name, each undo goes one run further back; an undo is undone by its own name.

    \b
    memory-kb undo
    memory-kb undo 3f9a0c12 --dry-run
    memory-kb undo --session 0b1c42
    """
    kb = options.kb
    if is_list:
        runs = kb.runs(session)
        rows = []
        for run in runs:
            mark = f" (reverted by {run.undone_by})" if run.undone_by else ""
            rows.append((run.run, run.time, run.verb, f"{run.summary}{mark}"))
        print_listing(options, {"runs": runs}, rows, "No run has changed anything yet.")
        return 0
    if session is not None and named:
        raise UsageError("a run and a session are named", "name the one or the other")
    if session is None and len(named) <= 1:
        return finish_run(options, kb.undo(*named, dry_run=options.dry_run), nothing="There is nothing to revert.")
    if session is None:
        reports = kb.undo_runs(named, dry_run=options.dry_run)
    else:
        reports = kb.undo_session(session, dry_run=options.dry_run)
    if options.printed_as_json({"runs": [run_as_json(report, dry_run=options.dry_run) for report in reports]}):
        return CONFLICT if any(report.conflicts for report in reports) else 0
    if not reports:
        say("All of it is reverted already.")
    return max((finish_run(options, report) for report in reports), default=0)
