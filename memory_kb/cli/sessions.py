"""The command session and its subcommands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from memory_kb.cli.app import Family, flag, job_options, limit_option, option, text_argument, verb
from memory_kb.cli.output import (
    Options,
    as_plain,
    echo,
    format_place,
    pick,
    print_listing,
    print_notes,
    print_problems,
    say,
    style,
)
from memory_kb.cli.print_runs import end_steps, print_steps
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.model import Problem
from memory_kb.reports import SessionHit, SessionImported, SessionSearch, SessionShare, SessionWritten
from memory_kb.sessions import TRANSCRIPT_FORMATS
from memory_kb.store.session_events import (
    EVENT_TYPES,
    STREAMS,
    Event,
    EventFilter,
    NoEvent,
    load_object,
    parse_event,
    to_mapping,
)
from memory_kb.text import pluralize, printable, shorten

_SHOWN = 300
_ONE_A_LINE = 'write one JSON object a line, such as {"role": "user", "content": "Use UTC."}'


@click.group("session", cls=Family, alone="list")
def session_verb() -> None:
    """Log, read and search what happened in sessions.

    \b
    memory-kb session search "flaky AND redis" --agent coder
    memory-kb session import ~/.claude/projects
    """


@verb("list", session_verb)
@flag("--open only_open", "Only those that nobody ended.")
@option("--agent", "Only those in which this agent did something.")
@option("--job", "Only those with events of this job.")
@limit_option("The most sessions to print.", 20)
def list_verb(options: Options, /, **chosen: Any) -> None:
    """List the sessions, the one with the newest event first.

    A line holds the id, whether it is open or ended and how it went, who worked in it, its job and task, its first and
    its last event in UTC, and how many there are. A session that went on after its end is open again.

    \b
    memory-kb session list --open --agent coder
    """
    found = options.kb.sessions.list(**chosen)
    rows = []
    for one in found.sessions:
        state = " ".join(filter(None, (one.state, one.outcome)))
        place = "/".join(filter(None, (one.job, one.task)))
        moments = ((moment or "-")[:16].replace("T", " ") for moment in (one.started, one.last))
        rows.append((one.session, state, one.agent or "-", place or "-", *moments, pluralize(one.events, "event")))
    empty = "No session fits; `memory-kb session start` begins one."
    print_listing(options, found, rows, empty, found.degraded)
    if found.total > len(found.sessions) and not options.as_json:
        say(f"… and {found.total - len(found.sessions):,} more; --limit shows them")


@verb("start", session_verb)
@click.argument("session", metavar="[ID]", required=False)
@job_options("The job the session is for.")
@option("--agent", "Who works in it.")
def start_verb(options: Options, /, session: str | None, **chosen: Any) -> None:
    """Begin or resume a session, and print its id.

    \b
    memory-kb session start 0b1c42 --agent coder --job api --task login
    """
    written = options.kb.sessions.start(session, cwd=printable(os.getcwd()), **chosen)
    if not options.printed_as_json(written):
        echo(written.session)


@verb("append", session_verb)
@click.argument("session", metavar="[ID]", required=False)
@click.argument("text", nargs=-1)
@option("--type kind", "What it is [default: message, or by --tool and --event].", choice=EVENT_TYPES)
@option("--role", "Who says it: user, assistant, system.")
@option("--event", "The name of an event that is no message.")
@option("--tool", "The tool that is called, or answers.")
@option("--args arguments", "What the tool is called with.", metavar="JSON")
@option("--call-id", "What a result has in common with its call.")
@option("--ok/--failed ok", "Whether the tool succeeded.", default=None)
@option("--error", "What it failed with.")
@option("--stream", "Finding out what is wanted, or doing it.", choice=STREAMS)
@option("--agent", "Who it happens to [default: the session's].")
@job_options("The job it belongs to [default: the session's].", "The task it belongs to [default: the session's].")
@option("--time ts", "When it happened [default: now].", metavar="MOMENT")
def append_verb(options: Options, /, session: str | None, text: tuple[str, ...], **chosen: Any) -> int:
    """Append an event to session ID: TEXT, or what the options say.

    Without either, events come as JSON lines on stdin. Credentials are replaced by a word about them. Without ID the
    events name their session, else MEMORY_KB_SESSION does, else one is begun. A single - as TEXT reads it from stdin.

    \b
    memory-kb session append 0b1c42 "Never push to main." --role user
    memory-kb session append 0b1c42 --tool Bash --args '{"command": "pytest"}'
    memory-kb session append 0b1c42 --tool Bash --failed --error "2 failed"
    my-agent --log-json | memory-kb session append 0b1c42
    """
    problems = list[Problem]()
    says = text or any(chosen[name] is not None for name in ("event", "tool", "arguments", "ok", "error"))
    usual = {name: value for name in ("agent", "job", "task", "stream") if (value := chosen[name]) is not None}
    events = iter([_make_event(text, **chosen)]) if says else _read_stdin(problems, usual)
    written = options.kb.sessions.append(events, session=session)
    if problems and not written.written:
        raise UnreadableInput(f"stdin:{problems[0].line}: {problems[0].message}", _ONE_A_LINE)
    if not options.printed_as_json(as_plain(written) | {"problems": problems}):
        _print_written(written, problems)
    return 0


def _make_event(text: tuple[str, ...], kind: str | None, arguments: str | None, **chosen: Any) -> Event:
    from memory_kb.store.session_events import make_event

    try:
        args = None if arguments is None else load_object(arguments)
    except NoEvent as exc:
        raise UsageError(f"--args is {exc}", """write --args '{"command": "pytest"}'""") from exc
    content = text_argument([*map(printable, text)], errors="replace") or None
    made = make_event({**chosen, "args": args, "content": content} | ({"type": kind} if kind else {}))
    if chosen["ts"] and not made.ts:
        raise UsageError(f"{chosen['ts']!r} is not a moment", "write 2026-03-01T12:00:00Z")
    return made


def _read_stdin(problems: list[Problem], usual: dict[str, Any]) -> Iterator[Event]:
    """Yield the events on stdin as they come, each with the usual values that it does not state; note what is wrong."""
    if sys.stdin.isatty():
        raise UsageError("there is no event to append", 'try: memory-kb session append ID "Use UTC." --role user')
    for event in read_events(sys.stdin.buffer, problems):
        yield event._replace(**{name: value for name, value in usual.items() if getattr(event, name) is None})


def read_events(lines: Iterable[bytes], problems: list[Problem]) -> Iterator[Event]:
    """Yield the events on some lines as they come; note lines that hold none, and times that cannot be read."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = parse_event(line)
        except NoEvent as exc:
            problems.append(Problem("stdin", number, f"{exc}; not written"))
            continue
        if not event.ts and b'"ts"' in line and (moment := load_object(line).get("ts")):
            why = f"{str(moment)[:40]!r} is not a moment, so it counts as of now; write 2026-03-01T12:00:00Z"
            problems.append(Problem("stdin", number, why))
        yield event


