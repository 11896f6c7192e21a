"""When something was said or done: what is made of it later is as old as that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from memory_kb.learning.intake import Offer
from memory_kb.notes.events import Event
from memory_kb.notes.fields import read_words

#: The fields of a draft that name the events it comes from.
_EVENTS, _EVENT = "source_events", "session_seq"


def sources_of(offer: Offer) -> frozenset[int]:
    """Return the numbers of the events that a learning comes from."""
    fields = dict(offer.draft.fields)
    return frozenset(
        int(word) for word in (*read_words(fields.get(_EVENTS)), str(fields.get(_EVENT, ""))) if word.isdecimal()
    )


def times_of(events: Iterable[Event], wanted: Collection[int]) -> dict[int, str]:
    """Return when the events with these numbers happened; the log is read no further than needed.

    Example:
        >>> times_of(iter([Event(seq=1, ts="2026-03-01T10:00:00.000Z"), Event(seq=2, ts="2026-03-01T10:05:00.000Z")]), {2, 9})
        {2: '2026-03-01T10:05:00.000Z'}
    """
    if not wanted:
        return {}
    times: dict[int, str] = {}
    for number, event in enumerate(events, 1):
        seq = event.seq or number
        if seq in wanted and event.ts:
            times[seq] = event.ts
            if len(times) == len(wanted):
                break
    return times


def with_times(offers: Sequence[Offer], events: Iterable[Event], otherwise: str | None = None) -> list[Offer]:
    """Return what a session teaches, each learning with the time of the last event that it rests on.

    Args:
        offers: the learnings; one that has its time already keeps it.
        events: the session's.
        otherwise: the time of those that rest on no event.
    """
    wanted = frozenset(seq for offer in offers if offer.said is None for seq in sources_of(offer))
    times = times_of(events, wanted)

    def time_of(offer: Offer) -> str | None:
        return max((times[seq] for seq in sources_of(offer) if seq in times), default=otherwise)

    return [offer if offer.said else replace(offer, said=time_of(offer)) for offer in offers]


def newest(moments: Iterable[str | None]) -> str | None:
    """Return the latest of some days and moments, None where there is none.

    Example:
        >>> newest(["2026-03-01", None, "2026-03-01T10:00:00Z"])
        '2026-03-01T10:00:00Z'
    """
    return max(filter(None, moments), default=None)
