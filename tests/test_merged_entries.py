"""Memory files of two branches: merged entry by entry and value by value, and what is left to people."""

from __future__ import annotations

import pytest
from merging import ENTRY, both_ways, in_order, lines_of, merge, said_by

from memory_kb.git.merge_fields import merge_fields
from memory_kb.git.merge_texts import TextMerge


@pytest.mark.parametrize(
    ("name", "base", "ours", "theirs", "merged"),
    [
        ("reinforcement_count", 2, 3, 5, 6),
        ("usage_count", None, 1, 2, 3),
        ("success_count", 3, 4, 4, 5),
        ("failure_count", 3, 0, 1, 0),
        ("last_reinforced", "2026-01-01", "2026-03-01", "2026-02-01", "2026-03-01"),
        ("last_verified", None, "2026-03-01", "2026-02-01T10:00:00Z", "2026-03-01"),
        ("created_at", "2026-01-03", "2026-01-01", "2026-01-02", "2026-01-01"),
        ("tags", ["a", "b"], ["a", "b", "c"], ["b", "d"], ["b", "c", "d"]),
        ("flags", None, ["review"], ["removal_candidate"], ["removal_candidate", "review"]),
        ("flags", ["review"], None, ["review", "x"], ["x"]),
        ("links", [], [{"to": "x", "relation": "contradicts"}], [{"to": "y", "relation": "supersedes"}], None),
        ("status", "active", "retired", "compacted", "retired"),
        ("status", "active", "archived", "compacted", "archived"),
        ("status", "proposed", "active", "rejected", "rejected"),
        ("status", "retired", "active", "retired", "active"),
        ("maturity", "established", "proven", "nascent", "nascent"),
        ("importance", 0.5, 0.8, 0.8, 0.8),
        ("confidence", 0.75, 0.8, 0.55, 0.55),
        ("owner", "x", "y", "x", "y"),
        ("owner", None, "y", None, "y"),
        ("owner", "x", None, "x", None),
    ],
)
def test_values_of_both_sides(name: str, base: object, ours: object, theirs: object, merged: object) -> None:
    three: list[dict[str, object]] = [{} if value is None else {name: value} for value in (base, ours, theirs)]
    for one, other in ((three[1], three[2]), (three[2], three[1])):
        found = merge_fields(three[0], one, other)
        assert not found.unsettled
        value = found.values.get(name)
        if name == "links":
            assert sorted(link["to"] for link in found.values["links"]) == ["x", "y"]
        else:
            assert in_order(value) == in_order(merged)


@pytest.mark.parametrize(
    ("name", "base", "ours", "theirs"),
    [
        ("title", "a", "b", "c"),
        ("owner", "x", None, "y"),
        ("valid_until", "2026-01-01", "2026-02-01", "2026-03-01"),
    ],
)
def test_what_both_changed_differently_is_for_people(name: str, base: object, ours: object, theirs: object) -> None:
    three: list[dict[str, object]] = [{} if value is None else {name: value} for value in (base, ours, theirs)]
    assert merge_fields(three[0], three[1], three[2]).unsettled == {name}


def test_fields_and_text_of_both_sides_come_together() -> None:
    ours = (
        ENTRY.replace("count: 2", "count: 3")
        .replace("01-01", "03-01")
        .replace("First", "1st")
        .replace("[x, y]", "[x, y, z]")
    )
    theirs = (
        ENTRY.replace("count: 2", "count: 4")
        .replace("01-01", "02-01")
        .replace("Second", "2nd")
        .replace("[x, y]", "[y]  # fewer")
    )
    merged = both_ways(ENTRY, ours, theirs)
    assert merged == TextMerge(
        "---\nid: a\nkind: rule  # why not\ntags: [y, z]  # fewer\nowner: wombat\nreinforcement_count: 5\n"
        "last_reinforced: '2026-03-01'\n---\n1st line.\n\n2nd line.\n"
    )


def test_entries_of_both_sides_stay_and_unknown_keys_and_comments_with_them() -> None:
    ours = ENTRY.replace("owner: wombat", "owner: wombat\nweather: rain") + "\n---\nid: b\n---\nOurs.\n"
    theirs = ENTRY.replace("owner: wombat", "# so it is\nowner: wombat\nmood: good") + "\n---\nid: c\n---\nTheirs.\n"
    merged = both_ways(ENTRY, ours, theirs)
    assert not merged.conflicts
    assert {"weather: rain", "# so it is", "mood: good", "Ours.", "Theirs."} <= set(lines_of(merged.text))
    assert sorted(said_by(merged.text)) == ["a", "b", "c"]


def test_two_comments_at_one_line_are_a_choice() -> None:
    merged = both_ways(ENTRY, ENTRY.replace("wombat", "wombat # one"), ENTRY.replace("wombat", "wombat # other"))
    assert merged.conflicts == 1
    assert "# one" in merged.text
    assert "# other" in merged.text


def test_a_real_conflict_is_within_its_entry() -> None:
    base = ENTRY + "\n---\nid: b\nusage_count: 1\n---\nOther.\n"
    ours = base.replace("Second line", "Our line").replace("usage_count: 1", "usage_count: 2")
    theirs = base.replace("Second line", "Their line").replace("usage_count: 1", "usage_count: 3")
    merged = both_ways(base, ours, theirs)
    assert merged.conflicts == 1
    said = said_by(merged.text)
    assert said["b"][0] == {"id": "b", "usage_count": 4}
    assert "<<<<<<< ours\nOur line.\n=======\nTheir line.\n>>>>>>> theirs\n\n---\nid: b\n" in merged.text


