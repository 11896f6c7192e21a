"""Merge memory files of two branches entry by entry and field by field.

Entries are matched by id, else by text, title or place. A change of one side is taken; a change of
both is merged, fields by their meaning and text by git. A file without entries, or one that would be
read differently afterwards, is merged by git as a whole. Nothing is dropped: a conflict is marked
within its one entry. Either branch may be merged into the other with the same result; only markers name sides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory_kb.git.merge_fields import TextMerge, Texts, merge_blocks
from memory_kb.markdown.document import first_heading, parse_document
from memory_kb.markdown.splice import newline_of, separated, yaml_span
from memory_kb.model import Entry

_BOM = "\ufeff"
#: The lines of the counters and dates that the machine keeps: a change of these alone does not bring back what was taken out.
_KEPT_LINES = re.compile(
    r"^(?:reinforcement_count|usage_count|success_count|failure_count|last_reinforced|last_applied):[ \t]*[\w:.+'\"-]*[ \t]*\r?\n",
    re.MULTILINE,
)


class FileMerge(NamedTuple):
    """A merged file, in how many places people must choose, and what they should know."""

    text: str
    conflicts: int = 0
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryText:
    """An entry as text: its frontmatter between its rules, its body, and the blank lines behind."""

    id: str | None
    title: str
    opening: str
    block: str | None
    closing: str
    body: str
    tail: str

    @property
    def text(self) -> str:
        """All of it but the blank lines behind."""
        return f"{self.opening}{self.block or ''}{self.closing}{self.body}"


_Numbers = tuple[int | None, int | None, int | None]


class _Trio(NamedTuple):
    """One entry in the three files, None where it is not."""

    base: EntryText | None
    ours: EntryText | None
    theirs: EntryText | None


class _Part(NamedTuple):
    """One entry of the result; `id` is None where nothing is promised about how it reads."""

    text: str
    tail: str
    id: str | None = None


def merge_files(base: str, ours: str, theirs: str, path: str, texts: Texts) -> FileMerge:
    """Merge a file of two branches that both began as `base`; all three are whole texts.

    Example:
        >>> from memory_kb.git.merge_fields import GitTexts
        >>> base = "---\\nid: a\\nusage_count: 1\\n---\\nOne.\\n"
        >>> ours = base.replace("1", "2")
        >>> theirs = base.replace("1", "4") + "\\n---\\nid: b\\n---\\nTwo.\\n"
        >>> merge_files(base, ours, theirs, "a.md", GitTexts({})).text
        '---\\nid: a\\nusage_count: 5\\n---\\nOne.\\n\\n---\\nid: b\\n---\\nTwo.\\n'
    """
    if ours == theirs and base == ours:
        return FileMerge(ours)
    if theirs < ours:
        return _merge_sides(base, theirs, ours, path, _Turned(texts))
    return _merge_sides(base, ours, theirs, path, texts)


class _Turned:
    """Merges texts of sides that were exchanged; what people must choose from is shown in their own order."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def merge(self, base: str, ours: str, theirs: str, *, is_union: bool = False) -> TextMerge:
        merged = self._texts.merge(base, ours, theirs, is_union=is_union)
        return self._texts.merge(base, theirs, ours, is_union=is_union) if merged.conflicts else merged

    def oppose(self, ours: str, theirs: str) -> str:
        return self._texts.oppose(theirs, ours)


def _merge_sides(base: str, ours: str, theirs: str, path: str, texts: Texts) -> FileMerge:
    three = (base, ours, theirs)
    mark = _choose(*(text[:1] == _BOM for text in three))
    bare = [text.removeprefix(_BOM) for text in three]
    ends = [_line_end(text) for text in bare]
    is_uneven = len({end for end in ends if end}) > 1 and None not in ends
    if is_uneven:
        bare = [text.replace("\r\n", "\n") for text in bare]
    merged = _merge_bare(bare[0], bare[1], bare[2], path, texts)
    text = merged.text
    if is_uneven and (_choose(*ends) or ends[1]) == "\r\n":
        text = text.replace("\n", "\r\n")
    return merged._replace(text=(_BOM if mark else "") + text)


def _line_end(text: str) -> str | None:
    r"""Return the line end of a text, empty where it has one line, None where there are two kinds."""
    both, feeds = text.count("\r\n"), text.count("\n")
    return None if 0 < both < feeds else "\r\n" if both else "\n" if feeds else ""


