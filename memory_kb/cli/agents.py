"""The commands install, uninstall, export, import, hook, mcp, serve and completion."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, cli, shared_options, vaults_option
from memory_kb.cli.output import (
    CONFLICT,
    FINDINGS,
    FileProgress,
    Options,
    clean,
    end_run,
    finish_run,
    one_line,
    print_json,
    print_preview,
    run_as_json,
    say,
)
from memory_kb.errors import UsageError

if TYPE_CHECKING:
    from memory_kb.agents.proof import Check
    from memory_kb.importers.service import ImportReport
    from memory_kb.kb import KnowledgeBase
    from memory_kb.reports import RunReport


_USER = click.option("--user", "scope", flag_value="user", help="For everything you do, not for one project.")
_PROJECT = click.option(
    "--project", "scope", flag_value="project", default="project", help="For one project [default]."
)
_FOLDER = click.option("--folder", metavar="DIR", help="The project [default: the vault's folder].")
_YES = click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")


@click.command("install")
@shared_options
@click.argument("agent", required=False)
@_PROJECT
@_USER
@_FOLDER
@click.option("--pin-vault", "pin", is_flag=True, help="Name this vault in the files, so that every project uses it.")
@_YES
@_DRY_RUN
@click.pass_obj
def install_verb(
    options: Options, /, agent: str | None, scope: str, folder: str | None, pin: bool, yes: bool, dry_run: bool
) -> int:
    """Set up an agent such as claude-code or codex.

    AGENT is claude-code, codex, cursor, gemini-cli, opencode or vscode.

    That is its MCP server, hooks that give context and log the session, and a few marked lines in CLAUDE.md or AGENTS.md. All
    else in those files stays as it is. `uninstall` takes away exactly what this put there. Then each hook and the server are called
    once, as the agent would. Without AGENT it lists the agents that are on this machine.

    \b
    memory-kb install
    memory-kb install claude-code --dry-run
    memory-kb install codex --user
    """
    with options.open() as kb:
        name = agent or _choose_agent(options, kb)
        if not name:
            return 0
        where: dict[str, Any] = {"scope": scope, "folder": folder, "pin": pin}
        if not dry_run:
            with FileProgress() as progress:
                kb.sync(embed=False, progress=progress)
        code = carry_out(options, lambda dry: kb.install(name, dry_run=dry, **where), yes=yes, dry_run=dry_run)
        if code or dry_run or options.as_json:
            return code
        return 0 if print_checks(kb.prove_agent(name, **where)) else FINDINGS


def _choose_agent(options: Options, kb: KnowledgeBase) -> str | None:
    """List the agents on this machine; on a terminal ask for one of them."""
    found = kb.found_agents()
    if options.as_json:
        print_json([{"name": one.name, "title": one.title, "tried": one.tried} for one in found])
        return None
    for one in found:
        click.echo(f"{one.name:12} {one.title}{f', tried with {one.tried}' if one.tried else ''}")
    if not found:
        say("No agent that memory-kb knows is on this machine; any MCP client can run `memory-kb mcp`.")
    if not found or not sys.stdin.isatty():
        return None
    return str(click.prompt("Install into", type=click.Choice([one.name for one in found]), err=True))


def print_checks(checks: Iterable[Check]) -> bool:
    """Print each check as it is done; return whether all are good."""
    is_good = True
    for check in checks:
        is_good = is_good and check.is_good
        say(f"{'ok' if check.is_good else 'FAILED'}: {one_line(check.what)}: {one_line(check.message)}")
    return is_good


@click.command("uninstall")
@shared_options
@click.argument("agent")
@_PROJECT
@_USER
@_FOLDER
@_YES
@_DRY_RUN
@click.pass_obj
def uninstall_verb(options: Options, /, agent: str, scope: str, folder: str | None, yes: bool, dry_run: bool) -> int:
    """Remove memory-kb from an agent.

    A file that nobody wrote to since is byte for byte what it was before; from another only our own parts go.

    \b
    memory-kb uninstall claude-code
    """
    with options.open() as kb:
        return carry_out(
            options, lambda dry: kb.uninstall(agent, scope=scope, folder=folder, dry_run=dry), yes=yes, dry_run=dry_run
        )


def carry_out(options: Options, work: Callable[[bool], RunReport], *, yes: bool, dry_run: bool) -> int:
    """Do it, or show what it would do; on a terminal show it first and ask."""
    if not (dry_run or yes or options.as_json) and sys.stdin.isatty():
        preview = work(True)
        print_preview(preview)
        if preview.changes and not click.confirm("Write this?", default=True, err=True):
            return 0
    return finish_run(options, work(dry_run), dry_run=dry_run, nothing="Nothing to do.")


@click.group("export", cls=Family)
def export_verb() -> None:
    """Give what is known to other programs.

    \b
    memory-kb export agents-md
    memory-kb export agents-md --file AGENTS.md
    """


@export_verb.command("agents-md")
@shared_options
@click.option("--file", metavar="FILE", help="Put the lines into this file, between marks [default: print them].")
@_DRY_RUN
@click.pass_obj
def agents_md_verb(options: Options, /, file: str | None, dry_run: bool) -> int:
    """Write policies and the best rules as lines for AGENTS.md, for agents that know no memory-kb.

    \b
    memory-kb export agents-md --file AGENTS.md
    """
    with options.open() as kb:
        done = kb.export_agents_md(file, dry_run=dry_run)
    if file is not None:
        return finish_run(
            options, done.run, dry_run=dry_run, told={"text": done.text}, nothing=f"{one_line(file)} says so already."
        )
    if options.as_json:
        print_json({"text": done.text})
    elif done.text:
        click.echo("\n".join(map(clean, done.text.split("\n"))))
    else:
        say("There are no policies or rules yet.")
    return 0


#: As `learning/imports/pieces.py` has them, which is not loaded for the help.
_FORMATS = ("auto", "basic-memory", "obsidian", "daily-logs", "claude-export", "chatgpt-export", "mem0", "agents-md")
_SHOWN = 20


@click.command("import")
@shared_options
@click.argument("source", type=click.Path())
@click.option("--format", type=click.Choice(_FORMATS), default="auto", show_default=True, help="What SOURCE is.")
@click.option(
    "--as",
    "wanted",
    type=click.Choice(["entries", "sessions"]),
    default="entries",
    show_default=True,
    help="What an export becomes.",
)
@click.option(
    "--scope",
    type=click.Choice(["global", "project"]),
    default="project",
    show_default=True,
    help="Where the entries go.",
)
@click.option("--job", help="Keep them with this job.")
@click.option("--task", help="Keep them with this task of --job.")
@click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")
@click.pass_obj
def import_verb(options: Options, /, source: str, wanted: str, dry_run: bool, **chosen: Any) -> int:
    """Bring in notes, memories or conversations of another tool.

    SOURCE is a folder of basic-memory or Obsidian notes, MEMORY.md with its daily logs, an AGENTS.md or CLAUDE.md, a JSON file of
    mem0, or the ZIP archive or conversations.json that Claude or ChatGPT exports. Of conversations only what a person states as a
    preference, a correction or a constraint is kept; with --as sessions they become session logs instead.

    SOURCE stays as it is. Importing it again brings in what is new.

    \b
    memory-kb import AGENTS.md --dry-run
    memory-kb import ~/basic-memory
    memory-kb import ~/Downloads/data-export.zip --as sessions
    """
    with options.open() as kb:
        report = kb.import_(source, as_sessions=wanted == "sessions", dry_run=dry_run, **chosen)
    if options.as_json:
        print_json(_as_json(report) | run_as_json(report.run, dry_run=dry_run))
        return CONFLICT if report.run.conflicts else 0
    if dry_run and wanted == "entries":
        print_preview(report.run)
    _print_report(report, dry_run=dry_run)
    return end_run(report.run)


def _as_json(report: ImportReport) -> dict[str, Any]:
    return {
        "format": report.format,
        "source": report.source,
        "pieces": [dataclasses.asdict(one) for one in report.pieces],
        "left_out": [one._asdict() for one in report.left_out],
        "sessions": report.sessions,
        "events": report.events,
    }


def _print_report(report: ImportReport, *, dry_run: bool) -> None:
    tell = say if dry_run else click.echo
    if report.sessions or report.events:
        tell(f"{_count(report.sessions, 'session')}, {_count(report.events, 'event')}")
    for what in dict.fromkeys(one.what for one in report.pieces):
        counts = {action: count for (name, action), count in report.count().items() if name == what}
        tell(
            f"{_count(sum(counts.values()), what)}: {', '.join(f'{count:,} {word}' for word, count in counts.items())}"
        )
    for one in [one for one in report.pieces if one.message][:_SHOWN]:
        say(f"{one_line(one.origin)}:{one.line}: {one.action}: {one_line(one.message)}")
    for left in sorted(report.left_out, key=lambda one: -one.number)[:_SHOWN]:
        where = f", the first at {one_line(left.first)}" if left.number > 1 else f", at {one_line(left.first)}"
        say(f"left out: {_count(left.number, left.what)}: {one_line(left.why)}{where}")
    if len(report.left_out) > _SHOWN:
        say(f"and {len(report.left_out) - _SHOWN:,} more reasons; --json lists them")
    if not report.pieces and not report.events:
        tell(f"Nothing to import in {one_line(report.source)}, read as {report.format}.")
    if report.run.run:
        say(f"`memory-kb undo {report.run.run}` takes this back.")


def _count(number: int, what: str) -> str:
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else many}"


@click.command("hook", context_settings={"ignore_unknown_options": True})
@shared_options
@click.argument("event")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.option("--agent", default="claude-code", show_default=True, help="Whose hook it is.")
@click.pass_obj
def hook_verb(options: Options, /, event: str, rest: tuple[str, ...], agent: str) -> None:
    """Answer a hook of an agent.

    EVENT is session-start, prompt, tool, stop, ask or session-end.

    `install` makes agents call this, with what they say as JSON on stdin. It logs the session, prints what the agent should know, or is
    asked to remember, as the JSON that the agent expects, and never fails: errors are lines in log/hooks.log of the vault's machine folder.

    \b
    echo '{"session_id": "s1", "prompt": "fix the upload test"}' | memory-kb hook prompt --agent codex
    """
    from memory_kb.cli.hook import answer

    named = {"--agent": agent, "--vault": options.vault, "--home": options.home}
    answer([event, *rest, *(word for name, value in named.items() if value is not None for word in (name, value))])


_DEFAULT_PLACE = "127.0.0.1:8765"


@click.command("mcp")
@shared_options
@click.option(
    "--http",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value=_DEFAULT_PLACE,
    help=f"Serve over HTTP [default: {_DEFAULT_PLACE}].",
)
@click.option(
    "--token", envvar="MEMORY_KB_MCP_TOKEN", help="What clients over HTTP must show [default: $MEMORY_KB_MCP_TOKEN]."
)
@click.option(
    "--profile",
    type=click.Choice(["default", "full"]),
    default="default",
    show_default=True,
    help="Offer six tools, or all.",
)
@click.option("--no-watch", is_flag=True, help="Do not keep the index up to date between calls.")
@vaults_option
@click.pass_obj
def mcp_verb(
    options: Options, /, http: str | None, token: str | None, profile: str, no_watch: bool, vaults: tuple[str, ...]
) -> int:
    """Serve the vault to agents over MCP.

    That is on standard input and output, or over HTTP.

    Over HTTP it listens to this machine alone; to listen elsewhere takes a token.

    \b
    memory-kb mcp
    memory-kb --vault ~/notes mcp --http 127.0.0.1:9000 --profile full
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("the MCP server needs the SDK, which is not installed", 'run: pip install "memory-kb[mcp]"')
    from memory_kb.mcp.transports import ServedTools

    offer = ServedTools(options.vault, options.home, profile, not no_watch, vaults)
    if http is None:
        from memory_kb.mcp.transports import serve_stdio

        return serve_stdio(offer)
    from memory_kb.mcp.transports import serve_http
    from memory_kb.serving.host_check import read_place

    return serve_http(offer, read_place(http), token or None)