def _print_written(written: SessionWritten, problems: Sequence[Problem] = ()) -> None:
    print_problems(problems, rest=" such lines")
    if any(one.message.endswith("not written") for one in problems):
        say(_ONE_A_LINE)
    if written.redacted:
        say(f"note: what looks like {', '.join(written.redacted)} was not written")
    for share in written.shares or (SessionShare(written.session, written.written, written.seq),):
        last = f", the last is number {share.seq:,}" if share.seq else ""
        echo(f"{written.action} {share.session}  {pluralize(share.written, 'event')}{last}")


@verb("end", session_verb, dry_run="Show what would change, write nothing; the session stays open.")
@click.argument("session", metavar="ID")
@option("--outcome", "How it went: success, failure, mixed, partial.", metavar="WORD")
@option("--summary", "What was done.")
@flag("--only-close", "Write the end, and learn from the session another time.")
def end_verb(options: Options, /, session: str, **chosen: Any) -> int:
    """End session ID: make its episodes and learnings, credit what it used, do the maintenance that is due.

    Each step is independent of the others; a table says what it did. Ending a session twice changes nothing; another
    outcome or summary corrects the first, in the episode and in what was credited.

    With --dry-run no language model is asked, and each step shows what it would do to the notes as they are now,
    without what the steps before it would have written.

    \b
    memory-kb session end 0b1c42 --outcome success --dry-run
    memory-kb session end 0b1c42 --outcome success
    """
    sessions, dry_run = options.kb.sessions, options.dry_run
    waiting = "another end of this session is at work; waiting for it …"
    written = sessions.end(session, dry_run=dry_run, on_wait=lambda: say(waiting), **chosen)
    more: dict[str, Any] = {"dry_run": True} if dry_run else {"problems": []}
    if not options.printed_as_json(as_plain(written) | more):
        _print_end(written, dry_run=dry_run)
    if dry_run:
        return end_steps(written.steps)
    again = f"memory-kb session end {written.session}"
    if any(step.runs for step in written.steps):
        say(f"`memory-kb undo --session {written.session}` reverts it.")
    code = end_steps(written.steps, again)
    for message in dict.fromkeys(conflict.message for step in written.steps for conflict in step.conflicts):
        say(f"left: {message}; `{again}` again does what is left.")
    return code


