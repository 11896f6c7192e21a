"""Add our parts to an agent's file and remove them again, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.agents.agent import ListItem, MarkedLines, Part, Server
from memory_kb.agents.config_files import (
    Key,
    Path,
    insert_json,
    insert_toml,
    parse_json,
    parse_toml,
    remove_json,
    remove_toml,
)
from memory_kb.errors import CannotSplice
from memory_kb.markdown import text_blocks
from memory_kb.text import encode, hash_of

_OWN = re.compile(r"""(?:memory-kb|mkb|memory_kb)(?:\.exe)?["']?\s+hook\s""")


class Installed(NamedTuple):
    """What was put into a file for some agents, so that it can be taken out byte for byte.

    `after` is the hash of the file with it, `inserted` the stretches that are ours, None where the rest is not what was
    before; `server` is ours as it was written, None where somebody's own is there; `folders` were made around the file.
    """

    after: str
    is_made: bool = False
    inserted: tuple[tuple[int, int], ...] | None = None
    server: Mapping[str, Any] | None = None
    folders: int = 0
    agents: tuple[str, ...] = ()


def put_in(
    name: str, data: bytes | None, parts: Sequence[Part], old: Installed | None = None, head: str = ""
) -> tuple[bytes, Installed]:
    """Return a file with our parts in it, and the trace of that; one that has them stays as it is.

    So does a server of our name that somebody wrote by hand.

    Example:
        >>> data, trace = put_in("mcp.json", b'{"servers": {}}', [Server(("servers", "kb"), {"x": 1})])
        >>> take_out("mcp.json", data, [], trace)
        b'{"servers": {}}'
    """
    text = _decode(name, data) if data is not None else head
    before = _without(name, text, parts, old)
    server = None
    for part in parts:
        if isinstance(part, Server):
            text, server = _put_server(name, text, part, old.server if old else None)
        elif isinstance(part, ListItem):
            text = _put_item(name, text, part)
        else:
            text = text_blocks.put(name, text, part.word, part.lines, part.lead)
    is_made = data is None or (old is not None and old.is_made)
    after = encode(text)
    return after, Installed(hash_of(after), is_made, find_inserted(before, text), server)


def take_out(name: str, data: bytes, parts: Sequence[Part], trace: Installed | None, head: str = "") -> bytes | None:
    """Return a file without our parts; None when it was made for them and holds nothing else.

    That is what was before, byte for byte, if nobody wrote to it since; else all but our own parts.
    A server of our name that somebody wrote by hand is none of these.
    """
    text = _without(name, _decode(name, data), parts, trace)
    is_empty = text.strip() in ("", "{}", head.strip())
    return None if trace and trace.is_made and is_empty else encode(text)


def has_server(name: str, data: bytes | None, parts: Sequence[Part]) -> bool:
    """Return whether a file has a server of our name, whoever wrote it."""
    text = _decode(name, data or b"")
    return any(_held(name, text, part) is not None for part in parts if isinstance(part, Server))


def find_inserted(before: str, after: str) -> tuple[tuple[int, int], ...] | None:
    """Return stretches of a text without which it is another one; None where it lacks something of that.

    Example:
        >>> find_inserted('{"a": 1}', '{"a": 1, "b": 2}')
        ((7, 15), (16, 16))
    """
    spans, place = list[tuple[int, int]](), 0
    for character in before:
        found = after.find(character, place)
        if found < 0:
            return None
        if found > place:
            spans.append((place, found))
        place = found + 1
    return (*spans, (place, len(after)))


def render_snippet(parts: Sequence[Part]) -> str:
    """Return our parts of a JSON file, for a person to paste.

    Example:
        >>> render_snippet([Server(("servers", "kb"), {}), ListItem(("hooks", "stop"), {"command": "x"})])
        '{"servers": {"kb": {}}, "hooks": {"stop": [{"command": "x"}]}}'
    """
    text = "{}"
    for part in parts:
        if not isinstance(part, MarkedLines):
            text = insert_json("", text, (*part.path, -1) if isinstance(part, ListItem) else part.path, part.value)
    return json.dumps(json.loads(text), ensure_ascii=False)


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise CannotSplice(f"{name}:{line}: this is not UTF-8") from exc


