"""Change one value or one entry byte-exactly."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.errors import CannotSplice
from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.document import parse_document
from memory_kb.model import Entry, Span
from memory_kb.text import UTF_16_MARKS, count_same, decode, encode
from memory_kb.yaml_loader import InvalidBlock, load_mapping, yaml_loader

if TYPE_CHECKING:
    import yaml


Value = str | int | float | bool | list[str] | list[dict[str, str]] | dict[str, Any]


def set_values(text: str, block: Span, values: Mapping[str, Value]) -> str:
    """Return `text` with some keys set in one block.

    The YAML is between the two places of `block`. An existing value is replaced in its own
    quoting style; a new key becomes the last line.

    Raises:
        CannotSplice: the change would not be read back as meant.

    Example:
        >>> set_values("---\\nid: a  # mine\\nstatus: active # why\\n---\\nBody", Span(4, 39), {"status": "retired"})
        '---\\nid: a  # mine\\nstatus: retired # why\\n---\\nBody'
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
        raise InvalidBlock(f"is not valid YAML: {exc}") from exc
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise CannotSplice("the frontmatter is not a mapping")
    is_flow = bool(root and root.flow_style)
    for key_node, value_node in root.value if root else ():
        if key_node.value == key:
            if isinstance(value, dict) and isinstance(value_node, yaml.MappingNode):
                start = value_node.start_mark.index
                has_own_lines = not value_node.flow_style and not block[block.rfind("\n", 0, start) + 1 : start].strip()
                if has_own_lines and {inner.value for inner, _ in value_node.value} <= value.keys():
                    return _set_below(block, value_node, value)
            return _replace(block, value_node, value, is_flow=is_flow)
    if root and is_flow:
        place = _content_end(block, root.value[-1][1]) if root.value else root.start_mark.index + 1
        comma = ", " if root.value else ""
        return f"{block[:place]}{comma}{key}: {emit(value, is_flow=True)}{block[place:]}"
    newline = newline_of(block)
    lead = "" if not block or block.endswith("\n") else newline
    indent = " " * root.start_mark.column if root else ""
    return f"{block}{lead}{indent}{key}:{emit_below(value, indent, newline)}{newline}"


def _set_below(block: str, node: yaml.MappingNode, value: dict[str, Any]) -> str:
    """Return a block with those values of a mapping in it set that differ."""
    start = block.rfind("\n", 0, node.start_mark.index) + 1
    end = block.find("\n", _content_end(block, node)) + 1 or len(block)
    inner = block[start:end]
    for key, new in _new_in(load_mapping(inner), value).items():
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
            emit_below(value, indent[0] if indent else "", newline_of(block))
            if isinstance(value, dict)
            else f" {emitted}"
        )
        return f"{block[:colon]}{below}{block[end:]}"
    return block[:start] + emitted + block[end:]


