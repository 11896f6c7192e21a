"""Cite files, and verify what is cited by line hash."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from memory_kb.markdown.splice import Value
from memory_kb.store.plan import Change, Memory, plan_fields, with_words
from memory_kb.text import count_same

if TYPE_CHECKING:
    from memory_kb.model import RunReport


#: An entry that cites more is a list of files.
MOST_CITATIONS = 50
_MAX_REFERENCE = 500
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_RECORDED = re.compile(r"(.+)@([0-9a-f]{20})", re.DOTALL)
_HASH = re.compile(r"[0-9a-f]{20}")
_FULL_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LINES = re.compile(
    r"(?P<path>.+?)(?:#L(?P<start>\d{1,7})(?:C\d+)?(?:-L?(?P<end>\d{1,7})(?:C\d+)?)?"
    r"|:(?P<first>\d{1,7})(?:-(?P<last>\d{1,7})|:\d+)?)"
)
_SYMBOL = re.compile(r"(?P<path>[^#]+?)(?:::|#)(?P<symbol>.+)")
_BAD = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{3,200})`(?!`)")
_LINK = re.compile(r"(?<!!)\[[^\]\n]{1,200}\]\(<?([^()<>\s]{3,200})>?\)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
#: A file with an ending, in a folder or alone, before lines or a name.
_FILE = re.compile(r"(?:[\w@.+-]+/)*[\w@.+-]*\w\.[A-Za-z][A-Za-z0-9]{0,9}(?=$|#|:)")


class InvalidReference(ValueError):
    """A text that names nothing of a project; the message says why."""


class Reference(NamedTuple):
    """A place in a project.

    Attributes:
        path: the file, relative to the project; empty for a commit.
        start, end: its lines, from 1, both included; None where it is not about lines.
        symbol: the name of what is defined there; older entries have it beside its `lines`.
        commit: a commit's hash, perhaps shortened.
    """

    path: str
    start: int | None = None
    end: int | None = None
    symbol: str | None = None
    commit: str | None = None

    @property
    def text(self) -> str:
        """The reference in its one spelling."""
        if self.commit:
            return self.commit
        path = f"./{self.path}" if _COMMIT.fullmatch(self.path) else self.path
        if self.symbol:
            return f"{path}::{self.symbol}"
        return f"{path}#{span_text(self.start, self.end)}" if self.start and self.end else path


class Citation(NamedTuple):
    """A reference as an entry holds it.

    Attributes:
        hash: of the cited text when it was recorded; None where nobody has. Of a commit it is
            the whole hash.
        commit: the last commit of the project at that time.
        lines: first and last line of the symbol then.
    """

    reference: Reference
    hash: str | None = None
    commit: str | None = None
    lines: tuple[int, int] | None = None


class Unusable(NamedTuple):
    """A citation that names nothing, and why."""

    text: str
    reason: str


def span_text(start: int, end: int) -> str:
    """Return lines as they stand in a reference.

    Example:
        >>> span_text(10, 20), span_text(7, 7)
        ('L10-L20', 'L7')
    """
    return f"L{start}" if start == end else f"L{start}-L{end}"


def parse_reference(text: str) -> Reference:
    """Read a reference: `path`, `path#L10-L20`, `path:10-20` or a commit; also a name behind `::` or `#`.

    Raises:
        InvalidReference: it names nothing, or something outside of the project.

    Example:
        >>> parse_reference("src/a.py:10-20").text, parse_reference("./src/a.py#Upload.send").text
        ('src/a.py#L10-L20', 'src/a.py::Upload.send')
        >>> parse_reference("3f2a9c1").commit
        '3f2a9c1'
    """
    reference = _parse(text)
    if _parse(reference.text) != reference:
        raise InvalidReference("it can be read in two ways")
    return reference


def _parse(text: str) -> Reference:
    text = text.strip()
    if not text or len(text) > _MAX_REFERENCE or _BAD.search(text):
        raise InvalidReference("it is empty, too long, or holds control characters")
    if _COMMIT.fullmatch(text):
        return Reference("", commit=text)
    if "://" in text:
        raise InvalidReference("it is an address, not a file of the project")
    if text[0] in "/\\":
        raise InvalidReference("it is not relative to the project")
    if found := _LINES.fullmatch(text):
        start = int(found["start"] or found["first"])
        end = int(found["end"] or found["last"] or start)
        if not 1 <= start <= end:
            raise InvalidReference("lines count from 1, and the first comes first")
        return Reference(_clean_path(found["path"]), start, end)
    if found := _SYMBOL.fullmatch(text):
        return Reference(_clean_path(found["path"]), symbol=found["symbol"].strip().removesuffix("()"))
    return Reference(_clean_path(text))


def _clean_path(path: str) -> str:
    """Return a path with slashes.

    Raises:
        InvalidReference: it leads out of the project, or into what git keeps for itself.
    """
    parts = [part for part in path.strip().replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise InvalidReference("`..` leads out of the project")
    if parts and (parts[0].startswith("~") or _DRIVE.match(f"{parts[0]}/")):
        raise InvalidReference("it is not relative to the project")
    if not parts or any(part.casefold() == ".git" for part in parts):
        raise InvalidReference("it names no file of the project")
    return "/".join(parts)


def read_citations(memory: Memory) -> tuple[tuple[Citation, ...], tuple[Unusable, ...]]:
    """Return what an entry cites, and what of it cannot be used.

    `cites` holds strings, `REF` or `REF@HASH`, and mappings with `ref` and `hash`.

    Example:
        >>> from memory_kb.model import Location
        >>> one = Memory("x", "a.md", "", Location(), "T", "", metadata={"cites": [{"ref": "a.py", "hash": "0" * 20}, "../b", 7]})
        >>> [citation.reference.text for citation in read_citations(one)[0]], [bad.text for bad in read_citations(one)[1]]
        (['a.py'], ['../b', '7'])
    """
    citations: dict[Reference, Citation] = {}
    unusable: list[Unusable] = []
    for item in cited_items(memory)[:MOST_CITATIONS]:
        try:
            one = read_citation(item)
        except InvalidReference as exc:
            unusable.append(Unusable(shown_item(item), str(exc)))
        else:
            citations.setdefault(one.reference, one)
    return tuple(citations.values()), tuple(unusable)


def cited_items(memory: Memory) -> list[Any]:
    """Return the items of an entry's `cites` as they are written."""
    held = memory.metadata.get("cites")
    return list(held) if isinstance(held, list) else [] if held in (None, "") else [held]


