"""Putting our parts into a file of an agent, and taking them out: pure functions of its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from memory_kb.agents import blocks, jsonc, ours, tomltables
from memory_kb.agents.jsonc import Insertion
from memory_kb.agents.parts import Block, Item, Member, Part, Table
from memory_kb.errors import CannotSplice
from memory_kb.notes.plans import encode, hash_of

_OWN = re.compile(r"""(?:memory-kb|mkb|memory_kb)(?:\.exe)?["']?\s+hook\s""")


@dataclass(frozen=True, slots=True)
class Trace:
    """What was put into a file, so that it can be taken out byte for byte.

    Attributes:
        after: the hash of the file with it; `before` without it, None where there was no file, and
            "" where that is not known any more.
        spans: offset and length of each insertion, in the order in which they were made.
        made: the paths of the JSON objects and lists that were made for it.
        folders: how many folders around the file were.
        agents: who uses it.
        put: the paths of the servers that are ours, not somebody's own of our name; None where
            that was not written down.
    """

    after: str
    before: str | None
    spans: tuple[tuple[int, int], ...] = ()
    made: tuple[tuple[str, ...], ...] = ()
    folders: int = 0
    agents: tuple[str, ...] = ()
    put: tuple[tuple[str, ...], ...] | None = ()

    def has_put(self, path: tuple[str, ...]) -> bool:
        """Tell whether a server may be one that we put there."""
        return self.put is None or path in self.put


@dataclass(frozen=True, slots=True)
class _Work:
    """A file on its way; `is_exact` while taking the spans out again gives what was before.

    `put` are the servers in it that are ours.
    """

    text: str
    spans: tuple[Insertion, ...] = ()
    made: tuple[tuple[str, ...], ...] = ()
    is_exact: bool = True
    put: tuple[tuple[str, ...], ...] = ()


def put_in(name: str, data: bytes | None, parts: Sequence[Part], old: Trace | None = None) -> tuple[bytes, Trace]:
    """Return a file with our parts in it, and the trace of that; one that has them stays as it is.

    So does a server of our name that somebody wrote by hand; `find_left` tells of it.

    Raises:
        CannotSplice: the file is damaged, or not what it should be.

    Example:
        >>> data, trace = put_in("mcp.json", b'{"servers": {}}', [Member(("servers", "kb"), 1)])
        >>> data, take_out("mcp.json", data, [], trace)
        (b'{"servers": {\\n    "kb": 1\\n  }}', b'{"servers": {}}')
    """
    before = _decode(name, data)
    work = _Work(before)
    for part in parts:
        work = _put(name, work, part, old)
    after = encode(work.text)
    if data is not None and after == data:
        return after, replace(old or Trace(hash_of(after), ""), put=work.put)
    spans = tuple((one.at, len(one.text)) for one in work.spans)
    if old is None or data is None or old.before == hash_of(data):
        origin = None if data is None else hash_of(data)
        return after, Trace(hash_of(after), origin if work.is_exact else "", spans, work.made, put=work.put)
    made = tuple(dict.fromkeys((*old.made, *work.made)))
    if old.after == hash_of(data) and work.is_exact:
        return after, replace(old, after=hash_of(after), spans=old.spans + spans, made=made, put=work.put)
    return after, replace(
        old, after=hash_of(after), before=None if old.before is None else "", spans=(), made=made, put=work.put
    )


def take_out(name: str, data: bytes, parts: Sequence[Part], trace: Trace | None) -> bytes | None:
    """Return a file without our parts; None when it was made for them and holds nothing else.

    That is what was before, byte for byte, if nobody wrote to it since; else all but our own parts.
    A server of our name that somebody wrote by hand is none of these.

    Raises:
        CannotSplice: the file is damaged.
    """
    if trace and trace.after == hash_of(data):
        text = _decode(name, data)
        for at, length in reversed(trace.spans):
            text = text[:at] + text[at + length :]
        if trace.before is None and not text:
            return None
        if trace.before and hash_of(encode(text)) == trace.before:
            return encode(text)
    text = _decode(name, data)
    for part in reversed(parts):
        text = _take(name, text, part, trace)
    if trace:
        for path in sorted(trace.made, key=len, reverse=True):
            text = _prune(name, text, path)
    is_made = trace is not None and trace.before is None
    return None if is_made and _is_empty(name, text, parts) else encode(text)


def find_left(name: str, data: bytes | None, parts: Sequence[Part], trace: Trace | None = None) -> bool:
    """Tell whether a file has a server of our name that is not ours, after `put_in` with its trace or after `take_out`.

    Example:
        >>> part = Member(("servers", "kb"), {"command": "memory-kb", "args": ["mcp"]})
        >>> data, trace = put_in("mcp.json", b'{"servers": {"kb": {"command": "/opt/x"}}}', [part])
        >>> data, find_left("mcp.json", data, [part], trace)
        (b'{"servers": {"kb": {"command": "/opt/x"}}}', True)
    """
    text = _decode(name, data)
    servers = (part for part in parts if _is_server(part) and not (trace and part.path in (trace.put or ())))
    return any(_held(name, text, part) is not None for part in servers)


