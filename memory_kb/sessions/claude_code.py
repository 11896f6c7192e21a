"""Read transcripts of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from memory_kb.sessions.transcripts import (
    Calls,
    LineResult,
    Origins,
    RawLine,
    error_notice,
    from_person,
    message,
    notice,
    object_of,
    of_subagent,
    records_of,
    results,
    start,
)
from memory_kb.store.events import Event, normal_time, printable_line, text_of

AGENT = "claude-code"
#: Records in which a transcript names its session: titles come first.
_HEAD = 200
#: Attachments that carry text into the conversation.
_HOOKS = ("hook_additional_context", "hook_success", "hook_system_message", "hook_blocking_error")
#: How a refused call ends where the person gave a reason.
_REFUSAL = re.compile(
    r"The user doesn't want to (?:proceed with this tool use|take this action)\b.{0,400}?\bthe user said:\s*(\S.*)",
    re.DOTALL,
)


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a transcript.

    Every record has an id of its own, so that the copies a resumed session begins with are known.
    """
    records = records_of(lines)
    head = list(islice(records, _HEAD))
    named = [one for _, one in head if isinstance(one, dict) and _session_of(one)]
    about: Mapping[str, Any] = next((one for one in named if "cwd" in one), named[0] if named else {})
    session, ts, calls, origins = _session_of(about), normal_time(about.get("timestamp")), Calls(), Origins("cc")
    begun = set[str | None]()
    for line, record in chain(head, records):
        if isinstance(record, LineResult):
            yield record
            continue
        if (own := _session_of(record)) and own != session:
            session, about = own, record
        ts = normal_time(record.get("timestamp")) or ts
        events = list(_read_record(record, calls))
        if events and session not in begun:
            begun.add(session)
            places = {"cwd": about.get("cwd"), "branch": about.get("gitBranch"), "version": about.get("version")}
            yield LineResult(session, start(ts, AGENT, **places))
        agent = AGENT
        if record.get("isSidechain") is True:
            agent, events = printable_line(text_of(record.get("agentId") or "subagent")), list(of_subagent(events))
        yield from results(session, events, _origin(record, line, origins) if events else "", ts=ts, agent=agent)


def _session_of(record: Mapping[str, Any]) -> str | None:
    named = record.get("sessionId", record.get("session_id"))
    return named if isinstance(named, str) and named else None


def _origin(record: Mapping[str, Any], line: bytes, origins: Origins) -> str:
    uuid = record.get("uuid")
    return f"cc:{printable_line(uuid)[:80]}" if isinstance(uuid, str) and uuid else origins.name(line)


def _read_record(record: Mapping[str, Any], calls: Calls) -> Iterator[Event]:
    kind = record.get("type")
    if kind in ("user", "assistant"):
        yield from _read_message(record, str(kind), calls)
    elif kind == "tool_use":
        call_id = record.get("tool_use_id", record.get("id"))
        yield calls.call(record.get("tool_name"), record.get("tool_input"), call_id)
    elif kind == "tool_result":
        output = record.get("tool_output", record.get("content"))
        made = calls.result(record.get("tool_use_id"), output, ok=record.get("is_error") is not True)
        yield made._replace(tool=printable_line(text_of(record.get("tool_name"))) or made.tool)
    elif kind == "summary" and record.get("summary"):
        yield notice(record["summary"], "summary")
    elif kind == "system" and record.get("content"):
        yield notice(record["content"], printable_line(text_of(record.get("subtype") or "notice")))
    elif kind == "attachment":
        yield from _read_attachment(object_of(record.get("attachment")))


def _read_message(record: Mapping[str, Any], role: str, calls: Calls) -> Iterator[Event]:
    held = record.get("message")
    content = held.get("content") if isinstance(held, dict) else record.get("content", held)
    if record.get("isCompactSummary") is True:
        yield notice(content, "summary")
    elif record.get("isMeta") is True:
        yield notice(content)
    elif record.get("isApiErrorMessage") is True:
        yield error_notice(content)
    else:
        texts: list[object] = []
        for block in content if isinstance(content, list) else [content]:
            special = list(_read_block(block, calls)) if isinstance(block, dict) else []
            if special:
                yield from message(role, texts)
                yield from special
                texts = []
            elif block:
                texts.append(block)
        yield from message(role, texts)


def _read_block(block: Mapping[str, Any], calls: Calls) -> Iterator[Event]:
    kind = block.get("type")
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield calls.call(block.get("name"), block.get("input"), block.get("id"))
    elif isinstance(kind, str) and kind.endswith("tool_result"):
        result = calls.result(block.get("tool_use_id"), block.get("content"), ok=block.get("is_error") is not True)
        yield result
        # What the person said where they refused a call is in its result.
        said = _REFUSAL.match(result.content or "") if result.ok is False and not result.injected else None
        if said and not (result.tool or "").startswith("mcp__"):
            yield from from_person(said[1])
    elif kind in ("thinking", "redacted_thinking"):
        yield Event(type="event", event="thinking", role="assistant", content=text_of(block.get("thinking") or ""))


def _read_attachment(attachment: Mapping[str, Any]) -> Iterator[Event]:
    kind = attachment.get("type")
    if kind == "queued_command" and attachment.get("prompt"):
        yield from from_person(text_of(attachment["prompt"]))
    elif kind in _HOOKS:
        text = text_of(attachment.get("content") or attachment.get("stdout"))
        if text.strip():
            yield notice(text, "hook")