def shown_item(item: object) -> str:
    """Return what an item of `cites` says it cites."""
    told = item.get("ref") if isinstance(item, Mapping) else item
    return " ".join(str(told).split())[:120]


def read_citation(item: object) -> Citation:
    """Read one item of `cites`.

    Raises:
        InvalidReference: it is none.

    Example:
        >>> read_citation("src/a.py#L3@0123456789abcdef0123").hash
        '0123456789abcdef0123'
    """
    if isinstance(item, str):
        recorded = _RECORDED.fullmatch(item.strip())
        return Citation(parse_reference(recorded[1]), recorded[2]) if recorded else Citation(parse_reference(item))
    if not isinstance(item, Mapping) or not isinstance(item.get("ref"), str):
        raise InvalidReference("it is neither a text nor a mapping with `ref`")
    reference = parse_reference(item["ref"])
    shape = _FULL_COMMIT if reference.commit else _HASH
    hash_, commit = (str(item.get(name) or "") for name in ("hash", "commit"))
    if hash_ and not shape.fullmatch(hash_):
        raise InvalidReference(f"its hash {hash_[:40]!r} is none of ours")
    at = re.fullmatch(r"L(\d{1,7})(?:-L(\d{1,7}))?", str(item.get("lines") or ""))
    lines = (int(at[1]), int(at[2] or at[1])) if at else None
    return Citation(reference, hash_ or None, commit if _COMMIT.fullmatch(commit) else None, lines)


