"""Read transcripts of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memory_kb.injected import is_own_call
from memory_kb.sessions.transcripts import LineResult, Origins, RawLine, from_person, notice, records_of, tool_result
from memory_kb.store.events import Event, normal_time, printable_line, text_of

AGENT = "claude-code"
#: Events that wait for a record that names the session: titles come first.
_HELD = 200
#: Attachments that carry text into the conversation.
_HOOKS = ("hook_additional_context", "hook_success", "hook_system_message", "hook_blocking_error")


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a transcript.

    Every record has an id of its own, so that the copies a resumed session begins with are known.
    """
    transcript = _Transcript()
    early: list[Event] = []
    for line, record in records_of(lines):
        if isinstance(record, LineResult):
            yield record
            continue
        session = transcript.enter(record)
        events = list(transcript.events(record, line))
        if not events:
            yield LineResult(session)
        elif session is None and len(early) < _HELD:
            early += events
        else:
            if transcript.is_new(session):
                yield LineResult(session, _start(record, transcript.ts))
            yield from (LineResult(session, event) for event in early + events)
            early = []
    if early:
        yield from (LineResult(None, event) for event in (_start({}, early[0].ts), *early))


def _start(record: Mapping[str, Any], ts: str) -> Event:
    known = {
        ours: record[name]
        for ours, name in (("cwd", "cwd"), ("branch", "gitBranch"), ("version", "version"))
        if record.get(name)
    }
    return Event(ts=ts, type="event", event="start", agent=AGENT, args=known or None, origin="start")


#: How a refused call ends where the person gave a reason.
_REFUSAL = re.compile(
    r"The user doesn't want to (?:proceed with this tool use|take this action)\b.{0,400}?\bthe user said:\s*(\S.*)",
    re.DOTALL,
)


class _Transcript:
    """What the records so far say about the next one."""

    def __init__(self) -> None:
        self.ts = ""
        self._session: str | None = None
        self._sessions: set[str | None] = set()
        self._calls: dict[str, tuple[str, bool]] = {}
        self._origins = Origins("cc")

    def enter(self, record: Mapping[str, Any]) -> str | None:
        """Take in what holds until the next record says otherwise; return the session."""
        named = record.get("sessionId", record.get("session_id"))
        if isinstance(named, str) and named:
            self._session = named
        self.ts = normal_time(record.get("timestamp")) or self.ts
        return self._session

    def is_new(self, session: str | None) -> bool:
        """Return whether this is the first event of its session."""
        is_new = session not in self._sessions
        self._sessions.add(session)
        return is_new

    def events(self, record: Mapping[str, Any], line: bytes) -> Iterator[Event]:
        """Yield the events of a record with what all of them share."""
        uuid = record.get("uuid")
        made = list(self._read(record))
        if not made:
            return
        name = f"cc:{printable_line(uuid)[:80]}" if isinstance(uuid, str) and uuid else self._origins.name(line)
        is_side = record.get("isSidechain") is True
        agent = printable_line(text_of(record.get("agentId") or "subagent")) if is_side else AGENT
        for number, event in enumerate(made):
            role = "agent" if is_side and event.role == "user" else event.role
            yield event._replace(ts=self.ts, agent=agent, role=role, origin=f"{name}.{number}")

    def _read(self, record: Mapping[str, Any]) -> Iterator[Event]:
        kind = record.get("type")
        if kind in ("user", "assistant"):
            yield from self._read_message(record, str(kind))
        elif kind == "tool_use":
            yield self._call(
                record.get("tool_use_id", record.get("id")), record.get("tool_name"), record.get("tool_input")
            )
        elif kind == "tool_result":
            call = {
                "tool_use_id": record.get("tool_use_id"),
                "content": record.get("tool_output", record.get("content")),
            }
            yield self._result(
                call
                | {
                    "is_error": record.get("is_error"),
                    "tool": record.get("tool_name"),
                    "args": record.get("tool_input"),
                }
            )
        elif kind == "summary" and record.get("summary"):
            yield notice(record["summary"], "summary")
        elif kind == "system" and record.get("content"):
            yield notice(record["content"], printable_line(text_of(record.get("subtype") or "notice")))
        elif kind == "attachment" and isinstance(record.get("attachment"), dict):
            yield from _read_attachment(record["attachment"])

    def _read_message(self, record: Mapping[str, Any], kind: str) -> Iterator[Event]:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else record.get("content", message)
        if record.get("isCompactSummary") is True:
            yield notice(content, "summary")
        elif record.get("isMeta") is True:
            yield notice(content)
        elif record.get("isApiErrorMessage") is True:
            yield notice(content, "error")._replace(ok=False, error=text_of(content)[:500])
        else:
            texts: list[object] = []
            for block in content if isinstance(content, list) else [content]:
                special = self._read_block(block) if isinstance(block, dict) else None
                if special is None:
                    texts.append(block)
                else:
                    yield from _spoken(texts, kind)
                    texts = []
                    yield special
                    yield from _refusal(special)
            yield from _spoken(texts, kind)

    def _read_block(self, block: Mapping[str, Any]) -> Event | None:
        """Return the event of a block that is not just text."""
        kind = block.get("type")
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            return self._call(block.get("id"), block.get("name"), block.get("input"))
        if isinstance(kind, str) and kind.endswith("tool_result"):
            return self._result(block)
        if kind in ("thinking", "redacted_thinking"):
            return Event(type="event", event="thinking", role="assistant", content=text_of(block.get("thinking") or ""))
        return None

    def _call(self, call_id: object, tool: object, args: object) -> Event:
        name = printable_line(text_of(tool or "tool"))
        known = args if isinstance(args, dict) else None if args is None else {"value": args}
        if isinstance(call_id, str):
            self._calls[call_id] = (name, is_own_call(name, known))
        return Event(type="tool_call", role="assistant", tool=name, call_id=_id(call_id), args=known)

    def _result(self, block: Mapping[str, Any]) -> Event:
        call_id = block.get("tool_use_id")
        tool, is_own = self._calls.pop(call_id, (None, False)) if isinstance(call_id, str) else (None, False)
        if block.get("tool"):
            tool = printable_line(text_of(block["tool"]))
            is_own = is_own_call(tool, block["args"] if isinstance(block.get("args"), dict) else None)
        made = tool_result(block.get("content"), ok=block.get("is_error") is not True, tool=tool, call_id=_id(call_id))
        return made._replace(injected="whole") if is_own else made


def _refusal(result: Event) -> Iterator[Event]:
    """Yield what the person said where they refused a call, which is in its result."""
    said = (
        _REFUSAL.match(result.content or "")
        if result.type == "tool_result" and result.ok is False and not result.injected
        else None
    )
    if said and not (result.tool or "").startswith("mcp__"):
        yield from from_person(said[1])


def _spoken(blocks: list[object], kind: str) -> Iterator[Event]:
    text = text_of([block for block in blocks if block])
    if not text.strip():
        return
    if kind == "user":
        yield from from_person(text)
    else:
        yield Event(type="message", role="assistant", content=text)


def _read_attachment(attachment: Mapping[str, Any]) -> Iterator[Event]:
    kind = attachment.get("type")
    if kind == "queued_command" and attachment.get("prompt"):
        yield from from_person(text_of(attachment["prompt"]))
    elif kind in _HOOKS:
        text = text_of(attachment.get("content") or attachment.get("stdout"))
        if text.strip():
            yield notice(text, "hook")


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
