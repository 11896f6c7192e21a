"""Memory files of two branches: merged entry by entry, field by field, and nothing lost."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Files, Run
from hypothesis import given, settings
from hypothesis import strategies as st
from repositories import Clone, found

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.notes.entries import parse_document
from memory_kb.notes.mergedriver import merge_file
from memory_kb.notes.plans import decode, encode
from memory_kb.notes.sheets import change_body, change_fields, newline_of, separated
from memory_kb.notes.textmerge import GitTexts
from memory_kb.notes.threeway import FileMerge, merge_files
from memory_kb.notes.valuemerge import merge_fields

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

ENTRY = """---
id: a
kind: rule  # why not
tags: [x, y]
owner: wombat
reinforcement_count: 2
last_reinforced: '2026-01-01'
---
First line.

Second line.
"""


def merge(base: str, ours: str, theirs: str) -> FileMerge:
    return merge_files(base, ours, theirs, "memory/a.md", GitTexts())


def both_ways(base: str, ours: str, theirs: str) -> FileMerge:
    """Merge in both orders, make sure that they agree to the byte but for the sides of markers, and return the first."""
    one, other = merge(base, ours, theirs), merge(base, theirs, ours)
    assert one.conflicts == other.conflicts
    assert one.text == turned(other.text)
    return one


def turned(text: str) -> str:
    """Return a text with the sides of its markers exchanged."""
    sides = re.compile(r"(<{7} ours\r?\n)(.*?)(={7}\r?\n)(.*?)(>{7} theirs\r?\n)", re.DOTALL)
    return sides.sub(lambda found: f"{found[1]}{found[4]}{found[3]}{found[2]}{found[5]}", text)


def lines_of(text: str) -> Counter[str]:
    """Return the lines of a text but those between which people choose; the order of a list does not count."""
    lines = (re.sub(r"\[(.*)\]", lambda found: str(sorted(found[1].split(", "))), line.strip()) for line in text.splitlines())
    return Counter(line for line in lines if line and not re.match(r"[<=>]{7}", line))


def said_by(text: str) -> dict[str, tuple[object, object]]:
    """Return what a file says by the ids of its entries, where the order of lists does not count."""
    entries = parse_document(text, "memory/a.md").entries
    return {one.id: (_sorted(dict(one.metadata)), lines_of(text[one.body.start : one.body.end])) for one in entries}


def _sorted(value: Any) -> object:
    if isinstance(value, dict):
        return {name: _sorted(held) for name, held in value.items()}
    return sorted(map(str, value)) if isinstance(value, list) else value


# -- one value -------------------------------------------------------------------------------


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
        ("importance", 0.8, 0.56, 0.4, 0.4),
        ("importance", 0.5, 0.8, 0.8, 0.8),
        ("state", {"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 1, "c": 3}, {"a": 2, "b": 1, "c": 3}),
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
            assert _sorted(value) == _sorted(merged)


@pytest.mark.parametrize(
    ("name", "base", "ours", "theirs"),
    [
        ("title", "a", "b", "c"),
        ("importance", 0.5, 0.8, 0.2),
        ("owner", "x", None, "y"),
        ("valid_until", "2026-01-01", "2026-02-01", "2026-03-01"),
        ("cites", [{"ref": "a.py", "hash": "1"}], [{"ref": "a.py", "hash": "2"}], [{"ref": "a.py", "hash": "3"}]),
    ],
)
def test_what_both_changed_differently_is_for_people(name: str, base: object, ours: object, theirs: object) -> None:
    three: list[dict[str, object]] = [{} if value is None else {name: value} for value in (base, ours, theirs)]
    assert merge_fields(three[0], three[1], three[2]).unsettled == {name}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "confidence"),
    [
        ((0.75, 3, 0), (0.80, 4, 0), (0.55, 3, 1), 0.60),
        ((0.75, 3, 0), (0.80, 4, 0), (0.80, 4, 0), 0.85),
        ((0.80, 1, 0), (0.45, 2, 0), (0.45, 2, 0), 0.50),  # unused for 90 days: it decays once
        ((0.10, 0, 3), (0.00, 0, 4), (0.15, 1, 3), 0.0),
    ],
)
def test_feedback_of_both_sides_makes_a_confidence(
    base: tuple[float, int, int], ours: tuple[float, int, int], theirs: tuple[float, int, int], confidence: float
) -> None:
    def fields(values: tuple[float, int, int]) -> dict[str, object]:
        return dict(zip(("confidence", "success_count", "failure_count"), values, strict=True))

    for one, other in ((ours, theirs), (theirs, ours)):
        assert merge_fields(fields(base), fields(one), fields(other)).values["confidence"] == confidence


# -- one file --------------------------------------------------------------------------------


def test_fields_and_text_of_both_sides_come_together() -> None:
    ours = ENTRY.replace("count: 2", "count: 3").replace("01-01", "03-01").replace("First", "1st").replace("[x, y]", "[x, y, z]")
    theirs = ENTRY.replace("count: 2", "count: 4").replace("01-01", "02-01").replace("Second", "2nd").replace("[x, y]", "[y]  # fewer")
    merged = both_ways(ENTRY, ours, theirs)
    assert merged == FileMerge(
        "---\nid: a\nkind: rule  # why not\ntags: [y, z]  # fewer\nowner: wombat\nreinforcement_count: 5\n"
        "last_reinforced: '2026-03-01'\n---\n1st line.\n\n2nd line.\n"
    )


def test_entries_of_both_sides_stay_and_unknown_keys_and_comments_with_them() -> None:
    ours = ENTRY.replace("owner: wombat", "owner: wombat\nweather: rain # today") + "\n---\nid: b\n---\nOurs.\n"
    theirs = ENTRY.replace("owner: wombat", "# so it is\nowner: wombat\nmood: good") + "\n---\nid: c\n---\nTheirs.\n"
    merged = both_ways(ENTRY, ours, theirs)
    assert not merged.conflicts
    assert {"weather: rain # today", "# so it is", "mood: good", "Ours.", "Theirs."} <= set(lines_of(merged.text))
    assert list(said_by(merged.text)) == ["a", "b", "c"]


def test_two_comments_at_one_line_are_no_conflict() -> None:
    merged = both_ways(ENTRY, ENTRY.replace("wombat", "wombat # one"), ENTRY.replace("wombat", "wombat # other"))
    assert not merged.conflicts
    assert "# one" in merged.text
    assert "# other" in merged.text


def test_a_real_conflict_stands_within_its_entry() -> None:
    base = ENTRY + "\n---\nid: b\nusage_count: 1\n---\nOther.\n"
    ours = base.replace("Second line", "Our line").replace("usage_count: 1", "usage_count: 2")
    theirs = base.replace("Second line", "Their line").replace("usage_count: 1", "usage_count: 3")
    merged = both_ways(base, ours, theirs)
    assert merged.conflicts == 1
    said = said_by(merged.text)
    assert said["b"][0] == {"id": "b", "usage_count": 4}
    assert "<<<<<<< ours\nOur line.\n=======\nTheir line.\n>>>>>>> theirs\n\n---\nid: b\n" in merged.text


def test_a_field_that_both_changed_is_marked_alone() -> None:
    merged = both_ways(ENTRY, ENTRY.replace("wombat", "emu").replace("count: 2", "count: 3"), ENTRY.replace("wombat", "dingo"))
    assert merged.conflicts == 1
    assert "<<<<<<< ours\nowner: emu\n=======\nowner: dingo\n>>>>>>> theirs\nreinforcement_count: 3\n" in merged.text


def test_what_one_side_took_out_comes_back_only_as_a_choice() -> None:
    base = ENTRY + "\n---\nid: b\nusage_count: 1\n---\nOther.\n"
    without = ENTRY
    assert both_ways(base, without, base.replace("First", "1st")).text == ENTRY.replace("First", "1st")
    counted = both_ways(base, without, base.replace("usage_count: 1", "usage_count: 2"))
    assert counted.text.rstrip() == ENTRY.rstrip()
    assert counted.notices == ("b: taken out by one side, only counted by the other; it stays out",)
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
    assert merged == FileMerge(write(ENTRY.replace("First", "1st").replace("count: 2", "count: 5")))
    added = merge(write(ENTRY), write(ENTRY.replace("First", "1st")), write(ENTRY + "\n---\nid: b\n---\nNew.\n"))
    assert added == FileMerge(write(ENTRY.replace("First", "1st") + "\n---\nid: b\n---\nNew.\n"))
    fight = merge(write(ENTRY), write(ENTRY.replace("Second", "2nd")), write(ENTRY.replace("Second", "Zweite")))
    assert fight.conflicts == 1
    assert ("\r\n" in fight.text) == (newline == "\r\n")
    assert fight.text.replace("\r\n", "").count("\r") == 0


def test_one_side_that_changed_all_line_ends_has_its_way() -> None:
    merged = both_ways(ENTRY, ENTRY.replace("\n", "\r\n"), ENTRY.replace("First", "1st"))
    assert merged == FileMerge(ENTRY.replace("First", "1st").replace("\n", "\r\n"))


def test_entries_without_ids_are_known_by_their_words() -> None:
    base = "# Notes\n\nPlain.\n\n---\nkind: fact\ntitle: One\n---\nText one.\n\n---\nkind: fact\ntitle: Two\n---\nText two.\n"
    ours = base.replace("title: One", "title: One\nid: one\nusage_count: 1").replace("Plain.", "Plain!")
    theirs = base.replace("Text one.", "Text 1.").replace("title: Two", "title: Two\ntags: [t]") + "\n---\nkind: fact\n---\nThree.\n"
    merged = both_ways(base, ours, theirs)
    assert not merged.conflicts
    assert {"Plain!", "Text 1.", "id: one", "usage_count: 1", "tags: ['t']", "Three."} <= set(lines_of(merged.text))
    assert merged.text.count("title: One") == 1


def test_odd_frontmatter_that_one_side_left_alone_is_no_conflict() -> None:
    """A key that stands there twice, braces and anchors are kept to the byte."""
    odd = (
        "---\nid: b\ntags: [x]\ntags: [y]\n---\nTwice.\n\n---\n{id: c, usage_count: 1}\n---\nBraces.\n\n---\nid: d\na: &x [1]\nb: *x\n---\nAnchors.\n"
    )
    base = f"{ENTRY}\n{odd}"
    ours = base.replace("Twice.", "Two.").replace("usage_count: 1", "usage_count: 2").replace("&x [1]", "&x [1, 2]")
    theirs = base.replace("First", "1st").replace("usage_count: 1", "usage_count: 3").replace("Anchors.", "Anchor.")
    merged = both_ways(base, ours, theirs)
    expected = ours.replace("First", "1st").replace("usage_count: 2", "usage_count: 4").replace("Anchors.", "Anchor.")
    assert merged == FileMerge(expected)


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


@pytest.mark.parametrize("head", ["# Plain\n\n", "---\nnot: [closed\n---\n", "Head.\n\n---\n\n"])
def test_files_without_entries_go_to_git(head: str) -> None:
    text = f"{head}One.\n\nTwo.\n\nThree.\n"
    merged = both_ways(text, text.replace("One", "1"), text.replace("Three", "3"))
    assert merged == FileMerge(text.replace("One", "1").replace("Three", "3"))
    assert both_ways(text, text.replace("Two", "2"), text.replace("Two", "II")).conflicts == 1


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    """What is no UTF-8 survives; what is no text at all is left to a person, ours in the folder."""
    base = encode(ENTRY).replace(b"owner", b"owner").replace(b"First", b"F\xffrst")
    names = [str(tmp_path / name) for name in ("o", "a", "b")]
    for name, data in zip(names, (base, base.replace(b"Second", b"2nd"), base.replace(b"count: 2", b"count: 3")), strict=True):
        Path(name).write_bytes(data)
    assert merge_file(names[0], names[1], names[2], "memory/a.md") == 0
    assert Path(names[1]).read_bytes() == base.replace(b"Second", b"2nd").replace(b"count: 2", b"count: 3")
    for name, data in zip(names, (b"\0one", b"\0two", b"\0three"), strict=True):
        Path(name).write_bytes(data)
    assert merge_file(names[0], names[1], names[2], "memory/a.md") == 1
    assert Path(names[1]).read_bytes() == b"\0two"


def test_without_git_what_differs_is_a_choice() -> None:
    lone = GitTexts({"PATH": "/nowhere"})
    merged = merge_files(ENTRY, ENTRY.replace("Second", "2nd").replace("count: 2", "count: 3"), ENTRY.replace("First", "1st"), "a.md", lone)
    assert merged.conflicts == 1
    assert {"1st line.", "2nd line."} <= set(lines_of(merged.text))


# -- random histories ------------------------------------------------------------------------

_COUNTS = ("reinforcement_count", "usage_count")
_WORDS = ("alpha", "beta", "gamma", "delta")


class Side:
    """One branch of a file on which random edits are made; each line and word it writes is its own."""

    def __init__(self, text: str, name: str, rng: random.Random) -> None:
        self.text, self.name, self._rng = text, name, rng
        self._number = 0

    def edit(self) -> None:
        entries = [one for one in parse_document(self.text, "a.md").entries if one.has_frontmatter]
        step = self._rng.choice([self._count, self._tag, self._untag, self._own_key, self._line, self._reword, self._retire, self._remark])
        if not entries or self._rng.random() < 0.12:
            self._add()
        elif self._rng.random() < 0.08 and len(entries) > 2:
            self._drop(self._rng.choice(entries))
        else:
            one = self._rng.choice(entries)
            piece = self.text[one.span.start : one.span.end]
            new = step(one, piece)
            newline = newline_of(self.text)
            new = separated(new, newline) if one.span.end < len(self.text) else new
            self.text = self.text[: one.span.start] + new + self.text[one.span.end :]

    def _new(self) -> str:
        self._number += 1
        return f"{self.name}{self._number}"

    def _add(self) -> None:
        name = self._new()
        self.text = separated(self.text, "\n") + f"---\nid: {name}\nkind: fact\ntags: [{name}]\n---\nLine of {name}.\n"

    def _drop(self, one: Any) -> None:
        self.text = self.text[: one.span.start] + self.text[one.span.end :]

    def _set(self, one: Any, piece: str, **values: Any) -> str:
        return change_fields(piece, "a.md", one.id, values.items())

    def _count(self, one: Any, piece: str) -> str:
        name = self._rng.choice(_COUNTS)
        return self._set(one, piece, **{name: one.metadata.get(name, 0) + 1, "last_reinforced": f"2026-{self._rng.randrange(1, 13):02}-01"})

    def _tag(self, one: Any, piece: str) -> str:
        return self._set(one, piece, tags=[*one.metadata.get("tags", []), self._new()])

    def _untag(self, one: Any, piece: str) -> str:
        return self._set(one, piece, tags=one.metadata.get("tags", [])[1:])

    def _own_key(self, one: Any, piece: str) -> str:
        name = self._new()
        return self._set(one, piece, **{f"key_{name}": name})

    def _retire(self, one: Any, piece: str) -> str:
        return self._set(one, piece, status=self._rng.choice(["retired", "archived", "compacted", "active"]))

    def _remark(self, _: Any, piece: str) -> str:
        return piece.replace("\nkind:", f"\n# remark {self._new()}\nkind:", 1)

    def _line(self, one: Any, piece: str) -> str:
        body = piece[one.body.start - one.span.start :].strip()
        return change_body(piece, "a.md", one.id, f"{body}\n\nLine {self._new()}.", "\n")

    def _reword(self, one: Any, piece: str) -> str:
        lines = piece[one.body.start - one.span.start :].strip().split("\n")
        lines[self._rng.randrange(len(lines))] = f"Line {self._new()}."
        return change_body(piece, "a.md", one.id, "\n".join(lines), "\n")


def random_base(rng: random.Random) -> str:
    entries = [
        f"---\nid: e{number}\nkind: rule\ntags: [{', '.join(rng.sample(_WORDS, 2))}]\nstatus: active\nreinforcement_count: {rng.randrange(4)}\n---\n"
        + "\n\n".join(f"Line {number}.{line}." for line in range(rng.randrange(1, 6)))
        + "\n"
        for number in range(rng.randrange(1, 7))
    ]
    return ("# Notes\n\nBefore all.\n\n" if rng.random() < 0.3 else "") + "\n".join(entries)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30))
def test_random_histories_merge_the_same_both_ways_and_lose_nothing(seed: int) -> None:
    rng = random.Random(seed)
    base = random_base(rng)
    sides = [Side(base, name, rng) for name in ("ours", "theirs")]
    for side in sides:
        for _ in range(rng.randrange(0, 9)):
            side.edit()
    ours, theirs = sides[0].text, sides[1].text
    merged = both_ways(base, ours, theirs)
    check_nothing_lost(base, ours, theirs, merged)


def check_nothing_lost(base: str, ours: str, theirs: str, merged: FileMerge) -> None:
    old, mine, yours, new = said_by(base), said_by(ours), said_by(theirs), said_by(merged.text)
    here = set(lines_of(merged.text))
    for side, other in ((mine, yours), (yours, mine)):
        for entry_id, (_, lines) in side.items():
            known = old.get(entry_id, ({}, Counter()))
            if entry_id not in other and entry_id in old and "only counted" in "".join(merged.notices):
                continue
            written = set(lines) - set(known[1]) if entry_id in old else set(lines)  # type: ignore[call-overload]
            assert written <= here, (entry_id, written - here)
    if merged.conflicts:
        return
    assert "<<<<<<<" not in merged.text
    entries = [one.id for one in parse_document(merged.text, "memory/a.md").entries]
    assert len(set(entries)) == len(entries)
    for entry_id in {*mine, *yours}:
        removed = entry_id in old and not (entry_id in mine and entry_id in yours)
        assert (entry_id in new) != removed
        if entry_id in new and entry_id in old:
            check_fields(*(side[entry_id][0] for side in (old, mine, yours, new)))


def check_fields(old: Any, mine: Any, yours: Any, new: Any) -> None:
    for name in {*old, *mine, *yours}:
        was, one, other = (side.get(name) for side in (old, mine, yours))
        if name in _COUNTS:
            assert new.get(name, 0) == (one or 0) + (other or 0) - (was or 0)
        elif one != was and other == was:
            assert new.get(name) == one
        elif other != was and one == was:
            assert new.get(name) == other
        elif name == "tags":
            assert set(new["tags"]) == ({*one, *other} - (set(was) - set(one)) - (set(was) - set(other)))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab-:#\n \t[]{}'\"\r|>&*!%é\ud800", max_size=60), st.integers(0, 1 << 30))
def test_no_text_at_all_breaks_the_merge(noise: str, seed: int) -> None:
    rng = random.Random(seed)
    noise = decode(noise.encode("utf-8", "replace"))
    base = random_base(rng)
    cut = rng.randrange(len(base))
    ours, theirs = base[:cut] + noise + base[cut:], base.replace("Line 0.0.", "Line zero.")
    merged = merge(base, ours, theirs)
    assert "Line zero." in merged.text or merged.conflicts or "Line 0.0." not in ours
    kept = set(lines_of(merged.text))
    assert {line for line in lines_of(ours) if line != "Line 0.0."} - kept <= {line for line in lines_of(ours) if line in lines_of(base)}


# -- in a repository -------------------------------------------------------------------------


def test_installing_is_idempotent_and_is_taken_out_to_the_byte(tmp_path: Path, home: Path) -> None:
    own = b"*.png binary\r\n*.md text"
    clone = found(tmp_path / "v", home, {"memory/config.yaml": "", ".gitattributes": own})
    config = (clone.folder / ".git" / "config").read_bytes()
    assert "set merge.memory-kb.driver" in clone.kb("git", "install", "--dry-run")
    assert (clone.folder / ".gitattributes").read_bytes() == own
    clone.kb("git", "install")
    once = (clone.folder / ".gitattributes").read_bytes(), (clone.folder / ".git" / "config").read_bytes()
    assert once[0].endswith(own)
    assert clone.kb("git", "install") == ""
    assert ((clone.folder / ".gitattributes").read_bytes(), (clone.folder / ".git" / "config").read_bytes()) == once
    assert "merge: memory-kb" in clone.git("check-attr", "merge", "--", "memory/rules/deep/a.md")
    assert "merge: memory-kb" in clone.git("check-attr", "merge", "--", "MEMORY.md")
    assert "merge: unspecified" in clone.git("check-attr", "merge", "--", "docs/a.md")
    clone.kb("git", "install", "--uninstall")
    assert (clone.folder / ".gitattributes").read_bytes() == own
    assert (clone.folder / ".git" / "config").read_bytes() == config
    assert clone.kb("git", "install", "--uninstall") == ""


def test_no_attributes_are_left_where_there_were_none(tmp_path: Path, home: Path) -> None:
    clone = found(tmp_path / "v", home, {"a.md": "plain folder"})
    clone.kb("git", "install")
    assert "merge: memory-kb" in clone.git("check-attr", "merge", "--", "deep/in/a.md")
    clone.kb("git", "install", "--uninstall")
    assert not (clone.folder / ".gitattributes").exists()


def test_outside_of_a_repository_it_says_so(run: Run, folder: Path) -> None:
    done = run("--vault", folder, "git", "install", env={"GIT_CEILING_DIRECTORIES": str(folder.parent)})
    assert done.returncode == 3
    assert "is in no git repository" in done.stderr


def test_init_offers_it_in_a_repository(run: Run, tmp_path: Path, home: Path) -> None:
    clone = found(tmp_path / "v", home, {"README.md": "x"})
    assert run("init", clone.folder).stderr.splitlines()[-1].startswith("This is a git repository: `memory-kb git install`")
    assert "git install" not in run("init", tmp_path / "other").stderr


def test_branches_meet_in_a_real_merge_and_without_the_driver_git_still_merges(tmp_path: Path, home: Path) -> None:
    clone = found(tmp_path / "v", home, {"memory/config.yaml": "", "memory/rules/a.md": ENTRY})
    note = clone.folder / "memory/rules/a.md"
    clone.kb("git", "install")
    clone.save("attributes")
    clone.git("checkout", "-q", "-b", "side")
    note.write_text(ENTRY.replace("count: 2", "count: 4").replace("First", "1st"))
    clone.save("side")
    clone.git("checkout", "-q", "main")
    note.write_text(ENTRY.replace("count: 2", "count: 3").replace("Second", "2nd"))
    clone.save("main")
    clone.git("branch", "before")
    clone.git("merge", "-q", "side")
    assert note.read_text() == ENTRY.replace("count: 2", "count: 5").replace("First", "1st").replace("Second", "2nd")
    clone.git("reset", "-q", "--hard", "before")
    driver = clone.git("config", "merge.memory-kb.driver").strip()
    clone.git("config", "merge.memory-kb.driver", driver.replace("command -v ", "command -v /nowhere"))
    assert "Automatic merge failed" in clone.git("merge", "side", may_fail=True)
    assert "<<<<<<< ours" in note.read_text()
    assert "count: 4" in note.read_text()


def test_two_clones_edited_at_random_come_to_the_same(tmp_path: Path, home: Path, open_kb: Open) -> None:
    """People and lifecycle verbs write in both; merged in both orders there is one result, and no edit is lost."""
    rng = random.Random(11)
    notes = {f"memory/rules/r{number}.md": random_base(rng).replace("id: e", f"id: r{number}e") for number in range(8)}
    first = found(tmp_path / "one", home, {"memory/config.yaml": "", ".gitignore": ".memory-kb/\n", **notes})
    first.kb("git", "install")
    first.save("attributes")
    first.git("clone", "-q", str(first.folder), str(tmp_path / "two"))
    second = Clone(tmp_path / "two", home)
    second.kb("git", "install")
    ids = sorted(entry_id for text in notes.values() for entry_id in said_by(text) if entry_id[0] == "r")
    for name, clone in (("ours", first), ("theirs", second)):
        kb = open_kb(clone.folder)
        sides = {path: Side((clone.folder / path).read_text(), f"{name}{number}x", rng) for number, path in enumerate(notes)}
        for _ in range(30):
            side = rng.choice(list(sides.values()))
            side.edit()
        for path, side in sides.items():
            (clone.folder / path).write_text(side.text)
        there = {entry_id for path in notes for entry_id in said_by((clone.folder / path).read_text())}
        for entry_id in [one for one in rng.sample(ids, 8) if one in there]:
            with suppress(UsageError):  # one that is retired by then
                kb.rules_feedback(entry_id, rng.choice(["success", "failure"]))
        kb.learn(f"What {name} learned about numbats.")
        clone.save(name)
    first.git("fetch", "-q", str(second.folder), "main:theirs")
    second.git("fetch", "-q", str(first.folder), "main:theirs")
    base, ours, theirs = (first.git("rev-parse", name).strip() for name in ("main~1", "main", "theirs"))
    results = []
    for clone in (first, second):
        clone.git("merge", "-q", "theirs", may_fail=True)
        results.append({path: (clone.folder / path).read_text() for path in notes})
    assert len(list((first.folder / "memory/learnings").glob("*.md"))) == 2
    for path in notes:
        one, other = results[0][path], results[1][path]
        assert one == turned(other)
        began, mine, yours = (first.git("show", f"{revision}:{path}") for revision in (base, ours, theirs))
        check_nothing_lost(began, mine, yours, FileMerge(one, one.count("<<<<<<<")))
