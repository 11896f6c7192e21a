"""Add our parts to an agent's file and remove them again, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.agents import jsonc, toml_tables
from memory_kb.agents.agent import Default, ListItem, MarkedLines, Member, Part, Table
from memory_kb.errors import CannotSplice
from memory_kb.markdown import text_blocks
from memory_kb.text import encode, hash_of

_OWN = re.compile(r"""(?:memory-kb|mkb|memory_kb)(?:\.exe)?["']?\s+hook\s""")
_Path = tuple[str, ...]


class Installed(NamedTuple):
    """What was put into a file, so that it can be taken out byte for byte.

    Attributes:
        after: the hash of the file with it.
        is_made: whether there was no file before.
        inserted: the stretches of the file that are ours; None where the rest is not what was before.
        made: the paths of the JSON objects and lists that were made for it.
        servers: the servers that are ours, not somebody's own of our name, as they were written.
        folders: how many folders around the file were made.
        agents: who uses it.
    """

    after: str
    is_made: bool = False
    inserted: tuple[tuple[int, int], ...] | None = None
    made: tuple[_Path, ...] = ()
    servers: tuple[tuple[_Path, Any], ...] = ()
    folders: int = 0
    agents: tuple[str, ...] = ()


def put_in(
    name: str, data: bytes | None, parts: Sequence[Part], old: Installed | None = None
) -> tuple[bytes, Installed]:
    """Return a file with our parts in it, and the trace of that; one that has them stays as it is.

    So does a server of our name that somebody wrote by hand; `find_left` mentions it.

    Raises:
        CannotSplice: the file is damaged, or not what it should be.

    Example:
        >>> data, trace = put_in("mcp.json", b'{"servers": {}}', [Member(("servers", "kb"), 1)])
        >>> data, take_out("mcp.json", data, [], trace)
        (b'{"servers": {\\n    "kb": 1\\n  }}', b'{"servers": {}}')
    """
    text = _decode(name, data) if data is not None else "".join(_heads(parts))
    before = _without(name, text, parts, old)
    made = _missing(name, before, parts)
    known = dict(old.servers if old else ())
    servers: dict[_Path, Any] = {}
    for part in parts:
        if isinstance(part, Member | Table):
            text = _put_server(name, text, part, known, servers)
        elif isinstance(part, MarkedLines):
            text = text_blocks.put(name, text, part.word, part.lines, part.lead)
        else:
            text = _put_json(name, text, part)
    is_made = data is None or (old is not None and old.is_made)
    after = encode(text)
    return after, Installed(hash_of(after), is_made, find_inserted(before, text), made, tuple(servers.items()))


def take_out(name: str, data: bytes, parts: Sequence[Part], trace: Installed | None) -> bytes | None:
    """Return a file without our parts; None when it was made for them and holds nothing else.

    That is what was before, byte for byte, if nobody wrote to it since; else all but our own parts.
    A server of our name that somebody wrote by hand is none of these.

    Raises:
        CannotSplice: the file is damaged.
    """
    text = _without(name, _decode(name, data), parts, trace)
    return None if trace and trace.is_made and _is_empty(name, text, parts) else encode(text)


def find_left(name: str, data: bytes | None, parts: Sequence[Part], trace: Installed | None = None) -> bool:
    """Return whether a file has a server of our name that is not ours, after `put_in` with its trace or after `take_out`.

    Example:
        >>> part = Member(("servers", "kb"), {"command": "memory-kb", "args": ["mcp"]})
        >>> data, trace = put_in("mcp.json", b'{"servers": {"kb": {"command": "/opt/x"}}}', [part])
        >>> data, find_left("mcp.json", data, [part], trace)
        (b'{"servers": {"kb": {"command": "/opt/x"}}}', True)
    """
    text, ours = _decode(name, data or b""), dict(trace.servers if trace else ())
    servers = (part for part in parts if isinstance(part, Member | Table))
    return any(part.path not in ours and _held(name, text, part) is not None for part in servers)


