"""Read the notes of Obsidian, basic-memory and mem0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory_kb.learning.ingest import id_of
from memory_kb.learning.new_entry import Draft
from memory_kb.markdown.document import find_blocks
from memory_kb.markdown.fields import parse_date, read_text, read_words
from memory_kb.markdown.links import find_tags, find_wikilinks, without_code
from memory_kb.markdown.scanner import scan_lines
from memory_kb.markdown.splice import Value
from memory_kb.model import KIND_ALIASES, KINDS, RELATIONS, UNVERIFIED, WORKING_KINDS, Location, Span
from memory_kb.text import shorten, slugify

#: What a source may be.
FORMATS = ("basic-memory", "obsidian", "daily-logs", "claude-export", "chatgpt-export", "mem0", "agents-md")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")


class TextFile(NamedTuple):
    """A file of a source: its path as reports and entries name it, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class NotePiece:
    """One thing that a source holds.

    Attributes:
        what: what it is there: `observation`, `note`, `bullet`, `memory`, `statement`.
        origin: its place, as its entry names it.
        line: the line in its file, from 1.
        key: what makes it this one and no other, when the source is imported again.
        draft: what it becomes; None where it is left out.
        why: why it is left out.
        place: where it belongs, where the source itself says that.
    """

    what: str
    origin: str
    line: int
    key: str = ""
    draft: Draft | None = None
    why: str = ""
    place: Location | None = None


def left_out(what: str, origin: str, line: int, why: str) -> NotePiece:
    """Return a piece that becomes nothing."""
    return NotePiece(what, origin, line, why=why)


def dated_fields(day: object) -> tuple[tuple[str, Value], ...]:
    """Return the fields of an entry that is as old as its source says; none for no good date.

    Example:
        >>> dated_fields("2026-03-01T10:00:00Z")
        (('created_at', '2026-03-01T10:00:00Z'), ('last_reinforced', '2026-03-01'))
    """
    found = parse_date(day)
    return (("created_at", str(day).strip()), ("last_reinforced", found.isoformat())) if found else ()


def tag_of(text: str) -> str:
    """Return a word or heading as a tag.

    Example:
        >>> tag_of("Code Style"), tag_of("数据库")
        ('code-style', '数据库')
    """
    return slugify(text, 40)


def heading_on(line: str) -> tuple[int, str] | None:
    """Return the level and the text of a heading.

    Example:
        >>> heading_on("## Rules ##"), heading_on("#tag")
        ((2, 'Rules'), None)
    """
    found = _HEADING.match(line)
    return (len(found[1]), found[2].strip()) if found else None


class SourceNote(NamedTuple):
    """A note of another tool.

    Attributes:
        stem: its file's name without the ending.
        body: its text below the frontmatter.
        line: the line its text begins on.
    """

    path: str
    stem: str
    title: str
    meta: Mapping[str, Any]
    body: str
    line: int

    def words(self, *names: str) -> tuple[str, ...]:
        """Return the words of the first of some fields that has any."""
        return next((found for name in names if (found := read_words(self.meta.get(name)))), ())


def read_note(file: TextFile) -> SourceNote:
    """Return a file as a note; it is called by its title, else by its file's name.

    Example:
        >>> note = read_note(TextFile("a/Tea.md", "---\\ntitle: Teas\\n---\\nGreen.\\n"))
        >>> note.title, note.stem, note.body, note.line
        ('Teas', 'Tea', 'Green.\\n', 4)
    """
    text = file.text.lstrip("\ufeff").replace("\r\n", "\n")
    block = next(find_blocks(text, file.path, []), None)
    is_head = block is not None and not text[: block.span.start].strip()
    start = block.span.end if block and is_head else 0
    meta = block.metadata if block and is_head else {}
    stem = file.path.rpartition("/")[2].removesuffix(".md")
    return SourceNote(
        file.path, stem, read_text(meta.get("title")) or stem, meta, text[start:], text.count("\n", 0, start) + 1
    )


def name_notes(notes: Iterable[SourceNote], key_of: Mapping[str, str], *fields: str) -> dict[str, str]:
    """Return the ids that notes are going to have, by all the names that links may use.

    Args:
        notes: the notes of one source.
        key_of: what makes each of them this one, by its path.
        fields: those that hold further names.
    """
    names: dict[str, str] = {}
    for note in notes:
        path = note.path.removesuffix(".md")
        inner = path.partition("/")[2] or path
        for name in (
            note.title,
            note.stem,
            path,
            inner,
            *(word for field in fields for word in read_words(note.meta.get(field))),
        ):
            names.setdefault(name.casefold(), id_of(key_of[note.path]))
    return names


