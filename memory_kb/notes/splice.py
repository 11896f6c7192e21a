"""Change one value of one entry's frontmatter (architecture §1.2).

No other byte of the file changes. The value's place comes from the YAML parser's own marks. Every
result is parsed again and must differ in exactly the value that was meant, else nothing is
returned.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memory_kb.entry import Span
from memory_kb.errors import CannotSplice
from memory_kb.notes.frontmatter import InvalidBlock, load_mapping, yaml_loader

if TYPE_CHECKING:
    import yaml

Value = str | int | float | bool | list[str] | list[dict[str, str]] | dict[str, Any]


def set_value(text: str, block: Span, key: str, value: Value) -> str:
    """Return `text` with `key` set to `value` in one block; see `set_values`.

    Example:
        >>> set_value("---\\nid: a  # mine\\nstatus: active # why\\n---\\nBody", Span(4, 39), "status", "retired")
        '---\\nid: a  # mine\\nstatus: retired # why\\n---\\nBody'
    """
    return set_values(text, block, {key: value})


def set_values(text: str, block: Span, values: Mapping[str, Value]) -> str:
    """Return `text` with some keys set in one block.

    The YAML stands between the two places of `block`. An existing value is replaced in its own
    quoting style; a new key becomes the last line.

    Raises:
        CannotSplice: the change would not be read back as meant.
    """
    old = new = text[block.start : block.end]
    try:
        for key, value in values.items():
            new = _set_in_block(new, key, value)
        before, after = load_mapping(old), load_mapping(new)
    except InvalidBlock as exc:
        raise CannotSplice(str(exc)) from exc
    if after != {**before, **values}:
        wanted = ", ".join(f"{key}: {value!r}" for key, value in values.items())
        raise CannotSplice(f"the fields {wanted} cannot be set without changing others")
    return text[: block.start] + new + text[block.end :]


def _set_in_block(block: str, key: str, value: Value) -> str:
    import yaml

    try:
        root = yaml.compose(block, yaml_loader())
    except yaml.YAMLError as exc:
        raise InvalidBlock(str(exc)) from exc
    if root is None:
        return block + f"{key}:{_emit_below(value, '', _newline(block))}{_newline(block)}"
    if not isinstance(root, yaml.MappingNode):
        raise CannotSplice("the frontmatter is not a mapping")
    for key_node, value_node in root.value:
        if key_node.value == key:
            if (
                isinstance(value, dict)
                and isinstance(value_node, yaml.MappingNode)
                and _is_below(block, value_node, value)
            ):
                return _set_below(block, value_node, value)
            return _replace(block, value_node, value, is_flow=bool(root.flow_style))
    if root.flow_style:
        place = _content_end(block, root.value[-1][1]) if root.value else root.start_mark.index + 1
        comma = ", " if root.value else ""
        return f"{block[:place]}{comma}{key}: {emit(value, is_flow=True)}{block[place:]}"
    newline = _newline(block)
    lead = "" if not block or block.endswith("\n") else newline
    indent = " " * root.start_mark.column
    return f"{block}{lead}{indent}{key}:{_emit_below(value, indent, newline)}{newline}"


def _is_below(block: str, node: yaml.MappingNode, value: dict[str, Any]) -> bool:
    """Tell whether a mapping stands on lines of its own and loses no key by getting a value."""
    start = node.start_mark.index
    own_line = not block[block.rfind("\n", 0, start) + 1 : start].strip()
    return not node.flow_style and own_line and {key.value for key, _ in node.value} <= value.keys()


def _set_below(block: str, node: yaml.MappingNode, value: dict[str, Any]) -> str:
    """Return a block with those values of a mapping in it set that differ."""
    start = block.rfind("\n", 0, node.start_mark.index) + 1
    end = block.find("\n", _content_end(block, node)) + 1 or len(block)
    inner = block[start:end]
    held = load_mapping(inner)
    for key, new in value.items():
        if key not in held or held[key] != new or type(held[key]) is not type(new):
            inner = _set_in_block(inner, key, new)
    return block[:start] + inner + block[end:]


def _replace(block: str, node: yaml.Node, value: Value, *, is_flow: bool) -> str:
    start, end = node.start_mark.index, _content_end(block, node)
    style = getattr(node, "style", None)
    emitted = emit(value, style if style in ("'", '"') else None, is_flow=is_flow)
    if start == end and start > 0 and block[start - 1] not in " \t":
        emitted = " " + emitted
    if getattr(node, "flow_style", None) is False or style in ("|", ">"):
        # A block list or text ends a line of its own; what replaces it goes behind the key.
        colon = block.rindex(":", 0, start) + 1
        indent = re.match(r"[ \t]*", block[block.rfind("\n", 0, colon) + 1 :])
        below = (
            _emit_below(value, indent[0] if indent else "", _newline(block))
            if isinstance(value, dict)
            else f" {emitted}"
        )
        return f"{block[:colon]}{below}{block[end:]}"
    return block[:start] + emitted + block[end:]


def _content_end(block: str, node: yaml.Node) -> int:
    """Return where a node's own text ends.

    A block collection's mark runs on over comments behind it.
    """
    import yaml

    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _content_end(block, last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    while end > node.start_mark.index and block[end - 1] in "\r\n":
        end -= 1
    return end


def emit(value: Value, style: str | None = None, *, is_flow: bool = False) -> str:
    """Return a value as one line of YAML that reads back the same.

    It does so inside braces if `is_flow`.

    Example:
        >>> emit("yes"), emit("a, b"), emit("a, b", is_flow=True), emit(["x", "2026-01-01"])
        ("'yes'", 'a, b', "'a, b'", "[x, '2026-01-01']")
    """
    return (
        _emit_scalar(value, style, is_flow=is_flow)
        if isinstance(value, str | int | float)
        else _emit(value, None, is_flow=is_flow)
    )


# The same few words, counts and dates are written into entry after entry.
@functools.lru_cache(maxsize=1_024, typed=True)
def _emit_scalar(value: str | float, style: str | None, *, is_flow: bool) -> str:
    return _emit(value, style if isinstance(value, str) else None, is_flow=is_flow)


def _emit(value: Value, style: str | None, *, is_flow: bool) -> str:
    import yaml

    options: dict[str, Any] = {"default_flow_style": True, "allow_unicode": True, "width": 1 << 20}
    options["default_style"] = style
    if is_flow:
        emitted = str(yaml.safe_dump([value], **options)).strip()[1:-1]
    else:
        emitted = str(yaml.safe_dump(value, **options)).removesuffix("...\n").rstrip("\n")
    if "\n" in emitted or load_mapping(f"x: {emitted}").get("x") != value:
        emitted = str(yaml.safe_dump(value, **{**options, "default_style": '"', "allow_unicode": False})).rstrip("\n")
    return emitted


def _emit_below(value: Value, indent: str, newline: str) -> str:
    """Return a value as it stands behind its key: a mapping on lines of its own, the rest on the same."""
    if not isinstance(value, dict) or not value:
        return f" {emit(value)}"
    return "".join(f"{newline}{indent}  {emit(key)}: {emit(held)}" for key, held in value.items())


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
