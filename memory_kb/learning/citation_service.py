"""The verbs cite and verify, and the findings of `lint` about citations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import MemoryKBError, UsageError
from memory_kb.index.lint import claim_span
from memory_kb.learning.citations import (
    CitedReport,
    ClaimsReport,
    assess,
    complain,
    plan_citing,
    plan_flags,
    plan_renewal,
    record,
    view_claim,
)
from memory_kb.learning.references import (
    MOST_CITATIONS,
    Citation,
    InvalidReference,
    cited_items,
    parse_reference,
    read_citations,
    suggest_references,
)
from memory_kb.markdown.splice import find_entry
from memory_kb.model import Problem
from memory_kb.reports import RunReport
from memory_kb.store.plan import Memory, Plan
from memory_kb.store.project import project_files

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


class Citations:
    """What entries claim about code: recording it, and looking whether it still holds."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store

    def cite(
        self, wanted: str, references: Sequence[str] = (), *, from_text: bool = False, dry_run: bool = False
    ) -> CitedReport:
        """Record what an entry is about in the project's files, with a hash of the cited text.

        Args:
            wanted: the entry.
            references: `path`, `path#L10-L20`, `path:10-20`, or a commit.
            from_text: also the code spans and links of its text that can be recorded.
                Without this and without references they are only suggested.
            dry_run: write nothing.

        Raises:
            UsageError: a reference cannot be recorded, or the entry is global.
            UnknownEntry: there is no such entry.
        """
        found, project = self._store.find(wanted), project_files(self._vault)
        if found.place.scope == "global":
            raise UsageError(
                f"{found.id} is global and cannot cite the files of one project",
                "keep what is about this project in its own vault",
            )
        references = (references,) if isinstance(references, str) else references
        named: list[Citation] = []
        for text in references:
            try:
                named.append(record(parse_reference(text), project))
            except InvalidReference as exc:
                hint = "name a file from the project's top: src/x.py, src/x.py#L10-L20"
                raise UsageError(f"{text[:200]!r} cannot be cited: {exc}", hint) from exc
        known = {one.reference for one in (*read_citations(found), *named)}
        suggested: list[Citation] = []
        refused: list[str] = []
        for reference in suggest_references(found.text):
            try:
                suggested += [] if reference in known else [record(reference, project)]
            except InvalidReference as exc:
                refused.append(f"{reference.text}: {exc}")
        citations = [*named, *(suggested if from_text else ())]
        if len(cited_items(found)) + len(citations) > MOST_CITATIONS:
            raise UsageError(f"{found.id} would cite more than {MOST_CITATIONS} places", "cite fewer, or whole files")

        def plan(memories: Sequence[Memory]) -> Plan:
            return [plan_citing(one, citations) for one in _same([found], memories)]

        run = self._store.carry_out("cite", plan, plan([found]) if citations else (), dry_run=dry_run)
        recorded, left = (tuple(one.reference.text for one in some) for some in (citations, suggested))
        return CitedReport(found.id, recorded, () if from_text else left, () if references else tuple(refused), run)

    def verify(
        self, *wanted: str, all: bool = False, update: bool = False, flag: bool = False, dry_run: bool = False
    ) -> ClaimsReport:
        """Compare what entries cite with what it said when it was recorded.

        Args:
            wanted: the entries; every live one that cites something when none is named.
            all: every one of them, said aloud, for `update`.
            update: somebody has looked at them: record what they cite as it is now, and the day.
            flag: put those that drifted or are gone in the review queue, and take those out that are as they were.
            dry_run: write nothing.

        Raises:
            UsageError: an update names no entries.
            UnknownEntry: there is no such entry.
        """
        if update and not wanted and not all:
            raise UsageError("an update needs the entries that somebody has looked at", "name them, or say --all")
        if update and flag:
            raise UsageError("an update leaves nothing to flag", "give --update or --flag")
        project, today, chosen = project_files(self._vault), self._vault.today(), list(map(self._store.find, wanted))
        memories = chosen or [one for one in self._claiming("cites") if one.is_live]
        run, notices = RunReport(None, "verify"), tuple[str, ...]()

        def renew(fresh: Sequence[Memory]) -> Plan:
            return plan_renewal(_same(memories, fresh), project_files(self._vault), today)[0]

        def set_flags(fresh: Sequence[Memory]) -> Plan:
            return plan_flags(_same(memories, fresh), lambda one: assess(one, project, today))

        if update:
            changes, notices = plan_renewal(memories, project, today)
            run = self._store.carry_out("verify", renew, changes, dry_run=dry_run)
        elif flag:
            run = self._store.carry_out("verify", set_flags, dry_run=dry_run)
        if run.run:
            memories = _same(memories, self._claiming("cites"))
        cited = (one for one in memories if "cites" in one.metadata)
        return ClaimsReport(tuple(view_claim(one, assess(one, project, today), project) for one in cited), run, notices)

    def verify_claims(self, *, dry_run: bool = False) -> RunReport:
        """Put the claims that drifted or are gone in the review queue, as a step of maintenance."""
        return self.verify(flag=True, dry_run=dry_run).run

    def problems(self) -> Iterator[Problem]:
        """Yield what `lint` says of the live entries that claim something."""
        project, today = project_files(self._vault), self._vault.today()
        for memory in self._claiming("cites", "valid_until"):
            if memory.is_live:
                for message in complain(memory, assess(memory, project, today)):
                    yield Problem(memory.path, self._line_of_claim(memory, message), message)

    def _line_of_claim(self, memory: Memory, message: str) -> int:
        try:
            text = self._writer.read(memory.path).text
            place = claim_span(text, find_entry(text, memory.path, memory.id), message).start
        except (MemoryKBError, OSError):
            return memory.line
        return text.count("\n", 0, place) + 1

    def _claiming(self, *fields: str) -> list[Memory]:
        return [one for one in self._store.with_fields(fields) if any(field in one.metadata for field in fields)]


def _same(wanted: Sequence[Memory], memories: Sequence[Memory]) -> list[Memory]:
    """Return the entries of a fresh reading that are the same as some read before."""
    keys = {(one.path, one.id) for one in wanted}
    return [one for one in memories if (one.path, one.id) in keys]