def drop_title(body: str, title: str) -> str:
    """Return a text without the heading that only repeats its title.

    Example:
        >>> drop_title("# Tea\\n\\nGreen.\\n", "Tea"), drop_title("# Kinds\\n", "Tea")
        ('Green.', '# Kinds')
    """
    lines: Sequence[str] = body.strip("\n").split("\n")
    heading = heading_on(lines[0]) if lines else None
    return "\n".join(lines[1:] if heading and heading[1].casefold() == title.casefold() else lines).strip("\n")


_MOST_TAGS = 50


def read_obsidian(files: Sequence[TextFile]) -> Iterator[NotePiece]:
    """Yield what the notes of a vault become.

    Text stays as it is, wikilinks and block ids included: the new entry is called as the note was,
    by title, file name and aliases, so that they lead to it. What a note embeds it is linked to.

    Example:
        >>> tea = TextFile("v/Tea.md", "---\\naliases: [Cha]\\ntags: drinks\\n---\\n![[Cup#^size]] Green #hot/green. ^g1\\n")
        >>> piece, cup = read_obsidian([tea, TextFile("v/Cup.md", "Two sizes. ^size\\n")])
        >>> piece.draft.title, piece.draft.tags, [name for name, _ in piece.draft.fields]
        ('Tea', ('drinks', 'hot/green'), ['imported_from', 'aliases', 'links'])
    """
    notes = [read_note(file) for file in files]
    keys = {note.path: f"import/obsidian/{note.path}" for note in notes}
    names = name_notes(notes, keys, "aliases", "alias")
    for note in notes:
        if not note.body.strip():
            yield left_out("note", note.path, 1, "it is empty")
        elif "excalidraw-plugin" in note.meta or "kanban-plugin" in note.meta:
            yield left_out("note", note.path, 1, "it is the drawing or board of a plugin")
        else:
            yield _read_one(note, keys[note.path], names)


def _read_one(note: SourceNote, key: str, names: dict[str, str]) -> NotePiece:
    embeds = (link.target for link in find_wikilinks(without_code(note.body)) if link.is_embed)
    links = dict.fromkeys(names.get(target.removesuffix(".md").casefold()) for target in embeds)
    tags = tuple(dict.fromkeys((*note.words("tags", "tag"), *find_tags(note.body))))[:_MOST_TAGS]
    fields: list[tuple[str, Value]] = [
        *dated_fields(note.meta.get("created") or note.meta.get("created_at") or note.meta.get("date")),
        ("imported_from", f"obsidian: {note.path}"),
    ]
    # Links name notes by their files, whatever title a property gives.
    aliases = dict.fromkeys((*((note.stem,) if note.stem != note.title else ()), *note.words("aliases", "alias")))
    fields += [("aliases", list(aliases))] if aliases else []
    linked = [{"to": to, "relation": "related_to"} for to in links if to not in (None, id_of(key))]
    fields += [("links", linked)] if linked else []
    text = drop_title(note.body, note.title) or note.body.strip("\n")
    kind = _kind_called(read_text(note.meta.get("kind")) or "")
    draft = Draft(text, kind, note.title, tags, source=UNVERIFIED, fields=tuple(fields))
    return NotePiece("note", note.path, note.line, key, draft)


def _kind_called(word: str) -> str:
    """Return the kind of an entry that a note's own word names, else that of a fact."""
    kind = KIND_ALIASES.get(word.casefold(), word.casefold())
    return kind if kind in KINDS and kind not in WORKING_KINDS else "fact"


_OBSERVATION = re.compile(r"[ \t]*[-*+][ \t]+\[(?P<category>[^\[\]()\n]+)\](?!\()[ \t]+(?P<text>\S.*)$")
_TAGGED = re.compile(r"[ \t]*[-*+][ \t]+(?P<text>(?!\[)\S.*?(?<!\S)#[\w/-]+.*)$")
_RELATION = re.compile(
    r"[ \t]*[-*+][ \t]+(?:(?P<one>[^\s\"'\[\]]+)[ \t]+|\"(?P<double>[^\"\n]+)\"[ \t]*|'(?P<single>[^'\n]+)'[ \t]*)?"
    r"\[\[(?P<target>[^\[\]|#\n]+)[^\[\]\n]*\]\][ \t]*(?:\(.*\))?[ \t]*$"
)
_TODO = frozenset({"", "x", "X", "-", "/", "?", "!", ">"})
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_KINDS = {
    "decision": "decision",
    "preference": "preference",
    "architecture": "architecture",
    "design": "architecture",
    "policy": "policy",
    "rule": "rule",
    "convention": "rule",
    "guideline": "rule",
    "pattern": "rule",
    "best-practice": "rule",
    "pitfall": "pitfall",
    "gotcha": "pitfall",
    "warning": "pitfall",
    "anti-pattern": "pitfall",
}
_RELATIONS = {
    "relates_to": "related_to",
    "links_to": "related_to",
    "extends": "elaborates",
    "implements": "elaborates",
    "part_of": "elaborates",
    "inspired_by": "derived_from",
    "based_on": "derived_from",
    "derived_from": "derived_from",
    "instance_of": "example_of",
    "replaces": "supersedes",
    "replaced_by": "superseded_by",
    "contradicts": "contradicts",
}


