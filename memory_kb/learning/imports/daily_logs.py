"""`MEMORY.md` and `memory/YYYY-MM-DD.md`, as OpenClaw and others keep them: facts, and a log of days."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_kb.learning.imports.agents_md import read as read_bullets
from memory_kb.learning.imports.notes import read_note
from memory_kb.learning.imports.pieces import Piece, TextFile, dated_fields, heading_on, left_out
from memory_kb.learning.remember import Draft
from memory_kb.notes.fields import parse_date
from memory_kb.notes.injected import strip
from memory_kb.text import shorten

DAY = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})(?:-[\w.-]+)?\.md$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SIGNS = re.compile(r"<!--.*?-->", re.DOTALL)
_RULES = re.compile(r"\b(?:never|always|must|don't|do not|prefers?|avoid|use)\b", re.IGNORECASE)


def read(file: TextFile) -> Iterator[Piece]:
    """Yield what a file of the log becomes: a day's sections episodes of that day, the rest facts.

    Example:
        >>> pieces = list(read(TextFile("memory/2026-03-01.md", "# 2026-03-01\\n\\n## Deploy\\n- Rolled back.\\n\\n## Lunch\\n- Soup.\\n")))
        >>> [(piece.draft.kind, piece.draft.title, dict(piece.draft.fields)["created_at"]) for piece in pieces]
        [('episode', 'Deploy', '2026-03-01'), ('episode', 'Lunch', '2026-03-01')]
        >>> curated = TextFile("MEMORY.md", "- Staging runs Postgres 15.\\n- Never push on Fridays.\\n")
        >>> [(piece.draft.kind, piece.draft.text) for piece in read(curated)]
        [('fact', 'Staging runs Postgres 15.'), ('rule', 'Never push on Fridays.')]
    """
    name = file.path.rpartition("/")[2]
    found = DAY.match(name)
    if found and parse_date(found["day"]):
        yield from _read_day(file, found["day"])
    else:
        yield from _read_curated(file)


def _read_day(file: TextFile, day: str) -> Iterator[Piece]:
    note = read_note(file)
    for title, text, line in _sections(note.body, note.line):
        said = _SIGNS.sub("", strip(text)).strip()
        if not any(sign.isalnum() for sign in said):
            if text.strip():
                yield left_out(
                    "section",
                    file.path,
                    line,
                    "it holds nothing but memory-kb's own text" if strip(text) != text else "it has no words",
                )
            continue
        head = title if title and day not in title else ""
        fields = (*dated_fields(day), ("imported_from", f"daily log: {file.path}"))
        named = head or shorten(next(filter(None, said.splitlines())).lstrip("-*#> "), 70)
        draft = Draft(said, "episode", named, (), None, (), "observed", fields)
        yield Piece(
            "section",
            file.path,
            line,
            f"import/daily-logs/{file.path}/{title}/{' '.join(said.casefold().split())}",
            draft,
        )


def _sections(body: str, line: int) -> Iterator[tuple[str, str, int]]:
    """Yield the parts of a text below its headings of the first two levels: heading, text, line."""
    title, text, start, fence = "", list[str](), line, ""
    for number, one in enumerate(body.split("\n"), line):
        mark = _FENCE.match(one)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence else heading_on(one)
        if heading and heading[0] <= 2:
            yield title, "\n".join(text), start
            title, text, start = heading[1], [], number
        else:
            text.append(one)
    yield title, "\n".join(text), start


def _read_curated(file: TextFile) -> Iterator[Piece]:
    for piece in read_bullets(TextFile(file.path.rpartition("/")[2], file.text)):
        draft = piece.draft
        if draft is None:
            yield Piece(piece.what, file.path, piece.line, why=piece.why.replace("a rule in a list", "in a list"))
            continue
        kind = "fact" if draft.kind == "rule" and not _RULES.search(draft.text) else draft.kind
        fields = (("imported_from", f"daily log: {file.path}"),)
        own = Draft(draft.text, kind, draft.title, draft.tags, None, (), "observed", fields)
        yield Piece(
            piece.what,
            file.path,
            piece.line,
            f"import/daily-logs/{file.path}/{' '.join(draft.text.casefold().split())}",
            own,
        )
