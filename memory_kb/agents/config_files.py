"""Add our parts to the files of an agent and remove them again; every other byte is kept.

JSON with comments is never changed: the person is shown what to paste.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.errors import CannotSplice
from memory_kb.markdown import managed_block
from memory_kb.text import encode, hash_of

Key = str | int
JsonPath = tuple[Key, ...]

_BLANK = re.compile(r"\ufeff?[ \t\r\n]*")
_INDENT = re.compile(r'\s*\{\s*\n([ \t]+)"')
_DECODER = json.JSONDecoder()


class NotPlainJson(CannotSplice):
    """A file that is no JSON, or JSON with comments, which an edit could lose."""


def parse_json(name: str, text: str) -> dict[str, Any]:
    """Return what a text says; an empty one says `{}`. NotPlainJson for what is no JSON or has comments."""
    plain = text.removeprefix("\ufeff")
    try:
        value = json.loads(plain) if plain.strip() else {}
    except (json.JSONDecodeError, RecursionError) as exc:
        raise NotPlainJson(f"{name}: this is not plain JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise CannotSplice(f"{name}:1: this is JSON but no object")
    return value


def insert_json(name: str, text: str, path: JsonPath, value: Any) -> str:
    """Put a value at a path: a new member of an object, or behind the last item where the path ends in -1.

    Objects and the list on the way are made where they are missing.

    Example:
        >>> insert_json("x.json", '{\\n  "a": 1\\n}\\n', ("b",), {"c": [2]})
        '{\\n  "a": 1,\\n  "b": {\\n    "c": [\\n      2\\n    ]\\n  }\\n}\\n'
    """
    if not text.removeprefix("\ufeff").strip():
        return f"{text}{insert_json(name, '{}', path, value)}\n"
    start, depth = _skip(text, 0), 1
    while path[1:] and (inner := [slot for slot in _slots(text, start) if slot.key == path[0]]):
        start, path, depth = inner[-1].value, path[1:], depth + 1
    wanted, kind = ("[", "a list") if path[0] == -1 else ("{", "an object")
    if text[start] != wanted:
        line = text.count("\n", 0, start) + 1
        raise CannotSplice(f"{name}:{line}: {kind} was expected here")
    for key in reversed(path[1:]):
        value = [value] if key == -1 else {key: value}
    slots, end = _slots(text, start), _DECODER.raw_decode(text, start)[1]
    found = _INDENT.match(text)
    indent, newline = found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, ensure_ascii=False, indent=indent)
    label = "" if path[0] == -1 else f"{json.dumps(path[0], ensure_ascii=False)}: "
    item = label + lines.replace("\n", newline + indent * depth)
    if slots:
        at = slots[-1].end
        return f"{text[:at]},{newline}{indent * depth}{item}{text[at:]}"
    last = newline + indent * (depth - 1) if "\n" not in text[start:end] else ""
    return f"{text[: start + 1]}{newline}{indent * depth}{item}{last}{text[start + 1 :]}"


def remove_json(text: str, path: JsonPath) -> str:
    """Remove a member or an item, and the objects and lists around it that are empty then.

    Example:
        >>> remove_json('{\\n  "a": 1,\\n  "b": {"c": [2]}\\n}\\n', ("b", "c", 0))
        '{\\n  "a": 1\\n}\\n'
    """
    start, slots, number = _skip(text, 0), list[_Slot](), 0
    for key in path:
        outer, slots = start, _slots(text, start)
        number = max(place for place, slot in enumerate(slots) if slot.key == key)
        start = slots[number].value
    if number:
        return text[: slots[number - 1].end] + text[slots[number].end :]
    if len(slots) > 1:
        return text[: slots[0].start] + text[slots[1].start :]
    if len(path) > 1:
        return remove_json(text, path[:-1])
    return text[: outer + 1] + text[_skip(text, slots[0].end) :]


class _Slot(NamedTuple):
    """A member of an object, or an item of a list, and where it is in the text."""

    key: Key
    start: int
    value: int
    end: int


def _skip(text: str, offset: int) -> int:
    found = _BLANK.match(text, offset)
    return found.end() if found else offset


def _slots(text: str, start: int) -> list[_Slot]:
    """Return what the object or list at an offset holds; of anything else nothing."""
    found = list[_Slot]()
    offset = _skip(text, start + 1)
    while text[start] in "{[" and text[offset] not in "}]":
        key, value = len(found), offset
        if text[start] == "{":
            key, colon = _DECODER.raw_decode(text, offset)
            value = _skip(text, _skip(text, colon) + 1)
        end = _DECODER.raw_decode(text, value)[1]
        found.append(_Slot(key, offset, value, end))
        offset = _skip(text, end)
        offset = _skip(text, offset + 1) if text[offset] == "," else offset
    return found


#: A line that begins a TOML table.
_HEADER = re.compile(r"[ \t]*\[\[?([^\[\]\r\n]+)\]\]?[ \t]*(?:#[^\r\n]*)?$")


def parse_toml(name: str, text: str) -> dict[str, Any]:
    """Return what a text says."""
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise CannotSplice(f"{name}: this is not TOML: {exc}") from exc


def insert_toml(name: str, text: str, table: tuple[str, str], values: Mapping[str, Any]) -> str:
    """Put a table at the end.

    Example:
        >>> insert_toml("config.toml", 'model = "x"\\n', ("mcp_servers", "kb"), {"command": "kb", "args": ["mcp"]})
        'model = "x"\\n\\n[mcp_servers.kb]\\ncommand = "kb"\\nargs = ["mcp"]\\n'
    """
    before = parse_toml(name, text)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else 2 * newline
    # What JSON escapes, TOML does too.
    rendered = {key: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") for key, value in values.items()}
    lines = [f"[{'.'.join(table)}]", *(f"{key} = {value}" for key, value in rendered.items()), ""]
    after = text + gap + newline.join(lines)
    group = before.get(table[0], {})
    if isinstance(group, dict) and _says(after, {**before, table[0]: {**group, table[1]: values}}):
        return after
    raise CannotSplice(
        f"{name}: {table[0]} is written in a way that no table can be added to; make it [{table[0]}.NAME] tables"
    )


def remove_toml(name: str, text: str, table: tuple[str, str]) -> str:
    """Remove a table and those below it, with the empty line before it.

    Example:
        >>> remove_toml("config.toml", '[a.b]\\nx = 1\\n\\n[a.c]\\ny = [\\n  [2],\\n]\\n\\n[d]\\n', ("a", "c"))
        '[a.b]\\nx = 1\\n\\n[d]\\n'
    """
    wanted = parse_toml(name, text)
    del wanted[table[0]][table[1]]
    kept: list[str] = []
    cut: list[str] | None = None
    for line in [*text.splitlines(keepends=True), ""]:
        header = _HEADER.match(line.rstrip("\r\n"))
        if header or not line:
            kept += _comments_at_end(cut or [])
            parts = header[1].split(".") if header else ()
            is_ours = tuple(part.strip(" \t\"'") for part in parts)[: len(table)] == table
            cut = [] if is_ours else None
            if is_ours and kept and not kept[-1].strip():
                kept.pop()
        (kept if cut is None else cut).append(line)
    after = "".join(kept)
    if _says(after, wanted) or (not wanted.pop(table[0]) and _says(after, wanted)):
        return after
    raise CannotSplice(f"{name}: [{'.'.join(table)}] is not written as a table of its own; take it out by hand")


def _says(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return parse_toml("", text) == wanted
    except CannotSplice:
        return False


def _comments_at_end(lines: list[str]) -> list[str]:
    """Return the blank lines and comments behind a table, which belong to what follows."""
    end = len(lines)
    while end > 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return lines[end:]


#: A command of ours in somebody's list of hooks.
_OWN = re.compile(r"""(?:memory-kb|mkb|memory_kb)(?:\.exe)?["']?\s+hook\s""")


