"""Putting our parts into a file of an agent, and taking them out: pure functions of its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory_kb.agents import blocks, jsonc, tomltables
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
    """

    after: str
    before: str | None
    spans: tuple[tuple[int, int], ...] = ()
    made: tuple[tuple[str, ...], ...] = ()
    folders: int = 0
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Work:
    """A file on its way; `is_exact` while taking the spans out again gives what was before."""

    text: str
    spans: tuple[Insertion, ...] = ()
    made: tuple[tuple[str, ...], ...] = ()
    is_exact: bool = True


def put_in(name: str, data: bytes | None, parts: Sequence[Part], old: Trace | None = None) -> tuple[bytes, Trace]:
    """Return a file with our parts in it, and the trace of that; one that has them stays as it is.

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
        work = _put(name, work, part)
    after = encode(work.text)
    if data is not None and after == data:
        return after, old or Trace(hash_of(after), "")
    spans = tuple((one.at, len(one.text)) for one in work.spans)
    if old is None or data is None or old.before == hash_of(data):
        origin = None if data is None else hash_of(data)
        return after, Trace(hash_of(after), origin if work.is_exact else "", spans, work.made)
    made = tuple(dict.fromkeys((*old.made, *work.made)))
    if old.after == hash_of(data) and work.is_exact:
        return after, replace(old, after=hash_of(after), spans=old.spans + spans, made=made)
    return after, replace(old, after=hash_of(after), before=None if old.before is None else "", spans=(), made=made)


def take_out(name: str, data: bytes, parts: Sequence[Part], trace: Trace | None) -> bytes | None:
    """Return a file without our parts; None when it was made for them and holds nothing else.

    That is what was before, byte for byte, if nobody wrote to it since; else all but our own parts.

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
        text = _take(name, text, part)
    if trace:
        for path in sorted(trace.made, key=len, reverse=True):
            text = _prune(name, text, path)
    is_made = trace is not None and trace.before is None
    return None if is_made and _is_empty(name, text, parts) else encode(text)


def _decode(name: str, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as exc:
        line = (data or b"").count(b"\n", 0, exc.start) + 1
        raise CannotSplice(f"{name}:{line}: this is not UTF-8") from exc


def _put(name: str, work: _Work, part: Part) -> _Work:
    if isinstance(part, Block):
        return _after(work, *blocks.put(name, work.text, part.word, part.lines))
    if isinstance(part, Table):
        held = tomltables.parse(name, work.text)
        found = jsonc.get(held, part.path)
        if found is not None and all(jsonc.get(found, (key,)) == value for key, value in part.values.items()):
            return work
        if found is not None:
            work = _Work(tomltables.remove(name, work.text, part.path), is_exact=False)
        return _after(work, *tomltables.insert(name, work.text, part.path, dict(part.values)))
    value = jsonc.parse(name, work.text)
    made = tuple(path for path in _containers(part) if jsonc.get(value, path) is None)
    at: jsonc.Path = part.path
    if isinstance(part, Item):
        ours = list(_own_places(jsonc.get(value, part.path)))
        if len(ours) == 1 and len(ours[0]) == 1 and jsonc.same(jsonc.get(value, (*part.path, *ours[0])), part.value):
            return work
        at = (*part.path, -1)
        old = [(*part.path, *place) for place in ours]
    else:
        found = jsonc.get(value, part.path)
        if found is not None and (part.is_default or jsonc.same(found, part.value)):
            return work
        old = [part.path] if found is not None else []
    for place in reversed(old):
        work = replace(work, text=jsonc.remove(name, work.text, place), is_exact=False)
    done = _after(work, *jsonc.insert(name, work.text, at, part.value))
    return replace(done, made=tuple(dict.fromkeys((*work.made, *made))))


def _after(work: _Work, text: str, spans: tuple[Insertion, ...]) -> _Work:
    return replace(work, text=text, spans=work.spans + spans, is_exact=work.is_exact and (bool(spans) or text == work.text))


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


def _take(name: str, text: str, part: Part) -> str:
    if isinstance(part, Block):
        return blocks.take_out(name, text, part.word)
    if isinstance(part, Table):
        held = jsonc.get(tomltables.parse(name, text), part.path)
        return text if held is None else tomltables.remove(name, text, part.path)
    value = jsonc.parse(name, text)
    if isinstance(part, Item):
        for place in reversed(list(_own_places(jsonc.get(value, part.path)))):
            text = jsonc.remove(name, text, (*part.path, *place))
        return text
    return text if part.is_default or jsonc.get(value, part.path) is None else jsonc.remove(name, text, part.path)


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