class NotedFact(NamedTuple):
    """A categorised fact of a note, with the line it is on."""

    category: str
    text: str
    tags: tuple[str, ...]
    line: int


class Relation(NamedTuple):
    """A link from a note to another, by the word that the note has for it."""

    word: str
    target: str


class NoteParts(NamedTuple):
    """The text of a note taken apart: what is left of it, its observations and relations."""

    rest: str
    observations: tuple[NotedFact, ...]
    relations: tuple[Relation, ...]


def looks_like(text: str) -> bool:
    """Return whether a note is one of basic-memory's: by its permalink, or by what is in its lists.

    Example:
        >>> looks_like("- [tech] Uses SQLite #db\\n- requires [[Other]]\\n"), looks_like("- [ ] to do\\n- [a](b)\\n")
        (True, False)
    """
    taken = take_apart(text)
    return re.search(r"^permalink:", text, re.MULTILINE) is not None or any(
        one.category != "Note" for one in taken.observations
    )


def take_apart(body: str, line: int = 1) -> NoteParts:
    """Return the observations and relations of a text, and what is left.

    Lines of relations stay in the text too, where their links and their words are found.

    Example:
        >>> taken = take_apart("Pros.\\n- [method] Pour over is clear #brew (own test)\\n- requires [[Grinder]]\\n- [ ] buy beans\\n")
        >>> taken.observations[0]
        NotedFact(category='method', text='Pour over is clear (own test)', tags=('brew',), line=2)
        >>> taken.relations, taken.rest
        ((Relation(word='requires', target='Grinder'),), 'Pros.\\n- requires [[Grinder]]\\n- [ ] buy beans\\n')
    """
    rest: list[str] = []
    observations: list[NotedFact] = []
    relations: list[Relation] = []
    for number, one in enumerate(scan_lines(body, Span(0, len(body))), line):
        if not one.is_code and (found := _read_observation(one.text, number)):
            observations.append(found)
            continue
        rest.append(body[one.span.start : one.span.end])
        if not one.is_code and (related := _RELATION.match(one.text)):
            word = related["one"] or related["double"] or related["single"] or "links_to"
            relations.append(Relation(word.strip(), related["target"].strip()))
    return NoteParts("".join(rest), tuple(observations), tuple(relations))


def _read_observation(line: str, number: int) -> NotedFact | None:
    found = _OBSERVATION.match(line)
    if found and found["category"].strip() not in _TODO:
        category, text = found["category"].strip(), found["text"]
    elif (tagged := _TAGGED.match(line)) and "[[" not in line:
        category, text = "Note", tagged["text"]
    else:
        return None
    tags = tuple(dict.fromkeys(tag.rstrip("/-") for tag in _TAG.findall(text)))
    said = " ".join(_TAG.sub("", text).split()) if tags else text.strip()
    return NotedFact(category, said, tags, number) if said else None


def read_basic_memory(files: Sequence[TextFile]) -> Iterator[NotePiece]:
    """Yield what the notes of a project become: each an entry, and each of its observations another.

    An observation is an entry of its own: it begins with the title of its note and links to it.
    """
    notes = [read_note(file) for file in files]
    keys = {
        note.path: f"import/basic-memory/{note.words('permalink')[0] if note.words('permalink') else note.path}"
        for note in notes
    }
    names = name_notes(notes, keys, "permalink")
    for note in notes:
        if note.meta.get("type") == "schema":
            yield left_out("schema", note.path, 1, "it describes notes and is none")
        else:
            yield from _read_basic_note(note, keys[note.path], names)


