"""Derive the facts of a session from its events: what was done, what failed, and what resolved it.

It is one pass that keeps no more in memory than an episode reports, however long the session.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from memory_kb.injected import is_own_call
from memory_kb.learning.capture import asks_to_revert, find_statements
from memory_kb.learning.conversation import clean, is_human
from memory_kb.learning.wrappers import own_words, sentences
from memory_kb.session_reports import ActionLine, CheckResult, Commit, Failure, Retry, Reverted, Trace
from memory_kb.sessions.shell import Command, is_risky, is_small_change
from memory_kb.sessions.tool_calls import CHECKS, Answer, Call, CallFault, read_answer, read_call
from memory_kb.store.events import Event, seconds_between
from memory_kb.store.session_log import OUTCOMES
from memory_kb.text import shorten

if TYPE_CHECKING:
    from memory_kb.store.session_log import SessionFiles

#: More tasks than this in one session are reported in the last one's episode.
TASKS = 50
#: Lines of an action log, at its beginning and at its end.
HEAD, TAIL = 40, 20
_PENDING, _FAILURES, _FILES, _RETRIES = 500, 40, 30, 20
_GOAL, _SAID = 200, 100
#: A session that is ended so many seconds after its last event was left before.
_LEFT = 6 * 3600
_OWN_EVENTS = frozenset({"start", "resume", "end", "summary", "thinking", "notice", "hook", "error", "aborted"})
_UNDOING = ("git checkout", "git restore", "git revert", "git reset", "git stash")
_COMMIT = re.compile(r"^\[(?:\S+ )+?(?:\(root-commit\) )?([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_REQUEST = re.compile(r"https?://\S+?/(?:pull|merge_requests)/\d+")


def trace_session(session: str, events: Iterable[Event]) -> tuple[Trace, ...]:
    """Return the facts of a session, one trace for every task that its events name.

    Events without a task belong to the task at hand.

    Example:
        >>> call = Event(ts="2026-03-01T10:00:00.000Z", seq=2, type="tool_call", tool="Bash", call_id="1", args={"command": "pytest -q"})
        >>> result = Event(ts="2026-03-01T10:00:09.000Z", seq=3, type="tool_result", tool="Bash", call_id="1", ok=False, content="KeyError: 'id'")
        >>> (trace,) = trace_session("s", [Event(ts=call.ts, seq=1, role="user", content="Fix the login."), call, result])
        >>> trace.goal, trace.failures[0].type, trace.failures[0].resolution
        ('Fix the login.', 'KeyError', None)
    """
    tracers: dict[tuple[str | None, str | None], _Tracer] = {}
    current = _Tracer(session)
    for number, event in enumerate(events, 1):
        key = (event.job or current.job, event.task)
        if event.task and key != (current.job, current.task):
            if current.task is None and key not in tracers:
                current.job, current.task = key
                tracers[key] = current
            elif key in tracers or len(tracers) < TASKS:
                current = tracers.setdefault(key, _Tracer(session, *key, cwd=current.cwd))
        current.take(event, max(event.seq, number))
    made = list(tracers.values()) or [current]
    return tuple(tracer.trace() for tracer in made)


class Traces:
    """The facts of sessions, kept of the last one that was read until its log grows.

    `coming` is the event of a session's end that a preview would write.
    """

    def __init__(self, files: SessionFiles, coming: Event | None = None) -> None:
        self._files = files
        self._coming = coming
        self._key: tuple[str, int] = "", 0
        self._last: tuple[Trace, ...] = ()

    def of(self, session: str, on_problem: Callable[[int, str], None] | None = None) -> tuple[Trace, ...]:
        """Return the facts of a session, one trace for each task.

        Args:
            session: its id.
            on_problem: is given the number of a line that is no event, and why.
        """
        key = session, self._files.path(session).stat().st_size
        if on_problem or key != self._key:
            events = self._files.read(session, on_problem)
            self._last = trace_session(session, chain(events, [self._coming] if self._coming else ()))
            self._key = key
        return self._last


class _Log:
    """The action log in the order in which calls began: its first and its last lines."""

    def __init__(self) -> None:
        self._head: list[_Line] = []
        self._tail: deque[_Line] = deque(maxlen=TAIL)
        self._count = 0

    def add(self, t: float, action: str, result: str = "", targets: tuple[str, ...] = ()) -> _Line:
        """Add a line, which is completed when its result is known."""
        line = _Line(t, action, result, targets)
        (self._head if len(self._head) < HEAD else self._tail).append(line)
        self._count += 1
        return line

    def steps(self) -> tuple[tuple[ActionLine, ...], int, int]:
        """Return the lines with equal neighbours joined, how many are of the head, and how many are missing."""
        head, tail = tuple(_joined(self._head)), tuple(_joined(self._tail))
        return (*head, *tail), len(head), self._count - len(self._head) - len(self._tail)


@dataclass(slots=True)
class _Line:
    """A line of the action log."""

    t: float
    action: str
    result: str
    targets: tuple[str, ...]


def _joined(lines: Iterable[_Line]) -> Iterator[ActionLine]:
    for (action, result), group in groupby(lines, lambda line: (line.action, line.result)):
        same = list(group)
        targets = dict.fromkeys(target for line in same for target in line.targets)
        yield ActionLine(same[0].t, action, result, len(same), tuple(targets)[:4])


@dataclass
class _Open:
    """A call that failed and has not succeeded since, and whether anything was changed or run from then on."""

    call: Call
    key: tuple[str, str]
    is_changed: bool = False


class _Failures:
    """The errors of a task, each with the call that got past it."""

    def __init__(self) -> None:
        self.all: dict[tuple[str, str], Failure] = {}
        self.more = 0
        self._open: list[_Open] = []

    def note(self, call: Call, fault: CallFault) -> None:
        """Note that a call failed."""
        if fault.sort != "work":
            return
        known = self.all.get(fault.key)
        if known is None and len(self.all) >= _FAILURES:
            self.more += 1
            return
        self.all[fault.key] = Failure(fault.type, fault.message, call.shown, known.times + 1 if known else 1)
        if not any(one.key == fault.key and _is_same(call, one.call) for one in self._open):
            self._open = [*self._open, _Open(call, fault.key)][-_FAILURES:]

    def change(self, call: Call) -> None:
        """Note that something was changed or run, for every error that is open."""
        if call.kind in ("edit", "install", "run", "build", "deploy"):
            for one in self._open:
                one.is_changed = True

    def resolve(self, call: Call) -> None:
        """Take a call that succeeded as the end of the errors it covers."""
        for one in [one for one in self._open if covers(call, one.call)]:
            again = "when it was run again" if call.shown == one.call.shown else "instead"
            how = "after something was changed or run" if one.is_changed else again
            self._open.remove(one)
            self.all[one.key] = self.all[one.key]._replace(resolution=f"`{_plain(call)}` went through {how}")


def _plain(call: Call) -> str:
    return call.shown.replace("`", "")


def _is_same(call: Call, other: Call) -> bool:
    return (call.family, call.targets) == (other.family, other.targets)


def covers(call: Call, failed: Call) -> bool:
    """Return whether a call that succeeded did what another had failed to do.

    Example:
        >>> one, folder, everything = (Call("test", "pytest", targets, str(targets)) for targets in (("tests/a.py",), ("tests",), ()))
        >>> covers(folder, one), covers(everything, folder), covers(one, everything)
        (True, True, False)
    """
    if call.shown == failed.shown:
        return True
    if call.commands and failed.commands and is_small_change(failed.commands[0], call.commands[0]):
        return call.kind not in CHECKS or _is_within(failed.targets, call.targets)
    if call.family != failed.family:
        return False
    if call.kind in ("lint", "install", "commit") or call.family.startswith("git "):
        return True
    return call.kind in CHECKS and _is_within(failed.targets, call.targets)


def _is_within(wanted: tuple[str, ...], targets: tuple[str, ...]) -> bool:
    """Return whether all places are among some targets, or below them; no target means everything."""
    folders = [target.partition("::")[0].rstrip("/") for target in targets]
    files = [place.partition("::")[0] for place in wanted]
    return not targets or (
        bool(files) and all(any(file == one or file.startswith(f"{one}/") for one in folders) for file in files)
    )


class _Checks:
    """The last result of every check that no later one covers."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, tuple[str, ...]], tuple[Call, CheckResult]] = {}

    def note(self, call: Call, answer: Answer) -> None:
        """Note how a check went; other calls are none."""
        if call.kind not in CHECKS or answer.ok is None or (answer.fault and answer.fault.sort != "work"):
            return
        key = call.family, call.targets
        held = {one: known for one, known in self._last.items() if one != key}
        if answer.ok:
            held = {one: known for one, known in held.items() if not covers(call, known[0])}
        held[key] = call, CheckResult(call.kind, bool(answer.ok))
        self._last = dict(list(held.items())[-_FAILURES:])

    @property
    def last(self) -> tuple[CheckResult, ...]:
        """The results, the newest last."""
        return tuple(check for _, check in self._last.values())


