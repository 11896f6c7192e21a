"""Turn what other tools keep of a session into events.

The readers are pure: lines in, events out, one at a time. What they do not know they pass over,
and say so; nothing in a transcript makes them fail.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple

from memory_kb.learning.logs.wrappers import split_message
from memory_kb.notes.events import Event, NoEvent, load_object
from memory_kb.notes.eventtext import text_of

#: A line of a transcript may hold an image; longer ones are passed over.
MAX_RECORD = 32_000_000
FORMATS = ("claude-code", "codex", "gemini-cli", "opencode", "cursor", "specstory", "aider", "markdown")
_SNIFFED_LINES = 50
#: A JSON object, perhaps after a line or two that a program printed.
_JSON_START = re.compile(r"(?:[^{\n]*\n){0,3}\s*\{\s*(?:\"|\n)")
_CODEX_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


class Found(NamedTuple):
    """What a reader made of one line: an event of a session, a problem, or neither.

    `session` is None where the transcript does not name its own; `line` is where a problem is.
    """

    session: str | None = None
    event: Event | None = None
    problem: str | None = None
    line: int = 0


#: A line of a transcript, or None for one that is too long to be read.
RawLine = bytes | None
Reader = Callable[[Iterable[RawLine]], Iterator[Found]]


def sniff(lines: Iterable[RawLine]) -> str | None:
    """Return the format of a transcript, or None for a text of no known shape.

    Example:
        >>> sniff([b'{"type": "user", "sessionId": "s", "message": {}}']), sniff([b"## User", b"hi", b"## Claude", b"hello"])
        ('claude-code', 'markdown')
        >>> sniff([b"a:hover {", b"  cursor: pointer;", b"}"])
    """
    rest = iter(lines)
    head = list(islice(rest, _SNIFFED_LINES))
    records = list(_objects(head))
    for record in records:
        if kind := _kind_of(record):
            return kind
    text = "\n".join((line or b"").decode("utf-8", "replace").rstrip("\r\n") for line in head)
    if records:
        return None
    if _JSON_START.match(text):
        return _kind_of_document(text)
    return _kind_of_markdown(text, chain(head, rest))


def _objects(lines: Iterable[RawLine]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with suppress(NoEvent):
            yield load_object(line or b"")


def _kind_of(record: Mapping[str, Any]) -> str | None:
    """Return the format that has such a line."""
    kind = record.get("type")
    if isinstance(record.get("payload"), dict) and kind in _CODEX_TYPES:
        return "codex"
    if "sessionId" in record and "projectHash" in record:
        return "gemini-cli"
    if isinstance(record.get("info"), dict) and isinstance(record.get("messages"), list):
        return "opencode"
    if isinstance(record.get("message"), dict) and kind is None and record.get("role") in ("user", "assistant"):
        return "cursor"
    if "sessionId" in record or "leafUuid" in record or isinstance(record.get("message"), dict):
        return "claude-code"
    if "tool_input" in record:
        return "claude-code"
    if record.get("record_type") or ("id" in record and "timestamp" in record and kind is None):
        return "codex"
    return None


def _kind_of_document(text: str) -> str | None:
    """Return the format of a JSON object that is written on several lines, by its first fields."""
    if '"sessionId"' in text and '"projectHash"' in text:
        return "gemini-cli"
    is_opencode = re.search(r'"info"\s*:\s*\{', text) and re.search(r'"(?:projectID|directory|slug)"\s*:', text)
    return "opencode" if is_opencode else None


def _kind_of_markdown(text: str, lines: Iterable[RawLine]) -> str | None:
    from memory_kb.learning.logs import aider, chats, cursor, specstory

    if specstory.SIGN in text:
        return "specstory"
    if any(aider.START.fullmatch(line) for line in text.split("\n")):
        return "aider"
    if cursor.SIGN.search(text):
        return "cursor"
    return "markdown" if chats.is_conversation(lines) else None


def reader_of(kind: str) -> Reader:
    """Return the reader of a format."""
    from memory_kb.learning.logs import aider, chats, claude_code, codex, cursor, gemini, opencode, specstory

    return {
        "claude-code": claude_code.read,
        "codex": codex.read,
        "gemini-cli": gemini.read,
        "opencode": opencode.read,
        "cursor": cursor.read,
        "specstory": specstory.read,
        "aider": aider.read,
        "markdown": chats.read,
    }[kind]


def records_of(lines: Iterable[RawLine]) -> Iterator[tuple[bytes, dict[str, Any] | Found]]:
    """Yield every line that is not empty with its object, or with the problem it has."""
    for number, line in enumerate(lines, 1):
        if line is None:
            yield b"", Found(problem=f"longer than {MAX_RECORD:,} bytes", line=number)
        elif line.strip():
            try:
                yield line, load_object(line)
            except NoEvent as exc:
                yield line, Found(problem=str(exc), line=number)


class Origins:
    """Names for what has none of its own: the same lines get the same names every time."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._seen: Counter[bytes] = Counter()

    def name(self, content: bytes) -> str:
        """Return the name of a content, by what it is and how often it came before.

        Example:
            >>> origins = Origins("md")
            >>> origins.name(b"yes") == origins.name(b"yes"), origins.name(b"yes")[-2:]
            (False, '#2')
        """
        digest = hashlib.sha256(content.strip(), usedforsecurity=False).digest()[:8]
        self._seen[digest] += 1
        return f"{self._prefix}:{digest.hex()}#{self._seen[digest] - 1}"


def from_person(text: str, **known: Any) -> Iterator[Event]:
    """Yield the events of a text in a person's place: what their agent added as notices, then their message.

    Example:
        >>> [(event.type, event.content) for event in from_person("Fix it.<system-reminder>Be brief.</system-reminder>")]
        [('event', '<system-reminder>Be brief.</system-reminder>'), ('message', 'Fix it.')]
    """
    sent, added = split_message(text)
    for addition in added:
        yield notice(addition, **known)
    if sent:
        yield Event(type="message", content=sent, **({"role": "user"} | known))


def notice(text: object, name: str = "notice", **known: Any) -> Event:
    """Return an event for what neither person nor agent said."""
    return Event(type="event", event=name, content=text_of(text), **(known | {"role": "system"}))


def tool_result(output: object, *, ok: bool | None, **known: Any) -> Event:
    """Return the event of a tool's answer."""
    text = text_of(output)
    error = text.strip()[:500] or "failed" if ok is False else None
    return Event(type="tool_result", role="tool", ok=ok, error=error, content=text, **known)
