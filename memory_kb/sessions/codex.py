"""Read rollouts of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memory_kb.sessions.transcripts import (
    Calls,
    LineResult,
    Origins,
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

AGENT = "codex"
_EXIT = re.compile(r"(?m)^(?:Exit code|Process exited with code):? (-?\d+)\b")
_CALLS = {
    "function_call": "tool",
    "custom_tool_call": "tool",
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool",
}
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output", "tool_search_output")
_ITEMS = ("message", "reasoning", *_CALLS, *_OUTPUTS)


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a rollout, of the older form without envelopes too.

    Messages come as response items and again as event messages; the items are read. A fork begins
    with the records of what it was forked from: the first session named is the file's own.
    """
    rollout, origins = _Rollout(), Origins("cx")
    for line, record in records_of(lines):
        if isinstance(record, LineResult):
            yield record
            continue
        events = list(rollout.events(record))
        name = origins.name(line) if events else ""
        yield from results(rollout.session, numbered(events, name, ts=rollout.ts, agent=rollout.agent))


class _Rollout:
    """What the records so far say about the next one."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.ts = ""
        self.agent = AGENT
        self._calls = Calls()

    def events(self, record: Mapping[str, Any]) -> Iterator[Event]:
        """Return the events of a record, without what all of them share."""
        self.ts = normal_time(record.get("timestamp")) or self.ts
        kind, payload = record.get("type"), record.get("payload")
        if isinstance(payload, dict):
            made = self._enveloped(str(kind), payload)
        elif kind in _ITEMS:
            made = self._item(record)
        else:
            made = self._begin(record) if "id" in record and kind is None else iter(())
        events = list(made)
        return iter(events) if self.agent == AGENT else of_subagent(events)

    def _enveloped(self, kind: str, payload: Mapping[str, Any]) -> Iterator[Event]:
        if kind == "session_meta":
            meta = payload.get("meta")
            yield from self._begin(meta if isinstance(meta, dict) else payload)
        elif kind == "response_item":
            yield from self._item(payload)
        elif kind == "compacted" and payload.get("message"):
            yield notice(payload["message"], "summary")
        elif kind == "event_msg":
            what = payload.get("type")
            if what in ("error", "stream_error"):
                text = text_of(payload.get("message"))
                yield notice(text, "error", ok=False, error=text[:500])
            elif what == "turn_aborted":
                yield notice(payload.get("reason") or "aborted", "aborted")

    def _begin(self, meta: Mapping[str, Any]) -> Iterator[Event]:
        named, source, git = (meta.get(name) for name in ("id", "source", "git"))
        if self.session is not None or not isinstance(named, str):
            return
        self.session = named
        if isinstance(source, dict) and "subagent" in source:
            self.agent = "codex-subagent"
        branch = git.get("branch") if isinstance(git, dict) else None
        known = {"cwd": meta.get("cwd"), "branch": branch, "version": meta.get("cli_version")}
        args = {name: value for name, value in known.items() if value}
        yield Event(type="event", event="start", args=args or None, origin="start")

    def _item(self, item: Mapping[str, Any]) -> Iterator[Event]:
        kind = item.get("type")
        if kind == "message":
            yield from message(item.get("role"), item.get("content"))
        elif kind == "reasoning":
            yield from thinking(text_of(item.get("summary")) or item.get("content"))
        elif kind in _CALLS:
            tool = printable_line(text_of(item.get("name") or _CALLS[str(kind)]))
            name = f"{item['namespace']}{tool}" if isinstance(item.get("namespace"), str) else tool
            args = _arguments(item.get("arguments", item.get("action", item.get("input"))))
            yield self._calls.call(name, args, item.get("call_id") or item.get("id"))
        elif kind in _OUTPUTS:
            content, ok = read_outcome(item.get("output", item.get("tools")))
            yield self._calls.result(item.get("call_id"), content, ok=ok)


def _arguments(value: object) -> object:
    """Return the arguments of a call, which may come as JSON in a text.

    Example:
        >>> _arguments('{"cmd": "ls"}'), _arguments("*** Begin Patch")
        ({'cmd': 'ls'}, '*** Begin Patch')
    """
    with contextlib.suppress(NoEvent):
        return load_object(value) if isinstance(value, str) else value
    return value


def read_outcome(output: object) -> tuple[str, bool | None]:
    """Return what a tool said and whether it succeeded, if that can be known.

    Example:
        >>> read_outcome('{"output": "boom", "metadata": {"exit_code": 2}}'), read_outcome("Exit code: 0")
        (('boom', False), ('Exit code: 0', True))
    """
    if isinstance(output, str) and output.startswith("{"):
        with contextlib.suppress(NoEvent):
            output = load_object(output)
    if isinstance(output, dict):
        ok = output.get("success")
        if output.get("isError") is True:
            ok = False
        metadata = output.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else None
        if isinstance(code, int):
            ok = code == 0
        said = output.get("output", output.get("content"))
        text = text_of(said) if said is not None else json.dumps(output, ensure_ascii=False)
        return text, ok if isinstance(ok, bool) else None
    text = text_of(output)
    code_line = _EXIT.search(text[:500])
    return text, int(code_line.group(1)) == 0 if code_line else None