def _is_server(part: Part) -> TypeGuard[Member | Table]:
    return isinstance(part, Table) or (isinstance(part, Member) and not part.is_default)


def _held(name: str, text: str, part: Member | Table) -> Any:
    """Return the server of our name that a file has, one that is null as an empty one; None where there is none."""
    parse = tomltables.parse if isinstance(part, Table) else jsonc.parse
    group = jsonc.get(parse(name, text), part.path[:-1])
    if not isinstance(group, dict) or part.path[-1] not in group:
        return None
    found = group[part.path[-1]]
    return {} if found is None else found


def _decode(name: str, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as exc:
        line = (data or b"").count(b"\n", 0, exc.start) + 1
        raise CannotSplice(f"{name}:{line}: this is not UTF-8") from exc


def _put(name: str, work: _Work, part: Part, old: Trace | None) -> _Work:
    if isinstance(part, Block):
        return _after(work, *blocks.put(name, work.text, part.word, part.lines))
    if _is_server(part):
        found = _held(name, work.text, part)
        wanted = part.values if isinstance(part, Table) else part.value
        is_same, is_put = jsonc.same(found, wanted), old is not None and old.has_put(part.path)
        if found is None or is_same or (is_put and (ours.has_all(found, wanted) or ours.is_written_by_us(found))):
            work = replace(work, put=(*work.put, part.path))
        if found is not None and (
            is_same or ours.has_all(found, wanted) or not (is_put and ours.is_written_by_us(found))
        ):
            return work
    if isinstance(part, Table):
        if found is not None:
            work = replace(work, text=tomltables.remove(name, work.text, part.path), spans=(), is_exact=False)
        return _after(work, *tomltables.insert(name, work.text, part.path, dict(part.values)))
    value = jsonc.parse(name, work.text)
    made = tuple(path for path in _containers(part) if jsonc.get(value, path) is None)
    at: jsonc.Path = part.path
    if isinstance(part, Item):
        own = list(_own_places(jsonc.get(value, part.path)))
        if len(own) == 1 and len(own[0]) == 1 and jsonc.same(jsonc.get(value, (*part.path, *own[0])), part.value):
            return work
        at = (*part.path, -1)
        past = [(*part.path, *place) for place in own]
    else:
        found = jsonc.get(value, part.path)
        if found is not None and part.is_default:
            return work
        past = [part.path] if found is not None else []
    for place in reversed(past):
        work = replace(work, text=jsonc.remove(name, work.text, place), is_exact=False)
    done = _after(work, *jsonc.insert(name, work.text, at, part.value))
    return replace(done, made=tuple(dict.fromkeys((*work.made, *made))))


def _after(work: _Work, text: str, spans: tuple[Insertion, ...]) -> _Work:
    return replace(
        work, text=text, spans=work.spans + spans, is_exact=work.is_exact and (bool(spans) or text == work.text)
    )


def _containers(part: Member | Item) -> Iterable[tuple[str, ...]]:
    last = len(part.path) + isinstance(part, Item)
    return [part.path[:length] for length in range(1, last)]


def _own_places(items: Any) -> Iterable[tuple[jsonc.Key, ...]]:
    """Yield where our own hooks stand in a list: whole items, or single commands of other people's groups."""
    for number, item in enumerate(items if isinstance(items, list) else ()):
        inner = jsonc.get(item, ("hooks",))
        if _is_own(item):
            yield (number,)
        elif isinstance(inner, list) and any(map(_is_own, inner)):
            if all(map(_is_own, inner)):
                yield (number,)
            else:
                yield from ((number, "hooks", place) for place, one in enumerate(inner) if _is_own(one))


def _is_own(item: Any) -> bool:
    command = jsonc.get(item, ("command",))
    return isinstance(command, str) and _OWN.search(command) is not None


def _take(name: str, text: str, part: Part, trace: Trace | None) -> str:
    if isinstance(part, Block):
        return blocks.take_out(name, text, part.word)
    if _is_server(part):
        found = _held(name, text, part)
        is_ours = (
            ours.runs_us(found) if trace and trace.put and part.path in trace.put else ours.is_written_by_us(found)
        )
        if found is None or not is_ours or (trace is not None and not trace.has_put(part.path)):
            return text
        return (
            tomltables.remove(name, text, part.path) if isinstance(part, Table) else jsonc.remove(name, text, part.path)
        )
    if isinstance(part, Item):
        for place in reversed(list(_own_places(jsonc.get(jsonc.parse(name, text), part.path)))):
            text = jsonc.remove(name, text, (*part.path, *place))
    return text


def _prune(name: str, text: str, path: tuple[str, ...]) -> str:
    return jsonc.remove(name, text, path) if jsonc.get(jsonc.parse(name, text), path) in ({}, []) else text


def _is_empty(name: str, text: str, parts: Sequence[Part]) -> bool:
    """Tell whether nothing but defaults of ours is left."""
    if not text.strip():
        return True
    if jsonc.mask(text) != text or not any(isinstance(part, Member | Item) for part in parts):
        return False
    defaults = {part.path[0]: part.value for part in parts if isinstance(part, Member) and part.is_default}
    left = jsonc.parse(name, text)
    return all(key in defaults and jsonc.same(value, defaults[key]) for key, value in left.items())
