"""The verb extract: ask a language model what a session taught, one scope at a time."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import MemoryKBError, ProviderFailed, UsageError, explain_failure
from memory_kb.learning.extraction import Finished, NothingToAsk, ask, make_offers, make_questions, place_for
from memory_kb.learning.ingest import TAKEN_AWAY, Offer
from memory_kb.learning.prompt import ScopeQuestion
from memory_kb.learning.scopes import Scope
from memory_kb.model import EVERYTHING, Location, make_place
from memory_kb.providers.base import Llm
from memory_kb.providers.spending import Metered
from memory_kb.reports import RunReport
from memory_kb.store.plan import Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.ingest import Taken
    from memory_kb.learning.review_gate import SessionEvidence
    from memory_kb.learning.stages import Stages
    from memory_kb.providers.spending import SpendLog
    from memory_kb.store.logs import ExtractionMark
    from memory_kb.store.session_log import SessionFiles
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


#: The outcomes of a scope that had what it needed and came to its end.
SUCCEEDED = ("done", "quiet", "unchanged", "empty")


NOTHING_USED = Metered()


class Kept(NamedTuple):
    """A learning and what became of it: created, reinforced, known, forgotten or refused."""

    id: str
    path: str
    action: str
    title: str
    message: str = ""


class DropCount(NamedTuple):
    """How many learnings of an answer were not kept for one reason."""

    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class ScopeReport:
    """What one scope came to.

    Attributes:
        outcome: `done`; `quiet` when there was nothing worth keeping; `unchanged` when the same
            was dealt with before; `empty` when there was nothing to look at; `skipped` for want of
            a model; `failed`; `planned` by a dry run.
        message: why, in one sentence.
    """

    scope: str
    outcome: str
    message: str = ""
    used: Metered = NOTHING_USED
    kept: tuple[Kept, ...] = ()
    dropped: tuple[DropCount, ...] = ()

    def count(self, action: str) -> int:
        """Return how many learnings had this action."""
        return sum(one.action == action for one in self.kept)


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What an extraction came to; `runs` are what it wrote, each to be undone by its name."""

    session: str
    scopes: tuple[ScopeReport, ...]
    used: Metered
    runs: tuple[RunReport, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def was_taken_away(self) -> int:
        """How many learnings are not kept, since they were undone or deleted before."""
        return sum(kept.message == TAKEN_AWAY for one in self.scopes for kept in one.kept)

    @property
    def failed(self) -> tuple[ScopeReport, ...]:
        """The scopes that went wrong."""
        return tuple(one for one in self.scopes if one.outcome == "failed")

    @property
    def is_failure(self) -> bool:
        """Whether every scope that a model was asked for went wrong."""
        return bool(self.failed) and not any(one.outcome in ("done", "quiet") for one in self.scopes)

    @property
    def summary(self) -> str:
        """How many of the scopes succeeded, or would be asked for."""
        planned = sum(one.outcome == "planned" for one in self.scopes)
        if planned:
            return f"{planned}/{len(self.scopes)} scopes would be asked for"
        succeeded = sum(one.outcome in SUCCEEDED for one in self.scopes)
        return f"{succeeded}/{len(self.scopes)} scopes succeeded"


NO_MODEL = "no language model is configured"


@dataclass(frozen=True, slots=True)
class _Extracting:
    """A session that a model is asked about, the model, and what it was asked already."""

    session: Finished
    llm: Llm
    meter: SpendLog
    done: frozenset[str]
    again: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Consulted:
    """What a scope returned, before it is stored."""

    report: ScopeReport
    offers: tuple[Offer, ...] = ()
    marks: tuple[ExtractionMark, ...] = ()


class Extraction:
    """The verb extract."""

    def __init__(
        self,
        vault: Vault,
        writer: Writer,
        store: EntryStore,
        evidence: SessionEvidence,
        stages: Stages,
        sessions: SessionFiles,
        read_documents: Callable[[Location], Mapping[str, str]],
    ) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._evidence = evidence
        self._stages = stages
        self._sessions = sessions
        self._read_documents = read_documents

    def extract(
        self, session: str, *, scopes: Sequence[str] | None = None, again: bool = False, dry_run: bool = False
    ) -> ExtractionReport:
        """Learn from a session that is over, scope by scope.

        A language model reads what was said and done; each scope is asked for by itself, and what
        goes wrong in one is reported and does not stop the others. Without a model nothing is extracted.
        What was dealt with before is not asked again.

        Args:
            session: its id, or a unique beginning of it.
            scopes: their names; all ten when not given.
            again: ask again what was asked before, and keep what was undone or deleted since.
            dry_run: ask nothing and write nothing; return what it would cost.

        Raises:
            UnreadableInput: there is no such session, or a note cannot be written.
            UsageError: there is no scope of a name.
            VaultBusy: another process has been writing for a minute.
        """
        from memory_kb.learning.scopes import choose_scopes
        from memory_kb.providers.choose import choose_llm
        from memory_kb.providers.spending import SpendLog
        from memory_kb.store.logs import ExtractionLog
        from memory_kb.store.session_log import find_id

        found = find_id(session, self._sessions.ids())
        chosen = choose_scopes((scopes,) if isinstance(scopes, str) else scopes)
        settings = self._vault.settings.llm
        meter = SpendLog(self._vault.machine / "log" / "spend.jsonl", settings.daily_spend, runs=settings.daily_runs)
        llm, why_not = None, NO_MODEL
        if settings.provider not in ("none", "offline"):
            try:
                llm = choose_llm(settings, self._vault.environ, meter)
            except ProviderFailed as exc:
                why_not = explain_failure(exc)
        if llm is None:
            skipped = tuple(ScopeReport(scope.name, "skipped", why_not) for scope in chosen)
            return ExtractionReport(found, skipped, NOTHING_USED)
        done = frozenset[str]() if again else ExtractionLog(self._vault.machine / "log").done()
        extracting = _Extracting(self._finished(found), llm, meter, done, again, dry_run)
        reports: list[ScopeReport] = []
        runs: list[RunReport] = []
        first = tuple(scope for scope in chosen if not scope.is_rollup)
        # A rollup reads what the scopes before it have just written.
        for batch in filter(None, (first, *((scope,) for scope in chosen if scope.is_rollup))):
            made, run = self._run_batch(batch, extracting)
            reports += made
            runs += [run] if run else []
        used = functools.reduce(Metered.plus, (one.used for one in reports), NOTHING_USED) if dry_run else meter.total
        notices = tuple(dict.fromkeys(notice for run in runs for notice in run.notices))
        return ExtractionReport(found, tuple(reports), used, tuple(runs), notices)

    def _run_batch(
        self, scopes: Sequence[Scope], extracting: _Extracting
    ) -> tuple[list[ScopeReport], RunReport | None]:
        """Ask for some scopes and keep what they give, as one run."""
        from memory_kb.store.logs import ExtractionLog

        session, log = extracting.session, ExtractionLog(self._vault.machine / "log")
        memories = self._memories_for(scopes, session)
        consulted = [self._consult(scope, memories, extracting) for scope in scopes]
        offers = self._with_times([offer for one in consulted for offer in one.offers], session)
        marks = [mark for one in consulted for mark in one.marks]
        if not offers:
            log.add(marks)
            return [one.report for one in consulted], None
        try:
            with self._writer.lock(*{offer.place.scope for offer in offers}):
                gate = self._evidence.gate_for(offers)
                intake, run = self._store.take_in(
                    "extract", offers, again=extracting.again, dry_run=extracting.dry_run, gate=gate
                )
        except MemoryKBError as exc:
            failed = [
                replace(one.report, outcome="failed", message=_explain(exc)) if one.offers else one.report
                for one in consulted
            ]
            return failed, None
        taken = iter(intake.taken)
        reports = [replace(one.report, kept=tuple(_make_kept(next(taken)) for _ in one.offers)) for one in consulted]
        if not run.conflicts:
            log.add(marks)
        return reports, run

    def _memories_for(self, scopes: Sequence[Scope], session: Finished) -> tuple[Memory, ...]:
        """Return the entries that the questions of some scopes may show."""
        levels: set[str] = set()
        for scope in scopes:
            with suppress(NothingToAsk):
                levels |= {place_for(scope, session).scope, scope.sources or "project"}
        return self._store.all(EVERYTHING._replace(scopes=tuple(sorted(levels)))) if levels else ()

    def _with_times(self, offers: Sequence[Offer], session: Finished) -> Sequence[Offer]:
        """Give what was learned the time of the events it rests on: a log may be read long after them."""
        from memory_kb.learning.ingest import with_times

        if not offers:
            return offers
        return with_times(offers, self._sessions.read(session.id), session.conversation.day or None)

    def _consult(self, scope: Scope, memories: Sequence[Memory], extracting: _Extracting) -> _Consulted:
        """Ask the model about one scope; whatever goes wrong stays with this scope."""
        try:
            questions = make_questions(scope, extracting.session, memories)
        except NothingToAsk as exc:
            return _Consulted(ScopeReport(scope.name, "empty", str(exc)))
        new = [question for question in questions if question.digest not in extracting.done]
        if not new:
            return _Consulted(ScopeReport(scope.name, "unchanged", "nothing is new since it was asked before"))
        if extracting.dry_run:
            used = functools.reduce(Metered.plus, map(self._estimate, new))
            return _Consulted(ScopeReport(scope.name, "planned", used=used))
        return self._put(scope, new, extracting)

    def _estimate(self, question: ScopeQuestion) -> Metered:
        from memory_kb.providers.choose import estimate
        from memory_kb.text import count_tokens

        size = count_tokens(question.prompt) + count_tokens(json.dumps(question.schema))
        return estimate(self._vault.settings.llm, size)

    def _put(self, scope: Scope, questions: Sequence[ScopeQuestion], extracting: _Extracting) -> _Consulted:
        """Put the questions of a scope to the model."""
        from memory_kb.store.logs import ExtractionMark

        session, before = extracting.session, extracting.meter.total
        problems: list[str] = []
        dropped: Counter[str] = Counter()
        offers: list[Offer] = []
        marks: list[ExtractionMark] = []
        for question in questions:
            try:
                sifted = ask(extracting.llm, question)
            except Exception as exc:  # noqa: BLE001 - no answer whatever may end the scopes that follow
                problems.append(_explain(exc))
                continue
            dropped.update(sifted.dropped)
            offers += make_offers(question, sifted.found, session, self._vault.clock())
            mark = ExtractionMark(
                session=session.id,
                scope=scope.name,
                step=question.step.name,
                seq=session.conversation.seq,
                input=question.digest,
                time=self._vault.timestamp(),
                outcome="done" if sifted.found else "quiet",
                kept=len(sifted.found),
                dropped=len(sifted.dropped),
            )
            marks.append(mark)
        reasons = tuple(DropCount(reason, count) for reason, count in sorted(dropped.items()))
        outcome = "failed" if problems else "done" if offers else "quiet"
        message = "; ".join(dict.fromkeys(problems)) or ("" if offers else "nothing worth keeping")
        used = extracting.meter.total.plus(before, -1)
        report = ScopeReport(scope.name, outcome, message, used, (), reasons)
        return _Consulted(report, tuple(offers), tuple(marks))

    def _finished(self, session: str) -> Finished:
        """Return a session as it is to be learned from."""
        from memory_kb.learning.conversation import read_conversation

        conversation = read_conversation(self._sessions.read(session))
        place = Location()
        with suppress(UsageError):  # names that cannot be those of folders count for none
            if self._vault.memory:
                place = make_place("project", conversation.job, conversation.task if conversation.job else None)
        return Finished(
            session,
            place,
            conversation,
            self._stages.show(place.job),
            self._vault.folder.name,
            self._read_documents(place),
        )


def _make_kept(taken: Taken) -> Kept:
    draft = taken.offer.draft
    return Kept(taken.id, taken.path, taken.action, draft.title or "", taken.message)


def _explain(error: Exception) -> str:
    """Return a failure as one sentence."""
    if isinstance(error, ProviderFailed):
        return explain_failure(error)
    if isinstance(error, MemoryKBError):
        return f"{error}{f' ({error.hint})' if error.hint else ''}"
    return f"the answer could not be read ({type(error).__name__})"