class _Retries:
    """Commands that failed, and what of the next call on the same program succeeded with a small change."""

    def __init__(self) -> None:
        self.found: list[Retry] = []
        self._failed: tuple[int, Command, str] | None = None

    def note(self, seq: int, call: Call, answer: Answer) -> None:
        """Note a call; an edit, an install or an interrupt ends the wait for a retry, a look does not."""
        if call.kind == "look":
            return
        command = call.commands[0] if len(call.commands) == 1 and not call.commands[0].is_piped else None
        if answer.ok and self._failed and command and len(self.found) < _RETRIES:
            at, failed, error = self._failed
            if is_small_change(failed, command) and not (is_risky(failed.text) or is_risky(command.text)):
                self.found.append(Retry(at, shorten(failed.text, 200), shorten(command.text, 200), error))
        fault = answer.fault
        is_failed = fault and fault.sort == "work" and fault.message and command
        self._failed = (seq, command, fault.named) if is_failed and fault and command else None


class _Few(dict[str, None]):
    """The first words of many, each once."""

    def add(self, word: str) -> None:
        if len(self) < _FILES:
            self[word] = None


@dataclass
class _Tracer:
    """The task that is being followed."""

    session: str
    job: str | None = None
    task: str | None = None
    cwd: str | None = None
    seq: int = 0
    began: str = ""
    ended: str = ""
    agent: str | None = None
    goal: str = ""
    turns: int = 0
    actions: int = 0
    outcome: str | None = None
    summary: str = ""
    pending: dict[str, tuple[Call, _Line | None]] = field(default_factory=dict)
    log: _Log = field(default_factory=_Log)
    failures: _Failures = field(default_factory=_Failures)
    checks: _Checks = field(default_factory=_Checks)
    retries: _Retries = field(default_factory=_Retries)
    commits: deque[Commit] = field(default_factory=lambda: deque(maxlen=20))
    changed: _Few = field(default_factory=_Few)
    seen: _Few = field(default_factory=_Few)
    made: _Few = field(default_factory=_Few)
    links: _Few = field(default_factory=_Few)
    constraints: _Few = field(default_factory=_Few)
    reverted: list[Reverted] = field(default_factory=list)
    #: The files changed since the person spoke before last, and their request to revert them.
    recent: _Few = field(default_factory=_Few)
    asked: Reverted | None = None

    def take(self, event: Event, seq: int) -> None:
        """Take in one event."""
        self.seq, self.job = seq, self.job or event.job
        self.began, self.ended = _stretch(self.began, self.ended, event)
        if event.role == "assistant" or event.type in ("tool_call", "tool_result") or event.event == "start":
            self.agent = self.agent or event.agent
        if event.injected == "whole":
            self.pending.pop(event.call_id or "", None)
        elif event.type == "tool_call":
            self._call(event)
        elif is_human(event):
            self._person(event)
        elif event.type == "tool_result":
            key = event.call_id if event.call_id in self.pending else f"tool {event.tool}"
            self._answer(*(self.pending.pop(key or "", None) or self._begin(event)), event)
        elif event.type == "event":
            self._event(event)

    def _log_line(self, event: Event, action: str, result: str = "", targets: tuple[str, ...] = ()) -> _Line:
        return self.log.add(seconds_between(self.began, event.ts), action, result, targets)

    def _call(self, event: Event) -> None:
        pending = self._begin(event)
        if event.ok is not None or event.error:  # a call that is logged with its result
            self._answer(*pending, event)
            return
        self.pending[event.call_id or f"tool {event.tool}"] = pending
        if len(self.pending) > _PENDING:
            self.pending.pop(next(iter(self.pending)))

    def _begin(self, event: Event) -> tuple[Call, _Line | None]:
        """Return a call with its line, which calls of memory-kb itself have not."""
        call = read_call(event.tool, event.args, self.cwd)
        if is_own_call(event.tool, event.args) or call.kind == "plan":
            return call._replace(kind="plan"), None
        self.actions += 1
        if call.kind == "look":
            return call, self._log_line(event, "look at", targets=call.targets[:1] or (call.shown,))
        return call, self._log_line(event, _shown(call))

    def _answer(self, call: Call, line: _Line | None, event: Event) -> None:
        if call.kind == "plan":
            return
        answer = read_answer(call, event.content, event.error, ok=event.ok)
        if line:
            line.result = _result_of(answer)
            if answer.fault and call.kind == "look":
                line.action, line.targets = call.shown, ()
        self.retries.note(self.seq, call, answer)
        if answer.fault:
            self.checks.note(call, answer)
            self.failures.note(call, answer.fault)
        elif answer.ok is not False:
            for one in reversed(call.parts):
                self._succeed(one, answer, event.content)

    def _succeed(self, call: Call, answer: Answer, content: str | None) -> None:
        self.checks.note(call, answer)
        if answer.ok:
            self.failures.resolve(call)
        self.failures.change(call)
        self._touch(call)
        if content and call.kind == "commit":
            found = _COMMIT.findall(content[:8_000])
            self.commits.extend(Commit(commit, shorten(subject, 120)) for commit, subject in found)
        if content and re.match(r"gh pr create|glab mr|git push", call.shown):
            for link in _REQUEST.findall(content[-4_000:]):
                self.links.add(link)

    def _touch(self, call: Call) -> None:
        """Note the files of a call."""
        for file in call.targets if call.kind in ("edit", "look") else ():
            if call.kind == "edit":
                if file in call.made and file not in self.seen and file not in self.changed:
                    self.made.add(file)
                self.changed.add(file)
                self.recent.add(file)
            elif re.search(r"\.\w{1,5}$", file) and not re.search(r"[*\s|()\\]", file):
                self.seen.add(file)
        if self.asked and (
            call.family in _UNDOING or (call.kind == "edit" and set(call.targets) & set(self.asked.files))
        ):
            self.reverted.append(self.asked)
            self.asked = None

    def _person(self, event: Event) -> None:
        text = own_words(clean(event.content))
        said = shorten(" ".join(text.split()), _GOAL)
        if not said:
            return
        self.turns += 1
        if self.turns == 1 or (len(self.goal.split()) < 3 and self.actions == 0):
            self.goal = said
        else:
            self._log_line(event, f"user: “{shorten(said, _SAID)}”")
        named = (one for one in sentences(text) if one.casefold().startswith(("constraint:", "constraints:")))
        for constraint in (*(one.text for one in find_statements(text) if one.kind == "policy"), *named):
            self.constraints.add(shorten(constraint, _GOAL))
        request = asks_to_revert(text)
        self.asked = Reverted(self.seq, request, tuple(self.recent)[:5]) if request and self.recent else None
        self.recent = _Few()

    def _event(self, event: Event) -> None:
        args = event.args or {}
        if event.event == "start":
            cwd = args.get("cwd")
            self.cwd = self.cwd or (cwd if isinstance(cwd, str) else None)
        elif event.event == "end":
            outcome = args.get("outcome")
            self.outcome = outcome if outcome in OUTCOMES else self.outcome
            self.summary = shorten(clean(event.content), 600) or self.summary
        elif event.event not in _OWN_EVENTS and event.event:
            shown = shorten(f"{event.event} {clean(event.content)}", _SAID)
            said = shorten(clean(event.error or event.content), _SAID)
            fault = CallFault(event.event, said) if event.ok is False else None
            self._log_line(event, shown, _result_of(Answer(event.ok, fault)))
            self.actions += 1
            if fault:
                self.failures.note(Call("run", event.event, (), shown), fault)

    def trace(self) -> Trace:
        """Return what was found, when there are no more events."""
        own = {name: getattr(self, name) for name in Trace._fields if hasattr(self, name)}
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, _Few | list | deque) else value for name, value in own.items()
        }
        known["steps"], known["head"], known["missing"] = self.log.steps()
        known["failures"], known["more_failures"] = tuple(self.failures.all.values()), self.failures.more
        known["checks"], known["retries"] = self.checks.last, tuple(self.retries.found)
        return Trace(**known | {"ended": self.ended or self.began})


