"""Parse the text of a file into entries.

Each comes with the exact span it is at. A file is a preamble and any number of entries. An
entry is a `---` line, a YAML mapping, a `---` line and a body that runs to the next entry. Away
from the start of the file a `---` line opens an entry only after a blank line, outside a code
fence, and when the mapping has `id`, `kind` or `type`; any other `---` is a horizontal rule.
Nothing is ever lost: what is no entry is text.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.blocks import heading_text
from memory_kb.markdown.fields import read_fields
from memory_kb.markdown.headings import find_headings
from memory_kb.model import LIVE_STATUSES, STATUSES, UNVERIFIED, Document, Entry, Problem, Span
from memory_kb.text import as_read, parse_date
from memory_kb.yaml_loader import MAX_BROKEN, InvalidBlock, load_mapping

_BLANK = " \t\r\n\ufeff"
_HEAD = lazy_regex(r"\ufeff?(?:[ \t]*\r?\n)*---[ \t]*\r?\n")
_OPENING = lazy_regex(r"\n[ \t\r]*\n---[ \t]*\r?\n")
_RULE = lazy_regex(r"(?<=\n)---[ \t]*\r?\n")
_CLOSING = lazy_regex(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_ENTRY_WORD = lazy_regex(r"\b(?:id|kind|type)\b")
_ENTRY_KEY = lazy_regex(r"^(?:id|kind|type)[ \t]*:(?:\s|$)", re.MULTILINE)
_FIRST_KEY = lazy_regex(r"(?:#[^\n]*\n|\s)*(?:- )?[\"']?\w[\w.-]*(?: [\w.-]+){0,2}[\"']?[ \t]*:(?=\s|$)")
_KEPT = lazy_regex(
    rf"^[ \t]*[\"']?(?:(status)[\"']?[ \t]*:[ \t\"'\[]*({'|'.join(word for word in STATUSES if word not in LIVE_STATUSES)})"
    rf"|(source)[\"']?[ \t]*:[ \t\"'\[]*({UNVERIFIED}))\b"
    r"|^(id)[ \t]*:[ \t\"']*(\w[\w.-]*)",
    re.IGNORECASE | re.MULTILINE,
)
_BLANK_LINE = lazy_regex(r"\n[ \t\r]*\n")
#: A fence, and in the second group the rest of its line where that is blank, as behind one that closes.
_FENCE = lazy_regex(r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})([^\S\n]*$)?", re.MULTILINE)
#: The title in frontmatter of Hugo and Zola, which no command changes.
_TOML_TITLE = lazy_regex(
    r"\+\+\+[ \t]*\r?\n(?:(?!\+\+\+|\[)[^\n]*\n)*?title[ \t]*=[ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)')[ \t]*\r?\n"
)
_HEADING = lazy_regex(r" {0,3}#{1,6}(?=[ \t])([^\n]*)| {0,3}(\S[^\n]*)\n {0,3}=+[ \t]*\r?(?:\n|\Z)")
_COMMENTS_AND_PICTURES = lazy_regex(
    r"(?:\s+|<!--.*?-->|</?[A-Za-z][^<>]*>|\[?!\[[^\]\n]*\]\([^)\n]*\)(?:\]\([^)\n]*\))?)*", re.DOTALL
)
_PATH_DATE = lazy_regex(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
#: The namespace of ids made from content; itself uuid5(NAMESPACE_URL, "memory-kb:provisional").
_NAMESPACE = bytes.fromhex("4f1d1c7be5d85f0f9d3eb4f5c0a1d6c2")


class FrontmatterBlock(NamedTuple):
    """A frontmatter block.

    `span` runs from its opening `---` to the end of its closing line. One that cannot be read is empty, since its lines
    are text; `fault` is then the line of the file that is to blame, `metadata` its id and what holds the entry back.
    """

    span: Span
    yaml: Span
    metadata: Mapping[str, Any]
    fault: int | None = None


def parse_document(text: str, path: str, default_status: str = "active") -> Document:
    """Split a file's text into entries; `path` is used for provisional ids, dates and problems.

    Example:
        >>> text = "---\\nid: a\\n---\\nOne.\\n\\n---\\nid: b\\n---\\nTwo.\\n"
        >>> [(e.id, e.line, text[e.body.start : e.body.end]) for e in parse_document(text, "notes.md").entries]
        [('a', 1, 'One.\\n\\n'), ('b', 6, 'Two.\\n')]
    """
    problems: list[Problem] = []
    blocks = list(find_blocks(text, path, problems))
    lines = _LineCounter(text)
    entries: list[Entry] = []
    preamble_end = blocks[0].span.start if blocks else len(text)
    if text[:preamble_end].strip(_BLANK):
        start = 1 if text.startswith("\ufeff") else 0
        blocks.insert(0, FrontmatterBlock(Span(start, start), Span(start, start), {}))
    elif not blocks:
        return Document((), tuple(problems))
    ends = [*(block.span.start for block in blocks[1:]), len(text)]
    for block, end in zip(blocks, ends, strict=True):
        fields, field_problems = read_fields(block.metadata)
        line = lines.line_at(block.span.start)
        yaml = text[block.yaml.start : block.yaml.end] if field_problems else ""
        problems.extend(
            Problem(path, line + 1 + _line_of_field(yaml, found.field), found.message) for found in field_problems
        )
        entries.append(_make_entry(text, path, block, end, line, fields, default_status))
    return Document(tuple(entries), tuple(problems))


def find_blocks(text: str, path: str, problems: list[Problem]) -> Iterator[FrontmatterBlock]:
    """Yield the frontmatter blocks of a text in order. What is wrong with them is added to `problems`."""
    return _BlockFinder(text, path, problems).find()


class _BlockFinder:
    """Finds the blocks of one text, from its beginning to its end."""

    def __init__(self, text: str, path: str, problems: list[Problem]) -> None:
        self._text, self._path, self._problems = text, path, problems
        self.lines = _LineCounter(text)

    def _report(self, line: int, message: str) -> None:
        self._problems.append(Problem(self._path, line, message))

    def find(self) -> Iterator[FrontmatterBlock]:
        text, position = self._text, 0
        head = _HEAD.match(text)
        if head:
            block = self.read(Span(text.index("-"), head.end()), is_head=True)
            position = max(block.span.end, head.end()) if block else head.end()
            if block:
                yield block
        if text.find("\n---", max(0, position - 1)) < 0:
            return
        fences, hidden, end = _Fences(text, position), None, position
        # One character back: the line end of a closing `---` may be the first half of a blank line.
        opening = _OPENING.search(text, max(0, position - 1))
        while opening:
            start = text.rindex("---", 0, opening.end())
            found = None
            if not fences.contain(start):
                found = self.read(Span(start, opening.end()))
            elif hidden is None or hidden.start < fences.opened_at:
                hidden = Span(start, opening.end())
            if found:
                yield found
                fences.restart(found.span.end)
                self._find_unseparated(Span(end, start))
                end = found.span.end
            opening = _OPENING.search(text, max(found.span.end if found else 0, opening.end()) - 1)
        self._find_unseparated(Span(end, len(text)))
        if hidden and fences.contain(len(text)) and fences.opened_at < hidden.start:
            self._check_swallowed(hidden, fences.opened_at)

    def _find_unseparated(self, body: Span) -> None:
        """Report what would be an entry if there were a blank line before it."""
        text, quiet, fences = self._text, _BlockFinder(self._text, self._path, []), None
        place = body.start
        while rule := _RULE.search(text, place, body.end):
            place = rule.end() - 1
            above = text[text.rfind("\n", 0, rule.start() - 1) + 1 : rule.start()]
            closing = _CLOSING.search(text, rule.end(), body.end) if above.strip() else None
            if closing is None or not _ENTRY_KEY.search(text, rule.end(), closing.start()):
                continue
            fences = fences or _Fences(text, body.start)
            block = None if fences.contain(rule.start()) else quiet.read(Span(*rule.span()))
            if block and block.fault is None:
                message = "what begins here looks like an entry, and is read as part of the text above; put a blank line before it"
                self._report(quiet.lines.line_at(rule.start()), message)
                place = block.span.end - 1

    def _check_swallowed(self, hidden: Span, fence: int) -> None:
        """Report a fence that runs to the end of the file over what would be an entry."""
        if _BlockFinder(self._text, self._path, []).read(hidden):
            lines = _LineCounter(self._text)
            line, first = lines.line_at(fence), lines.line_at(hidden.start)
            message = f"the code fence opened here is never closed; the entry in line {first} and all behind it are read as plain text"
            self._report(line, message)

    def read(self, opening: Span, *, is_head: bool = False) -> FrontmatterBlock | None:
        """Return the block that a `---` line opens, or None if it is text."""
        text, closing = self._text, _CLOSING.search(self._text, opening.end)
        yaml = Span(opening.end, closing.start() if closing else len(text))
        names_entry = closing and _ENTRY_WORD.search(text, yaml.start, min(yaml.end, yaml.start + MAX_BROKEN))
        if not is_head and not names_entry:
            return None
        if closing is None:
            return self._read_unclosed(opening)
        inner = text[slice(*yaml)]
        try:
            metadata = load_mapping(inner)
        except InvalidBlock as exc:
            return self._read_broken(opening, inner, exc, is_head=is_head)
        is_text = not is_head or (inner.lstrip().startswith("#") and not metadata)
        if is_text and not metadata.keys() & {"id", "kind", "type"}:
            return None
        return FrontmatterBlock(Span(opening.start, closing.end()), yaml, metadata)

    def _read_unclosed(self, opening: Span) -> FrontmatterBlock | None:
        """Return what is behind the first `---` line of a file without another one, where it names an entry's fields."""
        block = self._text[opening.end : opening.end + MAX_BROKEN]
        if not re.match(r"[\w-]+[ \t]*:(?:\s|$)", block[:200]):
            return None
        line = self.lines.line_at(opening.start)
        self._report(line, "the frontmatter opened here is never closed with a `---` line; read as plain text")
        end = _BLANK_LINE.search(block)
        block = block[: end.start()] if end else block
        kept = _read_kept(block)
        return _text_block(opening.start, kept, line) if kept or _ENTRY_KEY.search(block) else None

    def _read_broken(self, opening: Span, inner: str, why: InvalidBlock, *, is_head: bool) -> FrontmatterBlock | None:
        """Return an empty block for frontmatter that is no YAML mapping, or None if it is text between rules."""
        kept = _read_kept(inner)
        begins = _FIRST_KEY.match(inner) is not None
        fence = _FENCE.search(inner)
        names_entry = _ENTRY_KEY.search(inner, 0, fence.start() if fence else len(inner)) is not None
        fault = self.lines.line_at(opening.start) + 1 + min(why.line, inner.rstrip().count("\n"))
        is_meant = (
            begins or kept if is_head else begins and names_entry and (kept or not _BLANK_LINE.search(inner.strip()))
        )
        if is_meant or names_entry:
            self._report(fault, f"{why}; read as plain text")
        return _text_block(opening.start, kept, fault) if is_meant else None


