"""Convert transcripts of other tools to events: what all readers share.

The readers are pure: lines in, events out, one at a time. They skip and report
what they do not know; nothing in a transcript makes them fail.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from memory_kb.injected import is_own_call
from memory_kb.learning.user_text import split_message
from memory_kb.store.events import Event, NoEvent, load_object, printable_line, text_of

#: A line of a transcript may hold an image; longer ones are passed over.
MAX_RECORD = 32_000_000
FORMATS = ("claude-code", "codex", "gemini-cli", "opencode", "cursor", "specstory", "aider", "markdown")


class LineResult(NamedTuple):
    """What a reader made of one line: an event of a session, a problem, or neither.

    `session` is None where the transcript does not name its own; `line` is where a problem is.
    """

    session: str | None = None
    event: Event | None = None
    problem: str | None = None
    line: int = 0


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


def results(session: str | None, events: Iterable[Event], origin: str = "", **known: Any) -> Iterator[LineResult]:
    """Yield what a reader made of one record, which may be nothing.

    `known` is what its events have in common; one without an origin gets that of the record and a number.
    """
    made = [
        LineResult(session, event._replace(origin=event.origin or f"{origin}.{number}", **known))
        for number, event in enumerate(events)
    ]
    yield from made or [LineResult(session)]


class Origins:
    """Names for what has none of its own: the same lines get the same names every time."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._seen: Counter[bytes] = Counter()

    def name(self, content: bytes) -> str:
        """Return the name of a content, by what it is and how often it came before."""
        digest = hashlib.sha256(content.strip(), usedforsecurity=False).digest()[:8]
        self._seen[digest] += 1
        return f"{self._prefix}:{digest.hex()}#{self._seen[digest] - 1}"


def start(ts: str = "", agent: str | None = None, content: str | None = None, **known: object) -> Event:
    """Return the event with which a session begins; its arguments are what is known of it, such as `cwd`."""
    args = {name: value for name, value in known.items() if value}
    return Event(ts=ts, type="event", event="start", agent=agent, args=args or None, content=content, origin="start")


class EventMaker:
    """Makes events of what the records of a session say; a result is known by the call that it answers.

    Example:
        >>> made = EventMaker()
        >>> for role in ("user", "assistant", "developer"):
        ...     made.message(role, "Hi.<system-reminder>Be brief.</system-reminder>" if role == "user" else "Hi.")
        >>> [(event.type, event.role, event.content) for event in made.take()][1:]
        [('message', 'user', 'Hi.'), ('message', 'assistant', 'Hi.'), ('event', 'system', 'Hi.')]
    """

    def __init__(self) -> None:
        self._made: list[Event] = []
        self._open: dict[str, tuple[str, bool]] = {}

    def take(self) -> list[Event]:
        """Return the events that were made since the last time."""
        made, self._made = self._made, []
        return made

    def name(self, origin: str, ts: str) -> None:
        """Give the events without an origin the one of the part of a record that they were in, and its time."""
        unnamed = [number for number, event in enumerate(self._made) if event.origin is None]
        for part, number in enumerate(unnamed):
            self._made[number] = self._made[number]._replace(origin=f"{origin}.{part}", ts=ts)

    def add(self, event: Event) -> Event:
        """Add an event as it is, and return it."""
        self._made.append(event)
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

    def result(
        self, call_id: object, output: object, *, ok: bool | None, tool: str | None = None, **known: Any
    ) -> Event:
        """Add a call's result and return it; what memory-kb itself answered is marked as its own."""
        id_ = _name_or_none(call_id)
        name, is_own = self._open.pop(id_ or "", (None, False))
        injected = "whole" if is_own else None
        return self.tool_result(output, ok=ok, tool=tool or name, call_id=id_, injected=injected, **known)

    def tool_result(self, output: object, *, ok: bool | None, **known: Any) -> Event:
        """Add a tool's answer whose call nobody knows, and return it."""
        text = text_of(output)
        error = text.strip()[:500] or "failed" if ok is False else None
        return self.add(Event(type="tool_result", role="tool", ok=ok, error=error, content=text, **known))


def _name_or_none(value: object) -> str | None:
    return printable_line(value) or None if isinstance(value, str) else None


def of_subagent(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events of a subagent: what its user said came from another agent."""
    return (event._replace(role="agent") if event.role == "user" else event for event in events)


def objects_in(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list; none of what is no list."""
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def object_of(value: object) -> dict[str, Any]:
    """Return an object as it is, and what is none as an empty one."""
    return value if isinstance(value, dict) else {}
