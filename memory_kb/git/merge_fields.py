"""Merge the frontmatter of an entry: the values of its fields, and the lines of its block."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from memory_kb.errors import CannotSplice
from memory_kb.markdown.splice import set_values
from memory_kb.model import Span
from memory_kb.text import parse_date
from memory_kb.yaml_loader import load_mapping

#: Stands for a key that is not there.
ABSENT: Final = object()
#: What people must settle.
_UNSETTLED: Final = object()
_COUNTERS = frozenset({"reinforcement_count", "usage_count", "success_count", "failure_count"})
_EARLIER = frozenset({"created_at", "created", "date"})
_LATER = frozenset({"promoted_at", "updated_at", "updated", "modified", "verified_at"})
#: The words of fields that have an order, the one that a merge keeps first.
_ORDERS: Mapping[str, Sequence[str]] = {
    "status": ("retired", "rejected", "archived", "compacted", "active", "proposed"),
    "maturity": ("nascent", "established", "proven"),
}
_LOWER = frozenset({"confidence", "importance"})


class MergedFields(NamedTuple):
    """Two mappings, merged.

    `values` is what is settled; a key of either side that is missing there was removed. The keys that both sides
    changed differently are `unsettled`.
    """

    values: Mapping[str, Any]
    unsettled: frozenset[str]


def merge_fields(base: Mapping[str, Any] | None, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> MergedFields:
    """Merge two mappings; `base` is None where both sides made the entry.

    Example:
        >>> base = {"reinforcement_count": 2, "tags": ["a", "b"], "title": "T"}
        >>> ours = {"reinforcement_count": 3, "tags": ["a"], "title": "U"}
        >>> theirs = {"reinforcement_count": 4, "tags": ["a", "b", "c"], "title": "V"}
        >>> merge_fields(base, ours, theirs)
        MergedFields(values={'reinforcement_count': 5, 'tags': ['a', 'c']}, unsettled=frozenset({'title'}))
    """
    values: dict[str, Any] = {}
    unsettled = set()
    for name in dict.fromkeys((*ours, *theirs)):
        three = tuple(side.get(name, ABSENT) for side in (base or {}, ours, theirs))
        merged = _merge_value(name, *three, is_new=base is None)
        if merged is _UNSETTLED:
            unsettled.add(name)
        elif merged is not ABSENT:
            values[name] = merged
    return MergedFields(values, frozenset(unsettled))


def is_same(one: object, other: object) -> bool:
    """Return whether two values are the same, types included.

    Example:
        >>> is_same(1, True), is_same(["a"], ["a"]), is_same(ABSENT, None)
        (False, True, False)
    """
    return type(one) is type(other) and one == other


def _merge_value(name: str, base: Any, ours: Any, theirs: Any, *, is_new: bool) -> Any:
    if name in _COUNTERS:
        counted = _count(base, ours, theirs, is_new=is_new)
        if counted is not None:
            return counted
    if is_same(ours, theirs) or is_same(base, theirs):
        return ours
    if is_same(base, ours):
        return theirs
    lists = [side for side in (ours, theirs) if side is not ABSENT]
    if all(isinstance(side, list) for side in lists) and (base is ABSENT or isinstance(base, list)):
        return _unite(*(side if isinstance(side, list) else [] for side in (base, ours, theirs)))
    if name in _ORDERS:
        return _kept_word(_ORDERS[name], ours, theirs)
    if name in _LOWER and all(type(side) in (int, float) for side in (ours, theirs)):
        return min(ours, theirs)
    if parse_date(ours) and parse_date(theirs):
        if name.startswith("last_") or name in _LATER:
            return max(ours, theirs)
        if name in _EARLIER:
            return min(ours, theirs)
    return _UNSETTLED


def _count(base: Any, ours: Any, theirs: Any, *, is_new: bool) -> int | None:
    """Return a counter with the increments of both sides; None where it is no number, or no side has it."""
    if ours is ABSENT and theirs is ABSENT:
        return None
    numbers = [0 if side is ABSENT else side for side in (base, ours, theirs)]
    if any(type(number) is not int for number in numbers):
        return None
    return int(max(numbers) if is_new else max(0, numbers[1] + numbers[2] - numbers[0]))


def _unite(base: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Return a list with what either side added and without what either removed, in our order."""
    known, mine, yours = ({_item_key(item) for item in side} for side in (base, ours, theirs))
    gone = (known - mine) | (known - yours)
    united = [item for item in ours if _item_key(item) not in gone]
    united += list({_item_key(item): item for item in theirs if _item_key(item) not in gone | mine}.values())
    return united


def _item_key(item: Any) -> str:
    return json.dumps(item, sort_keys=True, default=str)


def _kept_word(order: Sequence[str], ours: Any, theirs: Any) -> Any:
    mine, yours = (str(side).strip().lower() for side in (ours, theirs))
    if mine not in order or yours not in order:
        return _UNSETTLED
    return ours if order.index(mine) <= order.index(yours) else theirs


_COMMENT = re.compile(r"(?:^|\s)(#.*?)\s*$", re.MULTILINE)


def put_fields(block: str, held: Mapping[str, Any], merged: MergedFields) -> str:
    """Return the YAML of a frontmatter with the settled values in it; one that cannot be put there stays as it is."""
    for name, value in merged.values.items():
        with contextlib.suppress(CannotSplice):
            if not is_same(held.get(name, ABSENT), value):
                block = set_values(block, Span(0, len(block)), {name: value})
    return block


def choose_block(mine: str, yours: str, merged: MergedFields) -> str | None:
    """Return the one of two blocks that has all comments of the other, if both say what is settled."""
    if merged.unsettled or any(load_mapping(block) != merged.values for block in (mine, yours)):
        return None
    comments, others = set(_COMMENT.findall(mine)), set(_COMMENT.findall(yours))
    return mine if comments >= others else yours if others >= comments else None
