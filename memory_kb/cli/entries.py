"""The commands init, learn, forget, supersede, rename and import."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import click

from memory_kb.cli.app import flag, is_terminal, option, place_options, tag_option, text_argument, verb
from memory_kb.cli.output import Options, echo, format_counts, pick, say
from memory_kb.cli.print_runs import finish_entry, finish_run
from memory_kb.errors import UsageError
from memory_kb.importers import FORMATS
from memory_kb.model import KIND_ALIASES, KINDS, PRIORITIES, SOURCES
from memory_kb.text import pluralize, short_id


@verb("init")
@click.argument("folder", metavar="[DIR]", required=False)
def init_verb(options: Options, /, folder: str | None) -> None:
    """Make a vault.

    That is DIR/memory with a configuration and a MEMORY.md. Nothing is ever overwritten.

    In a folder of another vault's project it makes a vault of its own, and says so; among the notes of a vault it
    refuses.

    \b
    memory-kb init
    memory-kb init ~/projects/api
    """
    from memory_kb.store.open_vault import create_vault
    from memory_kb.store.worktrees import find_repository

    if folder and options.vault:
        raise UsageError("the folder is named twice, as DIR and by --vault", "name it once: memory-kb init DIR")
    made = create_vault(folder or options.vault or ".", os.environ)
    if options.printed_as_json({"vault": str(made.folder), "created": [str(path) for path in made.created]}):
        return
    for path in made.created:
        echo(f"made {path}")
    if not made.created:
        say("Everything was there already; nothing was changed.")
        return
    say(
        "MEMORY.md is yours: write there freely. `memory-kb learn` makes a file for each learning in folders beside it."
    )
    if made.around:
        say(f"This vault is inside the vault {made.around}, whose notes are not searched from here on down.")
    if made.notes_beside:
        files = pluralize(made.notes_beside, "Markdown file")
        is_one = made.notes_beside == 1
        say(
            f"{files} beside memory/ {'is' if is_one else 'are'} outside of this vault. A folder of notes needs no init:"
            f" remove what was made, and a search here finds {'it' if is_one else 'them'}."
        )
    say('Next: memory-kb learn "The first thing worth remembering."')
    if find_repository(made.folder):
        say("This is a git repository: `memory-kb git install` lets its branches merge memories entry by entry.")


_SOURCE = "How it is known; what is external_unverified is not followed before a person approves it."
#: What agents set for the commands that they run, some of them on a terminal of their own.
_AGENTS = (
    "CLAUDECODE CURSOR_AGENT GEMINI_CLI OPENCODE CODEX_CI CODEX_SANDBOX CODEX_SANDBOX_NETWORK_DISABLED CODEX_THREAD_ID"
)


@verb("learn", allow_secret=True, dry_run=True)
@click.argument("text", nargs=-1)
@option("--kind", ", ".join(KINDS) + ".", choice=(*KINDS, *KIND_ALIASES), default="fact", metavar="KIND")
@option("--title", "What to call it.")
@tag_option
@option("--priority", "How much it matters [default: by kind].", choice=tuple(PRIORITIES))
@option("--applies-to", "Files it is about, such as 'src/**/*.py'.", many=True, metavar="GLOB")
@place_options()
@option("--source", _SOURCE, choice=SOURCES)
@option("--supersedes", "The entry that it takes the place of, which then weighs half.", metavar="OLD")
@flag("--force", "Store it even if it is there already or was forgotten.")
def learn_verb(options: Options, /, text: tuple[str, ...], **chosen: Any) -> int:
    """Store TEXT as an entry of its own.

    A single - reads it from stdin. What is already known almost word for word is reinforced instead. Credentials are
    refused.

    What you type on a terminal has the source user_explicit: agents are given it at the start of every session. Text
    from a pipe or an agent's shell has that source only with --source user_explicit.

    \b
    memory-kb learn "Always answer in British English." --kind preference
    memory-kb learn "The staging database is reset every night." --tag staging
    memory-kb learn "Never rebase a shared branch." --kind policy --scope global
    git log -1 --format=%b | memory-kb learn - --kind decision --title "Why we moved to UUIDs"
    """
    if chosen["source"] is None and is_terminal() and os.environ.keys().isdisjoint(_AGENTS.split()):
        chosen["source"] = "user_explicit"
    from memory_kb.learning.entry_verbs import MAX_LEARNING

    # No character has more bytes than four: what is too long is refused without reading all of it.
    words = text_argument(text, 4 * MAX_LEARNING + 1)
    kb = options.kb
    learned = kb.learn(words, dry_run=options.dry_run, **chosen)
    if learned.needs_background_update and not options.dry_run:
        from memory_kb.cli.hook import finish_in_background

        with contextlib.suppress(OSError):
            finish_in_background(kb.vault.folder, options.home, kb.vault.machine)
    assert learned.run
    fields = pick(learned, "id", "path", "action", *(["near"] if learned.near else ()))
    if learned.is_waiting:
        way = "" if options.dry_run else f": memory-kb review approve {short_id(learned.id)}"
        say(f"It comes from an unverified source and is not in use before a person approves it{way}")
    for near in learned.near:
        say(f"note: {short_id(near.id)} {near.how}: {near.title}  {near.path}:{near.line}")
        if not options.dry_run:
            say(f"  `memory-kb supersede {short_id(near.id)} {short_id(learned.id)}` lets the new one take its place")
    return finish_entry(options, learned.run, fields, f"{learned.action} {learned.path}  {short_id(learned.id)}")


@verb("supersede", dry_run=True)
@click.argument("old")
@click.argument("new")
def supersede_verb(options: Options, /, old: str, new: str) -> int:
    """Replace the entry OLD by NEW.

    Both are linked to each other. OLD is still found, at half its score, and agents are no longer given it as a rule.

    \b
    memory-kb supersede 3f9a0c12 69712e00
    memory-kb learn "Releases go out on Mondays." --supersedes 3f9a0c12
    """
    run = options.kb.supersede(old, new, dry_run=options.dry_run)
    return finish_run(options, run, nothing="It is superseded already.")


@verb("forget", dry_run=True)
@click.argument("entry", metavar="ID")
@flag("--delete", "Take the text out of the file too; a tombstone stays.")
@flag("--purge", "Take it out of all notes, logs, sessions and caches too, for good.")
def forget_verb(options: Options, /, entry: str, delete: bool, purge: bool) -> int:
    """Retire an entry.

    It is no longer found, and learning the same text again does not bring it back. --purge also says what git's history
    still contains.

    \b
    memory-kb forget 69712e00
    memory-kb forget 69712e00 --delete
    memory-kb forget 69712e00 --purge --dry-run
    """
    forgotten = options.kb.forget(entry, delete=delete, purge=purge, dry_run=options.dry_run)
    assert forgotten.run
    action = "purged" if purge else "deleted" if delete else "retired"
    fields: dict[str, Any] = {"id": forgotten.id, "path": forgotten.path, "action": action}
    purged = forgotten.purged
    if purged is None:
        return finish_entry(options, forgotten.run, fields, f"{action} {forgotten.title}  {forgotten.path}")
    code = finish_entry(options, forgotten.run, fields | purged._asdict(), f"purged {short_id(forgotten.id)}")
    if options.as_json:
        return code
    word = "would clean" if options.dry_run else "cleaned"
    for file in purged.files:
        echo(f"{word} {file}")
    if purged.runs:
        echo(f"{word} the journal: {pluralize(purged.runs, 'run')} that can no longer be undone")
    for sentence in (*purged.left, *purged.git):
        say(f"left: {sentence}")
    return code


@verb("rename", allow_secret=True, dry_run=True)
@click.argument("wanted", metavar="ID")
@click.argument("new")
@flag("--title", "Rename what it is titled by: its title, its first heading, or its file.")
@flag("--file file", "Rename its file, whatever its title is.")
@flag("--folder folder", "Move its file to the folder NEW, and rewrite the links that go by paths.")
def rename_verb(options: Options, /, wanted: str, new: str, **way: bool) -> int:
    """Give an entry another id or title, and rewrite every link to it.

    NEW is its new id, with --title its new title, with --folder the new folder of its file. Either all of it is
    changed, or nothing. Links that use another name of the entry stay as they are: after --title, links by the name of
    the file still lead to it, in other tools too. --file changes that name.

    \b
    memory-kb rename 3f9a0c12 wait-for-the-event
    memory-kb rename wait-for-the-event "Wait for the event" --title --dry-run
    """
    run = options.kb.rename(wanted, new, dry_run=options.dry_run, **way)
    return finish_run(options, run, nothing="It is called so already.")


_SHOWN = 20


@verb("import", dry_run=True)
@click.argument("source", type=click.Path())
@option("--format", "What SOURCE is.", choice=("auto", *FORMATS), default="auto")
@option("--as wanted", "What an export becomes.", choice=["entries", "sessions"], default="entries")
@place_options("Where the entries go.", "them")
def import_verb(options: Options, /, source: str, wanted: str, **chosen: Any) -> int:
    """Import notes, memories or conversations of another tool.

    SOURCE is a folder of basic-memory, Obsidian or other notes, MEMORY.md with its daily logs, an AGENTS.md or
    CLAUDE.md, the folder .cursor/rules, a JSON file of mem0, or the ZIP archive or conversations.json that Claude or
    ChatGPT exports. Of a conversation, only what a person states as a preference, a correction or a constraint is kept;
    with --as sessions, conversations become session logs instead. SOURCE stays as it is. Importing it again adds only
    what is new.

    \b
    memory-kb import AGENTS.md --dry-run
    memory-kb import ~/basic-memory
    """
    report = options.kb.import_(source, as_sessions=wanted == "sessions", dry_run=options.dry_run, **chosen)
    fields = pick(report, "format", "source", "pieces", "left_out", "sessions", "events")
    show = say if options.dry_run else echo

    def print_report() -> None:
        if report.sessions or report.events:
            show(f"{pluralize(report.sessions, 'session')}, {pluralize(report.events, 'event')}")
        for what in dict.fromkeys(one.what for one in report.pieces):
            counts = {action: count for (name, action), count in report.count().items() if name == what}
            show(f"{pluralize(sum(counts.values()), what)}: {format_counts(counts)}")
        for one in [one for one in report.pieces if one.message][:_SHOWN]:
            say(f"{one.origin}:{one.line}: {one.action}: {one.message}")
        for left in report.left_out[:_SHOWN]:
            left_out = f"left out: {pluralize(left.number, left.what)}: {left.why}"
            say(f"{left_out}, the first at {left.first}")
        if len(report.left_out) > _SHOWN:
            say(f"and {len(report.left_out) - _SHOWN:,} more reasons; --json lists them")
        if not report.pieces and not report.events:
            show(f"Nothing to import in {report.source}, read as {report.format}.")

    return finish_run(options, report.run, fields, report=print_report)
