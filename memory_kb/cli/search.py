"""The commands search, why-not, context, show, list, links and stats."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Day, flag, job_options, limit_option, option, together, vaults_option, verb
from memory_kb.cli.output import (
    Options,
    as_plain,
    echo,
    format_place,
    pick,
    print_document,
    print_entry_line,
    print_json,
    print_listing,
    print_notes,
    print_table,
    print_text,
    say,
    style,
)
from memory_kb.cli.print_hits import search_and_print
from memory_kb.errors import UsageError
from memory_kb.model import HOST, KIND_ALIASES, KINDS, LEARNING_TYPES, SCOPE_ALIASES, SCOPES, STATUSES, TYPES
from memory_kb.reports import Reference
from memory_kb.text import short_id

if TYPE_CHECKING:
    from memory_kb.kb import KnowledgeBase

#: The word for `--kind` that searches the logs of past sessions instead of the notes.
SESSION = "session"
_KINDS = (*KINDS, *KIND_ALIASES, SESSION)
#: The filters that search and list share; those that name words may be given several times.
filter_options = together(
    option("--kind", f"Only this kind: {', '.join(KINDS)}.", choice=_KINDS, many=True, metavar="KIND"),
    option("--type", "Only entries of this type.", choice=TYPES, many=True),
    option("--learning-type", "Only institutional, task or proxy learnings.", choice=LEARNING_TYPES, many=True),
    option("--scope", "Only entries of this scope.", choice=(*SCOPES, HOST, *SCOPE_ALIASES), many=True),
    option("--tag", "Only entries with this tag.", many=True, metavar="TAG"),
    option("--status", "Only entries of this status.", choice=STATUSES, many=True),
    option("--file", "Only entries whose applies_to covers this path.", metavar="PATH"),
    job_options(
        "See this job, the project and the home.", "See this task of --job, its job, the project and the home."
    ),
    option("--since", "Only entries dated on or after this day.", type=Day()),
)

_MODE = option("--mode", "How to search.", choice=["auto", "text", "vector", "hybrid"], default="auto")


@verb("search")
@click.argument("query", nargs=-1)
@limit_option("The most hits to show.", least=1, most=1000)
@option("--max-chars", "Stop before all texts together get longer than this; 0 is no limit.", within=(0,), default=0)
@_MODE
@flag("--explain", "Show how each score came about.")
@flag("--no-sync", "Do not look for changed files first.")
@vaults_option
@option("--as-of", "Search the notes as they were at this git revision.", metavar="REV")
@option("--agent", "With --kind session: only what happened to this agent.")
@option("--outcome", "With --kind session: only sessions that ended so.", metavar="WORD")
@filter_options
def search_verb(options: Options, /, query: tuple[str, ...], no_sync: bool, as_of: str | None, **chosen: Any) -> None:
    """Find what the vault knows about QUERY, best first.

    Words may stand in any order; the more of them a passage has, the higher it scores. An "exact phrase" must occur, a
    -word must not (put -- before a query that starts with one). In a sentence, which ends with a mark such as ? or a
    full stop, both are plain words, and so are options of commands that occur in the notes, such as rm -rf.

    At most three hits of one note are shown while others match; --json lists all. --kind session searches the logs of
    past sessions instead, as `session search` does.

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
        from memory_kb.cli.sessions import print_sessions_found

        since = chosen["since"].isoformat() if chosen["since"] else None
        words = {name: chosen[name] for name in ("limit", "job", "task")}
        print_sessions_found(options, options.kb.sessions.search(text, since=since, **words, **past))
        return
    if SESSION in chosen["kind"] or any(past.values()):
        raise UsageError("--agent and --outcome go with --kind session alone", "leave out the other kinds")
    if not text.strip() and chosen["file"] is None:
        raise UsageError("there is nothing to search for", 'try: memory-kb search "flaky tests"')
    with _open_at(options, as_of) as kb:
        search_and_print(options, kb, text, sync=not no_sync or as_of is not None, **chosen)


@contextlib.contextmanager
def _open_at(options: Options, revision: str | None) -> Iterator[KnowledgeBase]:
    """Open the vault for some verbs, as it is now or as it was at a revision."""
    if revision is None:
        yield options.kb
        return
    with options.kb.at(revision) as past:
        for warning in past.vault.warnings:
            say(f"warning: at {revision}, {warning}")
        yield past


@verb("why-not")
@click.argument("query")
@click.argument("entry", metavar="ID")
@limit_option("The most hits the search would show.", least=1, most=1000)
@option("--max-chars", "The budget the search would have.", within=(0,), default=0)
@_MODE
@flag("--prompt", "QUERY is a prompt to an agent: why its hook did not give the entry.")
@option("--session", "With --prompt: the session it was typed in.", metavar="SESSION")
@vaults_option
@filter_options
def why_not_verb(options: Options, /, query: str, entry: str, prompt: bool, session: str | None, **chosen: Any) -> None:
    """Explain why a search, or a hook at a prompt, does not show an entry.

    It names the step of the search that dropped the entry, and the score that the entry would need. ID is an id, a
    unique beginning of one, or path.md:LINE.

    \b
    memory-kb why-not "flaky tests" 69712e00
    memory-kb why-not deploy memory/rules/deploy.md --kind rule
    """
    kb = options.kb
    answer = kb.why_silent(query, entry, session) if prompt else kb.why_not(query, entry, **chosen)
    if options.printed_as_json(answer):
        return
    print_notes(answer.degraded)
    echo(f"{style(answer.step, bold=True)}: {answer.reason}")
    if answer.score is not None and answer.needed is not None:
        echo(f"  its score is {answer.score:.4f}; it needed {answer.needed:.4f}")
    for line in answer.details:
        echo(style(f"  {line}", dim=True))


