"""The commands capture, extract, reflect, episode and diary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Day, Family, flag, job_options, option, tag_option, text_argument, together, verb
from memory_kb.cli.output import CONFLICT, Options, echo, pick, print_json, print_listing, print_problems, say, style
from memory_kb.cli.print_runs import end_run, finish_entry, finish_run, print_preview, run_as_json
from memory_kb.errors import ProviderFailed, UnreadableInput, UsageError
from memory_kb.model import Problem
from memory_kb.store.session_events import SESSION_OUTCOMES, Event
from memory_kb.text import pluralize, printable, short_id

if TYPE_CHECKING:
    from memory_kb.learning.extraction import ExtractionReport
    from memory_kb.providers.spending import Metered


_TOLD = {
    "unchanged": "is as it was",
    "edited": "was edited since; left as it is",
    "aged": "was summarised or archived since; left as it is",
    "left": "was changed meanwhile; left as it is",
    "forgotten": "was reverted, retired or deleted before, and is left so; --again makes it again",
}


@verb("reflect", dry_run=True)
@click.argument("session", metavar="SESSION")
@flag("--again", "Also build what was reverted or deleted since.")
def reflect_verb(options: Options, /, session: str, again: bool) -> int:
    """Build the episodes of a session from its events.

    A session that names several tasks gets an episode for each. The episode of a session that went on is built anew,
    unless somebody has edited it.

    \b
    memory-kb reflect burst_20260321T120000_001
    memory-kb reflect burst_2026 --dry-run
    """

    def complain(line: int, message: str) -> None:
        say(f"{session}:{line}: {message}")

    def show() -> None:
        for one in done.episodes:
            if one.action == "empty":
                say(f"{one.session}: nothing was done in it; no episode")
            elif one.action not in ("created", "updated"):
                say(f"{one.path} {_TOLD[one.action]}")
            elif not options.dry_run:
                echo(f"{one.action} {one.path}  {one.outcome} {one.quality_score:.2f}")

    done = options.kb.reflect(session, again=again, dry_run=options.dry_run, on_problem=complain)
    return finish_run(options, done.run, pick(done, "session", "episodes"), notes=done.notices, report=show)


@verb("episode", allow_secret=True, dry_run=True)
@click.argument("event", nargs=-1)
@option("--outcome", "What came of it.", choice=SESSION_OUTCOMES)
@tag_option
@job_options("Keep it with this job.", "Keep it with this task of --job.")
@option("--session", "The session it happened in.")
@option("--agent", "Who it happened to.")
def episode_verb(options: Options, /, event: tuple[str, ...], **chosen: Any) -> int:
    """Record that EVENT happened. A single - reads it from stdin.

    \b
    memory-kb episode "Rolled 4.2 back: the migration held a lock for six minutes." --outcome failure --tag release
    """
    words = text_argument(event)
    if not words.strip():
        raise UsageError("there is no event to record", 'try: memory-kb episode "Deployed 4.2." --outcome success')
    learned = options.kb.episode(words, dry_run=options.dry_run, **chosen)
    assert learned.run
    line = f"{learned.action} {learned.path}  {learned.id}"
    return finish_entry(options, learned.run, pick(learned, "id", "path", "action"), line)


@click.group("diary", cls=Family, alone="list")
def diary_verb() -> None:
    """List the episodes day by day, how they ended and how good they were.

    \b
    memory-kb diary list --status failure --since 2026-03-01
    memory-kb diary export --jsonl > diary.jsonl
    """


_DIARY_FILTERS = together(
    option("--tag", "Only with any of these tags.", many=True, metavar="TAG"),
    option("--status", "Only what ended so.", choice=["success", "failure", "mixed", "partial"], many=True),
    option("--min-quality", "Only with at least this quality score, from 0 to 1.", type=click.FloatRange(0, 1)),
    option("--since", "Only this day and later ones.", type=Day(), metavar="DAY"),
    option("--agent", "Only what this agent did."),
)


@verb("list", diary_verb)
@_DIARY_FILTERS
def list_verb(options: Options, /, **chosen: Any) -> None:
    """List the diary, the newest first.

    \b
    memory-kb diary list --tag deploy --min-quality 0.8
    """
    entries = options.kb.diary.list(**chosen)
    rows = ((one.timestamp[:10], one.status, f"{one.quality_score:.2f}", one.title, one.path) for one in entries)
    print_listing(options, {"entries": entries}, rows, "The diary has no such entry.")


@verb("export", diary_verb)
@_DIARY_FILTERS
@flag("--jsonl", "One entry a line, as JSON; the only format there is.")
def export_verb(options: Options, /, jsonl: bool, **chosen: Any) -> None:  # noqa: ARG001 - it is what is printed anyway
    """Print the diary for other tools, the oldest first: one JSON object a line.

    \b
    memory-kb diary export --jsonl > diary.jsonl
    """
    for entry in options.kb.diary.export(**chosen):
        print_json(entry)


@verb("capture", dry_run=True)
@click.argument("text", nargs=-1)
@job_options("Keep it with this job.", "Keep it with this task of --job.")
@option("--session", "Where the message comes from.", metavar="ID")
def capture_verb(options: Options, /, text: tuple[str, ...], **chosen: Any) -> int:
    """Store what a message states with a marker such as "from now on" or "we use X, not Y".

    TEXT is one message of a person. Without it stdin is read: one message, or JSON lines of events as `session append`
    takes them, of which only the messages of people are read. Without either, --session names a logged session.

    \b
    memory-kb capture "Looks good. Always use UTC for timestamps."
    memory-kb capture --session 0b1c42 --dry-run
    """
    problems: list[Problem] = []
    report = options.kb.capture(_read_messages(text, problems), dry_run=options.dry_run, **chosen)

    def show() -> None:
        print_problems(problems)
        for one in report.messages:
            if not options.dry_run and one.path and one.id:
                said = " ".join((one.text or "").split())
                echo(f"{one.action} {one.path}  {short_id(one.id)}  {said}")
            elif one.action not in ("created", "reinforced"):
                say(f"{'not read' if one.action == 'passed' else one.action}: {one.reason}")
        if not report.kept:
            say(f"Nothing to keep in {pluralize(report.count, 'message')}.")

    fields = {"messages": report.messages, "problems": problems}
    return finish_run(options, report.run, fields, report=show)


def _read_messages(text: tuple[str, ...], problems: list[Problem]) -> list[str | Event] | None:
    """Return the messages that were given, or None where there are none."""
    from memory_kb.cli.sessions import read_events

    if text and text != ("-",):
        return [" ".join(map(printable, text))]
    given = b"" if not text and sys.stdin.isatty() else sys.stdin.buffer.read()
    if not given.strip():
        return None
    if not given.lstrip().startswith(b"{"):
        return [given.decode("utf-8", "replace")]
    events: list[str | Event] = list(read_events(given.splitlines(keepends=True), problems))
    if problems and not events:
        raise UnreadableInput(f"stdin:{problems[0].line}: {problems[0].message}", "write one JSON object a line")
    return events


_COLOURS = {"done": "green", "failed": "red", "skipped": "yellow"}
_SHOWN = ("created", "reinforced", "known", "forgotten", "refused")


@verb("extract", dry_run="Ask nothing and write nothing; show what asking would cost.")
@click.argument("session", metavar="ID")
@option("--scope scopes", "Only this scope, such as corrective; may be given several times.", many=True, metavar="NAME")
@flag("--again", "Ask again what was asked before, and keep what was reverted or deleted since.")
def extract_verb(options: Options, /, session: str, scopes: tuple[str, ...], again: bool) -> int:
    """Extract memories from a session that is over, in ten scopes.

    A language model reads what was said and done; without one nothing is extracted. A scope that fails is reported, and
    the others go on. Policies and the like become proposals in review/; everything else is stored with the events it is
    drawn from.

    \b
    memory-kb extract 0b1c42
    memory-kb extract 0b1c42 --scope corrective --scope observations
    """
    report = options.kb.extract(session, scopes=scopes or None, again=again, dry_run=options.dry_run)
    is_left = any(run.conflicts for run in report.runs)
    failure = ProviderFailed.exit_code if report.is_failure else 0
    runs = [run_as_json(run, dry_run=options.dry_run) for run in report.runs]
    fields = pick(report, "session", "summary", "scopes", "used") | {"runs": runs}
    if options.printed_as_json(fields | ({"dry_run": True} if options.dry_run else {})):
        return CONFLICT if is_left else failure
    _print_extraction(report, dry_run=options.dry_run)
    return max((end_run(run) for run in report.runs), default=0) or failure


def _print_extraction(report: ExtractionReport, *, dry_run: bool) -> None:
    width = max(len(one.scope) for one in report.scopes)
    for one in report.scopes:
        state = style(f"{one.outcome:<9}", fg=_COLOURS.get(one.outcome))
        counts = [f"{count} {word}" for word in _SHOWN if (count := one.count(word))]
        dropped = [f"{drop.times} dropped: {drop.reason}" for drop in one.dropped]
        said = "; ".join(filter(None, (one.message, ", ".join(counts), *dropped)))
        said = _describe_cost(one.used, dry_run=True) if one.outcome == "planned" else said
        echo(f"{one.scope:<{width}}  {state}  {said}".rstrip())
        for kept in one.kept:
            where = f"  {kept.path}" if kept.path else ""
            echo(f"{'':<{width}}  {kept.action:<10} {kept.title}{style(where, dim=True)}")
    for run in report.runs if dry_run else ():
        print_preview(run)
    if report.was_taken_away:
        say(f"What was reverted or deleted stays so; `memory-kb extract {report.session} --again` keeps it again.")
    say(f"{report.session}: {report.summary}; {_describe_cost(report.used, dry_run=dry_run)}")
    for run in report.runs:
        if run.run:
            say(f"`memory-kb undo {run.run}` reverts {pluralize(len(run.changes), 'change')}.")


def _describe_cost(used: Metered, *, dry_run: bool) -> str:
    if not used.calls:
        return "no call to a language model"
    return f"would take {used}, estimated" if dry_run else str(used)