def _read_kept(block: str) -> dict[str, str]:
    """Return id, status and source of a block that is no YAML, so that no typo shows a withheld entry to agents."""
    found = (one.groups() for one in _KEPT.finditer(block))
    pairs = (tuple(filter(None, groups)) for groups in found)
    return {name.lower(): value if name == "id" else value.lower() for name, value in pairs}


def _text_block(start: int, metadata: Mapping[str, Any], fault: int) -> FrontmatterBlock:
    return FrontmatterBlock(Span(start, start), Span(start, start), metadata, fault)


class _Fences:
    """The places of a text that are inside a code fence. They are counted in one pass from left to right."""

    def __init__(self, text: str, start: int) -> None:
        self._marks = _FENCE.finditer(text, start)
        self._next = next(self._marks, None)
        self._open: str | None = None
        #: Where the fence that is open now, or was last, begins.
        self.opened_at = start

    def restart(self, start: int) -> None:
        """Forget what is open: a body's fence ends with its entry."""
        while self._next is not None and self._next.start() < start:
            self._next = next(self._marks, None)
        self._open = None

    def contain(self, place: int) -> bool:
        while self._next is not None and self._next.start() < place:
            mark = self._next[1]
            if self._open is None:
                self._open, self.opened_at = mark, self._next.start()
            elif mark[0] == self._open[0] and len(mark) >= len(self._open) and self._next[2] is not None:
                self._open = None
            self._next = next(self._marks, None)
        return self._open is not None


