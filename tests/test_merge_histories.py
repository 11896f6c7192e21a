"""Histories at random: merged to say the same both ways, in one file and between two clones, and nothing lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from merging import both_ways, lines_of, merge, said_by
from repositories import Clone, found

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.git.merge_texts import TextMerge
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import change_body, change_fields, newline_of, separated
from memory_kb.text import decode

Open = Callable[..., KnowledgeBase]

_COUNTS = ("reinforcement_count", "usage_count")
_WORDS = ("alpha", "beta", "gamma", "delta")


class Side:
    """One branch of a file on which random edits are made; each line and word it writes is its own."""

    def __init__(self, text: str, name: str, rng: random.Random) -> None:
        self.text, self.name, self._rng = text, name, rng
        self._number = 0

    def edit(self) -> None:
        entries = [one for one in parse_document(self.text, "a.md").entries if one.has_frontmatter]
        step = self._rng.choice(
            [self._count, self._tag, self._untag, self._own_key, self._line, self._reword, self._retire, self._remark]
        )
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
        return self._set(
            one,
            piece,
            **{name: one.metadata.get(name, 0) + 1, "last_reinforced": f"2026-{self._rng.randrange(1, 13):02}-01"},
        )

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


@pytest.mark.slow
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


def check_nothing_lost(base: str, ours: str, theirs: str, merged: TextMerge) -> None:
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
    assert {line for line in lines_of(ours) if line != "Line 0.0."} - kept <= {
        line for line in lines_of(ours) if line in lines_of(base)
    }


@pytest.mark.slow
def test_two_clones_edited_at_random_come_to_the_same(tmp_path: Path, home: Path, open_kb: Open) -> None:
    """People and lifecycle verbs write in both; merged in both orders both say the same, and no edit is lost."""
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
        sides = {
            path: Side((clone.folder / path).read_text(), f"{name}{number}x", rng) for number, path in enumerate(notes)
        }
        for _ in range(30):
            side = rng.choice(list(sides.values()))
            side.edit()
        for path, side in sides.items():
            (clone.folder / path).write_text(side.text)
        there = {entry_id for path in notes for entry_id in said_by((clone.folder / path).read_text())}
        for entry_id in [one for one in rng.sample(ids, 8) if one in there]:
            with suppress(UsageError):  # one that is retired by then
                kb.rules.feedback(entry_id, rng.choice(["success", "failure"]))
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
        assert lines_of(one) == lines_of(other)
        began, mine, yours = (first.git("show", f"{revision}:{path}") for revision in (base, ours, theirs))
        check_nothing_lost(began, mine, yours, TextMerge(one, one.count("<<<<<<<")))


ENTRY = "---\nid: e\nkind: fact\ntags: [b, a]\n---\nOne.\n"


def entry(name: str) -> str:
    return f"\n---\nid: {name}\nkind: fact\n---\nText of {name}.\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (("x",), ("y",), ["e", "x", "y"]),
        (("z", "a"), ("y",), ["e", "z", "a", "y"]),
        (("z", "a"), (), ["e", "z", "a"]),
    ],
)
def test_each_side_keeps_its_own_order(ours: tuple[str, ...], theirs: tuple[str, ...], merged: list[str]) -> None:
    last = "\n---\nid: last\nkind: fact\n---\nLast.\n"
    sides = ["".join(map(entry, side)) for side in (ours, theirs)]
    assert list(said_by(both_ways(ENTRY, ENTRY + sides[0], ENTRY + sides[1]).text)) == merged
    between = both_ways(ENTRY + last, ENTRY + sides[0] + last, ENTRY + sides[1] + last)
    assert list(said_by(between.text)) == [*merged, "last"]


def test_entries_without_ids_are_left_to_git_and_text_before_all_others_stays_there() -> None:
    nameless = "\n---\nkind: fact\n---\nNew {}.\n"
    merged = both_ways(ENTRY, ENTRY + nameless.format("one"), ENTRY + nameless.format("two"))
    assert merged.conflicts == 1
    assert {"New one.", "New two."} <= set(lines_of(merged.text))
    text = "# Notes\n\nText.\n"
    first = both_ways(text, text + entry("b"), text + entry("a"))
    assert first.text == text + entry("b") + entry("a")


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ("tags: [b, a, x]", "tags: [b, a, c]", "tags: [b, a, x, c]"),
        ("tags: [b, a]\nmine: 1", "tags: [b, a]\nyours: 2", "tags: [b, a]\nyours: 2\nmine: 1"),
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
    assert list(said_by(merged.text)) == ["e", "x", "c"]


def test_an_entry_that_one_took_out_and_the_other_changed_is_on_its_side() -> None:
    base = ENTRY + entry("x")
    merged = both_ways(base, ENTRY, base.replace("Text of", "Words of"))
    assert "<<<<<<< ours\n=======\n---\nid: x\n" in merged.text