def _choose(base: Any, ours: Any, theirs: Any) -> Any:
    return theirs if ours == base else ours


def _merge_bare(base: str, ours: str, theirs: str, path: str, texts: Texts) -> FileMerge:
    files = [_cut(text, path) for text in (base, ours, theirs)]
    is_broken = any(
        entry.fault is not None for text in (base, ours, theirs) for entry in parse_document(text, path).entries
    )
    if not is_broken and all(files[1:]) and any(piece.block is not None for file in files[1:] for piece in file):
        merger = _Merger(files, texts)
        whole = merger.merge(_choose(*(_lead(text, path) for text in (base, ours, theirs))), newline_of(ours))
        found = Counter(entry.id for entry in parse_document(whole.text, path).entries if entry.has_own_id)
        if not merger.promised - found and (whole.conflicts or merger.promised == found):
            return whole
    return FileMerge(*texts.merge(base, ours, theirs))


def _lead(text: str, path: str) -> str:
    """Return the blank lines before the first entry."""
    entries = parse_document(text, path).entries
    return text[: entries[0].span.start] if entries else ""


def _cut(text: str, path: str) -> list[EntryText]:
    return [_cut_entry(text, entry) for entry in parse_document(text, path).entries]


def _cut_entry(text: str, entry: Entry) -> EntryText:
    opening, block, closing = "", None, ""
    if entry.has_frontmatter:
        span = yaml_span(text, entry)
        opening, block, closing = (
            text[entry.span.start : span.start],
            text[span.start : span.end],
            text[span.end : entry.body.start],
        )
    body = text[entry.body.start : entry.body.end]
    bare = body.rstrip()
    title = entry.title or first_heading(bare) or ""
    return EntryText(
        entry.id if entry.has_own_id else None,
        title,
        opening,
        block,
        closing,
        bare,
        body[len(bare) :],
    )


