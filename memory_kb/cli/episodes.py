"""The commands reflect, episode, diary, capture, extract, premortem and assume."""

from __future__ import annotations

import dataclasses
import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, allow_secret_option, shared_options
from memory_kb.cli.output import (
    CONFLICT,
    Options,
    clean,
    end_run,
    finish_run,
    one_line,
    print_json,
    print_preview,
    print_problems,
    run_as_json,
    say,
    style,
    tell_id,
)
from memory_kb.errors import ProviderFailed, UnreadableInput, UsageError
from memory_kb.learning.checkpoints import RECOMMENDATIONS
from memory_kb.learning.diary import DiaryEntry, Reflected
from memory_kb.model import Problem
from memory_kb.store.events import Event, NoEvent, load_object
from memory_kb.store.session_log import OUTCOMES
from memory_kb.text import printable

if TYPE_CHECKING:
    from memory_kb.learning.capture import CaptureReport
    from memory_kb.learning.checkpoints import Checkpoints
    from memory_kb.learning.extraction import ExtractionReport, ScopeReport
    from memory_kb.providers.spending import Metered
    from memory_kb.reports import RunReport


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
    """Build the episodes of a session from its events.

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
@allow_secret_option
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


@click.group("diary", cls=Family, alone="list")
def diary_verb() -> None:
    """The episodes day by day, how they ended and how good they were.

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


@click.command("capture")
@shared_options
@click.argument("text", nargs=-1)
@click.option("--job", help="Keep it with this job.")
@click.option("--task", help="Keep it with this task of --job.")
@click.option("--session", metavar="ID", help="Where the message comes from.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def capture_verb(
    options: Options, /, text: tuple[str, ...], job: str | None, task: str | None, session: str | None, dry_run: bool
) -> int:
    """Keep what a message states with a marker.

    Markers are words such as "from now on" or "we use X, not Y".

    TEXT is one message of a person. Without it stdin is read: one message, or JSON lines of events as `session append` takes
    them, of which only the messages of people are read. Without either, --session names a logged session.

    \b
    memory-kb capture "Looks good. Always use UTC for timestamps."
    memory-kb capture --session 0b1c42 --dry-run
    memory-kb session replay 0b1c42 --json | memory-kb capture --job api
    """
    problems: list[Problem] = []
    messages = _read(text, problems)
    with options.open() as kb:
        report = kb.capture(messages, job=job, task=task, session=session, dry_run=dry_run)
    code = 0 if dry_run else end_run(report.run)
    if options.as_json:
        told = {
            "messages": [dataclasses.asdict(one) for one in report.messages],
            "problems": [one._asdict() for one in problems],
        }
        print_json(told | run_as_json(report.run, dry_run=dry_run))
        return code
    print_problems(problems)
    _print_report(report, dry_run=dry_run)
    return code


def _read(text: tuple[str, ...], problems: list[Problem]) -> list[str | Event] | None:
    """Return the messages that were given, or None where there are none."""
    from memory_kb.cli.sessions import read_events

    if text and text != ("-",):
        return [" ".join(map(printable, text))]
    given = b"" if sys.stdin is None or (not text and sys.stdin.isatty()) else sys.stdin.buffer.read()
    if not given.strip():
        return None
    lines = given.splitlines(keepends=True)
    if not _is_json(next(line for line in lines if line.strip())):
        return [given.decode("utf-8", "replace")]
    events: list[str | Event] = list(read_events(lines, problems, problems))
    if problems and not events:
        raise UnreadableInput(f"stdin:{problems[0].line}: {problems[0].message}", "write one JSON object a line")
    return events


def _is_json(line: bytes) -> bool:
    try:
        return bool(load_object(line))
    except NoEvent:
        return False


def _print_report(report: CaptureReport, *, dry_run: bool) -> None:
    for one in report.kept:
        if not dry_run and one.path and one.id:
            click.echo(
                f"{one.action} {one_line(one.path)}  {tell_id(one.id)}  {clean(' '.join((one.text or '').split()))}"
            )
        elif one.action not in ("created", "reinforced"):
            say(f"{one.action}: {one.reason}")
    if dry_run:
        print_preview(report.run)
    if not report.kept:
        say(
            f"Nothing to keep: {report.messages[0].reason}."
            if len(report.messages) == 1
            else f"Nothing to keep in {len(report.messages):,} messages."
            if report.messages
            else "There is no message of a person to look at."
        )


