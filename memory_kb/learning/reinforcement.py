"""Count what a session used, once, when the session is over."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.injected import is_own_call, strip
from memory_kb.model import SCOPES
from memory_kb.store.events import Event, strings_of
from memory_kb.store.logs import Credit, Retrieval
from memory_kb.store.plan import Memory, Plan, plan_fields

if TYPE_CHECKING:
    from memory_kb.session_reports import Trace

_DAY = "day:"
_WORD = re.compile(r"[^\W_]+")


class Due(NamedTuple):
    """Entries that a session, or a `day:2026-03-01` outside any, was shown, and that are not counted for it yet.

    `begun` are the counts that a run was about to write when it was killed.
    """

    key: str
    ids: tuple[str, ...]
    begun: Mapping[str, int]

    @property
    def day(self) -> str:
        """The day, where it was outside any session."""
        return self.key.removeprefix(_DAY) if self.key.startswith(_DAY) else ""

    @property
    def reason(self) -> str:
        """Why they are reinforced, in words."""
        return f"Retrieved on {self.day}." if self.day else f"Retrieved in session {self.key}."


def find_due(
    retrievals: Iterable[Retrieval], credits_: Iterable[Credit], session: str | None = None
) -> tuple[Due, ...]:
    """Return what is to be counted for one session, or for what was shown outside of any.

    Each entry counts once for a session however often it was shown there, and once a day outside.
    """
    shown = defaultdict[str, dict[str, None]](dict)
    for one in retrievals:
        if one.session == session:
            shown[session or f"{_DAY}{one.ts[:10]}"] |= dict.fromkeys(one.ids)
    done, begun = defaultdict[str, set[str]](set), defaultdict[str, dict[str, int]](dict)
    for credit in credits_:
        if credit.is_done:
            done[credit.key].update(credit.counts)
        else:
            begun[credit.key].update(credit.counts)
    left = {key: tuple(one for one in ids if one not in done[key]) for key, ids in shown.items()}
    return tuple(Due(key, ids, begun[key]) for key, ids in left.items() if ids)


#: The shortest word that says something, and the share of such words of an entry that occur where it was used.
_LONG, _USED = 4, 1 / 3


def words_of_work(events: Iterable[Event]) -> frozenset[str]:
    """Return the longer words of what agents said and did in a session; calls of memory-kb itself do not count."""
    found: set[str] = set()
    for event in events:
        if event.injected == "whole" or is_own_call(event.tool, event.args):
            continue
        if event.type == "message" and event.role == "assistant":
            found.update(_long_words(strip(event.content or "")))
        elif event.type == "tool_call" and event.args:
            found.update(_long_words(" ".join(strings_of(event.args))))
    return frozenset(found)


def changed_files(traces: Iterable[Trace]) -> bool:
    """Return whether a session changed a file or committed."""
    return any(trace.changed or trace.commits for trace in traces)


def keep_used(
    shown: Iterable[str], memories: Iterable[Memory], work: frozenset[str], named: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the entries that a session used of what it was shown.

    Those are the ones in `named`, and those of whose longer words a third occur in what the session did.
    """
    texts = {memory.id: memory.text for memory in memories}

    def is_used(entry_id: str) -> bool:
        words = _long_words(texts.get(entry_id, ""))
        return entry_id in named or (bool(words) and len(words & work) >= _USED * len(words))

    return tuple(filter(is_used, shown))


def _long_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text.casefold()) if len(word) >= _LONG)


def plan_reinforcements(
    due: Sequence[Due], memories: Iterable[Memory], now: datetime
) -> tuple[Plan, tuple[Credit, ...]]:
    """Plan to count what is due; return with the changes what to log before and after they are made.

    Only live entries count, and only those that are memories by their frontmatter. Of several with one id it is the most
    specific.
    """
    wanted = {entry_id for one in due for entry_id in one.ids}
    by_id: dict[str, Memory] = {}
    for memory in sorted(memories, key=lambda one: SCOPES.index(one.place.scope)):
        if memory.id in wanted and memory.is_live and memory.is_ours:
            by_id.setdefault(memory.id, memory)
    counts = {entry_id: memory.reinforcement_count for entry_id, memory in by_id.items()}
    today, reasons, credits_ = now.astimezone(UTC).date().isoformat(), dict[str, list[str]](), list[Credit]()
    days = {entry_id: (memory.last_reinforced or "")[:10] for entry_id, memory in by_id.items()}
    for one in due:
        known = [entry_id for entry_id in one.ids if entry_id in by_id]
        for entry_id in known:
            # What a killed run has counted already is only written down.
            if one.begun.get(entry_id, counts[entry_id] + 1) > counts[entry_id]:
                counts[entry_id] += 1
                reasons.setdefault(entry_id, []).append(one.reason)
                days[entry_id] = max(days[entry_id], one.day or today)
        credits_.append(Credit(one.key, {entry_id: counts[entry_id] for entry_id in known}, is_done=False))
    changes = (
        plan_fields(
            by_id[entry_id],
            {"reinforcement_count": counts[entry_id], "last_reinforced": days[entry_id]},
            " ".join(why),
        )
        for entry_id, why in reasons.items()
    )
    return changes, tuple(credits_)
