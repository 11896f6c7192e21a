"""The verb exposure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, print_table, say, style, tell_id

#: The last times that are listed; `--json` has all.
_SHOWN = 20


@click.command("exposure")
@shared_options
@click.argument("wanted", metavar="ID")
@click.pass_obj
def exposure_verb(options: Options, /, wanted: str) -> None:
    """Tell who was shown an entry, when, and what became of them; and what was made of it.

    For when an entry turns out to be wrong: which sessions and which other entries does that touch? An entry that is
    deleted is found by its whole id.

    \b
    memory-kb exposure 69712e00
    memory-kb exposure 69712e00 --json
    """
    with options.open() as kb:
        found = kb.exposure(wanted)
    if options.as_json:
        print_json(dataclasses.asdict(found) | {"totals": found.totals._asdict()})
        return
    total = found.totals
    place = f"{found.path}:{found.line}" if found.path else "no longer in the notes"
    click.echo(f"{style(clean(found.title or found.id), bold=True)}  {style(one_line(place), fg='green')}")
    rows: dict[str, object] = {
        "shown": f"{_count(total.shown, 'time')}, {total.injected:,} of them unasked",
        "to": f"{_count(total.sessions, 'session')}, {_count(total.agents, 'agent')}, {_count(total.tasks, 'task')}",
        "tasks went": _say_counts(total.outcomes),
        "sessions ended": _say_counts(total.sessions_ended),
        "tokens": f"{total.tokens_each:,} each time, {total.tokens_injected:,} unasked in all (by its text of today)",
    }
    print_table({name: value for name, value in rows.items() if value})
    for one in found.showings[-_SHOWN:]:
        who = " ".join(
            f"{name}={one_line(value)}"
            for name, value in (("agent", one.agent), ("task", one.task), ("session", one.session))
            if value
        )
        went = (
            (one.credit and f"credited {one.credit}")
            or one.outcome
            or (f"session: {one.session_outcome}" if one.session_outcome else "")
        )
        click.echo(f"  {one.ts[:16]}  {one.verb:<8} {clean(who)}{f'  -> {clean(went)}' if went else ''}")
    if len(found.showings) > _SHOWN:
        say(f"These are the last {_SHOWN}; --json has all.")
    for entry in found.derived:
        click.echo(
            f"  {entry.relation}: {tell_id(entry.id)} {clean(entry.title)}  {style(f'{one_line(entry.path)}:{entry.line}', fg='green')}"
        )
    if found.sources:
        click.echo(f"  made of: {', '.join(map(clean, found.sources))}")
    say(
        f"The log of this machine goes back to {found.since[:10]}."
        if found.since
        else "Nothing was shown to anybody on this machine yet."
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _say_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())
