"""Check edits against rules that forbid or require patterns or name a command; run allowed commands."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.globs import fits_any
from memory_kb.machine_seal import sign
from memory_kb.memory import Memory
from memory_kb.model import Filters
from memory_kb.regular_files import make_folder, open_for_reading, replace_file
from memory_kb.store.logs import Retrieval, RetrievalLog, log_shown
from memory_kb.text import load_json

if TYPE_CHECKING:
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.vault import Vault

#: The fields of a rule that guards.
KEYS = ("forbid", "require", "check")
#: The verb in the log of what was shown for an edit that breaks a rule; only the first of a session is `injected`.
REFUSAL = "refuse"
#: A longer line is generated; a pattern may take very long on it.
_LONGEST_LINE = 1_000
#: The most of a file that is looked through.
LONGEST_FILE = 1_000_000
#: How long the patterns of one rule may take for a file before a hook passes it over, in seconds of the processor:
#: on a busy machine a rule guards, too.
_PATIENCE = 0.25
#: How long those of all rules may take together before it passes the rest over.
_PATIENCE_WITH_ALL = 2.0
#: How long the command of a rule may take, in seconds.
_SECONDS = 300
_MAX_OUTPUT, _MAX_SAID = 100_000, 200


class Guard(NamedTuple):
    """The patterns of a rule, its command, the files they are about (or all), and the seconds they may take for one."""

    rule: str
    forbid: re.Pattern[str] | None
    require: re.Pattern[str] | None
    applies_to: tuple[str, ...] = ()
    check: str = ""
    seconds: float = 2.0

    def covers(self, path: str) -> bool:
        """Return whether a file is one that the rule is about."""
        return not self.applies_to or fits_any(path, self.applies_to)

    def find_broken(self, lines: Iterable[tuple[int, str]], text: Callable[[], str]) -> tuple[int, str] | None:
        """Return the first line that the rule forbids, line 1 if the file lacks what is required, or None.

        `lines` are those added to the file, with their numbers; `text` returns the file with them. May raise TooSlow.
        """
        lines, forbid = list(lines), self.forbid
        with _time_limit(self):
            if forbid:
                for number, line in lines:
                    if len(line) <= _LONGEST_LINE and forbid.search(line):
                        return number, line
        return (1, "") if lines and self.misses(text) else None

    def misses(self, text: Callable[[], str]) -> bool:
        """Return whether a file lacks what the rule requires of it; may raise TooSlow."""
        if self.require is None:
            return False
        looked_at = text()[:LONGEST_FILE]
        with _time_limit(self):
            return self.require.search(looked_at) is None


class TooSlow(UsageError):
    """A pattern of a rule takes too long."""


def is_guard(memory: Memory) -> bool:
    """Return whether a rule forbids, requires or checks something."""
    return any(map(memory.word, KEYS))


def read_guard(memory: Memory) -> Guard:
    """Return what a rule forbids, requires or checks; UsageError where that is nothing, or no regular expression."""
    if not is_guard(memory):
        raise UsageError(
            f"rule {memory.id} has neither forbid: nor require: nor check:",
            "add a regular expression or a command to its frontmatter",
        )
    forbid, require = (_compile(memory, name) for name in ("forbid", "require"))
    return Guard(memory.id, forbid, require, memory.applies_to, memory.word("check") or "")


def _compile(memory: Memory, name: str) -> re.Pattern[str] | None:
    pattern = memory.word(name)
    try:
        return re.compile(pattern, re.MULTILINE) if pattern else None
    except (re.error, OverflowError, RecursionError) as exc:
        raise UsageError(f"{memory.path}: {name} is no regular expression: {exc}") from exc


class Edit(NamedTuple):
    """An edit that is about to be made to a file of the project; `before` is "" for a new file."""

    path: str
    before: str
    after: str


class Refusals(NamedTuple):
    """In how many sessions a rule refused an edit, and in how many of these it was broken all the same."""

    sessions: int
    broken: int


def _breaks(guard: Guard, edit: Edit) -> bool:
    if not guard.covers(edit.path):
        return False
    known = set(edit.before.splitlines())
    added = ((number, line) for number, line in enumerate(edit.after.splitlines(), 1) if line not in known)
    with suppress(TooSlow):
        return guard.find_broken(added, lambda: edit.after) is not None
    return False


def find_broken_rules(guards: Iterable[tuple[Memory, Guard]], edits: Sequence[Edit]) -> Iterator[tuple[Memory, Edit]]:
    """Yield the rules that some edits break, each with the first such edit.

    Rules come with a clone: when their patterns have taken too long together, the rest is skipped.
    """
    until = time.process_time() + _PATIENCE_WITH_ALL
    for rule, guard in guards:
        for edit in edits:
            left = until - time.process_time()
            if left <= 0:
                return
            if _breaks(guard._replace(seconds=min(guard.seconds, left)), edit):
                yield rule, edit
                break


@contextmanager
def _time_limit(guard: Guard) -> Iterator[None]:
    """Raise TooSlow in the block after a guard's time, where the platform has timers and this is the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TooSlow(f"a pattern of rule {guard.rule} takes over {guard.seconds:g} s for one file", "make it simpler")

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, guard.seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def guarding_rules(index: SqliteIndex, scopes: Sequence[str]) -> list[Memory]:
    """Return the rules in force that forbid, require or check something."""
    here = Filters(kinds=("rule", "pitfall"), statuses=("active",), scopes=tuple(scopes))
    sources = dict.fromkeys(
        one.path for one in index.entries(here) if any(f'"{key}"' in (one.metadata or "") for key in KEYS)
    )
    found = (one for source in sources for one in index.memories(here, source))
    return [
        one for one in found if is_guard(one) and not (one.is_superseded or one.is_unverified or one.is_quarantined)
    ]


