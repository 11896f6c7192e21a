"""Verbs that live with git: git install and commit."""

from __future__ import annotations

import dataclasses

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, say, style


@click.group("git")
def git_verb() -> None:
    """Make a repository understand memories.

    \b
    memory-kb git install
    memory-kb git install --uninstall
    """


@git_verb.command("install")
@shared_options
@click.option("--uninstall", is_flag=True, help="Take everything out again.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, write nothing.")
@click.pass_obj
def install_command(options: Options, /, uninstall: bool, dry_run: bool) -> None:
    """Merge memory files entry by entry and field by field when branches meet.

    Lines in the vault's .gitattributes name the files; commit them. The driver itself stands in this clone's configuration, so that
    everybody runs this once in theirs; who does not merges as before.

    \b
    memory-kb git install
    memory-kb git install --uninstall --dry-run
    """
    with options.open() as kb:
        setup = kb.git.install(uninstall=uninstall, dry_run=dry_run)
    if options.as_json:
        print_json({"done": setup.done, "attributes": setup.attributes, "driver": setup.driver, "dry_run": dry_run})
        return
    for line in setup.done:
        click.echo(f"{'would have ' if dry_run else ''}{one_line(line)}")
    if not setup.done:
        say("Everything is as it should be already; nothing was changed.")
    elif not uninstall and not dry_run:
        say("Next: commit .gitattributes; in every other clone, run `memory-kb git install` once.")


@git_verb.command("merge-file", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="BASE OURS THEIRS PATH [MARKER_SIZE]")
def merge_file_command(words: tuple[str, ...]) -> int:
    """Merge a memory file of two branches; git calls this."""
    from memory_kb.notes.mergedriver import answer

    return answer(words)


@click.command("commit")
@shared_options
@click.argument("run", metavar="[RUN]", required=False)
@click.option("-m", "--message", metavar="TEXT", help="The first line of the message; what was learned follows it.")
@click.option("--session", metavar="ID", help="All that the end of this session wrote.")
@click.option("--dry-run", is_flag=True, help="Show the message and the files, commit nothing.")
@click.pass_obj
def commit_verb(options: Options, /, run: str | None, message: str | None, session: str | None, dry_run: bool) -> None:
    """Commit the files that the last run wrote, and no others, with a message that says what was learned.

    What else is staged or changed stays as it is. In the middle of a merge or rebase nothing is committed.

    \b
    memory-kb commit
    memory-kb commit --session 0b1c42
    memory-kb commit 3f9a0c12 -m "memory: what the incident taught us"
    """
    with options.open() as kb:
        report = kb.commit(run, message=message, session=session, dry_run=dry_run)
    if options.as_json:
        print_json(dataclasses.asdict(report) | {"dry_run": dry_run})
        return
    for notice in report.notices:
        say(f"note: {one_line(notice)}")
    for one in report.commits:
        if one.commit:
            click.echo(f"{style(one.commit[:12], fg='green')} {clean(one.subject)}")
        else:
            click.echo("\n".join(map(clean, one.message.rstrip().split("\n"))))
        for file in one.files:
            click.echo(f"  {one_line(file)}")
