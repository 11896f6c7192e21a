"""The commands ledger, handoff and continuity."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, allow_secret_option, shared_options
from memory_kb.cli.output import Options, clean, finish_run, one_line, print_json, say, style
from memory_kb.errors import UnreadableInput
from memory_kb.store.events import NoEvent, load_object
from memory_kb.text import shorten

if TYPE_CHECKING:
    from memory_kb.learning.handoffs import HandedOff, Handoff
    from memory_kb.learning.ledgers import Checkpointed, Ledger

_DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
_JOB = click.option("--job", help="The job it belongs to.")
_TASK = click.option("--task-id", metavar="TASK", help="The task of --job.")
_REPO = click.option(
    "--repo", "repository", metavar="DIR", help="The repository to ask about [default: the vault's own]."
)
_NO_GIT = click.option("--no-git", "git", flag_value=False, default=True, help="Do not ask git.")
_MAX_JSON = 1_000_000


@click.group("ledger", cls=Family, alone="list")
def ledger_verb() -> None:
    """The state of each agent's work: one ledger for each.

    It is overwritten at each checkpoint.

    \b
    memory-kb ledger set eng-001 --task T-42 --goal "CRUD for users" --file src/users.py
    memory-kb ledger show eng-001 --json
    """


@ledger_verb.command("set")
@shared_options
@click.argument("agent", required=False)
@click.option("--task", metavar="TEXT", help="What it works on; an empty text for nothing.")
@click.option("--goal", metavar="TEXT", help="What it is after.")
@click.option("--completed", multiple=True, metavar="TASK", help="A task that is done; each counts once.")
@click.option(
    "--tasks-completed",
    type=click.IntRange(0, 1_000_000_000),
    metavar="NUMBER",
    help="How many are done, where only that is known.",
)
@click.option(
    "--file", "--files", "files", multiple=True, metavar="PATH", help="A file it modified; may be given several times."
)
@click.option(
    "--uncommitted/--committed",
    "uncommitted",
    default=None,
    help="Whether there are changes that are not committed [default: from git].",
)
@click.option("--commit", metavar="HASH", help="The last commit [default: from git].")
@click.option("--tech", multiple=True, metavar="WORD", help="What it works with.")
@click.option("--pattern", "patterns", multiple=True, metavar="ID", help="What it learned.")
@click.option("--json-file", metavar="FILE", help="All of that as JSON; - is stdin.")
@_NO_GIT
@_REPO
@_JOB
@_TASK
@allow_secret_option
@_DRY_RUN
@click.pass_obj
def set_verb(options: Options, /, agent: str | None, json_file: str | None, dry_run: bool, **chosen: Any) -> int:
    """Record the state of AGENT's work. Options that are left out keep their value.

    \b
    memory-kb ledger set eng-001 --task T-43 --completed T-42 --file src/users.py --file tests/test_users.py
    memory-kb ledger set --json-file checkpoint.json
    """
    told: dict[str, Any] = {
        name: value or None if isinstance(value, tuple) and name != "completed" else value
        for name, value in chosen.items()
    }
    with options.open() as kb:
        done = kb.ledgers.set(agent, told=_read_object(json_file) if json_file else None, dry_run=dry_run, **told)
    place = {"id": done.ledger.id, "path": done.ledger.path, "action": done.action, "notices": list(done.notices)}
    return _finish(
        options, done, done.ledger.as_mapping | place, f"{done.action} {one_line(done.ledger.path)}", dry_run=dry_run
    )


def _finish(
    options: Options, done: Checkpointed | HandedOff, told: Mapping[str, Any], line: str, *, dry_run: bool
) -> int:
    def show() -> None:
        if not done.run.conflicts:
            click.echo(line)

    notes = [f"note: {notice}" for notice in done.notices]
    return finish_run(options, done.run, dry_run=dry_run, told=told, notes=notes, show=show)


def _read_object(file: str) -> Mapping[str, Any]:
    try:
        data = (
            (sys.stdin.buffer.read(_MAX_JSON + 1) if sys.stdin else b"")
            if file == "-"
            else _read_file(Path(file).expanduser())
        )
    except OSError as exc:
        raise UnreadableInput(f"{file} cannot be read: {exc.strerror}") from exc
    if len(data) > _MAX_JSON:
        raise UnreadableInput(f"{file} is larger than {_MAX_JSON // 1_000_000} MB")
    try:
        return load_object(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except NoEvent as exc:
        raise UnreadableInput(
            f"{file}:1: {exc}", "write one JSON object, as `memory-kb ledger show AGENT --json` prints it"
        ) from exc


def _read_file(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_MAX_JSON + 1)


@ledger_verb.command("show")
@shared_options
@click.argument("agent")
@_JOB
@_TASK
@click.pass_obj
def show_ledger_verb(options: Options, /, agent: str, **chosen: Any) -> None:
    """Print the state of AGENT's work."""
    with options.open() as kb:
        ledger = kb.ledgers.show(agent, **chosen)
    if options.as_json:
        print_json(_ledger_as_json(ledger))
        return
    state, context = ledger.as_mapping["state"], ledger.as_mapping["context"]
    rows = {
        "agent": ledger.agent_id,
        "last checkpoint": ledger.last_checkpoint,
        "current task": ledger.current_task,
        "current goal": context["current_goal"],
        "tasks completed": ledger.tasks_completed,
        "files modified": ", ".join(state["files_modified"]),
        "uncommitted changes": {True: "yes", False: "no"}.get(state["uncommitted_changes"]),
        "last commit": state["last_git_commit"],
        "tech stack": ", ".join(context["tech_stack"]),
        "patterns learned": ", ".join(context["patterns_learned"]),
        "in": f"{ledger.path}:{ledger.line}",
    }
    for name, value in rows.items():
        if value not in (None, ""):
            click.echo(f"{style(f'{name:<19}', dim=True)}  {one_line(str(value))}")


