"""AGENTS.md, CLAUDE.md and the like: what stands there in bullets becomes rules, policies and preferences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_kb.learning.imports.lists import Item, read_outline
from memory_kb.learning.imports.pieces import Piece, TextFile, left_out, tag_of
from memory_kb.learning.remember import Draft
from memory_kb.notes.frontmatter import InvalidBlock, load_mapping
from memory_kb.text import shorten

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


def read(file: TextFile) -> Iterator[Piece]:
    """Yield the bullets of an instruction file; a block that memory-kb keeps there is passed over.

    A file in a folder holds for the files below that folder.

    Example:
        >>> pieces = list(read(TextFile("web/AGENTS.md", "## Style\\n- Prefer hooks.\\n- NEVER edit dist/.\\n\\nSome prose.\\n")))
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


def _refuse(file: TextFile, item: Item) -> Piece:
    if _IMPORT.match(item.text.strip()):
        return left_out(
            "import", file.path, item.line, f"names another file, {item.text.strip()}; import that by itself"
        )
    return left_out("paragraph", file.path, item.line, "a paragraph, not a rule in a list")


def _piece(file: TextFile, item: Item, globs: tuple[str, ...]) -> Piece:
    kind, heading = _kind(item), _telling(item.headings)
    title = f"{heading}: {shorten(item.text.splitlines()[0], 70)}" if heading else None
    tags = (tag_of(heading),) if heading and tag_of(heading) else ()
    draft = Draft(item.text, kind, title, tags, None, globs, "observed")
    return Piece("bullet", file.path, item.line, f"{file.path}/{' '.join(item.text.casefold().split())}", draft)


def _kind(item: Item) -> str:
    """Return the kind of a bullet, by its own words and those of the headings above it."""
    above = " / ".join(item.headings[-2:])
    if _STRICT.search(item.text):
        return "policy"
    if _PREFERS.search(item.text) or _PERSONAL.search(above):
        return "preference"
    if _PLAIN.search(above):
        return "architecture" if re.search("architecture|structure|layout", above, re.IGNORECASE) else "fact"
    return "fact" if _COMMANDS.search(above) and "`" in item.text else "rule"


def _telling(headings: tuple[str, ...]) -> str:
    """Return the nearest heading that says what a bullet is about."""
    telling = (
        one
        for one in reversed(headings)
        if not set(re.findall(r"\w+", one.casefold())) <= _GENERAL and not one.endswith(".md")
    )
    return next(telling, "")


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
