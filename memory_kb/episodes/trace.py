"""Derive the facts of a session from its events: what was done, what failed, and what resolved it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from memory_kb.episodes.session_facts import Commit, Failure, Retry, Reverted, Trace
from memory_kb.episodes.shell import is_risky, is_small_change
from memory_kb.episodes.tool_calls import CHECKS, Call, CallFault, CallReader, Step, ToolOutcome
from memory_kb.learning.conversation import clean_text, is_human
from memory_kb.learning.markers import asks_to_revert, find_credential, find_statements
from memory_kb.learning.text_comparison import is_replaced
from memory_kb.learning.user_text import find_subject, own_words, sentences, split_message
from memory_kb.store.session_events import SESSION_OUTCOMES, Event, seconds_between
from memory_kb.store.session_log import SessionFiles
from memory_kb.terms import has_cjk
from memory_kb.text import shorten

#: Lines of an action log, at its beginning and at its end.
HEAD, TAIL = 40, 20
_FAILURES, _FILES, _RETRIES, _COMMITS = 40, 30, 20, 20
_TASK, _POLICY, _SAID = 500, 200, 100
#: The fewest words of what a session is about; of CJK, characters.
_LEAST_GOAL = 3, 6
#: A session that is ended later than this many seconds after its last event was left before.
_LEFT = 6 * 3600
_OWN_EVENTS = frozenset(
    {"start", "resume", "end", "summary", "thinking", "notice", "hook", "error", "aborted", "asked"}
)
#: What says nothing of the work beside other commands.
_PREPARING = ("git add", "mkdir", "chmod")
_UNDOING = ("git checkout", "git restore", "git revert", "git reset", "git stash")
#: What git says of a commit, and aider.
_COMMIT = re.compile(r"^(?:\[(?:\S+ )+?(?:\(root-commit\) )?|Commit )([0-9a-f]{7,40})\]? (.+)$", re.MULTILINE)
_REQUEST = re.compile(r"https?://\S+?/(?:pull|merge_requests)/\d+")


def trace_session(session: str, events: Iterable[Event]) -> tuple[Trace, ...]:
    """Return the facts of a session, one trace for every task that its events name.

    Events without a task belong to the task at hand.

    Example:
        >>> call = Event(ts="2026-03-01T10:00:00.000Z", seq=2, type="tool_call", tool="Bash", call_id="1", args={"command": "pytest -q"})
        >>> result = Event(ts="2026-03-01T10:00:09.000Z", seq=3, type="tool_result", tool="Bash", call_id="1", ok=False, content="KeyError: 'id'")
        >>> (trace,) = trace_session("s", [Event(ts=call.ts, seq=1, role="user", content="Fix the login."), call, result])
        >>> trace.goal, trace.failures
        ('Fix the login.', (Failure(error="KeyError: 'id'", resolution=None),))
    """
    tracers: dict[tuple[str | None, str | None], _Tracer] = {}
    current = _Tracer(session)
    for number, event in enumerate(events, 1):
        known = current.facts
        key = (event.job or known.job, event.task)
        if event.task and key != (known.job, known.task):
            if known.task is None and key not in tracers:
                current.facts = known._replace(job=key[0], task=key[1])
                tracers[key] = current
            else:
                current = tracers.setdefault(key, _Tracer(session, *key, cwd=current.calls.cwd))
        current.take(event if event.seq else event._replace(seq=number))
    made = list(tracers.values()) or [current]
    return tuple(tracer.trace() for tracer in made)


class Traces:
    """Reads the facts of sessions; those of the last one are kept until its log grows.

    `coming` is the event of a session's end that a preview would write.
    """

    def __init__(self, files: SessionFiles, coming: Event | None = None) -> None:
        self._files = files
        self._coming = coming
        self._key: tuple[str, int] = "", 0
        self._last: tuple[Trace, ...] = ()

    def has_changed_files(self, session: str) -> bool:
        """Return whether a session changed a file or made a commit."""
        return any(trace.changed or trace.commits for trace in self.of(session))

    def of(self, session: str, on_problem: Callable[[int, str], None] | None = None) -> tuple[Trace, ...]:
        """Return the facts of a session, one trace for each task; `on_problem` gets the lines that are no events."""
        key = session, self._files.path(session).stat().st_size
        if on_problem or key != self._key:
            events = self._files.read(session, on_problem)
            self._last = trace_session(session, chain(events, [self._coming] if self._coming else ()))
            self._key = key
        return self._last


class _Action(NamedTuple):
    """An action of the log; `t` is in seconds since the beginning."""

    t: float
    action: str
    result: str
    targets: tuple[str, ...] = ()

    def write(self, times: int) -> str:
        """Return the line, for as many actions one after another."""
        action = self.action
        if self.targets:
            more = f" and {times - len(self.targets)} more" if times > len(self.targets) else ""
            action = f"{action} {', '.join(self.targets)}{more}"
        again = f" ({times} times)" if times > 1 and not self.targets else ""
        return f"t={self.t:.0f} {action}" + (f" -> {self.result}" if self.result else "") + again


def _write_log(actions: Iterable[_Action]) -> Iterator[str]:
    for _, group in groupby(actions, lambda one: (one.action, one.result)):
        same = list(group)
        targets = tuple(dict.fromkeys(target for one in same for target in one.targets))
        yield same[0]._replace(targets=targets[:4]).write(len(same))


class _OpenFailure(NamedTuple):
    """A call that failed and has not succeeded since, and whether anything was changed or run from then on."""

    call: Call
    fault: CallFault
    seq: int
    is_changed: bool = False


class _Failures:
    """The errors of a task, each with the call that got past it, and the commands that worked with a small change."""

    def __init__(self) -> None:
        self.all: dict[tuple[str, str], Failure] = {}
        self.retries: list[Retry] = []
        self._open: list[_OpenFailure] = []

    def record(self, seq: int, call: Call, fault: CallFault) -> None:
        """Record that a call failed."""
        if fault.sort != "work":
            return
        self.all[fault.key] = Failure(fault.named)
        this = (fault.key, call.family, call.targets)
        if not any((one.fault.key, one.call.family, one.call.targets) == this for one in self._open):
            self._open = [*self._open, _OpenFailure(call, fault, seq)][-_FAILURES:]

    def resolve(self, call: Call, *, is_sure: bool) -> None:
        """Close the errors that a call covers if it surely succeeded; record that something was done since."""
        for one in [one for one in self._open if is_sure and covers(call, one.call)]:
            is_retry = not one.is_changed and _is_retry(call, one.call)
            again = "instead" if is_retry else "when it was run again"
            how = "after something was changed or run" if one.is_changed else again
            self._open.remove(one)
            shown = call.shown.replace("`", "")
            self.all[one.fault.key] = self.all[one.fault.key]._replace(resolution=f"`{shown}` went through {how}")
            if is_retry and one.fault.message:
                self._add_retry(one, call)
        if call.kind in ("edit", "install", "run", "build", "deploy"):
            self._open = [one._replace(is_changed=True) for one in self._open]

    def _add_retry(self, one: _OpenFailure, call: Call) -> None:
        failed, worked = one.call.command, call.command
        if not failed or not worked or one.call.line or failed.is_piped or worked.is_piped:
            return
        if not is_risky(f"{failed.text} {worked.text}"):
            self.retries.append(Retry(one.seq, shorten(failed.text, 200), shorten(worked.text, 200), one.fault.named))


def covers(call: Call, failed: Call) -> bool:
    """Return whether a call that succeeded did what another had failed to do.

    Example:
        >>> one, folder, everything = (Call("test", "pytest", targets, str(targets)) for targets in (("tests/a.py",), ("tests",), ()))
        >>> covers(folder, one), covers(everything, folder), covers(one, everything)
        (True, True, False)
    """
    if call.shown == failed.shown:
        return True
    if call.kind == "look" and failed.kind != "look":  # `python --version` is no `python run.py`
        return False
    if call.command and failed.command and is_small_change(failed.command, call.command):
        return call.kind not in CHECKS or _is_within(failed.targets, call.targets)
    if call.family != failed.family:
        return False
    if call.kind in ("lint", "install", "commit") or call.family.startswith("git "):
        return True
    return call.kind in CHECKS and _is_within(failed.targets, call.targets)


def _is_retry(call: Call, failed: Call) -> bool:
    """Return whether a call repeats a failed one with a small change, which may be recommended; reading is none."""
    is_looking = "look" in (call.kind, failed.kind)
    return bool(call.command and failed.command and not is_looking and is_small_change(failed.command, call.command))


def _is_within(wanted: tuple[str, ...], targets: tuple[str, ...]) -> bool:
    """Return whether all places are among some targets, or below them; no target means everything."""
    folders = [target.partition("::")[0].rstrip("/") for target in targets]
    files = [place.partition("::")[0] for place in wanted]
    within = (any(file == one or file.startswith(f"{one}/") for one in folders) for file in files)
    return not targets or (bool(files) and all(within))


class _Tracer:
    """Collects the facts of one task: `facts` holds what is known at once, `trace` adds the rest at the end.

    The sets of names are dictionaries, which keep their order.
    """

    def __init__(self, session: str, job: str | None = None, task: str | None = None, cwd: str | None = None) -> None:
        self.facts = Trace(session, job, task)
        self.calls = CallReader(cwd)
        #: The lines of the log, each with the number of its event.
        self.log: list[tuple[int, _Action]] = []
        self.failures = _Failures()
        #: Every check that no later one covers, and whether it succeeded.
        self.checks: list[tuple[Call, bool]] = []
        self.commits: list[Commit] = []
        self.changed, self.seen, self.made = dict[str, None](), dict[str, None](), dict[str, None]()
        self.constraints, self.links = dict[str, None](), dict[str, None]()
        #: The first line of what was pasted, and of what another agent asked: the goal where nobody says it.
        self.pasted = self.ordered = ""
        self.reverted: list[Reverted] = []
        #: The files changed since the person spoke before last, and their request to revert them.
        self.recent: dict[str, None] = {}
        self.asked: Reverted | None = None

    def take(self, event: Event) -> None:
        """Read one event."""
        known = self.facts
        began, ended = _stretch(known.began, known.ended, event)
        is_agent = event.role == "assistant" or event.type in ("tool_call", "tool_result") or event.event == "start"
        agent = known.agent or (event.agent if is_agent else None)
        self.facts = known._replace(seq=event.seq, job=known.job or event.job, agent=agent, began=began, ended=ended)
        if is_human(event) and event.injected != "whole":
            self._person(event)
            return
        for step in self.calls.take(event):
            self._step(step)
        if event.injected == "whole":
            return
        if event.type == "message" and event.role == "agent":
            self.ordered = self.ordered or _first_line(clean_text(event.content))
        elif event.type == "event":
            self._event(event)

    def _add_line(self, event: Event, action: str, result: str = "", targets: tuple[str, ...] = ()) -> None:
        line = _Action(seconds_between(self.facts.began, event.ts), action, result, targets)
        self.log.append((event.seq, line))

    def _step(self, step: Step) -> None:
        call, answer, fault = step.call, step.answer, step.answer.fault
        if call.kind == "plan":
            return
        self.facts = self.facts._replace(actions=self.facts.actions + 1)
        if call.kind == "look":
            shown, targets = (call.shown, ()) if fault else ("look at", call.targets[:1] or (call.shown,))
            self._add_line(step.begun, shown, _result_of(answer), targets)
        else:
            self._add_line(step.begun, _show_doing(call), _result_of(answer))
        if fault:
            if fault.sort == "work":
                self._check(call, is_ok=False)
            self.failures.record(self.facts.seq, call, fault)
        elif step.ended:
            for one in call.parts:
                self._succeed(one, answer, step.ended.content or "")

    def _succeed(self, call: Call, answer: ToolOutcome, content: str) -> None:
        if answer.ok:
            self._check(call, is_ok=True)
        self.failures.resolve(call, is_sure=answer.ok is True)
        self._touch(call)
        if call.kind == "commit":
            self.commits += [Commit(name, shorten(subject, 120)) for name, subject in _COMMIT.findall(content[:8_000])]
        if re.match(r"gh pr create|glab mr|git push", call.shown):
            self.links.update(dict.fromkeys(_REQUEST.findall(content[-4_000:])))

    def _check(self, call: Call, *, is_ok: bool) -> None:
        """Record how a check went, in place of those it covers; other calls are ignored."""
        if call.kind in CHECKS:
            this = call.family, call.targets
            others = [one for one in self.checks if (one[0].family, one[0].targets) != this]
            self.checks = [*(one for one in others if not (is_ok and covers(call, one[0]))), (call, is_ok)]

    def _touch(self, call: Call) -> None:
        is_edit = call.kind == "edit"
        for file in call.targets if is_edit else ():
            if file in call.made and file not in self.seen and file not in self.changed:
                self.made[file] = None
            self.changed[file] = self.recent[file] = None
        for file in call.targets if call.kind == "look" else ():
            if re.search(r"\.\w{1,5}$", file) and not re.search(r"[*\s|()\\]", file):
                self.seen[file] = None
        if self.asked and (call.family in _UNDOING or (is_edit and set(call.targets) & set(self.asked.files))):
            self.reverted.append(self.asked)
            self.asked = None

    def _person(self, event: Event) -> None:
        message = clean_text(event.content)
        text = own_words(message)
        said, known = shorten(" ".join(text.split()), _TASK), self.facts
        if not known.goal or (_is_short(known.goal) and not _is_short(said)):
            self.facts = self.facts._replace(goal=shorten(" ".join(find_subject(message).split()), _TASK))
        if not said:
            self.pasted = self.pasted or _first_line(message)
            return
        if known.turns and (known.actions or known.goal == self.facts.goal):
            self._add_line(event, f"user: “{shorten(said, _SAID)}”")
        self.facts = self.facts._replace(turns=known.turns + 1)
        statements = find_statements(text)
        for old in [old for old in self.constraints if any(is_replaced(old, new.text) for new in statements)]:
            del self.constraints[old]
        policies = [one.text for one in statements if one.kind == "policy"]
        policies += [one for one in sentences(text) if one.casefold().startswith(("constraint:", "constraints:"))]
        self.constraints.update(dict.fromkeys(shorten(policy, _POLICY) for policy in policies))
        request = asks_to_revert(text)
        self.asked = Reverted(known.seq, request, tuple(self.recent)[:5]) if request and self.recent else None
        self.recent = {}

    def _event(self, event: Event) -> None:
        args = event.args or {}
        if event.event == "end":
            outcome, known = args.get("outcome"), self.facts
            self.facts = known._replace(
                outcome=outcome if outcome in SESSION_OUTCOMES else known.outcome,
                summary=shorten(clean_text(event.content), 600) or known.summary,
            )
        elif event.event and event.event not in _OWN_EVENTS and event.role != "system":
            shown = shorten(f"{event.event} {clean_text(event.content)}", _SAID)
            said = shorten(clean_text(event.error or event.content), _SAID)
            fault = CallFault(event.event, said) if event.ok is False else None
            self._add_line(event, shown, _result_of(ToolOutcome(event.ok, fault)))
            self.facts = self.facts._replace(actions=self.facts.actions + 1)
            if fault:
                self.failures.record(self.facts.seq, Call("run", event.event, (), shown), fault)

    def trace(self) -> Trace:
        """Return what was found, when there are no more events."""
        for step in self.calls.rest():
            self._step(step)
        log, known = [line for _, line in sorted(self.log, key=itemgetter(0))], self.facts
        head, rest = log[:HEAD], log[HEAD:]
        missing = [f"… {len(rest) - TAIL} more"] if len(rest) > TAIL else []
        return known._replace(
            goal=(_is_short(known.goal) and self.pasted) or known.goal or self.ordered,
            ended=known.ended or known.began,
            steps=(*_write_log(head), *missing, *_write_log(rest[-TAIL:])),
            failures=tuple(self.failures.all.values())[:_FAILURES],
            checks=tuple(is_ok for _, is_ok in self.checks),
            commits=tuple(self.commits[-_COMMITS:]),
            changed=tuple(self.changed)[:_FILES],
            seen=tuple(self.seen)[:_FILES],
            constraints=tuple(self.constraints)[:_FILES],
            made=tuple(self.made)[:_FILES],
            links=tuple(self.links)[:_FILES],
            retries=tuple(self.failures.retries[:_RETRIES]),
            reverted=tuple(self.reverted),
        )


def _is_short(goal: str) -> bool:
    """Return whether a message is too short to say what a session is about, such as an answer or an order."""
    return len(goal) < _LEAST_GOAL[1] if has_cjk(goal) else len(goal.split()) < _LEAST_GOAL[0]


def _first_line(message: str) -> str:
    """Return the first line of a message that is long enough to say something, or ""; of one with a credential none."""
    if find_credential(message):
        return ""
    lines = (" ".join(line.split()) for line in split_message(message).sent.splitlines())
    return shorten(next((line for line in lines if not _is_short(line)), ""), _TASK)


def _show_doing(call: Call) -> str:
    """Return the commands of a call that say what was done: all but those that look or prepare, if there are any."""
    doing = [one for one in call.parts if one.kind != "look" and one.family not in _PREPARING] or call.parts[:1]
    return " && ".join(shorten(one.shown, 100 if len(doing) == 1 else 60) for one in doing[:4])


def _result_of(answer: ToolOutcome) -> str:
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
