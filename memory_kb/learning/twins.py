"""Find the entry that already says what is about to be learned (S1-30)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from operator import itemgetter

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
    twins = [twin for entry in _similar(index, draft, filters) if (twin := _judge(index, draft, entry))]
    live = [(alike, twin) for alike, twin in twins if not twin.is_forgotten]
    if live:
        return max(live, key=itemgetter(0))[1]
    tombstone = fingerprint(draft.text)
    for entry in index.entries(filters._replace(statuses=_FORGOTTEN)):
        if entry.metadata and json.loads(entry.metadata).get("tombstone") == tombstone:
            return Twin(entry, is_forgotten=True)
    return max(twins, key=itemgetter(0))[1] if twins else None


def _similar(index: Index, draft: Draft, filters: Filters) -> list[StoredEntry]:
    """Return the entries that share the most words with a draft."""
    query = parse_words(draft.text)
    if query.is_empty:
        return []
    found = index.chunks(candidate.key for candidate in index.match(query.expression, _WEIGHTS, filters, _CANDIDATES))
    places = {(chunk.entry_id, chunk.source) for chunk in found.values()}
    entries = (entry for entry_id in sorted({entry_id for entry_id, _ in places}) for entry in index.entries_with_id(entry_id))
    return [entry for entry in entries if (entry.entry_id, entry.source) in places]


def _judge(index: Index, draft: Draft, entry: StoredEntry) -> tuple[float, Twin] | None:
    """Return how alike an entry is, if it is a twin; a note without frontmatter has nothing to reinforce."""
    alike = jaccard(tokens(draft.text), tokens(index.contents(entry)))
    if alike <= TWIN_SIMILARITY or not entry.metadata:
        return None
    return alike, Twin(entry, is_forgotten=entry.status not in LIVE_STATUSES)
