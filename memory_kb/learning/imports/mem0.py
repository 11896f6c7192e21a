"""The memories of mem0, as `get_all` returns and exports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_kb.learning.imports.pieces import Piece, dated_fields, left_out, tag_of
from memory_kb.learning.remember import Draft
from memory_kb.notes.fields import read_text, read_words
from memory_kb.notes.splice import Value

_OWNERS = ("user_id", "agent_id", "app_id", "run_id")


def is_record(record: object) -> bool:
    """Tell whether an object of JSON is a memory of mem0's."""
    return (
        isinstance(record, dict)
        and isinstance(record.get("memory"), str)
        and not {"mapping", "chat_messages"} & record.keys()
    )


def read(record: object, path: str, number: int) -> Piece:
    """Return what one memory becomes: a fact, or a preference where its categories say so.

    Example:
        >>> memory = {"id": "m1", "memory": "Arjun prefers mornings", "user_id": "arjun", "categories": ["user_preferences"]}
        >>> piece = read(memory, "m.json", 1)
        >>> piece.draft.kind, piece.draft.tags, dict(piece.draft.fields)["imported_from"]
        ('preference', ('user_preferences', 'arjun'), 'mem0: m1, user_id arjun')
    """
    if not isinstance(record, dict) or not is_record(record):
        return left_out("memory", path, number, "it is no memory: that has a text under `memory`")
    text = str(record["memory"]).strip()
    if not text:
        return left_out("memory", path, number, "it is empty")
    owners = tuple((name, owner) for name in _OWNERS if (owner := read_text(record.get(name))))
    name = read_text(record.get("id")) or " ".join(text.casefold().split())
    categories = read_words(record.get("categories"))
    further = _metadata(record.get("metadata"))
    tags = tuple(
        dict.fromkeys(
            (
                *categories,
                *(tag_of(further[key]) for key in ("type", "category") if key in further),
                *(one for _, one in owners),
            )
        )
    )
    kind = "preference" if any("preference" in word.casefold() for word in (*categories, *further.values())) else "fact"
    told = ", ".join(filter(None, (read_text(record.get("id")) or "", *(f"{what} {owner}" for what, owner in owners))))
    fields: tuple[tuple[str, Value], ...] = (
        *dated_fields(record.get("updated_at") or record.get("created_at")),
        ("imported_from", f"mem0: {told}"),
    )
    draft = Draft(text, kind, None, tags, None, (), "external_unverified", fields)
    return Piece("memory", path, number, f"import/mem0/{'/'.join(one for _, one in owners)}/{name}", draft)


def _metadata(value: object) -> Mapping[str, str]:
    held: Mapping[str, Any] = value if isinstance(value, dict) else {}
    return {str(key): text for key, item in held.items() if (text := read_text(item))}
