"""Recognise the format of a transcript, and find its reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from memory_kb.sessions import claude_code, codex, gemini_opencode, markdown_chats
from memory_kb.sessions.transcripts import RawLine, Reader
from memory_kb.store.session_events import NoEvent, load_object

_SNIFFED_LINES = 50
#: A JSON object, perhaps after a line or two that a program printed.
_JSON_START = re.compile(r"(?:[^{\n]*\n){0,3}\s*\{\s*(?:\"|\n)")
_CODEX_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_READERS: Mapping[str, Reader] = {
    "claude-code": claude_code.read_claude_code,
    "codex": codex.read_codex,
    "gemini-cli": gemini_opencode.read_gemini,
    "opencode": gemini_opencode.read_opencode,
    "cursor": markdown_chats.read_cursor,
    "specstory": markdown_chats.read_specstory,
    "aider": markdown_chats.read_aider,
    "markdown": markdown_chats.read_chat,
}


def reader_of(kind: str) -> Reader:
    """Return the reader of a format."""
    return _READERS[kind]


def sniff(lines: Iterable[RawLine]) -> str | None:
    """Return the format of a transcript, or None for a text of no known shape.

    Example:
        >>> sniff([b'{"type": "user", "sessionId": "s", "message": {}}']), sniff([b"## User", b"hi", b"## Claude", b"hello"])
        ('claude-code', 'markdown')
        >>> sniff([b"a:hover {", b"  cursor: pointer;", b"}"])
    """
    rest = iter(lines)
    head = list(islice(rest, _SNIFFED_LINES))
    records = list(_objects(head))
    for record in records:
        if kind := _kind_of(record):
            return kind
    text = "\n".join((line or b"").decode("utf-8", "replace").rstrip("\r\n") for line in head)
    if records and text.lstrip("\ufeff \t\n").startswith("{"):
        return None
    if _JSON_START.match(text):
        return _kind_of_document(text)
    return markdown_chats.sniff_markdown(text, chain(head, rest))


def _objects(lines: Iterable[RawLine]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with suppress(NoEvent):
            yield load_object(line or b"")


def _kind_of(record: Mapping[str, Any]) -> str | None:
    kind, message = record.get("type"), isinstance(record.get("message"), dict)
    if isinstance(record.get("payload"), dict) and kind in _CODEX_TYPES:
        return "codex"
    if "sessionId" in record and "projectHash" in record:
        return "gemini-cli"
    if isinstance(record.get("info"), dict) and isinstance(record.get("messages"), list):
        return "opencode"
    if message and kind is None and record.get("role") in ("user", "assistant"):
        return "cursor"
    if message or not record.keys().isdisjoint(("sessionId", "leafUuid")):
        return "claude-code"
    is_old_codex = record.get("record_type") or ("id" in record and "timestamp" in record and kind is None)
    return "codex" if is_old_codex else None


def _kind_of_document(text: str) -> str | None:
    """Return the format of a JSON object that is written on several lines, by its first fields."""
    if '"sessionId"' in text and '"projectHash"' in text:
        return "gemini-cli"
    is_opencode = re.search(r'"info"\s*:\s*\{', text) and re.search(r'"(?:projectID|directory|slug)"\s*:', text)
    return "opencode" if is_opencode else None