@ledger_verb.command("list")
@shared_options
@_JOB
@_TASK
@click.pass_obj
def list_ledgers_verb(options: Options, /, **chosen: Any) -> None:
    """List the ledgers of all agents."""
    with options.open() as kb:
        ledgers = kb.ledgers.list(**chosen)
    if options.as_json:
        print_json({"ledgers": [_ledger_as_json(ledger) for ledger in ledgers]})
        return
    for ledger in ledgers:
        click.echo(
            f"{one_line(ledger.agent_id)}  {ledger.last_checkpoint or ''}  {one_line(ledger.current_task or '')}".rstrip()
        )
    if not ledgers:
        say("No agent has a ledger yet.")


def _ledger_as_json(ledger: Ledger) -> dict[str, Any]:
    return ledger.as_mapping | {"id": ledger.id, "scope": ledger.scope, "path": ledger.path}


@click.group("handoff", cls=Family, alone="list")
def handoff_verb() -> None:
    """What one agent leaves for the next.

    \b
    memory-kb handoff create --from planner --to coder --done "Wrote the plan." --needs-testing "The import."
    memory-kb handoff latest --to coder
    """


@handoff_verb.command("create")
@shared_options
@click.option("--from", "from_agent", required=True, metavar="AGENT", help="Who goes.")
@click.option("--to", "to_agent", required=True, metavar="AGENT", help="Who comes.")
@click.option(
    "--done", multiple=True, metavar="TEXT", help="What was done; may be given several times, as all that follow."
)
@click.option("--artifact", "artifacts", multiple=True, metavar="PATH", help="What was made.")
@click.option("--needs-testing", multiple=True, metavar="TEXT", help="What nobody has tried yet.")
@click.option("--known-issue", "known_issues", multiple=True, metavar="TEXT", help="What is known to be wrong.")
@click.option("--pattern", "patterns", multiple=True, metavar="ID", help="An entry that matters now.")
@click.option("--git-state", metavar="TEXT", help="What to say of the repository [default: from git].")
@_NO_GIT
@_REPO
@_JOB
@_TASK
@allow_secret_option
@_DRY_RUN
@click.pass_obj
def create_verb(options: Options, /, from_agent: str, to_agent: str, dry_run: bool, **chosen: Any) -> int:
    """Leave word for the next agent.

    \b
    memory-kb handoff create --from coder --to tester --done "Added the endpoint." --artifact src/users.py --known-issue "No paging."
    """
    with options.open() as kb:
        made = kb.handoffs.create(from_agent, to_agent, dry_run=dry_run, **chosen)
    place = {"path": made.handoff.path, "action": made.action, "notices": list(made.notices)}
    line = f"{made.action} {one_line(made.handoff.path)}  {made.handoff.id}"
    return _finish(options, made, made.handoff.as_mapping | place, line, dry_run=dry_run)


@handoff_verb.command("show")
@shared_options
@click.argument("handoff", metavar="ID")
@_JOB
@_TASK
@click.pass_obj
def show_handoff_verb(options: Options, /, handoff: str, **chosen: Any) -> None:
    """Print a handoff, named by its id or its number."""
    with options.open() as kb:
        found = kb.handoffs.show(handoff, **chosen)
    _print_handoff(options, found)


