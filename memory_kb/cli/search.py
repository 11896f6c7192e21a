"""The commands search, why-not, context, show, list, links and stats."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memory_kb.cli.app import shared_options, vaults_option
from memory_kb.cli.hits import print_found
from memory_kb.cli.output import (
    FileProgress,
    Options,
    clean,
    one_line,
    print_entry_line,
    print_json,
    print_table,
    say,
    style,
    tell_id,
)
from memory_kb.errors import UsageError
from memory_kb.model import (
    HOST,
    KIND_ALIASES,
    KINDS,
    LEARNING_TYPES,
    SCOPE_ALIASES,
    SCOPES,
    STATUSES,
    TYPES,
)

if TYPE_CHECKING:
    from memory_kb.context.service import Context
    from memory_kb.git.history import Version
    from memory_kb.kb import KnowledgeBase
    from memory_kb.reports import EntryView, LinkReport


_F = TypeVar("_F", bound=Callable[..., Any])
#: The word for `--kind` that searches the logs of past sessions instead of the notes.
SESSION = "session"


class _Day(click.ParamType[Any]):
    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from memory_kb.markdown.fields import parse_date

        day = parse_date(value)
        if day is None:
            self.fail(f"{value!r} is not a date such as 2026-03-01", param, ctx)
        return day


def filter_options(function: _F) -> _F:
    """Add the filters that search and list share.

    Each may be given several times.
    """
    many: dict[str, Any] = {"multiple": True}
    for option in (
        click.option("--since", type=_Day(), help="Only entries dated on or after this day."),
        click.option("--task", help="See this task of --job, its job, the project and the home."),
        click.option("--job", help="See this job, the project and the home."),
        click.option("--file", metavar="PATH", help="Only entries whose applies_to covers this path."),
        click.option("--status", type=click.Choice(STATUSES), help="Only entries of this status.", **many),
        click.option("--tag", metavar="TAG", help="Only entries with this tag.", **many),
        click.option(
            "--scope", type=click.Choice((*SCOPES, HOST, *SCOPE_ALIASES)), help="Only entries of this scope.", **many
        ),
        click.option(
            "--learning-type",
            type=click.Choice(LEARNING_TYPES),
            help="Only institutional, task or proxy learnings.",
            **many,
        ),
        click.option("--type", type=click.Choice(TYPES), help="Only entries of this type.", **many),
        click.option(
            "--kind",
            type=click.Choice((*KINDS, *KIND_ALIASES, SESSION)),
            metavar="KIND",
            help=f"Only this kind: {', '.join(KINDS)}.",
            **many,
        ),
    ):
        function = option(function)
    return function


@click.command("search")
@shared_options
@click.argument("query", nargs=-1)
@click.option(
    "-k", "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="The most hits to show."
)
@click.option(
    "--max-chars", type=click.IntRange(0), default=0, help="Stop before the texts get longer than this together."
)
@click.option("--mode", type=click.Choice(["auto", "text", "vector", "hybrid"]), default="auto", help="How to search.")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@click.option("--no-sync", is_flag=True, help="Do not look for changed files first.")
@vaults_option
@click.option("--as-of", metavar="REV", help="Search the notes as they were at this git revision.")
@click.option("--agent", help="With --kind session: only what happened to this agent.")
@click.option("--outcome", metavar="WORD", help="With --kind session: only sessions that ended so.")
@filter_options
@click.pass_obj
def search_verb(options: Options, /, query: tuple[str, ...], no_sync: bool, as_of: str | None, **chosen: Any) -> None:
    """Find what the vault knows about QUERY, best first.

    Words are looked for in any order, and more of them score higher. "Exact phrases" must occur as
    they are, -words must not occur (put -- before a query that starts with one). --kind session searches the
    logs of past sessions instead, as `session search` does.

    \b
    memory-kb search flaky tests
    memory-kb search '"connection reset" -staging' --kind pitfall
    memory-kb search --file src/api/users.py
    memory-kb search deploy --since 2026-01-01 --json
    memory-kb search how did we fix the redis timeout --kind session --outcome success
    """
    text = " ".join(query)
    past = {name: chosen.pop(name) for name in ("agent", "outcome")}
    if chosen["kind"] == (SESSION,):
        _search_sessions(options, text, chosen | past)
        return
    if SESSION in chosen["kind"] or any(past.values()):
        raise UsageError("--agent and --outcome go with --kind session alone", "leave out the other kinds")
    if not text.strip() and chosen["file"] is None:
        raise UsageError("there is nothing to search for", 'try: memory-kb search "flaky tests"')
    with _open_at(options, as_of) as kb, FileProgress() as progress:
        result = kb.search(text, sync=not no_sync or as_of is not None, progress=progress, **chosen)
    print_found(options, result, chosen["file"])


def _search_sessions(options: Options, query: str, chosen: Mapping[str, Any]) -> None:
    """Search past sessions with the options that make sense for them."""
    from memory_kb.cli.sessions import print_sessions_found

    known = ("limit", "job", "task", "agent", "outcome")
    since = chosen["since"].isoformat() if chosen["since"] else None
    with options.open() as kb:
        found = kb.sessions.search(query, since=since, **{name: chosen[name] for name in known})
    print_sessions_found(options, found)


@contextlib.contextmanager
def _open_at(options: Options, revision: str | None) -> Iterator[KnowledgeBase]:
    """Open the vault for some verbs, as it is now or as it was at a revision."""
    if revision is None:
        with options.open() as kb:
            yield kb
        return
    with options.open() as whole, whole.at(revision) as past:
        for warning in past.vault.warnings:
            say(f"warning: at {revision}, {one_line(warning)}")
        yield past


@click.command("why-not")
@shared_options
@click.argument("query")
@click.argument("entry", metavar="ID")
@click.option(
    "-k",
    "--limit",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="The most hits the search would show.",
)
@click.option("--max-chars", type=click.IntRange(0), default=0, help="The budget the search would have.")
@click.option(
    "--mode", type=click.Choice(["auto", "text", "vector", "hybrid"]), default="auto", help="How it would search."
)
@click.option("--prompt", is_flag=True, help="QUERY is a prompt to an agent: why its hook did not give the entry.")
@click.option("--session", metavar="SESSION", help="With --prompt: the session it was typed in.")
@vaults_option
@filter_options
@click.pass_obj
def why_not_verb(options: Options, /, query: str, entry: str, prompt: bool, session: str | None, **chosen: Any) -> None:
    """Explain why a search, or a hook at a prompt, does not show an entry.

    It names the step that left it out, and the score it would need.

    ID is an id, a unique beginning of one, or path.md:LINE.

    \b
    memory-kb why-not "flaky tests" 69712e00
    memory-kb why-not deploy memory/rules/deploy.md --kind rule
    memory-kb why-not --prompt "why do the uploads fail on Mondays?" 69712e00
    """
    with options.open() as kb:
        answer = kb.why_silent(query, entry, session) if prompt else kb.why_not(query, entry, **chosen)
    if options.as_json:
        print_json(dataclasses.asdict(answer))
        return
    for reason in answer.degraded:
        say(f"note: {reason}")
    click.echo(f"{style(answer.step, bold=True)}: {clean(answer.reason)}")
    if answer.score is not None and answer.needed is not None:
        click.echo(f"  its score is {answer.score:.4f}; it needed {answer.needed:.4f}")
    for line in answer.details:
        click.echo(style(f"  {line}", dim=True))


@click.command("show")
@shared_options
@click.argument("entry", metavar="ID")
@click.option("--as-of", metavar="REV", help="As it was at this git revision.")
@click.option("--history", is_flag=True, help="What git knows of it: every commit that changed it, newest first.")
@click.pass_obj
def show_verb(options: Options, /, entry: str, as_of: str | None, history: bool) -> None:
    """Show an entry as it is in its file.

    ID may be cut to a unique beginning; path.md:LINE, a title and a file's name work too.

    \b
    memory-kb show 69712e00
    memory-kb show memory/MEMORY.md:40
    memory-kb show 69712e00 --history
    memory-kb show 69712e00 --as-of HEAD~3
    """
    if history:
        with options.open() as whole:
            _print_history(options, whole.history(entry))
        return
    with _open_at(options, as_of) as kb:
        shown = kb.show(entry)
    if options.as_json:
        print_json(dataclasses.asdict(shown))
        return
    say(f"{shown.path}:{shown.line}-{shown.end_line}  {shown.kind}, {shown.scope}, {shown.status}")
    click.echo("\n".join(map(clean, (shown.text or "").rstrip().split("\n"))))


def _print_history(options: Options, versions: Sequence[Version]) -> None:
    if options.as_json:
        print_json({"versions": [dataclasses.asdict(version) for version in versions]})
        return
    for version in versions:
        when = f"{version.time[:10]} {clean(version.author)}"
        click.echo(f"{style(version.commit[:12], fg='green')}  {when}  {style(one_line(version.change), bold=True)}")
        click.echo(f"    {style(f'{one_line(version.path)}: {one_line(version.subject)}', dim=True)}")
    if not versions:
        say("No commit has it yet.")


@click.command("list")
@shared_options
@filter_options
@click.option("-k", "--limit", type=click.IntRange(1), help="The most entries to list [default: all].")
@click.option(
    "--sort",
    type=click.Choice(["path", "newest", "oldest", "title"]),
    default="path",
    show_default=True,
    help="In which order.",
)
@click.pass_obj
def list_verb(options: Options, /, limit: int | None, sort: str, **chosen: Any) -> None:
    """List entries, in the order of their files or another one.

    \b
    memory-kb list --kind rule --scope global
    memory-kb list --sort newest --limit 10
    memory-kb list --status retired --json
    """
    with options.open() as kb:
        entries, total = kb.browse(order=sort, limit=limit or sys.maxsize, **chosen)
    if options.as_json:
        print_json({"entries": [_without_text(entry) for entry in entries]})
        return
    width = min(20, max((len(tell_id(entry.id)) for entry in entries), default=0))
    for entry in entries:
        print_entry_line(entry, width)
    if not entries:
        say("No entry fits.")
    elif len(entries) < total:
        say(f"{len(entries):,} of {total:,}")


def _without_text(entry: EntryView) -> dict[str, Any]:
    shown = dataclasses.asdict(entry)
    del shown["text"]
    return shown


@click.command("links")
@shared_options
@click.argument("entry", metavar="ID")
@click.pass_obj
def links_verb(options: Options, /, entry: str) -> None:
    """Show what an entry links to, and what links to it.

    \b
    memory-kb links 69712e00
    """
    with options.open() as kb:
        report = kb.links(entry)
    if options.as_json:
        print_json(_links_as_json(report))
        return
    print_entry_line(report.entry)
    for arrow, references in (("->", report.outgoing), ("<-", report.incoming)):
        for reference in references:
            other = reference.entry
            place = style(f"{clean(other.path)}:{other.line}", fg="green") if other else "(no entry)"
            name = f"{clean(other.title if other else reference.target)}  {place}"
            click.echo(f"  {arrow} {reference.relation:<14} {name}")
    if not report.outgoing and not report.incoming:
        say("No links.")


def _links_as_json(report: LinkReport) -> dict[str, Any]:
    def ends(references: Any) -> list[dict[str, Any]]:
        return [
            {
                "relation": item.relation,
                "target": item.target,
                "id": item.entry and item.entry.id,
                "path": item.entry and item.entry.path,
            }
            for item in references
        ]

    return {
        "id": report.entry.id,
        "path": report.entry.path,
        "outgoing": ends(report.outgoing),
        "incoming": ends(report.incoming),
    }


@click.command("stats")
@shared_options
@click.pass_obj
def stats_verb(options: Options) -> None:
    """Count what the vault holds.

    \b
    memory-kb stats --json
    """
    with options.open() as kb:
        stats = kb.stats()
    if options.as_json:
        print_json(dataclasses.asdict(stats))
        return
    tallies = {"kinds": stats.kinds, "types": stats.types, "status": stats.statuses, "scopes": stats.scopes}
    numbers = {
        "files": f"{stats.files:,}",
        "entries": f"{stats.entries:,}",
        "chunks": f"{stats.chunks:,}",
        "tokens": f"about {stats.tokens:,}",
    }
    print_table(
        numbers
        | {name: ", ".join(f"{word} {count:,}" for word, count in tally.items()) for name, tally in tallies.items()}
    )


@click.command("context")
@shared_options
@click.argument("task", nargs=-1)
@click.option(
    "--label", "labels", multiple=True, help="What kind of task it is; rules are chosen by it. May be given again."
)
@click.option("--type", "type_", help="One more label, such as bug.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file the task is about. May be given again.")
@click.option("--agent", help="Who gets it, for `outcome` later.")
@click.option("--job", help="The job it belongs to.")
@click.option(
    "--task", "task_id", help="What the task is called, for `outcome` later; with --job the task of that job."
)
@click.option("--session", metavar="ID", help="The session it happens in [default: $MEMORY_KB_SESSION].")
@click.pass_obj
def context_verb(options: Options, /, task: tuple[str, ...], type_: str | None, **chosen: Any) -> None:
    """Print what an agent should know before a task.

    What always holds comes first, then what fits the task: learnings, procedures, rules, patterns to avoid.
    The text is marked as background, so that it is not learned from again. With --session a CONTINUITY.md that is there is brought
    up to date.

    \b
    memory-kb context "fix the flaky upload test" --label testing
    memory-kb context "speed up the report" --file src/report.py --json
    """
    with options.open() as kb:
        context = kb.context(" ".join(task), type=type_, **chosen)
    if options.as_json:
        print_json(as_json(context))
        return
    if context.text:
        click.echo("\n".join(map(clean, context.text.splitlines())))
    else:
        say("Nothing is known that has to do with this.")
    for reason in context.degraded:
        say(f"note: {reason}")


def as_json(context: Context) -> dict[str, Any]:
    """Return a context as the object that `--json` prints."""
    rules = context.rules
    return {
        "text": context.text,
        "sections": [section._asdict() for section in context.sections],
        "relevant_patterns": [one._asdict() for one in context.relevant_patterns],
        "avoid_these": [one._asdict() for one in context.avoid_these],
        "applicable_skills": [one._asdict() for one in context.applicable_skills],
        "guidelines": {
            "rules": [
                {"id": rule.id, "text": rule.text, "confidence": rule.confidence, "score": rule.score}
                for rule in rules.rules
            ],
            "anti_patterns": [
                {"id": rule.id, "text": rule.text, "confidence": rule.confidence, "score": rule.score}
                for rule in rules.anti_patterns
            ],
            "total_score": rules.total_score,
            "token_count": rules.token_count,
        },
        "tokens": context.tokens,
        "stale": list(context.stale),
        "degraded": list(context.degraded),
    }