def find_inserted(before: str, after: str) -> tuple[tuple[int, int], ...] | None:
    """Return stretches of a text without which it is another one; None where it lacks something of that.

    Example:
        >>> find_inserted('{"a": 1}', '{"a": 1, "b": 2}')
        ((7, 15), (16, 16))
        >>> find_inserted("one", "two") is None
        True
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
        text = _take(name, text, part, trace)
    for path in sorted(trace.made if trace else (), key=len, reverse=True):
        if get(jsonc.parse(name, text), path) in ({}, []):
            text = jsonc.remove(name, text, path)
    return text


def _missing(name: str, text: str, parts: Sequence[Part]) -> tuple[_Path, ...]:
    """Return the paths of the objects and lists that our parts need and that are not there yet."""
    paths = (
        part.path[:length]
        for part in parts
        if isinstance(part, Member | ListItem)
        for length in range(1, len(part.path) + isinstance(part, ListItem))
    )
    return tuple(path for path in dict.fromkeys(paths) if get(jsonc.parse(name, text), path) is None)


def _held(name: str, text: str, part: Member | Table) -> Any:
    """Return the server of our name that a file has, one that is null as an empty one; None where there is none."""
    parse = toml_tables.parse if isinstance(part, Table) else jsonc.parse
    group = get(parse(name, text), part.path[:-1])
    if not isinstance(group, dict) or part.path[-1] not in group:
        return None
    return {} if group[part.path[-1]] is None else group[part.path[-1]]


def _put_server(
    name: str, text: str, part: Member | Table, known: Mapping[_Path, Any], servers: dict[_Path, Any]
) -> str:
    """Return a text with our server, and note that it is ours; somebody's own of our name stays, and is none of ours."""
    found, written = _held(name, text, part), known.get(part.path)
    is_old = found is not None and written is not None and same(found, written)
    is_there = same(found, part.value) or (written is not None and has_all(found, part.value))
    if found is not None and not is_there and not is_old:
        return text
    servers[part.path] = part.value
    if is_there:
        return text
    text = _remove(name, text, part) if is_old else text
    if isinstance(part, Table):
        return toml_tables.insert(name, text, part.path, part.value)
    return jsonc.insert(name, text, part.path, part.value)


def _remove(name: str, text: str, part: Member | Table) -> str:
    return toml_tables.remove(name, text, part.path) if isinstance(part, Table) else jsonc.remove(name, text, part.path)


def _put_json(name: str, text: str, part: Default | ListItem) -> str:
    """Return a text with a default, where it has none, or with an item that takes the place of those of ours."""
    held = get(jsonc.parse(name, text), part.path)
    if isinstance(part, Default):
        return text if held is not None else jsonc.insert(name, text, part.path, part.value)
    own = list(_own_places(held))
    if len(own) == 1 and len(own[0]) == 1 and same(get(held, own[0]), part.value):
        return text
    return jsonc.insert(name, _take(name, text, part, None), (*part.path, -1), part.value)


def _own_places(items: Any) -> Iterable[tuple[jsonc.Key, ...]]:
    """Yield where our own hooks are in a list: whole items, or single commands of other people's groups."""
    for number, item in enumerate(items if isinstance(items, list) else ()):
        inner = get(item, ("hooks",))
        if _is_own(item):
            yield (number,)
        elif isinstance(inner, list) and any(map(_is_own, inner)):
            if all(map(_is_own, inner)):
                yield (number,)
            else:
                yield from ((number, "hooks", place) for place, one in enumerate(inner) if _is_own(one))


def _is_own(item: Any) -> bool:
    command = get(item, ("command",))
    return isinstance(command, str) and _OWN.search(command) is not None


def _take(name: str, text: str, part: Part, trace: Installed | None) -> str:
    """Return a text without a part; without a trace only the very server that `install` writes is taken for ours."""
    if isinstance(part, MarkedLines):
        return text_blocks.take_out(name, text, part.word)
    if isinstance(part, ListItem):
        for place in reversed(list(_own_places(get(jsonc.parse(name, text), part.path)))):
            text = jsonc.remove(name, text, (*part.path, *place))
        return text
    if isinstance(part, Default):
        return text
    found = _held(name, text, part)
    written = dict(trace.servers).get(part.path) if trace else None
    is_ours = same(found, part.value) if trace is None else written is not None and has_all(found, written)
    return _remove(name, text, part) if is_ours else text


def _heads(parts: Sequence[Part]) -> Iterable[str]:
    return (part.head for part in parts if isinstance(part, MarkedLines))


def _is_empty(name: str, text: str, parts: Sequence[Part]) -> bool:
    """Return whether nothing but defaults of ours is left."""
    if text.strip() in ("", *(head.strip() for head in _heads(parts))):
        return True
    if jsonc.mask(text) != text or not any(isinstance(part, Member | Default | ListItem) for part in parts):
        return False
    defaults = {part.path[0]: part.value for part in parts if isinstance(part, Default)}
    left = jsonc.parse(name, text)
    return all(key in defaults and same(value, defaults[key]) for key, value in left.items())


def has_all(found: object, wanted: Mapping[str, Any]) -> bool:
    """Return whether a server has all that ours has, and perhaps more.

    Example:
        >>> has_all({"command": "kb", "enabled": False}, {"command": "kb"}), has_all({"command": "x"}, {"command": "kb"})
        (True, False)
    """
    return isinstance(found, Mapping) and all(name in found and found[name] == value for name, value in wanted.items())


def same(left: Any, right: Any) -> bool:
    """Return whether two values are the same JSON, in which true is not 1."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def get(value: Any, path: Sequence[jsonc.Key]) -> Any:
    """Return what is at a path of a parsed document, or None."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            return None
    return value
