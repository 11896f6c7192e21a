"""How far a definition goes that begins on a line: to its brace, its dedent, its `end` or its semicolon."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: A longer definition is no place to cite.
_MOST_LINES = 5_000
# What is opened and never closed goes on to the end, so that no text takes long.
_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*(?:\"|(?=\n)|\\?\Z)"
    r"|'(?:\\[^\n]{1,8}?|[^'\\\n])'|'(?:\\.|[^'\\\n]){2,500}'(?!\w)|`(?:\\.|[^`\\])*(?:`|\\?\Z)|[(){}\[\];\n]",
    re.DOTALL,
)
_SQL_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|\"[^\"]*\"|'(?:''|[^'])*'|\$(\w*)\$.*?(?:\$\1\$|\Z)|[();\n]", re.DOTALL
)
#: What the next line begins with, or this one ends with, where a statement goes on.
_GOES_ON = re.compile(r"\s*(?:[{.=?:&|+*/,)\]]|&&|extends\b|implements\b|where\b|throws\b)")
_UNFINISHED = re.compile(r"(?:[=,(\[{+*/&|?:<]|=>|->|\bextends|\bimplements)\s*$")


def brace_block(lines: Sequence[str], at: int, *, is_loose: bool, needs_body: bool) -> int | None:
    """Return the last line of a definition in a language with braces, or None where it has no end.

    Args:
        lines: those of the file.
        at: the line it begins on, from 1.
        is_loose: whether the end of a line may end it.
        needs_body: whether it is a mere call or declaration where no brace opens.

    Example:
        >>> brace_block(["int f(", "  int a) {", "  return '}';", "}", "x"], 1, is_loose=False, needs_body=True)
        4
        >>> brace_block(["f(1);"], 1, is_loose=False, needs_body=True) is None
        True
    """
    text = "\n".join(lines[at - 1 : at - 1 + _MOST_LINES])
    line, has_body = at, False
    opened: list[str] = []
    for found in _TOKEN.finditer(text):
        sign = found[0]
        if sign == "\n":
            may_end = has_body or (is_loose and not needs_body and not _UNFINISHED.search(lines[line - 1]))
            if not opened and may_end and (has_body or line == len(lines) or not _GOES_ON.match(lines[line])):
                return line
            line += 1
        elif len(sign) > 1:
            line += sign.count("\n")
        elif sign in "({[":
            has_body = has_body or (sign == "{" and not opened)
            opened.append(sign)
        elif sign in ")}]":
            if not opened:
                return line if is_loose and not needs_body else None
            opened.pop()
        elif not opened:
            return line if has_body or not needs_body else None
    is_over = not opened and at + text.count("\n") >= len(lines)
    return line if is_over and (has_body or (is_loose and not needs_body)) else None


def statement_block(lines: Sequence[str], at: int) -> int | None:
    """Return the line with the semicolon that ends an SQL statement; None where there is none.

    Example:
        >>> statement_block(["create table t (", "  note text default ';'", ");", "select 1;"], 1)
        3
    """
    text = "\n".join(lines[at - 1 : at - 1 + _MOST_LINES])
    line, depth = at, 0
    for found in _SQL_TOKEN.finditer(text):
        sign = found[0]
        if sign == ";" and depth == 0:
            return line
        depth += {"(": 1, ")": -1}.get(sign, 0)
        line += sign.count("\n")
    return None


def indented_block(lines: Sequence[str], at: int) -> int:
    """Return the last line that is indented deeper than the first, blank ones aside.

    Example:
        >>> indented_block(["def f():", "    a", "", "    b", "", "c"], 1)
        4
    """
    indent, last = _indent(lines[at - 1]), at
    for number in range(at + 1, min(len(lines), at + _MOST_LINES) + 1):
        line = lines[number - 1]
        if line.strip():
            if _indent(line) <= indent and not line.lstrip().startswith(")"):
                break
            last = number
    return last


def keyword_block(lines: Sequence[str], at: int) -> int | None:
    """Return the line of the `end` that stands as far in as the first line; Ruby is laid out so.

    Example:
        >>> keyword_block(["  def f", "    if x", "    end", "  end"], 1), keyword_block(["def f = 1"], 1)
        (4, 1)
    """
    if re.match(r"\s*def\s+[\w.?!]+(?:\([^)]*\))?\s*=(?!=)", lines[at - 1]) or re.search(
        r";\s*end\b\s*$", lines[at - 1]
    ):
        return at
    indent = _indent(lines[at - 1])
    last = min(len(lines), at + _MOST_LINES)
    ends = (number for number in range(at + 1, last + 1) if re.match(r"\s*end\b", lines[number - 1]))
    return next((number for number in ends if _indent(lines[number - 1]) == indent), None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
