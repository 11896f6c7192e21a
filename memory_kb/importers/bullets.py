"""Read AGENTS.md, CLAUDE.md, MEMORY.md and daily logs: one entry per bullet, one episode per section of a day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from memory_kb.importers.notes import NotePiece, TextFile, came_from, has_letters, read_source_note, tag_of
from memory_kb.injected_text import remove_injected
from memory_kb.learning.render_entry import Draft
from memory_kb.markdown.headings import OWN_BLOCK, Bullet, read_outline
from memory_kb.markdown.lists_and_fences import find_sections
from memory_kb.model import Span
from memory_kb.store.agent_memory_files import KINDS_OF_TYPES
from memory_kb.text import as_text, fold_case, parse_date, shorten

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
#: A line that takes another file in, as Claude Code reads it.
_IMPORT = re.compile(r"@[\w~./-]+")
_MOST = 2_000

#: The files that agents or people curate by hand, line by line.
CURATED = ("MEMORY.md", "USER.md")
DAY = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})(?:-[\w.-]+)?\.md$")
#: What Cursor writes without the quotes that YAML asks of a value that begins with a star.
_BARE_GLOBS = re.compile(r"\A\ufeff?---\r?\n(?:(?!---).*\n)*?globs:[ \t]*(\*.*)")
_POINTER = re.compile(r"\[[^\]\n]*\]\(([^)\s:]+\.md)\)")


def read_agents_md(file: TextFile) -> Iterator[NotePiece]:
    """Yield the bullets of an instruction file; a block that memory-kb keeps there is left out.

    A file in a folder holds for the files below that folder.

    Example:
        >>> pieces = list(read_agents_md(TextFile("web/AGENTS.md", "## Style\\n- Prefer hooks.\\n- NEVER edit dist/.\\n\\nSome prose.\\n")))
        >>> [(piece.draft.kind, piece.draft.text, piece.draft.applies_to) for piece in pieces if piece.draft]
        [('rule', 'Prefer hooks.', ('web/**',)), ('rule', 'NEVER edit dist/.', ('web/**',))]
        >>> pieces[-1].why
        'a paragraph, not a rule in a list'
    """
    globs = _globs(file)
    for block in OWN_BLOCK.finditer(file.text):
        line = file.text.count("\n", 0, block.start()) + 1
        yield NotePiece("block", file.path, line, why="memory-kb keeps this block itself")
    for item in read_outline(file.text):
        yield _read_item(item, file.path, globs)


def _read_item(item: Bullet, path: str, globs: tuple[str, ...]) -> NotePiece:
    """Return what a bullet or paragraph of an instruction file becomes."""
    if not item.is_bullet:
        if _IMPORT.fullmatch(item.text):
            return NotePiece("import", path, item.line, why=f"names another file, {item.text}; import that by itself")
        return NotePiece("paragraph", path, item.line, why="a paragraph, not a rule in a list")
    if len(item.text) > _MOST:
        return NotePiece("bullet", path, item.line, why=f"longer than {_MOST:,} characters")
    if not has_letters(item.text):
        return NotePiece("bullet", path, item.line, why="it has no words")
    heading = item.headings[-1] if item.headings else ""
    title = f"{heading}: {shorten(item.text.splitlines()[0], 70)}" if heading else None
    tags = tuple(filter(None, [tag_of(heading)]))
    draft = Draft(item.text, "rule", title, tags, applies_to=globs, source="observed", fields=came_from(path))
    return NotePiece("bullet", path, item.line, f"{path}/{fold_case(item.text)}", draft)


def _globs(file: TextFile) -> tuple[str, ...]:
    """Return the files that instructions hold for: those they name, else those below their folder."""
    meta, bare = read_source_note(file).meta, _BARE_GLOBS.match(file.text)
    named = meta.get("globs") or meta.get("paths") or (bare and bare[1])
    globs = named.split(",") if isinstance(named, str) else named
    if isinstance(globs, list):
        return tuple(glob for one in globs if (glob := str(one).strip()))
    folder = file.path.rpartition("/")[0]
    return (f"{folder}/**",) if folder and not file.path.endswith(".mdc") else ()


def read_daily_log(file: TextFile) -> Iterator[NotePiece]:
    """Yield what a file of the log becomes: a day's sections episodes of that day, the rest facts.

    Example:
        >>> pieces = list(read_daily_log(TextFile("memory/2026-03-01.md", "# 2026-03-01\\n\\n## Deploy\\n- Rolled back.\\n\\n## Lunch\\n- Soup.\\n")))
        >>> [(piece.draft.kind, piece.draft.title, piece.draft.fields["created_at"]) for piece in pieces]
        [('episode', 'Deploy', '2026-03-01'), ('episode', 'Lunch', '2026-03-01')]
        >>> curated = TextFile("MEMORY.md", "- Staging runs Postgres 15.\\n- Never push on Fridays.\\n")
        >>> [(piece.draft.kind, piece.draft.text) for piece in read_daily_log(curated)]
        [('fact', 'Staging runs Postgres 15.'), ('fact', 'Never push on Fridays.')]
    """
    name = file.path.rpartition("/")[2]
    found = DAY.match(name)
    if name not in CURATED and is_topic(file.text):
        yield _read_topic(file)
    elif found and parse_date(found["day"]):
        yield from _read_day(file, found["day"])
    else:
        yield from _read_curated(file)


def is_topic(text: str) -> bool:
    """Return whether a file is one memory of Claude Code: its frontmatter says of which type.

    Example:
        >>> is_topic("---\\nname: Tabs\\ntype: feedback\\n---\\nUse tabs.\\n"), is_topic("---\\ntype: note\\n---\\n")
        (True, False)
    """
    return text.startswith("---") and _topic_kind(read_source_note(TextFile("", text)).meta) is not None


def _topic_kind(meta: Mapping[str, Any]) -> str | None:
    inner = meta.get("metadata")
    return KINDS_OF_TYPES.get(str(meta.get("type", inner.get("type") if isinstance(inner, dict) else "")))


def _read_topic(file: TextFile) -> NotePiece:
    note = read_source_note(file)
    said = remove_injected(note.body).strip()
    if not has_letters(said):
        return NotePiece("memory", file.path, note.line, why="it has no words")
    fields = came_from(f"agent's memory: {file.path}")
    kind, title = _topic_kind(note.meta) or "fact", as_text(note.meta.get("name"))
    draft = Draft(said, kind, title, applies_to=_globs(file), source="observed", fields=fields)
    return NotePiece("memory", file.path, note.line, f"import/daily-logs/{file.path}", draft)


def _read_day(file: TextFile, day: str) -> Iterator[NotePiece]:
    """Yield an episode for each part of a day's file, as its headings of the first two levels divide it."""
    note = read_source_note(file)
    sections = find_sections(note.body)
    parts = [("", Span(0, sections[0].span.start if sections else len(note.body)), note.line)]
    parts += [(one.heading, one.content, note.line + note.body.count("\n", 0, one.span.start)) for one in sections]
    for title, place, line in parts:
        text = note.body[place.start : place.end]
        said = _COMMENT.sub("", remove_injected(text)).strip()
        if not has_letters(said):
            if text.strip():
                yield NotePiece("section", file.path, line, why="it has no words of its own")
            continue
        head = title if title and day not in title else ""
        named = head or shorten(said.splitlines()[0].lstrip("-*#> "), 70)
        draft = Draft(said, "episode", named, source="observed", fields=came_from(f"daily log: {file.path}", day))
        yield NotePiece("section", file.path, line, f"import/daily-logs/{file.path}/{title}/{fold_case(said)}", draft)


def _read_curated(file: TextFile) -> Iterator[NotePiece]:
    for piece in read_agents_md(TextFile(file.path.rpartition("/")[2], file.text)):
        draft = piece.draft
        if draft is None:
            yield replace(piece, origin=file.path)
        elif pointer := _POINTER.match(draft.text):
            yield NotePiece("bullet", file.path, piece.line, why=f"points to another file, {pointer[1]}")
        else:
            own = replace(draft, kind="fact", applies_to=(), fields=came_from(f"daily log: {file.path}"))
            key = f"import/daily-logs/{file.path}/{fold_case(draft.text)}"
            yield NotePiece(piece.what, file.path, piece.line, key, own)
