"""Read sessions of Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, or `.json` of older versions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from memory_kb.injected import is_own_call
from memory_kb.sessions.documents import field_of, open_document
from memory_kb.sessions.transcripts import LineResult, RawLine, from_person, notice, records_of, tool_result
from memory_kb.store.events import Event, NoEvent, load_object, normal_time, printable_line, text_of

AGENT = "gemini-cli"
_META = ("sessionId", "projectHash", "startTime")
#: How a call is marked that is over.
_DONE = {"success": True, "error": False, "cancelled": False}
_EXIT = re.compile(r"(?m)^Exit Code: (-?\d+)\b")


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a session. A message is written again when it grows; its parts keep their origins."""
    rest = iter(lines)
    first = next((line for line in rest if line and line.strip()), b"")
    try:
        meta = load_object(first)
    except NoEvent:
        meta = {}
    if meta and "messages" not in meta:
        messages: Iterator[dict[str, Any] | LineResult] = (record for _, record in records_of(rest))
    else:
        head, messages = open_document(chain([first], rest))
        meta = {name: field_of(head, name) for name in _META}
    session = meta.get("sessionId")
    session = session if isinstance(session, str) else None
    args = {"project_hash": meta["projectHash"]} if isinstance(meta.get("projectHash"), str) else None
    ts = normal_time(meta.get("startTime"))
    start = Event(ts=ts, type="event", event="start", agent=AGENT, args=args, origin="start")
    for number, message in enumerate(messages):
        if isinstance(message, LineResult):
            yield message
            continue
        if number == 0:
            yield LineResult(session, start)
        made = list(_events(message))
        ts = normal_time(message.get("timestamp")) or ts
        yield from (LineResult(session, event._replace(ts=event.ts or ts, agent=AGENT)) for event in made)
        if not made:
            yield LineResult(session)


def _events(message: Mapping[str, Any]) -> Iterator[Event]:
    kind, name = message.get("type"), f"gm:{printable_line(text_of(message.get('id')))[:80]}"
    if kind == "user":
        text = text_of(message.get("displayContent") or message.get("content"))
        for number, event in enumerate(from_person(text)):
            yield event._replace(origin=f"{name}.{number}")
    elif kind == "gemini":
        yield from _answer(message, name)
    elif kind in ("info", "warning", "error") and message.get("content"):
        yield notice(message["content"], str(kind), origin=f"{name}.0")


def _answer(message: Mapping[str, Any], name: str) -> Iterator[Event]:
    for number, thought in enumerate(_objects(message.get("thoughts"))):
        text = ": ".join(filter(None, (text_of(thought.get("subject")), text_of(thought.get("description")))))
        yield Event(type="event", event="thinking", role="assistant", content=text, origin=f"{name}.thought{number}")
    text = text_of(message.get("content"))
    if text.strip():
        yield Event(type="message", role="assistant", content=text, origin=f"{name}.text")
    for call in _objects(message.get("toolCalls")):
        yield from _call(call, name)


def _call(call: Mapping[str, Any], name: str) -> Iterator[Event]:
    tool, call_id = printable_line(text_of(call.get("name") or "tool")), printable_line(text_of(call.get("id")))
    args = call["args"] if isinstance(call.get("args"), dict) else None
    known: dict[str, Any] = {"tool": tool, "call_id": call_id or None, "ts": normal_time(call.get("timestamp"))}
    yield Event(type="tool_call", role="assistant", args=args, origin=f"{name}.{call_id}.call", **known)
    ok = _DONE.get(str(call.get("status")))
    if ok is None:
        return
    text = _output(call.get("result")) or text_of(call.get("resultDisplay"))
    code = _EXIT.search(text)
    made = tool_result(text, ok=ok and not (code and int(code[1])), origin=f"{name}.{call_id}.result", **known)
    yield made._replace(injected="whole") if is_own_call(tool, args) else made


def _output(result: object) -> str:
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


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())
