"""Read sessions of Gemini CLI and of OpenCode: messages in one JSON object, or a line each.

Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, or `.json` of older versions; OpenCode: what
`opencode export SESSION > session.json` writes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memory_kb.sessions.transcripts import (
    EventMaker,
    LineResult,
    RawLine,
    object_of,
    objects_in,
    read_records,
    records_of,
)
from memory_kb.store.json_lines import iterate_array
from memory_kb.store.session_events import NoEvent, load_object, normal_time, printable_line, text_of

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
    made = EventMaker("gm", GEMINI)
    made.session, made.ts = _text_or_none(meta.get("sessionId")), normal_time(meta.get("startTime"))
    begun = made.begin(project_hash=_text_or_none(meta.get("projectHash")))
    return read_records((("", one) for one in messages), made, begun, _read_gemini_message)


def read_opencode(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the events of a session: its messages, each with parts of several kinds."""
    document, messages = read_document(lines)
    info = object_of(document.get("info"))
    made = EventMaker("oc", f"{OPENCODE}-subagent" if info.get("parentID") else OPENCODE)
    made.session, made.ts = _text_or_none(info.get("id")), _time(info, "created")
    made.is_subagent = bool(info.get("parentID"))
    begun = made.begin(_text_or_none(info.get("title")), cwd=_text_or_none(info.get("directory")))
    return read_records((("", one) for one in messages), made, begun, _read_opencode_message)


def _read_gemini_message(message: Mapping[str, Any], made: EventMaker) -> None:
    kind, name = message.get("type"), f"gm:{printable_line(text_of(message.get('id')))[:80]}"
    ts = normal_time(message.get("timestamp"))
    if kind == "user":
        made.message("user", message.get("displayContent") or message.get("content"))
        made.name(name, ts)
    elif kind == "gemini":
        for number, thought in enumerate(objects_in(message.get("thoughts"))):
            said = (text_of(thought.get("subject")), text_of(thought.get("description")))
            made.thinking(": ".join(filter(None, said)), origin=f"{name}.thought{number}", ts=ts)
        made.message("assistant", message.get("content"), origin=f"{name}.text", ts=ts)
        for call in objects_in(message.get("toolCalls")):
            _read_gemini_call(call, name, ts, made)
    elif kind in ("info", "warning", "error") and message.get("content"):
        made.notice(message["content"], str(kind), origin=f"{name}.0", ts=ts)


def _read_gemini_call(call: Mapping[str, Any], name: str, ts: str, made: EventMaker) -> None:
    call_id, ts = text_of(call.get("id")), normal_time(call.get("timestamp")) or ts
    origin, args = f"{name}.{printable_line(call_id)}", call.get("args")
    made.call(call.get("name"), args if isinstance(args, dict) else None, call_id, ts=ts, origin=f"{origin}.call")
    ok = _DONE.get(str(call.get("status")))
    if ok is not None:
        text = _gemini_output(call.get("result")) or text_of(call.get("resultDisplay"))
        code = _EXIT.search(text)
        ok = ok and not (code and int(code[1]))
        made.result(call_id, text, ok=ok, ts=ts, origin=f"{origin}.result")


def _gemini_output(result: object) -> str:
    """Return what a tool answered: each part may hold it in `functionResponse.response`."""
    texts = []
    for part in result if isinstance(result, list) else [result]:
        response = object_of(object_of(part).get("functionResponse")).get("response")
        if isinstance(response, dict):
            texts.append(text_of(response.get("output", response.get("error", response))))
        elif part:
            texts.append(text_of(part))
    return "\n".join(texts)


def _read_opencode_message(message: Mapping[str, Any], made: EventMaker) -> None:
    info = object_of(message.get("info"))
    for part in objects_in(message.get("parts")) if info else ():
        name = printable_line(text_of(part.get("id") or info.get("id")))[:80]
        _read_opencode_part(part, info.get("role"), made)
        made.name(f"oc:{name}", _time(part, "start") or _time(info, "created"))


def _read_opencode_part(part: Mapping[str, Any], role: object, made: EventMaker) -> None:
    kind, text = part.get("type"), text_of(part.get("text") or "")
    if kind == "text":
        is_added = part.get("synthetic") is True or part.get("ignored") is True
        made.message("system" if is_added else "user" if role == "user" else "assistant", text)
    elif kind == "reasoning":
        made.thinking(text)
    elif kind == "tool":
        state = object_of(part.get("state"))
        args, call_id, status = state.get("input"), part.get("callID"), state.get("status")
        made.call(part.get("tool"), args if isinstance(args, dict) else None, call_id)
        if status in ("completed", "error"):
            code = object_of(state.get("metadata")).get("exit")
            output = state.get("output" if status == "completed" else "error")
            made.result(call_id, output, ok=status == "completed" and code in (None, 0))


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(record: Mapping[str, Any], name: str) -> str:
    return normal_time(object_of(record.get("time")).get(name))


def read_document(lines: Iterable[RawLine]) -> tuple[dict[str, Any], Messages]:
    """Return the object that lines of JSON hold, and its `messages`; a program may have printed something before.

    What is no valid JSON is yielded as a problem instead.

    Example:
        >>> document, messages = read_document([b'{"sessionId": "s",', b'"messages": [{"id": 1}]}'])
        >>> document["sessionId"], list(messages)
        ('s', [{'id': 1}])
    """
    rest = itertools.dropwhile(lambda line: not line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{"), filter(None, lines))
    whole = next(iterate_array(b"".join(rest).decode("utf-8", "replace")))
    if whole.wrong:
        return {}, [LineResult(problem=whole.wrong, line=1)]
    return whole.value, objects_in(whole.value.get("messages"))