@handoff_verb.command("latest")
@shared_options
@click.option("--to", metavar="AGENT", help="Only those to this agent.")
@_JOB
@_TASK
@click.pass_obj
def latest_verb(options: Options, /, **chosen: Any) -> None:
    """Print the newest handoff."""
    with options.open() as kb:
        found = kb.handoffs.latest(**chosen)
    if found:
        _print_handoff(options, found)
    elif options.as_json:
        print_json({})
    else:
        say(_no_handoff(chosen.get("to")))


def _no_handoff(to: str | None) -> str:
    return f"There is no handoff to {one_line(to)}." if to else "There is no handoff."


@handoff_verb.command("list")
@shared_options
@click.option("--to", metavar="AGENT", help="Only those to this agent.")
@_JOB
@_TASK
@click.pass_obj
def list_handoffs_verb(options: Options, /, **chosen: Any) -> None:
    """List the handoffs, newest first."""
    with options.open() as kb:
        found = kb.handoffs.list(**chosen)
    if options.as_json:
        print_json({"handoffs": [one.as_mapping | {"scope": one.scope, "path": one.path} for one in found]})
        return
    for one in found:
        who = one_line(f"{one.from_agent or '?'} to {one.to_agent or '?'}")
        click.echo(
            f"{style(one_line(one.id), fg='green')}  {(one.timestamp or '')[:16]}  {who}  {clean(shorten(' '.join(one.done), 100))}".rstrip()
        )
    if not found:
        say(_no_handoff(chosen.get("to")))


def _print_handoff(options: Options, handoff: Handoff) -> None:
    if options.as_json:
        print_json(handoff.as_mapping | {"scope": handoff.scope, "path": handoff.path})
        return
    head = f"{handoff.id}: {handoff.from_agent or '?'} to {handoff.to_agent or '?'}"
    click.echo(
        f"{style(one_line(head), bold=True)}  {style(handoff.timestamp or '', dim=True)}  {style(one_line(handoff.path), fg='green')}"
    )
    state = handoff.git_state
    if isinstance(state, Mapping):
        state = ", ".join(
            f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in state.items()
        )
    parts: dict[str, tuple[str, ...]] = {
        "done": handoff.done,
        "needs testing": handoff.needs_testing,
        "known issues": handoff.known_issues,
        "artifacts": handoff.artifacts,
        "relevant patterns": handoff.relevant_patterns,
        "git": (state,) if state else (),
    }
    for name, items in parts.items():
        if items:
            click.echo(style(name, dim=True))
        for item in items:
            click.echo(f"  - {clean(item)}")


@click.group("continuity", cls=Family, alone="show")
def continuity_verb() -> None:
    """CONTINUITY.md: what an agent is doing right now.

    Two sections of it are kept up to date, the rest is the agent's own.

    \b
    memory-kb continuity refresh --task "fix the flaky upload test"
    memory-kb continuity show
    """


@continuity_verb.command("show")
@shared_options
@_JOB
@click.pass_obj
def show_continuity_verb(options: Options, /, job: str | None) -> None:
    """Print CONTINUITY.md."""
    with options.open() as kb:
        view = kb.continuity.show(job)
    if options.as_json:
        print_json({"path": view.path, "text": view.text, "problem": view.problem})
        return
    if view.text is None:
        say(f"There is no {view.path}; `memory-kb continuity refresh --task TEXT` makes it.")
    else:
        click.echo(clean(view.text), nl=not view.text.endswith("\n"))
    if view.problem:
        say(view.problem)


@continuity_verb.command("refresh")
@shared_options
@click.option("--task", metavar="TEXT", help="What is being done [default: the file's own first words].")
@_JOB
@_DRY_RUN
@click.pass_obj
def refresh_verb(options: Options, /, task: str | None, job: str | None, dry_run: bool) -> int:
    """Write down which memories fit the work at hand, and which mistakes to avoid.

    Only what is between memory-kb's own marks is replaced; damaged marks are reported, and nothing is written.

    \b
    memory-kb continuity refresh --task "fix the flaky upload test" --job api
    """
    with options.open() as kb:
        report = kb.continuity.refresh(task, job=job, dry_run=dry_run)
    told = {
        "path": report.path,
        "relevant": list(report.relevant),
        "avoid": list(report.avoid),
        "degraded": list(report.degraded),
    }
    notes = [f"note: {note}" for note in report.degraded]
    return finish_run(
        options, report.run, dry_run=dry_run, told=told, notes=notes, nothing=f"{report.path} is up to date."
    )
