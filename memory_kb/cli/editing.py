"""The verbs of people who write notes in an editor: lsp and rename."""

from __future__ import annotations

import importlib.util

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.runs import finish_run
from memory_kb.errors import UsageError


@click.command("lsp")
@shared_options
@click.option("--stdio", is_flag=True, help="Speak on standard input and output, which is the default.")
@click.pass_obj
def lsp_verb(options: Options, /, stdio: bool) -> int:  # noqa: ARG001 - editors pass it
    """Serve an editor as a language server, on standard input and output.

    It completes links, tags and fields, tells how entries stand, follows and renames links, and says what is amiss in a
    note before it is saved. It writes no note itself: the editor makes its edits, and can take them back. Without --vault it
    serves the vault around the folder that the editor has open.

    \b
    memory-kb lsp
    memory-kb --vault ~/notes lsp
    """
    if importlib.util.find_spec("pygls") is None:
        raise UsageError("the language server needs pygls, which is not installed", 'run: pip install "memory-kb[lsp]"')
    from memory_kb.lsp.server import serve

    return serve(options.vault, options.home)


@click.command("rename")
@shared_options
@click.argument("wanted", metavar="ID")
@click.argument("new")
@click.option("--title", is_flag=True, help="Rename what it is titled by: its title, its first heading, or its file.")
@click.option("--file", "file", is_flag=True, help="Rename its file, whatever its title is.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def rename_verb(options: Options, /, wanted: str, new: str, title: bool, file: bool, dry_run: bool) -> int:
    """Give an entry the id NEW, or with --title the title, and rewrite every link that uses the old name.

    Everything is changed, or nothing. Links that call it by another of its names stay, so that after --title those by the
    name of its file, which other readers of notes go by, lead there as before; --file changes that name.

    \b
    memory-kb rename 3f9a0c12 wait-for-the-event
    memory-kb rename wait-for-the-event "Wait for the event" --title --dry-run
    """
    with options.open() as kb:
        report = kb.rename(wanted, new, title=title, file=file, dry_run=dry_run)
    return finish_run(options, report, dry_run=dry_run, nothing="It is called so already.")