class InstallRecord(NamedTuple):
    """What was put into a file for some agents, so that it can be taken out byte for byte.

    `after` is the hash of the file with it, `inserted` the stretches that are ours, None where the rest is not what was
    before; `server` is ours as it was written, None where somebody's own is there; `folders` were made around the file.
    `texts` are what a bridge wrote, by the ids of the entries.
    """

    after: str
    is_made: bool = False
    inserted: Sequence[Sequence[int]] | None = None
    server: Mapping[str, Any] | None = None
    folders: int = 0
    agents: Sequence[str] = ()
    texts: Mapping[str, str] | None = None


class Server(NamedTuple):
    """A server as a member of a JSON object at a path, or as a TOML table.

    One of our name that we did not write is somebody's own, and stays.
    """

    path: tuple[str, str]
    value: Mapping[str, Any]
    is_toml: bool = False

    def put(self, name: str, text: str, old: InstallRecord | None) -> str:
        """Return a text with our server in it."""
        found = self.find(name, text)
        if found is not None:
            is_outdated = old is not None and found == old.server and not _has_all(found, self.value)
            if not is_outdated:
                return text
            text = self._remove(name, text)
        insert = insert_toml if self.is_toml else insert_json
        return insert(name, text, self.path, self.value)

    def take(self, name: str, text: str, old: InstallRecord | None) -> str:
        """Return a text without our server; without a record only the very one that `install` writes is taken for ours."""
        found = self.find(name, text)
        is_ours = found == self.value if old is None else old.server is not None and _has_all(found, old.server)
        return self._remove(name, text) if is_ours else text

    def find(self, name: str, text: str) -> Any:
        """Return the server of our name that a file has, or None."""
        group = (parse_toml if self.is_toml else parse_json)(name, text).get(self.path[0])
        return group.get(self.path[1]) if isinstance(group, dict) else None

    def is_ours(self, name: str, text: str, old: InstallRecord | None) -> bool:
        """Return whether the server of our name is what we write, or that with what somebody added to it since."""
        found = self.find(name, text)
        return found == self.value or (old is not None and old.server is not None and _has_all(found, self.value))

    def _remove(self, name: str, text: str) -> str:
        return remove_toml(name, text, self.path) if self.is_toml else remove_json(text, self.path)


