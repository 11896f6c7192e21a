"""The fields of frontmatter that have a meaning, and what may stand in each (requirements §6.2).

The reading of frontmatter, its JSON Schema and the help in editors all follow from this one list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memory_kb.words import DOMAINS, KIND_ALIASES, KINDS, PRIORITIES, RELATIONS, SOURCES, STATUSES, TYPES


class Field(NamedTuple):
    """What may stand in a field.

    Attributes:
        form: `text`, `words` (a list), `number` (0 to 1), `count`, `day`, `choice`, `flag`,
            `links`, `cites`, or `any`.
        about: what it says of the entry, in a sentence.
        choices: its words. Of a `choice` any other is a mistake, elsewhere they are proposals.
        is_evidence: whether only later stages read it, so that it is checked apart.
    """

    form: str
    about: str
    choices: tuple[str, ...] = ()
    is_evidence: bool = False


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
    "source": Field(
        "text",
        "How it came to be known. What is external_unverified is not followed before a person approves it.",
        SOURCES,
    ),
    "links": Field("links", "Typed relations to other entries.", RELATIONS),
    "cites": Field("cites", "Places in the project's files that it makes claims about, with a hash of each."),
    "valid_until": Field("any", "The last day it holds; after that it is withheld from agents."),
    "last_verified": Field("day", "The day somebody last looked whether its claims still hold.", is_evidence=True),
    "pinned": Field("flag", "Keeps it from automatic demotion, inversion and archiving."),
    "evergreen": Field("flag", "It does not age."),
    "flags": Field(
        "words",
        "Why it waits for a person's look.",
        ("review", "demotion_candidate", "removal_candidate", "stale_claim"),
    ),
    "confidence": Field("number", "How far a rule, pitfall or skill is trusted, from 0 to 1.", is_evidence=True),
    "maturity": Field("text", "How far a rule has come.", ("nascent", "established", "proven")),
    "success_count": Field("count", "How often it helped.", is_evidence=True),
    "failure_count": Field("count", "How often it did harm.", is_evidence=True),
    "usage_count": Field("count", "How often it was used.", is_evidence=True),
    "last_applied": Field("day", "The day it was last used.", is_evidence=True),
    "category": Field("text", "What a rule is about."),
    "name": Field("text", "The name of a skill."),
    "description": Field("text", "What a skill is for, in a sentence."),
    "outcome": Field("text", "How an episode went.", ("success", "failure", "mixed")),
    "quality_score": Field("number", "How well an episode went, from 0 to 1.", is_evidence=True),
    "sources": Field("words", "The entries and sessions it comes from."),
    "session_id": Field("text", "The session it was learned in."),
    "agent": Field("text", "The agent that wrote it."),
    "imported_from": Field("text", "The note or export it was imported from."),
    "promoted_from": Field("text", "The level it was promoted from."),
    "promoted_at": Field("day", "The day it was promoted.", is_evidence=True),
    "reviewed": Field("any", "The day a person judged it."),
    "review_reason": Field("text", "Why it was rejected."),
    "snoozed_until": Field("any", "The day until which a person put the judgment off."),
}
