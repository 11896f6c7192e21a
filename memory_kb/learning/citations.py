"""The verbs cite and verify: record what entries cite of a project's files, compare it later, renew or flag it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.errors import MemoryKBError, UsageError
from memory_kb.learning.code_references import (
    MOST_CITATIONS,
    Citation,
    CodeReference,
    InvalidReference,
    cited_items,
    compare_lines,
    find_lines,
    hash_lines,
    item_text,
    parse_reference,
    read_citation,
    read_citations,
    span_text,
    split_lines,
    suggest_references,
    write_citation,
)
from memory_kb.memory import Memory
from memory_kb.model import Problem
from memory_kb.reports import RunReport
from memory_kb.store.changes import Change, plan_fields, with_words

if TYPE_CHECKING:
    from memory_kb.learning.memories import Memories
    from memory_kb.markdown.splice import Value
    from memory_kb.store.project_files import CitedFile, ProjectFiles
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

#: The flag of an entry whose claim waits for a look.
STALE = "stale_claim"
_WORD = re.compile(r"\w")


class CitationFinding(NamedTuple):
    """The verdict on one citation, and its reason as a part of a sentence, such as `changed`.

    It is `fresh`, `moved`, `drifted` (changed), `gone`, `unreadable` (nothing can be said), or `unrecorded` (nobody has
    recorded what it said). `now` is where the cited text is now, as a reference, `hint` what changed, a line each.
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

    It is `fresh`, `moved`, `drifted`, `gone`, `over` past its date, or None where there is nothing to judge. One of
    several citations that is gone leaves the rest: `drifted`.
    """

    verdict: str | None
    findings: tuple[CitationFinding, ...] = ()

    @property
    def is_void(self) -> bool:
        """Whether nothing of it should be put before an agent."""
        return self.verdict in ("gone", "over")

    @property
    def is_stale(self) -> bool:
        """Whether a person should verify it."""
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
        """Whether all claims hold."""
        return not any(claim.verdict in ("drifted", "gone") for claim in self.claims)


class CitedReport(NamedTuple):
    """What `cite` recorded: the references, those it could have, and the run."""

    id: str
    recorded: tuple[str, ...]
    suggested: tuple[str, ...]
    refused: tuple[str, ...]
    run: RunReport


def hash_citation(reference: CodeReference, project: ProjectFiles) -> Citation:
    """Return a citation with the present hash of what it cites; raise InvalidReference if it has none."""
    if reference.commit:
        whole = project.git.find_commit(reference.commit)
        if not whole:
            raise InvalidReference("no such commit is here")
        return Citation(reference, whole)
    source = project.read(reference.path)
    if source.state in ("missing", "unreadable"):
        raise InvalidReference("there is no such file" if source.state == "missing" else f"it {source.reason}")
    lines = split_lines(source.text)
    if reference.lines is None:
        return Citation(reference, hash_lines(lines), project.git.head())
    start, end = reference.lines
    if end > len(lines):
        raise InvalidReference(f"it has {len(lines):,} lines")
    if not any(map(_WORD.search, lines[start - 1 : end])):
        raise InvalidReference("there is no word on these lines that could be known again")
    return Citation(reference, hash_lines(lines[start - 1 : end]), project.git.head())


def check_citation(citation: Citation, project: ProjectFiles) -> CitationFinding:
    """Return the verdict on one citation; without a recorded hash nothing is judged."""
    reference = citation.reference
    found = CitationFinding(reference.text, "fresh", reference.commit or reference.path)
    if citation.fault:
        return found._replace(verdict="unreadable", now="", reason=f"cannot be used: {citation.fault}")
    if not reference.commit:
        return _judge_file(citation, project.read(reference.path), found)
    if not citation.hash:
        return found._replace(verdict="unrecorded")
    # It may be on a branch that was never fetched, so nothing says that it is gone for good.
    is_here = project.git.find_commit(citation.hash)
    return found if is_here else found._replace(verdict="unreadable", reason="cannot be looked up here")


def _judge_file(citation: Citation, source: CitedFile, found: CitationFinding) -> CitationFinding:
    wanted, reference = citation.hash, citation.reference
    drifted = found._replace(verdict="drifted", reason="changed")
    if source.state == "unreadable":
        return found._replace(verdict="unreadable", reason=source.reason)
    if source.state == "missing":
        verdict, reason = ("gone", "is gone") if wanted else ("unreadable", "is not there")
        return found._replace(verdict=verdict, reason=reason)
    if not wanted:
        return found._replace(verdict="unrecorded")
    lines = split_lines(source.text)
    if reference.lines is None:
        return found if hash_lines(lines) == wanted else drifted
    first, last = reference.lines
    start = find_lines(lines, wanted, last - first + 1, first)
    if start is None:
        return drifted._replace(now=reference.text) if last <= len(lines) else drifted
    if start == first:
        return found._replace(now=reference.text)
    moved = reference._replace(start=start, end=start + last - first).text
    return found._replace(verdict="moved", now=moved, reason=f"is now {moved.rpartition('#')[2]}")


def _explain_drift(citation: Citation, finding: CitationFinding, project: ProjectFiles) -> CitationFinding:
    """Add what changed since it was recorded, where the last commit of that time holds the text as it was then."""
    if finding.verdict != "drifted" or not citation.commit:
        return finding
    reference, source = citation.reference, project.read(citation.reference.path)
    before = split_lines(project.git.text_at(citation.commit, reference.path) or "")
    span = reference.lines or (1, len(before))
    if source.state != "text" or hash_lines(before[span[0] - 1 : span[1]]) != citation.hash:
        return finding
    shown, lines = compare_lines(before, split_lines(source.text), span)
    now = f"{reference.path}#{span_text(*lines)}" if reference.lines and lines else finding.now
    return finding._replace(now=now, hint=shown)


def assess(memory: Memory, project: ProjectFiles, today: date, *, with_commits: bool = True) -> ClaimState:
    """Return the state of an entry's claims; a global entry is about no single project and cites nothing.

    Commits are asked for at git, which takes time, and never make an entry void.
    """
    last = memory.day("valid_until")
    if last is not None and today > last:
        return ClaimState("over")
    if "cites" not in memory.metadata or memory.place.scope == "global":
        return ClaimState(None)
    citations = [one for one in read_citations(memory) if with_commits or not one.reference.commit]
    findings = tuple(check_citation(one, project) for one in citations)
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
    stale = [f"{one.ref} {one.reason}" for one in state.findings if one.is_bad]
    if not stale or not state.is_stale:
        return ""
    more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
    return f"[may be stale: {stale[0]}{more}]"


def citation_problems(memory: Memory, state: ClaimState) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what a person should fix about an entry's claims, each with the words that its line is found by."""
    until, field = memory.metadata.get("valid_until"), ("\nvalid_until:",)
    if until is not None and memory.day("valid_until") is None:
        yield f"valid_until {' '.join(str(until).split())[:60]} is not an ISO date; it has no effect", field
    if state.verdict == "over":
        yield f"it was valid until {memory.word('valid_until')}; `context` withholds it", field
    for one in state.findings:
        if one.is_bad or one.verdict == "unreadable":
            more = f"; `memory-kb verify {memory.id}` shows more" if one.is_bad else ""
            yield f"cites {one.ref}, which {one.reason}{more}", (one.ref, "\ncites:")


