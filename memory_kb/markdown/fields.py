"""The table of frontmatter fields, their checks, and a JSON Schema of them."""

import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from memory_kb.model import (
    DOMAINS,
    KIND_ALIASES,
    KIND_OF_TYPE,
    KINDS,
    PRIORITIES,
    RELATIONS,
    SOURCES,
    STATUSES,
    TYPES,
    UNKNOWN_WORD,
    Entry,
    Link,
)
from memory_kb.text import MOST_LISTED, as_text, parse_date, read_words


class Field(NamedTuple):
    """The values that a field may have, and in a sentence what it is about.

    Its form is `text`, `words` (a list), `number` (0 to 1), `count`, `day`, `choice`, `flag`, `links`, `cites`, or
    `any`. Of a `choice` any word but its own is a mistake, elsewhere they are proposals.
    """

    form: str
    about: str
    choices: tuple[str, ...] = ()


FIELDS: Mapping[str, Field] = {
    "id": Field("text", "What links and commands call the entry. It stays when the title or the file changes."),
    "kind": Field("choice", "What it is; it implies type, importance and folder.", (*KINDS, *KIND_ALIASES)),
    "type": Field("choice", "The sort of knowledge it holds.", TYPES),
    "domain": Field("choice", "Whether it is about one task or for the whole team.", DOMAINS),
    "importance": Field("number", "How much it weighs, from 0 to 1; by default as its priority or kind says."),
    "phase": Field(
        "text",
        "The stage of the project in which it was learned.",
        ("specification", "planning", "design", "implementation", "review", "maintenance", "unknown"),
    ),
    "status": Field(
        "choice", "Whether it is in use. Only active and compacted entries are put before agents.", STATUSES
    ),
    "reinforcement_count": Field("count", "How often it was learned again or used; each time makes it more prominent."),
    "last_reinforced": Field("day", "The day its age counts from."),
    "created_at": Field("day", "When it was made."),
    "date": Field("any", "The day it is about, where `created_at` is missing."),
    "title": Field("text", "What it is called; found by search and usable in [[links]]."),
    "aliases": Field("words", "Other names that [[links]] may use."),
    "tags": Field("words", "Words to find and filter it by."),
    "priority": Field("choice", "How important it is, in a word.", tuple(PRIORITIES)),
    "applies_to": Field("words", "Globs of the files it is about."),
    "forbid": Field("text", "A regular expression: no line of the files of `applies_to` may fit it."),
    "require": Field("text", "A regular expression that each file of `applies_to` must fit somewhere."),
    "check": Field(
        "text",
        "A command that fails where the rule is broken; it runs only where `rules allow` allowed that very text.",
    ),
    "source": Field(
        "text",
        "How it came to be known. What is external_unverified is not followed before a person approves it.",
        SOURCES,
    ),
    "links": Field("links", "Typed relations to other entries.", RELATIONS),
    "cites": Field("cites", "Places in the project's files that it makes claims about, with a hash of each."),
    "valid_until": Field("any", "The last day it holds; after that it is withheld from agents."),
    "last_verified": Field("day", "The day somebody last looked whether its claims still hold."),
    "pinned": Field("flag", "Keeps it from automatic demotion, inversion and archiving."),
    "evergreen": Field("flag", "It does not age."),
    "flags": Field(
        "words",
        "Why it waits for a person's look.",
        ("review", "demotion_candidate", "removal_candidate", "stale_claim"),
    ),
    "confidence": Field("number", "How far a rule, pitfall or skill is trusted, from 0 to 1."),
    "maturity": Field("text", "How far a rule has come.", ("nascent", "established", "proven")),
    "success_count": Field("count", "How often it helped."),
    "failure_count": Field("count", "How often it did harm."),
    "usage_count": Field("count", "How often it was used."),
    "last_applied": Field("day", "The day it was last used."),
    "category": Field("text", "What a rule is about."),
    "name": Field("text", "The name of a skill."),
    "description": Field("text", "What a skill is for, in a sentence."),
    "outcome": Field("text", "How an episode went.", ("success", "failure", "mixed")),
    "quality_score": Field("number", "How well an episode went, from 0 to 1."),
    "sources": Field("words", "The entries and sessions it comes from."),
    "session_id": Field("text", "The session it was learned in."),
    "agent": Field("text", "The agent that wrote it."),
    "imported_from": Field("text", "The note or export it was imported from."),
    "promoted_from": Field("text", "The level it was promoted from."),
    "promoted_at": Field("day", "The day it was promoted."),
    "reviewed": Field("any", "The day a person judged it."),
    "review_reason": Field("text", "Why it was rejected."),
    "snoozed_until": Field("any", "The day until which a person put the judgment off."),
}


