"""The sweep: periodic maintenance of the playbook (S0-29 to S0-32)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from memory_kb.learning.memories import Memory, plan_fields
from memory_kb.learning.rules.confidence import DEMOTION, MATURITIES, REMOVAL, find_flag, mature, read_evidence
from memory_kb.learning.rules.inversion import spot_of, targets_of
from memory_kb.learning.rules.playbook import is_rule, was_looked_at
from memory_kb.notes.plans import Change
from memory_kb.notes.splice import Value
from memory_kb.reports import RunReport


class Sweep(NamedTuple):
    """What a sweep finds: the ids that rise, fall, and are candidates, and the changes to make."""

    promoted: tuple[str, ...]
    demoted: tuple[str, ...]
    flagged: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did or would do; `flagged` are all that are candidates now, new ones or not."""

    promoted: tuple[str, ...]
    demoted: tuple[str, ...]
    flagged: tuple[str, ...]
    run: RunReport


def plan_sweep(memories: Iterable[Memory], today: date) -> Sweep:
    """Plan to move rules between their levels, and to flag those that are worth a look.

    The decay is computed and never stored, since it would compound from sweep to sweep; only
    `maturity` and `flags` are written. A rule moves one level a day at most: the day of its last
    move is its `maturity_since`. A flag goes when its reason does; one that a person took away in
    the review comes back only after a new outcome. Rules whose inversion is proposed wait for
    that (S0-60). Nothing is ever deleted.
    """
    held = list(memories)
    waiting = targets_of(held)
    promoted, demoted, flagged, changes = list[str](), list[str](), list[str](), list[Change]()
    for memory in held:
        if not is_rule(memory) or spot_of(memory.id, memory) in waiting:
            continue
        values, reasons = dict[str, Value](), list[str]()
        evidence = read_evidence(memory)
        level = mature(evidence, today, is_pinned=memory.is_pinned)
        if level != evidence.maturity and memory.day("maturity_since") != today:
            is_up = MATURITIES.index(level) > MATURITIES.index(evidence.maturity)
            (promoted if is_up else demoted).append(memory.id)
            values = {"maturity": level, "maturity_since": today.isoformat()}
            word = "Promotion" if is_up else "Demotion"
            reasons.append(
                f"{word} to {level}: confidence {evidence.decayed(today):g} after {evidence.applications} applications."
            )
        flag = None if memory.is_pinned or was_looked_at(memory) else find_flag(evidence, today)
        flags = [word for word in memory.words("flags") if word not in (DEMOTION, REMOVAL)] + ([flag] if flag else [])
        if flag:
            flagged.append(memory.id)
        if tuple(flags) != memory.words("flags"):
            values["flags"] = flags
            reasons.append(
                f"Flagged as {flag}: confidence {evidence.decayed(today):g}, {evidence.told}."
                if flag
                else "No candidate any more."
            )
        change = plan_fields(memory, values, " ".join(reasons)) if values else None
        if change:
            changes.append(change)
    return Sweep(tuple(promoted), tuple(demoted), tuple(flagged), tuple(changes))
