"""The verb session list."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import one_line, print_json, say, style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_kb.index.sessionlist import SessionSeen


@click.command("list")
@shared_options
@click.option("--open", "only_open", is_flag=True, help="Only those that nobody ended.")
@click.option("--agent", help="Only those in which this agent did something.")
@click.option("--job", help="Only those with events of this job.")
@click.option(
    "-k", "--limit", type=click.IntRange(0), default=20, show_default=True, help="The most sessions to print."
)
@click.pass_obj
def list_verb(options: Options, /, **chosen: Any) -> None:
    """List the sessions, the one with the newest event first.

    A line holds the id, whether it is open or ended and how it went, who worked in it, its job and task, its first and its last event in UTC, and
    how many there are. A session that went on after its end is open again.

    \b
    memory-kb session list
    memory-kb session list --open --agent coder
    memory-kb session list --job api --limit 100 --json
    """
    with options.open() as kb:
        found = kb.sessions.list(**chosen)
    if options.as_json:
        listed = [dataclasses.asdict(one) for one in found.sessions]
        print_json({"sessions": listed, "total": found.total, "degraded": list(found.degraded)})
        return
    for note in found.degraded:
        say(f"note: {note}")
    _print_table(found.sessions)
    if found.total > len(found.sessions):
        say(f"… and {found.total - len(found.sessions):,} more; --limit shows them")
    if not found.total:
        narrowed = chosen["only_open"] or chosen["agent"] or chosen["job"]
        say("No session fits." if narrowed else "There is no session yet; `memory-kb session start` begins one.")


def _print_table(sessions: Sequence[SessionSeen]) -> None:
    rows = [_row(one) for one in sessions]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join((style(first, fg="green"), *others)).rstrip())


def _row(one: SessionSeen) -> tuple[str, ...]:
    """Return a session as the cells of a line.

    Example:
        >>> from memory_kb.index.sessionlist import SessionSeen
        >>> _row(SessionSeen("s1", "coder", "api", None, "2026-03-21T12:00:00.000Z", "2026-03-21T12:30:00.000Z", 1, "ended", "success"))
        ('s1', 'ended success', 'coder', 'api', '2026-03-21 12:00', '2026-03-21 12:30', '1 event')
    """
    state = f"{one.state} {one.outcome}" if one.outcome else one.state
    place = "/".join(filter(None, (one.job, one.task)))
    moments = ((moment or "-")[:16].replace("T", " ") for moment in (one.started, one.last))
    words = (
        one.session,
        state,
        one.agent or "-",
        place or "-",
        *moments,
        f"{one.events:,} event{'' if one.events == 1 else 's'}",
    )
    return tuple(map(one_line, words))