_SHOWN = {
    "created": "created",
    "reinforced": "reinforced",
    "known": "known",
    "forgotten": "kept before and taken away since",
    "withdrawn": "withdrawn",
    "refused": "refused",
}
_EXTRACTING_COLOURS = {"done": "green", "failed": "red", "skipped": "yellow"}


@click.command("extract")
@shared_options
@click.argument("session", metavar="ID")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME",
    help="Only this scope, such as corrective; may be given several times.",
)
@click.option(
    "--again", is_flag=True, help="Ask again what was asked before, and keep what was taken back or deleted since."
)
@click.option("--dry-run", is_flag=True, help="Ask nothing and write nothing; show what asking would cost.")
@click.pass_obj
def extract_verb(options: Options, /, session: str, scopes: tuple[str, ...], again: bool, dry_run: bool) -> int:
    """Learn from a session that is over: ten scopes, each by itself.

    A language model reads what was said and done; without one, failures and what people stated are found by rules. What a scope cannot do is reported and
    leaves the others alone. Norms become proposals in review/; everything else is kept with the events that it rests on.

    \b
    memory-kb extract 0b1c42
    memory-kb extract 0b1c42 --scope corrective --scope observations
    memory-kb extract 0b1c42 --dry-run
    """
    with options.open() as kb:
        report = kb.extract(session, scopes=scopes or None, again=again, dry_run=dry_run)
    is_left = any(run.conflicts for run in report.runs)
    failure = ProviderFailed.exit_code if report.is_failure else 0
    if options.as_json:
        print_json(_as_json(report, dry_run=dry_run))
        return 6 if is_left else failure
    _print_extraction(report, dry_run=dry_run)
    return max((end_run(run) for run in report.runs), default=0) or failure


def _as_json(report: ExtractionReport, *, dry_run: bool) -> dict[str, Any]:
    scopes = [
        dataclasses.asdict(one)
        | {
            "used": one.used._asdict(),
            "kept": [kept._asdict() for kept in one.kept],
            "dropped": [dropped._asdict() for dropped in one.dropped],
        }
        for one in report.scopes
    ]
    runs = [run_as_json(run, dry_run=dry_run) for run in report.runs]
    told = {
        "session": report.session,
        "summary": report.summary,
        "scopes": scopes,
        "used": report.used._asdict(),
        "runs": runs,
    }
    return told | ({"dry_run": True} if dry_run else {})


def _print_extraction(report: ExtractionReport, *, dry_run: bool) -> None:
    width = max(len(one.scope) for one in report.scopes)
    for one in report.scopes:
        state = style(f"{one.outcome:<9}", fg=_EXTRACTING_COLOURS.get(one.outcome))
        click.echo(f"{one.scope:<{width}}  {state}  {one_line(_describe(one))}".rstrip())
        for kept in one.kept:
            where = f"  {one_line(kept.path)}" if kept.path else ""
            word = "left out" if kept.action == "forgotten" else kept.action
            click.echo(f"{'':<{width}}  {word:<10} {clean(kept.title)}{style(where, dim=True)}")
    for run in report.runs if dry_run else ():
        print_preview(run)
    if report.was_taken_away:
        say(
            f"What was taken back or deleted before stays so; `memory-kb extract {report.session} --again` keeps it again."
        )
    say(f"{report.session}: {report.summary}; {_cost(report.used, dry_run=dry_run)}")
    for run in report.runs:
        if run.run:
            say(
                f"`memory-kb undo {run.run}` takes back what was written ({len(run.changes)} change{'' if len(run.changes) == 1 else 's'})."
            )


