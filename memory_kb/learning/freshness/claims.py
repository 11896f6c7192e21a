"""What entries claim about code: their standing, what an agent is told of it, and what is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from memory_kb.learning.freshness.citations import (
    Citation,
    InvalidReference,
    Reference,
    cited_items,
    read_citation,
    read_citations,
    span_text,
)
from memory_kb.learning.freshness.standings import Standing, is_over
from memory_kb.learning.freshness.verdicts import Project, Unrecordable, explain_drift, judge, record
from memory_kb.learning.memories import Memory, plan_fields, with_words
from memory_kb.notes.plans import Change
from memory_kb.notes.splice import Value

if TYPE_CHECKING:
    from memory_kb.reports import RunReport

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


def assess(memory: Memory, project: Project, today: date, *, with_commits: bool = True) -> Standing:
    """Return how an entry stands. What the home holds is about no single project and cites nothing.

    Commits are asked for at git, which takes time, and never make an entry void.
    """
    if is_over(memory, today):
        return Standing("over")
    if "cites" not in memory.metadata or memory.place.scope == "global":
        return Standing(None)
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
        return Standing("gone", findings, unusable)
    worst = next((word for word in ("drifted", "moved", "fresh") if word in told), None)
    return Standing("drifted" if "gone" in told else worst, findings, unusable)


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


def plan_flags(memories: Iterable[Memory], standing_of: Callable[[Memory], Standing]) -> tuple[Change, ...]:
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


def complain(memory: Memory, standing: Standing) -> Iterable[str]:
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


def view_claim(memory: Memory, standing: Standing, project: Project) -> ClaimView:
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
