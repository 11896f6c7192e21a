"""One pass over the events of a session: what was done, what failed, what was said.

However long the session is, no more is held than an episode tells of; what is cut is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from memory_kb.learning.episodic.answers import Answer, Fault
from memory_kb.learning.episodic.mishaps import Check, Checks, Mishap, Mishaps
from memory_kb.learning.episodic.outcomes import read_outcome
from memory_kb.learning.episodic.sayings import first_words, mood, read_agent, read_person
from memory_kb.learning.episodic.toolcalls import Call, read_call
from memory_kb.learning.episodic.tracing import Journal, Step, Words
from memory_kb.learning.extraction.conversation import clean, is_human
from memory_kb.learning.observation.findings import Learner
from memory_kb.learning.observation.statements import find_decisions, said_by_person
from memory_kb.learning.speech.doubts import UNWRITTEN
from memory_kb.learning.speech.retractions import Retractions
from memory_kb.model import Location
from memory_kb.notes.events import Event
from memory_kb.notes.injected import in_own_words, is_own_call
from memory_kb.text import shorten

#: More tasks than this in one session are told in the last one's episode.
TASKS = 50
_PENDING = 500
_GOAL, _SAID = 200, 100
#: A session that is ended so many seconds after its last event was left before.
_LEFT = 6 * 3600
_OWN_EVENTS = frozenset({"start", "resume", "end", "summary", "thinking", "notice", "hook", "error", "aborted"})


class Commit(NamedTuple):
    """A commit that a tool reported."""

    hash: str
    subject: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What one task of a session came to.

    Attributes:
        seq: the number of the last event that counts for it.
        began: the moment of the first event, or ""; `ended` that of the last. Where the session was
            ended much later than it was worked on, or its log was begun later, that does not count.
        steps: the actions, head and tail; `missing` were left out after the first `head`.
        actions: how many calls there were.
        checks: the last results of test runs, builds, lint runs and deployments, the newest last.
        outcome: as the end of the session names it, or None; `summary` likewise.
        mood: what the person's last short message sounded like: 1, 0 or -1.
    """

    session: str
    job: str | None = None
    task: str | None = None
    agent: str | None = None
    seq: int = 0
    began: str = ""
    ended: str = ""
    goal: str = ""
    turns: int = 0
    actions: int = 0
    steps: tuple[Step, ...] = ()
    head: int = 0
    missing: int = 0
    mishaps: tuple[Mishap, ...] = ()
    more_mishaps: int = 0
    checks: tuple[Check, ...] = ()
    commits: tuple[Commit, ...] = ()
    changed: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    last_cause: str | None = None
    done: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    outcome: str | None = None
    summary: str | None = None
    mood: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done that is worth an episode.

        A question and its answer are none; an action, a stated outcome, or a second turn in which
        something is told makes one.
        """
        if not (self.actions or self.outcome or self.summary or self._has_told):
            return True
        return not (self.actions or self.turns > 1 or self.outcome or self.summary) or not (
            self.goal or self.summary or self.actions
        )

    @property
    def _has_told(self) -> bool:
        return any(
            (self.decisions, self.lessons, self.constraints, self.causes, self.done, self.corrections, self.last_cause)
        )


def trace_session(session: str, events: Iterable[Event]) -> tuple[Trace, ...]:
    """Return what was done in a session, one trace for every task that its events name.

    Events without a task belong to the task at hand.

    Args:
        session: its id.
        events: in their order; they are read once.

    Example:
        >>> call = Event(ts="2026-03-01T10:00:00.000Z", seq=2, type="tool_call", tool="Bash", call_id="1", args={"command": "pytest -q"})
        >>> result = Event(ts="2026-03-01T10:00:09.000Z", seq=3, type="tool_result", tool="Bash", call_id="1", ok=False, content="KeyError: 'id'")
        >>> (trace,) = trace_session("s", [Event(ts=call.ts, seq=1, role="user", content="Fix the login."), call, result])
        >>> trace.goal, trace.mishaps[0].fault.type, trace.mishaps[0].resolution
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


@dataclass
class _Pending:
    call: Call
    t: float
    place: int
    is_own: bool = False


