"""The commands ledger, handoff, continuity, premortem and assume."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, flag, job_options, option, text_argument, together, verb
from memory_kb.cli.output import Options, echo, format_place, pick, print_listing, print_text, say, style
from memory_kb.cli.print_runs import finish_run
from memory_kb.errors import UnreadableInput
from memory_kb.learning import RECOMMENDATIONS
from memory_kb.store.session_events import NoEvent, load_object
from memory_kb.text import format_mapping, shorten

if TYPE_CHECKING:
    from memory_kb.working.handoffs import Handoff, HandoffReport
    from memory_kb.working.ledgers import Ledger, LedgerReport

_JOB = option("--job", "The job it belongs to.")
_PLACE = together(_JOB, option("--task-id", "The task of --job.", metavar="TASK"))
_WRITING = together(
    option("--no-git git", "Do not ask git.", show_default=False, flag_value=False, default=True),
    option("--repo repository", "The repository to ask about [default: the vault's own].", metavar="DIR"),
    _PLACE,
)
_UNCOMMITTED = "Whether there are changes that are not committed [default: from git]."
_NO_HANDOFF = "There is no such handoff."


@click.group("ledger", cls=Family, alone="list")
def ledger_verb() -> None:
    """Keep the state of each agent's work, in one ledger for each.

    It is overwritten at each checkpoint.

    \b
    memory-kb ledger set eng-001 --task T-42 --goal "CRUD for users" --file src/users.py
    memory-kb ledger show eng-001 --json
    """


@verb("set", ledger_verb, allow_secret=True, dry_run=True)
@click.argument("agent", required=False)
@option("--task", "What it works on; an empty text for nothing.", metavar="TEXT")
@option("--goal", "What it is after.", metavar="TEXT")
@option("--completed", "A task that is done; each counts once.", many=True, metavar="TASK")
@option("--tasks-completed", "How many are done, where only that is known.", within=(0, 10**9), metavar="NUMBER")
@option("--file --files files", "A file it modified; may be given several times.", many=True, metavar="PATH")
@option("--uncommitted/--committed uncommitted", _UNCOMMITTED, default=None)
@option("--commit", "The last commit [default: from git].", metavar="HASH")
@option("--tech", "What it works with.", many=True, metavar="WORD")
@option("--pattern patterns", "What it learned.", many=True, metavar="ID")
@option("--json-file", "All of that as JSON; - is stdin.", metavar="FILE")
@_WRITING
def set_verb(options: Options, /, agent: str | None, json_file: str | None, **chosen: Any) -> int:
    """Record the state of AGENT's work. Options that are left out keep their value.

    \b
    memory-kb ledger set eng-001 --task T-43 --completed T-42 --file src/users.py --file tests/test_users.py
    memory-kb ledger set --json-file checkpoint.json
    """
    for name in ("files", "tech", "patterns"):
        chosen[name] = chosen[name] or None
    given = _read_object(json_file) if json_file else None
    done = options.kb.ledgers.set(agent, values=given, dry_run=options.dry_run, **chosen)
    place = pick(done.ledger, "id", "path")
    return _finish_writing(options, done, done.ledger.as_mapping | place, f"{done.action} {done.ledger.path}")


def _finish_writing(options: Options, done: LedgerReport | HandoffReport, fields: Mapping[str, Any], line: str) -> int:
    notes = [f"note: {notice}" for notice in done.notices]
    return finish_run(options, done.run, {**fields, **pick(done, "action", "notices")}, notes=notes, said=line)


def _read_object(file: str) -> Mapping[str, Any]:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).expanduser().read_bytes()
    try:
        return load_object(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except NoEvent as exc:
        hint = "write one JSON object, as `memory-kb ledger show AGENT --json` prints it"
        raise UnreadableInput(f"{file}:1: {exc}", hint) from exc


@verb("show", ledger_verb)
@click.argument("agent")
@_PLACE
def show_ledger_verb(options: Options, /, agent: str, **chosen: Any) -> None:
    """Print the state of AGENT's work."""
    ledger = options.kb.ledgers.show(agent, **chosen)
    if options.printed_as_json(_ledger_as_json(ledger)):
        return
    print_text(format_mapping(ledger.as_mapping))
    echo(f"in: {format_place(ledger.path, ledger.line)}")