def _print_end(written: SessionWritten, *, dry_run: bool) -> None:
    if dry_run:
        say(f"{written.session} would be {written.action}.")
    else:
        _print_written(written)
    # Steps that did something, and what was learned even where that is nothing.
    shown = [one for one in written.steps if one.outcome != "nothing" or one.conflicts or one.name == "capture"]
    print_steps(shown, dry_run=dry_run, with_new=not dry_run)
    if dry_run and not any(step.changes for step in written.steps):
        say("No note would change.")


_TYPES = option(
    "--type types", f"{', '.join(EVENT_TYPES)}, or the name of an event; again for more.", many=True, metavar="TYPE"
)


@verb("replay", session_verb)
@click.argument("session", metavar="ID")
@_TYPES
@option("--agent", "Only what happened to this agent.")
def replay_verb(options: Options, /, session: str, types: tuple[str, ...], agent: str | None) -> None:
    """Print the events of session ID in their order; with --json one object a line.

    \b
    memory-kb session replay 0b1c42
    memory-kb session replay 0b1c42 --type tool_call --agent coder --json
    """
    problems: list[Problem] = []

    def complain(line: int, why: str) -> None:
        problems.append(Problem(session, line, why))

    for event in options.kb.sessions.replay(session, EventFilter(types, agent), on_problem=complain):
        if not options.printed_as_json(to_mapping(event)):
            _print_event(event)
    print_problems(problems)


def _name_event(one: Event | SessionHit) -> str:
    usual = {"event": one.event, "message": one.role}.get(one.type, f"{one.type} {one.tool or ''}".strip())
    return usual or one.type


def _print_event(event: Event) -> None:
    marks = ["failed"] * (event.ok is False) + ["from memory-kb"] * bool(event.injected)
    arguments = json.dumps(event.args, ensure_ascii=False, default=str) if event.args else ""
    text = shorten((event.content or event.error or arguments)[: 4 * _SHOWN], _SHOWN)
    noted = f" ({', '.join(marks)})" if marks else ""
    head = f"{event.seq:>5}  {event.ts[:19].replace('T', ' ')}  {_name_event(event)}{noted}"
    echo(f"{style(head, dim=True)}  {text}".rstrip())


@verb("search", session_verb)
@click.argument("query", nargs=-1)
@limit_option("The most hits to print.")
@_TYPES
@option("--agent", "Only what happened to this agent.")
@job_options("Only this job.", "Only this task.")
@option("--session", "Only this session.", metavar="ID")
@option("--since", "Only this day or moment and later.", metavar="DAY")
@option("--until", "Only until this moment, or the end of this day.", metavar="DAY")
@option("--outcome", "Only sessions that ended so: success, failure, mixed, partial.", metavar="WORD")
@flag("--events", "Every event that fits, instead of the best of each session.")
@flag("--injected with_injected", "Also text that memory-kb itself gave the agent.")
def search_verb(options: Options, /, query: tuple[str, ...], types: tuple[str, ...], **chosen: Any) -> None:
    """Find past sessions by words, best first, each with its best event; without a QUERY the newest events.

    Plain words are alternatives: whatever has more of them, and rarer ones, comes first. AND, OR, NOT, "a phrase", the
    beginning of a word* and content:word are understood.

    \b
    memory-kb session search how did we fix the redis timeout --outcome success
    memory-kb session search 'redis AND (timeout OR refused)' --since 2026-03-01
    memory-kb session search --type tool_result --agent coder
    """
    print_sessions_found(options, options.kb.sessions.search(" ".join(query), type=types, **chosen))


