"""What may be cited, and how a span is known again in a file that changed."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory_kb.learning.code_references import (
    CodeReference,
    InvalidReference,
    compare_lines,
    find_lines,
    hash_lines,
    parse_reference,
    split_lines,
    suggest_references,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("src/a.py", CodeReference("src/a.py")),
        ("./src/a.py", CodeReference("src/a.py")),
        ("src\\a.py#L3", CodeReference("src/a.py", 3, 3)),
        ("src/a.py#L10-L20", CodeReference("src/a.py", 10, 20)),
        ("src/a.py#L10-20", CodeReference("src/a.py", 10, 20)),
        ("src/a.py#L10C5-L20C1", CodeReference("src/a.py", 10, 20)),
        ("src/a.py:10-20", CodeReference("src/a.py", 10, 20)),
        ("src/a.py:10", CodeReference("src/a.py", 10, 10)),
        ("src/a.py:10:5", CodeReference("src/a.py", 10, 10)),
        ("Makefile", CodeReference("Makefile")),
        ("docs/two words.md", CodeReference("docs/two words.md")),
        ("3f2a9c1", CodeReference("", commit="3f2a9c1")),
        ("a" * 40, CodeReference("", commit="a" * 40)),
    ],
)
def test_references(text: str, expected: CodeReference) -> None:
    assert parse_reference(text) == expected
    assert parse_reference(expected.text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "/etc/passwd",
        "../x.py",
        "src/../../x.py",
        "src\\..\\x.py",
        "https://example.org/x.py",
        ".git/config",
        "src/.GIT/x",
        "a.py:0",
        "a.py#L5-L3",
        "a\nb.py",
        "a\0b",
        "x" * 501,
        "./",
    ],
)
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(InvalidReference):
        parse_reference(text)


@given(st.text(max_size=60) | st.text("abc012#L:-/.@~\\", max_size=12))
def test_any_text_is_a_reference_or_says_why_not(text: str) -> None:
    try:
        reference = parse_reference(text)
    except InvalidReference as exc:
        assert str(exc)
    else:
        assert not reference.path.startswith("/")
        assert ".." not in reference.path.split("/")
        assert reference.text


def test_what_a_text_seems_to_cite() -> None:
    text = (
        "See `src/a.py:4-7`, [the docs](docs/api.md), `docs/x.md#L3` and `src/a.py:4-7` again.\n"
        "Not `x = 1`, `pytest -q`, `../out.py`, [web](https://example.org/a.py), `self.run()` or ![p](img/a.png).\n"
        "```\n`in/fence.py`\n```\n"
    )
    assert [one.text for one in suggest_references(text)] == ["src/a.py#L4-L7", "docs/api.md", "docs/x.md#L3"]


TEXT = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"), max_size=12),
    min_size=1,
    max_size=12,
)


@given(
    above=TEXT, span=TEXT, below=TEXT, newline=st.sampled_from(["\n", "\r\n"]), tail=st.sampled_from(["", " ", "\t "])
)
def test_an_unchanged_span_is_found_wherever_it_moves(
    above: list[str], span: list[str], below: list[str], newline: str, tail: str
) -> None:
    lines = split_lines(newline.join(f"{line}{tail}" for line in (*above, *span, *below, "end")))
    start = find_lines(lines, hash_lines(split_lines("\n".join((*span, "x")))[:-1]), len(span), len(above) + 1)
    assert start == len(above) + 1


@given(span=TEXT, where=st.integers(0, 11), new=st.text("abc", min_size=1, max_size=3))
def test_a_changed_span_is_not_found(span: list[str], where: int, new: str) -> None:
    before = split_lines("\n".join((*span, "x")))[:-1]
    after = list(before)
    after[where % len(after)] += new
    assume("\n".join(before) not in "\n".join(after))
    assert find_lines(after, hash_lines(before), len(before)) is None


def test_the_nearest_of_several_is_meant() -> None:
    lines = ["same", "a", "same", "b", "same"]
    assert [find_lines(lines, hash_lines(["same"]), 1, near) for near in (1, 2, 4, 9)] == [1, 1, 3, 5]


def test_what_changed_within_lines_that_moved() -> None:
    changed = compare_lines(["x", "a", "b", "c", "y"], ["new", "new", "x", "a", "B", "c", "y", "z"], (2, 4))
    assert changed == (("- b", "+ B"), (4, 6))