@verb("list", ledger_verb)
@_PLACE
def list_ledgers_verb(options: Options, /, **chosen: Any) -> None:
    """List the ledgers of all agents."""
    ledgers = options.kb.ledgers.list(**chosen)
    fields = {"ledgers": [_ledger_as_json(ledger) for ledger in ledgers]}
    rows = ((one.agent_id, one.last_checkpoint or "", one.current_task or "") for one in ledgers)
    print_listing(options, fields, rows, "No agent has a ledger yet.")


def _ledger_as_json(ledger: Ledger) -> dict[str, Any]:
    return ledger.as_mapping | pick(ledger, "id", "scope", "path")


@click.group("handoff", cls=Family, alone="list")
def handoff_verb() -> None:
    """Leave word for the agent that goes on with the work.

    \b
    memory-kb handoff create --from planner --to coder --done "Wrote the plan." --needs-testing "The import."
    memory-kb handoff latest --to coder
    """


@verb("create", handoff_verb, allow_secret=True, dry_run=True)
@option("--from from_agent", "Who stops.", required=True, metavar="AGENT")
@option("--to to_agent", "Who goes on.", required=True, metavar="AGENT")
@option("--done", "What was done; may be given several times, as all that follow.", many=True, metavar="TEXT")
@option("--artifact artifacts", "What was made.", many=True, metavar="PATH")
@option("--needs-testing", "What nobody has tried yet.", many=True, metavar="TEXT")
@option("--known-issue known_issues", "What is known to be wrong.", many=True, metavar="TEXT")
@option("--pattern patterns", "An entry that matters now.", many=True, metavar="ID")
@option("--git-state", "What to say of the repository [default: from git].", metavar="TEXT")
@_WRITING
def create_verb(options: Options, /, from_agent: str, to_agent: str, **chosen: Any) -> int:
    """Record what the next agent has to know.

    \b
    memory-kb handoff create --from coder --to tester --done "Added the endpoint." --artifact src/users.py --known-issue "No paging."
    """
    made = options.kb.handoffs.create(from_agent, to_agent, dry_run=options.dry_run, **chosen)
    line = f"{made.action} {made.handoff.path}  {made.handoff.id}"
    return _finish_writing(options, made, made.handoff.as_mapping | {"path": made.handoff.path}, line)


@verb("show", handoff_verb)
@click.argument("handoff", metavar="ID")
@_PLACE
def show_handoff_verb(options: Options, /, handoff: str, **chosen: Any) -> None:
    """Print a handoff, named by its id or its number."""
    _print_handoff(options, options.kb.handoffs.show(handoff, **chosen))


@verb("latest", handoff_verb)
@option("--to", "Only those to this agent.", metavar="AGENT")
@_PLACE
def latest_verb(options: Options, /, **chosen: Any) -> None:
    """Print the newest handoff."""
    found = options.kb.handoffs.latest(**chosen)
    if found:
        _print_handoff(options, found)
    elif not options.printed_as_json({}):
        say(_NO_HANDOFF)


@verb("list", handoff_verb)
@option("--to", "Only those to this agent.", metavar="AGENT")
@_PLACE
def list_handoffs_verb(options: Options, /, **chosen: Any) -> None:
    """List the handoffs, newest first."""
    found = options.kb.handoffs.list(**chosen)
    fields = {"handoffs": [_handoff_as_json(one) for one in found]}
    rows = []
    for one in found:
        who = f"{one.from_agent or '?'} to {one.to_agent or '?'}"
        rows.append((one.id, (one.timestamp or "")[:16], who, shorten(" ".join(one.done), 100)))
    print_listing(options, fields, rows, _NO_HANDOFF)


def _handoff_as_json(handoff: Handoff) -> dict[str, Any]:
    return handoff.as_mapping | pick(handoff, "scope", "path")


def _print_handoff(options: Options, handoff: Handoff) -> None:
    if options.printed_as_json(_handoff_as_json(handoff)):
        return
    head = style(f"{handoff.id}: {handoff.from_agent or '?'} to {handoff.to_agent or '?'}", bold=True)
    echo(f"{head}  {style(handoff.timestamp or '', dim=True)}  {style(handoff.path, fg='green')}")
    print_text(format_mapping({**handoff.as_mapping["context"], "what_was_done": handoff.done}))


