"""Check what entries cite, and plan to renew or flag the citation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.learning.references import (
    Citation,
    CodeReference,
    InvalidReference,
    Unusable,
    cited_items,
    compare_lines,
    find_lines,
    hash_bytes,
    hash_lines,
    item_text,
    read_citation,
    read_citations,
    span_text,
    split_lines,
    write_citation,
)
from memory_kb.store.plan import Change, Memory, Plan, plan_fields, with_words

if TYPE_CHECKING:
    from memory_kb.markdown.splice import Value
    from memory_kb.reports import RunReport
    from memory_kb.store.project import CitedFile, ProjectFiles


#: The flag of an entry whose claim waits for a look.
STALE = "stale_claim"
_WORD = re.compile(r"\w")
_MARK_REFERENCE, _MARK_REASONS = 80, 2


class CitationFinding(NamedTuple):
    """The verdict on one citation.

    Attributes:
        verdict: `fresh`, `moved`, `drifted` (changed), `gone`, `unreadable` (nothing can be said), or
            `unrecorded` (nobody has recorded what it said).
        lines: where the cited text, or what may have become of it, is now.
        reason: the verdict as a part of a sentence, such as `changed` or `is gone`.
    """

    citation: Citation
    verdict: str
    lines: tuple[int, int] | None = None
    reason: str = ""

    @property
    def place(self) -> str:
        """Where it is now, as a reference."""
        reference = self.citation.reference
        return f"{reference.path}#{span_text(*self.lines)}" if self.lines else reference.commit or reference.path

    @property
    def is_bad(self) -> bool:
        """Whether the text changed or is gone."""
        return self.verdict in ("drifted", "gone")


class ClaimState(NamedTuple):
    """The worst that the citations of an entry and its `valid_until` say.

    Attributes:
        verdict: `fresh`, `moved`, `drifted`, `gone`, `over` past its date, or None where there is
            nothing to judge. One of several citations that is gone leaves the rest: `drifted`.
    """

    verdict: str | None
    findings: tuple[CitationFinding, ...] = ()
    unusable: tuple[Unusable, ...] = ()

    @property
    def is_void(self) -> bool:
        """Whether nothing of it should be put before an agent."""
        return self.verdict in ("gone", "over")

    @property
    def is_stale(self) -> bool:
        """Whether somebody should look at it."""
        return self.verdict in ("gone", "drifted")


class FindingView(NamedTuple):
    """One citation as `verify` lists it.

    Attributes:
        now: where it is now, as a reference.
        hint: what changed since it was recorded, a line each.
    """

    ref: str
    verdict: str
    now: str
    reason: str
    hint: tuple[str, ...] = ()


class ClaimView(NamedTuple):
    """An entry that cites something, as `verify` lists it."""

    id: str
    kind: str
    title: str
    path: str
    line: int
    verdict: str
    last_verified: str | None
    valid_until: str | None
    findings: tuple[FindingView, ...]


class ClaimsReport(NamedTuple):
    """What `verify` found, and what it wrote."""

    claims: tuple[ClaimView, ...]
    run: RunReport
    notices: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nobody has to look at anything."""
        return not any(claim.verdict in ("drifted", "gone") for claim in self.claims)


class CitedReport(NamedTuple):
    """What `cite` recorded: the references, those it could have, and the run."""

    id: str
    recorded: tuple[str, ...]
    suggested: tuple[str, ...]
    refused: tuple[str, ...]
    run: RunReport


class Unrecordable(ValueError):
    """A reference whose text cannot be recorded; the message says why."""


def record(reference: CodeReference, project: ProjectFiles) -> Citation:
    """Return a citation with the hash of what it cites as it is now.

    Raises:
        Unrecordable: there is nothing that could be known again.
    """
    if reference.commit:
        whole = project.git.find_commit(reference.commit)
        if not whole:
            raise Unrecordable("no such commit is here")
        return Citation(reference, whole)
    source = project.read(reference.path)
    if source.state in ("missing", "unreadable"):
        raise Unrecordable("there is no such file" if source.state == "missing" else f"it {source.reason}")
    if reference.lines is None:
        return Citation(reference, _hash_file(source), project.git.head())
    if source.state == "binary":
        raise Unrecordable("it is no text; cite the file as a whole")
    lines = split_lines(source.text)
    start, end = reference.lines
    if end > len(lines):
        raise Unrecordable(f"it has {len(lines):,} lines")
    if not any(map(_WORD.search, lines[start - 1 : end])):
        raise Unrecordable("there is no word on these lines that could be known again")
    return Citation(reference, hash_lines(lines[start - 1 : end]), project.git.head())


def _hash_file(source: CitedFile) -> str:
    if source.state == "binary":
        return hash_bytes(source.data)
    return hash_lines(split_lines(source.text))


def judge(citation: Citation, project: ProjectFiles) -> CitationFinding:
    """Return the verdict on one citation; without a recorded hash nothing is judged."""
    if citation.reference.commit:
        return _judge_commit(citation, project)
    source = project.read(citation.reference.path)
    if source.state == "unreadable":
        return CitationFinding(citation, "unreadable", reason=source.reason)
    if not citation.hash:
        if source.state == "missing":
            return CitationFinding(citation, "unreadable", reason="is not there")
        return CitationFinding(citation, "unrecorded")
    if source.state == "missing":
        return CitationFinding(citation, "gone", reason="is gone")
    return _judge_in(citation, source)