def _read_basic_note(note: SourceNote, key: str, names: dict[str, str]) -> Iterator[NotePiece]:
    taken = take_apart(note.body, note.line)
    rest = _without_empty_sections(drop_title(taken.rest, note.title))
    dates = dated_fields(note.meta.get("created") or note.meta.get("date"))
    links = _links(taken.relations, names, id_of(key))
    own = str(note.meta.get("type") or "note").strip()
    tags = tuple(
        dict.fromkeys(
            (*note.words("tags"), *((tag_of(own),) if own.casefold() not in ("note", *KINDS, *KIND_ALIASES) else ()))
        )
    )
    fields: list[tuple[str, Value]] = [*dates, ("imported_from", f"basic-memory: {note.path}")]
    fields += [("links", links)] if links else []
    fields += [("aliases", list(note.words("permalink")))] if note.words("permalink") else []
    if rest.strip() or taken.observations:
        said, kind = rest or f"# {note.title}", _kind_called(own)
        draft = Draft(said, kind, note.title, tags, source=UNVERIFIED, fields=tuple(fields))
        yield NotePiece("note", note.path, note.line, key, draft)
    else:
        yield left_out("note", note.path, 1, "it is empty")
    for one in taken.observations:
        said = f"{note.title}: {one.text}"
        kind = _KINDS.get(tag_of(one.category), "fact")
        further = () if kind == tag_of(one.category) or one.category == "Note" else (tag_of(one.category),)
        more: tuple[tuple[str, Value], ...] = (
            *dates,
            ("links", [{"to": id_of(key), "relation": "elaborates"}]),
            ("imported_from", f"basic-memory: {note.path}"),
        )
        words = tuple(dict.fromkeys((*further, *one.tags)))
        draft = Draft(said, kind, shorten(said, 90), words, source=UNVERIFIED, fields=more)
        yield NotePiece("observation", note.path, one.line, f"{key}#{one.category}/{one.text.casefold()}", draft)


def _links(relations: Sequence[Relation], names: dict[str, str], own: str) -> list[dict[str, str]]:
    """Return the relations of a note as links, those to notes that are not there left to the text."""
    links: dict[tuple[str, str], None] = {}
    for one in relations:
        word = one.word.casefold().replace(" ", "_").replace("-", "_")
        to = names.get(one.target.removesuffix(".md").casefold())
        if to and to != own:
            links[to, _RELATIONS.get(word, word if word in RELATIONS else "related_to")] = None
    return [{"to": to, "relation": relation} for to, relation in links]


def _without_empty_sections(text: str) -> str:
    """Return a text without the heading `Observations` where nothing is left below it."""
    return re.sub(
        r"^#{1,6}[ \t]+Observations[ \t]*\n+(?=#{1,6}[ \t]|\Z)", "", f"{text}\n", flags=re.MULTILINE | re.IGNORECASE
    ).strip("\n")


_OWNERS = ("user_id", "agent_id", "app_id", "run_id")


def is_record(record: object) -> bool:
    """Return whether an object of JSON is a memory of mem0's."""
    return (
        isinstance(record, dict)
        and isinstance(record.get("memory"), str)
        and not {"mapping", "chat_messages"} & record.keys()
    )


def read_mem0(record: object, path: str, number: int) -> NotePiece:
    """Return what one memory becomes: a fact, or a preference where its categories say so.

    Example:
        >>> memory = {"id": "m1", "memory": "Arjun prefers mornings", "user_id": "arjun", "categories": ["user_preferences"]}
        >>> piece = read_mem0(memory, "m.json", 1)
        >>> piece.draft.kind, piece.draft.tags, dict(piece.draft.fields)["imported_from"]
        ('preference', ('user_preferences', 'arjun'), 'mem0: m1, user_id arjun')
    """
    if not isinstance(record, dict) or not is_record(record):
        return left_out("memory", path, number, "it is no memory: that has a text under `memory`")
    text = str(record["memory"]).strip()
    if not text:
        return left_out("memory", path, number, "it is empty")
    owners = tuple((name, owner) for name in _OWNERS if (owner := read_text(record.get(name))))
    name = read_text(record.get("id")) or " ".join(text.casefold().split())
    categories = read_words(record.get("categories"))
    further = _metadata(record.get("metadata"))
    tags = tuple(
        dict.fromkeys(
            (
                *categories,
                *(tag_of(further[key]) for key in ("type", "category") if key in further),
                *(one for _, one in owners),
            )
        )
    )
    kind = "preference" if any("preference" in word.casefold() for word in (*categories, *further.values())) else "fact"
    owner_words = ", ".join(
        filter(None, (read_text(record.get("id")) or "", *(f"{what} {owner}" for what, owner in owners)))
    )
    fields: tuple[tuple[str, Value], ...] = (
        *dated_fields(record.get("updated_at") or record.get("created_at")),
        ("imported_from", f"mem0: {owner_words}"),
    )
    draft = Draft(text, kind, tags=tags, source=UNVERIFIED, fields=fields)
    return NotePiece("memory", path, number, f"import/mem0/{'/'.join(one for _, one in owners)}/{name}", draft)


def _metadata(value: object) -> Mapping[str, str]:
    held: Mapping[str, Any] = value if isinstance(value, dict) else {}
    return {str(key): text for key, item in held.items() if (text := read_text(item))}
