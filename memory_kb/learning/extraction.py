"""The verb extract: ask a language model what a session taught, one scope at a time, and keep what it answers."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memory_kb.errors import MemoryKBError, ProviderFailed, explain_failure
from memory_kb.learning.conversation import Conversation, RecordPiece, ShownRecord, read_conversation
from memory_kb.learning.extraction_answers import Extracted, sift
from memory_kb.learning.extraction_scopes import (
    FEWEST,
    ExtractionScope,
    ScopeQuestion,
    choose_scopes,
    choose_sources,
    find_known,
    show_sources,
)
from memory_kb.learning.ingest import DELETED_BEFORE, Learning, newest
from memory_kb.learning.memories import Memories
from memory_kb.learning.render_entry import Draft, without_empty
from memory_kb.learning.stages import Stages
from memory_kb.learning.task_files import TASK_DOCUMENTS, TaskFiles
from memory_kb.learning.text_comparison import fingerprint
from memory_kb.learning.trust import RuleGate
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import Location, place_of_work
from memory_kb.providers.models import Models, estimate
from memory_kb.providers.protocols import Llm
from memory_kb.providers.spending import Metered
from memory_kb.reports import RunReport
from memory_kb.store.logs import ExtractionLog
from memory_kb.store.session_log import SessionFiles, find_id
from memory_kb.text import count_tokens
from memory_kb.vault import Vault

#: Seconds that a model may take for one question.
TIMEOUT = 60.0
_NOTHING = Metered()


@dataclass(frozen=True, slots=True)
class FinishedSession:
    """A session that is over, with the stage of its project; `documents` are as in `TASK_DOCUMENTS`."""

    id: str
    place: Location
    conversation: Conversation
    phase: str
    documents: Mapping[str, str]


class NothingToAsk(Exception):
    """A scope has nothing to ask about; the message says what is missing."""


def make_questions(
    scope: ExtractionScope, session: FinishedSession, memories: Sequence[Memory]
) -> tuple[ScopeQuestion, ...]:
    """Return the questions of a scope, or raise NothingToAsk."""
    place, level = session.place, scope.level
    if (level == "task" and not place.task) or (level == "job" and not place.job):
        raise NothingToAsk(f"the session belongs to no {level}")
    if level not in ("task", "session"):
        learning_type = "proxy" if scope.reads == "human" else "task"
        place = Location(level, place.job if level == "job" else None, learning_type=learning_type)
    sources, owner = tuple[Memory, ...](), session.id
    if scope.is_rollup:
        sources = choose_sources(scope, place, memories)
        if len(sources) < FEWEST:
            raise NothingToAsk(f"there are fewer than {FEWEST} learnings of the level below")
        owner = "/".join(filter(None, place[:3]))
    shown = show_sources(sources) if scope.is_rollup else _show_session(scope, session)
    return tuple(
        ScopeQuestion(scope, step, place, owner, shown, sources, find_known(step, place, memories))
        for step in scope.passes
    )


def _show_session(scope: ExtractionScope, session: FinishedSession) -> ShownRecord:
    talk, name = session.conversation, TASK_DOCUMENTS.get(scope.reads)
    text = session.documents.get(scope.reads, "").strip()
    if name and not text:
        raise NothingToAsk(f"there is no {name}")
    shown = {"human": talk.humans, "errors": talk.errors}.get(scope.reads, talk.execution)
    if not shown.passages:
        what = {"human": "nobody said anything", "errors": "nothing failed"}.get(scope.reads, "nothing was done")
        raise NothingToAsk(f"{what} in this session")
    if not name:
        return shown
    return ShownRecord((RecordPiece(0, name, text), *shown.passages), shown.head + 1, shown.missing)


def make_learnings(
    question: ScopeQuestion, found: Iterable[Extracted], session: FinishedSession, now: datetime
) -> Iterator[Learning]:
    """Yield learnings to be stored; their keys are what they rest on, so that another wording is known again."""
    scope, step = question.scope, question.step
    as_norm = ", as a norm to approve" if step.is_norm else ""
    reason = f"Extracted from session {session.id} ({scope.name}{as_norm})."
    counts: Counter[str] = Counter()
    for one in found:
        rests_on = sorted(_sources_of(one, question)) or [str(number) for number in one.numbers if number]
        base = f"{question.owner}/{scope.name}/{step.name}/{'+'.join(rests_on) or fingerprint(one.text)[:16]}"
        counts[base] += 1
        key = base if counts[base] == 1 else f"{base}#{counts[base]}"
        # A log may be read long after its events.
        said = newest(passage.ts for passage in question.shown.passages if passage.number in one.numbers)
        known = one.same_as
        draft = Draft(known.text, known.kind, known.title) if known else _make_draft(one, question, session, now)
        place, key = (known.place, f"{key}/again") if known else (question.place, key)
        yield Learning(draft, place, key, reason, session.id, said=said or session.conversation.day or None)


def _sources_of(one: Extracted, question: ScopeQuestion) -> list[Any]:
    return [question.sources[number - 1].id for number in one.numbers] if question.scope.is_rollup else []


def _make_draft(one: Extracted, question: ScopeQuestion, session: FinishedSession, now: datetime) -> Draft:
    scope, step = question.scope, question.step
    today = now.astimezone(UTC).date().isoformat()
    day = min(session.conversation.day or today, today)
    events = [str(number) if number else TASK_DOCUMENTS[scope.reads] for number in one.numbers]
    fields: dict[str, Value | None] = {
        "domain": scope.domain,
        "importance": scope.importance,
        "phase": session.phase,
        "status": "proposed" if step.is_norm else None,
        "institutional": step.is_norm or None,
        "extraction_scope": scope.name,
        "session_id": session.id,
        "session_task": session.conversation.task_text,
        **({"sources": _sources_of(one, question)} if scope.is_rollup else {"source_events": events}),
    }
    return Draft(
        f"## [{day}] {one.title}\n\n{one.body}",
        step.kind,
        one.title,
        one.tags,
        source="extracted",
        fields=without_empty(fields),
    )


class KeptLearning(NamedTuple):
    """A learning and what was decided about it: created, reinforced, known, forgotten or refused."""

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
    """The result of one scope, with the reason in one sentence.

    `outcome` is `done`, `quiet` (nothing worth keeping), `unchanged` (asked before), `empty` (nothing to look at),
    `skipped` (no model), `failed`, or `planned` by a dry run.
    """

    scope: str
    outcome: str
    message: str = ""
    used: Metered = _NOTHING
    kept: tuple[KeptLearning, ...] = ()
    dropped: tuple[DropCount, ...] = ()

    def count(self, action: str) -> int:
        """Return how many learnings had this action."""
        return sum(one.action == action for one in self.kept)


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """The result of an extraction; `runs` are the runs it wrote, which can be undone by name."""

    session: str
    scopes: tuple[ScopeReport, ...]
    runs: tuple[RunReport, ...] = ()

    @property
    def used(self) -> Metered:
        """What asking cost, or would cost."""
        return functools.reduce(Metered.plus, (one.used for one in self.scopes), _NOTHING)

    @property
    def was_taken_away(self) -> bool:
        """Whether some learnings are not kept, since they were undone or deleted before."""
        return any(kept.message == DELETED_BEFORE for one in self.scopes for kept in one.kept)

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
        outcomes = Counter(one.outcome for one in self.scopes)
        if outcomes["planned"]:
            return f"{outcomes['planned']}/{len(self.scopes)} scopes would be asked for"
        return f"{len(self.scopes) - outcomes['failed'] - outcomes['skipped']}/{len(self.scopes)} scopes succeeded"


class _Answer(NamedTuple):
    """What a model answered to a question, or the problem why it did not."""

    question: ScopeQuestion
    found: Sequence[Extracted] = ()
    dropped: Sequence[str] = ()
    problem: str = ""


def _ask(question: ScopeQuestion, llm: Llm) -> _Answer:
    try:
        found, dropped = sift(llm.complete(question.prompt, question.schema, timeout=TIMEOUT), question)
    except MemoryKBError as exc:
        return _Answer(question, problem=explain_failure(exc))
    except Exception as exc:  # noqa: BLE001 - no answer whatever may end the scopes that follow
        return _Answer(question, problem=f"the answer could not be read ({type(exc).__name__})")
    return _Answer(question, found, dropped)


@dataclass(frozen=True)
class Extraction:
    """The verb extract."""

    _vault: Vault
    _memories: Memories
    _rule_gate: RuleGate
    _stages: Stages
    _models: Models
    _sessions: SessionFiles
    _task_files: TaskFiles

    def extract(
        self, session: str, *, scopes: Sequence[str] | None = None, again: bool = False, dry_run: bool = False
    ) -> ExtractionReport:
        """Ask a language model what a finished session taught, scope by scope; without a model nothing is extracted.

        What goes wrong in one scope does not stop the others. What was asked before is not asked again, unless `again`,
        which also keeps what was undone or deleted since. A dry run asks nothing and returns what it would cost.
        """
        found = find_id(session, self._sessions.ids())
        chosen = choose_scopes((scopes,) if isinstance(scopes, str) else scopes)
        llm, why_not = None, "no language model is configured"
        try:
            llm = self._models.llm
        except ProviderFailed as exc:
            why_not = explain_failure(exc)
        if llm is None:
            return ExtractionReport(found, tuple(ScopeReport(one.name, "skipped", why_not) for one in chosen))
        done = frozenset[str]() if again else ExtractionLog(self._vault.machine / "log").done()
        finished, model = self._finished(found), None if dry_run else llm
        results = [self._extract_scope(scope, finished, done, model, again=again) for scope in chosen]
        return ExtractionReport(found, tuple(one for one, _ in results), tuple(run for _, run in results if run))

    def _extract_scope(
        self, scope: ExtractionScope, session: FinishedSession, done: frozenset[str], llm: Llm | None, *, again: bool
    ) -> tuple[ScopeReport, RunReport | None]:
        """Ask about one scope what is not `done`, and keep the answers; without a model return what asking would cost.

        A rollup reads what the scopes before it have just written.
        """
        try:
            questions = make_questions(scope, session, self._memories.all())
        except NothingToAsk as exc:
            return ScopeReport(scope.name, "empty", str(exc)), None
        new = [question for question in questions if question.digest not in done]
        if not new:
            return ScopeReport(scope.name, "unchanged", "nothing is new since it was asked before"), None
        if llm is None:
            sizes = (count_tokens(one.prompt) + count_tokens(json.dumps(one.schema)) for one in new)
            costs = (estimate(self._vault.settings.llm, size) for size in sizes)
            return ScopeReport(scope.name, "planned", used=functools.reduce(Metered.plus, costs)), None
        before, now = self._models.spent.total, self._vault.clock()
        asked = [_ask(question, llm) for question in new]
        used = self._models.spent.total.plus(before, -1)
        learnings = [one for each in asked for one in make_learnings(each.question, each.found, session, now)]
        problems = dict.fromkeys(one.problem for one in asked if one.problem)
        outcome = "failed" if problems else "done" if learnings else "quiet"
        message = "; ".join(problems) or ("" if learnings else "nothing worth keeping")
        dropped = Counter(reason for one in asked for reason in one.dropped)
        reasons = tuple(DropCount(reason, count) for reason, count in sorted(dropped.items()))
        answered = [one.question.digest for one in asked if not one.problem]
        report = ScopeReport(scope.name, outcome, message, used, dropped=reasons)
        return self._keep(report, learnings, answered, session.id, again=again)

    def _keep(
        self, report: ScopeReport, learnings: Sequence[Learning], answered: Sequence[str], session: str, *, again: bool
    ) -> tuple[ScopeReport, RunReport | None]:
        """Keep what a scope taught, and record the questions that were answered."""
        try:
            gate = self._rule_gate.gate_for(learnings)
            plan, run = self._memories.ingest("extract", learnings, again=again, gate=gate)
        except MemoryKBError as exc:
            return replace(report, outcome="failed", message=explain_failure(exc)), None
        if not run.conflicts:
            ExtractionLog(self._vault.machine / "log").add(answered, session, self._vault.clock())
        kept = tuple(
            KeptLearning(one.id, one.path, one.action, one.learning.draft.title or "", one.message)
            for one in plan.results
        )
        return replace(report, kept=kept), run if learnings else None

    def _finished(self, session: str) -> FinishedSession:
        talk = read_conversation(self._sessions.read(session))
        place = place_of_work(talk.job, talk.task) if self._vault.memory else Location()
        return FinishedSession(session, place, talk, self._stages.show(place.job), self._task_files.documents(place))
