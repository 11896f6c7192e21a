"""Read rollouts of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memory_kb.sessions.transcripts import EventMaker, LineResult, RawLine, object_of, records_of
from memory_kb.store.session_events import normal_time, printable_line, text_of, unpack

AGENT = "codex"
_EXIT = re.compile(r"(?m)^(?:Exit code|Process exited with code):? (-?\d+)\b")
#: The items that are calls, with the name of a tool that has none of its own, and those that are their results.
_CALLS = {
    "function_call": "tool",
    "custom_tool_call": "tool",
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool",
}
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output", "tool_search_output")


def read_codex(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a rollout, of the older form without envelopes too.

    Messages come as response items and again as event messages; the items are read. A fork begins
    with the records of what it was forked from: the first session named is the file's own.
    """
    made = EventMaker("cx", AGENT)
    for line, record in records_of(lines):
        if isinstance(record, LineResult):
            yield record
            continue
        made.ts = normal_time(record.get("timestamp")) or made.ts
        kind, payload = _unwrap(record)
        if kind != "session_meta":
            _read_item(kind, payload, made)
        elif made.session is None and isinstance(payload.get("id"), str):
            made.session, made.is_subagent = payload["id"], "subagent" in object_of(payload.get("source"))
            made.agent = "codex-subagent" if made.is_subagent else AGENT
            branch = object_of(payload.get("git")).get("branch")
            yield made.begin(cwd=payload.get("cwd"), branch=branch, version=payload.get("cli_version"))
            continue
        yield from made.results(line)


def _unwrap(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of a record and what it holds; in the older form these have no envelope."""
    kind, payload = record.get("type"), record.get("payload")
    if not isinstance(payload, dict):
        return "session_meta" if "id" in record and kind is None else str(kind), record
    if kind == "session_meta":
        return kind, payload["meta"] if isinstance(payload.get("meta"), dict) else payload
    return kind if kind == "compacted" else str(payload.get("type")), payload


def _read_item(kind: str, item: Mapping[str, Any], made: EventMaker) -> None:
    if kind == "message":
        made.message(item.get("role"), item.get("content"))
    elif kind == "reasoning":
        made.thinking(text_of(item.get("summary")) or item.get("content"))
    elif kind in _CALLS:
        tool = printable_line(text_of(item.get("name") or _CALLS[kind]))
        name = f"{item['namespace']}{tool}" if isinstance(item.get("namespace"), str) else tool
        args = unpack(item.get("arguments", item.get("action", item.get("input"))))
        made.call(name, args, item.get("call_id") or item.get("id"))
    elif kind in _OUTPUTS:
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
        code_line = _EXIT.search(text[:500])
        return text, int(code_line[1]) == 0 if code_line else None
    ok, code = output.get("success"), object_of(output.get("metadata")).get("exit_code")
    if isinstance(code, int):
        ok = code == 0
    elif output.get("isError") is True:
        ok = False
    said = output.get("output", output.get("content"))
    text = text_of(said) if said is not None else json.dumps(output, ensure_ascii=False)
    return text, ok if isinstance(ok, bool) else None