class ListItem(NamedTuple):
    """An item of a JSON list at a path, known again by the `memory-kb hook` in its command."""

    path: tuple[str, str]
    value: Any

    def put(self, name: str, text: str, _: InstallRecord | None) -> str:
        """Return a text with our item in the place of those of ours."""
        places = self._own_places(name, text)
        if len(places) == 1 and parse_json(name, text)[self.path[0]][self.path[1]][places[0][0]] == self.value:
            return text
        return insert_json(name, self.take(name, text, None), (*self.path, -1), self.value)

    def take(self, name: str, text: str, _: InstallRecord | None) -> str:
        """Return a text without our items."""
        for place in reversed(self._own_places(name, text)):
            text = remove_json(text, (*self.path, *place))
        return text

    def _own_places(self, name: str, text: str) -> list[JsonPath]:
        """Return where our own hooks are in the list: whole items, or single commands of other people's groups."""
        group, found = parse_json(name, text).get(self.path[0]), list[JsonPath]()
        items = group.get(self.path[1]) if isinstance(group, dict) else None
        for number, item in enumerate(items if isinstance(items, list) else ()):
            inner = item.get("hooks") if isinstance(item, dict) else None
            commands = inner if isinstance(inner, list) else []
            own = [place for place, one in enumerate(commands) if _is_own(one)]
            is_whole = _is_own(item) or (own and len(own) == len(commands))
            found += [(number,)] if is_whole else [(number, "hooks", place) for place in own]
        return found


class MarkedLines(NamedTuple):
    """Our marked lines in a Markdown file, or in a program with `lead` before the marks."""

    word: str
    lines: str
    lead: str = ""

    def put(self, name: str, text: str, _: InstallRecord | None) -> str:
        """Return a text with our lines in it."""
        return managed_block.put(name, text, self.word, self.lines, self.lead)

    def take(self, name: str, text: str, _: InstallRecord | None) -> str:
        """Return a text without our lines."""
        return managed_block.take_out(name, text, self.word)


FilePart = Server | ListItem | MarkedLines


def put_in(
    name: str, data: bytes | None, parts: Sequence[FilePart], old: InstallRecord | None = None, head: str = ""
) -> tuple[bytes, InstallRecord]:
    """Return a file with our parts in it, and the record of that; one that has them stays as it is.

    Example:
        >>> data, record = put_in("mcp.json", b'{"servers": {}}', [Server(("servers", "kb"), {"x": 1})])
        >>> take_out("mcp.json", data, [], record)
        b'{"servers": {}}'
    """
    text = _decode(name, data) if data is not None else head
    before, server = _without(name, text, parts, old), None
    for part in parts:
        text = part.put(name, text, old)
        if isinstance(part, Server) and part.is_ours(name, text, old):
            server = part.value
    is_made = data is None or (old is not None and old.is_made)
    after = encode(text)
    return after, InstallRecord(hash_of(after), is_made, find_inserted(before, text), server)


def take_out(
    name: str, data: bytes, parts: Sequence[FilePart], record: InstallRecord | None, head: str = ""
) -> bytes | None:
    """Return a file without our parts; None when it was made for them and holds nothing else.

    That is what was before, byte for byte, if nobody wrote to it since; else all but our own parts.
    """
    text = _without(name, _decode(name, data), parts, record)
    is_empty = text.strip() in ("", "{}", head.strip())
    return None if record and record.is_made and is_empty else encode(text)


def find_inserted(before: str, after: str) -> tuple[tuple[int, int], ...] | None:
    """Return the stretches to remove from a text to get an earlier one; None where removing is not enough.

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


def render_snippet(parts: Sequence[FilePart]) -> str:
    """Return our parts of a JSON file, for a person to paste.

    Example:
        >>> render_snippet([Server(("servers", "kb"), {}), ListItem(("hooks", "stop"), {"command": "x"})])
        '{"servers": {"kb": {}}, "hooks": {"stop": [{"command": "x"}]}}'
    """
    made, _ = put_in("", None, parts)
    return json.dumps(json.loads(made), ensure_ascii=False)


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise CannotSplice(f"{name}:{line}: this is not UTF-8") from exc


def _without(name: str, text: str, parts: Sequence[FilePart], record: InstallRecord | None) -> str:
    """Return a text without our parts: as it was before where nobody wrote to it since."""
    if record and record.inserted is not None and record.after == hash_of(encode(text)):
        for start, end in reversed(record.inserted):
            text = text[:start] + text[end:]
        return text
    for part in reversed(parts):
        text = part.take(name, text, record)
    return text


def _is_own(item: object) -> bool:
    command = item.get("command") if isinstance(item, dict) else None
    return isinstance(command, str) and _OWN.search(command) is not None


def _has_all(found: object, wanted: Mapping[str, Any]) -> bool:
    """Return whether a server has all that ours has, and perhaps more."""
    return isinstance(found, Mapping) and all(name in found and found[name] == value for name, value in wanted.items())
