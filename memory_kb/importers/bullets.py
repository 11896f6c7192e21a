"""Read AGENTS.md, CLAUDE.md, MEMORY.md and daily logs: one entry per bullet."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.importers.notes import (
    NotePiece,
    SourceNote,
    TextFile,
    dated_fields,
    heading_on,
    left_out,
    read_note,
    tag_of,
)
from memory_kb.injected import strip
from memory_kb.learning.new_entry import Draft
from memory_kb.markdown.fields import parse_date, read_text
from memory_kb.markdown.scanner import find_items, find_sections, scan_lines
from memory_kb.model import Span
from memory_kb.store.host_memory import KINDS_OF_TYPES
from memory_kb.text import shorten
from memory_kb.yaml_loader import InvalidBlock, load_mapping

_PARAGRAPH = re.compile(r"\S.*(?:\n[ \t]*\S.*)*")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_OURS = re.compile(r"<!--\s*memory-kb:(?:begin|start)\b[^>]*-->.*?(?:<!--\s*memory-kb:end\s*-->|\Z)", re.DOTALL)


class Bullet(NamedTuple):
    """A bullet with all that belongs to it, or a paragraph.

    `headings` are those above it, the outermost first.
    """

    text: str
    line: int
    headings: tuple[str, ...]
    is_bullet: bool


class Outline(NamedTuple):
    """The items of a text, and the lines of the blocks in it that memory-kb keeps itself."""

    items: tuple[Bullet, ...]
    ours: tuple[int, ...]


def read_outline(text: str) -> Outline:
    """Return the outermost bullets and the paragraphs of a text.

    What is indented below a bullet is part of it. Comments and memory-kb's own blocks are no text.

    Example:
        >>> outline = read_outline("# A\\n## B\\n- one\\n  more\\n  - sub\\n- two\\n\\nPara.\\n")
        >>> [(item.text, item.headings[-1], item.line) for item in outline.items]
        [('one\\nmore\\n- sub', 'B', 3), ('two', 'B', 6), ('Para.', 'B', 8)]
    """
    ours = tuple(text.count("\n", 0, found.start()) + 1 for found in _OURS.finditer(text))
    text = _COMMENT.sub(_blank, _OURS.sub(_blank, text.replace("\r\n", "\n")))
    return Outline(tuple(_items(text)), ours)


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _items(text: str) -> Iterator[Bullet]:
    lines = list(scan_lines(text, Span(0, len(text))))
    heads = [(line.span, *head) for line in lines if not line.is_code and (head := heading_on(line.text))]
    ends = [*(span.start for span, _, _ in heads), len(text)]
    above: list[tuple[int, str]] = []
    places = [(Span(0, ends[0]), above)]
    for (span, level, name), end in zip(heads, ends[1:], strict=True):
        above = [*(one for one in above if one[0] < level), (level, name)]
        places.append((Span(span.end, end), above))
    starts = [line.span.start for line in lines]
    for place, headings in places:
        names = tuple(name for _, name in headings)
        bullets = find_items(text, place)
        gaps = zip(
            (place.start, *(one.span.end for one in bullets)),
            (*(one.span.start for one in bullets), place.end),
            strict=True,
        )
        found = [(one.span.start, one.text, True) for one in bullets]
        found += [(one.start(), one[0], False) for gap in gaps for one in _PARAGRAPH.finditer(text, *gap)]
        for start, said, is_bullet in sorted(found):
            yield Bullet(said.strip(), bisect_right(starts, start), names, is_bullet)


NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
_STRICT = re.compile(r"\b(?:MUST(?: NOT)?|NEVER|ALWAYS|IMPORTANT|CRITICAL|FORBIDDEN|REQUIRED|DO NOT)\b")
_PREFERS = re.compile(r"\b(?:prefer(?:s|red|ably)?|favou?r|rather than|instead of|I (?:like|want))\b", re.IGNORECASE)
_PERSONAL = re.compile(r"\b(?:preferences?|communication|tone|answers?|responses?|about me|user)\b", re.IGNORECASE)
_PLAIN = re.compile(
    r"\b(?:architecture|structure|layout|overview|stack|directories|folders|modules|components|glossary|links|resources)\b",
    re.IGNORECASE,
)
_COMMANDS = re.compile(
    r"\b(?:commands?|scripts|build|setup|install(?:ation)?|running|getting started)\b", re.IGNORECASE
)
_GENERAL = frozenset(
    [
        "rules",
        "rule",
        "guidelines",
        "guideline",
        "conventions",
        "notes",
        "general",
        "important",
        "instructions",
        "agents",
        "claude",
        "project",
        "memory",
    ]
)
_IMPORT = re.compile(r"@[\w~./-]+$")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_MOST = 2_000


def read_agents_md(file: TextFile) -> Iterator[NotePiece]:
    """Yield the bullets of an instruction file; a block that memory-kb keeps there is passed over.

    A file in a folder holds for the files below that folder.

    Example:
        >>> pieces = list(read_agents_md(TextFile("web/AGENTS.md", "## Style\\n- Prefer hooks.\\n- NEVER edit dist/.\\n\\nSome prose.\\n")))
        >>> [(piece.draft.kind, piece.draft.text, piece.draft.applies_to) for piece in pieces if piece.draft]
        [('preference', 'Prefer hooks.', ('web/**',)), ('policy', 'NEVER edit dist/.', ('web/**',))]
        >>> pieces[-1].why
        'a paragraph, not a rule in a list'
    """
    text = _FRONT.sub(lambda found: "\n" * found[0].count("\n"), file.text)
    outline = read_outline(text)
    globs = _globs(file)
    for line in outline.ours:
        yield left_out("block", file.path, line, "memory-kb keeps this block itself")
    for item in outline.items:
        if not item.is_bullet:
            yield _refuse(file, item)
        elif len(item.text) > _MOST:
            yield left_out("bullet", file.path, item.line, f"longer than {_MOST:,} characters")
        elif not any(sign.isalnum() for sign in item.text):
            yield left_out("bullet", file.path, item.line, "it has no words")
        else:
            yield _piece(file, item, globs)


def _refuse(file: TextFile, item: Bullet) -> NotePiece:
    if _IMPORT.match(item.text.strip()):
        return left_out(
            "import", file.path, item.line, f"names another file, {item.text.strip()}; import that by itself"
        )
    return left_out("paragraph", file.path, item.line, "a paragraph, not a rule in a list")


def _piece(file: TextFile, item: Bullet, globs: tuple[str, ...]) -> NotePiece:
    kind, heading = _kind(item), _nearest_topic(item.headings)
    title = f"{heading}: {shorten(item.text.splitlines()[0], 70)}" if heading else None
    tags = (tag_of(heading),) if heading and tag_of(heading) else ()
    draft = Draft(item.text, kind, title, tags, applies_to=globs, source="observed")
    return NotePiece("bullet", file.path, item.line, f"{file.path}/{_folded(item.text)}", draft)


def _kind(item: Bullet) -> str:
    """Return the kind of a bullet, by its own words and those of the headings above it."""
    above = " / ".join(item.headings[-2:])
    if _STRICT.search(item.text):
        return "policy"
    if _PREFERS.search(item.text) or _PERSONAL.search(above):
        return "preference"
    if _PLAIN.search(above):
        return "architecture" if re.search("architecture|structure|layout", above, re.IGNORECASE) else "fact"
    return "fact" if _COMMANDS.search(above) and "`" in item.text else "rule"


def _nearest_topic(headings: tuple[str, ...]) -> str:
    """Return the nearest heading that says what a bullet is about."""
    topics = (
        one
        for one in reversed(headings)
        if not set(re.findall(r"\w+", one.casefold())) <= _GENERAL and not one.endswith(".md")
    )
    return next(topics, "")


def _globs(file: TextFile) -> tuple[str, ...]:
    folder = file.path.rpartition("/")[0]
    own = _FRONT.match(file.text)
    if own:
        try:
            named = load_mapping(own[1]).get("globs") or load_mapping(own[1]).get("paths")
        except InvalidBlock:
            named = None
        if isinstance(named, list | str):
            return tuple(
                str(one).strip() for one in (named if isinstance(named, list) else named.split(",")) if str(one).strip()
            )
    return (f"{folder}/**",) if folder else ()


#: The files that agents or people curate by hand, line by line.
CURATED = ("MEMORY.md", "USER.md")
_POINTER = re.compile(r"\[[^\]\n]*\]\(([^)\s:]+\.md)\)")
DAY = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})(?:-[\w.-]+)?\.md$")
_SIGNS = re.compile(r"<!--.*?-->", re.DOTALL)
_RULES = re.compile(r"\b(?:never|always|must|don't|do not|prefers?|avoid|use)\b", re.IGNORECASE)


def read_daily_log(file: TextFile) -> Iterator[NotePiece]:
    """Yield what a file of the log becomes: a day's sections episodes of that day, the rest facts.

    Example:
        >>> pieces = list(read_daily_log(TextFile("memory/2026-03-01.md", "# 2026-03-01\\n\\n## Deploy\\n- Rolled back.\\n\\n## Lunch\\n- Soup.\\n")))
        >>> [(piece.draft.kind, piece.draft.title, dict(piece.draft.fields)["created_at"]) for piece in pieces]
        [('episode', 'Deploy', '2026-03-01'), ('episode', 'Lunch', '2026-03-01')]
        >>> curated = TextFile("MEMORY.md", "- Staging runs Postgres 15.\\n- Never push on Fridays.\\n")
        >>> [(piece.draft.kind, piece.draft.text) for piece in read_daily_log(curated)]
        [('fact', 'Staging runs Postgres 15.'), ('rule', 'Never push on Fridays.')]
    """
    name = file.path.rpartition("/")[2]
    found = DAY.match(name)
    if name not in CURATED and is_topic(file.text):
        yield _read_topic(file)
        return
    if found and parse_date(found["day"]):
        yield from _read_day(file, found["day"])
    else:
        yield from _read_curated(file)


def is_topic(text: str) -> bool:
    """Return whether a file is one memory of Claude Code: its frontmatter says of which type.

    Example:
        >>> is_topic("---\\nname: Tabs\\ntype: feedback\\n---\\nUse tabs.\\n"), is_topic("---\\ntype: note\\n---\\n")
        (True, False)
    """
    return text.startswith("---") and _topic_type(read_note(TextFile("", text))) in KINDS_OF_TYPES


def _topic_type(note: SourceNote) -> str:
    inner = note.meta.get("metadata")
    return str(note.meta.get("type", inner.get("type") if isinstance(inner, dict) else ""))


def _read_topic(file: TextFile) -> NotePiece:
    """Return the entry that a topic file becomes: its text, called as its frontmatter says."""
    note = read_note(file)
    said = strip(note.body).strip()
    if not any(sign.isalnum() for sign in said):
        return left_out("memory", file.path, note.line, "it has no words")
    fields = (("imported_from", f"agent's memory: {file.path}"),)
    title = read_text(note.meta.get("name"))
    kind = KINDS_OF_TYPES[_topic_type(note)]
    draft = Draft(said, kind, title, applies_to=_globs(file), source="observed", fields=fields)
    return NotePiece("memory", file.path, note.line, f"import/daily-logs/{file.path}", draft)


def _read_day(file: TextFile, day: str) -> Iterator[NotePiece]:
    note = read_note(file)
    for title, text, line in _sections(note.body, note.line):
        said = _SIGNS.sub("", strip(text)).strip()
        if not any(sign.isalnum() for sign in said):
            if text.strip():
                is_ours = strip(text) != text
                why = "it holds nothing but memory-kb's own text" if is_ours else "it has no words"
                yield left_out("section", file.path, line, why)
            continue
        head = title if title and day not in title else ""
        fields = (*dated_fields(day), ("imported_from", f"daily log: {file.path}"))
        named = head or shorten(next(filter(None, said.splitlines())).lstrip("-*#> "), 70)
        draft = Draft(said, "episode", named, source="observed", fields=fields)
        yield NotePiece("section", file.path, line, f"import/daily-logs/{file.path}/{title}/{_folded(said)}", draft)


def _sections(body: str, line: int) -> Iterator[tuple[str, str, int]]:
    """Yield the parts of a text below its headings of the first two levels: heading, text, line."""
    sections = find_sections(body)
    yield "", body[: sections[0].span.start] if sections else body, line
    for one in sections:
        yield one.heading, body[one.content.start : one.content.end], line + body.count("\n", 0, one.span.start)


def _read_curated(file: TextFile) -> Iterator[NotePiece]:
    for piece in read_agents_md(TextFile(file.path.rpartition("/")[2], file.text)):
        draft = piece.draft
        if draft and (pointer := _POINTER.match(draft.text)):
            yield left_out("bullet", file.path, piece.line, f"points to another file, {pointer[1]}")
            continue
        if draft is None:
            yield NotePiece(piece.what, file.path, piece.line, why=piece.why.replace("a rule in a list", "in a list"))
            continue
        kind = "fact" if draft.kind == "rule" and not _RULES.search(draft.text) else draft.kind
        fields = (("imported_from", f"daily log: {file.path}"),)
        own = Draft(draft.text, kind, draft.title, draft.tags, source="observed", fields=fields)
        key = f"import/daily-logs/{file.path}/{_folded(draft.text)}"
        yield NotePiece(piece.what, file.path, piece.line, key, own)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