class _Merger:
    """One merge of three files that are cut into entries.

    Attributes:
        promised: the ids that the result must be read to have.
    """

    def __init__(self, files: Sequence[Sequence[EntryText]], texts: Texts) -> None:
        self._base, self._ours, self._theirs = files
        self._texts = texts
        self._notices: list[str] = []
        self._conflicts = 0
        self.promised: Counter[str] = Counter()

    def merge(self, lead: str, newline: str) -> FileMerge:
        """Return the merged file."""
        parts = [part for trio in self._pair() for part in self._merge_entry(trio, newline)]
        self.promised = Counter(part.id for part in parts if part.id is not None)
        pieces = [separated(part.text + part.tail, newline) for part in parts[:-1]]
        pieces += [part.text + part.tail for part in parts[-1:]]
        return FileMerge(lead + "".join(pieces), self._conflicts, tuple(self._notices))

    def _pair(self) -> list[_Trio]:
        """Return the entries of all three files, in our order, those of theirs behind what they are behind there."""
        base, ours, theirs = (dict(enumerate(file)) for file in (self._base, self._ours, self._theirs))
        mine, yours = _match(base, ours), _match(base, theirs)
        of_ours, of_theirs = ({number: place for place, number in side.items()} for side in (mine, yours))
        added = _match(
            {number: piece for number, piece in ours.items() if number not in of_ours},
            {number: piece for number, piece in theirs.items() if number not in of_theirs},
        )
        order: list[list[_Numbers]] = [[]]
        places: dict[int, int] = {}
        for number in range(len(self._ours)):
            other = yours.get(of_ours[number]) if number in of_ours else added.get(number)
            order.append([(of_ours.get(number), number, other)])
            if other is not None:
                places[other] = len(order) - 1
        is_plain_first = bool(self._ours) and self._ours[0].block is None
        anchor = 1 if is_plain_first and not (self._theirs and self._theirs[0].block is None) else 0
        for number in range(len(self._theirs)):
            anchor = places.get(number, anchor)
            while (
                number not in places
                and anchor + 1 < len(order)
                and (order[anchor + 1][0][0], order[anchor + 1][0][2]) == (None, None)
            ):
                anchor += 1  # what we put there is before what they did
            if number not in places:
                order[anchor].append((of_theirs.get(number), None, number))
        files = (self._base, self._ours, self._theirs)
        flat = (one for slot in order for one in slot)
        return [
            _Trio(*(None if place is None else file[place] for place, file in zip(one, files, strict=True)))
            for one in flat
        ]

    def _merge_entry(self, trio: _Trio, newline: str) -> Iterator[_Part]:
        base, ours, theirs = trio
        if ours is None and theirs is None:
            return
        if ours and theirs:
            yield self._merge_both(base, ours, theirs, newline)
        elif base is None:
            (one,) = (side for side in (ours, theirs) if side)
            yield _Part(one.text, one.tail, one.id)
        else:
            yield from self._settle_removal(base, ours, theirs, newline)

    def _settle_removal(
        self, base: EntryText, ours: EntryText | None, theirs: EntryText | None, newline: str
    ) -> Iterator[_Part]:
        """Take out what one side took out, unless the other has written in it since."""
        (left,) = (side for side in (ours, theirs) if side)
        if left.text == base.text:
            return
        frames = [(side.opening, side.closing, side.body) for side in (left, base)]
        if frames[0] == frames[1] and _is_only_bookkeeping(base.block, left.block):
            self._notices.append(
                f"{left.id or left.title}: taken out by one side, only counted by the other; it stays out"
            )
            return
        self._conflicts += 1
        text = self._texts.oppose(*(f"{side.text}{newline}" if side else "" for side in (ours, theirs)))
        yield _Part(text, "")

    def _merge_both(self, base: EntryText | None, ours: EntryText, theirs: EntryText, newline: str) -> _Part:
        tail = _choose(base.tail if base else ours.tail, ours.tail, theirs.tail)
        if theirs.text == (base or ours).text:
            return _Part(ours.text, tail, ours.id)
        if base and ours.text == base.text:
            return _Part(theirs.text, tail, theirs.id)
        head, conflicts = self._merge_heads(base, ours, theirs)
        sides = [f"{side.body}{newline}" if side and side.body else "" for side in (base, ours, theirs)]
        body = self._texts.merge(*sides)
        self._conflicts += conflicts + body.conflicts
        if body.conflicts:
            tail = tail.partition("\n")[2]
            return _Part(head + body.text, tail, None if conflicts else _id_of(head))
        return _Part(head + body.text.removesuffix(newline), tail, None if conflicts else _id_of(head))

    def _merge_heads(self, base: EntryText | None, ours: EntryText, theirs: EntryText) -> TextMerge:
        """Merge opening rule, frontmatter and closing rule."""
        old_block = base.block if base else None
        if ours.block is None or theirs.block is None:
            one = theirs if ours.block is None else ours
            is_taken_away = base is not None and one.block == old_block
            return TextMerge("" if is_taken_away else f"{one.opening}{one.block or ''}{one.closing}")
        merged = merge_blocks(old_block, ours.block, theirs.block, self._texts)
        old = base or ours
        opening, closing = (
            _choose(old.opening, ours.opening, theirs.opening),
            _choose(old.closing, ours.closing, theirs.closing),
        )
        return TextMerge(f"{opening}{merged.text}{closing}", merged.conflicts)


def _id_of(head: str) -> str | None:
    entries = parse_document(head, "").entries
    return entries[0].id if entries and entries[0].has_own_id else None


def _is_only_bookkeeping(base: str | None, changed: str | None) -> bool:
    """Return whether counters and dates alone differ; a comment is somebody's words."""
    old, new = (_KEPT_LINES.sub("", f"{block or ''}\n") for block in (base, changed))
    return (base is None) == (changed is None) and old == new


def _match(one: Mapping[int, EntryText], other: Mapping[int, EntryText]) -> dict[int, int]:
    """Return which entry of a file is which of another: by id, where one has none by text or title, or both before all entries."""
    found, left = dict[int, int](), dict(other)
    for is_same in _TESTS:
        for place, piece in one.items():
            fitting = (number for number, new in left.items() if is_same(piece, new))
            number = None if place in found else next(fitting, None)
            if number is not None:
                found[place] = number
                del left[number]
    first = one.get(0), left.get(0)
    if 0 not in found and all(piece and piece.block is None for piece in first):
        found[0] = 0
    return found


#: Of entries with the same id those with the same text come first; one without an id may have got one since.
_TESTS: Sequence[Callable[[EntryText, EntryText], bool]] = (
    lambda old, new: old.id is not None and old.id == new.id and old.text == new.text,
    lambda old, new: old.id is not None and old.id == new.id,
    lambda old, new: None in (old.id, new.id) and bool(old.body) and old.body == new.body,
    lambda old, new: None in (old.id, new.id) and bool(old.title) and old.title == new.title,
)
