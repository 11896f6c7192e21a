"""What a rule says beyond its first paragraph: what to do instead, when it holds, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from memory_kb.context.framing import as_line
from memory_kb.learning.memories import Memory
from memory_kb.learning.rules.playbook import RULE_PARTS, Rule, Selection, format_for_prompt
from memory_kb.ports import TokenCounter
from memory_kb.text import count_tokens, shorten

#: The most of one rule's details, in characters, and the least that is worth a cut.
_MOST, _LEAST = 1_200, 80
#: What helps most stands first, in case it is cut.
_FIRST = ("prevention", "correct approach")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+(.*?))?[ \t#]*$")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d+[.)])[ \t]+")


def rule_details(memory: Memory) -> str:
    """Return in one line what a rule's body says after its text; "" where that is all.

    Example:
        >>> from memory_kb.model import Location
        >>> body = "Work in the request.\\n\\n## Why\\nIt times out.\\n\\n## Prevention\\n- Queue it\\n- Answer at once"
        >>> rule_details(Memory("x", "a.md", "", Location(), "T", body))
        'Prevention: Queue it. Answer at once. Why: It times out.'
    """
    parts = [(name, text) for name, lines in _parts(memory.text) if (text := _join(lines))]
    parts.sort(key=lambda part: _FIRST.index(part[0].casefold()) if part[0].casefold() in _FIRST else len(_FIRST))
    return " ".join(f"{name}: {text}" if name else text for name, text in parts)


def _parts(text: str) -> list[tuple[str, list[str]]]:
    """Return the lines behind the first paragraph, under the headings they stand below."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    place = "before"
    for line in text.replace("\r\n", "\n").split("\n"):
        heading = _HEADING.match(line)
        if heading:
            name = (heading[1] or "").strip(" :*")
            # A heading above the text names the rule, unless it is that of a part.
            if place == "before" and name.casefold() not in RULE_PARTS:
                continue
            place = "behind"
            parts.append((name, []))
        elif not line.strip():
            place = "behind" if place == "text" else place
        elif place == "behind":
            parts[-1][1].append(line)
        else:
            place = "text"
    return parts


def _join(lines: list[str]) -> str:
    """Return lines as sentences; an item of a list is one."""
    said = ""
    for line in lines:
        if _FENCE.match(line):
            continue
        said = f"{_ended(said)} {_ITEM.sub('', line)}" if _ITEM.match(line) else f"{said} {line}"
    return _ended(" ".join(said.split()))


def _ended(text: str) -> str:
    return f"{text}." if text and text[-1].isalnum() else text


def with_details(
    selection: Selection,
    memories: Mapping[tuple[str, str], Memory],
    max_tokens: int,
    count: TokenCounter = count_tokens,
) -> Selection:
    """Return a selection whose text tells the details too, of the best rules first, as far as its budget goes.

    What was chosen stays the same.
    """
    told: dict[str, str] = {}

    def show() -> str:
        return format_for_prompt(
            [replace(rule, text=f"{rule.text} {told[rule.id]}") if rule.id in told else rule for rule in chosen]
        )

    chosen: list[Rule] = [*selection.rules, *selection.anti_patterns]
    for rule in sorted(chosen, key=lambda rule: -(rule.score or 0.0)):
        details = rule_details(memories[rule.path, rule.id])
        more = f"(more: `memory-kb show {as_line(rule.id, 60)}`)"
        room = min(_MOST, 4 * (max_tokens - count(show())) - len(more) - 2)
        if not details or room < _LEAST:
            continue
        told[rule.id] = details if len(details) <= room else f"{shorten(details, room)} {more}"
        if count(show()) > max_tokens:
            del told[rule.id]
    text = show()
    return replace(selection, text=text, token_count=count(text))
