"""Merge memory files of two branches entry by entry and field by field.

Entries are matched by id. In an entry that both changed, the fields get on all sides the values that the two changes
come to; then git merges its lines. A file whose entries have no ids, or one that would be read differently afterwards,
is merged by git as a whole. Nothing is dropped: a conflict is marked within its one entry.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.git.merge_fields import choose_block, is_same, merge_fields, put_fields
from memory_kb.git.merge_texts import MARKER_SIZE, TextMerge, merge_lines
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import newline_of, separated, yaml_span
from memory_kb.model import Entry, Span

_BOM = "\ufeff"
#: The lines of counters and dates that the machine keeps: a change of these alone does not bring back what was removed.
_KEPT_LINES = re.compile(
    r"^(?:reinforcement_count|usage_count|success_count|failure_count|last_reinforced|last_applied):[ \t]*[\w:.+'\"-]*[ \t]*\r?\n",
    re.MULTILINE,
)
_KEY = re.compile(r"^[^\s#:-][^:\n]*:", re.MULTILINE)


class EntrySource(NamedTuple):
    """An entry as text, the blank lines behind it, its frontmatter, and where in the text that is."""

    id: str | None
    text: str
    tail: str
    fields: Mapping[str, Any] | None
    block: Span

    @property
    def yaml(self) -> str:
        return self.text[slice(*self.block)]

    def put(self, block: str) -> str:
        """Return the text with other YAML, if it has some."""
        return self.text if self.fields is None else self.text[: self.block.start] + block + self.text[self.block.end :]


class _File(NamedTuple):
    """A file cut into entries, and the text before the first."""

    lead: str
    entries: tuple[EntrySource, ...]
    is_broken: bool


#: The entries of a file by their names, in its order.
Entries = Mapping[str, EntrySource]


class _Part(NamedTuple):
    """What becomes of one entry, "" if it is removed; `id` is None where nothing is promised about how it reads."""

    text: str
    id: str | None = None
    conflicts: int = 0
    notice: str = ""


def merge_files(base: str, ours: str, theirs: str, path: str, marker_size: int = MARKER_SIZE) -> TextMerge:
    """Merge a file of two branches that both began as `base`; all three are whole texts.

    Example:
        >>> base = "---\\nid: a\\nusage_count: 1\\n---\\nOne.\\n"
        >>> ours = base.replace("1", "2")
        >>> theirs = base.replace("1", "4") + "\\n---\\nid: b\\n---\\nTwo.\\n"
        >>> merge_files(base, ours, theirs, "a.md").text
        '---\\nid: a\\nusage_count: 5\\n---\\nOne.\\n\\n---\\nid: b\\n---\\nTwo.\\n'
    """
    if base == ours == theirs:
        return TextMerge(ours)
    mark = _BOM if _choose(*(text[:1] == _BOM for text in (base, ours, theirs))) else ""
    three = [text.removeprefix(_BOM) for text in (base, ours, theirs)]
    files = [_cut(text, path) for text in three]
    named = _name_all(files)
    has_frontmatter = any(one.fields is not None for file in files[1:] for one in file.entries)
    if named and has_frontmatter and not any(file.is_broken for file in files):
        merger = _Merger(newline_of(three[1]), marker_size)
        parts = [merger.merge_entry(*(side.get(name) for side in named)) for name in _order(*named)]
        whole = _join(mark + _choose(*(file.lead for file in files)), parts, newline_of(three[1]))
        promised = Counter(part.id for part in parts if part.id is not None)
        found = Counter(entry.id for entry in parse_document(whole.text, path).entries if entry.has_own_id)
        if not promised - found and (whole.conflicts or promised == found):
            return whole
    plain = merge_lines(three[0], three[1], three[2], marker_size)
    return plain._replace(text=mark + plain.text)


def _choose(base: Any, ours: Any, theirs: Any) -> Any:
    return theirs if ours == base else ours


def _cut(text: str, path: str) -> _File:
    entries = parse_document(text, path).entries
    lead = text[: entries[0].span.start] if entries else ""
    return _File(lead, tuple(_cut_entry(text, one) for one in entries), any(one.fault is not None for one in entries))


def _cut_entry(text: str, entry: Entry) -> EntrySource:
    start = entry.span.start
    whole = text[start : entry.span.end]
    bare = whole.rstrip()
    entry_id = entry.id if entry.has_own_id else None
    if not entry.has_frontmatter:
        return EntrySource(entry_id, bare, whole[len(bare) :], None, Span(0, 0))
    block = yaml_span(text, entry)
    block = Span(block.start - start, block.end - start)
    return EntrySource(entry_id, bare, whole[len(bare) :], entry.metadata, block)


def _name_all(files: Sequence[_File]) -> list[Entries] | None:
    """Return the entries of three files by name, None where some have none.

    That is the id, "" for a first entry without one, and for one that each file has to itself.
    """
    if all(len(file.entries) == 1 for file in files):
        return [{"": file.entries[0]} for file in files]
    found: list[Entries] = []
    for file in files:
        named = {one.id or "": one for one in file.entries}
        if len(named) < len(file.entries) or (file.entries and "" in named and file.entries[0].id):
            return None
        found.append(named)
    return found if found[1] and found[2] else None


def _order(base: Entries, ours: Entries, theirs: Entries) -> list[str]:
    """Return the names of all entries, in our order, those of theirs behind what they are behind there."""
    order, before = list(ours), ""
    for name in theirs:
        if name not in ours:
            place = order.index(before) + 1 if before in order else 0
            while place < len(order) and order[place] not in base and order[place] not in theirs:
                place += 1  # what we added there is before what they added
            order.insert(place, name)
        before = name
    return order


def _join(lead: str, parts: Sequence[_Part], newline: str) -> TextMerge:
    kept = [part.text for part in parts if part.text]
    text = lead + "".join([*(separated(one, newline) for one in kept[:-1]), *kept[-1:]])
    return TextMerge(text, sum(part.conflicts for part in parts), tuple(part.notice for part in parts if part.notice))


class _Merger(NamedTuple):
    """Merges entries of a file; `newline` is its line end."""

    newline: str
    marker_size: int

    def merge_entry(self, base: EntrySource | None, ours: EntrySource | None, theirs: EntrySource | None) -> _Part:
        """Return what becomes of an entry that at least one side has."""
        if ours and theirs:
            return self._merge_both(base, ours, theirs)
        left = ours or theirs
        assert left
        return self._settle_removal(base, left, is_ours=left is ours) if base else _Part(left.text + left.tail, left.id)

    def _settle_removal(self, base: EntrySource, left: EntrySource, *, is_ours: bool) -> _Part:
        """Take out what one side took out, unless the other has written in it since."""
        if left.text == base.text:
            return _Part("")
        if _without_counts(left) == _without_counts(base):
            return _Part("", notice=f"{left.id}: taken out by one side, only counted by the other; it stays out")
        merged = self._merge_lines(base.text, left.text if is_ours else "", "" if is_ours else left.text)
        return _Part(merged.text, conflicts=merged.conflicts)

    def _merge_both(self, base: EntrySource | None, ours: EntrySource, theirs: EntrySource) -> _Part:
        tail = _choose(base.tail if base else ours.tail, ours.tail, theirs.tail)
        if theirs.text == (base or ours).text:
            return _Part(ours.text + tail, ours.id)
        if base and ours.text == base.text:
            return _Part(theirs.text + tail, theirs.id)
        merged = self._merge_texts(base, ours, theirs)
        if merged.conflicts:
            return _Part(merged.text + tail.partition("\n")[2], conflicts=merged.conflicts)
        entry_id = _choose((base or ours).id, ours.id, theirs.id)
        return _Part(merged.text.removesuffix(self.newline) + tail, entry_id)

    def _merge_texts(self, base: EntrySource | None, ours: EntrySource, theirs: EntrySource) -> TextMerge:
        sides = (base, ours, theirs)
        if ours.fields is None or theirs.fields is None:
            return self._merge_lines(*(side.text if side else "" for side in sides))
        fields = merge_fields(base.fields if base else None, ours.fields, theirs.fields)
        blocks = [put_fields(side.yaml, side.fields or {}, fields) if side else "" for side in sides]
        merged = self._merge_lines(
            *(side.put(block) if side else "" for side, block in zip(sides, blocks, strict=True))
        )
        if not merged.conflicts and _says(merged.text, fields.values):
            return merged
        whole = choose_block(blocks[1], blocks[2], fields)
        if whole is not None:
            return self._merge_lines(*(side.put(whole) if side else "" for side in sides))
        return merged if merged.conflicts else self._merge_lines("", ours.text, theirs.text)

    def _merge_lines(self, base: str, ours: str, theirs: str) -> TextMerge:
        one, mine, yours = (f"{text}{self.newline}" if text else "" for text in (base, ours, theirs))
        return merge_lines(one, mine, yours, self.marker_size)


def _without_counts(entry: EntrySource) -> str:
    """Return an entry without the lines that the machine keeps; a comment is somebody's words, a counter is not."""
    start, end = entry.block
    return entry.text[:start] + _KEPT_LINES.sub("", entry.text[start:end]) + entry.text[end:]


def _says(text: str, values: Mapping[str, Any]) -> bool:
    """Return whether a text is one entry with exactly some fields, each once."""
    entries = parse_document(text, "a.md").entries
    if len(entries) != 1 or not is_same(dict(entries[0].metadata), dict(values)):
        return False
    keys = _KEY.findall(text[slice(*yaml_span(text, entries[0]))])
    return len(keys) == len(set(keys))
