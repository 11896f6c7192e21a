"""Claims about code looked at again before they are put before an agent (peers §5, feature 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from memory_kb.context.building import Context, build_context
from memory_kb.context.framing import as_line
from memory_kb.context.gathering import Found, Material
from memory_kb.learning.freshness.standings import Standing, has_claim, say_mark
from memory_kb.learning.memories import Memory
from memory_kb.ports import TokenCounter
from memory_kb.settings import ContextSettings
from memory_kb.text import count_tokens

#: After so many rounds all candidates are judged at once.
_ROUNDS = 3
_MARK_LENGTH = 300

Standings = dict[tuple[str, str], Standing]


def build_fresh_context(
    material: Material,
    labels: Sequence[str],
    today: date,
    settings: ContextSettings,
    assess: Callable[[Memory], Standing],
    count: TokenCounter = count_tokens,
) -> Context:
    """Fill the sections of a context, without entries whose ground is gone, and mark those whose has changed.

    Only entries that would be shown are judged; what takes the place of one that is withheld is
    judged in its turn.

    Args:
        material: what the context is made of.
        labels: the labels of the task.
        today: the day ages count to.
        settings: the budgets.
        assess: tells how an entry stands; asked for entries that cite something or have a last day.
        count: how tokens are counted.
    """
    standings: Standings = {}
    rounds = 0
    while True:
        checked = _apply(material, standings) if any(map(_matters, standings.values())) else material
        context = build_context(checked, labels, today, settings, count)
        rounds += 1
        shown = _shown(checked, context.ids) if rounds < _ROUNDS else (*_shown(checked, context.ids), *_all(material))
        new = {_key(one): one for one in shown if has_claim(one) and _key(one) not in standings}
        standings |= {key: assess(memory) for key, memory in new.items()}
        if not any(_matters(standings[key]) for key in new):
            break
    if not standings:
        return context
    stale = {entry_id for (_, entry_id), standing in standings.items() if standing.is_stale}
    return replace(
        context,
        stale=tuple(entry_id for entry_id in context.ids if entry_id in stale),
        degraded=(*context.degraded, *_say_withheld(material, standings)),
    )


def _key(memory: Memory) -> tuple[str, str]:
    return memory.path, memory.id


def _matters(standing: Standing) -> bool:
    return standing.is_void or bool(say_mark(standing))


def _is_always(memory: Memory) -> bool:
    return memory.place.learning_type == "institutional"


def _all(material: Material) -> Iterator[Memory]:
    yield from (*material.institutional, *material.baseline, *material.rules)
    yield from (one.memory for many in (material.found, material.skills, material.proxy) for one in many)


def _shown(material: Material, ids: Sequence[str]) -> Iterable[Memory]:
    """Return the entries that a context shows, those that only a link led to as well."""
    wanted = set(ids)
    known = [one for one in _all(material) if one.id in wanted]
    linked = wanted - {one.id for one in known}
    return (*known, *(memory for entry_id in sorted(linked) if (memory := material.look_up(entry_id))))


def _apply(material: Material, standings: Standings) -> Material:
    """Return the material without what is withheld, and with what is to be said of the rest."""

    def is_void(memory: Memory) -> bool:
        standing = standings.get(_key(memory))
        # What always holds is withheld by its own word alone.
        return standing is not None and standing.is_void and (standing.verdict == "over" or not _is_always(memory))

    def kept(found: Sequence[Found]) -> list[Found]:
        return [one for one in found if not is_void(one.memory)]

    def look_up(entry_id: str) -> Memory | None:
        memory = material.look_up(entry_id)
        return None if memory is None or is_void(memory) else memory

    marks = {
        entry_id: mark
        for (_, entry_id), standing in standings.items()
        if (mark := as_line(say_mark(standing), _MARK_LENGTH))
    }
    return replace(
        material,
        institutional=[one for one in material.institutional if not is_void(one)],
        baseline=[one for one in material.baseline if not is_void(one)],
        # A rule that is withheld still hides one of a wider scope.
        rules=[replace(one, status="retired") if is_void(one) else one for one in material.rules],
        found=kept(material.found),
        skills=kept(material.skills),
        proxy=kept(material.proxy),
        look_up=look_up,
        marks=marks,
    )


def _say_withheld(material: Material, standings: Standings) -> Iterator[str]:
    always = {_key(one) for one in material.institutional}
    gone = sum(standing.verdict == "gone" and key not in always for key, standing in standings.items())
    over = sum(standing.verdict == "over" for standing in standings.values())
    if gone:
        yield f"{gone} learning{'s' * (gone != 1)} withheld: what {'they cite' if gone != 1 else 'it cites'} is gone (`memory-kb verify`)"
    if over:
        yield f"{over} learning{'s' * (over != 1)} withheld: past {'their' if over != 1 else 'its'} valid_until (`memory-kb lint`)"
