"""What becomes of an event before it is written, and which events are wanted back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from memory_kb.credentials import find_secret, redact
from memory_kb.errors import SecretRefused, UnreadableInput, UsageError
from memory_kb.notes.events import MAX_TEXT, Event, format_time
from memory_kb.notes.eventtext import cut, missing, strings_of
from memory_kb.notes.injected import is_own_call, judge

OUTCOMES = ("success", "failure", "mixed", "partial")
#: Longer than any credential.
_EDGE = 5_000
_MOST_TEXTS = 10_000
#: The short texts of an event; most writers take them from an argument.
_LABELS = ("role", "stream", "event", "tool", "call_id", "origin")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# What Windows takes for a device, whatever follows the dot.
_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")


def check_id(session: str) -> str:
    """Return a session id that may become the name of a file.

    Raises:
        UsageError: it may not.

    Example:
        >>> check_id("burst_20260321T120000_001")
        'burst_20260321T120000_001'
    """
    if find_secret(session):
        raise SecretRefused(str(find_secret(session)), "the session's name")
    if not _ID.fullmatch(session) or _DEVICES.match(session) or session.endswith("."):
        raise UsageError(
            f"{session[:80]!r} is not a session id", "use letters, digits, dots, dashes and underscores, at most 128"
        )
    return session


def new_ids(now: datetime) -> Iterator[str]:
    """Yield ids for a session that begins now, the next one where the first is taken (S0-2).

    Example:
        >>> from datetime import UTC
        >>> next(new_ids(datetime(2026, 3, 21, 12, 0, tzinfo=UTC)))
        'burst_20260321T120000_001'
    """
    stamp = format_time(now)[:19].replace("-", "").replace(":", "")
    for number in range(1, 100_000):
        yield f"burst_{stamp}_{number:03}"


def find_id(wanted: str, known: list[str]) -> str:
    """Return the session that an id or its unique beginning names.

    Raises:
        UnreadableInput: none, or several.
    """
    if wanted in known:
        return wanted
    fitting = [one for one in known if wanted and one.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UnreadableInput(
            f"{wanted!r} fits {len(fitting):,} sessions: {', '.join(fitting[-3:])} …", "give more characters"
        )
    there = (
        f"there are {', '.join(known[-3:])}{' and others: `memory-kb session list`' if len(known) > 3 else ''}"
        if known
        else "`memory-kb session start` begins one"
    )
    raise UnreadableInput(f"no session {wanted[:80]!r}", there)


class Prepared(NamedTuple):
    """An event as it is to be written, and the credentials that were taken out of it."""

    event: Event
    redacted: tuple[str, ...]


def prepare(draft: Event, now: datetime, start: Event | None = None) -> Prepared:
    """Return an event ready to be written.

    It gets the time where it has none, and job, task and agent of the session's start; credentials
    go, and memory-kb's own text is marked.

    Example:
        >>> from datetime import UTC
        >>> done = prepare(Event(content="use AKIAABCDEFGHIJKLMNOP"), datetime(2026, 1, 1, tzinfo=UTC), Event(event="start", job="api"))
        >>> done.event.content, done.event.job, done.redacted
        ('use [redacted: an AWS access key]', 'api', ('an AWS access key',))
    """
    found: set[str] = set()
    content, error = (text and _clean(text, found) for text in (draft.content, draft.error))
    begun = start if start and start.event == "start" else Event()
    labels: dict[str, Any] = {name: _clean(text, found) for name in _LABELS if (text := getattr(draft, name))}
    event = replace(
        draft,
        **labels,
        ts=draft.ts or format_time(now),
        job=_clean(draft.job or "", found) or begun.job,
        task=_clean(draft.task or "", found) or begun.task,
        agent=_clean(draft.agent or "", found) or begun.agent,
        content=content,
        error=error,
        args=None if draft.args is None else _clean_values(draft.args, found),
        extra=_clean_values(draft.extra, found) if draft.extra else {},
        injected=draft.injected or _judge(draft, content),
    )
    return Prepared(event, tuple(sorted(found)))


def correct_end(last: Event | None, new: Event) -> tuple[Event | None, str]:
    """Return the end to write of a session, None where it is there already, and what it corrects.

    The last word on outcome and summary counts; what it does not speak of stays.

    Example:
        >>> last = Event(event="end", args={"outcome": "success"}, content="Done.")
        >>> event, correction = correct_end(last, Event(event="end", args={"outcome": "failure"}))
        >>> event.args, event.content, correction
        ({'outcome': 'failure'}, 'Done.', 'It had been ended as success; now failure counts.')
        >>> correct_end(last, Event(event="end"))
        (None, '')
    """
    if last is None:
        return new, ""
    before, outcome = (last.args or {}).get("outcome"), (new.args or {}).get("outcome")
    is_other, is_retold = outcome not in (None, before), new.content not in (None, last.content)
    if not (is_other or is_retold):
        return None, ""
    told = f"It had been ended as {before}; now {outcome} counts." if is_other and before else ""
    told = told or ("Its summary is replaced." if is_retold and last.content else "")
    return replace(new, args=new.args or last.args, content=last.content if new.content is None else new.content), told


def _judge(draft: Event, content: str | None) -> str | None:
    if draft.type == "tool_result" and is_own_call(draft.tool, draft.args):
        return "whole"
    return judge(content) if content else None


def _clean(text: str, found: set[str], name: str = "") -> str:
    """Return a text without credentials, cut; the name of its field may tell one."""
    if len(text) > MAX_TEXT + _EDGE:
        return _clean_long(text, found)
    done = redact(text)
    if not done.found and name and len(text) < 1000:
        named = redact(f"{name}={text}")
        done = (
            named._replace(text=named.text[len(name) + 1 :])
            if named.found and named.text.startswith(f"{name}=")
            else done
        )
    found.update(done.found)
    return cut(done.text, MAX_TEXT)


def _clean_long(text: str, found: set[str]) -> str:
    """Return head and tail of a long text.

    More than that is looked through, so that no half of a credential is left at an edge.
    """
    tail = MAX_TEXT // 4
    first, last = redact(text[: MAX_TEXT - tail + _EDGE]), redact(text[-tail - _EDGE :])
    found.update((*first.found, *last.found))
    head = first.text[: min(MAX_TEXT - tail, max(0, len(first.text) - _EDGE))]
    return f"{head}{missing(len(text) - MAX_TEXT)}{last.text[_EDGE:][-tail:]}"


def _clean_values(values: Mapping[str, Any], found: set[str]) -> dict[str, Any]:
    sizes = [len(text) for text in strings_of(values)]
    if sum(sizes) > 4 * MAX_TEXT or len(sizes) > _MOST_TEXTS:
        return {"value": _clean(json.dumps(values, ensure_ascii=False, default=str), found)}
    return {_clean(name, found): _clean_value(name, value, found, 0) for name, value in values.items()}


def _clean_value(name: str, value: Any, found: set[str], depth: int) -> Any:
    if isinstance(value, str):
        return _clean(value, found, name)
    if depth > 40:
        return None
    if isinstance(value, Mapping):
        return {_clean(str(key), found): _clean_value(str(key), item, found, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_value(name, item, found, depth + 1) for item in value]
    return value


def parse_moment(text: str, *, is_end: bool = False) -> str:
    """Return a day or a moment as events have it; for the end of a span, a day is over after it.

    Raises:
        UsageError: it is neither.

    Example:
        >>> parse_moment("2026-03-01"), parse_moment("2026-03-01", is_end=True), parse_moment("2026-03-01T12:30:00Z")
        ('2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z', '2026-03-01T12:30:00.000Z')
    """
    try:
        if len(text) == 10:
            return format_time(datetime.combine(date.fromisoformat(text) + timedelta(days=is_end), time.min))
        return format_time(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as exc:
        raise UsageError(f"{text!r} is not a day or a moment", "write 2026-03-01 or 2026-03-01T12:00:00Z") from exc