#: Importance of an entry that names neither kind nor priority.
DEFAULT_IMPORTANCE = 0.5

_MOST_COUNTED = 1_000_000_000


class FieldProblem(NamedTuple):
    """A field whose value could not be taken as it is."""

    field: str
    message: str


#: The fields that entries and memories do not have as attributes, so that they are only checked.
_EVIDENCE = {
    name: field.form
    for name, field in FIELDS.items()
    if field.form in ("number", "count", "day") and name not in Entry._fields
}


def read_kind(kind: object, type_: object) -> tuple[str, str]:
    """Return the kind and type for what the frontmatter names: aliases resolve, nothing known is a fact.

    Example:
        >>> read_kind("workflow", None), read_kind(None, "directive"), read_kind("page", "docs")
        (('skill', 'procedural'), ('preference', 'directive'), ('fact', 'declarative'))
    """
    named = _word(kind)
    known_type = _word(type_) if _word(type_) in TYPES else None
    found = KIND_ALIASES.get(named, named)
    if found not in KINDS:
        found = KIND_OF_TYPE[known_type] if known_type else "fact"
    return found, known_type or KINDS[found].type


def _word(value: object) -> str:
    return str(value).strip().lower() if value is not None else ""


def read_fields(meta: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[FieldProblem, ...]]:
    """Return the attributes of an `Entry` that frontmatter says, defaults filled in, and what could not be used.

    The status stays None where none is given, since a folder such as `archive/` then decides.

    Example:
        >>> fields, problems = read_fields({"kind": "pitfall", "importance": 7})
        >>> fields["importance"], fields["type"], problems[0].message
        (1.0, 'corrective', 'importance 7 is outside 0 to 1; read as 1.0')
    """
    reader = _Reader(meta)
    kind, type_ = read_kind(meta.get("kind"), meta.get("type"))
    reader.choice("kind", FIELDS["kind"].choices, kind)
    reader.choice("type", FIELDS["type"].choices, type_)
    priority = reader.choice("priority", PRIORITIES)
    default = (
        PRIORITIES[priority] if priority else PRIORITIES[KINDS[kind].priority] if "kind" in meta else DEFAULT_IMPORTANCE
    )
    last_reinforced, created_at = reader.day("last_reinforced"), reader.day("created_at")
    dated = parse_date(created_at) or parse_date(meta.get("date")) or parse_date(meta.get("created"))
    fields = {
        "id": as_text(meta.get("id")),
        "kind": kind,
        "type": type_,
        "domain": reader.choice("domain", FIELDS["domain"].choices) or "team",
        "importance": reader.number("importance", default),
        "phase": _word(meta.get("phase")) or "unknown",
        "status": reader.choice("status", FIELDS["status"].choices),
        "reinforcement_count": reader.count("reinforcement_count"),
        "last_reinforced": last_reinforced,
        "created_at": created_at,
        "title": as_text(meta.get("title")) or as_text(meta.get("name")),
        "tags": read_words(meta.get("tags")),
        "priority": priority,
        "applies_to": read_words(meta.get("applies_to")),
        "links": reader.links(),
        "dated": dated,
        "seen": parse_date(last_reinforced) or dated,
    }
    reader.check_evidence()
    return fields, tuple(reader.problems)


