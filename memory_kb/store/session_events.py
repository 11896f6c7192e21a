"""Parse and format `Event`, one line of a session."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.store.logs import format_time
from memory_kb.text import load_json

#: What `args` of a resumed session name as its source after a compaction.
COMPACTION = "compact"
#: Where the tools of agents have the file that they open or edit.
_FILE_ARGUMENTS = ("file_path", "notebook_path", "absolute_path", "path", "target_file", "filename", "file")
#: Deeper than this nothing is looked for in a JSON value.
_DEPTH = 40
#: A text is not cut for the sake of fewer characters than the mark of a cut has.
_MARK = 40


def printable_line(text: str) -> str:
    """Return a short name on one line."""
    return " ".join(text[:400].encode("utf-8", "replace").decode().split())


def text_of(value: object, depth: int = 0) -> str:
    """Return the text of a message's content: words, or blocks of several kinds.

    Example:
        >>> text_of([{"type": "text", "text": "look"}, {"type": "image", "source": {}}])
        'look\\n[image]'
    """
    if isinstance(value, str):
        return value
    if value is None or depth > _DEPTH:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (text_of(item, depth + 1) for item in value)))
    if isinstance(value, dict):
        for name in ("text", "thinking", "content", "output"):
            if isinstance(value.get(name), str | list):
                return text_of(value[name], depth + 1)
        kind = value.get("type")
        if isinstance(kind, str) and ("image" in kind or kind in ("document", "audio")):
            return "[image]" if "image" in kind else f"[{kind}]"
    return json.dumps(value, ensure_ascii=False, default=str)


def cut(text: str, limit: int) -> str:
    """Return head and tail of a text that is too long, saying what is missing."""
    if len(text) <= limit + _MARK:
        return text
    tail = limit // 4
    return f"{text[: limit - tail]}{missing(len(text) - limit)}{text[len(text) - tail :]}"


def missing(count: int) -> str:
    """Return what is in a text for the characters that were cut out."""
    return f"\n[… {count:,} characters …]\n"


def strings_of(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of a JSON value, without the names of its fields."""
    if isinstance(value, str):
        yield value
    elif depth < _DEPTH and isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from strings_of(item, depth + 1)


def named_file(args: Mapping[str, Any]) -> str:
    """Return the file that the arguments of a tool name, "" where they name none."""
    return next((args[name] for name in _FILE_ARGUMENTS if isinstance(args.get(name), str)), "")


EVENT_TYPES = ("message", "tool_call", "tool_result", "event")
STREAMS = ("intent", "exec")
SESSION_OUTCOMES = ("success", "failure", "mixed", "partial")
#: The words for `Event.injected`: all of the content is memory-kb's own text, or a part of it.
INJECTED = ("whole", "part")
#: The events that frame a session; they may be written long before or after the work itself.
FRAME = ("start", "resume", "end")
#: The longest text kept of one event, in characters; of a longer one head and tail stay.
MAX_EVENT_TEXT = 200_000
#: A line longer than this is no event of ours: JSON needs up to six bytes for a character.
MAX_LINE = 4_000_000


class Event(NamedTuple):
    """One event of a session; what is not known is None.

    Attributes:
        event: for the type `event`, which: `start`, `end`, `summary`, or a word of the writer's.
        seq: counts the events of a session from 1; 0 before it is written.
        ts: when it happened, in UTC, or "" before it is written.
        call_id: what a tool's result has in common with its call.
        origin: what an imported event was in its transcript; an origin is imported once.
        injected: whether the content is text that memory-kb itself gave the agent.
        extra: fields that are not ours, kept as they came.
    """

    ts: str = ""
    seq: int = 0
    session: str = ""
    job: str | None = None
    task: str | None = None
    agent: str | None = None
    stream: str | None = None
    type: str = "message"
    event: str | None = None
    role: str | None = None
    tool: str | None = None
    call_id: str | None = None
    args: Mapping[str, Any] | None = None
    ok: bool | None = None
    error: str | None = None
    content: str | None = None
    injected: str | None = None
    origin: str | None = None
    extra: Mapping[str, Any] = {}


_OWN = dict.fromkeys(name for name in Event._fields if name != "extra")
_TEXTS = tuple(name for name in _OWN if name not in ("ts", "seq", "type", "args", "ok", "content", "error"))


class EventFilter(NamedTuple):
    """The events that are asked for; an empty tuple or None leaves all in.

    `types` are words of `Event.type` or names of events; moments are as events have them, `until`
    is not included any more.
    """

    types: tuple[str, ...] = ()
    agent: str | None = None
    job: str | None = None
    task: str | None = None
    session: str | None = None
    since: str | None = None
    until: str | None = None

    def has(self, event: Event) -> bool:
        """Return whether an event is asked for."""
        return (
            (not self.types or event.type in self.types or event.event in self.types)
            and all(getattr(self, name) in (None, getattr(event, name)) for name in ("agent", "job", "task", "session"))
            and (self.since is None or event.ts >= self.since)
            and (self.until is None or event.ts < self.until)
        )


class NoEvent(ValueError):
    """A line that holds no event; the message says why."""


