"""The frontmatter of two branches as text: values are settled first, the lines then merged by git.

All three blocks get the settled values before git compares their lines. What is left to differ is
what people wrote around them, comments, order and quoting, and the values that people must settle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from memory_kb.entry import Span
from memory_kb.errors import CannotSplice
from memory_kb.notes.frontmatter import InvalidBlock, load_mapping, yaml_loader
from memory_kb.notes.splice import set_value
from memory_kb.notes.textmerge import TextMerge
from memory_kb.notes.valuemerge import ABSENT, MergedFields, is_same, merge_fields

_KEY = re.compile(r"[\w\"'-][^:#]*:")
_COMMENT = re.compile(r"(?:^|\s)(#.*?)\s*$", re.MULTILINE)


class Texts(Protocol):
    """What merges texts line by line."""

    def merge(self, base: str, ours: str, theirs: str, *, is_union: bool = False) -> TextMerge:
        """Return what two texts come to."""

    def oppose(self, ours: str, theirs: str) -> str:
        """Return two texts between conflict markers."""


def merge_blocks(base: str | None, ours: str, theirs: str, texts: Texts) -> TextMerge:
    """Merge the YAML of an entry's frontmatter; `base` is None where both sides made the entry.

    No comment and no value of either side is lost: where lines cannot be put together without
    losing one, both blocks stand between markers.

    Raises:
        InvalidBlock: one of them is no mapping.
    """
    if ours == theirs:
        return _counted_twice(base, ours)
    if base in (ours, theirs):
        return TextMerge(theirs if base == ours else ours)
    held = [load_mapping(text) for text in (base or "", ours, theirs)]
    merged = merge_fields(None if base is None else held[0], held[1], held[2])
    old, mine, yours = (
        align(text, values, merged) for text, values in zip((base or "", ours, theirs), held, strict=True)
    )
    plain = texts.merge(old, mine, yours)
    if merged.unsettled:
        return plain if plain.conflicts else TextMerge(texts.oppose(mine, yours), 1)
    if not plain.conflicts and _says(plain.text, merged):
        return plain
    united = texts.merge(old, mine, yours, is_union=True)
    if _says(united.text, merged):
        return TextMerge(united.text)
    remarked = _with_remarks(mine, old, yours)
    if _says(remarked, merged):
        return TextMerge(remarked)
    return TextMerge(texts.oppose(mine, yours), 1)


def _with_remarks(mine: str, old: str, yours: str) -> str:
    """Return our block with the comments that they wrote, each above the key that it stands at, or behind it where we have none.

    Example:
        >>> _with_remarks("id: a # x\\nb: 1\\n", "id: a\\n", "id: a # y\\nb: 1 # z\\n")
        '# y\\nid: a # x\\nb: 1 # z\\n'
    """
    newline = "\r\n" if "\r\n" in mine else "\n"
    lines = (mine if not mine or mine.endswith("\n") else mine + newline).splitlines(keepends=True)
    known = {*_COMMENT.findall(old), *_COMMENT.findall(mine)}
    waiting: list[str] = []
    for line in yours.splitlines():
        waiting += [remark for remark in _COMMENT.findall(line) if remark not in known]
        key = _KEY.match(line)
        place = next((place for place, held in enumerate(lines) if key and held.startswith(key[0])), None)
        if place is not None:
            behind = _COMMENT.search(line)
            if behind and waiting[-1:] == [behind[1]] and lines[place].rstrip() == line[: behind.start()].rstrip():
                lines[place] = f"{line}{newline}"
                waiting.pop()
            lines[place:place] = [f"{remark}{newline}" for remark in waiting]
            waiting = []
    return "".join((*lines, *(f"{remark}{newline}" for remark in waiting)))


def _counted_twice(base: str | None, both: str) -> TextMerge:
    """Return a block that both sides changed alike: what each of them counted still adds up."""
    if base is None or base == both:
        return TextMerge(both)
    held = load_mapping(both)
    return TextMerge(align(both, held, merge_fields(load_mapping(base), held, held)))


def align(text: str, held: Mapping[str, Any], merged: MergedFields) -> str:
    """Return a block with the settled values in it; one that cannot be put there stays as it is.

    Example:
        >>> align("id: a # mine\\nold: 1\\n", {"id": "a", "old": 1}, MergedFields({"id": "a", "new": 2}, frozenset()))
        'id: a # mine\\nnew: 2\\n'
    """
    for name in held:
        if name not in merged.values and name not in merged.unsettled:
            text = _attempt(drop_key, text, name)
    for name, value in merged.values.items():
        if not is_same(held.get(name, ABSENT), value):
            text = _attempt(
                lambda block, key, value=value: set_value(block, Span(0, len(block)), key, value), text, name
            )
    return text


def _attempt(edit: Any, text: str, name: str) -> str:
    try:
        return str(edit(text, name))
    except (CannotSplice, InvalidBlock):
        return text


def drop_key(block: str, key: str) -> str:
    r"""Return a block without one of its keys; comments behind it stay.

    Raises:
        CannotSplice: the key does not stand on lines of its own.

    Example:
        >>> drop_key("id: a\ntags:\n  - x\n# Why.\nkind: rule\n", "tags")
        'id: a\n# Why.\nkind: rule\n'
    """
    import yaml

    root = yaml.compose(block, yaml_loader())
    keys = [node for node, _ in root.value] if isinstance(root, yaml.MappingNode) and not root.flow_style else []
    place = next((place for place, node in enumerate(keys) if node.value == key), None)
    if place is None:
        raise CannotSplice(f"{key} cannot be taken out")
    start = block.rfind("\n", 0, keys[place].start_mark.index) + 1
    end = block.rfind("\n", 0, keys[place + 1].start_mark.index) + 1 if place + 1 < len(keys) else len(block)
    lines = block[start:end].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    left = block[:start] + block[start + sum(map(len, lines)) :]
    expected = load_mapping(block)
    del expected[key]
    if load_mapping(left) != expected:
        raise CannotSplice(f"{key} cannot be taken out without changing other values")
    return left


def _says(text: str, merged: MergedFields) -> bool:
    """Tell whether a block says exactly what was settled, every key once."""
    import yaml

    try:
        root = yaml.compose(text, yaml_loader())
        found = load_mapping(text)
    except (yaml.YAMLError, InvalidBlock):
        return False
    count = len(root.value) if isinstance(root, yaml.MappingNode) else 0
    return (
        count == len(found)
        and found.keys() == merged.values.keys()
        and all(is_same(found[name], merged.values[name]) for name in found)
    )
