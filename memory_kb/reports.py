"""What the verbs other than search answer with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from memory_kb.model import Problem


@dataclass(frozen=True, slots=True)
class Learned:
    """Where a learning went, and whether it is new.

    One that is not new strengthened one that was there.
    """

    id: str
    path: str
    action: str


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry as `show`, `list` and `links` give it.

    `text` is its source, when asked for.
    """

    id: str
    title: str
    kind: str
    type: str
    scope: str
    status: str
    path: str
    line: int
    end_line: int
    tags: tuple[str, ...] = ()
    dated: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """One end of a link: the entry it leads to, or the written target.

    There is only the written target when there is no such entry.
    """

    relation: str
    target: str
    entry: EntryView | None


@dataclass(frozen=True, slots=True)
class LinkReport:
    """The links of one entry, in both directions."""

    entry: EntryView
    outgoing: tuple[Reference, ...]
    incoming: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a vault holds."""

    files: int
    entries: int
    chunks: int
    tokens: int
    kinds: Mapping[str, int]
    types: Mapping[str, int]
    statuses: Mapping[str, int]
    scopes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Status:
    """The index held against the disk, without changing either."""

    vault: str
    home: str
    index: str
    generation: int
    indexed_at: datetime | None
    files: int
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    problems: tuple[Problem, ...]
    vectors: tuple[VectorCount, ...] = ()

    @property
    def pending(self) -> int:
        """Files that the next sync will add, replace or remove."""
        return len(self.added) + len(self.changed) + len(self.removed)


class VectorCount(NamedTuple):
    """The vectors of one embedding model, and how many chunks have none."""

    provider: str
    model: str
    dimension: int
    chunks: int
    missing: int


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Where a search lost an entry.

    `step` is a word for scripts, `reason` a sentence; `score` and `needed` are on the scale of
    that step. The step `found` means that it was not lost.
    """

    query: str
    id: str
    path: str
    step: str
    reason: str
    rank: int | None = None
    score: float | None = None
    needed: float | None = None
    details: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchReport:
    """What one batch of changes brought into the index while it was watched.

    Attributes:
        cause: `start`; `events` that the system told of; `poll` and `reconcile`, a comparison of
            everything; `overflow` after lost events; `reopened` after a replacement.
        problems: what is to be mended and was not reported by the batches before.
        generation: the state of the index from this batch on.
        files: how many files the index holds.
    """

    cause: str
    added: int
    changed: int
    removed: int
    problems: tuple[Problem, ...]
    seconds: float
    generation: int
    files: int


@dataclass(frozen=True, slots=True)
class Findings:
    """What an examination found, and what it repaired on the way."""

    problems: tuple[Problem, ...]
    repaired: tuple[str, ...] = ()
