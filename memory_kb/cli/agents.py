"""The commands install, uninstall, bridge, export, hook and completion."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from memory_kb.cli.app import Family, cli, flag, option, verb
from memory_kb.cli.output import (
    FINDINGS,
    Options,
    ProgressLine,
    pick,
    print_document,
    print_findings,
    print_listing,
    say,
    write,
)
from memory_kb.cli.print_runs import finish_run, print_preview

if TYPE_CHECKING:
    from memory_kb.agents.self_test import ProofCheck
    from memory_kb.reports import RunReport


_USER = option("--user scope", "For everything you do, not for one project.", flag_value="user")
_PROJECT = option(
    "--project scope", "For one project [default].", flag_value="project", default="project", show_default=False
)
_FOLDER = option("--folder", "The project [default: the vault's folder].", metavar="DIR")
_YES = flag("--yes", "Do not ask on a terminal.")


@verb("install", dry_run=True)
@click.argument("agent", required=False)
@_PROJECT
@_USER
@_FOLDER
@flag("--pin-vault pin", "Name this vault in the files, so that every project uses it.")
@_YES
def install_verb(options: Options, /, agent: str | None, yes: bool, **where: Any) -> int:
    """Set up an agent such as claude-code or codex.

    AGENT is claude-code, codex, cursor, gemini-cli, opencode or vscode; without it the agents on this machine are
    listed.

    It gets the MCP server, hooks that give context and log the session, and a few marked lines in CLAUDE.md or
    AGENTS.md. All else in those files stays as it is, and `uninstall` removes exactly what was added. Afterwards each
    hook and the server are called once, as the agent would call them.

    \b
    memory-kb install claude-code --dry-run
    memory-kb install codex --user
    """
    kb = options.kb
    agent = agent or _choose_agent(options)
    if not agent:
        return 0
    if not options.dry_run:
        with ProgressLine() as progress:
            kb.sync(embed=False, progress=progress)
    code = _confirm_and_run(options, lambda dry: kb.install(agent, dry_run=dry, **where), yes=yes)
    if code or options.dry_run or options.as_json:
        return code
    return print_checks(kb.prove_agent(agent, **where))


def _choose_agent(options: Options) -> str | None:
    """List the agents on this machine; on a terminal ask for one of them."""
    found = options.kb.found_agents()
    rows = ((one.name, one.title, f"tried with {one.tried}" if one.tried else "") for one in found)
    empty = "No agent that memory-kb knows is on this machine; any MCP client can run `memory-kb mcp`."
    print_listing(options, [pick(one, "name", "title", "tried") for one in found], rows, empty)
    if not found or options.as_json or not sys.stdin.isatty():
        return None
    return str(click.prompt("Install into", type=click.Choice([one.name for one in found]), err=True))


def print_checks(checks: Iterable[ProofCheck]) -> int:
    """Print each check as it is done; return the exit code."""
    code = 0
    for check in checks:
        code = code if check.is_good else FINDINGS
        say(f"{'ok' if check.is_good else 'FAILED'}: {check.what}: {check.message}")
    return code


@verb("uninstall", dry_run=True)
@click.argument("agent")
@_PROJECT
@_USER
@_FOLDER
@_YES
def uninstall_verb(options: Options, /, agent: str, yes: bool, **where: Any) -> int:
    """Remove memory-kb from an agent.

    A file that nobody wrote to since is byte for byte what it was before; from another only our own parts go.

    \b
    memory-kb uninstall claude-code
    """
    return _confirm_and_run(options, lambda dry: options.kb.uninstall(agent, dry_run=dry, **where), yes=yes)


def _confirm_and_run(options: Options, work: Callable[[bool], RunReport], *, yes: bool) -> int:
    """Run a change, or preview it with `--dry-run`; on a terminal, first show it and ask for confirmation."""
    if not (options.dry_run or yes or options.as_json) and sys.stdin.isatty():
        preview = work(True)
        print_preview(preview)
        if preview.changes and not click.confirm("Write this?", default=True, err=True):
            return 0
    return finish_run(options, work(options.dry_run), nothing="Nothing to do.")


@verb("bridge", dry_run=True)
@click.argument("agent", metavar="AGENT|doctor")
@flag("--remove", "Take our line and our file out of the agent's memory again.")
@flag("--yes", "Do not ask on a terminal; take changed texts into the vault.")
def bridge_verb(options: Options, /, agent: str, remove: bool, yes: bool) -> int:
    """Share policies and rules with an agent's own memory, or check it.

    AGENT is claude-code or codex. Its index (MEMORY.md, memory_summary.md) gets one line that points to a file of ours
    beside it, with the policies and rules that always hold. Codex has one memory for all projects; it also gets
    instructions to leave that file alone.

    If a text was changed in that file, the vault takes the change over, after a question or with --yes; if it was
    changed on both sides, both stay as they are. --remove takes all of it out again: a file that nobody else wrote to
    is byte for byte what it was. `undo` reverts what changed in the vault.

    `bridge doctor` names lines of an index without their file, indexes longer than the agent loads, memories of working
    trees that nobody reads, and entries of two agents that contradict each other; exit code 7 if there is any.

    \b
    memory-kb bridge claude-code --dry-run
    memory-kb bridge codex
    memory-kb bridge doctor
    """
    kb = options.kb
    if agent == "doctor":
        return print_findings(options, kb.bridges.examine())
    if remove:
        return _confirm_and_run(options, lambda dry: kb.bridges.remove(agent, dry_run=dry), yes=yes)
    take = yes or (sys.stdin.isatty() and not options.as_json)
    return _confirm_and_run(options, lambda dry: kb.bridges.bridge(agent, take=take, dry_run=dry), yes=yes)


_NO_RULES = "There are no policies or rules yet."


@click.group("export", cls=Family)
def export_verb() -> None:
    """Export rules and policies for other programs.

    \b
    memory-kb export agents-md
    """


@verb("agents-md", export_verb, dry_run=True)
@option("--file", "Put the lines into this file, between marks [default: print them].", metavar="FILE")
def agents_md_verb(options: Options, /, file: str | None) -> int:
    """Write policies and the best rules as lines for AGENTS.md, for agents that know no memory-kb.

    \b
    memory-kb export agents-md --file AGENTS.md
    """
    done = options.kb.export_agents_md(file, dry_run=options.dry_run)
    if file is not None:
        nothing = f"{file} says so already." if done.text else _NO_RULES
        return finish_run(options, done.run, {"text": done.text}, nothing=nothing)
    print_document(options, {"text": done.text}, done.text, _NO_RULES)
    return 0


@verb("hook", context_settings={"ignore_unknown_options": True})
@click.argument("event")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="")
@option("--agent", "Whose hook it is.", default="claude-code")
def hook_verb(options: Options, /, event: str, rest: tuple[str, ...], agent: str) -> None:
    """Answer a hook of an agent.

    EVENT is session-start, prompt, tool, stop, ask or session-end. `install` makes agents call this, with what they say
    as JSON on stdin. It logs the session, prints what the agent should know, or is asked to remember, as the JSON that
    the agent expects, and never fails: errors are lines in log/hooks.log of the vault's machine folder.

    \b
    echo '{"session_id": "s1", "prompt": "fix the upload test"}' | memory-kb hook prompt --agent codex
    """
    from memory_kb.cli.hook import HookArguments, answer_hook

    answer_hook(HookArguments(event, rest, agent, options.vault, options.home))


@verb("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_verb(_: Options, /, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    memory-kb completion bash >> ~/.bashrc
    memory-kb completion zsh  >> ~/.zshrc
    memory-kb completion fish > ~/.config/fish/completions/memory-kb.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    write(f"{found(cli, {}, 'memory-kb', '_MEMORY_KB_COMPLETE').source()}\n")
