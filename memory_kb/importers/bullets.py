"""Read AGENTS.md, CLAUDE.md, MEMORY.md and daily logs: one entry per bullet, one episode per section of a day."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memory_kb.importers.notes import NotePiece, SourceNote, came_from, has_letters, tag_of
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


def read_agents_md(note: SourceNote) -> Iterator[NotePiece]:
    """Yield the bullets of an instruction file; a block that memory-kb keeps there is left out.

    A file in a folder holds for the files below that folder.

    Example:
        >>> from memory_kb.importers.notes import read_source_note
        >>> pieces = list(read_agents_md(read_source_note("web/AGENTS.md", "## Style\\n- Prefer hooks.\\n- NEVER edit dist/.\\n\\nSome prose.\\n")))
        >>> [(piece.draft.kind, piece.draft.text, piece.draft.applies_to) for piece in pieces if piece.draft]
        [('rule', 'Prefer hooks.', ('web/**',)), ('rule', 'NEVER edit dist/.', ('web/**',))]
        >>> pieces[-1].why
        'a paragraph, not a rule in a list'
    """
    globs = _globs(note)
    for block in OWN_BLOCK.finditer(note.text):
        line = note.text.count("\n", 0, block.start()) + 1
        yield NotePiece("block", note.path, line, why="memory-kb keeps this block itself")
    for item in read_outline(note.text):
        yield _read_item(item, note.path, globs)


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


def _globs(note: SourceNote) -> tuple[str, ...]:
    """Return the files that instructions hold for: those they name, else those below their folder."""
    meta, bare = note.meta, _BARE_GLOBS.match(note.text)
    named = meta.get("globs") or meta.get("paths") or (bare and bare[1])
    globs = named.split(",") if isinstance(named, str) else named
    if isinstance(globs, list):
        return tuple(glob for one in globs if (glob := str(one).strip()))
    folder = note.path.rpartition("/")[0]
    return (f"{folder}/**",) if folder and not note.path.endswith(".mdc") else ()


def read_daily_log(note: SourceNote) -> Iterator[NotePiece]:
    """Yield what a file of the log becomes: a day's sections episodes of that day, the rest facts.

    Example:
        >>> from memory_kb.importers.notes import read_source_note
        >>> pieces = list(read_daily_log(read_source_note("memory/2026-03-01.md", "# 2026-03-01\\n\\n## Deploy\\n- Rolled back.\\n\\n## Lunch\\n- Soup.\\n")))
        >>> [(piece.draft.kind, piece.draft.title, piece.draft.fields["created_at"]) for piece in pieces]
        [('episode', 'Deploy', '2026-03-01'), ('episode', 'Lunch', '2026-03-01')]
        >>> curated = read_source_note("MEMORY.md", "- Staging runs Postgres 15.\\n- Never push on Fridays.\\n")
        >>> [(piece.draft.kind, piece.draft.text) for piece in read_daily_log(curated)]
        [('fact', 'Staging runs Postgres 15.'), ('fact', 'Never push on Fridays.')]
    """
    name = note.path.rpartition("/")[2]
    found = DAY.match(name)
    kind = topic_kind(note)
    if kind and name not in CURATED:
        yield _read_topic(note, kind)
    elif found and parse_date(found["day"]):
        yield from _read_day(note, found["day"])
    else:
        yield from _read_curated(note)


def topic_kind(note: SourceNote) -> str | None:
    """Return the kind of a file that is one memory of Claude Code, as its frontmatter says; None for any other.

    Example:
        >>> from memory_kb.importers.notes import read_source_note
        >>> [topic_kind(read_source_note("", f"---\\ntype: {word}\\n---\\nUse tabs.\\n")) for word in ("feedback", "note")]
        ['rule', None]
    """
    inner = note.meta.get("metadata")
    return KINDS_OF_TYPES.get(str(note.meta.get("type", inner.get("type") if isinstance(inner, dict) else "")))


def _read_topic(note: SourceNote, kind: str) -> NotePiece:
    said = remove_injected(note.body).strip()
    if not has_letters(said):
        return NotePiece("memory", note.path, note.line, why="it has no words")
    fields = came_from(f"agent's memory: {note.path}")
    draft = Draft(said, kind, as_text(note.meta.get("name")), applies_to=_globs(note), source="observed", fields=fields)
    return NotePiece("memory", note.path, note.line, f"import/daily-logs/{note.path}", draft)


def _read_day(note: SourceNote, day: str) -> Iterator[NotePiece]:
    """Yield an episode for each part of a day's file, as its headings of the first two levels divide it."""
    sections = find_sections(note.body)
    parts = [("", Span(0, sections[0].span.start if sections else len(note.body)), note.line)]
    parts += [(one.heading, one.content, note.line + note.body.count("\n", 0, one.span.start)) for one in sections]
    for title, place, line in parts:
        text = note.body[place.start : place.end]
        said = _COMMENT.sub("", remove_injected(text)).strip()
        if not has_letters(said):
            if text.strip():
                yield NotePiece("section", note.path, line, why="it has no words of its own")
            continue
        head = title if title and day not in title else ""
        named = head or shorten(said.splitlines()[0].lstrip("-*#> "), 70)
        draft = Draft(said, "episode", named, source="observed", fields=came_from(f"daily log: {note.path}", day))
        yield NotePiece("section", note.path, line, f"import/daily-logs/{note.path}/{title}/{fold_case(said)}", draft)


def _read_curated(note: SourceNote) -> Iterator[NotePiece]:
    for piece in read_agents_md(note._replace(path=note.path.rpartition("/")[2])):
        draft = piece.draft
        if draft is None:
            yield replace(piece, origin=note.path)
        elif pointer := _POINTER.match(draft.text):
            yield NotePiece("bullet", note.path, piece.line, why=f"points to another file, {pointer[1]}")
        else:
            own = replace(draft, kind="fact", applies_to=(), fields=came_from(f"daily log: {note.path}"))
            key = f"import/daily-logs/{note.path}/{fold_case(draft.text)}"
            yield NotePiece(piece.what, note.path, piece.line, key, own)
