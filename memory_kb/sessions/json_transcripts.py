"""Read transcripts in JSON: of Claude Code, Codex, Gemini CLI and OpenCode."""

from __future__ import annotations

import itertools
import json
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
from memory_kb.store.session_events import Event, NoEvent, load_object, normal_time, printable_line, text_of, unpack

# -- Claude Code: `~/.claude/projects/<project>/<session>.jsonl` ----------------------------------

#: Records in which a transcript names its session: titles come first.
_HEAD = 200
#: The blocks of a message that are calls, and those that are what an agent thought.
_CLAUDE_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_THOUGHTS = ("thinking", "redacted_thinking")
#: How a refused call ends where the person gave a reason.
_REFUSAL = re.compile(
    r"The user doesn't want to (?:proceed with this tool use|take this action)\b.{0,400}?\bthe user said:\s*(\S.*)",
    re.DOTALL,
)


def read_claude_code(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a transcript.

    Every record has an id of its own, so that the copies a resumed session begins with are known.
    """
    records = records_of(lines)
    head = list(itertools.islice(records, _HEAD))
    named = [one for _, one in head if isinstance(one, dict) and _session_of(one)]
    about: Mapping[str, Any] = next((one for one in named if "cwd" in one), named[0] if named else {})
    made = EventMaker("cc")
    made.session, made.ts = _session_of(about), normal_time(about.get("timestamp"))
    begun = set[str | None]()
    for line, record in itertools.chain(head, records):
        if isinstance(record, LineResult):
            yield record
            continue
        if (own := _session_of(record)) and own != made.session:
            made.session, about = own, record
        made.ts, made.agent = normal_time(record.get("timestamp")) or made.ts, "claude-code"
        _read_claude_record(record, made)
        if made.events and made.session not in begun:
            begun.add(made.session)
            yield made.begin(cwd=about.get("cwd"), branch=about.get("gitBranch"), version=about.get("version"))
        made.is_subagent = record.get("isSidechain") is True
        if made.is_subagent:
            made.agent = printable_line(text_of(record.get("agentId") or "subagent"))
        uuid = record.get("uuid")
        yield from made.results(f"cc:{printable_line(uuid)[:80]}" if isinstance(uuid, str) and uuid else line)


def _session_of(record: Mapping[str, Any]) -> str | None:
    named = record.get("sessionId", record.get("session_id"))
    return named if isinstance(named, str) and named else None


def _read_claude_record(record: Mapping[str, Any], made: EventMaker) -> None:
    kind = record.get("type")
    if kind in ("user", "assistant"):
        _read_claude_message(record, str(kind), made)
    elif kind == "summary" and record.get("summary"):
        made.notice(record["summary"], "summary")
    elif kind == "system" and record.get("content"):
        made.notice(record["content"], printable_line(text_of(record.get("subtype") or "notice")))
    elif kind == "attachment" and (prompt := object_of(record.get("attachment")).get("prompt")):
        made.from_person(text_of(prompt))  # written while the agent was at work


def _read_claude_message(record: Mapping[str, Any], role: str, made: EventMaker) -> None:
    held = record.get("message")
    content = held.get("content") if isinstance(held, dict) else record.get("content", held)
    if record.get("isCompactSummary") is True:
        made.notice(content, "summary")
    elif record.get("isMeta") is True:
        made.notice(content)
    elif record.get("isApiErrorMessage") is True:
        made.error(content)
    else:
        texts: list[object] = []
        for block in content if isinstance(content, list) else [content]:
            kind = str(object_of(block).get("type"))
            if kind in (*_CLAUDE_CALLS, *_THOUGHTS) or kind.endswith("tool_result"):
                made.message(role, texts)
                _read_claude_block(kind, object_of(block), made)
                texts = []
            elif block:
                texts.append(block)
        made.message(role, texts)


def _read_claude_block(kind: str, block: Mapping[str, Any], made: EventMaker) -> None:
    if kind in _CLAUDE_CALLS:
        made.call(block.get("name"), block.get("input"), block.get("id"))
    elif kind in _THOUGHTS:
        said = text_of(block.get("thinking") or "")
        made.add(Event(type="event", event="thinking", role="assistant", content=said))
    else:
        result = made.result(block.get("tool_use_id"), block.get("content"), ok=block.get("is_error") is not True)
        # What the person said where they refused a call is in its result.
        refusal = _REFUSAL.match(result.content or "") if result.ok is False and not result.injected else None
        if refusal and not (result.tool or "").startswith("mcp__"):
            made.from_person(refusal[1])


# -- Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl` ---------------------------------------

_CODEX_EXIT = re.compile(r"(?m)^(?:Exit code|Process exited with code):? (-?\d+)\b")
#: The items that are calls, with the name of a tool that has none of its own, and those that are their results.
_CODEX_CALLS = {
    "function_call": "tool",
    "custom_tool_call": "tool",
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool",
}
_CODEX_OUTPUTS = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output", "tool_search_output")


def read_codex(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a rollout, of the older form without envelopes too.

    Messages come as response items and again as event messages; the items are read. A fork begins
    with the records of what it was forked from: the first session named is the file's own.
    """
    made = EventMaker("cx", "codex")
    for line, record in records_of(lines):
        if isinstance(record, LineResult):
            yield record
            continue
        made.ts = normal_time(record.get("timestamp")) or made.ts
        kind, payload = _unwrap_codex(record)
        if kind != "session_meta":
            _read_codex_item(kind, payload, made)
        elif made.session is None and isinstance(payload.get("id"), str):
            made.session, made.is_subagent = payload["id"], "subagent" in object_of(payload.get("source"))
            made.agent = "codex-subagent" if made.is_subagent else "codex"
            branch = object_of(payload.get("git")).get("branch")
            yield made.begin(cwd=payload.get("cwd"), branch=branch, version=payload.get("cli_version"))
            continue
        yield from made.results(line)


def _unwrap_codex(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of a record and what it holds; before September 2025 these had no envelope."""
    kind, payload = record.get("type"), record.get("payload")
    if not isinstance(payload, dict):
        return "session_meta" if "id" in record and kind is None else str(kind), record
    return str(kind if kind in ("session_meta", "compacted") else payload.get("type")), payload


def _read_codex_item(kind: str, item: Mapping[str, Any], made: EventMaker) -> None:
    if kind == "message":
        made.message(item.get("role"), item.get("content"))
    elif kind == "reasoning":
        made.thinking(text_of(item.get("summary")) or item.get("content"))
    elif kind in _CODEX_CALLS:
        tool = printable_line(text_of(item.get("name") or _CODEX_CALLS[kind]))
        name = f"{item['namespace']}{tool}" if isinstance(item.get("namespace"), str) else tool
        args = unpack(item.get("arguments", item.get("action", item.get("input"))))
        made.call(name, args, item.get("call_id") or item.get("id"))
    elif kind in _CODEX_OUTPUTS:
        content, ok = read_tool_outcome(item.get("output", item.get("tools")))
        made.result(item.get("call_id"), content, ok=ok)
    elif kind == "compacted" and item.get("message"):
        made.notice(item["message"], "summary")
    elif kind in ("error", "stream_error"):
        made.error(item.get("message"))
    elif kind == "turn_aborted":
        made.notice(item.get("reason") or "aborted", "aborted")


def read_tool_outcome(output: object) -> tuple[str, bool | None]:
    """Return what a tool said and whether it succeeded, if that can be known.

    Example:
        >>> read_tool_outcome('{"output": "boom", "metadata": {"exit_code": 2}}'), read_tool_outcome("Exit code: 0")
        (('boom', False), ('Exit code: 0', True))
    """
    output = unpack(output)
    if not isinstance(output, dict):
        text = text_of(output)
        code_line = _CODEX_EXIT.search(text[:500])
        return text, int(code_line[1]) == 0 if code_line else None
    ok, code = output.get("success"), object_of(output.get("metadata")).get("exit_code")
    if isinstance(code, int):
        ok = code == 0
    said = output.get("output", output.get("content"))
    text = text_of(said) if said is not None else json.dumps(output, ensure_ascii=False)
    return text, ok if isinstance(ok, bool) else None


# -- Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, or `.json` of older versions ----
# -- OpenCode: what `opencode export SESSION > session.json` writes ------------------------------

#: How a call of Gemini CLI is marked that is over.
_GEMINI_DONE = {"success": True, "error": False, "cancelled": False}
_GEMINI_EXIT = re.compile(r"(?m)^Exit Code: (-?\d+)\b")

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
    made = EventMaker("gm", "gemini-cli")
    made.session, made.ts = _text_or_none(meta.get("sessionId")), normal_time(meta.get("startTime"))
    begun = made.begin(project_hash=_text_or_none(meta.get("projectHash")))
    return read_records((("", one) for one in messages), made, begun, _read_gemini_message)


def read_opencode(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the events of a session: its messages, each with parts of several kinds."""
    document, messages = read_document(lines)
    info = object_of(document.get("info"))
    made = EventMaker("oc", "opencode-subagent" if info.get("parentID") else "opencode")
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
    ok = _GEMINI_DONE.get(str(call.get("status")))
    if ok is not None:
        text = _gemini_output(call.get("result")) or text_of(call.get("resultDisplay"))
        code = _GEMINI_EXIT.search(text)
        ok = ok and not (code and int(code[1]))
        made.result(call_id, text, ok=ok, ts=ts, origin=f"{origin}.result")


def _gemini_output(result: object) -> str:
    """Return what a tool answered: each part may hold it in `functionResponse.response`."""
    texts = []
    for part in result if isinstance(result, list) else [result]:
        response = object_of(object_of(part).get("functionResponse")).get("response")
        if isinstance(response, dict):
            texts.append(text_of(response.get("output", response.get("error", response))))
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
    try:
        whole = load_object(b"".join(rest).decode("utf-8-sig", "replace"))
    except NoEvent as exc:
        return {}, [LineResult(problem=str(exc), line=1)]
    return whole, objects_in(whole.get("messages"))
