"""What both branches added at one place: the order does not depend on which is merged into which."""

from __future__ import annotations

import pytest
from merging import both_ways, said_by

ENTRY = "---\nid: e\nkind: fact\ntags: [b, a]\n---\nOne.\n"


def entry(name: str) -> str:
    return f"\n---\nid: {name}\nkind: fact\n---\nText of {name}.\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (("x",), ("y",), ["e", "x", "y"]),
        (("y",), ("x",), ["e", "x", "y"]),
        (("z", "a"), ("y",), ["e", "y", "z", "a"]),
        (("z", "a"), (), ["e", "z", "a"]),
    ],
)
def test_each_side_keeps_its_own_order(ours: tuple[str, ...], theirs: tuple[str, ...], merged: list[str]) -> None:
    last = "\n---\nid: last\nkind: fact\n---\nLast.\n"
    sides = ["".join(map(entry, side)) for side in (ours, theirs)]
    assert list(said_by(both_ways(ENTRY, ENTRY + sides[0], ENTRY + sides[1]).text)) == merged
    between = both_ways(ENTRY + last, ENTRY + sides[0] + last, ENTRY + sides[1] + last)
    assert list(said_by(between.text)) == [*merged, "last"]


def test_entries_without_ids_and_before_all_others() -> None:
    nameless = "\n---\nkind: fact\n---\nNew {}.\n"
    assert not both_ways(ENTRY, ENTRY + nameless.format("one"), ENTRY + nameless.format("two")).conflicts
    text = "# Notes\n\nText.\n"
    first = both_ways(text, text + entry("b"), text + entry("a"))
    assert first.text == text + entry("a") + entry("b")


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ("tags: [b, a, x]", "tags: [b, a, c]", "tags: [b, a, c, x]"),
        ("tags: [b, a]\nmine: 1", "tags: [b, a]\nyours: 2", "tags: [b, a]\nyours: 2\nmine: 1"),
        ("tags: [b, a] # said", "tags: [b, a]\n# before\nkey: 1", "tags: [b, a] # said\n# before\nkey: 1"),
    ],
)
def test_items_and_keys(ours: str, theirs: str, merged: str) -> None:
    old = "tags: [b, a]"
    assert both_ways(ENTRY, ENTRY.replace(old, ours), ENTRY.replace(old, theirs)).text == ENTRY.replace(old, merged)


def test_a_conflict_elsewhere_changes_no_order_and_its_markers_name_the_sides() -> None:
    ours = ENTRY.replace("One", "Uno").replace("[b, a]", "[b, a, x]") + entry("x")
    theirs = ENTRY.replace("One", "Eins").replace("[b, a]", "[b, a, c]") + entry("c")
    merged = both_ways(ENTRY, ours, theirs)
    assert merged.conflicts == 1
    assert "<<<<<<< ours\nUno.\n=======\nEins.\n>>>>>>> theirs\n" in merged.text
    assert list(said_by(merged.text)) == ["e", "c", "x"]


def test_an_entry_that_one_took_out_and_the_other_changed_is_on_its_side() -> None:
    base = ENTRY + entry("x")
    merged = both_ways(base, ENTRY, base.replace("Text of", "Words of"))
    assert "<<<<<<< ours\n=======\n---\nid: x\n" in merged.text
