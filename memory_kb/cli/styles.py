"""Make text fit for a terminal: control characters, colours, places, line breaks."""

from __future__ import annotations

import os
import re
import sys

from memory_kb.regex import regex
from memory_kb.text import short_id

_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\udc80-\udcff]")
#: Bytes of a name that are no UTF-8, as Python holds them.
BYTE = regex(r"[\udc80-\udcff]")
_CODES = {"red": 31, "green": 32, "yellow": 33, "cyan": 36}


def clean(text: str) -> str:
    """Return text with its control characters made visible, those that turn round the order of reading too.

    A note may not drive the terminal.

    Example:
        >>> clean("a\\x1b[31mb")
        'a\\\\x1b[31mb'
        >>> clean("a\\u202eb"), clean("caf\\udce9.md")
        ('a\\\\u202eb', 'caf\\\\xe9.md')
    """
    return _CONTROL.sub(lambda found: escape(found.group()) if found.group() != "\r" else "", text)


def escape(character: str) -> str:
    """Return how a character that cannot be printed is written."""
    code = ord(character)
    code -= 0xDC00 if BYTE.match(character) else 0
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    """Return text that stays on one line.

    A path may hold a line break, and fake a line of ours.

    Example:
        >>> one_line("a\\nb")
        'a\\\\x0ab'
    """
    return clean(text).replace("\n", "\\x0a")


def use_colour() -> bool:
    """Return whether stdout is a terminal that wants colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, *, fg: str | None = None, bold: bool = False, dim: bool = False) -> str:
    """Return text in a style, where colour is wanted."""
    codes = [code for code, is_wanted in ((_CODES.get(fg or ""), fg), (1, bold), (2, dim)) if is_wanted]
    if not codes or not use_colour():
        return text
    return "".join(f"\x1b[{code}m" for code in codes) + f"{text}\x1b[0m"


def format_id(entry_id: str) -> str:
    """Return an id shortened for people, fit for a terminal."""
    return clean(short_id(entry_id))


def dim_id(entry_id: str, width: int = 0) -> str:
    """Return a shortened id in a column of some width."""
    return style(f"{format_id(entry_id):<{width}}", dim=True)


def format_place(path: str, line: int | str) -> str:
    """Return where something is in a file."""
    return style(f"{one_line(path)}:{line}", fg="green")


def wrap(text: str, indent: int = 4) -> str:
    """Return lines indented and, on a terminal, wrapped; what goes on hangs below the text of its list item."""
    if not sys.stdout.isatty():
        return "".join(" " * indent * bool(line.strip()) + line for line in text.splitlines(keepends=True))
    import shutil
    import textwrap

    width = max(40, min(110, shutil.get_terminal_size().columns))
    lines: list[str] = []
    for line in text.split("\n"):
        marker = re.match(r"\s*(?:(?:[-*+]|\d+[.)])\s+)?", line)
        first, rest = " " * indent, " " * (indent + (marker.end() if marker else 0))
        wrapped = textwrap.wrap(
            line, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
        )
        lines += wrapped or [""]
    return "\n".join(lines)
