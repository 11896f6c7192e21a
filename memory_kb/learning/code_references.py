"""Parse references to a project's files, and hash the lines that they name so that these can be found again."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from memory_kb.memory import Memory
from memory_kb.text import hash_of

#: Changed lines that are shown.
_MOST_SHOWN = 12


def split_lines(text: str) -> tuple[str, ...]:
    r"""Return the lines of a file without their line ends, trailing blanks and blank last lines.

    Example:
        >>> split_lines("\ufeffa \r\n\tb\r\n\r\n")
        ('a', '\tb')
    """
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in plain.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def hash_lines(lines: Sequence[str]) -> str:
    """Return the hash of some lines, as `cites` holds it.

    Eight digits are the sum of the lines' checksums, whatever their order; twelve are of the text.
    """
    checksums = sum(zlib.crc32(_encode(line)) for line in lines) & 0xFFFFFFFF
    return f"{checksums:08x}{_digest(_encode(chr(10).join(lines)))}"


def find_lines(lines: Sequence[str], wanted: str, length: int, near: int = 1) -> int | None:
    """Return the line, from 1, at which as many lines with a hash begin; the one nearest to a line.

    Example:
        >>> find_lines(["x", "a", "b"], hash_lines(["a", "b"]), 2)
        2
    """
    starts = range(len(lines) - length + 1) if length > 0 else ()
    fitting = (first for first in starts if _digest(_encode("\n".join(lines[first : first + length]))) == wanted[8:])
    return min((first + 1 for first in fitting), key=lambda first: abs(first - near), default=None)


def compare_lines(
    before: Sequence[str], after: Sequence[str], span: tuple[int, int]
) -> tuple[tuple[str, ...], tuple[int, int] | None]:
    """Return the lines of a span that are gone (`- `) or new (`+ `), and where the span is now.

    Example:
        >>> compare_lines(["a", "b", "c"], ["new", "a", "B", "c"], (1, 3))
        (('- b', '+ B'), (2, 4))
    """
    import difflib

    first, last = span[0] - 1, span[1]
    shown: list[str] = []
    places: list[int] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after).get_opcodes():
        low, high = max(i1, first), min(i2, last)
        if tag == "equal":
            places += range(j1 + low - i1, j1 + high - i1)
        elif low < high or first < i1 == i2 < last:
            shown += (*(f"- {line}" for line in before[low:high]), *(f"+ {line}" for line in after[j1:j2]))
            places += range(j1, j2)
    shown = [*shown[:_MOST_SHOWN], "…"] if len(shown) > _MOST_SHOWN else shown
    return tuple(shown), (min(places) + 1, max(places) + 1) if places else None


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> str:
    return hash_of(data)[:12]


#: An entry that cites more is a list of files.
MOST_CITATIONS = 50
_MAX_REFERENCE = 500
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
#: Of lines or a file that is no text, and of a commit.
_HASH, _FULL_COMMIT = re.compile(r"[0-9a-f]{20}"), re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LINES = re.compile(
    r"(?P<path>.+?)(?:#L(?P<start>\d{1,7})(?:C\d+)?(?:-L?(?P<end>\d{1,7})(?:C\d+)?)?"
    r"|:(?P<first>\d{1,7})(?:-(?P<last>\d{1,7})|:\d+)?)"
)
_BAD = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
#: A code span, or the target of a link.
_QUOTED = re.compile(r"(?<!`)`([^`\n]{3,200})`(?!`)|(?<!!)\[[^\]\n]{1,200}\]\(<?([^()<>\s]{3,200})>?\)")
#: A file with an ending, in a folder or alone, before lines or a name.
_FILE = re.compile(r"(?:\./)?(?:[\w@.+-]+/)*[\w@.+-]*\w\.[A-Za-z][A-Za-z0-9]{0,9}(?=$|#|:)")


class InvalidReference(ValueError):
    """A text that names nothing of a project, or nothing that can be recorded; the message says why."""


class CodeReference(NamedTuple):
    """A file of a project by its path, some of its lines, from 1 and both included, or a commit."""

    path: str
    start: int | None = None
    end: int | None = None
    commit: str | None = None

    @property
    def text(self) -> str:
        """The reference in its one spelling."""
        return self.commit or (f"{self.path}#{span_text(*self.lines)}" if self.lines else self.path)

    @property
    def lines(self) -> tuple[int, int] | None:
        """The first and the last line."""
        return (self.start, self.end) if self.start and self.end else None


class Citation(NamedTuple):
    """A reference as an entry holds it, with the hash of the cited text when it was recorded, or of the commit.

    `commit` is the project's last one at that time. `fault` says why it cannot be used; its path is then as written.
    """

    reference: CodeReference
    hash: str | None = None
    commit: str | None = None
    fault: str = ""


def span_text(start: int, end: int) -> str:
    """Return lines as a reference names them: `L10-L20` or `L7`."""
    return f"L{start}" if start == end else f"L{start}-L{end}"


def parse_reference(text: str) -> CodeReference:
    """Read a reference: `path`, `path#L10-L20`, `path:10-20` or a commit.

    Raises:
        InvalidReference: it names nothing, or something outside of the project.

    Example:
        >>> parse_reference("src/a.py:10-20").text, parse_reference("./src/a.py").text
        ('src/a.py#L10-L20', 'src/a.py')
    """
    text = text.strip()
    if not text or len(text) > _MAX_REFERENCE or _BAD.search(text):
        raise InvalidReference("it is empty, too long, or holds control characters")
    if _COMMIT.fullmatch(text):
        return CodeReference("", commit=text)
    if "://" in text:
        raise InvalidReference("it is an address, not a file of the project")
    if not (found := _LINES.fullmatch(text)):
        return CodeReference(_clean_path(text))
    start = int(found["start"] or found["first"])
    end = int(found["end"] or found["last"] or start)
    if not 1 <= start <= end:
        raise InvalidReference("lines count from 1, and the first comes first")
    return CodeReference(_clean_path(found["path"]), start, end)


def _clean_path(path: str) -> str:
    """Return a path with slashes; one that leads out of the project, or into git's own folder, is invalid."""
    parts = [part for part in path.strip().replace("\\", "/").split("/") if part != "."]
    if not parts or not all(parts) or ".." in parts or any(part.casefold() == ".git" for part in parts):
        raise InvalidReference("it names no file in the project")
    return "/".join(parts)


