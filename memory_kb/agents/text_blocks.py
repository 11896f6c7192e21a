"""Write our marked block into a Markdown file of other people, such as AGENTS.md."""

from __future__ import annotations

import re

from memory_kb.errors import CannotSplice

#: What a block ends with; `notes/injected.py` knows blocks between such marks for our own text.
END = "<!-- memory-kb:end -->"
#: What is before both marks in a program.
COMMENT = "// "


def begin(word: str) -> str:
    """Return the mark that a block begins with.

    Example:
        >>> begin("install")
        '<!-- memory-kb:begin install -->'
    """
    return f"<!-- memory-kb:begin {word} -->"


def put(name: str, text: str, word: str, lines: str, lead: str = "") -> str:
    """Put a block at the end, or in the place of the one that is there.

    Raises:
        CannotSplice: the marks in the file are damaged.

    Example:
        >>> put("AGENTS.md", "# Us\\n", "rules", "Use tabs.")
        '# Us\\n\\n<!-- memory-kb:begin rules -->\\nUse tabs.\\n<!-- memory-kb:end -->\\n'
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join((lead + begin(word), *lines.split("\n"), lead + END))
    span = find(name, text, word)
    if span and text[span[0] : span[1]].replace("\r\n", "\n") == block.replace("\r\n", "\n"):
        return text
    if span:
        return text[: span[0]] + block + text[span[1] :]
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else 2 * newline
    return f"{text}{gap}{block}{newline}"


def take_out(name: str, text: str, word: str) -> str:
    """Take a block out, and the empty line before it.

    Raises:
        CannotSplice: the marks in the file are damaged.

    Example:
        >>> take_out("AGENTS.md", put("AGENTS.md", "# Us\\n", "rules", "Use tabs.") + "\\nMore.\\n", "rules")
        '# Us\\n\\nMore.\\n'
    """
    span = find(name, text, word)
    if span is None:
        return text
    before, after = text[: span[0]], text[span[1] :]
    after = re.sub(r"\A\r?\n", "", after)
    if before.endswith(("\n\n", "\n\r\n")):
        before = before[:-2] if before.endswith("\r\n") else before[:-1]
    return before + after


def find(name: str, text: str, word: str) -> tuple[int, int] | None:
    """Return where a block is, from mark to mark.

    Raises:
        CannotSplice: a mark is there twice, or without the other.
    """
    first = text.find(begin(word))
    if first < 0:
        return None
    last = text.find(END, first)
    line = text.count("\n", 0, first) + 1
    if text.find(begin(word), first + 1) >= 0:
        raise CannotSplice(f"{name}:{line}: {begin(word)} is there twice; leave one")
    other = text.find("<!-- memory-kb:begin", first + 1)
    if last < 0 or 0 <= other < last:
        raise CannotSplice(f"{name}:{line}: {begin(word)} has no {END}; put it back")
    return first - len(COMMENT) * text.endswith(COMMENT, 0, first), last + len(END)