def print_sessions_found(options: Options, result: SessionSearch) -> None:
    """Print what a search of sessions found."""
    hits = [as_plain(hit) | {"burst_id": hit.burst_id} for hit in result.hits]
    if options.printed_as_json(pick(result, "query", "degraded") | {"hits": hits}):
        return
    print_notes(result.degraded)
    for hit in result.hits:
        known = (_name_event(hit), hit.agent, hit.job, hit.task, "from memory-kb" if hit.injected else None)
        marks = style(", ".join(filter(None, known)), dim=True)
        rank, place = style(f"{hit.rank:>2}.", dim=True), format_place(hit.session, hit.seq)
        echo(f"{rank} {place}  {hit.ts[:16].replace('T', ' ')}  {marks}")
        echo(f"    {' '.join(hit.content_snippet.split())}")
    if not result.hits:
        say("No event fits.")


@verb("import", session_verb)
@click.argument("sources", metavar="PATH...", nargs=-1, required=True)
@option("--format", f"{', '.join(TRANSCRIPT_FORMATS)} [default: detected].", metavar="FORMAT")
@option("--session", "Where the events go [default: as the transcript says].", metavar="ID")
@job_options("The job they belong to.", "The task they belong to.")
@option("--agent", "Who worked there [default: as the transcript says].")
@flag("--any-project", "Of a folder, also sessions that worked outside of this project.")
def import_verb(options: Options, /, sources: tuple[str, ...], **chosen: Any) -> int:
    """Import transcripts of Claude Code, Codex, Gemini CLI, OpenCode, Cursor, SpecStory or aider, or conversations in Markdown.

    A folder is searched at any depth; only sessions whose working folder is this project are taken from it. What is
    stored already is not written again, so a transcript that grew may simply be imported once more. A file in no known
    form is refused.

    \b
    memory-kb session import ~/.claude/projects/-home-ana-api
    memory-kb session import ~/.codex/sessions --job api
    """
    made, refused = list[SessionImported](), list[UnreadableInput]()
    for source in sources:
        try:
            made += options.kb.sessions.import_(source, **chosen)
        except UnreadableInput as exc:
            if len(sources) == 1:
                raise
            refused.append(exc)
    left_out = [one for one in made if one.elsewhere]
    made = [one for one in made if not one.elsewhere]
    is_fruitless = bool(made) and not left_out and not any(one.session for one in made)
    code = UnreadableInput.exit_code if refused or is_fruitless else 0
    elsewhere = [{"source": one.source, "folder": one.elsewhere} for one in left_out]
    if options.printed_as_json({"sessions": made, "left_out": elsewhere, "refused": [str(error) for error in refused]}):
        return code
    for one in made:
        _print_imported(one)
    for error in refused:
        say(f"not imported: {error}")
    if left_out:
        files = pluralize(len(left_out), "transcript")
        say(f"{files} of other projects left out ({left_out[0].elsewhere}, …); --any-project imports them too.")
    if not any(one.session for one in made):
        unknown = "" if made or left_out or refused else ": no transcript is recognised, and --format names what it is"
        say(f"Nothing was imported{unknown}.")
    return code


def _print_imported(one: SessionImported) -> None:
    print_problems(one.problems)
    if one.redacted:
        say(f"note: what looks like {', '.join(one.redacted)} was not written")
    if one.session:
        ours = f", {one.injected:,} with text from memory-kb" if one.injected else ""
        echo(f"{one.session}  {one.added:,} added, {one.known:,} already stored, {one.ignored:,} skipped{ours}")
