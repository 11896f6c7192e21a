"""The command hook, which agents call: on any error it prints nothing and exits with 0.

Agents wait for it, so that it parses its few words itself: loading click takes as long as the work.
"""

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from memory_kb.cli import split_plain
from memory_kb.errors import VaultBusy, VaultNotFound

if TYPE_CHECKING:
    from memory_kb.vault import Vault

_LOG = "hooks.log"
#: The log begins anew when it gets longer, in bytes.
_MAX_LOG = 256_000
_MAX_LINE = 2_000
#: The variable that switches hooks off, as for the agent that `llm.command` starts.
_SWITCH = "MEMORY_KB_HOOKS"
#: The value of it with which an error is printed, so that `install` can report it.
LOUD = "loud"
#: What the process is called with that ends sessions, or brings the index up to date where it is given none.
_FINISH = "finish"


class HookArguments(NamedTuple):
    """What the command was called with."""

    event: str
    sessions: tuple[str, ...] = ()
    agent: str = "claude-code"
    vault: str | None = None
    home: str | None = None


def read_hook_arguments(arguments: Sequence[str]) -> HookArguments:
    """Return the words of a command line, `hook` taken off; what is missing is empty."""
    words, named = split_plain(arguments, {"--agent": "agent", "--vault": "vault", "--home": "home"})
    return HookArguments("".join(words[:1]), tuple(words[1:]), **named)


def answer_hook(words: HookArguments) -> None:
    """Answer an agent, on stdin and stdout; with `MEMORY_KB_HOOKS=off` nothing is read, written or printed."""
    if os.environ.get(_SWITCH) == "off":
        return
    machine: Path | None = None
    try:
        if words.event == _FINISH:
            _finish(words)
            return
        from memory_kb.agents.agent import find_caller
        from memory_kb.agents.payloads import MAX_INPUT, read_hook_call

        agent = find_caller(words.agent, os.environ)
        data = b"" if sys.stdin.isatty() else sys.stdin.buffer.read(MAX_INPUT + 1)
        call = read_hook_call(agent, words.event, data)
        found = _find_vault(words, call.folders)
        if found is None:
            _say_aloud("there is no vault here")
            return
        from memory_kb.kb import KnowledgeBase

        with KnowledgeBase.open(found.folder, words.home) as kb:
            machine = kb.vault.machine
            done = kb.hook(words.event, call, agent)
        if done.output:
            sys.stdout.write(done.output)
            sys.stdout.flush()
        if done.sessions_to_end or done.needs_background_update:
            finish_in_background(found.folder, words.home, machine, done.sessions_to_end)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as exc:  # noqa: BLE001 - an agent must never be stopped by its memory
        failure = f"{type(exc).__name__}: {exc}"
        with contextlib.suppress(Exception):  # there may be no vault to log it in
            _log(machine or _find_machine(words), f"{words.event[:40]} ({words.agent[:40]}): {failure}")
        _say_aloud(failure)


def _say_aloud(message: str) -> None:
    if os.environ.get(_SWITCH) == LOUD:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()


def _find_vault(words: HookArguments, folders: Sequence[str]) -> "Vault | None":
    """Return the vault that was named, or the one around where the agent works; None where there is none."""
    from memory_kb.vault import find_vault

    project = os.environ.get("CLAUDE_PROJECT_DIR") or os.environ.get("GEMINI_PROJECT_DIR")
    for place in (*folders, *((project,) if project else ()), os.getcwd()):
        if os.path.isdir(place):
            try:
                return find_vault(words.vault, words.home, environ=os.environ, cwd=Path(place).absolute())
            except VaultNotFound:
                if words.vault is not None:
                    raise
    return None


def _find_machine(words: HookArguments) -> Path | None:
    from memory_kb.store.machine_folder import choose_machine

    found = _find_vault(words, ())
    return choose_machine(found, None, os.environ).folder if found else None


def finish_in_background(vault: Path, home: str | None, machine: Path, sessions: Sequence[str] = ()) -> None:
    """Bring the index up to date and end sessions, in a process of its own that nobody need wait for."""
    import subprocess

    command = [sys.executable, "-P", "-m", "memory_kb", "hook", _FINISH]  # -P: no package of the folder it runs in
    command += [*sessions, "--vault", str(vault), *(("--home", home) if home else ())]
    detached: Mapping[str, Any] = {"creationflags": 0x00000208} if os.name == "nt" else {"start_new_session": True}
    with _open_log(machine) as log:
        subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=vault, close_fds=True, **detached
        )


def _finish(words: HookArguments) -> None:
    from memory_kb.kb import KnowledgeBase
    from memory_kb.vault import lower_priority

    lower_priority()
    with KnowledgeBase.open(words.vault, words.home) as kb:
        with contextlib.suppress(VaultBusy):
            kb.index.sync(wait=0)
        for session in words.sessions:
            try:
                kb.hook_finish([session])
            except Exception as exc:  # noqa: BLE001 - the others are ended all the same
                _log(kb.vault.machine, f"ending {session[:128]}: {type(exc).__name__}: {exc}")


def _log(machine: Path | None, message: str) -> None:
    """Add a line to the log, if it can be."""
    if machine is None:
        return
    from datetime import UTC, datetime

    from memory_kb.text import moment_text

    line = " ".join(message.split())[:_MAX_LINE].encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError), _open_log(machine) as log:
        log.write(f"{moment_text(datetime.now(UTC))} ".encode() + line + b"\n")


def _open_log(machine: Path) -> IO[bytes]:
    """Open the log, which begins anew when it is too long."""
    from memory_kb.regular_files import make_folder, open_for_appending, replace_file

    file = make_folder(machine / "log") / _LOG
    with contextlib.suppress(OSError):
        if file.stat().st_size > _MAX_LOG:
            replace_file(file, b"", 0o644)
    return open_for_appending(file)
