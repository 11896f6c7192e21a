"""Find the entry that already says what is about to be learned (S1-30)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from memory_kb.learning.remember import TWIN_SIMILARITY, Draft, fingerprint
from memory_kb.model import Filters, Location
from memory_kb.ports import Index, StoredEntry
from memory_kb.retrieval.query import parse_words
from memory_kb.text import jaccard, tokens
from memory_kb.words import LIVE_STATUSES

_FORGOTTEN = ("retired", "rejected")
_CANDIDATES = 30
_WEIGHTS = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Twin:
    """An entry of the same kind and place with the same text, or the tombstone of one."""

    entry: StoredEntry
    is_forgotten: bool


def find_twin(index: Index, draft: Draft, place: Location) -> Twin | None:
    """Return the closest entry at the same place that is more than 0.95 alike, live ones first."""
    statuses = (*sorted(LIVE_STATUSES), *_FORGOTTEN)
    filters = Filters(kinds=(draft.kind,), scopes=(place.scope,), statuses=statuses, job=place.job, task=place.task)
    tombstone = fingerprint(draft.text)
    for entry in index.entries(Filters(kinds=(draft.kind,), scopes=(place.scope,), statuses=_FORGOTTEN)):
        if entry.metadata and json.loads(entry.metadata).get("tombstone") == tombstone:
            return Twin(entry, is_forgotten=True)
    query = parse_words(draft.text)
    if query.is_empty:
        return None
    words = tokens(draft.text)
    found: list[tuple[bool, float, StoredEntry]] = []
    candidates = index.match(query.expression, _WEIGHTS, filters, _CANDIDATES)
    ids = {chunk.entry_id for chunk in index.chunks(candidate.key for candidate in candidates).values()}
    for entry_id in ids:
        for entry in index.entries_with_id(entry_id):
            if entry.entry_id == entry_id and entry.scope == place.scope and entry.metadata:
                alike = jaccard(words, tokens(index.contents(entry)))
                if alike > TWIN_SIMILARITY:
                    found.append((entry.status in LIVE_STATUSES, alike, entry))
    if not found:
        return None
    is_live, _, entry = max(found, key=lambda item: item[:2])
    return Twin(entry, is_forgotten=not is_live)
