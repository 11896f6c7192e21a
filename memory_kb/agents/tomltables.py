"""Tables of TOML files of other programs: put at the end, and taken out again; every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memory_kb.agents.jsonc import Insertion
from memory_kb.errors import CannotSplice

_LEXEMES = (
    r'"""(?:\\.|[^\\])*?"{3,5}',
    r"'''.*?'{3,5}",
    r'"(?:[^"\\\r\n]|\\.)*"',
    r"'[^'\r\n]*'",
    r"#[^\r\n]*",
    r"[^\s]|\n",
)
_LEXEME = re.compile("|".join(_LEXEMES), re.DOTALL)
_NAME = re.compile(r"""[\w-]+|"[^"\r\n]*"|'[^'\r\n]*'|[\[\].\n]""")


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


def insert(name: str, text: str, table: tuple[str, str], values: dict[str, Any]) -> tuple[str, tuple[Insertion, ...]]:
    """Put a table at the end.

    Raises:
        CannotSplice: the text is not TOML, or says what the table would belong to in another way.

    Example:
        >>> insert("config.toml", 'model = "x"\\n', ("mcp_servers", "kb"), {"command": "kb", "args": ["mcp"]})[0]
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
    return text + piece, (Insertion(len(text), piece),)


def remove(name: str, text: str, table: tuple[str, str]) -> str:
    """Take a table and those below it out, with the empty line before it.

    Raises:
        CannotSplice: the text is not TOML, or the table is not written as one.

    Example:
        >>> remove("config.toml", '[a.b]\\nx = 1\\n\\n[a.c]\\ny = [\\n  [2],\\n]\\n\\n[d]\\n', ("a", "c"))
        '[a.b]\\nx = 1\\n\\n[d]\\n'
    """
    before = parse(name, text)
    while (span := _find(text, table)) is not None:
        text = text[: span[0]] + text[span[1] :]
    group = {key: value for key, value in before[table[0]].items() if key != table[1]}
    left = {key: value for key, value in parse(name, text).items() if key != table[0] or value}
    if left != {
        **{key: value for key, value in before.items() if key != table[0]},
        **({table[0]: group} if group else {}),
    }:
        raise CannotSplice(f"{name}: [{'.'.join(table)}] is not written as a table of its own")
    return text


def _find(text: str, table: tuple[str, str]) -> tuple[int, int] | None:
    """Return where a table, or one below it, begins and ends; comments right before the next one are not its own."""
    headers = list(_headers(text))
    for number, (start, names) in enumerate(headers):
        if names[: len(table)] == list(table):
            end = headers[number + 1][0] if number + 1 < len(headers) else len(text)
            end = _without_comments(text, start, end)
            before = text[:start]
            gap = 0 if not before.endswith(("\n\n", "\n\r\n")) else 2 if before.endswith("\r\n") else 1
            return start - gap, end
    return None


def _without_comments(text: str, start: int, end: int) -> int:
    """Return the end of a table without the blank lines and comments that lead to the next."""
    lines = text[start:end].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        end -= len(lines.pop())
    return end


def _headers(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield where the line of each table's header begins, and the names in it."""
    depth, line, is_first = 0, 0, True
    for found in _LEXEME.finditer(text):
        lexeme = found[0]
        if lexeme == "\n":
            line, is_first = found.end(), True
            continue
        if lexeme == "[" and is_first and depth == 0:
            yield line, _names(text, found.end())
        depth += (lexeme in "[{") - (lexeme in "]}")
        is_first = False


def _names(text: str, offset: int) -> list[str]:
    """Return the names of a header that are plain or quoted."""
    names = []
    for found in _NAME.finditer(text, offset):
        if found[0] in "]\n":
            break
        if found[0] not in "[.":
            names.append(found[0].strip("\"'"))
    return names


def _render(value: str | list[str]) -> str:
    """Return a string or a list of them as TOML; what JSON escapes, TOML does too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
