"""Read the data exports of Claude and ChatGPT as events of sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memory_kb.sessions.transcripts import EventMaker, LineResult, object_of, objects_in
from memory_kb.store.session_events import Event, normal_time, text_of
from memory_kb.text import as_text

_MOST_NODES = 100_000


class ExportedChat(NamedTuple):
    """A conversation of an export: what it is called there, and its events in their order."""

    session: str
    title: str
    events: tuple[Event, ...]


def kind_of(record: object) -> str | None:
    """Return whose conversation an object of JSON is: `claude-export`, `chatgpt-export`, or None.

    Example:
        >>> kind_of({"uuid": "u", "chat_messages": []}), kind_of({"mapping": {}}), kind_of([])
        ('claude-export', 'chatgpt-export', None)
    """
    if not isinstance(record, dict):
        return None
    if isinstance(record.get("chat_messages"), list):
        return "claude-export"
    return "chatgpt-export" if isinstance(record.get("mapping"), dict) else None


def read_export(record: Mapping[str, Any]) -> ExportedChat | None:
    """Return a conversation of either export; None where it holds nothing that is said.

    Example:
        >>> talk = read_export({"uuid": "7a", "name": "Zod", "chat_messages": [{"uuid": "m", "sender": "human", "text": "Always use zod."}]})
        >>> talk.session, [(event.role, event.content, event.origin) for event in talk.events]
        ('claude-7a', [('user', 'Always use zod.', 'm')])
    """
    is_claude = kind_of(record) == "claude-export"
    names = ["uuid"] if is_claude else ["conversation_id", "id"]
    own_id = next((found for name in names if (found := as_text(record.get(name)))), None)
    events = tuple(_claude_events(record) if is_claude else _chatgpt_events(record))
    if not own_id or not events:
        return None
    title = as_text(record.get("name" if is_claude else "title")) or ""
    return ExportedChat(f"{'claude' if is_claude else 'chatgpt'}-{own_id}", title, events)


def found_of(talk: ExportedChat) -> Iterator[LineResult]:
    """Yield the events of a conversation as a transcript's reader does, with its beginning."""
    start = Event(ts=talk.events[0].ts, type="event", event="start", content=talk.title or None, origin="start")
    for event in (start, *talk.events):
        yield LineResult(talk.session, event)


def _claude_events(record: Mapping[str, Any]) -> Iterator[Event]:
    for number, message in enumerate(record["chat_messages"]):
        if isinstance(message, dict):
            role = "user" if message.get("sender") in ("human", "user") else "assistant"
            origin, ts = as_text(message.get("uuid")) or f"{number}", normal_time(message.get("created_at"))
            yield from _message(role, _claude_text(message), ts, origin)


def _claude_text(message: Mapping[str, Any]) -> str:
    texts = (one.get("text") for one in objects_in(message.get("content")) if one.get("type", "text") == "text")
    said = "\n\n".join(text for text in texts if isinstance(text, str))
    return said if said.strip() else text_of(message.get("text") or "")


def _message(role: object, text: str, ts: str, origin: str) -> Iterator[Event]:
    made = EventMaker("")
    if role in ("user", "assistant", "tool", "system"):
        made.message(role, text.strip() if role == "assistant" else text)
    for number, event in enumerate(made.events):
        yield event._replace(ts=ts, origin=f"{origin}.{number}" if number else origin)


def _chatgpt_events(record: Mapping[str, Any]) -> Iterator[Event]:
    for node, message in _branch(record["mapping"], record.get("current_node")):
        metadata, author = object_of(message.get("metadata")), object_of(message.get("author"))
        text, role = _chatgpt_text(object_of(message.get("content"))), author.get("role")
        is_hidden = metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message")
        is_to_a_tool = role == "assistant" and message.get("recipient", "all") != "all"
        if text.strip() and not is_hidden and not is_to_a_tool:
            origin, ts = as_text(message.get("id")) or node, normal_time(message.get("create_time"))
            yield from _message(role, text, ts, origin)


def _branch(mapping: Mapping[str, Any], last: object) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the messages of the branch that is shown, from its root to its last.

    Where the export does not name the last, these are all, in the order of their times.
    """
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    messages = {name: node["message"] for name, node in nodes.items() if isinstance(node.get("message"), dict)}
    path: dict[str, None] = {}
    at = last
    while isinstance(at, str) and at in nodes and at not in path and len(path) < _MOST_NODES:
        path[at] = None
        at = nodes[at].get("parent")
    if not path:
        return sorted(messages.items(), key=lambda one: normal_time(one[1].get("create_time")))
    return [(name, messages[name]) for name in reversed(path) if name in messages]


def _chatgpt_text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if content.get("content_type", "text") not in ("text", "multimodal_text") or not isinstance(parts, list):
        return ""
    return "\n\n".join(part for part in parts if isinstance(part, str) and part.strip())
