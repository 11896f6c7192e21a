"""What entries claim about code: recording it, and looking whether it still holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import MemoryKBError, UsageError
from memory_kb.store.project import project_files

if TYPE_CHECKING:
    from memory_kb.learning.citations import Citation, CitedReport, ClaimsReport, Reference
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.rules import Rules
    from memory_kb.model import Problem, RunReport
    from memory_kb.store.plan import Change, Memory
    from memory_kb.store.project import ProjectFiles
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

_CITES, _LAST_DAY = "cites", "valid_until"


class Citations:
    """The verbs cite and verify, and what `lint` says of claims."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore, rules: Rules) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._rules = rules

    def cite(
        self, wanted: str, references: Sequence[str] = (), *, from_text: bool = False, dry_run: bool = False
    ) -> CitedReport:
        """Record what an entry is about in the project's files, with a hash of the cited text.

        Args:
            wanted: the entry.
            references: `path`, `path#L10-L20`, `path:10-20`, or a commit.
            from_text: also those that stand in its text as code spans or links and can be recorded.
                Without this and without references they are only told.
            dry_run: write nothing.

        Raises:
            UsageError: a reference cannot be recorded, or the entry is global.
            UnknownEntry: there is no such entry.
        """
        from memory_kb.learning.citations import (
            MOST_CITATIONS,
            CitedReport,
            Unrecordable,
            cited_items,
            plan_citing,
            read_citations,
            record,
            suggest_references,
        )

        found, project = self._rules.find(wanted), project_files(self._vault)
        if found.place.scope == "global":
            raise UsageError(
                f"{found.id} is global and cannot cite the files of one project",
                "keep what is about this project in its own vault",
            )
        named = [
            self._record(reference, project)
            for reference in ((references,) if isinstance(references, str) else references)
        ]
        known = {one.reference for one in (*read_citations(found)[0], *named)}
        suggested: list[Citation] = []
        refused: list[str] = []
        for reference in suggest_references(found.text):
            if reference in known:
                continue
            try:
                suggested.append(record(reference, project))
            except Unrecordable as exc:
                refused.append(f"{reference.text}: {exc}")
        citations = [*named, *(suggested if from_text else ())]
        if len(cited_items(found)) + len(citations) > MOST_CITATIONS:
            raise UsageError(f"{found.id} would cite more than {MOST_CITATIONS} places", "cite fewer, or whole files")

        def plan(memories: Sequence[Memory]) -> Sequence[Change]:
            return [change for one in _same([found], memories) if (change := plan_citing(one, citations))]

        run = self._store.carry_out("cite", plan, plan([found]) if citations else (), dry_run=dry_run)
        left = () if from_text else tuple(one.reference.text for one in suggested)
        return CitedReport(
            found.id,
            tuple(one.reference.text for one in citations),
            left,
            tuple(refused) if not references else (),
            run,
        )

    def verify(
        self, *wanted: str, all: bool = False, update: bool = False, flag: bool = False, dry_run: bool = False
    ) -> ClaimsReport:
        """Look whether what entries cite still says what it said.

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
        from memory_kb.learning.citations import ClaimsReport, assess, plan_flags, plan_renewal, view_claim
        from memory_kb.model import RunReport

        if update and not wanted and not all:
            raise UsageError("an update needs the entries that somebody has looked at", "name them, or say --all")
        if update and flag:
            raise UsageError("an update leaves nothing to flag", "give --update or --flag")
        project, today, chosen = project_files(self._vault), self._vault.today(), list(map(self._rules.find, wanted))
        memories = [one for one in (chosen or self._claiming(_CITES)) if one.is_live or chosen]
        run, notices = RunReport(None, "verify"), tuple[str, ...]()
        if update:
            renewal = plan_renewal(memories, project, today)
            notices = renewal.notices
            run = self._store.carry_out(
                "verify",
                lambda fresh: plan_renewal(_same(memories, fresh), project_files(self._vault), today).changes,
                renewal.changes,
                dry_run=dry_run,
            )
        elif flag:
            run = self._store.carry_out(
                "verify",
                lambda fresh: plan_flags(_same(memories, fresh), lambda one: assess(one, project, today)),
                dry_run=dry_run,
            )
        if run.run:
            memories = _same(memories, self._claiming(_CITES))
        claims = tuple(
            view_claim(one, assess(one, project, today), project) for one in memories if "cites" in one.metadata
        )
        return ClaimsReport(claims, run, notices)

    def verify_claims(self, *, dry_run: bool = False) -> RunReport:
        """Put the claims that drifted or are gone in the review queue, as a step of maintenance."""
        return self.verify(flag=True, dry_run=dry_run).run

    def problems(self) -> Iterator[Problem]:
        from memory_kb.learning.citations import assess, complain
        from memory_kb.model import Problem

        project, today = project_files(self._vault), self._vault.today()
        for memory in self._claiming(_CITES, _LAST_DAY):
            if memory.is_live:
                for message in complain(memory, assess(memory, project, today)):
                    yield Problem(memory.path, self._line_of_claim(memory, message), message)

    def _line_of_claim(self, memory: Memory, message: str) -> int:
        from memory_kb.index.lint import claim_span
        from memory_kb.markdown.splice import find_entry

        try:
            text = self._writer.read(memory.path).text
            place = claim_span(text, find_entry(text, memory.path, memory.id), message).start
        except (MemoryKBError, OSError):
            return memory.line
        return text.count("\n", 0, place) + 1

    def _record(self, text: str, project: ProjectFiles) -> Citation:
        """Return a citation of what a person names.

        Raises:
            UsageError: it cannot be recorded.
        """
        from memory_kb.learning.citations import InvalidReference, Unrecordable, parse_reference, record

        try:
            return record(self._as_file(parse_reference(text), project), project)
        except (InvalidReference, Unrecordable) as exc:
            raise UsageError(
                f"{text[:200]!r} cannot be cited: {exc}",
                "name a file from the project's top: src/x.py, src/x.py#L10-L20",
            ) from exc

    def _as_file(self, reference: Reference, project: ProjectFiles) -> Reference:
        """Return a reference; a file that is called like a commit which is not here is that file."""
        from memory_kb.learning.citations import Reference

        is_file = (
            bool(reference.commit)
            and project.find_commit(reference.text) is None
            and project.read(reference.text).state != "missing"
        )
        return Reference(reference.text) if is_file else reference

    def _claiming(self, *words: str) -> list[Memory]:
        """Return the entries whose frontmatter has one of these fields."""
        return [memory for memory in self._store.all() if any(word in memory.metadata for word in words)]


def _same(wanted: Sequence[Memory], memories: Sequence[Memory]) -> list[Memory]:
    """Return the entries of a fresh reading that are the same as some read before."""
    keys = {(one.path, one.id) for one in wanted}
    return [one for one in memories if (one.path, one.id) in keys]
