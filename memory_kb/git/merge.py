"""Merge memory files of two branches entry by entry and field by field.

Entries are matched by id. A change of one side is taken; a change of both is merged, fields by their meaning and text
by git. A file whose entries have no ids, or one that would be read differently afterwards, is merged by git as a whole.
Nothing is dropped: a conflict is marked within its one entry.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory_kb.git.merge_fields import merge_blocks
from memory_kb.git.merge_texts import GitTexts, TextMerge
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import newline_of, separated, yaml_span
from memory_kb.model import Entry

_BOM = "\ufeff"
#: The lines of counters and dates that the machine keeps: a change of these alone does not bring back what was removed.
_KEPT_LINES = re.compile(
    r"^(?:reinforcement_count|usage_count|success_count|failure_count|last_reinforced|last_applied):[ \t]*[\w:.+'\"-]*[ \t]*\r?\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class EntrySource:
    """An entry as text: its frontmatter between its rules, its body, and the blank lines behind."""

    id: str | None
    opening: str
    block: str | None
    closing: str
    body: str
    tail: str

    @property
    def text(self) -> str:
        """All of it but the blank lines behind."""
        return f"{self.opening}{self.block or ''}{self.closing}{self.body}"


class _File(NamedTuple):
    """A file cut into entries, and the blank lines before the first."""

    lead: str
    entries: tuple[EntrySource, ...]
    is_broken: bool


#: The entries of a file by their names, in its order.
Entries = Mapping[str, EntrySource]


class _Part(NamedTuple):
    """One entry of the result; `id` is None where nothing is promised about how it reads."""

    text: str
    id: str | None = None


def merge_files(base: str, ours: str, theirs: str, path: str, texts: GitTexts) -> TextMerge:
    """Merge a file of two branches that both began as `base`; all three are whole texts.

    Example:
        >>> base = "---\\nid: a\\nusage_count: 1\\n---\\nOne.\\n"
        >>> ours = base.replace("1", "2")
        >>> theirs = base.replace("1", "4") + "\\n---\\nid: b\\n---\\nTwo.\\n"
        >>> merge_files(base, ours, theirs, "a.md", GitTexts({})).text
        '---\\nid: a\\nusage_count: 5\\n---\\nOne.\\n\\n---\\nid: b\\n---\\nTwo.\\n'
    """
    if base == ours == theirs:
        return TextMerge(ours)
    mark = _BOM if _choose(*(text[:1] == _BOM for text in (base, ours, theirs))) else ""
    three = [text.removeprefix(_BOM) for text in (base, ours, theirs)]
    files = [_cut(text, path) for text in three]
    named = _name_all(files)
    has_frontmatter = any(one.block is not None for file in files[1:] for one in file.entries)
    if named and has_frontmatter and not any(file.is_broken for file in files):
        merger = _Merger(texts, newline_of(three[1]))
        whole = merger.merge(mark + _choose(*(file.lead for file in files)), *named)
        found = Counter(entry.id for entry in parse_document(whole.text, path).entries if entry.has_own_id)
        if not merger.promised - found and (whole.conflicts or merger.promised == found):
            return whole
    plain = texts.merge(*three)
    return plain._replace(text=mark + plain.text)


def _choose(base: Any, ours: Any, theirs: Any) -> Any:
    return theirs if ours == base else ours


def _cut(text: str, path: str) -> _File:
    entries = parse_document(text, path).entries
    lead = text[: entries[0].span.start] if entries else ""
    return _File(lead, tuple(_cut_entry(text, one) for one in entries), any(one.fault is not None for one in entries))


def _cut_entry(text: str, entry: Entry) -> EntrySource:
    opening, block, closing = "", None, ""
    if entry.has_frontmatter:
        span = yaml_span(text, entry)
        opening, block = text[entry.span.start : span.start], text[span.start : span.end]
        closing = text[span.end : entry.body.start]
    body = text[entry.body.start : entry.body.end]
    bare = body.rstrip()
    entry_id = entry.id if entry.has_own_id else None
    return EntrySource(entry_id, opening, block, closing, bare, body[len(bare) :])


class _Merger:
    """One merge of three files that are cut into entries."""

    def __init__(self, texts: GitTexts, newline: str) -> None:
        self._texts = texts
        self._newline = newline
        self._notices: list[str] = []
        self._conflicts = 0
        self.promised: Counter[str] = Counter()

    def merge(self, lead: str, base: Entries, ours: Entries, theirs: Entries) -> TextMerge:
        """Return the merged file: our entries in our order, those of theirs behind what they are behind there."""
        order = _order(base, ours, theirs)
        parts = [part for name in order for part in self._merge_entry(base.get(name), ours.get(name), theirs.get(name))]
        self.promised = Counter(part.id for part in parts if part.id is not None)
        pieces = [*(separated(part.text, self._newline) for part in parts[:-1]), *(part.text for part in parts[-1:])]
        return TextMerge(lead + "".join(pieces), self._conflicts, tuple(self._notices))

    def _merge_entry(
        self, base: EntrySource | None, ours: EntrySource | None, theirs: EntrySource | None
    ) -> Iterator[_Part]:
        left = ours or theirs
        if ours and theirs:
            yield self._merge_both(base, ours, theirs)
        elif left and base is None:
            yield _Part(left.text + left.tail, left.id)
        elif left and base and left.text != base.text:
            yield from self._settle_removal(base, left, is_ours=left is ours)

    def _settle_removal(self, base: EntrySource, left: EntrySource, *, is_ours: bool) -> Iterator[_Part]:
        """Take out what one side took out, unless the other has written in it since."""
        frames = [(side.opening, side.closing, side.body, side.block is None) for side in (base, left)]
        # A comment is somebody's words, a counter or a date is not.
        words = [_KEPT_LINES.sub("", f"{side.block or ''}\n") for side in (base, left)]
        if frames[0] == frames[1] and words[0] == words[1]:
            self._notices.append(f"{left.id}: taken out by one side, only counted by the other; it stays out")
            return
        self._conflicts += 1
        text = f"{left.text}{self._newline}"
        yield _Part(self._texts.oppose(text, "") if is_ours else self._texts.oppose("", text))

    def _merge_both(self, base: EntrySource | None, ours: EntrySource, theirs: EntrySource) -> _Part:
        tail = _choose(base.tail if base else ours.tail, ours.tail, theirs.tail)
        if theirs.text == (base or ours).text:
            return _Part(ours.text + tail, ours.id)
        if base and ours.text == base.text:
            return _Part(theirs.text + tail, theirs.id)
        head = self._merge_heads(base, ours, theirs)
        sides = [f"{side.body}{self._newline}" if side and side.body else "" for side in (base, ours, theirs)]
        body = self._texts.merge(*sides)
        self._conflicts += head.conflicts + body.conflicts
        entry_id = None if head.conflicts else _choose((base or ours).id, ours.id, theirs.id)
        if body.conflicts:
            return _Part(head.text + body.text + tail.partition("\n")[2], entry_id)
        return _Part(head.text + body.text.removesuffix(self._newline) + tail, entry_id)

    def _merge_heads(self, base: EntrySource | None, ours: EntrySource, theirs: EntrySource) -> TextMerge:
        """Merge opening rule, frontmatter and closing rule."""
        if ours.block is None or theirs.block is None:
            one = theirs if ours.block is None else ours
            is_taken_away = base is not None and one.block == base.block
            return TextMerge("" if is_taken_away else f"{one.opening}{one.block or ''}{one.closing}")
        merged = merge_blocks(base.block if base else None, ours.block, theirs.block, self._texts)
        old = base or ours
        opening = _choose(old.opening, ours.opening, theirs.opening)
        closing = _choose(old.closing, ours.closing, theirs.closing)
        return TextMerge(f"{opening}{merged.text}{closing}", merged.conflicts)


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
