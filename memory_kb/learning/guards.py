"""What a rule forbids or requires of the project's files, as patterns in its frontmatter."""

from __future__ import annotations

import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.globs import fits_any
from memory_kb.model import Filters
from memory_kb.plainfiles import make_folder
from memory_kb.store.logs import append, format_time, mark_of, read
from memory_kb.store.plan import Memory, make_memory

if TYPE_CHECKING:
    from memory_kb.index.sqlite import SqliteIndex

#: A longer line is generated; a pattern may take very long on it.
_LONGEST_LINE = 1_000
#: The most of a file that is looked through.
LONGEST_FILE = 1_000_000
#: How long the patterns of one rule may take before a hook passes it over, in seconds.
_PATIENCE = 0.25


class Guard(NamedTuple):
    """The patterns of a rule, and the files that they are about; every file where it names none."""

    rule: str
    forbid: re.Pattern[str] | None
    require: re.Pattern[str] | None
    applies_to: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        """Return whether a file is one that the rule is about."""
        return not self.applies_to or fits_any(path, self.applies_to)

    def forbids(self, line: str) -> bool:
        """Return whether a line is one that the rule forbids.

        Example:
            >>> guard = Guard("r", re.compile(r"\\bprint\\("), None)
            >>> guard.forbids("    print(x)"), guard.forbids("blueprint(x)")
            (True, False)
        """
        return self.forbid is not None and len(line) <= _LONGEST_LINE and self.forbid.search(line) is not None

    def misses(self, text: str) -> bool:
        """Return whether a file lacks what the rule requires of it."""
        return self.require is not None and self.require.search(text[:LONGEST_FILE]) is None


def read_guard(memory: Memory) -> Guard:
    """Return what a rule forbids or requires.

    Raises:
        UsageError: it has neither `forbid` nor `require`, or a pattern is no regular expression.
    """
    patterns = {name: memory.word(name) for name in ("forbid", "require")}
    if not any(patterns.values()):
        raise UsageError(
            f"rule {memory.id} has neither forbid: nor require:", "add a regular expression to its frontmatter"
        )
    compiled: dict[str, re.Pattern[str] | None] = {}
    for name, pattern in patterns.items():
        try:
            compiled[name] = re.compile(pattern, re.MULTILINE) if pattern else None
        except re.error as exc:
            raise UsageError(f"{memory.path}: {name} is no regular expression: {exc}") from exc
    return Guard(memory.id, compiled["forbid"], compiled["require"], memory.applies_to)


class Edit(NamedTuple):
    """An edit that is about to be made to a file of the project; `before` is "" for a new file."""

    path: str
    before: str
    after: str


class Refusals(NamedTuple):
    """In how many sessions a rule refused an edit, and in how many of these it was broken all the same."""

    sessions: int = 0
    broken: int = 0


def breaks(guard: Guard, edit: Edit) -> bool:
    """Return whether an edit breaks a rule: by a line that it adds, or with a file that lacks what is required.

    A pattern that takes too long breaks nothing.
    """
    if not guard.covers(edit.path):
        return False
    known = set(edit.before.splitlines())
    added = [line for line in edit.after.splitlines() if line not in known]
    with suppress(TimeoutError), _time_limit(_PATIENCE):
        return any(map(guard.forbids, added)) or bool(added and guard.misses(edit.after))
    return False


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block after a time, where the platform has timers and this is the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def guarding_rules(index: SqliteIndex, scopes: Sequence[str]) -> list[Memory]:
    """Return the rules in force that forbid or require something."""
    here = Filters(kinds=("rule", "pitfall"), statuses=("active",), scopes=tuple(scopes))
    sources = dict.fromkeys(
        one.source
        for one in index.entries(here)
        if '"forbid"' in (one.metadata or "") or '"require"' in (one.metadata or "")
    )
    found = [make_memory(one) for source in sources for one in index.memories(here, source)]
    return [
        one
        for one in found
        if (one.word("forbid") or one.word("require"))
        and not (one.is_superseded or one.is_unverified or one.is_quarantined)
    ]


def read_guards(index: SqliteIndex) -> list[tuple[Memory, Guard]]:
    """Return the rules that guard a project's files, with their patterns; those that are no patterns are left out."""
    found = list[tuple[Memory, Guard]]()
    for rule in guarding_rules(index, ("project", "global")):
        with suppress(UsageError):
            found.append((rule, read_guard(rule)))
    return found


class GuardLog:
    """What rules refused: a line for each edit of an agent that broke one."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "guards.jsonl"

    def refuse(self, rule: str, path: str, session: str, call: str | None, agent: str, now: datetime) -> bool:
        """Write down an edit that breaks a rule; tell whether it is refused: the first one of a session.

        The same call, about which two configurations of an agent ask, gets the same answer and counts once.
        """
        before = [line for line in read(self._file, mark_of(session)) if _is_about(line, rule, session)]
        if call:
            for line in before:
                if line.get("call") == call:
                    return line.get("refused") is True
        line = {"ts": format_time(now), "rule": rule, "path": path, "session": session, "agent": agent}
        make_folder(self._file.parent)
        append(self._file, [line | ({"call": call} if call else {}) | {"refused": not before}])
        return not before

    def count(self) -> dict[str, Refusals]:
        """Return what each rule refused."""
        refused, broken = set[tuple[str, str]](), set[tuple[str, str]]()
        for line in read(self._file):
            (refused if line.get("refused") is True else broken).add((str(line.get("rule")), str(line.get("session"))))
        sessions, again = Counter(rule for rule, _ in refused), Counter(rule for rule, _ in broken)
        return {rule: Refusals(count, again[rule]) for rule, count in sessions.items()}


def _is_about(line: object, rule: str, session: str) -> bool:
    return isinstance(line, dict) and (line.get("rule"), line.get("session")) == (rule, session)
