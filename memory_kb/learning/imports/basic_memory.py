"""Notes of basic-memory: observations become entries of their own, relations become links.

The format is the one its NOTE-FORMAT page describes: `- [category] text #tag (context)` and
`- relation_type [[Target]] (context)`, wherever they stand in a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memory_kb.learning.imports.notes import SourceNote, drop_title, name_notes, read_note
from memory_kb.learning.imports.pieces import Piece, TextFile, dated_fields, left_out, tag_of
from memory_kb.learning.intake import id_of
from memory_kb.learning.remember import Draft
from memory_kb.notes.splice import Value
from memory_kb.text import shorten
from memory_kb.words import KIND_ALIASES, KINDS, RELATIONS, WORKING_KINDS

_OBSERVATION = re.compile(r"[ \t]*[-*+][ \t]+\[(?P<category>[^\[\]()\n]+)\](?!\()[ \t]+(?P<text>\S.*)$")
_TAGGED = re.compile(r"[ \t]*[-*+][ \t]+(?P<text>(?!\[)\S.*?(?<!\S)#[\w/-]+.*)$")
_RELATION = re.compile(
    r"[ \t]*[-*+][ \t]+(?:(?P<one>[^\s\"'\[\]]+)[ \t]+|\"(?P<double>[^\"\n]+)\"[ \t]*|'(?P<single>[^'\n]+)'[ \t]*)?"
    r"\[\[(?P<target>[^\[\]|#\n]+)[^\[\]\n]*\]\][ \t]*(?:\(.*\))?[ \t]*$"
)
_TODO = frozenset({"", "x", "X", "-", "/", "?", "!", ">"})
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
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


class Observation(NamedTuple):
    """A categorised fact of a note, with the line it stands on."""

    category: str
    text: str
    tags: tuple[str, ...]
    line: int


class Relation(NamedTuple):
    """A link from a note to another, by the word that the note has for it."""

    word: str
    target: str


class Reading(NamedTuple):
    """The text of a note taken apart: what is left of it, its observations and relations."""

    rest: str
    observations: tuple[Observation, ...]
    relations: tuple[Relation, ...]


def looks_like(text: str) -> bool:
    """Tell whether a note is one of basic-memory's: by its permalink, or by what stands in its lists.

    Example:
        >>> looks_like("- [tech] Uses SQLite #db\\n- requires [[Other]]\\n"), looks_like("- [ ] to do\\n- [a](b)\\n")
        (True, False)
    """
    taken = take_apart(text)
    return re.search(r"^permalink:", text, re.MULTILINE) is not None or any(
        one.category != "Note" for one in taken.observations
    )


def take_apart(body: str, line: int = 1) -> Reading:
    """Return the observations and relations of a text, and what is left.

    Lines of relations stay in the text too, where their links and their words are found.

    Example:
        >>> taken = take_apart("Pros.\\n- [method] Pour over is clear #brew (own test)\\n- requires [[Grinder]]\\n- [ ] buy beans\\n")
        >>> taken.observations[0]
        Observation(category='method', text='Pour over is clear (own test)', tags=('brew',), line=2)
        >>> taken.relations, taken.rest
        ((Relation(word='requires', target='Grinder'),), 'Pros.\\n- requires [[Grinder]]\\n- [ ] buy beans\\n')
    """
    rest: list[str] = []
    observations: list[Observation] = []
    relations: list[Relation] = []
    fence = ""
    for number, text in enumerate(body.split("\n"), line):
        mark = _FENCE.match(text)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        found = None if fence else _read_observation(text, number)
        if found:
            observations.append(found)
            continue
        rest.append(text)
        related = None if fence else _RELATION.match(text)
        if related:
            word = related["one"] or related["double"] or related["single"] or "links_to"
            relations.append(Relation(word.strip(), related["target"].strip()))
    return Reading("\n".join(rest), tuple(observations), tuple(relations))


def _read_observation(line: str, number: int) -> Observation | None:
    found = _OBSERVATION.match(line)
    if found and found["category"].strip() not in _TODO:
        category, text = found["category"].strip(), found["text"]
    elif (tagged := _TAGGED.match(line)) and "[[" not in line:
        category, text = "Note", tagged["text"]
    else:
        return None
    tags = tuple(dict.fromkeys(tag.rstrip("/-") for tag in _TAG.findall(text)))
    said = " ".join(_TAG.sub("", text).split()) if tags else text.strip()
    return Observation(category, said, tags, number) if said else None


def read(files: Sequence[TextFile]) -> Iterator[Piece]:
    """Yield what the notes of a project become: each an entry, and each of its observations another.

    An observation stands by itself: it begins with the title of its note and links to it.
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
            yield from _read_one(note, keys[note.path], names)


def _read_one(note: SourceNote, key: str, names: dict[str, str]) -> Iterator[Piece]:
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
        draft = Draft(
            rest or f"# {note.title}", _own_kind(own), note.title, tags, None, (), "external_unverified", tuple(fields)
        )
        yield Piece("note", note.path, note.line, key, draft)
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
        draft = Draft(
            said,
            kind,
            shorten(said, 90),
            tuple(dict.fromkeys((*further, *one.tags))),
            None,
            (),
            "external_unverified",
            more,
        )
        yield Piece("observation", note.path, one.line, f"{key}#{one.category}/{one.text.casefold()}", draft)


def _own_kind(word: str) -> str:
    kind = KIND_ALIASES.get(word.casefold(), word.casefold())
    return kind if kind in KINDS and kind not in WORKING_KINDS else "fact"


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