def parse_event(line: bytes | str) -> Event:
    """Read an event from its line, taking what can be taken.

    A field of ours with a value that is not of its kind is put into words; a type that is not ours
    becomes the name of an event.

    Raises:
        NoEvent: the line is not a JSON object.

    Example:
        >>> event = parse_event('{"type": "message", "role": "user", "content": "hi", "mood": 1}')
        >>> event.role, event.content, dict(event.extra)
        ('user', 'hi', {'mood': 1})
        >>> parse_event('{"type": "deployed"}').event
        'deployed'
    """
    if len(line) > MAX_LINE:
        raise NoEvent(f"longer than {MAX_LINE:,} bytes")
    return make_event(load_object(line))


def load_object(line: bytes | str) -> dict[str, Any]:
    """Return the JSON object on a line."""
    try:
        found = load_json(line if isinstance(line, str) else line.decode("utf-8", "replace"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise NoEvent("not a JSON object")
    return found


def unpack(value: object) -> object:
    """Return the object that is written as JSON into a text; anything else as it is.

    Example:
        >>> unpack('{"cmd": "ls"}'), unpack("*** Begin Patch")
        ({'cmd': 'ls'}, '*** Begin Patch')
    """
    try:
        return load_object(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
    except NoEvent:
        return value


def make_event(values: Mapping[str, Any]) -> Event:
    """Return an event with these fields."""
    known: dict[str, Any] = {name: _word(value) for name in _TEXTS if (value := values.get(name)) is not None}
    for name in ("content", "error"):
        if values.get(name) is not None:
            known[name] = text_of(values[name])
    args = values.get("args")
    if args is not None:
        known["args"] = args if isinstance(args, dict) else {"value": args}
    if isinstance(values.get("ok"), bool):
        known["ok"] = values["ok"]
    seq = values.get("seq")
    known["seq"] = seq if type(seq) is int and 0 < seq < 2**53 else 0
    known["ts"] = normal_time(values.get("ts"))
    if known.get("stream") not in STREAMS:
        known.pop("stream", None)
    if known.get("injected") not in INJECTED:
        known.pop("injected", None)
    kind = values.get("type")
    known["type"] = kind if kind in EVENT_TYPES else _default_type(values)
    if kind not in EVENT_TYPES and kind is not None:
        known.setdefault("event", _word(kind))
    return Event(**known, extra={name: value for name, value in values.items() if name not in _OWN})


def _default_type(values: Mapping[str, Any]) -> str:
    """Return the type of an event that names none of ours."""
    if values.get("type") is not None or values.get("event") is not None:
        return "event"
    return "message" if values.get("tool") is None else "tool_call" if values.get("ok") is None else "tool_result"


def _word(value: object) -> str:
    return printable_line(value if isinstance(value, str) else text_of(value))


#: A moment as events have it, if its numbers are those of a moment.
_NORMAL = lazy_regex(r"[0-9]{4}(-[0-9]{2}){2}T([0-9]{2}:){2}[0-9]{2}\.[0-9]{3}Z")


def normal_time(value: object) -> str:
    """Return a moment as UTC with milliseconds, or "" for what is none.

    Example:
        >>> normal_time("2026-03-01T13:00:00+01:00"), normal_time("soon"), normal_time(1767225600)
        ('2026-03-01T12:00:00.000Z', '', '2026-01-01T00:00:00.000Z')
    """
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
        elif type(value) in (int, float):
            assert isinstance(value, int | float)
            moment = datetime.fromtimestamp(value / 1000 if value > 10**11 else value, UTC)
        else:
            return ""
        return value if isinstance(value, str) and _NORMAL.fullmatch(value) else format_time(moment)
    except (ValueError, OverflowError, OSError):
        return ""


def format_event(event: Event) -> bytes:
    """Return the line of an event; one that is too long for a line loses the fields that are not ours.

    Example:
        >>> format_event(Event(ts="2026-01-01T00:00:00.000Z", seq=1, session="s", content="hi"))
        b'{"ts":"2026-01-01T00:00:00.000Z","seq":1,"session":"s","type":"message","content":"hi"}\\n'
    """
    line = _encode(event)
    if len(line) > MAX_LINE:
        args = event.args and {"value": cut(json.dumps(event.args, ensure_ascii=False, default=str), MAX_EVENT_TEXT)}
        line = _encode(event._replace(extra={}, args=args))
    return line


def _encode(event: Event) -> bytes:
    text = json.dumps(to_mapping(event), ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace") + b"\n"


def to_mapping(event: Event) -> dict[str, Any]:
    """Return what is known of an event, ours first, for JSON."""
    own = {name: value for name in _OWN if (value := getattr(event, name)) is not None}
    return own | {name: value for name, value in event.extra.items() if name not in own}


def searchable(event: Event) -> str:
    """Return the words by which an event is found: its content, its arguments, its error."""
    parts = [event.content or "", *(strings_of(event.args) if event.args else ())]
    if event.error and event.error not in (event.content or ""):
        parts.append(event.error)
    return "\n".join(part for part in parts if part)


def seconds_between(began: str, moment: str) -> float:
    """Return the seconds from one moment of a log to another, 0 where either is missing."""
    try:
        return max(0.0, (datetime.fromisoformat(moment) - datetime.fromisoformat(began)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
