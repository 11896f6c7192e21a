"""Add our parts to an agent's file and remove them again, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from memory_kb.agents import jsonc
from memory_kb.agents import text_blocks as blocks
from memory_kb.agents import toml_tables as tomltables
from memory_kb.agents.agent import ListItem, MarkedLines, Member, Part, Table
from memory_kb.agents.jsonc import Insertion
from memory_kb.errors import CannotSplice
from memory_kb.text import encode, hash_of

_OWN = re.compile(r"""(?:memory-kb|mkb|memory_kb)(?:\.exe)?["']?\s+hook\s""")


@dataclass(frozen=True, slots=True)
class Installed:
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
        """Return whether a server may be one that we put there."""
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
    before = _decode(name, data)
    work = _Work(before)
    for part in parts:
        work = _put(name, work, part, old)
    after = encode(work.text)
    if data is not None and after == data:
        return after, replace(old or Installed(hash_of(after), ""), put=work.put)
    spans = tuple((one.at, len(one.text)) for one in work.spans)
    if old is None or data is None or old.before == hash_of(data):
        origin = None if data is None else hash_of(data)
        return after, Installed(hash_of(after), origin if work.is_exact else "", spans, work.made, put=work.put)
    made = tuple(dict.fromkeys((*old.made, *work.made)))
    if old.after == hash_of(data) and work.is_exact:
        return after, replace(old, after=hash_of(after), spans=old.spans + spans, made=made, put=work.put)
    return after, replace(
        old, after=hash_of(after), before=None if old.before is None else "", spans=(), made=made, put=work.put
    )


def take_out(name: str, data: bytes, parts: Sequence[Part], trace: Installed | None) -> bytes | None:
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


def find_left(name: str, data: bytes | None, parts: Sequence[Part], trace: Installed | None = None) -> bool:
    """Return whether a file has a server of our name that is not ours, after `put_in` with its trace or after `take_out`.

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
    group = get(parse(name, text), part.path[:-1])
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


def _put(name: str, work: _Work, part: Part, old: Installed | None) -> _Work:
    if isinstance(part, MarkedLines):
        return _after(work, *blocks.put(name, work.text, part.word, part.lines, part.lead))
    if _is_server(part):
        found = _held(name, work.text, part)
        wanted = part.values if isinstance(part, Table) else part.value
        is_same, is_put = same(found, wanted), old is not None and old.has_put(part.path)
        if found is None or is_same or (is_put and (has_all(found, wanted) or is_written_by_us(found))):
            work = replace(work, put=(*work.put, part.path))
        if found is not None and (is_same or has_all(found, wanted) or not (is_put and is_written_by_us(found))):
            return work
    if isinstance(part, Table):
        if found is not None:
            work = replace(work, text=tomltables.remove(name, work.text, part.path), spans=(), is_exact=False)
        return _after(work, *tomltables.insert(name, work.text, part.path, dict(part.values)))
    value = jsonc.parse(name, work.text)
    made = tuple(path for path in _containers(part) if get(value, path) is None)
    at: jsonc.Path = part.path
    if isinstance(part, ListItem):
        own = list(_own_places(get(value, part.path)))
        if len(own) == 1 and len(own[0]) == 1 and same(get(value, (*part.path, *own[0])), part.value):
            return work
        at = (*part.path, -1)
        past = [(*part.path, *place) for place in own]
    else:
        found = get(value, part.path)
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


def _containers(part: Member | ListItem) -> Iterable[tuple[str, ...]]:
    last = len(part.path) + isinstance(part, ListItem)
    return [part.path[:length] for length in range(1, last)]


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
    if isinstance(part, MarkedLines):
        return blocks.take_out(name, text, part.word)
    if _is_server(part):
        found = _held(name, text, part)
        is_ours = runs_us(found) if trace and trace.put and part.path in trace.put else is_written_by_us(found)
        if found is None or not is_ours or (trace is not None and not trace.has_put(part.path)):
            return text
        return (
            tomltables.remove(name, text, part.path) if isinstance(part, Table) else jsonc.remove(name, text, part.path)
        )
    if isinstance(part, ListItem):
        for place in reversed(list(_own_places(get(jsonc.parse(name, text), part.path)))):
            text = jsonc.remove(name, text, (*part.path, *place))
    return text


def _prune(name: str, text: str, path: tuple[str, ...]) -> str:
    return jsonc.remove(name, text, path) if get(jsonc.parse(name, text), path) in ({}, []) else text


def _is_empty(name: str, text: str, parts: Sequence[Part]) -> bool:
    """Return whether nothing but defaults of ours is left."""
    if not text.strip():
        return True
    if jsonc.mask(text) != text or not any(isinstance(part, Member | ListItem) for part in parts):
        return False
    defaults = {part.path[0]: part.value for part in parts if isinstance(part, Member) and part.is_default}
    left = jsonc.parse(name, text)
    return all(key in defaults and same(value, defaults[key]) for key, value in left.items())


#: What follows Python where there is no command; without -P a package of the folder it runs in would come first.
_AS_MODULE = (["-P", "-m", "memory_kb"], ["-m", "memory_kb"])
_PROGRAM = re.compile(r"(?:.*[/\\])?(?:memory-kb|mkb)(?:\.exe|\.cmd)?", re.IGNORECASE)
_FIXED = {"type": ("stdio", "local"), "enabled": (True,)}


def has_all(found: object, wanted: Mapping[str, Any]) -> bool:
    """Return whether a server has all that ours has, and perhaps more.

    Example:
        >>> has_all({"command": "kb", "enabled": False}, {"command": "kb"}), has_all({"command": "x"}, {"command": "kb"})
        (True, False)
    """
    return isinstance(found, Mapping) and all(name in found and found[name] == value for name, value in wanted.items())


def runs_us(found: object) -> bool:
    """Return whether a server is memory-kb's, however it is called.

    Example:
        >>> runs_us({"command": "/opt/bin/memory-kb", "args": ["mcp", "--profile", "full"]}), runs_us({"command": "/opt/x"})
        (True, False)
    """
    return _after_program(_words(found)) is not None


def is_written_by_us(found: object) -> bool:
    """Return whether a server is one that `install` could have written, in this version or another, for some vault.

    Example:
        >>> is_written_by_us({"command": "memory-kb", "args": ["mcp", "--vault", "/notes"]})
        True
        >>> is_written_by_us({"command": "memory-kb", "args": ["mcp"], "env": {"A": "b"}})
        False
        >>> is_written_by_us({"command": ["python", "-m", "memory_kb", "mcp"], "type": "local", "enabled": True})
        True
    """
    if not isinstance(found, Mapping) or any(
        found[name] not in _FIXED.get(name, ()) for name in found if name not in ("command", "args")
    ):
        return False
    rest = _after_program(_words(found))
    return rest is not None and rest[:1] == ["mcp"] and (rest[1:] == [] or (len(rest) == 3 and rest[1] == "--vault"))


def _words(found: object) -> list[str]:
    """Return the command line of a server."""
    if not isinstance(found, Mapping):
        return []
    command, args = found.get("command"), found.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    return words if all(isinstance(word, str) for word in words) else []


def _after_program(words: Sequence[str]) -> list[str] | None:
    """Return what memory-kb is called with, or None where it is another program."""
    if words and _PROGRAM.fullmatch(words[0]):
        return list(words[1:])
    start = next((start for start in _AS_MODULE if list(words[1 : 1 + len(start)]) == start), None)
    return list(words[1 + len(start) :]) if start else None


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
