"""Read the notes of Obsidian, basic-memory and mem0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory_kb.learning.ingest import id_of
from memory_kb.learning.render_entry import Draft, without_empty
from memory_kb.markdown.blocks import heading_text
from memory_kb.markdown.document import find_blocks
from memory_kb.markdown.links import find_links, find_tags
from memory_kb.markdown.lists_and_fences import scan_lines
from memory_kb.markdown.splice import Value
from memory_kb.model import KIND_ALIASES, KINDS, RELATIONS, UNVERIFIED, WORKING_KINDS, Span
from memory_kb.terms import MARKS
from memory_kb.text import as_text, note_name, parse_date, read_words, shorten, slugify


@dataclass(frozen=True, slots=True)
class NotePiece:
    """One thing that a source holds.

    Attributes:
        what: what it is there: `observation`, `note`, `bullet`, `memory`, `statement`.
        origin: its place, as its entry names it.
        key: what makes it this one and no other, when the source is imported again.
        draft: what it becomes; None where it is left out, for the reason in `why`.
    """

    what: str
    origin: str
    line: int
    key: str = ""
    draft: Draft | None = None
    why: str = ""


def came_from(source: str, day: object = None) -> dict[str, Value]:
    """Return the fields by which an entry names its source, and is as old as that says.

    Example:
        >>> came_from("mem0: a", "2026-03-01T10:00:00Z")
        {'created_at': '2026-03-01T10:00:00Z', 'last_reinforced': '2026-03-01', 'imported_from': 'mem0: a'}
    """
    found = parse_date(day)
    dates: dict[str, Value] = {"created_at": str(day).strip(), "last_reinforced": str(found)} if found else {}
    return {**dates, "imported_from": source}


def tag_of(text: str) -> str:
    """Return a word or heading as a tag."""
    return slugify(text, 40)


def has_letters(text: str) -> bool:
    """Return whether a text holds a letter or a digit."""
    return any(sign.isalnum() for sign in text)


class SourceNote(NamedTuple):
    """A note of another tool, with its path as reports and entries name it.

    Its `body` is the text below the frontmatter, which begins on `line`.
    """

    path: str
    text: str
    stem: str
    title: str
    meta: Mapping[str, Any]
    body: str
    line: int

    def words(self, *names: str) -> tuple[str, ...]:
        """Return the words of the first of some fields that has any."""
        return next((found for name in names if (found := read_words(self.meta.get(name)))), ())


def read_source_note(path: str, whole: str) -> SourceNote:
    """Return a file as a note; it is called by its title, else by its file's name.

    Example:
        >>> note = read_source_note("a/Tea.md", "---\\ntitle: Teas\\n---\\nGreen.\\n")
        >>> note.title, note.stem, note.body, note.line
        ('Teas', 'Tea', 'Green.\\n', 4)
    """
    text = whole.lstrip("\ufeff").replace("\r\n", "\n")
    block = next(find_blocks(text, path, []), None)
    is_head = block is not None and not text[: block.span.start].strip()
    start = block.span.end if block and is_head else 0
    meta = block.metadata if block and is_head else {}
    stem = note_name(path)
    title = as_text(meta.get("title")) or stem
    return SourceNote(path, whole, stem, title, meta, text[start:], text.count("\n", 0, start) + 1)


def _ids_by_name(notes: Iterable[SourceNote], ids: Mapping[str, str], *fields: str) -> dict[str, str]:
    """Return the ids of notes by all the names that links may use; `fields` hold further names."""
    names: dict[str, str] = {}
    for note in notes:
        path = note.path.removesuffix(".md")
        further = (word for field in fields for word in read_words(note.meta.get(field)))
        for name in (note.title, note.stem, path, path.partition("/")[2] or path, *further):
            names.setdefault(name.casefold(), ids[note.path])
    return names


def _without_title(body: str, title: str) -> str:
    first, _, rest = body.strip("\n").partition("\n")
    is_title = first.startswith("#") and heading_text(first.lstrip("#")).casefold() == title.casefold()
    return rest.strip("\n") if is_title else body.strip("\n")


def _kind_called(word: str) -> str:
    kind = KIND_ALIASES.get(word.casefold(), word.casefold())
    return kind if kind in KINDS and kind not in WORKING_KINDS else "fact"


# -- Obsidian -----------------------------------------------------------------------------------

_MOST_TAGS = 50


def read_obsidian(notes: Sequence[SourceNote], at: str = "") -> Iterator[NotePiece]:
    """Yield what the notes of a vault become; `at` is what their keys will end with, for links between them.

    Text stays as it is, wikilinks and block ids included: the new entry is called as the note was,
    by title, file name and aliases, so that they lead to it. What a note embeds it is linked to.

    Example:
        >>> tea = read_source_note("v/Tea.md", "---\\naliases: [Cha]\\ntags: drinks\\n---\\n![[Cup#^size]] Green #hot/green. ^g1\\n")
        >>> piece, cup = read_obsidian([tea, read_source_note("v/Cup.md", "Two sizes. ^size\\n")])
        >>> piece.draft.title, piece.draft.tags, list(piece.draft.fields)
        ('Tea', ('drinks', 'hot/green'), ['imported_from', 'aliases', 'links'])
    """
    ids = {note.path: id_of(f"import/obsidian/{note.path}{at}") for note in notes}
    names = _ids_by_name(notes, ids, "aliases", "alias")
    for note in notes:
        if not note.body.strip():
            yield NotePiece("note", note.path, 1, why="it is empty")
        elif "excalidraw-plugin" in note.meta or "kanban-plugin" in note.meta:
            yield NotePiece("note", note.path, 1, why="it is the drawing or board of a plugin")
        else:
            yield _read_obsidian_note(note, ids[note.path], names)


def _read_obsidian_note(note: SourceNote, own_id: str, names: dict[str, str]) -> NotePiece:
    created = note.meta.get("created") or note.meta.get("created_at") or note.meta.get("date")
    fields = came_from(f"obsidian: {note.path}", created)
    # Links name notes by their files, whatever title a property gives.
    file_name = () if note.stem == note.title else (note.stem,)
    if aliases := list(dict.fromkeys((*file_name, *note.words("aliases", "alias")))):
        fields["aliases"] = aliases
    embeds = (link.target for link in find_links(note.body) if link.is_wikilink and link.is_embed)
    linked = dict.fromkeys(names.get(target.removesuffix(".md").casefold()) for target in embeds)
    if links := [{"to": to, "relation": "related_to"} for to in linked if to not in (None, own_id)]:
        fields["links"] = links
    tags = tuple(dict.fromkeys((*note.words("tags", "tag"), *find_tags(note.body))))[:_MOST_TAGS]
    text = _without_title(note.body, note.title) or note.body.strip("\n")
    kind = _kind_called(as_text(note.meta.get("kind")) or "")
    draft = Draft(text, kind, note.title, tags, source=UNVERIFIED, fields=fields)
    return NotePiece("note", note.path, note.line, f"import/obsidian/{note.path}", draft)


# -- basic-memory -------------------------------------------------------------------------------

_OBSERVATION = re.compile(r"[ \t]*[-*+][ \t]+\[(?P<category>[^\[\]()\n]+)\](?!\()[ \t]+(?P<text>\S.*)$")
_RELATION = re.compile(
    r"[ \t]*[-*+][ \t]+(?:(?P<one>[^\s\"'\[\]]+)[ \t]+|\"(?P<double>[^\"\n]+)\"[ \t]*|'(?P<single>[^'\n]+)'[ \t]*)?"
    r"\[\[(?P<target>[^\[\]|#\n]+)[^\[\]\n]*\]\][ \t]*(?:\(.*\))?[ \t]*$"
)
_EMPTY_SECTION = re.compile(r"^#{1,6}[ \t]+Observations[ \t]*\n+(?=#{1,6}[ \t]|\Z)", re.MULTILINE | re.IGNORECASE)
_TODO = frozenset({"", "x", "X", "-", "/", "?", "!", ">"})
_TAG = re.compile(rf"(?<!\S)#(?!\d+\b(?![/-]))([\w{MARKS}/-]+)")
#: What agents call a pitfall and a rule in their notes.
_CATEGORIES = {"gotcha": "pitfall", "convention": "rule"}


class NotedFact(NamedTuple):
    """A categorised fact of a note, with the line it is on."""

    category: str
    text: str
    tags: tuple[str, ...]
    line: int


class NoteParts(NamedTuple):
    """The parts of a note: its observations, its relations as word and target, and the rest of its text."""

    rest: str
    observations: tuple[NotedFact, ...]
    relations: tuple[tuple[str, str], ...]


def looks_like_basic_memory(text: str) -> bool:
    """Return whether a note is one of basic-memory's: by its permalink, or by what is in its lists.

    Example:
        >>> looks_like_basic_memory("- [tech] Uses SQLite #db\\n"), looks_like_basic_memory("- [ ] to do\\n- [a](b)\\n")
        (True, False)
    """
    return bool(re.search(r"^permalink:", text, re.MULTILINE) or take_apart(text).observations)


def take_apart(body: str, line: int = 1) -> NoteParts:
    """Return the observations and relations of a text, and what is left.

    Lines of relations stay in the text too, where their links and their words are found.

    Example:
        >>> taken = take_apart("Pros.\\n- [method] Pour over is clear #brew (own test)\\n- requires [[Grinder]]\\n- [ ] buy beans\\n")
        >>> taken.observations[0]
        NotedFact(category='method', text='Pour over is clear (own test)', tags=('brew',), line=2)
        >>> taken.relations, taken.rest
        ((('requires', 'Grinder'),), 'Pros.\\n- requires [[Grinder]]\\n- [ ] buy beans\\n')
    """
    rest, observations, relations = list[str](), list[NotedFact](), list[tuple[str, str]]()
    for number, one in enumerate(scan_lines(body, Span(0, len(body))), line):
        if not one.is_code and (found := _read_observation(one.text, number)):
            observations.append(found)
            continue
        rest.append(body[one.span.start : one.span.end])
        if not one.is_code and (related := _RELATION.match(one.text)):
            word = related["one"] or related["double"] or related["single"] or "links_to"
            relations.append((word.strip(), related["target"].strip()))
    return NoteParts("".join(rest), tuple(observations), tuple(relations))


def _read_observation(line: str, number: int) -> NotedFact | None:
    found = _OBSERVATION.match(line)
    if not found or found["category"].strip() in _TODO:
        return None
    text = found["text"]
    tags = tuple(dict.fromkeys(tag.rstrip("/-") for tag in _TAG.findall(text)))
    said = " ".join(_TAG.sub("", text).split()) if tags else text.strip()
    return NotedFact(found["category"].strip(), said, tags, number) if said else None


def read_basic_memory(notes: Sequence[SourceNote], at: str = "") -> Iterator[NotePiece]:
    """Yield what the notes of a project become: each an entry, and each of its observations another.

    An observation is an entry of its own: it begins with the title of its note and links to it.
    `at` is what their keys will end with, for links between them.
    """
    keys = {note.path: f"import/basic-memory/{(*note.words('permalink'), note.path)[0]}" for note in notes}
    ids = {path: id_of(f"{key}{at}") for path, key in keys.items()}
    names = _ids_by_name(notes, ids, "permalink")
    for note in notes:
        if note.meta.get("type") == "schema":
            yield NotePiece("schema", note.path, 1, why="it describes notes and is none")
        else:
            yield from _read_basic_note(note, keys[note.path], ids[note.path], names)


def _read_basic_note(note: SourceNote, key: str, own_id: str, names: dict[str, str]) -> Iterator[NotePiece]:
    taken = take_apart(note.body, note.line)
    rest = _EMPTY_SECTION.sub("", f"{_without_title(taken.rest, note.title)}\n").strip("\n")
    origin = came_from(f"basic-memory: {note.path}", note.meta.get("created") or note.meta.get("date"))
    if not rest.strip() and not taken.observations:
        yield NotePiece("note", note.path, 1, why="it is empty")
        return
    links, permalink = _links(taken.relations, names, own_id), note.words("permalink")
    fields = without_empty({**origin, "links": links, "aliases": list(permalink)})
    own = str(note.meta.get("type") or "note").strip()
    is_kind = own.casefold() in ("note", *KINDS, *KIND_ALIASES)
    tags = tuple(dict.fromkeys((*note.words("tags"), *(() if is_kind else (tag_of(own),)))))
    draft = Draft(rest or f"# {note.title}", _kind_called(own), note.title, tags, source=UNVERIFIED, fields=fields)
    yield NotePiece("note", note.path, note.line, key, draft)
    for one in taken.observations:
        said, category = f"{note.title}: {one.text}", tag_of(one.category)
        kind = _kind_called(_CATEGORIES.get(category, category))
        tags = one.tags if kind == category else tuple(dict.fromkeys((category, *one.tags)))
        linked = {**origin, "links": [{"to": own_id, "relation": "elaborates"}]}
        draft = Draft(said, kind, shorten(said, 90), tags, source=UNVERIFIED, fields=linked)
        yield NotePiece("observation", note.path, one.line, f"{key}#{one.category}/{one.text.casefold()}", draft)


def _links(relations: Sequence[tuple[str, str]], names: dict[str, str], own: str) -> list[dict[str, str]]:
    """Return the relations of a note as links, those to notes that are not there left to the text."""
    links: dict[tuple[str, str], None] = {}
    for word, target in relations:
        to = names.get(target.removesuffix(".md").casefold())
        if to and to != own:
            relation = re.sub("[ -]", "_", word.casefold())
            links[to, relation if relation in RELATIONS else "related_to"] = None
    return [{"to": to, "relation": relation} for to, relation in links]


# -- mem0 ---------------------------------------------------------------------------------------

_OWNERS = ("user_id", "agent_id", "app_id", "run_id")


def is_mem0(record: object) -> bool:
    """Return whether an object of JSON is a memory of mem0's."""
    if not isinstance(record, dict) or {"mapping", "chat_messages"} & record.keys():
        return False
    return isinstance(record.get("memory"), str)


