"""Read transcripts of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from memory_kb.sessions.transcripts import EventMaker, LineResult, RawLine, object_of, records_of
from memory_kb.store.session_events import Event, normal_time, printable_line, text_of

AGENT = "claude-code"
#: Records in which a transcript names its session: titles come first.
_HEAD = 200
#: Attachments that carry text into the conversation.
_HOOKS = ("hook_additional_context", "hook_success", "hook_system_message", "hook_blocking_error")
#: The blocks of a message that are calls, and those that are what an agent thought.
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
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
    head = list(islice(records, _HEAD))
    named = [one for _, one in head if isinstance(one, dict) and _session_of(one)]
    about: Mapping[str, Any] = next((one for one in named if "cwd" in one), named[0] if named else {})
    made = EventMaker("cc")
    made.session, made.ts = _session_of(about), normal_time(about.get("timestamp"))
    begun = set[str | None]()
    for line, record in chain(head, records):
        if isinstance(record, LineResult):
            yield record
            continue
        if (own := _session_of(record)) and own != made.session:
            made.session, about = own, record
        made.ts, made.agent = normal_time(record.get("timestamp")) or made.ts, AGENT
        _read_record(record, made)
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


def _read_record(record: Mapping[str, Any], made: EventMaker) -> None:
    kind = record.get("type")
    if kind in ("user", "assistant"):
        _read_message(record, str(kind), made)
    elif kind == "summary" and record.get("summary"):
        made.notice(record["summary"], "summary")
    elif kind == "system" and record.get("content"):
        made.notice(record["content"], printable_line(text_of(record.get("subtype") or "notice")))
    elif kind == "attachment":
        _read_attachment(object_of(record.get("attachment")), made)


def _read_message(record: Mapping[str, Any], role: str, made: EventMaker) -> None:
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
            if kind in (*_CALLS, *_THOUGHTS) or kind.endswith("tool_result"):
                made.message(role, texts)
                _read_block(kind, object_of(block), made)
                texts = []
            elif block:
                texts.append(block)
        made.message(role, texts)


def _read_block(kind: str, block: Mapping[str, Any], made: EventMaker) -> None:
    if kind in _CALLS:
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


def _read_attachment(attachment: Mapping[str, Any], made: EventMaker) -> None:
    kind = attachment.get("type")
    text = text_of(attachment.get("content") or attachment.get("stdout"))
    if kind == "queued_command" and attachment.get("prompt"):
        made.from_person(text_of(attachment["prompt"]))
    elif kind in _HOOKS and text.strip():
        made.notice(text, "hook")