def test_a_field_that_both_changed_is_marked_alone() -> None:
    merged = both_ways(
        ENTRY, ENTRY.replace("wombat", "emu").replace("count: 2", "count: 3"), ENTRY.replace("wombat", "dingo")
    )
    assert merged.conflicts == 1
    assert "<<<<<<< ours\nowner: emu\n=======\nowner: dingo\n>>>>>>> theirs\nreinforcement_count: 3\n" in merged.text


def test_what_one_side_took_out_comes_back_only_as_a_choice() -> None:
    base = ENTRY + "\n---\nid: b\nusage_count: 1\n---\nOther.\n"
    without = ENTRY
    assert both_ways(base, without, base.replace("First", "1st")).text == ENTRY.replace("First", "1st")
    counted = both_ways(base, without, base.replace("usage_count: 1", "usage_count: 2"))
    assert counted.text.rstrip() == ENTRY.rstrip()
    assert counted.notices == ("b: taken out by one side, only counted by the other; it stays out",)
    for edit in (
        "usage_count: 2 # mine",
        "usage_count: 1 # mine",
        "usage_count: 2\nconfidence: 0.9",
        "# why\nusage_count: 1",
    ):
        other = base.replace("usage_count: 1", edit)
        assert both_ways(base, without, other).conflicts == 1, edit
    changed = both_ways(base, without, base.replace("Other.", "More."))
    assert changed.conflicts == 1
    assert "<<<<<<< ours\n=======\n---\nid: b\nusage_count: 1\n---\nMore.\n>>>>>>> theirs\n" in changed.text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_marks_and_a_missing_last_line_end_survive(newline: str, mark: str, last: bool) -> None:
    def write(text: str) -> str:
        return mark + (text if last else text.rstrip("\n")).replace("\n", newline)

    counted = ENTRY.replace("First", "1st").replace("count: 2", "count: 4")
    merged = both_ways(write(ENTRY), write(ENTRY.replace("count: 2", "count: 3")), write(counted))
    assert merged == TextMerge(write(ENTRY.replace("First", "1st").replace("count: 2", "count: 5")))
    added = merge(write(ENTRY), write(ENTRY.replace("First", "1st")), write(ENTRY + "\n---\nid: b\n---\nNew.\n"))
    assert added == TextMerge(write(ENTRY.replace("First", "1st") + "\n---\nid: b\n---\nNew.\n"))
    fight = merge(write(ENTRY), write(ENTRY.replace("Second", "2nd")), write(ENTRY.replace("Second", "Zweite")))
    assert fight.conflicts == 1
    assert ("\r\n" in fight.text) == (newline == "\r\n")
    assert fight.text.replace("\r\n", "").count("\r") == 0


def test_a_counter_that_was_all_of_the_frontmatter_is_no_reason_to_come_back() -> None:
    rest = "---\nid: b\n---\nOther.\n"
    base = f"---\nusage_count: 1\n---\nFirst.\n\n{rest}"
    merged = both_ways(base, rest, base.replace("usage_count: 1\n", ""))
    assert (merged.text, merged.conflicts) == (rest, 0)


def test_entries_without_ids_are_known_by_their_words() -> None:
    base = "# Notes\n\nPlain.\n\n---\nkind: fact\ntitle: One\n---\nText one.\n\n---\nkind: fact\ntitle: Two\n---\nText two.\n"
    ours = base.replace("title: One", "title: One\nid: one\nusage_count: 1").replace("Plain.", "Plain!")
    theirs = (
        base.replace("Text one.", "Text 1.").replace("title: Two", "title: Two\ntags: [t]")
        + "\n---\nkind: fact\n---\nThree.\n"
    )
    merged = both_ways(base, ours, theirs)
    assert not merged.conflicts
    assert {"Plain!", "Text 1.", "id: one", "usage_count: 1", "tags: ['t']", "Three."} <= set(lines_of(merged.text))
    assert merged.text.count("title: One") == 1


def test_odd_frontmatter_that_one_side_left_alone_is_no_conflict() -> None:
    """A key that stands there twice, braces and anchors are kept to the byte."""
    odd = "---\nid: b\ntags: [x]\ntags: [y]\n---\nTwice.\n\n---\n{id: c, usage_count: 1}\n---\nBraces.\n\n---\nid: d\na: &x [1]\nb: *x\n---\nAnchors.\n"
    base = f"{ENTRY}\n{odd}"
    ours = base.replace("Twice.", "Two.").replace("usage_count: 1", "usage_count: 2").replace("&x [1]", "&x [1, 2]")
    theirs = base.replace("First", "1st").replace("usage_count: 1", "usage_count: 3").replace("Anchors.", "Anchor.")
    merged = both_ways(base, ours, theirs)
    expected = ours.replace("First", "1st").replace("usage_count: 2", "usage_count: 4").replace("Anchors.", "Anchor.")
    assert merged == TextMerge(expected)


def test_both_sides_make_one_file_with_the_same_entry() -> None:
    merged = both_ways("", ENTRY, ENTRY.replace("count: 2", "count: 3").replace("[x, y]", "[x, w]"))
    assert not merged.conflicts
    assert said_by(merged.text)["a"][0] == {
        "id": "a",
        "kind": "rule",
        "tags": ["w", "x", "y"],
        "owner": "wombat",
        "reinforcement_count": 3,
        "last_reinforced": "2026-01-01",
    }
