"""Find what a session had to find out again, as its log proves it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memory_kb.episodes.tool_calls import Call, CallFault, CallReader, Step
from memory_kb.learning.capture import read_user_messages
from memory_kb.learning.conversation import is_human
from memory_kb.store.session_events import Event, searchable
from memory_kb.terms import jaccard, word_tokens
from memory_kb.text import count_tokens

#: The sorts of what is found out again.
SORTS = ("command", "file", "error", "correction")
#: A worked command of fewer words says nothing of its own.
_LEAST_WORDS = 2
#: Two statements this alike say the same.
_SAME = 0.6
#: The part of an error's message that must be the same, and the shortest that says anything.
_MESSAGE, _LEAST_MESSAGE = 60, 10
#: The failures that may wait for the command that works.
_WAITING = 20
_RUN = frozenset({"run", "test", "build", "lint", "install", "deploy", "commit"})


class Need(NamedTuple):
    """One thing that a session found out, and the event from which on it was needed.

    The fact is the command that worked, the file, the error's message, or what the person said; `failures` are the
    events with the commands that failed for want of it, each with its tokens.
    """

    sort: str
    seq: int
    fact: str
    failures: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class SessionNeeds:
    """What a session found out, by sort and fact, and its commands that went through and that never did."""

    session: str
    began: str
    ended: str
    prompts: list[Event] = field(default_factory=list)
    needs: dict[tuple[str, str], Need] = field(default_factory=dict)
    worked: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def add(self, need: Need) -> None:
        """Keep the first need of a fact; what failed for want of it later is added."""
        known = self.needs.get((need.sort, need.fact))
        merged = known._replace(failures=known.failures + need.failures) if known else need
        self.needs[need.sort, need.fact] = merged

    def in_order(self) -> list[Need]:
        """Return the needs in the order in which they came up."""
        return sorted(self.needs.values(), key=lambda need: need.seq)


@dataclass
class _StepReader:
    """What the calls of a session found out, one after the other."""

    found: SessionNeeds
    #: Commands that failed one after the other, nothing having been edited in between, each with its failures.
    failing: list[tuple[Call, list[tuple[int, int]]]] = field(default_factory=list)
    made: set[str] = field(default_factory=set)

    def take(self, step: Step, ended: Event) -> None:
        """Read a call with its answer."""
        call, answer, seq = step.call, step.answer, step.begun.seq
        if call.kind == "edit" and answer.ok is not False:
            self.failing.clear()
            self.made.update(call.made)
            for file in (one for one in call.targets if one not in self.made):
                self.found.add(Need("file", seq, file))
        elif call.kind in _RUN and answer.fault and answer.fault.sort != "refused":
            texts = dict.fromkeys((searchable(step.begun), searchable(ended)))
            self._fail(call, answer.fault, (seq, sum(map(count_tokens, texts))))
        elif call.kind in _RUN and answer.ok:
            for part in call.parts:
                # What a command before a pipe came to is not known, unless it counted its tests.
                if answer.is_counted or not (part.command and part.command.is_piped):
                    self._succeed(part)

    def _fail(self, call: Call, fault: CallFault, failure: tuple[int, int]) -> None:
        if fault.sort == "work" and len(fault.message) >= _LEAST_MESSAGE:
            self.found.add(Need("error", failure[0], comparable_text(fault.message)[:_MESSAGE], (failure,)))
        self.found.failed.add(_named(call))
        same = next((failures for one, failures in self.failing if _is_one_job(one, call)), None)
        if same:
            same.append(failure)
        else:
            self.failing = [*self.failing, (call, [failure])][-_WAITING:]

    def _succeed(self, call: Call) -> None:
        shown = _named(call)
        for failed, failures in [one for one in self.failing if _is_one_job(one[0], call)]:
            self.failing.remove((failed, failures))
            if _named(failed) != shown and len(shown.split()) >= _LEAST_WORDS:
                self.found.add(Need("command", failures[0][0], shown, tuple(failures)))
        self.found.worked.add(shown)
        self.found.failed.discard(shown)


def read_needs(session: str, events: Sequence[Event]) -> SessionNeeds:
    """Return what a session found out.

    A command counts that went through after commands of the same job had failed, nothing having been edited in between;
    a file that was there and was edited; an error of the work; and a sentence by which a person stated what holds.

    Example:
        >>> def ran(seq, command, ok): return [
        ...     Event(seq=seq, type="tool_call", tool="Bash", call_id=str(seq), args={"command": command}),
        ...     Event(seq=seq + 1, type="tool_result", tool="Bash", call_id=str(seq), ok=ok, content="" if ok else "pytest: command not found")]
        >>> found = read_needs("s", [*ran(1, "pytest -q", False), *ran(3, "uv run pytest -q", True)])
        >>> [(need.sort, need.fact, len(need.failures)) for need in found.in_order() if need.sort == "command"]
        [('command', 'uv run pytest -q', 1)]
    """
    times = [event.ts for event in events if event.ts and event.event not in ("resume", "end")]
    found = SessionNeeds(session, min(times, default=""), max(times, default=""))
    calls, reader = CallReader(), _StepReader(found)
    for number, one in enumerate(events, 1):
        event = one if one.seq else one._replace(seq=number)
        if is_human(event) and event.type == "message" and event.content and event.injected != "whole":
            found.prompts.append(event)
        for step in calls.take(event):
            if step.ended and step.begun.type == "tool_call":
                reader.take(step, step.ended)
    for message in read_user_messages(events):
        for statement in message.statements:
            found.add(Need("correction", message.event.seq, comparable_text(statement.text)))
    return found


def _is_one_job(one: Call, other: Call) -> bool:
    """Return whether two commands try the same: one program and sort of work, with other words."""
    return one.kind == other.kind and (one.family == other.family or one.kind == "test")


def _named(call: Call) -> str:
    return " ".join(call.shown.replace("`", "").split())


def comparable_text(text: str) -> str:
    """Return a text by which two of them are compared.

    Example:
        >>> comparable_text("  Run `make  test` ")
        'run make test'
    """
    return " ".join(text.replace("`", "").casefold().split())


class EarlierSessions:
    """What strictly earlier sessions knew."""

    def __init__(self) -> None:
        self._facts: set[tuple[str, str]] = set()
        self._corrections: list[frozenset[str]] = []

    def learn(self, session: SessionNeeds) -> None:
        """Add the facts that a session found out."""
        self._facts.update(session.needs, (("command", command) for command in session.worked))
        self._corrections += [word_tokens(fact) for sort, fact in session.needs if sort == "correction"]

    def knows(self, need: Need) -> bool:
        """Return whether an earlier session found the same out."""
        if need.sort != "correction":
            return (need.sort, need.fact) in self._facts
        words = word_tokens(need.fact)
        return any(jaccard(words, one) >= _SAME for one in self._corrections)


def mentions(text: str, need: Need) -> bool:
    """Return whether a text, as `comparable_text` returns it, says what was found out.

    Example:
        >>> mentions("use uv run pytest -q here", Need("command", 1, "uv run pytest -q")), mentions("see src/api/x.py", Need("file", 1, "src/api/x.py"))
        (True, True)
    """
    if need.sort == "correction":
        words = word_tokens(need.fact)
        return bool(words) and len(words & word_tokens(text)) >= _SAME * len(words)
    fact = comparable_text(need.fact)
    return (fact if need.sort != "file" else "/".join(fact.split("/")[-2:])) in text


def count_failed(needs: Iterable[Need]) -> tuple[int, int]:
    """Return how many commands failed for want of some things and what they cost in tokens; each counts once.

    Example:
        >>> count_failed([Need("error", 3, "x", ((3, 40),)), Need("command", 3, "make y", ((3, 40), (5, 20)))])
        (2, 60)
    """
    failures = dict(failure for need in needs for failure in need.failures)
    return len(failures), sum(failures.values())
