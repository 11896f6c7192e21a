"""Select the entries that an agent is given when it opens or edits a file."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING

from memory_kb.model import LIVE_STATUSES, Filters

if TYPE_CHECKING:
    from memory_kb.context.briefs import Assess
    from memory_kb.context.framing import Given
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.model import Memory

#: What a file costs at most, in tokens, the frame left out.
MOST_TOKENS, MOST_ENTRIES = 300, 3


def read_naming(index: SqliteIndex, file: str) -> list[Memory]:
    """Return the live entries whose `applies_to` covers a file of the project, or that cite it."""
    here = Filters(statuses=tuple(sorted(LIVE_STATUSES)), scopes=("project", "global"))
    found = list(index.memories(here._replace(file=file)))
    known = {one.id for one in found}
    for source in dict.fromkeys(one.source for one in index.entries(here, file) if one.entry_id not in known):
        found += [one for one in index.memories(here, source) if one.id not in known and _cites(one, file)]
    return [one for one in found if not (one.is_superseded or one.is_unverified or one.is_quarantined)]


def build_file_context(naming: Collection[Memory], shown: Collection[str], today: date, assess: Assess) -> Given:
    """Write the entries that name a file and were not shown yet, the most used first."""
    from memory_kb.context.briefs import fill, order_by_use

    fresh = [one for one in naming if one.id not in shown and one.kind not in ("episode", "handoff", "ledger")]
    return fill(order_by_use(fresh, today), MOST_TOKENS, today, assess, most=MOST_ENTRIES).framed()


def _cites(memory: Memory, file: str) -> bool:
    from memory_kb.learning.references import read_citations

    return any(one.reference.path == file for one in read_citations(memory))
