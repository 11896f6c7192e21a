"""The command benefit."""

from __future__ import annotations

from pathlib import Path

import click

from memory_kb.cli.app import option, verb
from memory_kb.cli.output import Options, print_rows, say
from memory_kb.cli.progress import Progress


@verb("benefit")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option("--html", "Also write a page with every count.", type=click.Path(path_type=Path, dir_okay=False))
@option(
    "--project",
    "Whose git history has the project's notes [default: where the sessions ran].",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
)
def benefit_verb(options: Options, /, folder: Path, html: Path | None, project: Path | None) -> None:
    """Count from your own transcripts in DIR what a memory would have saved, before you install one.

    Sessions are replayed in order of time; each is given what the hooks would have given from sessions that were over
    before it began. What was known before and found out again is counted by facts of the logs: the command that went
    through after others had failed, a file that was edited, an error, what you had said before. The notes of the project
    are those of its git history at that time. It is compared with no memory at all, grep over the same notes, the MEMORY.md,
    CLAUDE.md or AGENTS.md of that time, and as an upper bound a file of every fact. Nothing is kept, nothing leaves the
    machine, no model is asked.

    \b
    memory-kb benefit ~/.claude/projects
    memory-kb benefit ~/.codex/sessions --html benefit.html
    """
    from memory_kb.benefit import HEAD, note_of, render, replay, table_of

    with Progress("Replaying", "sessions") as progress:
        made = replay(folder, progress, project)
    if html:
        html.write_text(render(made, str(folder)), encoding="utf-8")
    if options.answer(made.as_json()):
        return
    again = sum(made.found_again.values())
    click.echo(
        f"{made.sessions:,} sessions, {made.prompts:,} prompts; {again:,} things were found out that an earlier session knew."
    )
    print_rows([HEAD, *table_of(made)], numbers=True)
    click.echo(
        f"{made.entries_given:,} entries were given; {len(made.never_paid):,} of them never paid, {len(made.wrong):,} were wrong: "
        "they name a command that then failed."
    )
    click.echo(note_of(made))
    for problem in made.problems[:5]:
        say(f"note: {problem}")
    if html:
        say(f"{html} has every count")