def _describe(one: ScopeReport) -> str:
    """Return what one scope came to, in words."""
    if one.outcome == "planned":
        return _cost(one.used, dry_run=True)
    counts = [f"{count} {said}" for word, said in _SHOWN.items() if (count := one.count(word))]
    dropped = [f"{drop.times} dropped: {drop.reason}" for drop in one.dropped]
    return "; ".join(filter(None, (one.message, ", ".join(counts), *dropped)))


def _cost(used: Metered, *, dry_run: bool) -> str:
    if not used.calls:
        return "no call to a language model"
    return f"would take {used}, estimated" if dry_run else str(used)


@click.command("premortem")
@shared_options
@click.argument("text", nargs=-1)
@click.option("--title", help="What the plan is called [default: its first line].")
@click.option("--job", help="The job it is for.")
@click.option("--task", help="The task of that job.")
@allow_secret_option
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def premortem_verb(options: Options, /, text: tuple[str, ...], dry_run: bool, **chosen: Any) -> int:
    """Record a plan and what may go wrong, before the work begins.

    TEXT is both; a single - reads it from stdin.

    It is kept in .premortem.md beside the notes and rewritten when the plan changes. `extract` holds the session against it.

    \b
    memory-kb premortem "The import may be too slow for 10,000 files." --job api --task import
    memory-kb premortem - --title "Move to Postgres" < plan.md
    """
    words = " ".join(text)
    if text == ("-",):
        words = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin else ""
    with options.open() as kb:
        report = kb.premortem(words, dry_run=dry_run, **chosen)
    return _tell_written(options, report, dry_run=dry_run)


@click.command("assume")
@shared_options
@click.argument("milestone", required=False)
@click.option("--complexity", default="", help="How hard the work is taken to be.")
@click.option("--approach", default="", help="Whether the approach is taken to be viable.")
@click.option("--preferences", default="", help="What the person is taken to want.")
@click.option("--scope-note", default="", help="What is taken to belong to the work.")
@click.option(
    "--recommendation",
    type=click.Choice(RECOMMENDATIONS),
    default="continue",
    show_default=True,
    help="What to do now.",
)
@click.option("--job", help="The job it is about.")
@click.option("--task", help="The task of that job.")
@click.option("--list", "is_list", is_flag=True, help="Show what was assumed so far.")
@allow_secret_option
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def assume_verb(options: Options, /, milestone: str | None, is_list: bool, dry_run: bool, **chosen: Any) -> int:
    """Record what is assumed when MILESTONE is reached.

    It is kept in .assumptions.jsonl beside the notes. `extract` holds the session against it.

    \b
    memory-kb assume planned --complexity "small: two modules" --approach "one transaction per file"
    memory-kb assume built --scope-note "no migration" --recommendation notify --job api
    memory-kb assume --list --job api
    """
    with options.open() as kb:
        if is_list:
            return _list_assumptions(options, kb.assumptions(job=chosen["job"], task=chosen["task"]))
        if not milestone:
            raise UsageError(
                "no milestone is named", "try: memory-kb assume planned --complexity medium, or memory-kb assume --list"
            )
        report = kb.assume(milestone, dry_run=dry_run, **chosen)
    return _tell_written(options, report, dry_run=dry_run)


def _list_assumptions(options: Options, found: Checkpoints) -> int:
    if options.as_json:
        listed = [
            {
                "milestone": one.milestone,
                "timestamp": one.timestamp,
                "assumptions": one.assumptions,
                "recommendation": one.recommendation,
            }
            for one in found.checkpoints
        ]
        print_json({"checkpoints": listed, "torn": list(found.torn)})
        return 0
    for one in found.checkpoints:
        assumed = "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in one.assumptions.items() if text)
        click.echo(
            f"{one_line(one.timestamp)}  {style(one_line(one.milestone), bold=True)}  {one.recommendation}  {one_line(assumed)}"
        )
    for number in found.torn:
        say(f".assumptions.jsonl:{number}: no checkpoint; the line is passed over")
    if not found.checkpoints:
        say("Nothing was assumed yet.")
    return 0


def _tell_written(options: Options, report: RunReport, *, dry_run: bool) -> int:
    return finish_run(options, report, dry_run=dry_run, nothing="Nothing is new; nothing was written.")