_NEEDED = ("starlette", "uvicorn", "jinja2", "markdown_it")


@click.command("serve")
@shared_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8766, show_default=True, help="The port; 0 is any that is free."
)
@click.option(
    "--token", envvar="MEMORY_KB_SERVE_TOKEN", help="What the page asks for once [default: $MEMORY_KB_SERVE_TOKEN]."
)
@click.option("--open", "is_opening", is_flag=True, help="Open it in the browser.")
@click.option(
    "--no-watch", is_flag=True, help="Do not keep the index up to date; look at the files before each answer."
)
@vaults_option
@click.pass_obj
def serve_verb(options: Options, /, **chosen: Any) -> int:
    """Open a page in the browser to search, read and edit.

    Only this machine can reach it; to listen elsewhere takes a token.

    \b
    memory-kb serve --open
    memory-kb --vault ~/notes serve --port 0
    MEMORY_KB_SERVE_TOKEN=$(openssl rand -hex 16) memory-kb serve --host 0.0.0.0
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the page needs {', '.join(missing)}, and not all of that is installed",
            'run: pip install "memory-kb[web]"',
        )
    from memory_kb.serving.host_check import Listen
    from memory_kb.web.app import ServedPages, serve

    return serve(
        ServedPages(
            options.vault,
            options.home,
            Listen(chosen["host"].strip("[]"), chosen["port"]),
            chosen["token"] or None,
            chosen["is_opening"],
            not chosen["no_watch"],
            chosen["vaults"],
        )
    )


@click.command("completion")
@shared_options
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_verb(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    memory-kb completion bash >> ~/.bashrc
    memory-kb completion zsh  >> ~/.zshrc
    memory-kb completion fish > ~/.config/fish/completions/memory-kb.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "memory-kb", "_MEMORY_KB_COMPLETE").source())