def suggest_references(text: str) -> Iterator[Reference]:
    """Yield what code spans and links of a text seem to cite, each once; fences are passed over.

    Example:
        >>> [one.text for one in suggest_references("See `src/a.py:3`, [b](docs/b.md#Use) and `x = 1`, `https://e.org/a.py`.")]
        ['src/a.py#L3', 'docs/b.md::Use']
    """
    prose = _FENCE.sub("", text)
    seen: set[Reference] = set()
    places = sorted((found.start(), found[1]) for shape in (_CODE_SPAN, _LINK) for found in shape.finditer(prose))
    for _, told in places:
        try:
            reference = parse_reference(told) if _FILE.match(told.removeprefix("./")) and " " not in told else None
        except InvalidReference:
            continue
        if reference and reference not in seen:
            seen.add(reference)
            yield reference


_SHOWN_REFERENCE, _SHOWN_REASONS = 80, 2


class ClaimState(NamedTuple):
    """How an entry stands: the worst that its citations and its `valid_until` say.

    Attributes:
        verdict: `fresh`, `moved`, `drifted`, `gone`, `over` past its date, or None where there is
            nothing to judge. One of several citations that is gone leaves the rest: `drifted`.
        findings: what is told of each citation.
    """

    verdict: str | None
    findings: tuple[Finding, ...] = ()
    unusable: tuple[Unusable, ...] = ()

    @property
    def is_void(self) -> bool:
        """Whether nothing of it should be put before an agent."""
        return self.verdict in ("gone", "over")

    @property
    def is_stale(self) -> bool:
        """Whether somebody should look at it."""
        return self.verdict in ("gone", "drifted")


def has_claim(memory: Memory) -> bool:
    """Tell whether an entry may be anything but sound: it cites something, or has a last day."""
    return "cites" in memory.metadata or "valid_until" in memory.metadata


def is_over(memory: Memory, today: date) -> bool:
    """Tell whether the last day of an entry has passed.

    Example:
        >>> from memory_kb.model import Location
        >>> one = Memory("x", "a.md", "", Location(), "T", "", metadata={"valid_until": "2026-03-01"})
        >>> is_over(one, date(2026, 3, 1)), is_over(one, date(2026, 3, 2))
        (False, True)
    """
    last = memory.day("valid_until")
    return last is not None and today > last


def say_mark(standing: ClaimState) -> str:
    """Return what stands beside an entry in a prompt; empty where it is as it was.

    Example:
        >>> from memory_kb.learning.citations import Citation, Reference
        >>> from memory_kb.learning.citations import Finding
        >>> finding = Finding(Citation(Reference("src/api/x.py", 10, 20)), "drifted", "src/api/x.py", reason="changed")
        >>> say_mark(ClaimState("drifted", (finding,)))
        '[may be stale: src/api/x.py#L10-L20 changed]'
    """
    stale = [one for one in standing.findings if one.verdict in ("drifted", "gone")]
    if standing.is_stale and stale:
        told = "; ".join(
            f"{_short(one.citation.reference.text)} {_short(one.reason)}" for one in stale[:_SHOWN_REASONS]
        )
        more = f"; and {len(stale) - _SHOWN_REASONS} more" if len(stale) > _SHOWN_REASONS else ""
        return f"[may be stale: {told}{more}]"
    away = [one for one in standing.findings if one.verdict == "moved" and one.path != one.citation.reference.path]
    names = dict.fromkeys(f"{_short(one.citation.reference.path)} is now {_short(one.path)}" for one in away)
    told = "; ".join(list(names)[:_SHOWN_REASONS])
    return f"[{told}]" if told else ""


def _short(text: str) -> str:
    return (
        text if len(text) <= _SHOWN_REFERENCE else f"{text[: _SHOWN_REFERENCE // 2]}…{text[-_SHOWN_REFERENCE // 2 :]}"
    )


#: Texts with the same sum and another hash that are looked at before a search is given up.
_MOST_TRIES = 20
#: More lines than these are not compared one by one.
_MOST_EXACT, _MOST_COMPARED = 500, 3_000


