"""Append tables to TOML files of other programs, and remove them again; every other byte is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memory_kb.errors import CannotSplice

#: A line that begins a table.
_HEADER = re.compile(r"[ \t]*\[\[?([^\[\]\r\n]+)\]\]?[ \t]*(?:#[^\r\n]*)?$")


def parse(name: str, text: str) -> dict[str, Any]:
    """Return what a text says.

    Raises:
        CannotSplice: it is not TOML; the sentence says where.
    """
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as exc:
        raise CannotSplice(f"{name}: this is not TOML: {exc}") from exc
    except RecursionError as exc:
        raise CannotSplice(f"{name}: this is nested too deeply to be read") from exc


def insert(name: str, text: str, table: tuple[str, str], values: Mapping[str, Any]) -> str:
    """Put a table at the end.

    Raises:
        CannotSplice: the text is not TOML, or says what the table would belong to in another way.

    Example:
        >>> insert("config.toml", 'model = "x"\\n', ("mcp_servers", "kb"), {"command": "kb", "args": ["mcp"]})
        'model = "x"\\n\\n[mcp_servers.kb]\\ncommand = "kb"\\nargs = ["mcp"]\\n'
    """
    before = parse(name, text)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else 2 * newline
    lines = [f"[{'.'.join(table)}]", *(f"{key} = {_render(value)}" for key, value in values.items())]
    piece = gap + "".join(f"{line}{newline}" for line in lines)
    group = before.get(table[0], {})
    try:
        after = parse(name, text + piece)
    except CannotSplice:
        after = {}
    if not isinstance(group, dict) or after != {**before, table[0]: {**group, table[1]: values}}:
        raise CannotSplice(
            f"{name}: {table[0]} is written in a way that no table can be added to; make it [{table[0]}.NAME] tables"
        )
    return text + piece


def remove(name: str, text: str, table: tuple[str, str]) -> str:
    """Take a table and those below it out, with the empty line before it.

    Raises:
        CannotSplice: the text is not TOML, or the table is not written as one.

    Example:
        >>> remove("config.toml", '[a.b]\\nx = 1\\n\\n[a.c]\\ny = [\\n  [2],\\n]\\n\\n[d]\\n', ("a", "c"))
        '[a.b]\\nx = 1\\n\\n[d]\\n'
    """
    before = parse(name, text)
    kept: list[str] = []
    cut: list[str] | None = None
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line.rstrip("\r\n"))
        if header:
            kept += _comments_at_end(cut or [])
            is_ours = tuple(part.strip(" \t\"'") for part in header[1].split("."))[: len(table)] == table
            cut = [] if is_ours else None
            if is_ours and kept and not kept[-1].strip():
                kept.pop()
        (kept if cut is None else cut).append(line)
    after = "".join([*kept, *_comments_at_end(cut or [])])
    group = {key: value for key, value in before[table[0]].items() if key != table[1]}
    wanted = {key: value for key, value in before.items() if key != table[0]} | ({table[0]: group} if group else {})
    try:
        left = {key: value for key, value in parse(name, after).items() if key != table[0] or value}
    except CannotSplice:
        left = {}
    if left != wanted:
        raise CannotSplice(f"{name}: [{'.'.join(table)}] is not written as a table of its own; take it out by hand")
    return after


def _comments_at_end(lines: list[str]) -> list[str]:
    """Return the blank lines and comments behind a table, which belong to what follows."""
    end = len(lines)
    while end > 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return lines[end:]


def _render(value: str | list[str]) -> str:
    """Return a string or a list of them as TOML; what JSON escapes, TOML does too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
