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
        now: where the cited text, or what may have become of it, is now, as a reference.
        reason: the verdict as a part of a sentence, such as `changed` or `is gone`.
        hint: what changed since it was recorded, a line each.
    """

    ref: str
    verdict: str
    now: str = ""
    reason: str = ""
    hint: tuple[str, ...] = ()

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

    @property
    def is_void(self) -> bool:
        """Whether nothing of it should be put before an agent."""
        return self.verdict in ("gone", "over")

    @property
    def is_stale(self) -> bool:
        """Whether somebody should look at it."""
        return self.verdict in ("gone", "drifted")


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
    findings: tuple[CitationFinding, ...]


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


def record(reference: CodeReference, project: ProjectFiles) -> Citation:
    """Return a citation with the hash of what it cites as it is now.

    Raises:
        InvalidReference: there is nothing that could be known again.
    """
    if reference.commit:
        whole = project.git.find_commit(reference.commit)
        if not whole:
            raise InvalidReference("no such commit is here")
        return Citation(reference, whole)
    source = project.read(reference.path)
    if source.state in ("missing", "unreadable"):
        raise InvalidReference("there is no such file" if source.state == "missing" else f"it {source.reason}")
    if reference.lines is None:
        return Citation(reference, _hash_file(source), project.git.head())
    if source.state == "binary":
        raise InvalidReference("it is no text; cite the file as a whole")
    lines = split_lines(source.text)
    start, end = reference.lines
    if end > len(lines):
        raise InvalidReference(f"it has {len(lines):,} lines")
    if not any(map(_WORD.search, lines[start - 1 : end])):
        raise InvalidReference("there is no word on these lines that could be known again")
    return Citation(reference, hash_lines(lines[start - 1 : end]), project.git.head())


def _hash_file(source: CitedFile) -> str:
    if source.state == "binary":
        return hash_bytes(source.data)
    return hash_lines(split_lines(source.text))


#: A verdict with its reason, and the lines that it is about as they are now.
_Verdict = tuple[str, str, tuple[int, int] | None]


def judge(citation: Citation, project: ProjectFiles) -> CitationFinding:
    """Return the verdict on one citation; without a recorded hash nothing is judged."""
    reference = citation.reference
    if citation.fault:
        return CitationFinding(reference.text, "unreadable", "", f"cannot be used: {citation.fault}")
    verdict, reason, lines = (_judge_commit if reference.commit else _judge_file)(citation, project)
    return CitationFinding(reference.text, verdict, _place(reference, lines), reason)


def _place(reference: CodeReference, lines: tuple[int, int] | None) -> str:
    return f"{reference.path}#{span_text(*lines)}" if lines else reference.commit or reference.path


def _judge_commit(citation: Citation, project: ProjectFiles) -> _Verdict:
    if not citation.hash:
        return "unrecorded", "", None
    if project.git.find_commit(citation.hash):
        return "fresh", "", None
    # It may be on a branch that was never fetched, so nothing says that it is gone for good.
    return "unreadable", "cannot be looked up here", None


def _judge_file(citation: Citation, project: ProjectFiles) -> _Verdict:
    wanted, known = citation.hash, citation.reference.lines
    source = project.read(citation.reference.path)
    if source.state == "unreadable":
        return "unreadable", source.reason, None
    if not wanted:
        return ("unreadable", "is not there", None) if source.state == "missing" else ("unrecorded", "", None)
    if source.state == "missing":
        return "gone", "is gone", None
    if known is None:
        return ("fresh", "", None) if _hash_file(source) == wanted else ("drifted", "changed", None)
    if source.state == "binary":
        return "drifted", "is no text any more", None
    lines = split_lines(source.text)
    start = find_lines(lines, wanted, known[1] - known[0] + 1, known[0])
    if start is None:
        return "drifted", "changed", known if known[1] <= len(lines) else None
    place = (start, start + known[1] - known[0])
    return ("fresh", "", place) if place == known else ("moved", f"is now {span_text(*place)}", place)


def explain_drift(citation: Citation, finding: CitationFinding, project: ProjectFiles) -> CitationFinding:
    """Return a finding with the place it has now, and what changed since it was recorded.

    That is known where the last commit of that time holds the text as it was recorded.
    """
    if finding.verdict != "drifted" or not citation.commit:
        return finding
    reference, source = citation.reference, project.read(citation.reference.path)
    before = split_lines(project.text_at(citation.commit, reference.path) or "")
    span = reference.lines or (1, len(before))
    if source.state != "text" or hash_lines(before[span[0] - 1 : span[1]]) != citation.hash:
        return finding
    changes = compare_lines(before, split_lines(source.text), span)
    now = _place(reference, changes.lines) if reference.lines and changes.lines else finding.now
    return finding._replace(now=now, hint=changes.shown)


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
    citations = [one for one in read_citations(memory) if with_commits or not one.reference.commit]
    findings = tuple(judge(one, project) for one in citations)
    verdicts = {one.verdict for one in findings}
    # That a commit is still there says nothing of the code as it is now.
    about_files = {found.verdict for one, found in zip(citations, findings, strict=True) if not one.reference.commit}
    if about_files - {"unreadable", "unrecorded"} == {"gone"}:
        return ClaimState("gone", findings)
    if any(one.is_bad for one in findings):
        return ClaimState("drifted", findings)
    return ClaimState(next((word for word in ("moved", "fresh") if word in verdicts), None), findings)


def say_mark(state: ClaimState) -> str:
    """Return the remark beside an entry in a prompt; empty where what it cites is as it was.

    Example:
        >>> say_mark(ClaimState("drifted", (CitationFinding("src/api/x.py#L10-L20", "drifted", reason="changed"),)))
        '[may be stale: src/api/x.py#L10-L20 changed]'
    """
    stale = [one for one in state.findings if one.is_bad] if state.is_stale else []
    if not stale:
        return ""
    reasons = [f"{_short(one.ref)} {_short(one.reason)}" for one in stale]
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
    for one in state.findings:
        if one.is_bad or one.verdict == "unreadable":
            more = f"; `memory-kb verify {memory.id}` shows more" if one.is_bad else ""
            yield f"cites {one.ref}, which {one.reason}{more}"


def view_claim(memory: Memory, state: ClaimState, project: ProjectFiles) -> ClaimView:
    """Return an entry and the state of its claims as they are listed."""
    pairs = zip(read_citations(memory), state.findings, strict=False)  # past its last day nothing is looked up
    findings = tuple(explain_drift(citation, finding, project) for citation, finding in pairs)
    verdicts = {one.verdict for one in findings}
    verdict = state.verdict or next((word for word in ("unrecorded", "unreadable") if word in verdicts), "fresh")
    where = (memory.id, memory.kind, memory.title, memory.path, memory.line)
    return ClaimView(*where, verdict, memory.word("last_verified"), memory.word("valid_until"), findings)


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
        except InvalidReference as exc:
            notices.append(f"{memory.path}:{memory.line}: {memory.id} stays as it is: {exc}")
            continue
        values: dict[str, Value] = {"cites": items, "last_verified": today.isoformat()}
        changes.append(plan_fields(memory, values | _without_flag(memory), "Its claims were verified."))
    return changes, tuple(notices)


def _record_again(item: Any, project: ProjectFiles) -> Any:
    """Return an item of `cites` as its text is now, where that is now.

    Raises:
        InvalidReference: it names nothing that can be recorded.
    """
    try:
        citation = read_citation(item)
        reference = citation.reference
        lines = None if reference.commit else _judge_file(citation, project)[2]
        return _renewed(item, record(CodeReference(reference.path, *lines) if lines else reference, project))
    except InvalidReference as exc:
        raise InvalidReference(f"{item_text(item)} cannot be recorded: {exc}") from exc


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
            reason = f"A claim is stale: {worst.ref} {worst.reason}."
            yield plan_fields(memory, {"flags": with_words(memory, "flags", STALE)}, reason)
        elif state.verdict in ("fresh", "moved") and STALE in flags:
            yield plan_fields(memory, _without_flag(memory), "What it cites is as it was recorded.")