def split_lines(text: str) -> tuple[str, ...]:
    r"""Return the lines of a file, whatever their ends, without trailing blanks and blank last lines.

    Example:
        >>> split_lines("\ufeffa \r\n\tb\r\n\r\n")
        ('a', '\tb')
    """
    lines = [
        line.rstrip() for line in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def hash_lines(lines: Sequence[str]) -> str:
    """Return the hash of some lines, as `cites` holds it.

    Eight digits are the sum of the lines' checksums, by which a window over a file finds them in
    one pass; twelve are of the text.

    Example:
        >>> hash_lines(["a", "b"]) == hash_lines(["b", "a"]), hash_lines(["a", "b"])[:8] == hash_lines(["b", "a"])[:8]
        (False, True)
    """
    return f"{sum(map(_checksum, lines)) & 0xFFFFFFFF:08x}{_digest(_encode(chr(10).join(lines)))}"


def hash_bytes(data: bytes) -> str:
    """Return the hash of a file that is no text."""
    return f"{zlib.crc32(data):08x}{_digest(data)}"


def find_lines(lines: Sequence[str], wanted: str, length: int, near: int = 1) -> int | None:
    """Return the line, from 1, at which as many lines with a hash begin; the one nearest to a line.

    Example:
        >>> find_lines(["x", "a", "b"], hash_lines(["a", "b"]), 2)
        2
        >>> find_lines(["x", "a", "c"], hash_lines(["a", "b"]), 2) is None
        True
    """
    if not 0 < length <= len(lines):
        return None
    total = int(wanted[:8], 16)
    sums = list(accumulate(map(_checksum, lines), initial=0))
    fitting = [
        first for first in range(len(lines) - length + 1) if (sums[first + length] - sums[first]) & 0xFFFFFFFF == total
    ]
    fitting.sort(key=lambda first: (abs(first + 1 - near), first))
    return next(
        (first + 1 for first in fitting[:_MOST_TRIES] if hash_lines(lines[first : first + length]) == wanted), None
    )


class Difference(NamedTuple):
    """What became of some lines: a line each, `-` for what went and `+` for what came, and where they are now."""

    told: tuple[str, ...]
    lines: tuple[int, int] | None


def compare_lines(
    before: Sequence[str], after: Sequence[str], span: tuple[int, int], most: int = 12
) -> Difference | None:
    """Return what became of some lines of a file, or None where too much changed to tell.

    Args:
        before: the file as it was.
        after: the file as it is.
        span: the first and last of the lines as it was, from 1.
        most: how many changed lines are told.

    Example:
        >>> compare_lines(["a", "b", "c"], ["new", "a", "B", "c"], (1, 3))
        Difference(told=('- b', '+ B'), lines=(2, 4))
    """
    import difflib

    head = count_same(before, after)
    tail = count_same(before[head:][::-1], after[head:][::-1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(old), len(new)) > _MOST_COMPARED:
        return None
    first, last = span[0] - 1, span[1]
    told: list[str] = []
    places: list[int] = []
    codes = difflib.SequenceMatcher(None, old, new, autojunk=len(new) > _MOST_EXACT).get_opcodes()
    moved = [(tag, head + i1, head + i2, head + j1, head + j2) for tag, i1, i2, j1, j2 in codes]
    ends = (len(before) - tail, len(after) - tail)
    for tag, i1, i2, j1, j2 in [
        ("equal", 0, head, 0, head),
        *moved,
        ("equal", ends[0], len(before), ends[1], len(after)),
    ]:
        low, high = max(i1, first), min(i2, last)
        if tag == "equal":
            places += range(j1 + low - i1, j1 + high - i1) if low < high else ()
        elif low < high or first < i1 == i2 < last:
            told += (*(f"- {line}" for line in before[low:high]), *(f"+ {line}" for line in after[j1:j2]))
            places += range(j1, j2)
    shown = (*told[:most], "…") if len(told) > most else tuple(told)
    return Difference(shown, (min(places) + 1, max(places) + 1) if places else None)


def _checksum(line: str) -> int:
    return zlib.crc32(_encode(line))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data, usedforsecurity=False).hexdigest()[:12]


#: What is told of a citation: as it was; as it was, elsewhere; changed; not there any more; nothing
#: can be told; nobody has recorded what it said.
VERDICTS = ("fresh", "moved", "drifted", "gone", "unreadable", "unrecorded")
_WORD = re.compile(r"\w")


class CitedText(Protocol):
    """A file as it is now; `state` is `text`, `binary`, `missing` or `unreadable`."""

    @property
    def path(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def data(self) -> bytes: ...

    @property
    def text(self) -> str: ...

    @property
    def reason(self) -> str: ...


class Project(Protocol):
    """What a project's folder and its history say."""

    def read(self, path: str) -> CitedText:
        """Return a file."""

    def heirs(self, path: str) -> Sequence[tuple[str, bool]]:
        """Return where the text of a missing file may stand now; True where it was renamed so."""

    def gave_up(self) -> bool:
        """Tell whether looking for heirs took too long."""

    def head(self) -> str | None:
        """Return the last commit, shortened."""

    def find_commit(self, commit: str) -> str | None:
        """Return the whole hash of a commit that is here."""

    def knows_commits(self) -> bool:
        """Tell whether all commits should be here."""

    def text_at(self, commit: str, path: str) -> str | None:
        """Return what a file said at a commit."""


class Finding(NamedTuple):
    """What is told of one citation.

    Attributes:
        path: the file in which it was looked at last.
        lines: where the cited text, or what may have become of it, stands now.
        reason: the verdict as a part of a sentence, such as `changed` or `is gone`.
    """

    citation: Citation
    verdict: str
    path: str
    lines: tuple[int, int] | None = None
    reason: str = ""

    @property
    def place(self) -> str:
        """Where it stands now."""
        return f"{self.path}#{span_text(*self.lines)}" if self.lines else self.path


class Unrecordable(ValueError):
    """A reference whose text cannot be recorded; the message says why."""


def record(reference: Reference, project: Project) -> Citation:
    """Return a citation with the hash of what it cites as it is now.

    Raises:
        Unrecordable: there is nothing that could be known again.
    """
    if reference.commit:
        whole = project.find_commit(reference.commit)
        if not whole:
            raise Unrecordable("no such commit is here")
        return Citation(reference, whole)
    if reference.symbol:
        raise Unrecordable("names of symbols and headings are not looked up; cite lines, such as src/a.py#L10-L20")
    source = project.read(reference.path)
    if source.state in ("missing", "unreadable"):
        raise Unrecordable("there is no such file" if source.state == "missing" else f"it {source.reason}")
    if reference == Reference(reference.path):
        return Citation(reference, _hash_file(source), project.head())
    if source.state == "binary":
        raise Unrecordable("it is no text; cite the file as a whole")
    lines = split_lines(source.text)
    start, end = reference.start or 1, reference.end or len(lines)
    if end > len(lines):
        raise Unrecordable(f"it has {len(lines):,} lines")
    if not any(map(_WORD.search, lines[start - 1 : end])):
        raise Unrecordable("there is no word on these lines that could be known again")
    return Citation(reference, hash_lines(lines[start - 1 : end]), project.head())


def _hash_file(source: CitedText) -> str:
    return hash_bytes(source.data) if source.state == "binary" else hash_lines(split_lines(source.text))


def judge(citation: Citation, project: Project) -> Finding:
    """Return the verdict on one citation; without a recorded hash nothing is judged."""
    reference = citation.reference
    if reference.commit:
        return _judge_commit(citation, project)
    source = project.read(reference.path)
    if source.state == "unreadable":
        return Finding(citation, "unreadable", reference.path, reason=source.reason)
    if not citation.hash:
        is_there = source.state != "missing"
        return Finding(
            citation,
            "unrecorded" if is_there else "unreadable",
            reference.path,
            reason="" if is_there else "is not there",
        )
    if source.state != "missing":
        return _judge_in(citation, source)
    for path, is_renamed in project.heirs(reference.path):
        heir = project.read(path)
        if heir.state not in ("text", "binary"):
            continue
        found = _judge_in(citation, heir)
        if found.verdict in ("fresh", "moved"):
            return found._replace(verdict="moved", reason=f"is now {found.place}")
        if is_renamed:
            return found._replace(verdict="drifted", reason=f"was renamed to {path} and changed")
    if project.gave_up():
        return Finding(citation, "drifted", reference.path, reason="is not there any more")
    return Finding(citation, "gone", reference.path, reason="is gone")


def _judge_commit(citation: Citation, project: Project) -> Finding:
    commit = citation.reference.text
    if not citation.hash:
        return Finding(citation, "unrecorded", commit)
    if project.find_commit(citation.hash):
        return Finding(citation, "fresh", commit)
    # It may live on a branch that was never fetched, so nothing says that it is gone for good.
    known = project.knows_commits()
    return Finding(
        citation,
        "drifted" if known else "unreadable",
        commit,
        reason="is not in this repository" if known else "cannot be looked up here",
    )


def _judge_in(citation: Citation, source: CitedText) -> Finding:
    """Return the verdict on a citation in a file that is there."""
    reference, wanted = citation.reference, citation.hash or ""
    if reference == Reference(reference.path):
        is_same = _hash_file(source) == wanted
        return Finding(citation, "fresh" if is_same else "drifted", source.path, reason="" if is_same else "changed")
    if source.state == "binary":
        return Finding(citation, "drifted", source.path, reason="is no text any more")
    lines = split_lines(source.text)
    known = (
        citation.lines
        if reference.symbol
        else (reference.start, reference.end)
        if reference.start and reference.end
        else None
    )
    if known and (start := _find_again(lines, wanted, known)):
        place = (start, start + known[1] - known[0])
        has_moved = place != known and not reference.symbol
        return Finding(
            citation,
            "moved" if has_moved else "fresh",
            source.path,
            place,
            f"is now {span_text(*place)}" if has_moved else "",
        )
    if reference.symbol and not known:
        return Finding(citation, "unreadable", source.path, reason="was recorded without its lines; cite them instead")
    is_short = reference.end is not None and reference.end > len(lines)
    reason = f"changed, the file has {len(lines):,} lines" if is_short else "changed"
    return Finding(citation, "drifted", source.path, None if is_short else known, reason)


def _find_again(lines: Sequence[str], wanted: str, known: tuple[int, int]) -> int | None:
    start, end = known
    if 0 < start <= end <= len(lines) and hash_lines(lines[start - 1 : end]) == wanted:
        return start
    return find_lines(lines, wanted, end - start + 1, start) if 0 < start <= end else None


def explain_drift(finding: Finding, project: Project) -> tuple[Finding, tuple[str, ...]]:
    """Return a finding with the place it has now, and what changed since it was recorded, a line each.

    That can be told where the last commit of that time holds the text as it was recorded.
    """
    citation, reference = finding.citation, finding.citation.reference
    source = project.read(finding.path)
    if finding.verdict != "drifted" or reference.commit or source.state != "text":
        return finding, ()
    after = split_lines(source.text)
    text = project.text_at(citation.commit, reference.path) if citation.commit else None
    if text is None:
        return finding, ()
    before = split_lines(text)
    known = citation.lines or (
        (reference.start, reference.end) if reference.start and reference.end else (1, len(before))
    )
    if hash_lines(before[known[0] - 1 : known[1]]) != citation.hash:
        return finding, ()
    changed = compare_lines(before, after, known)
    if changed is None:
        return finding, ()
    is_whole = reference == Reference(reference.path)
    return finding._replace(lines=finding.lines if is_whole else changed.lines or finding.lines), changed.told


#: The flag of an entry whose claim waits for a look.
STALE = "stale_claim"


@dataclass(frozen=True, slots=True)
class ClaimView:
    """An entry that cites something, and how it stands."""

    id: str
    kind: str
    title: str
    path: str
    line: int
    verdict: str
    last_verified: str | None
    valid_until: str | None
    findings: tuple[FindingView, ...]


@dataclass(frozen=True, slots=True)
class FindingView:
    """What is told of one citation.

    Attributes:
        now: where it stands now, as a reference.
        hint: what changed since it was recorded, a line each.
    """

    ref: str
    verdict: str
    now: str
    reason: str
    hint: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimsReport:
    """What `verify` found, and what it wrote if it was to write."""

    claims: tuple[ClaimView, ...]
    run: RunReport
    notices: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nobody has to look at anything."""
        return not any(claim.verdict in ("drifted", "gone") for claim in self.claims)


@dataclass(frozen=True, slots=True)
class CitedReport:
    """What `cite` recorded: the references, those it could have, and the run."""

    id: str
    recorded: tuple[str, ...]
    suggested: tuple[str, ...]
    refused: tuple[str, ...]
    run: RunReport


def assess(memory: Memory, project: Project, today: date, *, with_commits: bool = True) -> ClaimState:
    """Return how an entry stands. What the home holds is about no single project and cites nothing.

    Commits are asked for at git, which takes time, and never make an entry void.
    """
    if is_over(memory, today):
        return ClaimState("over")
    if "cites" not in memory.metadata or memory.place.scope == "global":
        return ClaimState(None)
    citations, unusable = read_citations(memory)
    findings = tuple(
        judge(citation, project) for citation in citations if with_commits or not citation.reference.commit
    )
    told = {finding.verdict for finding in findings} - {"unreadable", "unrecorded"}
    # That a commit is still there says nothing of the code as it is now.
    about_files = {finding.verdict for finding in findings if not finding.citation.reference.commit} - {
        "unreadable",
        "unrecorded",
    }
    if about_files == {"gone"}:
        return ClaimState("gone", findings, unusable)
    worst = next((word for word in ("drifted", "moved", "fresh") if word in told), None)
    return ClaimState("drifted" if "gone" in told else worst, findings, unusable)


def plan_citing(memory: Memory, citations: Sequence[Citation]) -> Change | None:
    """Plan to write citations into an entry; one that it has already is renewed in its place."""
    items, new = cited_items(memory), {one.reference: one for one in citations}
    kept: list[Any] = []
    for item in items:
        reference = _reference_of(item)
        fresh = new.pop(reference, None) if reference else None
        kept.append(_renewed(item, fresh) if fresh else item)
    told = ", ".join(one.reference.text for one in citations)
    return plan_fields(
        memory, {"cites": cast("Value", [*kept, *map(write_citation, new.values())])}, f"It cites {told}."
    )


def _reference_of(item: object) -> Reference | None:
    try:
        return read_citation(item).reference
    except InvalidReference:
        return None


def write_citation(citation: Citation) -> dict[str, str]:
    """Return a citation as frontmatter holds it.

    Example:
        >>> write_citation(Citation(Reference("a.py", 1, 2), "0" * 20, "abcdef1"))
        {'ref': 'a.py#L1-L2', 'hash': '00000000000000000000', 'commit': 'abcdef1'}
    """
    at = span_text(*citation.lines) if citation.lines else None
    held = {"ref": citation.reference.text, "hash": citation.hash, "lines": at, "commit": citation.commit}
    return {name: value for name, value in held.items() if value}


def _renewed(item: object, citation: Citation) -> Any:
    """Return an item with what was recorded now; where its text is the same, as it was."""
    old = read_citation(item)
    if (old.reference, old.hash, old.lines) == (citation.reference, citation.hash, citation.lines):
        return item
    held = (
        {name: value for name, value in item.items() if name not in ("ref", "hash", "lines", "commit")}
        if isinstance(item, Mapping)
        else {}
    )
    return write_citation(citation) | held


class Renewal(NamedTuple):
    """The changes that record everything anew, and what could not be."""

    changes: tuple[Change, ...]
    notices: tuple[str, ...]


def plan_renewal(memories: Iterable[Memory], project: Project, today: date) -> Renewal:
    """Plan to record what entries cite as it is now, and that a person has looked at them (row 35).

    Citations that moved follow. An entry of which something is gone keeps that, and is not
    verified by it. The mark of a stale claim goes with its cause.
    """
    changes, notices = [], []
    for memory in memories:
        renewed, failures = _renew(memory, project)
        if renewed is None:
            continue
        values: dict[str, Value] = {"cites": cast("Value", renewed)}
        if failures:
            notices += [
                f"{memory.path}:{memory.line}: {text} stays as it was recorded: {reason}" for text, reason in failures
            ]
        else:
            values["last_verified"] = today.isoformat()
            if STALE in memory.words("flags"):
                values["flags"] = [flag for flag in memory.words("flags") if flag != STALE]
        change = plan_fields(
            memory, values, "Its claims were verified." if not failures else "Its claims were verified in part."
        )
        changes += [change] if change else []
    return Renewal(tuple(changes), tuple(notices))


def _renew(memory: Memory, project: Project) -> tuple[list[Any] | None, list[tuple[str, str]]]:
    """Return the items of an entry recorded anew, and those that could not be, with the reason."""
    if "cites" not in memory.metadata or memory.place.scope == "global":
        return None, []
    items: list[Any] = []
    failures: list[tuple[str, str]] = []
    for item in cited_items(memory):
        try:
            citation = read_citation(item)
            items.append(_renewed(item, record(_follow(citation, project), project)))
        except (InvalidReference, Unrecordable) as exc:
            reference = _reference_of(item)
            failures.append((reference.text if reference else " ".join(str(item).split())[:120], str(exc)))
            items.append(item)
    return (items, failures) if items else (None, [])


def _follow(citation: Citation, project: Project) -> Reference:
    """Return where a citation is to be recorded now: where its text went, or what it was renamed to."""
    reference = citation.reference
    if reference.commit or not citation.hash:
        return reference
    found = judge(citation, project)
    if found.lines and (found.verdict == "moved" or (found.verdict == "fresh" and reference.symbol)):
        return Reference(found.path, *found.lines)
    return reference._replace(path=found.path) if found.verdict in ("moved", "drifted") else reference


def plan_flags(memories: Iterable[Memory], standing_of: Callable[[Memory], ClaimState]) -> tuple[Change, ...]:
    """Plan to flag the entries whose claims drifted or are gone, and to take the flag from those that are fresh again.

    Nothing else of them changes. What a person keeps in MEMORY.md is not rewritten.
    """
    changes = []
    for memory in memories:
        if "cites" not in memory.metadata or not memory.is_live or not memory.is_ours or memory.is_in_people_file:
            continue
        standing, has_flag = standing_of(memory), STALE in memory.words("flags")
        change = None
        if standing.is_stale and not has_flag:
            worst = next(one for one in standing.findings if one.verdict in ("drifted", "gone"))
            reason = f"What it cites {'is gone' if standing.verdict == 'gone' else 'changed'}: {worst.citation.reference.text} {worst.reason}."
            change = plan_fields(memory, {"flags": with_words(memory, "flags", STALE)}, reason)
        elif standing.verdict in ("fresh", "moved") and has_flag:
            left = [flag for flag in memory.words("flags") if flag != STALE]
            change = plan_fields(memory, {"flags": left}, "What it cites is as it was recorded.")
        changes += [change] if change else []
    return tuple(changes)


def complain(memory: Memory, standing: ClaimState) -> Iterable[str]:
    """Yield what a person should mend about an entry's claims."""
    if (
        "valid_until" in memory.metadata
        and memory.metadata["valid_until"] is not None
        and memory.day("valid_until") is None
    ):
        yield f"valid_until {' '.join(str(memory.metadata['valid_until']).split())[:60]} is not an ISO date; it has no effect"
    if standing.verdict == "over":
        yield f"it was valid until {memory.word('valid_until')}; `context` withholds it"
    for bad in standing.unusable:
        yield f"cites {bad.text!r}, which cannot be used: {bad.reason}"
    for one in standing.findings:
        reference = one.citation.reference.text
        if one.verdict == "unreadable":
            yield f"cites {reference}, which {one.reason}"
        elif one.verdict in ("drifted", "gone"):
            yield f"cites {reference}, which {one.reason}; `memory-kb verify {memory.id}` shows more"


def view_claim(memory: Memory, standing: ClaimState, project: Project) -> ClaimView:
    """Return an entry and its standing as they are listed."""
    findings = []
    for one in standing.findings:
        told, hint = explain_drift(one, project)
        findings.append(FindingView(one.citation.reference.text, one.verdict, told.place, one.reason, hint))
    findings += [FindingView(bad.text, "unreadable", "", f"cannot be used: {bad.reason}") for bad in standing.unusable]
    fallback = next(
        (word for word in ("unrecorded", "unreadable") if any(one.verdict == word for one in findings)), "fresh"
    )
    last, until = memory.word("last_verified"), memory.word("valid_until")
    return ClaimView(
        memory.id,
        memory.kind,
        memory.title,
        memory.path,
        memory.line,
        standing.verdict or fallback,
        last,
        until,
        tuple(findings),
    )
