"""Find the stored entries that say the same as a draft, the contrary, or another value of the same."""

from __future__ import annotations

from collections.abc import Container
from operator import attrgetter, itemgetter

from memory_kb.index.link_names import read_metadata
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.learning.render_entry import Draft
from memory_kb.learning.text_comparison import TWIN_SIMILARITY, find_opposition, fingerprint, is_replaced, likeness
from memory_kb.model import KINDS, LIVE_STATUSES, SCOPES, Filters, Location, StoredEntry
from memory_kb.reports import Near
from memory_kb.search.query import parse_words
from memory_kb.similarity import CLASH_ABOVE, CONTRADICTION_FROM, word_set
from memory_kb.terms import jaccard

#: What an entry is that was taken out of use: it keeps its text from coming back.
FORGOTTEN = ("retired", "rejected")
#: The kinds of statements that a newer one may replace.
STATED = ("preference", "policy", "fact")
#: Chunks that are compared with a draft.
_CANDIDATES = 60
#: BM25 weights of the columns: only content and terms are compared.
_WEIGHTS = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


def find_duplicate(
    index: SqliteIndex, draft: Draft, place: Location, but: str | None = None, *, outdated: Container[str] = ()
) -> StoredEntry | None:
    """Return the entry that says the same at the same place.

    Live ones come first; else it may be the tombstone of one. What was forgotten stays away from its place and from
    every narrower one, as whatever kind it comes back; what was replaced by something newer may become true again.
    MEMORY.md belongs to the people: what is there is not reinforced. Files whose paths are `outdated` are left out.
    """
    here = _live_at(place)._replace(kinds=(draft.kind,))
    if draft.is_proposal:  # what waits for a decision already is not proposed again
        here = here._replace(statuses=(*here.statuses, "proposed"))

    def is_meant(entry: StoredEntry) -> bool:
        return entry.id != but and entry.path not in outdated

    live = [
        (alike, entry)
        for entry in filter(is_meant, _find_similar(index, draft, here))
        if entry.metadata
        and not entry.is_in_people_file
        and (alike := likeness(draft.text, index.contents(entry))) > TWIN_SIMILARITY
    ]
    if live:
        return max(live, key=itemgetter(0))[1]
    gone = here._replace(kinds=tuple(KINDS), scopes=_wider(place), statuses=FORGOTTEN)
    tombstone = fingerprint(draft.text)
    for entry in filter(is_meant, index.entries(gone)):
        if read_metadata(entry).get("tombstone") == tombstone:
            return entry
    for entry in filter(is_meant, _find_similar(index, draft, gone)):
        if likeness(draft.text, index.contents(entry)) > TWIN_SIMILARITY and not entry.is_superseded:
            return entry
    return None


def find_near_entries(index: SqliteIndex, draft: Draft, place: Location, but: str | None) -> tuple[Near, ...]:
    """Return up to three live entries, at the same place or a wider one, that contradict or paraphrase a draft."""
    here, mine = _live_at(place)._replace(scopes=_wider(place)), word_set(draft.text)
    found: list[tuple[float, Near]] = []
    for entry in _find_similar(index, draft, here):
        if entry.id == but or entry.kind == "episode" or entry.is_superseded:
            continue
        text = index.contents(entry)
        alike = jaccard(mine, word_set(text))
        opposed = alike >= CONTRADICTION_FROM and find_opposition(text, draft.text) is not None
        if opposed or alike > CLASH_ABOVE:
            how = "says the contrary" if opposed else "says nearly the same"
            found.append((alike + opposed, Near(how, entry.id, entry.title, entry.path, entry.line)))
    return tuple(near for _, near in sorted(found, key=lambda one: (-one[0], one[1]))[:3])


def find_older(index: SqliteIndex, draft: Draft, place: Location, before: str) -> tuple[StoredEntry, ...]:
    """Return the earlier statements at the same place that a new one replaces: the same subject, another value."""
    here = _live_at(place)._replace(kinds=STATED)
    return tuple(
        entry
        for entry in _find_similar(index, draft, here)
        if entry.metadata
        and not entry.is_in_people_file
        and not entry.is_superseded
        and (known := read_metadata(entry)).get("source") == "user_explicit"
        and str(known.get("created_at", ""))[:10] <= before[:10]
        and is_replaced(index.contents(entry), draft.text)
    )


def _find_similar(index: SqliteIndex, draft: Draft, filters: Filters) -> list[StoredEntry]:
    query = parse_words(draft.text.strip())
    if query.is_empty:
        return []
    found = index.match(query.expression, _WEIGHTS, filters, _CANDIDATES)
    places = {(candidate.source, candidate.entry_id) for candidate in found}
    entries = index.entries_of(path for path, _ in places)
    return sorted((entry for entry in entries if (entry.path, entry.id) in places), key=attrgetter("id"))


def _live_at(place: Location) -> Filters:
    statuses = tuple(sorted(LIVE_STATUSES))
    return Filters(scopes=(place.scope,), statuses=statuses, job=place.job, task=place.task)


def _wider(place: Location) -> tuple[str, ...]:
    return SCOPES[SCOPES.index(place.scope) :]