def _content_end(block: str, node: yaml.Node) -> int:
    """Return where a node's own text ends. A block collection's mark runs on over comments behind it."""
    import yaml

    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _content_end(block, last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    while end > node.start_mark.index and block[end - 1] in "\r\n":
        end -= 1
    return end


def emit(value: Value, style: str | None = None, *, is_flow: bool = False) -> str:
    """Return a value as one line of YAML that reads back the same, inside braces if `is_flow`.

    Example:
        >>> emit("yes"), emit("a, b"), emit("a, b", is_flow=True), emit(["x", "2026-01-01"])
        ("'yes'", 'a, b', "'a, b'", "[x, '2026-01-01']")
    """
    import yaml

    options: dict[str, Any] = {"default_flow_style": True, "allow_unicode": True, "width": 1 << 20, "sort_keys": False}
    options["default_style"] = style if isinstance(value, str) else None
    if is_flow:
        emitted = str(yaml.safe_dump([value], **options)).strip()[1:-1]
    else:
        emitted = str(yaml.safe_dump(value, **options)).removesuffix("...\n").rstrip("\n")
    if "\n" in emitted or load_mapping(f"x: {emitted}").get("x") != value:
        emitted = str(yaml.safe_dump(value, **{**options, "default_style": '"', "allow_unicode": False})).rstrip("\n")
    return emitted


def emit_below(value: Value, indent: str = "", newline: str = "\n") -> str:
    """Return a value as it is behind its key: a mapping on lines of its own, the rest on the same."""
    if not isinstance(value, dict) or not value:
        return f" {emit(value)}"
    return "".join(f"{newline}{indent}  {emit(key)}: {emit(held)}" for key, held in value.items())


_RULE_LINE = lazy_regex(r"^---(?=[ \t]*\r?$)", re.MULTILINE)
_BLANK_LINE_LAST = lazy_regex(r"\n[ \t\r]*\n\Z")


class Splice(NamedTuple):
    """Bytes of a file that were replaced by others, and at which byte they are."""

    path: str
    at: int
    before: bytes
    after: bytes

    @property
    def reverse(self) -> Splice:
        """The splice that reverts this one."""
        return self._replace(before=self.after, after=self.before)


class EditableFile:
    """A file cut at its entries, each of which is edited alone, so that a thousand edits read the file once."""

    def __init__(self, path: str, data: bytes) -> None:
        text = decode(data)
        entries = read_entries(text, path)
        self.path = path
        self.newline = newline_of(text)
        self._lead = encode(text[: entries[0].span.start] if entries else text)
        self._ids = [entry.id for entry in entries]
        self._broken = [entry for entry in entries if entry.fault is not None]
        self._pieces = [encode(text[entry.span.start : entry.span.end]) for entry in entries]
        self._read = data

    @property
    def data(self) -> bytes:
        """The file's bytes as they are now."""
        return b"".join((self._lead, *self._pieces))

    def holds_only(self, entry_id: str) -> bool:
        """Return whether an entry has the file to itself."""
        return self._ids == [entry_id]

    def refuse_broken(self, entry_id: str) -> None:
        """Keep an entry from being changed whose frontmatter could not be read."""
        for entry in self._broken:
            if entry.id == entry_id:
                refuse_broken(entry, self.path)

    def piece(self, entry_id: str) -> str:
        """Return an entry's text."""
        return decode(self._pieces[self._find(entry_id)])

    def put(self, entry_id: str, text: str) -> Splice:
        """Put another text in an entry's place; a blank line is left before the next entry."""
        place = self._find(entry_id)
        if place + 1 < len(self._pieces):
            text = separated(text, self.newline)
        if [entry.id for entry in read_entries(text, self.path)] != [entry_id]:
            raise CannotSplice(f"{entry_id} in {self.path} would no longer be read as one entry")
        new = encode(text)
        splice = self._splice(place, new)
        self._pieces[place] = new
        if not self._lead and len(self._pieces) == 1:
            self._read = new
        return splice

    def drop(self, entry_id: str) -> Splice:
        """Take an entry out."""
        place = self._find(entry_id)
        splice = self._splice(place, b"")
        del self._pieces[place], self._ids[place]
        return splice

    def _find(self, entry_id: str) -> int:
        return _only_place(self._ids, entry_id, self.path, self._read[:2])

    def _splice(self, place: int, new: bytes) -> Splice:
        at = len(self._lead) + sum(map(len, self._pieces[:place]))
        return trim(Splice(self.path, at, self._pieces[place], new))

    def check(self) -> None:
        """Read the file again."""
        data = self.data
        if data != self._read and [entry.id for entry in read_entries(decode(data), self.path)] != self._ids:
            raise CannotSplice(f"{self.path} would no longer be read as the same entries")


def trim(splice: Splice) -> Splice:
    """Return a splice without the whole lines that both sides share.

    Example:
        >>> trim(Splice("a.md", 10, b"id: x\\nstatus: a\\n", b"id: x\\nstatus: b\\n"))
        Splice(path='a.md', at=16, before=b'status: a\\n', after=b'status: b\\n')
    """
    old, new = splice.before.splitlines(keepends=True), splice.after.splitlines(keepends=True)
    head = count_same(old, new)
    tail = count_same(reversed(old[head:]), reversed(new[head:]))
    at = splice.at + sum(map(len, old[:head]))
    return Splice(splice.path, at, b"".join(old[head : len(old) - tail]), b"".join(new[head : len(new) - tail]))


def change_fields(text: str, path: str, entry_id: str, values: Iterable[tuple[str, Value]], newline: str = "\n") -> str:
    """Return an entry's text with fields set, in a new block if it has none; a value that is there stays as written.

    Example:
        >>> change_fields("---\\nid: a # mine\\n---\\nText.\\n", "a.md", "a", [("status", "retired")])
        '---\\nid: a # mine\\nstatus: retired\\n---\\nText.\\n'
    """
    entry = find_entry(text, path, entry_id)
    if not entry.has_frontmatter:
        if text.startswith("+++"):
            raise CannotSplice(f"the frontmatter of {path} is TOML, which no command changes")
        fields = {"id": entry.id, "kind": entry.kind} | dict(values)
        return "".join(
            (newline.join(("---", *(f"{key}: {emit(value)}" for key, value in fields.items()), "---", "")), text)
        )
    new = _new_in(entry.metadata, dict(values))
    return set_values(text, yaml_span(text, entry), new) if new else text


def _new_in(held: Mapping[str, Any], values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values that a mapping does not hold yet, in the same type."""
    return {
        key: value
        for key, value in values.items()
        if key not in held or held[key] != value or type(held[key]) is not type(value)
    }


def refuse_broken(entry: Entry, path: str) -> None:
    """Keep an entry from being written to whose frontmatter cannot be read."""
    if entry.fault is not None:
        raise CannotSplice(f"the frontmatter at {path}:{entry.fault} cannot be read; fix that line first")


def pin_id(text: str, path: str, entry_id: str, newline: str = "\n") -> str:
    """Return an entry's text with its id written down, so that it outlives a move or an edit."""
    if find_entry(text, path, entry_id).has_own_id:
        return text
    return change_fields(text, path, entry_id, [("id", entry_id)], newline)


def change_body(text: str, path: str, entry_id: str, body: str, newline: str) -> str:
    """Return an entry's text with another body between the blank lines of the old one.

    A line of three dashes in it that would open another entry is moved one column in.

    Example:
        >>> change_body("---\\nid: a\\n---\\n\\nOld.\\n", "a.md", "a", "New.", "\\n")
        '---\\nid: a\\n---\\n\\nNew.\\n'
    """
    text = pin_id(text, path, entry_id, newline)
    entry = find_entry(text, path, entry_id)
    head, old = text[: entry.body.start], text[entry.body.start : entry.body.end]
    bare = old.strip()
    lead, _, tail = old.partition(bare) if bare else ("", "", old or newline)
    if not head.endswith("\n"):
        head += newline
    new = body.strip("\r\n").replace("\r\n", "\n").replace("\n", newline) if body.strip() else ""
    changed = f"{head}{lead}{new}{tail}"
    if len(read_entries(changed, path)) != 1:
        changed = f"{head}{lead}{_RULE_LINE.sub(' ---', new)}{tail}"
    return changed


def separated(text: str, newline: str) -> str:
    """Return a text that ends in a blank line.

    Example:
        >>> separated("a", "\\n"), separated("a\\n \\n", "\\n")
        ('a\\n\\n', 'a\\n \\n')
    """
    while not _BLANK_LINE_LAST.search(text):
        text += newline
    return text


def newline_of(text: str) -> str:
    r"""Return the line end that a file uses: `\r\n` where there is one, else `\n`."""
    return "\r\n" if "\r\n" in text else "\n"


def find_entry(text: str, path: str, entry_id: str) -> Entry:
    """Return the entry with an id; the caller has just seen it there.

    Raises:
        CannotSplice: it is not there, or the id is there twice.
    """
    entries = read_entries(text, path)
    return entries[_only_place([entry.id for entry in entries], entry_id, path, encode(text[:2]))]


def _only_place(ids: Sequence[str], entry_id: str, path: str, start: bytes) -> int:
    """Return where an id is among those of a file that begins with some bytes; it has to be there once."""
    count = ids.count(entry_id)
    if count == 1:
        return ids.index(entry_id)
    if start in UTF_16_MARKS:
        raise CannotSplice(f"{path} is UTF-16; save it as UTF-8 first")
    raise CannotSplice(f"{path} has {count or 'no'} entries with the id {entry_id}")


# A file with one entry is read as a file, and at once again as the text of its entry.
@functools.lru_cache(maxsize=1)
def read_entries(text: str, path: str) -> tuple[Entry, ...]:
    """Return the entries of a file; those of the last one that was read are kept."""
    return parse_document(text, path).entries


def yaml_span(text: str, entry: Entry) -> Span:
    """Return where an entry's YAML is between its two `---` lines."""
    start = text.index("\n", entry.span.start) + 1
    end = text.rfind("---", start, entry.body.start)
    return Span(start, end if end >= start else entry.body.start)
