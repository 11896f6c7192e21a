"""Verbs about episodes: reflect, episode, diary list, diary export."""

from __future__ import annotations

import dataclasses
import json
import sys
from datetime import datetime
from typing import Any

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import clean, one_line, print_json, say, style
from memory_kb.cli.runs import CONFLICT, end_run, print_preview, run_as_json
from memory_kb.errors import UsageError
from memory_kb.learning.episodic.diary import DiaryEntry, Reflected
from memory_kb.learning.logs.sessions import OUTCOMES

_TOLD = {
    "unchanged": "is as it was",
    "edited": "was edited since; left as it is",
    "aged": "was summarised or archived since; left as it is",
    "left": "was changed meanwhile; left as it is",
    "forgotten": "was taken back, retired or deleted before, and is left so; --again makes one again that is gone",
}


@click.command("reflect")
@shared_options
@click.argument("session", metavar="SESSION")
@click.option("--again", is_flag=True, help="Also build what was taken back or deleted since.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def reflect_verb(options: Options, /, session: str, again: bool, dry_run: bool) -> int:
    """Tell what was done in a session: build its episodes, with their diary, from its events.

    A session that names several tasks gets an episode for each. One that went on renews its episode, unless somebody has edited that.

    \b
    memory-kb reflect burst_20260321T120000_001
    memory-kb reflect burst_2026 --dry-run
    """
    with options.open() as kb:
        done = kb.reflect(
            session, again=again, dry_run=dry_run, on_problem=lambda line, message: say(f"{session}:{line}: {message}")
        )
    for notice in done.notices:
        say(notice)
    if options.as_json:
        told = {"session": done.session, "episodes": [dataclasses.asdict(one) for one in done.episodes]}
        print_json(told | run_as_json(done.run, dry_run=dry_run))
        return CONFLICT if done.run.conflicts else 0
    if dry_run:
        print_preview(done.run)
    for one in done.episodes:
        _print_reflected(one, is_done=not dry_run)
    return end_run(done.run)


def _print_reflected(one: Reflected, *, is_done: bool) -> None:
    if one.action == "empty":
        say(f"{one.session}: nothing was done in it; no episode")
    elif one.action in ("created", "updated"):
        if is_done:
            click.echo(f"{one.action} {one_line(one.path)}  {one.outcome} {one.quality_score:.2f}")
    else:
        say(f"{one_line(one.path)} {_TOLD[one.action]}")


@click.command("episode")
@shared_options
@click.argument("event", nargs=-1)
@click.option("--outcome", type=click.Choice(OUTCOMES), help="What came of it.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; may be given several times.")
@click.option("--job", help="Keep it with this job.")
@click.option("--task", help="Keep it with this task of --job.")
@click.option("--session", help="The session it happened in.")
@click.option("--agent", help="Who it happened to.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def episode_verb(options: Options, /, event: tuple[str, ...], dry_run: bool, **chosen: Any) -> int:
    """Record that EVENT happened. A single - reads it from stdin.

    \b
    memory-kb episode "Rolled 4.2 back: the migration held a lock for six minutes." --outcome failure --tag release
    """
    words = " ".join(event)
    if event == ("-",):
        words = sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if sys.stdin else ""
    if not words.strip():
        raise UsageError(
            "there is no event to record", 'try: memory-kb episode "Deployed 4.2 to staging." --outcome success'
        )
    with options.open() as kb:
        learned = kb.episode(words, dry_run=dry_run, **chosen)
    assert learned.run
    told = {"id": learned.id, "path": learned.path, "action": learned.action}
    if options.as_json:
        print_json(told | run_as_json(learned.run, dry_run=True) if dry_run else told)
        return CONFLICT if learned.run.conflicts else 0
    if dry_run:
        print_preview(learned.run)
    else:
        click.echo(f"{learned.action} {one_line(learned.path)}  {learned.id}")
    return end_run(learned.run)


@click.group("diary")
def diary_verb() -> None:
    """What was done, day by day: the episodes, with how they ended and how good they were.

    \b
    memory-kb diary list --status failure --since 2026-03-01
    memory-kb diary export --jsonl > diary.jsonl
    """


def _filters(function: Any) -> Any:
    for option in (
        click.option("--agent", help="Only what this agent did."),
        click.option("--since", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="Only this day and later ones."),
        click.option(
            "--min-quality", type=click.FloatRange(0, 1), help="Only with at least this quality score, from 0 to 1."
        ),
        click.option(
            "--status",
            multiple=True,
            type=click.Choice(["success", "failure", "mixed", "partial"]),
            help="Only what ended so.",
        ),
        click.option("--tag", multiple=True, metavar="TAG", help="Only with any of these tags."),
    ):
        function = option(function)
    return function


def _chosen(since: datetime | None, more: dict[str, Any]) -> dict[str, Any]:
    return more | {"since": since.date() if since else None}


@diary_verb.command("list")
@shared_options
@_filters
@click.pass_obj
def list_verb(options: Options, /, since: datetime | None, **more: Any) -> None:
    """List the diary, the newest first.

    \b
    memory-kb diary list
    memory-kb diary list --tag deploy --min-quality 0.8
    """
    with options.open() as kb:
        entries = kb.diary.list(**_chosen(since, more))
    if options.as_json:
        print_json({"entries": [dataclasses.asdict(entry) for entry in entries]})
        return
    for entry in entries:
        _print_entry(entry)
    if not entries:
        say("The diary has no such entry." if since or any(more.values()) else "The diary has no entry yet.")


_COLOURS = {"success": "green", "failure": "red", "mixed": "yellow"}


def _print_entry(entry: DiaryEntry) -> None:
    day = entry.timestamp[:10] or "          "
    status = style(f"{entry.status:<7}", fg=_COLOURS[entry.status])
    click.echo(
        f"{day}  {status}  {entry.quality_score:.2f}  {clean(entry.title)}  {style(one_line(entry.path), dim=True)}"
    )


@diary_verb.command("export")
@shared_options
@_filters
@click.option("--jsonl", is_flag=True, help="One entry a line, as JSON; the only format there is.")
@click.pass_obj
def export_verb(options: Options, /, since: datetime | None, jsonl: bool, **more: Any) -> None:  # noqa: ARG001 - it is what is printed anyway
    """Print the diary for other tools, the oldest first: one JSON object a line.

    \b
    memory-kb diary export --jsonl > diary.jsonl
    """
    with options.open() as kb:
        for entry in kb.diary.export(**_chosen(since, more)):
            click.echo(json.dumps(entry, ensure_ascii=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8"))
