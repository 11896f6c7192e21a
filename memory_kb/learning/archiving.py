"""Archive entries that nobody uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime

from memory_kb.model import Location
from memory_kb.search.scoring import activation
from memory_kb.store.plan import Change, Memory, move, plan_fields

#: How much an entry of each kind weighs.
TYPE_WEIGHTS = {
    "policy": 1.5,
    "pitfall": 1.4,
    "architecture": 1.3,
    "decision": 1.2,
    "rule": 1.2,
    "skill": 1.1,
    "preference": 1.0,
    "fact": 0.9,
    "episode": 0.7,
}
ARCHIVE_BELOW = 0.1
#: Days after which an entry that was made of an old source may be archived.
NEW_DAYS = 30
#: Kinds that are always injected, that age by rules of their own, or that are work in progress.
_EXEMPT = frozenset({"policy", "architecture", "preference", "episode", "handoff", "ledger"})


def activation_score(kind: str, count: int, seen: date | None, today: date, half_life: float = 90.0) -> float:
    """Return how present an entry still is: `type_weight * decay * (1 + count)`, with no floor.

    An entry without a date does not age.

    Example:
        >>> activation_score("fact", 0, date(2026, 1, 1), date(2026, 1, 1))
        0.9
        >>> activation_score("fact", 0, date(2026, 1, 1), date(2026, 10, 14)) < 0.1
        True
    """
    days = max(0, (today - seen).days) if seen else 0
    return activation(TYPE_WEIGHTS.get(kind, 0.9), days, count, half_life=half_life)


def plan_archiving(
    memories: Iterable[Memory],
    folder_of: Callable[[Location], str],
    now: datetime,
    half_life: float = 90.0,
    taken_in: frozenset[str] = frozenset(),
) -> tuple[Change, ...]:
    """Plan to archive the live entries whose activation score fell below 0.1.

    What has been applied counts as seen. Pinned and institutional entries stay, and so do notes
    that are not memories. What was made in the last weeks, of old sources too, stays for now:
    nobody could look at it before. `taken_in` are the ids of that.
    """
    today = now.astimezone(UTC).date()
    changes: list[Change] = []
    for memory in memories:
        if memory.id in taken_in or not _may_go(memory):
            continue
        seen = max(filter(None, (memory.seen, memory.day("last_applied"))), default=None)
        score = activation_score(memory.kind, memory.reinforcement_count, seen, today, half_life)
        if score < ARCHIVE_BELOW:
            changes += plan_move_to_archive(
                memory,
                folder_of(memory.place),
                today,
                f"Its activation score fell to {score:.3f}, below {ARCHIVE_BELOW}.",
            )
    return tuple(changes)


def _may_go(memory: Memory) -> bool:
    is_free = memory.is_live and memory.is_ours and not memory.is_pinned and not memory.is_in_people_file
    return (
        is_free
        and not memory.is_evergreen
        and memory.kind not in _EXEMPT
        and memory.place.learning_type != "institutional"
    )


def archive_path(memory: Memory, folder: str, day: date, entry_id: str | None = None) -> str:
    """Return the file in the archive of its scope that an entry moves to, named after its file and its id.

    What is known of people's preferences stays apart there, too.

    Example:
        >>> archive_path(Memory("69712e00-2428", "rules/a.md", "", Location(), "T", ""), "", date(2026, 1, 2))
        'archive/2026-01/a-69712e00-2428.md'
    """
    name = memory.path.rpartition("/")[2].removesuffix(".md")
    safe = "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in entry_id or memory.id)[:36]
    is_named = name == safe or name.endswith((f"-{safe[:8]}", f"-{safe[-8:]}"))
    kind = "proxy-tasks/" if memory.place.learning_type == "proxy" else ""
    return f"{folder}archive/{day:%Y-%m}/{kind}{name}{'' if is_named else f'-{safe}'}.md"


def plan_move_to_archive(
    memory: Memory, folder: str, today: date, reason: str, status: str = "archived"
) -> tuple[Change, ...]:
    """Plan to move an entry to `archive/YYYY-MM/` of its scope, all or nothing.

    An entry that shares its file with others gets one of its own there.
    """
    together = f"archive {memory.path} {memory.id}"
    marked = plan_fields(memory, {"status": status}, reason)
    moved = move(memory, archive_path(memory, folder, today), reason, memory.id)
    return tuple(change.joined(together) for change in (marked, moved) if change)
