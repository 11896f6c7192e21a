"""The command bridge: a file of ours in an agent's own memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from memory_kb.cli.agents import carry_out
from memory_kb.cli.app import dry_run_option, flag, verb
from memory_kb.cli.output import Options, print_problems
from memory_kb.cli.runs import FINDINGS

if TYPE_CHECKING:
    from memory_kb.kb import KnowledgeBase


@verb("bridge")
@click.argument("agent", metavar="AGENT|doctor")
@flag("--remove", "Take our line and our file out of the agent's memory again.")
@flag("--yes", "Do not ask on a terminal; take changed texts into the vault.")
@dry_run_option()
def bridge_verb(options: Options, /, agent: str, remove: bool, yes: bool) -> int:
    """Share what always holds with an agent's own memory, or examine that.

    AGENT is claude-code or codex. Its index (MEMORY.md, memory_summary.md) gets one line, and a file of ours beside it the policies and
    rules that always hold; Codex, whose memory is one for all projects, also gets instructions to leave that file alone. A text that
    was changed in that file since goes into the vault, after a question or with --yes; one that was changed on both sides stays as
    it is in both. With --remove a file that nobody wrote to since is byte for byte what it was; `undo` is the way back for the vault.

    `bridge doctor` names lines of an index without their file, indexes longer than the agent loads, memories of working trees
    that nobody reads, and entries of two agents that contradict each other; exit code 7 if there is any.

    \b
    memory-kb bridge claude-code --dry-run
    memory-kb bridge codex
    memory-kb bridge doctor
    """
    kb = options.kb
    if agent == "doctor":
        return _examine(options, kb)
    if remove:
        return carry_out(options, lambda dry: kb.bridges.remove(agent, dry_run=dry), yes=yes)
    take = yes or (sys.stdin.isatty() and not options.as_json)
    return carry_out(options, lambda dry: kb.bridges.bridge(agent, take=take, dry_run=dry), yes=yes)


def _examine(options: Options, kb: KnowledgeBase) -> int:
    problems = kb.bridges.examine()
    if not options.answer({"problems": problems}):
        print_problems(problems)
    return FINDINGS if problems else 0