def _without(name: str, text: str, parts: Sequence[Part], trace: Installed | None) -> str:
    """Return a text without our parts: as it was before where nobody wrote to it since."""
    if trace and trace.inserted is not None and trace.after == hash_of(encode(text)):
        for start, end in reversed(trace.inserted):
            text = text[:start] + text[end:]
        return text
    for part in reversed(parts):
        if isinstance(part, Server):
            text = _take_server(name, text, part, trace)
        elif isinstance(part, ListItem):
            text = _take_items(name, text, part)
        else:
            text = text_blocks.take_out(name, text, part.word)
    return text


def _held(name: str, text: str, part: Server) -> Any:
    """Return the server of our name that a file has, one that is null as an empty one; None where there is none."""
    group = _get(parse_toml(name, text) if part.is_toml else parse_json(name, text), part.path[:-1])
    if not isinstance(group, dict) or part.path[-1] not in group:
        return None
    return {} if group[part.path[-1]] is None else group[part.path[-1]]


def _put_server(
    name: str, text: str, part: Server, written: Mapping[str, Any] | None
) -> tuple[str, Mapping[str, Any] | None]:
    """Return a text with our server, and the server; somebody's own of our name stays, and is none of ours."""
    found = _held(name, text, part)
    if found is not None:
        if _is_same(found, part.value) or (written is not None and _has_all(found, part.value)):
            return text, part.value
        if written is None or not _is_same(found, written):
            return text, None
        text = remove_toml(name, text, part.path) if part.is_toml else remove_json(text, part.path)
    insert = insert_toml if part.is_toml else insert_json
    return insert(name, text, part.path, part.value), part.value


def _take_server(name: str, text: str, part: Server, trace: Installed | None) -> str:
    """Return a text without our server; without a trace only the very one that `install` writes is taken for ours."""
    found, written = _held(name, text, part), trace.server if trace else None
    is_ours = _is_same(found, part.value) if trace is None else written is not None and _has_all(found, written)
    if not is_ours:
        return text
    return remove_toml(name, text, part.path) if part.is_toml else remove_json(text, part.path)


def _put_item(name: str, text: str, part: ListItem) -> str:
    """Return a text with an item that takes the place of those of ours."""
    held = _get(parse_json(name, text), part.path)
    own = list(_own_places(held))
    if len(own) == 1 and len(own[0]) == 1 and _is_same(_get(held, own[0]), part.value):
        return text
    return insert_json(name, _take_items(name, text, part), (*part.path, -1), part.value)


def _take_items(name: str, text: str, part: ListItem) -> str:
    for place in reversed(list(_own_places(_get(parse_json(name, text), part.path)))):
        text = remove_json(text, (*part.path, *place))
    return text


def _own_places(items: Any) -> Iterator[Path]:
    """Yield where our own hooks are in a list: whole items, or single commands of other people's groups."""
    for number, item in enumerate(items if isinstance(items, list) else ()):
        inner = _get(item, ("hooks",))
        own = [place for place, one in enumerate(inner) if _is_own(one)] if isinstance(inner, list) else []
        if _is_own(item) or (own and len(own) == len(inner)):
            yield (number,)
        else:
            yield from ((number, "hooks", place) for place in own)


def _is_own(item: Any) -> bool:
    command = _get(item, ("command",))
    return isinstance(command, str) and _OWN.search(command) is not None


def _has_all(found: object, wanted: Mapping[str, Any]) -> bool:
    """Return whether a server has all that ours has, and perhaps more."""
    return isinstance(found, Mapping) and all(name in found and found[name] == value for name, value in wanted.items())


def _is_same(left: Any, right: Any) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)  # true is not 1


def _get(value: Any, path: Sequence[Key]) -> Any:
    """Return what is at a path of a parsed document, or None."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            return None
    return value
