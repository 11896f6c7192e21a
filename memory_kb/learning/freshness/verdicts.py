"""Whether what an entry cites is still there and still says the same: fresh, moved, drifted or gone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from memory_kb.learning.freshness.citations import Citation, Reference, span_text
from memory_kb.learning.freshness.spans import compare_lines, find_lines, hash_bytes, hash_lines, split_lines

#: What is told of a citation: as it was; as it was, elsewhere; changed; not there any more; nothing
#: can be told; nobody has recorded what it said.
VERDICTS = ("fresh", "moved", "drifted", "gone", "unreadable", "unrecorded")
_WORD = re.compile(r"\w")


class Source(Protocol):
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

    def read(self, path: str) -> Source:
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


def _hash_file(source: Source) -> str:
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


def _judge_in(citation: Citation, source: Source) -> Finding:
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
