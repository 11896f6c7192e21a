"""Convert transcripts of other tools to events: what all readers share.

The readers are pure: lines in, events out, one at a time. They skip and report
what they do not know; nothing in a transcript makes them fail.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from memory_kb.injected_text import is_own_call
from memory_kb.learning.user_text import split_message
from memory_kb.store.session_events import Event, NoEvent, load_object, printable_line, text_of

#: A line of a transcript may hold an image; longer ones are skipped.
MAX_RECORD = 32_000_000


class LineResult(NamedTuple):
    """What a reader made of one line: an event of a session, a problem, or neither.

    `session` is None where the transcript does not name its own, and `is_named` is false where it is called by its
    first turn, which others may have as well; `line` is where a problem is.
    """

    session: str | None = None
    event: Event | None = None
    problem: str | None = None
    line: int = 0
    is_named: bool = True


#: A line of a transcript, or None for one that is too long to be read.
RawLine = bytes | None
Reader = Callable[[Iterable[RawLine]], Iterator[LineResult]]


def records_of(lines: Iterable[RawLine]) -> Iterator[tuple[bytes, dict[str, Any] | LineResult]]:
    """Yield every line that is not empty with its object, or with the problem it has."""
    for number, line in enumerate(lines, 1):
        if line is None:
            yield b"", LineResult(problem=f"longer than {MAX_RECORD:,} bytes", line=number)
        elif line.strip():
            try:
                yield line, load_object(line)
            except NoEvent as exc:
                yield line, LineResult(problem=str(exc), line=number)


class EventMaker:
    """Makes the events of a session out of what the records of its transcript say.

    A result is known by the call that it answers. What has no name of its own is named by its content and by how often
    that came before, behind a prefix of the format: the same transcript gives the same names every time.

    Attributes:
        session: what the transcript calls its session; None where it does not. `is_named` is as in `LineResult`.
        agent: whose the next events are; `ts` is when they happened, where they do not say.
        is_subagent: whether what their user said came from another agent.
        events: those of the record at hand.

    Example:
        >>> made = EventMaker("x")
        >>> for role in ("user", "assistant", "developer"):
        ...     made.message(role, "Hi.<system-reminder>Be brief.</system-reminder>" if role == "user" else "Hi.")
        >>> [(event.type, event.role, event.content) for event in made.events][1:]
        [('message', 'user', 'Hi.'), ('message', 'assistant', 'Hi.'), ('event', 'system', 'Hi.')]
    """

    def __init__(self, prefix: str, agent: str | None = None) -> None:
        self.session: str | None = None
        self.is_named = True
        self.agent, self.ts, self.is_subagent = agent, "", False
        self.events: list[Event] = []
        self._prefix = prefix
        self._seen: Counter[bytes] = Counter()
        self._open: dict[str, tuple[str, bool]] = {}

    def begin(self, content: str | None = None, **known: object) -> LineResult:
        """Return the event with which the session begins; its arguments are what is known of it, such as `cwd`."""
        args = {name: value for name, value in known.items() if value} or None
        start = Event(
            self.ts, agent=self.agent, type="event", event="start", args=args, content=content, origin="start"
        )
        return LineResult(self.session, start, is_named=self.is_named)

    def results(self, record: str | bytes) -> Iterator[LineResult]:
        """Yield the events of a record, which may be none; `record` is its name or its content."""
        events, self.events = self.events, []
        if not events:
            yield LineResult(self.session)
            return
        origin = record if isinstance(record, str) else self.name_record(record)
        for number, event in enumerate(events):
            role = "agent" if self.is_subagent and event.role == "user" else event.role
            ts, named = event.ts or self.ts, event.origin or f"{origin}.{number}"
            yield LineResult(self.session, event._replace(ts=ts, agent=self.agent, role=role, origin=named))
        self.ts = events[-1].ts or self.ts

    def name_record(self, content: bytes) -> str:
        """Return the name of a record that has none of its own, by its content and by how often that came before."""
        digest = hashlib.sha256(content.strip(), usedforsecurity=False).digest()[:8]
        self._seen[digest] += 1
        return f"{self._prefix}:{digest.hex()}#{self._seen[digest] - 1}"

    def name(self, origin: str, ts: str) -> None:
        """Set origin and time of the events that have no origin yet to those of their part of a record."""
        unnamed = [number for number, event in enumerate(self.events) if event.origin is None]
        for part, number in enumerate(unnamed):
            self.events[number] = self.events[number]._replace(origin=f"{origin}.{part}", ts=ts)

    def add(self, event: Event) -> Event:
        """Add an event as it is, and return it."""
        self.events.append(event)
        return event

    def message(self, role: object, content: object, **known: Any) -> None:
        """Add a text by its role: a person's, an agent's, a tool's, or else a notice."""
        text = text_of(content)
        if not text.strip():
            return
        if role == "user":
            self.from_person(text)
        elif role == "assistant":
            self.add(Event(type="message", role="assistant", content=text, **known))
        elif role == "tool":
            self.tool_result(text, ok=None, **known)
        else:
            self.notice(text, **known)

    def from_person(self, text: str, role: str = "user") -> None:
        """Add a text in a person's place: what their agent added as notices, then their message."""
        sent, added = split_message(text)
        for one in added:
            self.notice(one)
        if sent:
            self.add(Event(type="message", role=role, content=sent))

    def notice(self, text: object, name: str = "notice", **known: Any) -> None:
        """Add what neither person nor agent said."""
        self.add(Event(type="event", event=name, role="system", content=text_of(text), **known))

    def error(self, text: object) -> None:
        """Add an error of the agent's own."""
        said = text_of(text)
        self.notice(said, "error", ok=False, error=said[:500])

    def thinking(self, content: object, **known: Any) -> None:
        """Add what an agent thought, if it says anything."""
        text = text_of(content)
        if text.strip():
            self.add(Event(type="event", event="thinking", role="assistant", content=text, **known))

    def call(self, tool: object, args: object, call_id: object = None, **known: Any) -> None:
        """Add a call."""
        name = printable_line(text_of(tool or "tool"))
        given = args if isinstance(args, dict) else None if args is None else {"value": args}
        id_ = _name_or_none(call_id)
        self._open[id_ or ""] = name, is_own_call(name, given)
        self.add(Event(type="tool_call", role="assistant", tool=name, call_id=id_, args=given, **known))

    def result(self, call_id: object, output: object, *, ok: bool | None, **known: Any) -> Event:
        """Add a call's result and return it; what memory-kb itself answered is marked as its own."""
        id_ = _name_or_none(call_id)
        name, is_own = self._open.pop(id_ or "", (None, False))
        injected = "whole" if is_own else None
        return self.tool_result(output, ok=ok, tool=name, call_id=id_, injected=injected, **known)

    def tool_result(self, output: object, *, ok: bool | None, **known: Any) -> Event:
        """Add a tool's answer whose call is unknown, and return it."""
        text = text_of(output)
        error = text.strip()[:500] or "failed" if ok is False else None
        return self.add(Event(type="tool_result", role="tool", ok=ok, error=error, content=text, **known))


def read_records(
    records: Iterable[tuple[str | bytes, dict[str, Any] | LineResult]],
    made: EventMaker,
    begun: LineResult,
    read: Callable[[Mapping[str, Any], EventMaker], None],
) -> Iterator[LineResult]:
    """Yield the start of a session and the events of its records; one without a time has that of the record before."""
    is_begun = False
    for name, record in records:
        if isinstance(record, LineResult):
            yield record
            continue
        if not is_begun:
            yield begun
            is_begun = True
        read(record, made)
        yield from made.results(name)


def _name_or_none(value: object) -> str | None:
    return printable_line(value) or None if isinstance(value, str) else None


def objects_in(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list; none of what is no list."""
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def object_of(value: object) -> dict[str, Any]:
    """Return a value that is an object, an empty object for any other."""
    return value if isinstance(value, dict) else {}
