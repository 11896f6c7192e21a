"""Read rollouts of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memory_kb.injected import is_own_call
from memory_kb.sessions.transcripts import LineResult, Origins, RawLine, from_person, notice, records_of, tool_result
from memory_kb.store.events import Event, NoEvent, load_object, normal_time, printable_line, text_of

AGENT = "codex"
_EXIT = re.compile(r"(?m)^(?:Exit code|Process exited with code):? (-?\d+)\b")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output", "tool_search_output")
_ITEMS = ("message", "reasoning", *_CALLS, *_OUTPUTS)


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a rollout, of the older form without envelopes too.

    Messages come as response items and again as event messages; the items are read. A fork begins
    with the records of what it was forked from: the first session named is the file's own.
    """
    rollout = _Rollout()
    for line, record in records_of(lines):
        if isinstance(record, LineResult):
            yield record
            continue
        events = list(rollout.events(record))
        origin = rollout.origins.name(line) if events else ""
        for number, event in enumerate(events):
            yield LineResult(
                rollout.session, event._replace(ts=rollout.ts, origin=event.origin or f"{origin}.{number}")
            )
        if not events:
            yield LineResult(rollout.session)


class _Rollout:
    """What the records so far say about the next one."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.ts = ""
        self.origins = Origins("cx")
        self._agent = AGENT
        self._calls: dict[str, tuple[str, bool]] = {}

    def events(self, record: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the events of a record, without what all of them share."""
        self.ts = normal_time(record.get("timestamp")) or self.ts
        kind, payload = record.get("type"), record.get("payload")
        if isinstance(payload, dict):
            made = self._enveloped(str(kind), payload)
        elif kind in _ITEMS:
            made = self._item(record)
        elif "id" in record and kind is None and self.session is None:
            made = self._begin(record)
        else:
            made = iter(())
        for event in made:
            role = "agent" if event.role == "user" and self._agent != AGENT else event.role
            yield event._replace(agent=self._agent, role=role)

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
                yield notice(text, "error")._replace(ok=False, error=text[:500])
            elif what == "turn_aborted":
                yield notice(payload.get("reason") or "aborted", "aborted")

    def _begin(self, meta: Mapping[str, Any]) -> Iterator[Event]:
        named = meta.get("id")
        if self.session is not None or not isinstance(named, str):
            return
        self.session = named
        source = meta.get("source")
        if isinstance(source, dict) and "subagent" in source:
            self._agent = "codex-subagent"
        git = meta.get("git")
        branch = git.get("branch") if isinstance(git, dict) else None
        known = {"cwd": meta.get("cwd"), "branch": branch, "version": meta.get("cli_version")}
        yield Event(
            type="event",
            event="start",
            args={name: value for name, value in known.items() if value} or None,
            origin="start",
        )

    def _item(self, item: Mapping[str, Any]) -> Iterator[Event]:
        kind = item.get("type")
        if kind == "message":
            yield from _spoken(item)
        elif kind == "reasoning":
            text = text_of(item.get("summary")) or text_of(item.get("content"))
            if text.strip():
                yield Event(type="event", event="thinking", role="assistant", content=text)
        elif kind in _CALLS:
            yield self._call(item, str(kind))
        elif kind in _OUTPUTS:
            yield self._result(item)

    def _call(self, item: Mapping[str, Any], kind: str) -> Event:
        fallback = {"local_shell_call": "local_shell", "web_search_call": "web_search"}.get(kind, "tool")
        tool = printable_line(text_of(item.get("name") or fallback))
        args = _arguments(item.get("arguments", item.get("action", item.get("input"))))
        call_id = item.get("call_id") or item.get("id")
        name = f"{item['namespace']}{tool}" if isinstance(item.get("namespace"), str) else tool
        if isinstance(call_id, str):
            self._calls[call_id] = (name, is_own_call(name, args))
        return Event(
            type="tool_call",
            role="assistant",
            tool=name,
            call_id=call_id if isinstance(call_id, str) else None,
            args=args,
        )

    def _result(self, item: Mapping[str, Any]) -> Event:
        call_id = item.get("call_id")
        tool, is_own = self._calls.pop(call_id, (None, False)) if isinstance(call_id, str) else (None, False)
        content, ok = read_outcome(item.get("output", item.get("tools")))
        made = tool_result(content, ok=ok, tool=tool, call_id=call_id if isinstance(call_id, str) else None)
        return made._replace(injected="whole") if is_own else made


def _spoken(item: Mapping[str, Any]) -> Iterator[Event]:
    text, role = text_of(item.get("content")), item.get("role")
    if not text.strip():
        return
    if role == "user":
        yield from from_person(text)
    elif role == "assistant":
        yield Event(type="message", role="assistant", content=text)
    else:
        yield notice(text)


def _arguments(value: object) -> dict[str, Any] | None:
    """Return the arguments of a call, which may come as JSON in a text.

    Example:
        >>> _arguments('{"cmd": "ls"}'), _arguments("*** Begin Patch")
        ({'cmd': 'ls'}, {'value': '*** Begin Patch'})
    """
    if isinstance(value, str):
        try:
            return load_object(value)
        except NoEvent:
            return {"value": value}
    return value if isinstance(value, dict) else None if value is None else {"value": value}


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
