"""An entry that two branches changed, and what their merge says, for the tests of merging."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from memory_kb.git.merge import merge_files
from memory_kb.git.merge_texts import TextMerge
from memory_kb.markdown.document import parse_document

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


def merge(base: str, ours: str, theirs: str) -> TextMerge:
    """Merge the two sides of a file, with git for its texts."""
    return merge_files(base, ours, theirs, "memory/a.md")


def both_ways(base: str, ours: str, theirs: str) -> TextMerge:
    """Merge in both orders, make sure that they say the same but for the sides of markers, and return the first."""
    one, other = merge(base, ours, theirs), merge(base, theirs, ours)
    assert one.conflicts == other.conflicts
    assert lines_of(one.text) == lines_of(other.text)
    return one


def lines_of(text: str) -> Counter[str]:
    """Return the lines of a text but those between which people choose; the order of a list does not count."""
    lines = (
        re.sub(r"\[(.*)\]", lambda found: str(sorted(found[1].split(", "))), line.strip()) for line in text.splitlines()
    )
    return Counter(line for line in lines if line and not re.match(r"[<=>]{7}", line))


def said_by(text: str) -> dict[str, tuple[object, object]]:
    """Return what a file says by the ids of its entries, where the order of lists does not count."""
    entries = parse_document(text, "memory/a.md").entries
    return {one.id: (in_order(dict(one.metadata)), lines_of(text[one.body.start : one.body.end])) for one in entries}


def in_order(value: Any) -> object:
    """Return a value whose lists are in order."""
    if isinstance(value, dict):
        return {name: in_order(held) for name, held in value.items()}
    return sorted(map(str, value)) if isinstance(value, list) else value
