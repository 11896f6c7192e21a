"""`Memory`: one entry with its text, as a value that changes are planned for."""

import math
from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

from memory_kb.model import INSTRUCTING, KIND_ALIASES, KINDS, LIVE_STATUSES, TYPES, UNVERIFIED, Link, Location
from memory_kb.text import as_text, parse_date, read_words

#: The folders of a memory vault, and what marks an entry there.
_MEMORY_FOLDERS = ("memory/", "~global/")
_MARKS = ("id", "kind", "type")


class Memory(NamedTuple):
    """One entry, its defaults filled in, as a value that changes are planned for.

    Attributes:
        hash: of the file's bytes when it was read; a change is planned against it.
        title: as it is shown: its own, else its first heading or line.
        seen: the day its age counts from; None has no age.
        metadata: its frontmatter as parsed, unknown keys included.
        fault: the line from which its frontmatter cannot be read, or None.
        has_successor: whether another entry says that it supersedes this one.
    """

    id: str
    path: str
    hash: str
    place: Location
    title: str
    text: str
    kind: str = "fact"
    type: str = "declarative"
    domain: str = "team"
    importance: float = 0.5
    phase: str = "unknown"
    status: str = "active"
    reinforcement_count: int = 0
    tags: tuple[str, ...] = ()
    priority: str | None = None
    applies_to: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    last_reinforced: str | None = None
    created_at: str | None = None
    seen: date | None = None
    line: int = 1
    metadata: Mapping[str, Any] = {}
    fault: int | None = None
    has_successor: bool = False

    @property
    def is_live(self) -> bool:
        """Whether it takes part in everything: active or compacted."""
        return self.status in LIVE_STATUSES

    @property
    def is_ours(self) -> bool:
        """Whether its frontmatter says that it is a memory.

        Other notes are people's documents; no step rewrites them by itself, nor one whose
        frontmatter cannot be read. An `id` and words of their own have also the pages of other tools.
        """
        is_among_memories = self.path.startswith(_MEMORY_FOLDERS) and not self.metadata.keys().isdisjoint(_MARKS)
        return self.fault is None and (self.names_kind or is_among_memories)

    @property
    def may_be_flagged(self) -> bool:
        """Whether it may get a flag, and so wait for review: a memory, or a page that a person let cite code."""
        return self.is_ours or (self.fault is None and "cites" in self.metadata)

    @property
    def names_kind(self) -> bool:
        """Whether its frontmatter has a kind or type that is a word of the format."""
        kind, type_ = (str(self.metadata.get(name, "")).strip().lower() for name in ("kind", "type"))
        return kind in KINDS or kind in KIND_ALIASES or type_ in TYPES

    @property
    def is_in_people_file(self) -> bool:
        """Whether it is in MEMORY.md, whose text is rewritten by people alone."""
        return self.path.rpartition("/")[2] == "MEMORY.md"

    @property
    def is_superseded(self) -> bool:
        """Whether a newer entry has taken its place."""
        return self.has_successor or any(link.relation == "superseded_by" for link in self.links)

    @property
    def is_failed_episode(self) -> bool:
        """Whether it is an episode that failed, which no context gives as an example."""
        return self.kind == "episode" and self.word("outcome") == "failure"

    @property
    def is_mixed_episode(self) -> bool:
        """Whether it is an episode of which nobody knows that it went well."""
        return self.kind == "episode" and self.word("outcome") not in (None, "success", "partial", "failure")

    @property
    def is_pinned(self) -> bool:
        """Whether a person keeps it from automatic demotion, inversion and archiving."""
        return self.metadata.get("pinned") is True

    @property
    def is_evergreen(self) -> bool:
        """Whether a person says that it does not age: it never fades from contexts and is never archived."""
        return self.metadata.get("evergreen") is True

    @property
    def has_claim(self) -> bool:
        """Whether it may be anything but sound: it cites something, or has a last day."""
        return "cites" in self.metadata or "valid_until" in self.metadata

    @property
    def is_unverified(self) -> bool:
        """Whether it came from outside, and no person has approved it since or brought it in by an import."""
        is_vouched_for = self.day("reviewed") is not None or "imported_from" in self.metadata
        return self.metadata.get("source") == UNVERIFIED and not is_vouched_for

    @property
    def is_quarantined(self) -> bool:
        """Whether it would instruct an agent, and is unverified: it waits for a person.

        What it is cannot be said of one whose frontmatter cannot be read.
        """
        return self.is_unverified and (self.kind in INSTRUCTING or self.fault is not None)

    @property
    def may_be_given_unasked(self) -> bool:
        """Whether an agent may be given it unasked: it is live, nothing supersedes it, and it is not unverified."""
        return self.is_live and not (self.is_superseded or self.is_unverified)

    def count(self, name: str) -> int:
        """Return a counter of the evidence block, 0 where there is no good one."""
        number = self._number(name)
        return int(number) if number is not None and 0 <= number <= 1_000_000_000 else 0

    def share(self, name: str, default: float) -> float:
        """Return a number from 0 to 1, such as the confidence."""
        number = self._number(name)
        return default if number is None else min(1.0, max(0.0, number))

    def _number(self, name: str) -> float | None:
        value = self.metadata.get(name)
        try:
            number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return None
        return None if math.isnan(number) else number

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list of words, such as `sources` or `flags`."""
        return read_words(self.metadata.get(name))

    def word(self, name: str) -> str | None:
        """Return a one-line text, such as `session_id`."""
        return as_text(self.metadata.get(name))

    def is_episode_of(self, session: str | None) -> bool:
        """Return whether this is the episode of a session."""
        return self.kind == "episode" and session is not None and self.word("session_id") == session

    def day(self, name: str) -> date | None:
        """Return the day that a field names."""
        return parse_date(self.metadata.get(name))
