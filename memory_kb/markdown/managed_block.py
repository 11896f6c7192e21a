"""Write our marked block into a Markdown file of other people, such as AGENTS.md or CONTINUITY.md."""

from __future__ import annotations

import re

from memory_kb.errors import CannotSplice

#: What a block ends with; `injected_text.py` knows blocks between such marks for our own text.
END = "<!-- memory-kb:end -->"
#: What is before both marks in a program.
COMMENT = "// "
#: A mark on a line of its own; in a sentence it is text about marks.
_MARK = re.compile(
    r"^\ufeff?[ \t]*(?P<mark>(?:// )?<!-- memory-kb:(?P<word>begin\b ?\S*|end) -->)[ \t]*\r?$", re.MULTILINE
)


def begin(word: str) -> str:
    """Return the mark that a block begins with.

    Example:
        >>> begin("install")
        '<!-- memory-kb:begin install -->'
    """
    return f"<!-- memory-kb:begin {word} -->"


def put(name: str, text: str, word: str, lines: str, lead: str = "") -> str:
    """Append a block, or replace the existing one.

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
    marks = list(_MARK.finditer(text))
    places = [place for place, mark in enumerate(marks) if mark["word"] == f"begin {word}"]
    if not places:
        return None
    first, *others = places
    line = text.count("\n", 0, marks[first].start()) + 1
    if others:
        raise CannotSplice(f"{name}:{line}: {begin(word)} is there twice; leave one")
    if first + 1 == len(marks) or marks[first + 1]["word"] != "end":
        raise CannotSplice(f"{name}:{line}: {begin(word)} has no {END}; put it back")
    return marks[first].start("mark"), marks[first + 1].end("mark")
