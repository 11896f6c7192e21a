"""Use a program as a language model: prompt on stdin, answer on stdout (`claude -p`, `codex exec`, `ollama run`)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memory_kb.errors import ProviderFailed
from memory_kb.injected_text import mark_as_own
from memory_kb.providers.llm import Misfilled, fill_form, with_schema
from memory_kb.providers.spending import SpendLog, TokenUsage
from memory_kb.text import count_tokens

#: The variable that switches every hook of ours off; the value is `off`.
HOOKS = "MEMORY_KB_HOOKS"
#: Variables of the session around us: the program starts one of its own, and finds no vault.
_OUTER = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
    "CODEX_THREAD_ID",
    "MEMORY_KB_VAULT",
    "MEMORY_KB_LLM_COMMAND",
)
#: Options that keep an agent from acting and from storing the conversation: the first word is what switches them on.
_QUIET: Mapping[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "claude": ("-p", (("--tools", ""), ("--strict-mcp-config",), ("--no-session-persistence",))),
    "codex": (
        "exec",
        (("--sandbox", "read-only"), ("--skip-git-repo-check",), ("--ephemeral",), ("-c", "mcp_servers={}")),
    ),
}
#: The most bytes of an answer that are read.
_MAX_ANSWER = 1_000_000
_ERROR_CHARS = 300


class CommandLlm:
    """A language model that is a program on this machine, run anew for every question.

    It runs in an empty folder and a process group of its own, without our hooks, so that its own session is
    never taken for one of the project. It inherits the variables of `environ`, but those of the session around us.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: SpendLog) -> None:
        if not command:
            raise ProviderFailed("llm.provider is command, but llm.command is not set", "such as [claude, -p]")
        self._command = tuple(command)
        self._name = " ".join(command)[:60]
        self._environ = environ
        self._log = log

    def complete(self, prompt: str, schema: Mapping[str, object], *, timeout: float) -> Mapping[str, object]:
        if self._environ.get(HOOKS) == "off":
            raise ProviderFailed("no language model is asked by one that was started as llm.command")
        deadline = time.monotonic() + timeout
        try:
            return fill_form(lambda words: self._ask(with_schema(words, schema), deadline), prompt, schema)
        except Misfilled as exc:
            raise ProviderFailed(f"`{self._name}` did not fill in the form: {exc}", is_passing=True) from None

    def _ask(self, prompt: str, deadline: float) -> str:
        """Run the program once and return what it printed."""
        program = shutil.which(self._command[0], path=self._environ.get("PATH"))
        if program is None:
            raise ProviderFailed(
                f"there is no program {self._command[0]!r}", "set llm.command to one that is installed"
            )
        self._log.check(0.0)
        answer = ""
        try:
            # Marked as ours: should the program's own conversation ever be imported, nothing of it is learned.
            answer = self._run(add_quiet_options(self._command, program), mark_as_own(prompt), deadline)
        finally:
            self._log.record("command", self._name, TokenUsage(count_tokens(prompt), count_tokens(answer)), 0.0)
        return answer

    def _run(self, words: Sequence[str], prompt: str, deadline: float) -> str:
        kept = {name: value for name, value in self._environ.items() if name not in _OUTER}
        with tempfile.TemporaryDirectory(prefix="memory-kb-llm-", ignore_cleanup_errors=True) as folder:
            # Files rather than pipes: a grandchild that keeps one open would hold us up.
            paths = [Path(folder, name) for name in ("prompt", "answer", "errors")]
            empty = Path(folder, "empty")
            empty.mkdir()
            paths[0].write_bytes(prompt.encode("utf-8", "replace"))
            with paths[0].open("rb") as question, paths[1].open("wb") as out, paths[2].open("wb") as err:
                streams: Mapping[str, Any] = {"stdin": question, "stdout": out, "stderr": err}
                seconds = max(0.1, deadline - time.monotonic())
                try:
                    code = run_group(words, seconds, cwd=empty, env=kept | {HOOKS: "off"}, **streams)
                except OSError as exc:
                    raise ProviderFailed(f"`{self._name}` cannot be run: {exc.strerror}") from exc
                except subprocess.TimeoutExpired:
                    raise ProviderFailed(f"`{self._name}` took too long and was ended", is_passing=True) from None
            answer, errors = (_read(path) for path in paths[1:])
        if code:
            said = " ".join((errors or answer).split())[-_ERROR_CHARS:]
            raise ProviderFailed(f"`{self._name}` ended with exit code {code}{f': {said}' if said else ''}")
        return answer


def add_quiet_options(command: Sequence[str], program: str) -> list[str]:
    """Return a command line with the options that take an agent's tools away; others stay as they are.

    Example:
        >>> add_quiet_options(["claude", "-p", "--tools", "Read"], "/bin/claude")
        ['/bin/claude', '-p', '--tools', 'Read', '--strict-mcp-config', '--no-session-persistence']
        >>> add_quiet_options(["ollama", "run", "qwen"], "/bin/ollama")
        ['/bin/ollama', 'run', 'qwen']
    """
    words = [program, *command[1:]]
    switch, options = _QUIET.get(Path(command[0]).stem.lower(), ("", ()))
    if switch not in words and not (switch == "-p" and "--print" in words):
        return words
    return [*words, *(word for option in options if option[0] not in words for word in option)]


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_ANSWER).decode("utf-8", "replace")


def run_group(command: str | Sequence[str], seconds: float, **how: Any) -> int:
    """Run a program in a process group of its own, and end that; return its exit code.

    Raises:
        OSError: it cannot be run.
        subprocess.TimeoutExpired: it took longer than `seconds`.
    """
    detached: Mapping[str, Any] = {"creationflags": 0x00000200} if os.name == "nt" else {"start_new_session": True}
    process = subprocess.Popen(command, **detached, **how)  # noqa: S603 - a person's configuration names it
    try:
        return process.wait(seconds)
    finally:
        if os.name == "nt":
            process.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
