"""Notes of Obsidian: each becomes an entry with its properties, tags and links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory_kb.learning.imports.notes import SourceNote, drop_title, name_notes, read_note
from memory_kb.learning.imports.pieces import Piece, TextFile, dated_fields, left_out
from memory_kb.learning.intake import id_of
from memory_kb.learning.remember import Draft
from memory_kb.notes.fields import read_text
from memory_kb.notes.splice import Value
from memory_kb.notes.tags import find_tags
from memory_kb.notes.wikilinks import find_block_ids, find_wikilinks, without_code
from memory_kb.words import KIND_ALIASES, KINDS, WORKING_KINDS

_MOST_TAGS = 50


def read(files: Sequence[TextFile]) -> Iterator[Piece]:
    """Yield what the notes of a vault become.

    Text stays as it is, wikilinks and block ids included: the new entry is called as the note was,
    by title, file name and aliases, so that they lead to it. What a note embeds it is linked to.

    Example:
        >>> tea = TextFile("v/Tea.md", "---\\naliases: [Cha]\\ntags: drinks\\n---\\n![[Cup#^size]] Green #hot/green. ^g1\\n")
        >>> piece, cup = read([tea, TextFile("v/Cup.md", "Two sizes. ^size\\n")])
        >>> piece.draft.title, piece.draft.tags, [name for name, _ in piece.draft.fields]
        ('Tea', ('drinks', 'hot/green'), ['imported_from', 'aliases', 'links'])
    """
    notes = [read_note(file) for file in files]
    keys = {note.path: f"import/obsidian/{note.path}" for note in notes}
    names = name_notes(notes, keys, "aliases", "alias")
    blocks = {note.stem.casefold(): frozenset(find_block_ids(note.body)) for note in notes}
    for note in notes:
        if not note.body.strip():
            yield left_out("note", note.path, 1, "it is empty")
        elif "excalidraw-plugin" in note.meta or "kanban-plugin" in note.meta:
            yield left_out("note", note.path, 1, "it is the drawing or board of a plugin")
        else:
            yield from _read_one(note, keys[note.path], names, blocks)


def _read_one(note: SourceNote, key: str, names: dict[str, str], blocks: dict[str, frozenset[str]]) -> Iterator[Piece]:
    links: dict[str, None] = {}
    missing: list[Piece] = []
    bare = without_code(note.body)
    for link in find_wikilinks(bare):
        line = note.line + bare.count("\n", 0, link.whole.start)
        target = link.target.removesuffix(".md").casefold()
        if link.is_attachment:
            missing.append(
                left_out("attachment", note.path, line, f"{link.target} is no text; the entry still names it")
            )
        elif target not in names:
            missing.append(
                left_out("link", note.path, line, f"[[{link.target}]] leads to no note here; the text still names it")
            )
        elif link.anchor.startswith("^") and link.anchor[1:] not in blocks.get(
            target.rpartition("/")[2], frozenset({link.anchor[1:]})
        ):
            missing.append(
                left_out("link", note.path, line, f"{link.target} has no block {link.anchor}; the text still names it")
            )
        elif link.is_embed and names[target] != id_of(key):
            links[names[target]] = None
    tags = tuple(dict.fromkeys((*note.words("tags", "tag"), *find_tags(note.body))))[:_MOST_TAGS]
    fields: list[tuple[str, Value]] = [
        *dated_fields(note.meta.get("created") or note.meta.get("created_at") or note.meta.get("date")),
        ("imported_from", f"obsidian: {note.path}"),
    ]
    # Links name notes by their files, whatever title a property gives.
    aliases = dict.fromkeys((*((note.stem,) if note.stem != note.title else ()), *note.words("aliases", "alias")))
    fields += [("aliases", list(aliases))] if aliases else []
    fields += [("links", [{"to": to, "relation": "related_to"} for to in links])] if links else []
    text = drop_title(note.body, note.title) or note.body.strip("\n")
    yield Piece(
        "note",
        note.path,
        note.line,
        key,
        Draft(text, _kind(note), note.title, tags, None, (), "external_unverified", tuple(fields)),
    )
    yield from missing


def _kind(note: SourceNote) -> str:
    word = (read_text(note.meta.get("kind")) or "fact").casefold()
    kind = KIND_ALIASES.get(word, word)
    return kind if kind in KINDS and kind not in WORKING_KINDS else "fact"
