"""Read the data exports of Claude and ChatGPT as events of sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memory_kb.markdown.fields import read_text
from memory_kb.sessions.transcripts import LineResult, from_person, notice, tool_result
from memory_kb.store.events import Event, normal_time, text_of

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


def read(record: Mapping[str, Any]) -> ExportedChat | None:
    """Return a conversation of either export; None where it holds nothing that is said.

    Example:
        >>> talk = read({"uuid": "7a", "name": "Zod", "chat_messages": [{"uuid": "m", "sender": "human", "text": "Always use zod."}]})
        >>> talk.session, [(event.role, event.content, event.origin) for event in talk.events]
        ('claude-7a', [('user', 'Always use zod.', 'm')])
    """
    is_claude = kind_of(record) == "claude-export"
    name = (
        read_text(record.get("uuid"))
        if is_claude
        else read_text(record.get("conversation_id")) or read_text(record.get("id"))
    )
    title = read_text(record.get("name") if is_claude else record.get("title")) or ""
    events = tuple(_claude_events(record) if is_claude else _chatgpt_events(record))
    if not name or not events:
        return None
    return ExportedChat(f"{'claude' if is_claude else 'chatgpt'}-{name}", title, events)


def found_of(talk: ExportedChat) -> Iterator[LineResult]:
    """Yield the events of a conversation as a transcript's reader does, with its beginning."""
    yield LineResult(
        talk.session,
        Event(ts=talk.events[0].ts, type="event", event="start", content=talk.title or None, origin="start"),
    )
    for event in talk.events:
        yield LineResult(talk.session, event)


def _claude_events(record: Mapping[str, Any]) -> Iterator[Event]:
    for number, message in enumerate(record["chat_messages"]):
        if not isinstance(message, dict):
            continue
        known: dict[str, Any] = {
            "ts": normal_time(message.get("created_at")),
            "origin": read_text(message.get("uuid")) or f"{number}",
        }
        text = _claude_text(message)
        if message.get("sender") in ("human", "user"):
            yield from _numbered(from_person(text, **known))
        elif text.strip():
            yield Event(type="message", role="assistant", content=text.strip(), **known)


def _claude_text(message: Mapping[str, Any]) -> str:
    """Return what a message says; tools and thoughts are not said."""
    blocks = message.get("content")
    parts = (
        [
            one["text"]
            for one in blocks
            if isinstance(one, dict) and one.get("type", "text") == "text" and isinstance(one.get("text"), str)
        ]
        if isinstance(blocks, list)
        else []
    )
    return "\n\n".join(parts) if any(one.strip() for one in parts) else text_of(message.get("text") or "")


def _numbered(events: Iterator[Event]) -> Iterator[Event]:
    """Yield events with an origin each, where one message gives several."""
    for number, event in enumerate(events):
        yield event._replace(origin=f"{event.origin}.{number}") if number else event


def _chatgpt_events(record: Mapping[str, Any]) -> Iterator[Event]:
    for node, message in _branch(record["mapping"], record.get("current_node")):
        metadata = message.get("metadata")
        marks = metadata if isinstance(metadata, dict) else {}
        author = message.get("author")
        role = author.get("role") if isinstance(author, dict) else None
        text = _chatgpt_text(message.get("content"))
        if not text.strip() or marks.get("is_visually_hidden_from_conversation") or marks.get("is_user_system_message"):
            continue
        known: dict[str, Any] = {
            "ts": normal_time(message.get("create_time")),
            "origin": read_text(message.get("id")) or node,
        }
        if role == "user":
            yield from _numbered(from_person(text, **known))
        elif role == "assistant" and message.get("recipient", "all") == "all":
            yield Event(type="message", role="assistant", content=text.strip(), **known)
        elif role == "tool":
            yield tool_result(text, ok=None, **known)
        elif role == "system":
            yield notice(text, **known)


def _branch(mapping: Mapping[str, Any], last: object) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the messages of the branch that is shown, from its root to its last.

    Where the export does not name the last, all of them in the order of their times.
    """
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    path: list[str] = []
    seen: set[str] = set()
    at = last if isinstance(last, str) else None
    while at in nodes and at not in seen and len(path) < _MOST_NODES:
        assert at is not None
        seen.add(at)
        path.append(at)
        above = nodes[at].get("parent")
        at = above if isinstance(above, str) else None
    held = [(name, nodes[name]["message"]) for name in reversed(path) if isinstance(nodes[name].get("message"), dict)]
    if held:
        return held
    with_message = [(name, node["message"]) for name, node in nodes.items() if isinstance(node.get("message"), dict)]
    return sorted(
        with_message,
        key=lambda one: float(one[1]["create_time"]) if isinstance(one[1].get("create_time"), int | float) else 0.0,
    )


def _chatgpt_text(content: object) -> str:
    if not isinstance(content, dict) or content.get("content_type", "text") not in ("text", "multimodal_text"):
        return ""
    parts = content.get("parts")
    return (
        "\n\n".join(part for part in parts if isinstance(part, str) and part.strip()) if isinstance(parts, list) else ""
    )
