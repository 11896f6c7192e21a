"""Verbs that put memory-kb into other programs: install, uninstall, export."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, say
from memory_kb.cli.runs import finish_run, print_preview

if TYPE_CHECKING:
    from memory_kb.reports import RunReport

_USER = click.option("--user", "scope", flag_value="user", help="For everything you do, not for one project.")
_PROJECT = click.option(
    "--project", "scope", flag_value="project", default="project", help="For one project [default]."
)
_FOLDER = click.option("--folder", metavar="DIR", help="The project [default: the vault's folder].")
_YES = click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")


@click.command("install")
@shared_options
@click.argument("agent")
@_PROJECT
@_USER
@_FOLDER
@click.option("--pin-vault", "pin", is_flag=True, help="Name this vault in the files, so that every project uses it.")
@_YES
@_DRY_RUN
@click.pass_obj
def install_verb(
    options: Options, /, agent: str, scope: str, folder: str | None, pin: bool, yes: bool, dry_run: bool
) -> int:
    """Put memory-kb into AGENT: claude-code, codex, cursor, gemini-cli, opencode or vscode.

    That is its MCP server, hooks that give context and log the session, and a few marked lines in CLAUDE.md or AGENTS.md. All
    else in those files stays as it is. `uninstall` takes away exactly what this put there.

    \b
    memory-kb install claude-code --dry-run
    memory-kb install codex --user
    """
    with options.open() as kb:
        return _carry_out(
            options,
            lambda dry: kb.install(agent, scope=scope, folder=folder, pin=pin, dry_run=dry),
            yes=yes,
            dry_run=dry_run,
        )


@click.command("uninstall")
@shared_options
@click.argument("agent")
@_PROJECT
@_USER
@_FOLDER
@_YES
@_DRY_RUN
@click.pass_obj
def uninstall_verb(options: Options, /, agent: str, scope: str, folder: str | None, yes: bool, dry_run: bool) -> int:
    """Take memory-kb out of AGENT again.

    A file that nobody wrote to since is byte for byte what it was before; from another only our own parts go.

    \b
    memory-kb uninstall claude-code
    """
    with options.open() as kb:
        return _carry_out(
            options, lambda dry: kb.uninstall(agent, scope=scope, folder=folder, dry_run=dry), yes=yes, dry_run=dry_run
        )


def _carry_out(options: Options, work: Callable[[bool], RunReport], *, yes: bool, dry_run: bool) -> int:
    """Do it, or show what it would do; on a terminal show it first and ask."""
    if not (dry_run or yes or options.as_json) and sys.stdin.isatty():
        preview = work(True)
        print_preview(preview)
        if preview.changes and not click.confirm("Write this?", default=True, err=True):
            return 0
    return finish_run(options, work(dry_run), dry_run=dry_run, nothing="Nothing to do.")


@click.group("export")
def export_verb() -> None:
    """Give what is known to other programs.

    \b
    memory-kb export agents-md
    memory-kb export agents-md --file AGENTS.md
    """


@export_verb.command("agents-md")
@shared_options
@click.option("--file", metavar="FILE", help="Put the lines into this file, between marks [default: print them].")
@_DRY_RUN
@click.pass_obj
def agents_md_verb(options: Options, /, file: str | None, dry_run: bool) -> int:
    """Write policies and the best rules as lines for AGENTS.md, for agents that know no memory-kb.

    \b
    memory-kb export agents-md --file AGENTS.md
    """
    with options.open() as kb:
        done = kb.export_agents_md(file, dry_run=dry_run)
    if file is not None:
        return finish_run(
            options, done.run, dry_run=dry_run, told={"text": done.text}, nothing=f"{one_line(file)} says so already."
        )
    if options.as_json:
        print_json({"text": done.text})
    elif done.text:
        click.echo("\n".join(map(clean, done.text.split("\n"))))
    else:
        say("There are no policies or rules yet.")
    return 0
