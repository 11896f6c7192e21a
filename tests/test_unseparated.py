"""An entry without a blank line before it is text, and lint says so; a rule in prose is a rule."""

from __future__ import annotations

import pytest

from memory_kb.markdown.document import parse_document

A = "---\nid: a\nkind: fact\n---\nOne.\n"
B = "---\nid: b\nkind: fact\n---\nTwo.\n"
SAID = "looks like an entry, and is read as part of the text above; put a blank line before it"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("text", "lines", "ids"),
    [
        (A + B, [6], ["a"]),
        (A + B + B, [6, 11], ["a"]),
        (f"{A}{B}\n{A.replace('a', 'c', 1)}{B}", [6, 17], ["a", "c"]),
        ("# Notes\n" + A, [2], None),
        ("---\nid: a\n---\n" + B, [4], ["a"]),
        (f"{A}---\nProse.\n{B}", [8], ["a"]),
        (f"{A}```\ncode\n```\n{B}", [9], ["a"]),
        (f"{A}---\ntype: rule\ntitle: Only a type\n---\nText.\n", [6], ["a"]),
    ],
)
def test_an_entry_that_is_swallowed_is_reported(
    text: str, lines: list[int], ids: list[str] | None, newline: str
) -> None:
    document = parse_document(text.replace("\n", newline), "a.md")
    assert [(problem.line, SAID in problem.message) for problem in document.problems] == [
        (line, True) for line in lines
    ]
    assert ids is None or [entry.id for entry in document.entries] == ids


@pytest.mark.parametrize(
    "behind",
    [
        "---\nProse with kind: in it.\n",
        "Heading\n---\nText.\n\nAnother\n---\nMore.\n",
        "---\nkind: of prose that never closes\n",
        "---\nkind: of prose\n\n" + B,
        "---\ntitle: no entry\n---\nText.\n",
        "---\nid: bad: yaml\n---\nText.\n",
        "```\n" + B + "```\n",
        "~~~\n" + B,
        "> ---\n> id: b\n> ---\n",
        "  ---\n  id: b\n  ---\n",
        "| id |\n---\n| kind |\n---\n",
    ],
)
def test_rules_headings_and_examples_are_no_entries(behind: str) -> None:
    assert not [problem for problem in parse_document(A + behind, "a.md").problems if SAID in problem.message]