@dataclass
class _Tracer:
    """The task that is being followed."""

    session: str
    job: str | None = None
    task: str | None = None
    known: Trace = field(default_factory=lambda: Trace(""))
    pending: dict[str, _Pending] = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
    mishaps: Mishaps = field(default_factory=Mishaps)
    checks: Checks = field(default_factory=Checks)
    words: Words = field(default_factory=Words)
    retractions: Retractions = field(default_factory=Retractions)
    learner: Learner = field(default_factory=lambda: Learner(Location()))
    commits: deque[Commit] = field(default_factory=lambda: deque(maxlen=20))
    cwd: str | None = None
    has_asked: bool = False
    has_taken_back: bool = False
    subagents: set[str] = field(default_factory=set)

    def take(self, event: Event, seq: int) -> None:
        known = self.known
        self._learn(event)
        self.job = self.job or event.job
        speaks = (
            event.agent
            if event.role == "assistant" or event.type in ("tool_call", "tool_result") or event.event == "start"
            else None
        )
        began, ended = _stretch(known.began, known.ended, event)
        self.known = replace(known, seq=seq, began=began, ended=ended, agent=known.agent or speaks)
        if event.injected == "whole":
            if event.call_id:
                self.pending.pop(event.call_id, None)
        elif event.type == "tool_call":
            self._call(event)
        elif event.type == "tool_result" and not is_human(event):
            self._result(event)
        elif is_human(event):
            self._person(event)
        elif event.type == "message":
            self._agent(event)
        else:
            self._event(event)

    def _learn(self, event: Event) -> None:
        """Take over what is learned of the person's words: an episode tells of them what becomes an entry, and nothing else."""
        before = set(self.learner.heard.values())
        deque(self.learner.take(event), maxlen=0)
        now = dict.fromkeys(self.learner.heard.values())
        gone = before.difference(now)
        self.has_taken_back = bool(gone)
        for text in gone:
            self.words.drop(text)
        self.words.add("lessons", *(text for text in now if text not in before))

    def _time(self, event: Event) -> float:
        return seconds_between(self.known.began, event.ts)

    def _call(self, event: Event) -> None:
        call = read_call(event.tool, event.args, self.cwd)
        pending = _Pending(call, self._time(event), self.known.seq, is_own_call(event.tool, event.args))
        if event.ok is not None or event.error:  # a call that is logged with its result
            self._answer(pending, event)
            return
        key = event.call_id or f"tool {event.tool}"
        self._give_up(key)
        self.pending[key] = pending
        if len(self.pending) > _PENDING:
            self._give_up(next(iter(self.pending)))

    def _give_up(self, key: str) -> None:
        """Tell of a call that nothing answered."""
        pending = self.pending.pop(key, None)
        if pending:
            self._act(pending, Answer(None), None)

    def _result(self, event: Event) -> None:
        key = event.call_id if event.call_id in self.pending else f"tool {event.tool}"
        pending = self.pending.pop(key or "", None)
        if pending is None:
            pending = _Pending(
                read_call(event.tool, event.args, self.cwd),
                self._time(event),
                self.known.seq,
                is_own_call(event.tool, event.args),
            )
        self._answer(pending, event)

    def _answer(self, pending: _Pending, event: Event) -> None:
        call, answer = read_outcome(pending.call, event.content, event.error, event.ok, self.cwd)
        self._act(replace(pending, call=call), answer, event.content)

    def _act(self, pending: _Pending, answer: Answer, content: str | None) -> None:
        call = pending.call
        if pending.is_own or call.kind == "plan":
            return
        self.known = replace(self.known, actions=self.known.actions + 1)
        self.journal.note(pending.t, call, answer, pending.place)
        self.checks.note(call, answer)
        if answer.fault:
            self.mishaps.note(call, answer.fault)
        elif answer.ok is not False:
            for one in (call, *call.also):
                self.words.touch(one)
            self._succeed(call, answer, content)

    def _succeed(self, call: Call, answer: Answer, content: str | None) -> None:
        if answer.ok and self.mishaps.resolve(call):
            self.words.confirm()
        self.mishaps.change(call)
        if content and any(one.kind == "commit" for one in (call, *call.also)):
            self.commits.extend(Commit(*found) for found in self.words.commits_in(content))
        if content:
            self.words.find_links(call, content)

    def _person(self, event: Event) -> None:
        text = in_own_words(clean(event.content))
        if not text or UNWRITTEN.search(text):
            return
        known = self.known
        said = read_person(text, is_answer=self.has_asked)
        self.has_asked = False
        taken = list(self.retractions.hear(text))
        if known.turns == 0 or (len(known.goal.split()) < 3 and self.known.actions == 0):
            goal = first_words(text, _GOAL)
            self.known = replace(known, turns=known.turns + 1, goal=goal or known.goal, mood=0)
        else:
            self.known = replace(known, turns=known.turns + 1, mood=mood(text))
            self.journal.say(self._time(event), first_words(text, _SAID), known.seq)
            if said.retraction:
                self.words.reconsider(said.retraction)
            if said.correction and not (taken or self.has_taken_back) and (known.actions or self.words.has_proposed):
                corrected = f"{said.correction} {said.fact or ''}".strip()
                self.words.add("corrections", corrected)
                self.words.retract(said.correction)
                taken += self.retractions.state(corrected, corrected, text)
        self.words.stand()
        told = {one.sentence: one.words for one in find_decisions(said_by_person(text), is_person=True)}
        decided = {one: told.pop(one, one) for one in said.decisions} | told
        self.words.add("decisions", *(f"{one} (user)" for one in decided.values()))
        learned = " ".join(self.learner.heard.values())
        constraints = [one for one in said.constraints if one not in decided and one.rstrip(".!") not in learned]
        self.words.add("constraints", *constraints)
        for one in dict.fromkeys((*decided, *constraints)):
            taken += self.retractions.state(f"{decided[one]} (user)" if one in decided else one, one, text)
        for key, doubt, _ in taken:
            if doubt == "withdrawn":
                self.words.drop(key)

    def _agent(self, event: Event) -> None:
        if event.role != "assistant":
            if event.agent:
                self.subagents.add(event.agent)
            return
        if event.agent in self.subagents or not event.content:
            return
        self.retractions.answer(event.content)
        self.has_asked = event.content.rstrip(" *_)\n").endswith("?")
        said = read_agent(event.content)
        self.words.propose(*said.decisions)
        self.words.add("lessons", *said.lessons)
        for cause in said.causes[-1:]:
            self.mishaps.suspect(cause)
        self.words.suspect(said.causes, is_calm=not self.mishaps.has_open_work and self.mishaps.resolved > 0)
        self.words.conclude(said.done, said.stuck)

    def _event(self, event: Event) -> None:
        args = event.args or {}
        if event.event == "start":
            cwd = args.get("cwd")
            self.cwd = self.cwd or (cwd if isinstance(cwd, str) else None)
        elif event.event == "end":
            outcome = args.get("outcome")
            summary = clean(event.content)
            stated = outcome if outcome in ("success", "failure", "mixed", "partial") else None
            self.known = replace(
                self.known, outcome=stated or self.known.outcome, summary=shorten(summary, 600) or self.known.summary
            )
        elif event.event not in _OWN_EVENTS and event.event:
            fault = (
                Fault(event.event, shorten(clean(event.error or event.content), _SAID)) if event.ok is False else None
            )
            call = Call("run", event.event, (), shorten(f"{event.event} {clean(event.content)}", _SAID))
            self._act(_Pending(call, self._time(event), self.known.seq), Answer(event.ok, fault), event.content)

    def trace(self) -> Trace:
        """Return what was found, when there are no more events."""
        for key in list(self.pending):
            self._give_up(key)
        words, mishaps = self.words, self.mishaps
        return replace(
            self.known,
            session=self.session,
            job=self.job,
            task=self.task,
            ended=self.known.ended or self.known.began,
            steps=self.journal.steps,
            head=self.journal.head,
            missing=self.journal.missing,
            mishaps=mishaps.close(),
            more_mishaps=mishaps.more,
            checks=self.checks.last,
            commits=tuple(self.commits),
            changed=tuple(words.changed),
            seen=tuple(words.seen),
            made=tuple(words.made),
            links=tuple(words.links),
            constraints=words.listed("constraints"),
            decisions=words.listed("decisions"),
            lessons=words.listed("lessons"),
            causes=words.listed("causes"),
            last_cause=words.last_cause,
            done=words.concluded,
            stuck=words.stuck,
            corrections=words.listed("corrections"),
        )


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


def seconds_between(began: str, moment: str) -> float:
    """Return the seconds from one moment of a log to another, 0 where either is missing.

    Example:
        >>> seconds_between("2026-03-01T10:00:00.000Z", "2026-03-01T10:02:00.500Z"), seconds_between("", "x")
        (120.5, 0.0)
    """
    try:
        return max(0.0, (datetime.fromisoformat(moment) - datetime.fromisoformat(began)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
