"""The closed word lists of the file format, and what the words imply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Kind(NamedTuple):
    """What one kind of entry implies when its frontmatter says nothing else."""

    layer: str
    type: str
    priority: str
    folder: str


KINDS: Mapping[str, Kind] = {
    "policy": Kind("semantic", "directive", "critical", "learnings"),
    "preference": Kind("semantic", "directive", "medium", "learnings"),
    "architecture": Kind("semantic", "declarative", "high", "learnings"),
    "decision": Kind("semantic", "declarative", "medium", "learnings"),
    "fact": Kind("semantic", "declarative", "normal", "learnings"),
    "rule": Kind("semantic", "procedural", "medium", "rules"),
    "pitfall": Kind("semantic", "corrective", "high", "rules"),
    "skill": Kind("procedural", "procedural", "high", "skills"),
    "episode": Kind("episodic", "declarative", "normal", "episodes"),
    "handoff": Kind("working", "declarative", "medium", "handoffs"),
    "ledger": Kind("working", "declarative", "medium", "ledgers"),
}
KIND_ALIASES: Mapping[str, str] = {
    "workflow": "skill",
    "procedure": "skill",
    "pattern": "rule",
    "anti-pattern": "pitfall",
    "diary": "episode",
}
#: The kinds that tell people and agents what to do.
INSTRUCTING = frozenset(name for name, kind in KINDS.items() if kind.type != "declarative")
#: The kind of an entry that names only its type.
KIND_OF_TYPE: Mapping[str, str] = {
    "declarative": "fact",
    "procedural": "rule",
    "directive": "preference",
    "corrective": "pitfall",
}
TYPES = tuple(KIND_OF_TYPE)
DOMAINS = ("task", "team")
STATUSES = ("active", "compacted", "retired", "archived", "proposed", "rejected")
LIVE_STATUSES = frozenset({"active", "compacted"})
#: What a search sees when it does not ask for a status.
SEARCHED_STATUSES = frozenset({"active", "compacted", "archived"})
#: Kinds that a search returns only when asked for them by name.
WORKING_KINDS = frozenset({"handoff", "ledger"})
PRIORITIES: Mapping[str, float] = {"critical": 0.95, "high": 0.8, "medium": 0.5, "normal": 0.4}
SOURCES = ("user_explicit", "observed", "inferred", "external_unverified", "extracted", "consolidated")
#: The source of what came from outside and nobody has looked at.
UNVERIFIED = "external_unverified"
RELATIONS = (
    "derived_from",
    "related_to",
    "contradicts",
    "elaborates",
    "example_of",
    "supersedes",
    "superseded_by",
)
#: Scopes from the most specific to the widest; other words for them are in `SCOPE_ALIASES`.
SCOPES = ("task", "job", "project", "global")
SCOPE_ALIASES: Mapping[str, str] = {"team": "task", "dispatch": "task", "session": "job"}
LEARNING_TYPES = ("task", "institutional", "proxy")
