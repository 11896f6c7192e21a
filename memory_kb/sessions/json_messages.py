"""Read sessions of Gemini CLI and of OpenCode: messages in one JSON object, or a line each.

Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, or `.json` of older versions; OpenCode: what
`opencode export SESSION > session.json` writes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from memory_kb.sessions.transcripts import (
    Calls,
    LineResult,
    RawLine,
    message,
    notice,
    numbered,
    of_subagent,
    records_of,
    results,
    thinking,
)
from memory_kb.store.events import Event, NoEvent, load_object, normal_time, printable_line, text_of
from memory_kb.store.json_arrays import iterate

GEMINI, OPENCODE = "gemini-cli", "opencode"
#: How a call of Gemini CLI is marked that is over.
_DONE = {"success": True, "error": False, "cancelled": False}
_EXIT = re.compile(r"(?m)^Exit Code: (-?\d+)\b")

Messages = Iterable[dict[str, Any] | LineResult]


def read_gemini(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the events of a session. A message is written again when it grows; its parts keep their origins."""
    rest = iter(lines)
    first = next((line for line in rest if line and line.strip()), b"")
    try:
        meta = load_object(first)
    except NoEvent:
        meta = {}
    if meta and "messages" not in meta:
        messages: Messages = (record for _, record in records_of(rest))
    else:
        meta, messages = read_document(itertools.chain([first], rest))
    args = {"project_hash": meta["projectHash"]} if isinstance(meta.get("projectHash"), str) else None
    ts = normal_time(meta.get("startTime"))
    start = Event(ts=ts, type="event", event="start", agent=GEMINI, args=args, origin="start")
    return _read(_text_or_none(meta.get("sessionId")), start, messages, _gemini_events)


def read_opencode(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the events of a session: its messages, each with parts of several kinds."""
    document, messages = read_document(lines)
    info = document["info"] if isinstance(document.get("info"), dict) else {}
    cwd = _text_or_none(info.get("directory"))
    start = Event(
        ts=_time(info, "created"),
        type="event",
        event="start",
        agent=f"{OPENCODE}-subagent" if info.get("parentID") else OPENCODE,
        args={"cwd": cwd} if cwd else None,
        content=_text_or_none(info.get("title")),
        origin="start",
    )
    return _read(_text_or_none(info.get("id")), start, messages, _opencode_events)


def _read(
    session: str | None,
    start: Event,
    messages: Messages,
    events_of: Callable[[Mapping[str, Any], Calls], Iterable[Event]],
) -> Iterator[LineResult]:
    """Yield the events of the messages; one without a time has that of the message before."""
    calls, ts, is_begun = Calls(), start.ts, False
    for one in messages:
        if isinstance(one, LineResult):
            yield one
            continue
        if not is_begun:
            yield LineResult(session, start)
            is_begun = True
        made = [event._replace(agent=start.agent, ts=event.ts or ts) for event in events_of(one, calls)]
        ts = made[-1].ts if made else ts
        yield from results(session, of_subagent(made) if start.agent == f"{OPENCODE}-subagent" else made)


def _gemini_events(message_: Mapping[str, Any], calls: Calls) -> Iterator[Event]:
    kind, name = message_.get("type"), f"gm:{printable_line(text_of(message_.get('id')))[:80]}"
    ts = normal_time(message_.get("timestamp"))
    if kind == "user":
        made = message("user", message_.get("displayContent") or message_.get("content"))
        yield from numbered(made, name, ts=ts)
    elif kind == "gemini":
        for event in _gemini_answer(message_, name, calls):
            yield event._replace(ts=event.ts or ts)
    elif kind in ("info", "warning", "error") and message_.get("content"):
        yield notice(message_["content"], str(kind), origin=f"{name}.0", ts=ts)


def _gemini_answer(answer: Mapping[str, Any], name: str, calls: Calls) -> Iterator[Event]:
    for number, thought in enumerate(_objects(answer.get("thoughts"))):
        text = ": ".join(filter(None, (text_of(thought.get("subject")), text_of(thought.get("description")))))
        yield from (event._replace(origin=f"{name}.thought{number}") for event in thinking(text))
    yield from (event._replace(origin=f"{name}.text") for event in message("assistant", answer.get("content")))
    for call in _objects(answer.get("toolCalls")):
        call_id, ts = text_of(call.get("id")), normal_time(call.get("timestamp"))
        origin, args = f"{name}.{printable_line(call_id)}", call.get("args")
        args = args if isinstance(args, dict) else None
        yield calls.call(call.get("name"), args, call_id, ts=ts, origin=f"{origin}.call")
        ok = _DONE.get(str(call.get("status")))
        if ok is not None:
            text = _gemini_output(call.get("result")) or text_of(call.get("resultDisplay"))
            code = _EXIT.search(text)
            ok = ok and not (code and int(code[1]))
            yield calls.result(call_id, text, ok=ok, ts=ts, origin=f"{origin}.result")


def _gemini_output(result: object) -> str:
    """Return what a tool answered: each part may hold it in `functionResponse.response`."""
    texts = []
    for part in result if isinstance(result, list) else [result]:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        response = answer.get("response") if isinstance(answer, dict) else None
        if isinstance(response, dict):
            texts.append(text_of(response.get("output", response.get("error", response))))
        elif part:
            texts.append(text_of(part))
    return "\n".join(texts)


def _opencode_events(message_: Mapping[str, Any], calls: Calls) -> Iterator[Event]:
    info = message_["info"] if isinstance(message_.get("info"), dict) else {}
    for part in _objects(message_.get("parts")) if info else ():
        name = printable_line(text_of(part.get("id") or info.get("id")))[:80]
        ts = _time(part, "start") or _time(info, "created")
        yield from numbered(_opencode_part(part, info.get("role"), calls), f"oc:{name}", ts=ts)


def _opencode_part(part: Mapping[str, Any], role: object, calls: Calls) -> Iterator[Event]:
    kind, text = part.get("type"), text_of(part.get("text") or "")
    if kind == "text":
        is_added = part.get("synthetic") is True or part.get("ignored") is True
        yield from message("system" if is_added else "user" if role == "user" else "assistant", text)
    elif kind == "reasoning":
        yield from thinking(text)
    elif kind == "tool":
        state = part["state"] if isinstance(part.get("state"), dict) else {}
        args, call_id, status = state.get("input"), part.get("callID"), state.get("status")
        yield calls.call(part.get("tool"), args if isinstance(args, dict) else None, call_id)
        if status in ("completed", "error"):
            metadata = state.get("metadata")
            code = metadata.get("exit") if isinstance(metadata, dict) else None
            output = state.get("output" if status == "completed" else "error")
            yield calls.result(call_id, output, ok=status == "completed" and code in (None, 0))


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(record: Mapping[str, Any], name: str) -> str:
    times = record.get("time")
    return normal_time(times.get(name)) if isinstance(times, dict) else ""


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def read_document(lines: Iterable[RawLine]) -> tuple[dict[str, Any], Messages]:
    """Return the object that lines of JSON hold, and its `messages`; a program may have printed something before.

    What is no valid JSON is yielded as a problem instead.

    Example:
        >>> document, messages = read_document([b'{"sessionId": "s",', b'"messages": [{"id": 1}]}'])
        >>> document["sessionId"], list(messages)
        ('s', [{'id': 1}])
    """
    rest = itertools.dropwhile(lambda line: not line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{"), filter(None, lines))
    whole = next(iterate(b"".join(rest).decode("utf-8", "replace")))
    if whole.wrong:
        return {}, [LineResult(problem=whole.wrong, line=1)]
    return whole.value, _objects(whole.value.get("messages"))
