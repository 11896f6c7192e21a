"""How an extraction goes: question by question, each scope by itself, then what was learned is taken in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_kb.errors import MemoryKBError, ProviderFailed, explain_failure
from memory_kb.filters import EVERYTHING
from memory_kb.learning.extraction.scopereports import Dropped, ExtractionReport, Kept, ScopeReport, Used, add_up

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.extraction.asking import Question
    from memory_kb.learning.extraction.extract import Finished
    from memory_kb.learning.extraction.scopes import Scope
    from memory_kb.learning.intake import Offer, Taken
    from memory_kb.learning.memories import Memory
    from memory_kb.notes.extractions import Mark
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.ports import Llm
    from memory_kb.providers.metering import Meter
    from memory_kb.reports import RunReport
    from memory_kb.verbs.sessions import Sessions
    from memory_kb.verbs.weighing import SessionEvidence

NO_MODEL = "no language model is configured"


@dataclass(frozen=True, slots=True)
class _Door:
    """The way to a language model: the model, or why there is none, and what was asked already."""

    llm: Llm | None
    why_not: str
    meter: Meter
    done: frozenset[str]
    again: bool
    dry_run: bool

    @property
    def used(self) -> Used:
        return Used(*self.meter.total)


@dataclass(frozen=True, slots=True)
class _Consulted:
    """What a scope was told, before it is taken in."""

    report: ScopeReport
    offers: tuple[Offer, ...] = ()
    marks: tuple[Mark, ...] = ()


class Consultation:
    """Asking a model about a session, scope by scope."""

    def __init__(
        self, vault: Vault, writer: Writer, store: EntryStore, evidence: SessionEvidence, sessions: Sessions
    ) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._evidence = evidence
        self._sessions = sessions

    def extract(self, session: Finished, scopes: Sequence[Scope], *, again: bool, dry_run: bool) -> ExtractionReport:
        door = self._open_door(again=again, dry_run=dry_run)
        reports: list[ScopeReport] = []
        runs: list[RunReport] = []
        first = tuple(scope for scope in scopes if not scope.is_rollup)
        # A rollup reads what the scopes before it have just written.
        for batch in filter(None, (first, *((scope,) for scope in scopes if scope.is_rollup))):
            done, run = self._run_batch(batch, session, door)
            reports += done
            runs += [run] if run else []
        used = add_up(one.used for one in reports) if dry_run else door.used
        notices = tuple(dict.fromkeys(notice for run in runs for notice in run.notices))
        return ExtractionReport(session.id, tuple(reports), used, tuple(runs), notices)

    def _open_door(self, *, again: bool, dry_run: bool) -> _Door:
        from memory_kb.notes.extractions import ExtractionLog
        from memory_kb.providers.choosing import choose_llm
        from memory_kb.providers.metering import Meter

        chosen = self._vault.settings.llm
        meter = Meter(self._vault.machine / "log" / "spend.jsonl", chosen.daily_spend, chosen.daily_runs)
        done = frozenset[str]() if again else ExtractionLog(self._vault.machine / "log").done()
        if chosen.provider in ("none", "offline"):
            return _Door(None, NO_MODEL, meter, done, again, dry_run)
        try:
            return _Door(choose_llm(chosen, self._vault.environ, meter), NO_MODEL, meter, done, again, dry_run)
        except ProviderFailed as exc:
            return _Door(None, explain_failure(exc), meter, done, again, dry_run)

    def _run_batch(
        self, scopes: Sequence[Scope], session: Finished, door: _Door
    ) -> tuple[list[ScopeReport], RunReport | None]:
        """Ask for some scopes and keep what they give, as one run."""
        memories = self._memories_for(scopes, session) if door.llm else ()
        consulted = [self._consult(scope, session, memories, door) for scope in scopes]
        consulted = self._with_times(consulted, session)
        offers = [offer for one in consulted for offer in one.offers]
        if not offers:
            self._mark(consulted)
            return [one.report for one in consulted], None
        try:
            with self._writer.lock(*{offer.place.scope for offer in offers}):
                intake, run = self._store.take_in(
                    "extract", offers, again=door.again, dry_run=door.dry_run, gate=self._evidence.gate_for(offers)
                )
        except MemoryKBError as exc:
            failed = [
                replace(one.report, outcome="failed", message=_explain(exc)) if one.offers else one.report
                for one in consulted
            ]
            return failed, None
        taken = iter(intake.taken)
        reports = [replace(one.report, kept=tuple(_tell(next(taken)) for _ in one.offers)) for one in consulted]
        if not run.conflicts:
            self._mark(consulted)
        return reports, run

    def _memories_for(self, scopes: Sequence[Scope], session: Finished) -> tuple[Memory, ...]:
        """Return the entries that the questions of some scopes may show."""
        from memory_kb.learning.extraction.extract import NothingToAsk, place_for

        levels: set[str] = set()
        for scope in scopes:
            try:
                levels |= {place_for(scope, session).scope, scope.sources or "project"}
            except NothingToAsk:
                continue
        return self._store.all(EVERYTHING._replace(scopes=tuple(sorted(levels)))) if levels else ()

    def _consult(self, scope: Scope, session: Finished, memories: Sequence[Memory], door: _Door) -> _Consulted:
        """Ask a model about one scope; whatever goes wrong stays with this scope."""
        from memory_kb.learning.extraction.extract import NothingToAsk, make_questions

        if door.llm is None:
            return _Consulted(ScopeReport(scope.name, "skipped", door.why_not))
        try:
            questions = make_questions(scope, session, memories)
        except NothingToAsk as exc:
            return _Consulted(ScopeReport(scope.name, "empty", str(exc)))
        new = [question for question in questions if question.digest not in door.done]
        if not new:
            return _Consulted(ScopeReport(scope.name, "unchanged", "nothing is new since it was asked before"))
        if door.dry_run:
            return _Consulted(ScopeReport(scope.name, "planned", used=add_up(map(self._estimate, new))))
        return self._put(scope, new, session, door)

    def _estimate(self, question: Question) -> Used:
        import json

        from memory_kb.providers.metering import estimate
        from memory_kb.text import count_tokens

        return Used(
            *estimate(
                self._vault.settings.llm, count_tokens(question.prompt) + count_tokens(json.dumps(question.schema))
            )
        )

    def _put(self, scope: Scope, questions: Sequence[Question], session: Finished, door: _Door) -> _Consulted:
        """Put the questions of a scope to the model."""
        from memory_kb.learning.extraction.extract import ask, make_offers
        from memory_kb.notes.extractions import Mark

        assert door.llm is not None
        before = door.used
        problems: list[str] = []
        dropped: Counter[str] = Counter()
        offers: list[Offer] = []
        marks: list[Mark] = []
        for question in questions:
            try:
                sifted = ask(door.llm, question)
            except Exception as exc:  # noqa: BLE001 - no answer whatever may end the scopes that follow
                problems.append(_explain(exc))
                continue
            dropped.update(sifted.dropped)
            offers += make_offers(question, sifted.found, session, self._vault.clock())
            outcome, seq = "done" if sifted.found else "quiet", session.conversation.seq
            counts = len(sifted.found), len(sifted.dropped)
            marks.append(
                Mark(
                    session.id,
                    scope.name,
                    question.step.name,
                    seq,
                    question.digest,
                    self._vault.timestamp(),
                    outcome,
                    *counts,
                )
            )
        reasons = tuple(Dropped(reason, count) for reason, count in sorted(dropped.items()))
        outcome = "failed" if problems else "done" if offers else "quiet"
        message = "; ".join(dict.fromkeys(problems)) or ("" if offers else "nothing worth keeping")
        return _Consulted(
            ScopeReport(scope.name, outcome, message, door.used.plus(before, -1), (), reasons),
            tuple(offers),
            tuple(marks),
        )

    def _with_times(self, consulted: Sequence[_Consulted], session: Finished) -> list[_Consulted]:
        """Give what was learned the time of the events it rests on: a log may be read long after them."""
        from memory_kb.learning.moments import with_times

        offers = [offer for one in consulted for offer in one.offers]
        dated = iter(with_times(offers, self._sessions.replay(session.id), session.conversation.day or None))
        return [replace(one, offers=tuple(next(dated) for _ in one.offers)) for one in consulted]

    def _mark(self, consulted: Sequence[_Consulted]) -> None:
        from memory_kb.notes.extractions import ExtractionLog

        ExtractionLog(self._vault.machine / "log").add(mark for one in consulted for mark in one.marks)


def _tell(taken: Taken) -> Kept:
    draft = taken.offer.draft
    return Kept(taken.id, taken.path, taken.action, draft.title or "", taken.message)


def _explain(error: Exception) -> str:
    """Return a failure as one sentence."""
    if isinstance(error, ProviderFailed):
        return explain_failure(error)
    if isinstance(error, MemoryKBError):
        return f"{error}{f' ({error.hint})' if error.hint else ''}"
    return f"the answer could not be read ({type(error).__name__})"