class _LineCounter:
    """Line numbers of rising character positions, each newline counted once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place, self._line = 0, 1

    def line_at(self, place: int) -> int:
        self._line += self._text.count("\n", self._place, place)
        self._place = place
        return self._line


def _make_entry(
    text: str, path: str, block: FrontmatterBlock, end: int, line: int, fields: dict[str, Any], default_status: str
) -> Entry:
    body = Span(block.span.end, end)
    path_date = None
    if "-" in path and not (fields["dated"] and fields["seen"]):
        # The last date in a path is the most specific one.
        path_date = next(filter(None, map(parse_date, reversed(_PATH_DATE.findall(path)))), None)
    found = {
        "id": fields["id"] or provisional_id(path, text[body.start : body.end]),
        "status": fields["status"] or default_status,
        "dated": fields["dated"] or path_date,
        "seen": fields["seen"] or path_date,
    }
    return Entry(
        **(fields | found),
        metadata=block.metadata,
        span=Span(block.span.start, end),
        body=body,
        line=line,
        has_frontmatter=block.span.end > block.span.start,
        has_own_id=fields["id"] is not None,
        fault=block.fault,
    )


def _line_of_field(yaml: str, field: str) -> int:
    found = re.search(rf"^[\"']?{re.escape(field)}[\"']?[ \t]*:", yaml, re.MULTILINE)
    return yaml.count("\n", 0, found.start()) if found else 0


def provisional_id(path: str, body: str) -> str:
    """Return the id of an entry that has none: a uuid5 of its path and body.

    Example:
        >>> provisional_id("a.md", "text") == provisional_id("a.md", "text") != provisional_id("b.md", "text")
        True
    """
    import hashlib

    digest = bytearray(
        hashlib.sha1(_NAMESPACE + as_read(f"{path}\n{body.strip()}").encode(), usedforsecurity=False).digest()[:16]
    )
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def find_opening(body: str) -> int:
    """Return where the words of a body begin: after comments, HTML tags and pictures such as badges.

    Example:
        >>> find_opening("<!-- why -->\\n[![ci](a.svg)](b)\\n\\n  # Tea\\n")
        32
    """
    passed = _COMMENTS_AND_PICTURES.match(body)
    start = passed.end() if passed else 0
    return body.rfind("\n", 0, start) + 1


def first_heading(body: str) -> str | None:
    """Return the text of a heading that opens a body, or None.

    Example:
        >>> first_heading("\\n## [2026-01-02] Retry #\\ntext"), first_heading("text\\n# Late")
        ('[2026-01-02] Retry', None)
        >>> first_heading("<!-- a template -->\\nTea\\n===\\nGreen.")
        'Tea'
    """
    found = _HEADING.match(body, find_opening(body))
    return heading_text(found[1] or found[2]) or None if found else None


def opens_with_section(body: str) -> bool:
    """Return whether the heading that opens a body is below the first level and has others beside it, so is no title.

    Example:
        >>> opens_with_section("### Meta\\nToday.\\n### Steps\\n"), opens_with_section("## Tea\\n### Steps\\n")
        (True, False)
    """
    if not body.startswith("##", find_opening(body)):
        return False
    levels = [one.level for one in find_headings(body)]
    return len(levels) > 1 and min(levels[1:]) <= levels[0]


def toml_title(body: str) -> str | None:
    """Return the title that frontmatter in TOML gives.

    Example:
        >>> toml_title('+++\\ntitle = "Tea"\\n+++\\n# Milk\\n'), toml_title("# Milk\\n")
        ('Tea', None)
    """
    found = _TOML_TITLE.match(body) if body.startswith("+++") else None
    return (found[1] or found[2]).strip() if found else None


def display_title(entry: Entry, body: str, path: str, *, is_only: bool) -> str:
    """Return what to call an entry.

    That is its title, its first heading, its file's name or its first line. The file's name
    is in for a note that has the file to itself (`is_only`) and no id.
    """
    if entry.title:
        return entry.title
    if title := toml_title(body):
        return title
    heading, is_file_named = first_heading(body), is_only and not entry.has_own_id
    if heading and not (is_file_named and opens_with_section(body)):
        return heading
    if is_file_named:
        return path.rpartition("/")[2].rpartition(".")[0]
    line = next((line.strip() for line in body.splitlines() if any(sign.isalnum() for sign in line)), "")
    return " ".join(line.split())[:120] or entry.id


def find_line(text: str, entry: Entry, *words: str) -> int:
    """Return the line, counted from 1, of the first of some words in an entry's frontmatter, else of the entry.

    Example:
        >>> note = "---\\nid: x\\nkind: oops\\n---\\nText.\\n"
        >>> entry = parse_document(note, "a.md").entries[0]
        >>> find_line(note, entry, "\\nkind:"), find_line(note, entry, "nowhere")
        (3, 1)
    """
    places = (text.find(one, entry.span.start, entry.body.start) for one in words)
    place = next((one for one in places if one >= 0), None)
    return entry.line if place is None else text.count("\n", 0, place + 1) + 1