def read_citations(memory: Memory) -> tuple[Citation, ...]:
    """Return what an entry cites, each once; what cannot be used has a fault.

    Example:
        >>> from memory_kb.memory import Memory
        >>> from memory_kb.model import Location
        >>> one = Memory("x", "a.md", "", Location(), "T", "", metadata={"cites": [{"ref": "a.py", "hash": "0" * 20}, "../b"]})
        >>> [(citation.reference.text, citation.fault) for citation in read_citations(one)]
        [('a.py', ''), ('../b', 'it names no file in the project')]
    """
    citations: dict[CodeReference, Citation] = {}
    for item in cited_items(memory)[:MOST_CITATIONS]:
        try:
            one = read_citation(item)
        except InvalidReference as exc:
            one = Citation(CodeReference(item_text(item)), fault=str(exc))
        citations.setdefault(one.reference, one)
    return tuple(citations.values())


def cited_items(memory: Memory) -> list[Any]:
    """Return the items of an entry's `cites` as written: references, and mappings with `ref`."""
    held = memory.metadata.get("cites")
    return list(held) if isinstance(held, list) else [] if held in (None, "") else [held]


def item_text(item: object) -> str:
    """Return what an item of `cites` says it cites, on one line."""
    return " ".join(str(item.get("ref") if isinstance(item, Mapping) else item).split())[:120]


def read_citation(item: object) -> Citation:
    """Read one item of `cites`, or raise InvalidReference."""
    if isinstance(item, str):
        return Citation(parse_reference(item))
    if not isinstance(item, Mapping) or not isinstance(item.get("ref"), str):
        raise InvalidReference("it is neither a text nor a mapping with `ref`")
    reference = parse_reference(item["ref"])
    hash_, commit = (str(item.get(name) or "") for name in ("hash", "commit"))
    if hash_ and not (_FULL_COMMIT if reference.commit else _HASH).fullmatch(hash_):
        raise InvalidReference(f"its hash {hash_[:40]!r} is none of ours")
    return Citation(reference, hash_ or None, commit if _COMMIT.fullmatch(commit) else None)


def write_citation(citation: Citation) -> dict[str, str]:
    """Return a citation as frontmatter holds it."""
    held = {"ref": citation.reference.text, "hash": citation.hash, "commit": citation.commit}
    return {name: value for name, value in held.items() if value}


def suggest_references(text: str) -> list[CodeReference]:
    """Return what code spans and links of a text seem to cite, each once; fences are skipped.

    Example:
        >>> [one.text for one in suggest_references("See `src/a.py:3`, [b](docs/b.md) and `x = 1`, `https://e.org/a.py`.")]
        ['src/a.py#L3', 'docs/b.md']
    """
    references: dict[CodeReference, None] = {}
    for code, target in _QUOTED.findall(_FENCE.sub("", text)):
        quoted = code or target
        if " " not in quoted and _FILE.match(quoted):
            with suppress(InvalidReference):
                references[parse_reference(quoted)] = None
    return list(references)