def _shown(call: Call) -> str:
    """Return a line in a few words; what only gets files ready for a commit is left out."""
    parts = sorted(call.parts, key=lambda part: call.commands.index(part.commands[0]) if part.commands else 0)
    parts = [one for one in parts if len(parts) == 1 or one.kind != "look"] or parts[:1]
    parts = [one for one in parts if len(parts) == 1 or one.family not in ("git add", "mkdir", "chmod")]
    return " && ".join(shorten(one.shown, 100 if len(parts) == 1 else 60) for one in parts[:4])


def _result_of(answer: Answer) -> str:
    if answer.fault:
        return "refused" if answer.fault.sort == "refused" else shorten(f"fail: {answer.fault.named}", 160)
    return "ok" if answer.ok else ""


def _stretch(began: str, ended: str, event: Event) -> tuple[str, str]:
    """Return when work began and ended, with one more event of a session.

    The events that frame a session are of the moment in which they are written: a transcript that
    is imported may be ended months after its last word, and its log may be begun after all of it.
    """
    if not event.ts:
        return began, ended
    if event.event in ("start", "resume"):
        return began or event.ts, ended
    if event.event == "end":
        is_late = seconds_between(ended or began, event.ts) > _LEFT
        return began or event.ts, ended if is_late else max(ended, event.ts)
    return min(began or event.ts, event.ts), max(ended, event.ts)
