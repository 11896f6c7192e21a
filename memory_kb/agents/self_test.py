"""Prove that an installed agent reaches us: call each hook and the server as the agent would."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.agents.agent import Agent
from memory_kb.text import load_json

#: Agents wait so long for a hook, in seconds.
_PATIENCE = 10.0
_PROMPT = "Which of the notes of this project bear on a prompt that nobody typed?"
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "memory-kb", "version": "0"},
    },
}


class ProofCheck(NamedTuple):
    """One check of an installation, and its result."""

    what: str
    is_good: bool
    message: str


def call_hooks(
    agent: Agent, commands: Mapping[str, str], folder: Path, environ: Mapping[str, str]
) -> Iterator[ProofCheck]:
    """Call each hook once as the agent would, but without a session, so that nothing is logged.

    `commands` has the command line of each hook by the agent's name of it.
    """
    program = shlex.split(next(iter(commands.values()), ""), posix=os.name != "nt")[:1]
    if program and shutil.which(program[0].strip('"'), path=environ.get("PATH")) is None:
        yield ProofCheck("hooks", False, f"`{program[0]}` is not found on the PATH")
        return
    # A hook says nothing of its own failures, unless it is asked to.
    loud = {"MEMORY_KB_HOOKS": "loud", **environ}
    for hook in agent.hooks:
        said = {"cwd": str(folder), "hook_event_name": hook.name, "source": "startup", "prompt": _PROMPT}
        yield _call_hook(f"hook {hook.name}", commands[hook.name], json.dumps(said), folder, loud)


def _call_hook(what: str, command: str, said: str, folder: Path, environ: Mapping[str, str]) -> ProofCheck:
    begun = time.monotonic()
    done = _run(command, said, folder, environ, _PATIENCE)
    if isinstance(done, str):
        return ProofCheck(what, False, done)
    took = f"{time.monotonic() - begun:.1f} s"
    if done.returncode or done.stderr.strip():
        return ProofCheck(what, False, f"`{command}` fails: {_reason(done)}")
    try:
        answer = load_json(done.stdout.strip() or "{}")
    except ValueError:
        return ProofCheck(what, False, f"`{command}` prints what is no JSON")
    values = answer.get("hookSpecificOutput", answer) if isinstance(answer, dict) else {}
    context = str(values.get("additionalContext") or values.get("additional_context") or "")
    given = f" with {len(context):,} characters of context" if answer else ""
    return ProofCheck(what, True, f"answers in {took}{given}")


def _run(
    command: str | Sequence[str], said: str, folder: Path, environ: Mapping[str, str], patience: float
) -> subprocess.CompletedProcess[str] | str:
    """Run a command with some standard input; return the finished process, or a sentence about why it did not run.

    A text is run by a shell, as agents do.
    """
    how: dict[str, Any] = {"cwd": folder, "env": dict(environ), "timeout": patience, "shell": isinstance(command, str)}
    try:
        return subprocess.run(command, check=False, input=said, capture_output=True, text=True, **how)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"no answer within {patience:g} s"
    except OSError as exc:
        return f"cannot be called: {exc.strerror}"


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]


def call_server(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> ProofCheck:
    """Start the server as the agent would, and shake hands with it."""
    what = "server memory-kb"
    done = _run(command, json.dumps(_INITIALIZE) + "\n", folder, environ, 3 * _PATIENCE)
    if isinstance(done, str):
        return ProofCheck(what, False, done)
    is_good = '"serverInfo"' in done.stdout
    return ProofCheck(what, is_good, "answers" if is_good else f"`{' '.join(command)}` fails: {_reason(done)}")