def _view_claim(memory: Memory, state: ClaimState, project: ProjectFiles) -> ClaimView:
    pairs = zip(read_citations(memory), state.findings, strict=False)  # past its last day nothing is looked up
    findings = tuple(_explain_drift(citation, finding, project) for citation, finding in pairs)
    verdicts = {one.verdict for one in findings}
    verdict = state.verdict or next((word for word in ("unrecorded", "unreadable") if word in verdicts), "fresh")
    where = (memory.id, memory.kind, memory.title, memory.path, memory.line)
    return ClaimView(*where, verdict, memory.word("last_verified"), memory.word("valid_until"), findings)


def _plan_citing(memory: Memory, citations: Sequence[Citation]) -> Change | None:
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
    """Return an item with the new hash, or as it was written if the hash is the same."""
    if read_citation(item)._replace(commit=None) == citation._replace(commit=None):
        return item
    own = item.items() if isinstance(item, dict) else ()
    return write_citation(citation) | {name: value for name, value in own if name not in ("ref", "hash", "commit")}


def _plan_renewal(memory: Memory, project: ProjectFiles, today: date) -> Change | None:
    """Plan to record what an entry cites as it is now, with lines that moved, and that a person has verified it.

    Raises:
        InvalidReference: something that it cites cannot be recorded.
    """
    if not cited_items(memory) or memory.place.scope == "global":
        return None
    items = []
    for item in cited_items(memory):
        try:
            citation = read_citation(item)
            found = check_citation(citation, project)
            reference = parse_reference(found.now) if found.verdict == "moved" else citation.reference
            items.append(_renewed(item, hash_citation(reference, project)))
        except InvalidReference as exc:
            raise InvalidReference(f"{item_text(item)} cannot be recorded: {exc}") from exc
    values: dict[str, Value] = {"cites": items, "last_verified": today.isoformat()}
    return plan_fields(memory, values | _without_flag(memory), "Its claims were verified.")


def _without_flag(memory: Memory) -> dict[str, Value]:
    flags = memory.words("flags")
    return {"flags": [flag for flag in flags if flag != STALE]} if STALE in flags else {}


def _plan_flag(memory: Memory, project: ProjectFiles, today: date) -> Change | None:
    """Plan to flag an entry whose claims drifted or are gone, or to take the flag from one that is fresh again.

    Nothing else of it changes. What a person keeps in MEMORY.md is not rewritten.
    """
    has_claim = "cites" in memory.metadata and memory.may_be_flagged
    if not has_claim or not memory.is_live or memory.is_in_people_file:
        return None
    state, flags = assess(memory, project, today), memory.words("flags")
    if state.is_stale and STALE not in flags:
        worst = next(one for one in state.findings if one.is_bad)
        reason = f"A claim is stale: {worst.ref} {worst.reason}."
        return plan_fields(memory, {"flags": with_words(memory, "flags", STALE)}, reason)
    if state.verdict in ("fresh", "moved") and STALE in flags:
        return plan_fields(memory, _without_flag(memory), "What it cites is as it was recorded.")
    return None