def _judge_commit(citation: Citation, project: ProjectFiles) -> CitationFinding:
    if not citation.hash:
        return CitationFinding(citation, "unrecorded")
    if project.git.find_commit(citation.hash):
        return CitationFinding(citation, "fresh")
    # It may be on a branch that was never fetched, so nothing says that it is gone for good.
    return CitationFinding(citation, "unreadable", reason="cannot be looked up here")


def _judge_in(citation: Citation, source: CitedFile) -> CitationFinding:
    """Return the verdict on a citation in a file that is there."""
    wanted, known = citation.hash or "", citation.reference.lines
    if known is None:
        is_same = _hash_file(source) == wanted
        return CitationFinding(citation, "fresh") if is_same else CitationFinding(citation, "drifted", reason="changed")
    if source.state == "binary":
        return CitationFinding(citation, "drifted", reason="is no text any more")
    lines = split_lines(source.text)
    start = find_lines(lines, wanted, known[1] - known[0] + 1, known[0])
    if start:
        place = (start, start + known[1] - known[0])
        if place == known:
            return CitationFinding(citation, "fresh", place)
        return CitationFinding(citation, "moved", place, f"is now {span_text(*place)}")
    return CitationFinding(citation, "drifted", known if known[1] <= len(lines) else None, "changed")


def explain_drift(finding: CitationFinding, project: ProjectFiles) -> tuple[CitationFinding, tuple[str, ...]]:
    """Return a finding with the place it has now, and what changed since it was recorded, a line each.

    That is known where the last commit of that time holds the text as it was recorded.
    """
    citation = finding.citation
    reference, source = citation.reference, project.read(citation.reference.path)
    if finding.verdict != "drifted" or not citation.commit or source.state != "text":
        return finding, ()
    before = split_lines(project.text_at(citation.commit, reference.path) or "")
    span = reference.lines or (1, len(before))
    if hash_lines(before[span[0] - 1 : span[1]]) != citation.hash:
        return finding, ()
    changes = compare_lines(before, split_lines(source.text), span)
    if reference.lines and changes.lines:
        finding = finding._replace(lines=changes.lines)
    return finding, changes.shown


def is_over(memory: Memory, today: date) -> bool:
    """Return whether the last day of an entry has passed.

    Example:
        >>> from memory_kb.model import Location
        >>> one = Memory("x", "a.md", "", Location(), "T", "", metadata={"valid_until": "2026-03-01"})
        >>> is_over(one, date(2026, 3, 1)), is_over(one, date(2026, 3, 2))
        (False, True)
    """
    last = memory.day("valid_until")
    return last is not None and today > last


def assess(memory: Memory, project: ProjectFiles, today: date, *, with_commits: bool = True) -> ClaimState:
    """Return the state of an entry's claims; a global entry is about no single project and cites nothing.

    Commits are asked for at git, which takes time, and never make an entry void.
    """
    if is_over(memory, today):
        return ClaimState("over")
    if "cites" not in memory.metadata or memory.place.scope == "global":
        return ClaimState(None)
    citations, unusable = read_citations(memory)
    findings = tuple(judge(one, project) for one in citations if with_commits or not one.reference.commit)
    judged = [one for one in findings if one.verdict not in ("unreadable", "unrecorded")]
    # That a commit is still there says nothing of the code as it is now.
    about_files = {one.verdict for one in judged if not one.citation.reference.commit}
    if about_files == {"gone"}:
        return ClaimState("gone", findings, unusable)
    if any(one.is_bad for one in judged):
        return ClaimState("drifted", findings, unusable)
    worst = next((word for word in ("moved", "fresh") if any(one.verdict == word for one in judged)), None)
    return ClaimState(worst, findings, unusable)


def say_mark(state: ClaimState) -> str:
    """Return the remark beside an entry in a prompt; empty where what it cites is as it was.

    Example:
        >>> finding = CitationFinding(Citation(CodeReference("src/api/x.py", 10, 20)), "drifted", reason="changed")
        >>> say_mark(ClaimState("drifted", (finding,)))
        '[may be stale: src/api/x.py#L10-L20 changed]'
    """
    stale = [one for one in state.findings if one.is_bad] if state.is_stale else []
    if not stale:
        return ""
    reasons = [f"{_short(one.citation.reference.text)} {_short(one.reason)}" for one in stale]
    more = f"; and {len(stale) - _MARK_REASONS} more" if len(stale) > _MARK_REASONS else ""
    return f"[may be stale: {'; '.join(reasons[:_MARK_REASONS])}{more}]"


def _short(text: str) -> str:
    half = _MARK_REFERENCE // 2
    return text if len(text) <= _MARK_REFERENCE else f"{text[:half]}…{text[-half:]}"