@verb("show")
@click.argument("entry", metavar="ID")
@option("--as-of", "As it was at this git revision.", metavar="REV")
@flag("--history", "What git knows of it: every commit that changed it, newest first.")
@vaults_option
def show_verb(options: Options, /, entry: str, as_of: str | None, history: bool, vaults: tuple[str, ...]) -> None:
    """Show an entry as it is in its file.

    ID may be cut to a unique beginning; path.md:LINE, a title and a file's name work too.

    \b
    memory-kb show 69712e00
    memory-kb show memory/MEMORY.md:40
    """
    if history:
        known = options.kb.history(entry)
        rows = ((one.commit[:12], one.time[:10], one.author, one.change, f"{one.path}: {one.subject}") for one in known)
        print_listing(options, {"versions": known}, rows, "No commit has it yet.")
        return
    with _open_at(options, as_of) as kb:
        shown = kb.show(entry, vaults=vaults)
    if not options.printed_as_json(shown):
        say(f"{shown.path}:{shown.line}-{shown.end_line}  {shown.kind}, {shown.scope}, {shown.status}")
        print_text(shown.text or "")


@verb("list")
@filter_options
@option("-k --limit", "The most entries to list [default: all].", within=(1,))
@option("--sort", "In which order.", choice=["path", "newest", "oldest", "title"], default="path")
def list_verb(options: Options, /, limit: int | None, sort: str, **chosen: Any) -> None:
    """List entries in the order of their files, or sorted otherwise.

    \b
    memory-kb list --kind rule --scope global
    memory-kb list --sort newest --limit 10
    """
    entries, total = options.kb.browse(order=sort, limit=limit or sys.maxsize, **chosen)
    if options.as_json:
        fields = as_plain({"entries": entries})
        for entry in fields["entries"]:
            del entry["text"]
        print_json(fields)
        return
    width = min(20, max((len(short_id(entry.id)) for entry in entries), default=0))
    for entry in entries:
        print_entry_line(entry, width)
    if not entries:
        say("No entry fits; `memory-kb learn TEXT` keeps one.")
    elif len(entries) < total:
        say(f"{len(entries):,} of {total:,}")


@verb("links")
@click.argument("entry", metavar="ID")
def links_verb(options: Options, /, entry: str) -> None:
    """Show what an entry links to, and what links to it.

    \b
    memory-kb links 69712e00
    """
    report = options.kb.links(entry)
    ends = {"outgoing": _ends(report.outgoing), "incoming": _ends(report.incoming)}
    if options.printed_as_json(pick(report.entry, "id", "path") | ends):
        return
    print_entry_line(report.entry)
    for arrow, references in (("->", report.outgoing), ("<-", report.incoming)):
        for reference in references:
            other = reference.entry
            name = f"{other.title}  {format_place(other.path, other.line)}" if other else reference.target
            echo(f"  {arrow} {reference.relation:<14} {name}")
    if not report.outgoing and not report.incoming:
        say("No links.")


def _ends(references: Sequence[Reference]) -> list[dict[str, Any]]:
    return [
        pick(one, "relation", "target") | {name: one.entry and getattr(one.entry, name) for name in ("id", "path")}
        for one in references
    ]


@verb("stats")
def stats_verb(options: Options) -> None:
    """Count what the vault holds.

    \b
    memory-kb stats --json
    """
    stats = options.kb.stats()
    if options.printed_as_json(stats):
        return
    rows = {name: f"{getattr(stats, name):,}" for name in ("files", "entries", "chunks")}
    rows["tokens"] = f"about {stats.tokens:,}"
    tallies = {"kinds": stats.kinds, "types": stats.types, "status": stats.statuses, "scopes": stats.scopes}
    for name, tally in tallies.items():
        rows[name] = ", ".join(f"{word} {count:,}" for word, count in tally.items())
    print_table(rows)


@verb("context")
@click.argument("task", nargs=-1)
@option("--label labels", "What kind of task it is; rules are chosen by it. May be given again.", many=True)
@option("--type type_", "One more label, such as bug.")
@option("--file files", "A file the task is about. May be given again.", many=True, metavar="PATH")
@option("--agent", "Who gets it, for `outcome` later.")
@option("--job", "The job it belongs to.")
@option("--task task_id", "What the task is called, for `outcome` later; with --job the task of that job.")
@option("--session", "The session it happens in [default: $MEMORY_KB_SESSION].", metavar="ID")
def context_verb(options: Options, /, task: tuple[str, ...], type_: str | None, **chosen: Any) -> None:
    """Print what an agent should know before a task.

    What always holds comes first, then what fits the task: learnings, procedures, rules, patterns to avoid. The text is
    marked as background, so that nothing is learned from it again. With --session, an existing CONTINUITY.md is brought
    up to date.

    \b
    memory-kb context "fix the flaky upload test" --label testing
    memory-kb context "speed up the report" --file src/report.py --json
    """
    context = options.kb.context(" ".join(task), type=type_, **chosen)
    guidelines: dict[str, Any] = {
        name: [pick(rule, "id", "text", "confidence", "score") for rule in getattr(context.rules, name)]
        for name in ("rules", "anti_patterns")
    } | pick(context.rules, "total_score", "token_count")
    parts = ("text", "sections", "relevant_patterns", "avoid_these", "applicable_skills", "tokens", "stale", "degraded")
    fields = pick(context, *parts) | {"guidelines": guidelines}
    print_document(options, fields, context.text, "Nothing is known that has to do with this.", context.degraded)