@dataclass(frozen=True)
class Citations:
    """What entries claim about code: recording it, and looking whether it still holds."""

    _vault: Vault
    _writer: Writer
    _memories: Memories

    def cite(
        self, wanted: str, references: Sequence[str] = (), *, from_text: bool = False, dry_run: bool = False
    ) -> CitedReport:
        """Record what an entry is about in the project's files, with a hash of the cited text.

        A reference is `path`, `path#L10-L20`, `path:10-20`, or a commit. `from_text` also records the code spans and
        links of its text; without this and without references they are only suggested.
        """
        found, project = self._memories.find(wanted), self._project()
        if found.place.scope == "global":
            raise UsageError(
                f"{found.id} is global and cannot cite the files of one project",
                "keep what is about this project in its own vault",
            )
        references = (references,) if isinstance(references, str) else references
        named = [_record_named(text, project) for text in references]
        known = {one.reference for one in (*read_citations(found), *named)}
        suggested: list[Citation] = []
        refused: list[str] = []
        for reference in suggest_references(found.text):
            try:
                suggested += [] if reference in known else [hash_citation(reference, project)]
            except InvalidReference as exc:
                refused.append(f"{reference.text}: {exc}")
        citations = [*named, *(suggested if from_text else ())]
        if len(cited_items(found)) + len(citations) > MOST_CITATIONS:
            raise UsageError(f"{found.id} would cite more than {MOST_CITATIONS} places", "cite fewer, or whole files")

        citing = [found] if citations else []
        run = self._memories.change_entries("cite", citing, lambda one: _plan_citing(one, citations), dry_run=dry_run)
        recorded, left = (tuple(one.reference.text for one in some) for some in (citations, suggested))
        return CitedReport(found.id, recorded, () if from_text else left, () if references else tuple(refused), run)

    def verify(
        self, *wanted: str, all: bool = False, update: bool = False, flag: bool = False, dry_run: bool = False
    ) -> ClaimsReport:
        """Compare what entries cite with what it said when it was recorded; without names every live entry that cites.

        With `update` somebody has looked at them: what they cite is recorded as it is now, with the day; all of them
        have to be asked for with `all`. `flag` puts those that drifted or are gone in the review queue, and takes those
        out that are as they were.
        """
        if update and not wanted and not all:
            raise UsageError("an update needs the entries that somebody has looked at", "name them, or say --all")
        if update and flag:
            raise UsageError("an update leaves nothing to flag", "give --update or --flag")
        project, today, chosen = self._project(), self._vault.today(), list(map(self._memories.find, wanted))
        memories = chosen or [one for one in self._claiming("cites") if one.is_live]
        notices = dict[str, None]()

        def plan(one: Memory) -> Change | None:
            if flag:
                return _plan_flag(one, project, today)
            try:
                return _plan_renewal(one, project, today) if update else None
            except InvalidReference as exc:
                notices[f"{one.path}:{one.line}: {one.id} stays as it is: {exc}"] = None
                return None

        run = self._memories.change_entries("verify", memories, plan, dry_run=dry_run)
        if run.run:
            keys = {(one.path, one.id) for one in memories}
            memories = [one for one in self._claiming("cites") if (one.path, one.id) in keys]
        cited = (one for one in memories if "cites" in one.metadata)
        claims = tuple(_view_claim(one, assess(one, project, today), project) for one in cited)
        return ClaimsReport(claims, run, tuple(notices))

    def verify_claims(self, *, dry_run: bool = False) -> RunReport:
        """Put the claims that drifted or are gone in the review queue, as a step of maintenance."""
        return self.verify(flag=True, dry_run=dry_run).run

    def _project(self) -> ProjectFiles:
        from memory_kb.store.project_files import project_files

        return project_files(self._vault)

    def problems(self) -> Iterator[Problem]:
        """Yield what `lint` says of the live entries that claim something."""
        project, today = self._project(), self._vault.today()
        for memory in self._claiming("cites", "valid_until"):
            if memory.is_live:
                for message, words in citation_problems(memory, assess(memory, project, today)):
                    yield Problem(memory.path, self._find_line(memory, words), message)

    def _find_line(self, memory: Memory, words: tuple[str, ...]) -> int:
        from memory_kb.markdown.document import find_line
        from memory_kb.markdown.splice import find_entry

        try:
            text = self._writer.read(memory.path).text
            return find_line(text, find_entry(text, memory.path, memory.id), *words)
        except (MemoryKBError, OSError):
            return memory.line

    def _claiming(self, *fields: str) -> list[Memory]:
        return [one for one in self._memories.with_fields(fields) if any(field in one.metadata for field in fields)]


def _record_named(text: str, project: ProjectFiles) -> Citation:
    try:
        return hash_citation(parse_reference(text), project)
    except InvalidReference as exc:
        hint = "name a file from the project's top: src/x.py, src/x.py#L10-L20"
        raise UsageError(f"{text[:200]!r} cannot be cited: {exc}", hint) from exc