class _Reader:
    """One pass over one mapping, collecting what is wrong."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        self._meta = meta
        self.problems: list[FieldProblem] = []

    def _report(self, name: str, wrong: str, read_as: object) -> None:
        shown = " ".join(str(self._meta.get(name)).split())[:60]
        self.problems.append(FieldProblem(name, f"{name} {shown} {wrong}; read as {read_as}"))

    def choice(self, name: str, known: Collection[str], read_as: str = "the default") -> str | None:
        value = _word(self._meta.get(name))
        if value in known:
            return value
        if self._meta.get(name) is not None and (value or read_as != "the default"):
            self._report(name, UNKNOWN_WORD, read_as)
        return None

    def number(self, name: str, default: float = DEFAULT_IMPORTANCE) -> float:
        value = self._meta.get(name)
        if value is None:
            return default
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            self._report(name, "is not a number", default)
            return default
        clamped = min(1.0, max(0.0, number))
        if clamped != number:
            self._report(name, "is outside 0 to 1", clamped)
        return clamped

    def count(self, name: str) -> int:
        value = self._meta.get(name)
        try:
            number = 0 if value is None else int(value)
        except (TypeError, ValueError, OverflowError):
            self._report(name, "is not a whole number", 0)
            return 0
        if 0 <= number <= _MOST_COUNTED:
            return number
        self._report(name, "is out of range", 0)
        return 0

    def day(self, name: str) -> str | None:
        value = self._meta.get(name)
        if value is None or parse_date(value):
            return value.strip() if value else None
        self._report(name, "is not an ISO date", "no date")
        return None

    def links(self) -> tuple[Link, ...]:
        listed = self._meta.get("links")
        if listed is None:
            return ()
        found = []
        for item in listed if isinstance(listed, list) else [listed]:
            to = as_text(item.get("to")) if isinstance(item, dict) else as_text(item)
            relation = _word(item.get("relation")) if isinstance(item, dict) else "related_to"
            if to is None:
                self.problems.append(FieldProblem("links", "a link without `to` is ignored"))
                continue
            if relation not in RELATIONS:
                message = f"relation {relation[:60] or '(none)'} to {to} {UNKNOWN_WORD}; read as related_to"
                self.problems.append(FieldProblem("links", message))
                relation = "related_to"
            found.append(Link(to, relation))
        return tuple(found[:MOST_LISTED])

    def check_evidence(self) -> None:
        """Report the fields that only later stages read."""
        for name, form in _EVIDENCE.items() if self._meta.keys() & _EVIDENCE.keys() else ():
            if form == "number":
                self.number(name)
            elif form == "count":
                self.count(name)
            else:
                self.day(name)


_TEXT = {"type": ["string", "number", "boolean", "null"]}
_CITATION = {
    "type": "object",
    "required": ["ref"],
    "properties": {name: {"type": "string"} for name in ("ref", "hash", "lines", "commit")},
}
_FORMS: Mapping[str, Mapping[str, Any]] = {
    "text": _TEXT,
    "words": {
        "anyOf": [
            {"type": "array", "items": _TEXT, "maxItems": 200},
            {"type": ["string", "null"]},
        ]
    },
    "number": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    "count": {"type": ["integer", "null"], "minimum": 0, "maximum": _MOST_COUNTED},
    "day": {"type": ["string", "null"], "pattern": r"^\s*\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])($|[T\s])"},
    "flag": {"type": ["boolean", "null"]},
    "choice": {"type": "null"},
    "cites": {
        "anyOf": [{"type": "array", "items": {"anyOf": [_CITATION, {"type": "string"}]}}, {"type": ["string", "null"]}]
    },
    "any": {},
}


def frontmatter_schema() -> dict[str, Any]:
    """Return the JSON Schema of the frontmatter of an entry; what it does not name is free.

    Example:
        >>> frontmatter_schema()["properties"]["domain"]["anyOf"][0]
        {'enum': ['task', 'team']}
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "memory-kb entry",
        "description": "The frontmatter of a memory. Every field is optional, and others are allowed.",
        "type": ["object", "null"],
        "properties": {name: {"description": field.about, **_shape(field)} for name, field in FIELDS.items()},
        "additionalProperties": True,
    }


def _shape(field: Field) -> dict[str, Any]:
    choices = {"enum": list(field.choices)}
    if field.form == "links":
        link = {"to": {"type": ["string", "number"]}, "relation": choices}
        item = {"type": "object", "required": ["to", "relation"], "properties": link}
        return {"type": ["array", "null"], "items": {"anyOf": [item, {"type": "string"}]}}
    if not field.choices:
        return dict(_FORMS[field.form])
    if field.form == "words":
        words = {"type": "array", "items": {"anyOf": [choices, _TEXT]}}
        return {"anyOf": [words, {"type": ["string", "null"]}]}
    return {"anyOf": [choices, _FORMS[field.form]]}