@click.group("continuity", cls=Family, alone="show")
def continuity_verb() -> None:
    """Show and refresh CONTINUITY.md: what an agent is doing right now.

    Two sections of it are kept up to date, the rest is the agent's own.

    \b
    memory-kb continuity refresh --task "fix the flaky upload test"
    memory-kb continuity show
    """


@verb("show", continuity_verb)
@_JOB
def show_continuity_verb(options: Options, /, job: str | None) -> None:
    """Print CONTINUITY.md."""
    view = options.kb.continuity.show(job)
    if options.printed_as_json(pick(view, "path", "text", "problem")):
        return
    if view.text is None:
        say(f"There is no {view.path}; `memory-kb continuity refresh --task TEXT` makes it.")
    else:
        print_text(view.text)
    if view.problem:
        say(view.problem)


@verb("refresh", continuity_verb, dry_run=True)
@option("--task", "What is being done [default: the file's own first words].", metavar="TEXT")
@_JOB
def refresh_verb(options: Options, /, task: str | None, job: str | None) -> int:
    """Record which memories fit the work at hand, and which mistakes to avoid.

    Only what is between memory-kb's own marks is replaced; damaged marks are reported, and nothing is written.

    \b
    memory-kb continuity refresh --task "fix the flaky upload test" --job api
    """
    report = options.kb.continuity.refresh(task, job=job, dry_run=options.dry_run)
    fields = pick(report, "path", "relevant", "avoid", "degraded")
    notes = [f"note: {note}" for note in report.degraded]
    return finish_run(options, report.run, fields, notes=notes, nothing=f"{report.path} is up to date.")


_NOTHING_NEW = "Nothing is new; nothing was written."


@verb("premortem", allow_secret=True, dry_run=True)
@click.argument("text", nargs=-1)
@option("--title", "What the plan is called [default: its first line].")
@job_options("The job it is for.")
def premortem_verb(options: Options, /, text: tuple[str, ...], **chosen: Any) -> int:
    """Record a plan and what may go wrong, before the work begins.

    TEXT is both; a single - reads it from stdin. It is kept in .premortem.md beside the notes and rewritten when the
    plan changes. `extract` compares the session with it.

    \b
    memory-kb premortem "The import may be too slow for 10,000 files." --job api --task import
    memory-kb premortem - --title "Move to Postgres" < plan.md
    """
    run = options.kb.premortem(text_argument(text, errors="replace"), dry_run=options.dry_run, **chosen)
    return finish_run(options, run, nothing=_NOTHING_NEW)


@verb("assume", allow_secret=True, dry_run=True)
@click.argument("milestone", required=False)
@option("--complexity", "How hard the work is taken to be.", show_default=False, default="")
@option("--approach", "Whether the approach is taken to be viable.", show_default=False, default="")
@option("--preferences", "What the person is taken to want.", show_default=False, default="")
@option("--scope-note", "What is taken to belong to the work.", show_default=False, default="")
@option("--recommendation", "What to do now.", choice=RECOMMENDATIONS, default="continue")
@job_options("The job it is about.")
@flag("--list is_list", "Show what was assumed so far.")
def assume_verb(options: Options, /, milestone: str | None, is_list: bool, **chosen: Any) -> int:
    """Record what is assumed when MILESTONE is reached.

    It is kept in .assumptions.jsonl beside the notes. `extract` compares the session with it.

    \b
    memory-kb assume planned --complexity "small: two modules" --approach "one transaction per file"
    memory-kb assume built --scope-note "no migration" --recommendation notify --job api
    """
    if not is_list:
        run = options.kb.assume(milestone or "", dry_run=options.dry_run, **chosen)
        return finish_run(options, run, nothing=_NOTHING_NEW)
    found, rows = options.kb.assumptions(job=chosen["job"], task=chosen["task"]), []
    for one in found.checkpoints:
        assumed = "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in one.assumptions.items() if text)
        rows.append((one.timestamp, one.milestone, one.recommendation, assumed))
    print_listing(options, found, rows, "Nothing was assumed yet.")
    for number in found.torn if not options.as_json else ():
        say(f".assumptions.jsonl:{number}: no checkpoint; the line is skipped")
    return 0