def read_mem0(record: Any, path: str, number: int) -> NotePiece:
    """Return what one memory becomes: a fact, or a preference where its categories say so.

    Example:
        >>> memory = {"id": "m1", "memory": "Arjun prefers mornings", "user_id": "arjun", "categories": ["user_preferences"]}
        >>> piece = read_mem0(memory, "m.json", 1)
        >>> piece.draft.kind, piece.draft.tags, piece.draft.fields["imported_from"]
        ('preference', ('user_preferences', 'arjun'), 'mem0: m1, user_id arjun')
    """
    if not is_mem0(record):
        return NotePiece("memory", path, number, why="it is no memory: that has a text under `memory`")
    text = record["memory"].strip()
    if not text:
        return NotePiece("memory", path, number, why="it is empty")
    owners = {name: owner for name in _OWNERS if (owner := as_text(record.get(name)))}
    own_id, categories = as_text(record.get("id")), read_words(record.get("categories"))
    metadata = record.get("metadata") if isinstance(record.get("metadata"), dict) else {}
    further = {name: word for name in metadata if (word := as_text(metadata[name]))}
    sorts = (tag_of(further[name]) for name in ("type", "category") if name in further)
    tags = tuple(dict.fromkeys((*categories, *sorts, *owners.values())))
    kind = "preference" if any("preference" in word.casefold() for word in (*categories, *further.values())) else "fact"
    named = ", ".join((*filter(None, [own_id]), *(f"{name} {owner}" for name, owner in owners.items())))
    fields = came_from(f"mem0: {named}", record.get("updated_at") or record.get("created_at"))
    key = f"import/mem0/{'/'.join(owners.values())}/{own_id or ' '.join(text.casefold().split())}"
    return NotePiece("memory", path, number, key, Draft(text, kind, tags=tags, source=UNVERIFIED, fields=fields))