def read_guards(index: SqliteIndex) -> list[tuple[Memory, Guard]]:
    """Return the rules that guard a project's files against edits; one whose pattern is none is left out."""
    found = []
    for rule in guarding_rules(index, ("project", "global")):
        with suppress(UsageError):
            found.append((rule, read_guard(rule)._replace(seconds=_PATIENCE)))
    return found


def refuse_once(vault: Vault, rule: str, path: str, session: str, agent: str) -> bool:
    """Log that an agent was shown a rule for an edit that breaks it; return whether it is refused.

    Only the first of a session is, and none where that cannot be logged.
    """

    def is_logged() -> bool:
        return any(one.verb == REFUSAL and rule in one.ids for one in _shown(vault, session))

    is_first = not is_logged()
    log_shown(vault, REFUSAL, [rule], query=path, session=session, agent=agent, injected=is_first)
    return is_first and is_logged()


def count_refusals(vault: Vault, rule: str) -> Refusals:
    """Return in how many sessions of agents a rule refused an edit, and in how many it was broken all the same."""
    found = [one for one in _shown(vault) if one.verb == REFUSAL and rule in one.ids]
    sessions = ({one.session for one in found if one.injected is is_first} for is_first in (True, False))
    return Refusals(*map(len, sessions))


def _shown(vault: Vault, session: str | None = None) -> Iterator[Retrieval]:
    return RetrievalLog(vault.machine / "log").read(session)


class AllowedChecks:
    """The commands that may be run for a vault."""

    def __init__(self, vault: Vault) -> None:
        self._file = vault.machine / "checks.json"
        self._seal = vault.seal
        self._named = vault.settings.checks

    def allows(self, command: str) -> bool:
        """Return whether a command may be run."""
        return command in self._named or (bool(self._seal) and self._read().get(command) == self._sign(command))

    def allow(self, command: str) -> None:
        """Let a command be run from now on."""
        kept = {one: mark for one, mark in self._read().items() if mark == self._sign(one)}
        make_folder(self._file.parent)
        replace_file(self._file, json.dumps(kept | {command: self._sign(command)}, indent=1).encode())

    def _sign(self, command: str) -> str:
        return sign(self._seal, b"check\n" + command.encode("utf-8", "surrogatepass"))

    def _read(self) -> dict[str, Any]:
        try:
            with open_for_reading(self._file) as stream:
                found = load_json(stream.read())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def run_check(command: str, folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return why a command fails in a folder, None where it exits with 0."""
    import subprocess
    import tempfile

    from memory_kb.providers.command import run_group

    with tempfile.TemporaryFile() as out:
        how = {"cwd": folder, "env": dict(environ), "stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        try:
            code = run_group(command, _SECONDS, shell=True, **how)  # noqa: S604 - the person allowed this very line
        except OSError as exc:
            return f"it cannot be run: {exc.strerror}"
        except subprocess.TimeoutExpired:
            return f"it took over {_SECONDS:g} s"
        size = out.seek(0, os.SEEK_END)
        out.seek(max(0, size - _MAX_OUTPUT))
        lines = [line for line in out.read().decode("utf-8", "replace").splitlines() if line.strip()]
    said = " ".join(lines[-1].split())[:_MAX_SAID] if lines else ""
    return f"exit code {code}{f': {said}' if said else ''}" if code else None
