"""The commands init, learn, forget, supersede, rename and lsp."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import allow_secret_option, is_terminal, shared_options
from memory_kb.cli.output import (
    Options,
    end_run,
    finish_run,
    one_line,
    print_json,
    print_preview,
    run_as_json,
    say,
    tell_id,
)
from memory_kb.errors import UsageError
from memory_kb.learning.entries import MAX_TEXT
from memory_kb.model import KIND_ALIASES, KINDS, PRIORITIES, SOURCES

if TYPE_CHECKING:
    from memory_kb.reports import Purged


@click.command("init")
@shared_options
@click.argument("folder", metavar="[DIR]", required=False)
@click.pass_obj
def init_verb(options: Options, /, folder: str | None) -> None:
    """Make a vault.

    That is DIR/memory with a configuration and a MEMORY.md. Nothing is ever overwritten.

    Inside another vault it says so; among the notes of one it makes none.

    \b
    memory-kb init
    memory-kb init ~/projects/api
    """
    from memory_kb.store.git_command import find_repository
    from memory_kb.store.machine import found_vault

    if folder and options.vault:
        raise UsageError("the folder is named twice, as DIR and by --vault", "name it once: memory-kb init DIR")
    made = found_vault(folder or options.vault or ".", os.environ)
    if options.as_json:
        print_json({"vault": str(made.folder), "created": [str(path) for path in made.created]})
        return
    for path in made.created:
        click.echo(f"made {path}")
        if path.name == "MEMORY.md":
            say(
                "MEMORY.md is yours: write there freely. `memory-kb learn` makes a file for each learning in folders beside it."
            )
    if made.created and made.around:
        say(
            f"This vault is inside the vault {made.around}: from here on down, commands use this one, and that one's notes are not searched."
        )
    if made.created and made.notes_beside:
        are = "Markdown file is" if made.notes_beside == 1 else "Markdown files are"
        say(
            f"{made.notes_beside} {are} beside memory/, outside of this vault; search there with --vault on the folder."
        )
    say(
        'Next: memory-kb learn "The first thing worth remembering."'
        if made.created
        else "Everything was there already; nothing was changed."
    )
    if made.created and find_repository(made.folder):
        say("This is a git repository: `memory-kb git install` lets its branches merge memories entry by entry.")


#: What agents set for the commands that they run, some of them on a terminal of their own.
_AGENTS = frozenset(
    (
        *("CLAUDECODE", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE"),
        *("CODEX_CI", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID"),
    )
)


@click.command("learn")
@shared_options
@click.argument("text", nargs=-1)
@click.option(
    "--kind",
    default="fact",
    show_default=True,
    type=click.Choice((*KINDS, *KIND_ALIASES)),
    metavar="KIND",
    help=", ".join(KINDS) + ".",
)
@click.option("--title", help="What to call it.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; may be given several times.")
@click.option("--priority", type=click.Choice(tuple(PRIORITIES)), help="How much it matters [default: by kind].")
@click.option("--applies-to", multiple=True, metavar="GLOB", help="Files it is about, such as 'src/**/*.py'.")
@click.option(
    "--scope", type=click.Choice(["project", "global"]), default="project", show_default=True, help="Where it holds."
)
@click.option("--job", help="Keep it with this job.")
@click.option("--task", help="Keep it with this task of --job.")
@click.option(
    "--source",
    type=click.Choice(SOURCES),
    help="How it is known; what is external_unverified is not followed before a person approves it.",
)
@click.option("--supersedes", metavar="OLD", help="The entry that it takes the place of, which then weighs half.")
@click.option("--force", is_flag=True, help="Store it even if it is there already or was forgotten.")
@allow_secret_option
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def learn_verb(options: Options, /, text: tuple[str, ...], dry_run: bool, **chosen: Any) -> None:
    """Keep TEXT as an entry of its own.

    A single - reads it from stdin. What is already known almost word for word is reinforced instead. Credentials are refused.

    What you type on a terminal has the source user_explicit: agents get it at the start of every session. For what comes through a
    pipe or from an agent's shell, --source says so.

    \b
    memory-kb learn "Always answer in British English." --kind preference
    memory-kb learn "The staging database is reset every night." --tag staging
    memory-kb learn "Never rebase a shared branch." --kind policy --scope global
    git log -1 --format=%b | memory-kb learn - --kind decision --title "Why we moved to UUIDs"
    """
    if chosen["source"] is None and is_terminal() and _AGENTS.isdisjoint(os.environ):
        chosen["source"] = "user_explicit"
    words = " ".join(text)
    if text == ("-",):
        # No character has more bytes than four: what is too long is refused without reading all of it.
        words = sys.stdin.buffer.read(4 * MAX_TEXT + 1).decode("utf-8", "surrogateescape") if sys.stdin else ""
    if not words.strip():
        raise UsageError("there is no text to learn", 'try: memory-kb learn "Run the linter before pushing."')
    with options.open() as kb:
        learned = kb.learn(words, dry_run=dry_run, **chosen)
        if kb.index.is_left_behind and not dry_run:
            from memory_kb.cli.hook import finish_in_background

            with contextlib.suppress(OSError):
                finish_in_background(kb.vault.folder, options.home, kb.vault.machine)
    assert learned.run
    told: dict[str, Any] = {"id": learned.id, "path": learned.path, "action": learned.action}
    if not dry_run:
        end_run(learned.run)
    if learned.is_waiting:
        way = "" if dry_run else f": memory-kb review approve {tell_id(learned.id)}"
        say(f"It comes from an unverified source and is not in use before a person approves it{way}")
    for near in learned.near:
        say(f"note: {tell_id(near.id)} {near.how}: {near.title}  {one_line(near.path)}:{near.line}")
    if learned.near and not dry_run:
        say(
            f"  `memory-kb supersede {tell_id(learned.near[0].id)} {tell_id(learned.id)}` lets the new one take its place"
        )
    if options.as_json:
        told |= {"near": [near._asdict() for near in learned.near]} if learned.near else {}
        print_json(told | run_as_json(learned.run, dry_run=True) if dry_run else told)
    elif dry_run:
        print_preview(learned.run)
    else:
        click.echo(f"{learned.action} {learned.path}  {tell_id(learned.id)}")


@click.command("supersede")
@shared_options
@click.argument("old")
@click.argument("new")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def supersede_verb(options: Options, /, old: str, new: str, dry_run: bool) -> int:
    """Let the entry NEW take the place of OLD.

    Both are linked to each other. OLD is still found, at half its score, and agents are no longer given it as a rule.

    \b
    memory-kb supersede 3f9a0c12 69712e00
    memory-kb learn "Releases go out on Mondays." --supersedes 3f9a0c12
    """
    with options.open() as kb:
        report = kb.supersede(old, new, dry_run=dry_run)
    return finish_run(options, report, dry_run=dry_run, nothing="It is superseded already.")


@click.command("forget")
@shared_options
@click.argument("entry", metavar="ID")
@click.option("--delete", is_flag=True, help="Take the text out of the file too; a tombstone stays.")
@click.option("--purge", is_flag=True, help="Take it out of all notes, logs, sessions and caches too, for good.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def forget_verb(options: Options, /, entry: str, delete: bool, purge: bool, dry_run: bool) -> None:
    """Retire an entry.

    It is no longer found and does not come back. --purge says what the history of git still contains.

    \b
    memory-kb forget 69712e00
    memory-kb forget 69712e00 --delete
    memory-kb forget 69712e00 --purge --dry-run
    """
    with options.open() as kb:
        forgotten = kb.forget(entry, delete=delete, purge=purge, dry_run=dry_run)
    assert forgotten.run
    action = "purged" if purge else "deleted" if delete else "retired"
    told: dict[str, Any] = {"id": forgotten.id, "path": forgotten.path, "action": action}
    if forgotten.purged:
        told |= forgotten.purged._asdict()
    if not dry_run:
        end_run(forgotten.run)
    if options.as_json:
        print_json(told | run_as_json(forgotten.run, dry_run=True) if dry_run else told)
        return
    if dry_run:
        print_preview(forgotten.run)
    else:
        click.echo(f"purged {tell_id(forgotten.id)}" if purge else f"{action} {forgotten.title}  {forgotten.path}")
    if forgotten.purged:
        _print_purged(forgotten.purged, "would clean" if dry_run else "cleaned")


def _print_purged(purged: Purged, word: str) -> None:
    for file in purged.files:
        click.echo(f"{word} {one_line(file)}")
    if purged.runs:
        click.echo(f"{word} the journal: {purged.runs} run{'s' * (purged.runs > 1)} that can no longer be undone")
    for sentence in (*purged.left, *purged.git):
        say(f"left: {sentence}")


@click.command("lsp")
@shared_options
@click.option("--stdio", is_flag=True, help="Speak on standard input and output, which is the default.")
@click.pass_obj
def lsp_verb(options: Options, /, stdio: bool) -> int:  # noqa: ARG001 - editors pass it
    """Serve an editor as a language server.

    It completes links, tags and fields, shows the state of entries, follows and renames links, and says what is wrong in a
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
@click.option(
    "--folder", "folder", is_flag=True, help="Move its file to the folder NEW, and rewrite the links that go by paths."
)
@allow_secret_option
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def rename_verb(
    options: Options, /, wanted: str, new: str, title: bool, file: bool, folder: bool, dry_run: bool
) -> int:
    """Give an entry another id or title, and rewrite every link to it.

    NEW is its id, with --title its title, with --folder the folder of its file.

    Everything is changed, or nothing. Links that call it by another of its names stay, so that after --title those by the
    name of its file, which other readers of notes go by, lead there as before; --file changes that name.

    \b
    memory-kb rename 3f9a0c12 wait-for-the-event
    memory-kb rename wait-for-the-event "Wait for the event" --title --dry-run
    """
    with options.open() as kb:
        report = kb.rename(wanted, new, title=title, file=file, folder=folder, dry_run=dry_run)
    return finish_run(options, report, dry_run=dry_run, nothing="It is called so already.")