def complain(memory: Memory, state: ClaimState) -> Iterator[str]:
    """Yield what a person should fix about an entry's claims."""
    until = memory.metadata.get("valid_until")
    if until is not None and memory.day("valid_until") is None:
        yield f"valid_until {' '.join(str(until).split())[:60]} is not an ISO date; it has no effect"
    if state.verdict == "over":
        yield f"it was valid until {memory.word('valid_until')}; `context` withholds it"
    for bad in state.unusable:
        yield f"cites {bad.text!r}, which cannot be used: {bad.reason}"
    for one in state.findings:
        if one.is_bad or one.verdict == "unreadable":
            more = f"; `memory-kb verify {memory.id}` shows more" if one.is_bad else ""
            yield f"cites {one.citation.reference.text}, which {one.reason}{more}"


def view_claim(memory: Memory, state: ClaimState, project: ProjectFiles) -> ClaimView:
    """Return an entry and the state of its claims as they are listed."""
    views = []
    for one in state.findings:
        placed, hint = explain_drift(one, project)
        views.append(FindingView(one.citation.reference.text, one.verdict, placed.place, one.reason, hint))
    views += [FindingView(bad.text, "unreadable", "", f"cannot be used: {bad.reason}") for bad in state.unusable]
    verdicts = {one.verdict for one in views}
    verdict = state.verdict or next((word for word in ("unrecorded", "unreadable") if word in verdicts), "fresh")
    where = (memory.id, memory.kind, memory.title, memory.path, memory.line)
    return ClaimView(*where, verdict, memory.word("last_verified"), memory.word("valid_until"), tuple(views))


def plan_citing(memory: Memory, citations: Sequence[Citation]) -> Change | None:
    """Plan to write citations into an entry; one that it has already is renewed in its place."""
    new = {one.reference: one for one in citations}
    kept = []
    for item in cited_items(memory):
        try:
            fresh = new.pop(read_citation(item).reference, None)
        except InvalidReference:
            fresh = None
        kept.append(_renewed(item, fresh) if fresh else item)
    kept += map(write_citation, new.values())
    return plan_fields(memory, {"cites": kept}, f"It cites {', '.join(one.reference.text for one in citations)}.")


def _renewed(item: Any, citation: Citation) -> Any:
    """Return an item with what was recorded now; where that is the same, as it was written."""
    if read_citation(item)._replace(commit=None) == citation._replace(commit=None):
        return item
    own = item.items() if isinstance(item, dict) else ()
    return write_citation(citation) | {name: value for name, value in own if name not in ("ref", "hash", "commit")}


def plan_renewal(memories: Iterable[Memory], project: ProjectFiles, today: date) -> tuple[Plan, tuple[str, ...]]:
    """Plan to record what entries cite as it is now, and that a person has looked at them.

    Lines that moved follow, and the mark of a stale claim goes. An entry stays as it is where something
    that it cites cannot be recorded. Return also which, and why.
    """
    changes: list[Change | None] = []
    notices: list[str] = []
    for memory in memories:
        if not cited_items(memory) or memory.place.scope == "global":
            continue
        try:
            items = [_record_again(item, project) for item in cited_items(memory)]
        except Unrecordable as exc:
            notices.append(f"{memory.path}:{memory.line}: {memory.id} stays as it is: {exc}")
            continue
        values: dict[str, Value] = {"cites": items, "last_verified": today.isoformat()}
        changes.append(plan_fields(memory, values | _without_flag(memory), "Its claims were verified."))
    return changes, tuple(notices)


def _record_again(item: Any, project: ProjectFiles) -> Any:
    """Return an item of `cites` as its text is now, where that is now.

    Raises:
        Unrecordable: it names nothing that can be recorded.
    """
    try:
        citation = read_citation(item)
        lines = judge(citation, project).lines
        reference = CodeReference(citation.reference.path, *lines) if lines else citation.reference
        return _renewed(item, record(reference, project))
    except (InvalidReference, Unrecordable) as exc:
        raise Unrecordable(f"{item_text(item)} cannot be recorded: {exc}") from exc


def _without_flag(memory: Memory) -> dict[str, Value]:
    flags = memory.words("flags")
    return {"flags": [flag for flag in flags if flag != STALE]} if STALE in flags else {}


def plan_flags(memories: Iterable[Memory], state_of: Callable[[Memory], ClaimState]) -> Plan:
    """Plan to flag the entries whose claims drifted or are gone, and to take the flag from those that are fresh again.

    Nothing else of them changes. What a person keeps in MEMORY.md is not rewritten.
    """
    for memory in memories:
        if "cites" not in memory.metadata or not memory.is_live or not memory.is_ours or memory.is_in_people_file:
            continue
        state, flags = state_of(memory), memory.words("flags")
        if state.is_stale and STALE not in flags:
            worst = next(one for one in state.findings if one.is_bad)
            reason = f"A claim is stale: {worst.citation.reference.text} {worst.reason}."
            yield plan_fields(memory, {"flags": with_words(memory, "flags", STALE)}, reason)
        elif state.verdict in ("fresh", "moved") and STALE in flags:
            yield plan_fields(memory, _without_flag(memory), "What it cites is as it was recorded.")
