"""Ask a language model what a session taught, one scope at a time."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import MemoryKBError, ProviderFailed, UsageError, explain_failure
from memory_kb.learning.checkpoints import (
    ASSUMPTIONS,
    PREMORTEM,
    Checkpoints,
    Milestone,
    check_checkpoint,
    check_plan,
    frame_plan,
    parse_checkpoints,
    plan_checkpoint,
    plan_premortem,
    show_checkpoints,
)
from memory_kb.learning.conversation import Conversation, ShownRecord
from memory_kb.learning.ingest import TAKEN_AWAY, Offer, newest
from memory_kb.learning.new_entry import Draft, fingerprint
from memory_kb.learning.prompt import (
    FEWEST,
    Extracted,
    ScopeQuestion,
    Sifted,
    choose_sources,
    find_known,
    names_of,
    show_sources,
    sift,
    with_document,
)
from memory_kb.learning.scopes import Scope
from memory_kb.markdown.splice import Value
from memory_kb.model import EVERYTHING, Location, make_place
from memory_kb.providers.base import Llm
from memory_kb.providers.spending import Metered
from memory_kb.reports import RunReport
from memory_kb.store.files import NoteText
from memory_kb.store.plan import Change, Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.ingest import Taken
    from memory_kb.learning.review_gate import SessionEvidence
    from memory_kb.learning.stages import Stages
    from memory_kb.providers.spending import Meter
    from memory_kb.store.logs import ExtractionMark
    from memory_kb.store.session_log import SessionFiles
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


#: Seconds that a model may take for one question.
TIMEOUT = 60.0
#: The documents that scopes hold the execution against, by what they read, and their name in words.
DOCUMENTS: Mapping[str, tuple[str, str]] = {
    "intent": ("INTENT.md", "the intent"),
    "premortem": (".premortem.md", "a pre-mortem"),
    "assumptions": (".assumptions.jsonl", "assumptions"),
}


@dataclass(frozen=True, slots=True)
class Finished:
    """A session that is over, with what is beside it.

    Attributes:
        phase: the stage that the project is in.
        project: the name of the project, which learnings for all projects may not mention.
        documents: the texts beside it that its execution is held against, by the names of `DOCUMENTS`.
    """

    id: str
    place: Location
    conversation: Conversation
    phase: str = "unknown"
    project: str = ""
    documents: Mapping[str, str] = field(default_factory=dict)


class NothingToAsk(Exception):
    """A scope that has nothing to look at; the message says what is missing."""


def place_for(scope: Scope, session: Finished) -> Location:
    """Return where the learnings of a scope go.

    Raises:
        NothingToAsk: the session has no such place.

    Example:
        >>> from memory_kb.learning.scopes import SCOPES
        >>> place_for(SCOPES[0], Finished("s", Location("task", "j", "t"), Conversation(ShownRecord(), ShownRecord(), ShownRecord())))
        Location(scope='project', job=None, task=None, learning_type='proxy')
    """
    place = session.place
    match scope.level:
        case "task":
            if not place.task:
                raise NothingToAsk("the session belongs to no task")
            return place
        case "job":
            if not place.job:
                raise NothingToAsk("the session belongs to no job")
            return Location("job", place.job)
        case "session":
            return place
        case level:
            return Location(level, learning_type=scope.learning_type)


def make_questions(scope: Scope, session: Finished, memories: Sequence[Memory]) -> tuple[ScopeQuestion, ...]:
    """Return what is to be asked for a scope.

    Raises:
        NothingToAsk: there is nothing to look at.
    """
    place = place_for(scope, session)
    sources: tuple[Memory, ...] = ()
    unnamed: tuple[str, ...] = ()
    if scope.is_rollup:
        sources = choose_sources(scope, place, memories)
        if len(sources) < FEWEST:
            raise NothingToAsk(f"there are fewer than {FEWEST} learnings of the level below")
        shown, owner = show_sources(sources), "/".join(filter(None, place[:3]))
        unnamed = names_of(session.project, sources) if scope.name == "global" else ()
    else:
        shown, owner = _show_session(scope, session), session.id
    return tuple(
        ScopeQuestion(scope, step, place, owner, shown, sources, find_known(step, place, memories), unnamed)
        for step in scope.passes
    )


def _show_session(scope: Scope, session: Finished) -> ShownRecord:
    talk = session.conversation
    match scope.reads:
        case "human":
            return _need(talk.humans, "nobody said anything in this session")
        case "errors":
            return _need(talk.errors, "nothing failed in this session")
        case reads:
            name, words = DOCUMENTS[reads]
            text = session.documents.get(reads, "").strip()
            if not text:
                raise NothingToAsk(f"there is no {name}, which would hold {words}")
            return with_document(_need(talk.execution, "nothing was done in this session"), name, text)


def _need(shown: ShownRecord, otherwise: str) -> ShownRecord:
    if not shown.passages:
        raise NothingToAsk(otherwise)
    return shown


def ask(llm: Llm, question: ScopeQuestion) -> Sifted:
    """Return what a model answers, sifted.

    Raises:
        ProviderFailed: it does not answer in time, or not as it should.
        SpendLimitReached: the day's budget is spent.
    """
    return sift(llm.complete(question.prompt, question.schema, timeout=TIMEOUT), question)


def make_offers(
    question: ScopeQuestion, found: Iterable[Extracted], session: Finished, now: datetime
) -> tuple[Offer, ...]:
    """Return learnings as they are offered, in the form of extracted ones.

    Their keys are made of what they rest on, so that another wording of the same is known again.
    """
    offers = []
    counts: Counter[str] = Counter()
    for one in found:
        rests_on = _rests_on(one, question)
        key = f"{question.owner}/{question.scope.name}/{question.step.name}/{rests_on or fingerprint(one.text)[:16]}"
        counts[key] += 1
        key = key if counts[key] == 1 else f"{key}#{counts[key]}"
        reason = f"Extracted from session {session.id} ({question.scope.name}{', as a norm to approve' if question.step.is_norm else ''})."
        said = (
            newest(question.sources[number - 1].created_at for number in one.numbers)
            if question.scope.is_rollup
            else None
        )
        offers.append(
            Offer(_make_draft(one, question, session, now), question.place, key, reason, session.id, said=said)
            if one.same_as is None
            else _offer_again(one.same_as, key, reason, session)
        )
    return tuple(offers)


def _offer_again(known: Memory, key: str, reason: str, session: Finished) -> Offer:
    """Return the offer of what an entry says already, which counts as one more sighting of it."""
    return Offer(Draft(known.text, known.kind, known.title), known.place, f"{key}/again", reason, session.id)


def _rests_on(one: Extracted, question: ScopeQuestion) -> str:
    if question.scope.is_rollup:
        return "+".join(sorted(question.sources[number - 1].id for number in one.numbers))
    return "+".join(str(number) for number in one.numbers if number)


def _make_draft(one: Extracted, question: ScopeQuestion, session: Finished, now: datetime) -> Draft:
    scope, step = question.scope, question.step
    today = now.astimezone(UTC).date().isoformat()
    day = min(session.conversation.day or today, today)
    fields: dict[str, Value] = {
        "type": step.type,
        "domain": scope.domain,
        "importance": scope.importance,
        "phase": session.phase,
    }
    if step.is_norm:
        fields |= {"status": "proposed", "institutional": True}
    fields |= {"extraction_scope": scope.name, "session_id": session.id}
    if session.conversation.task_text:
        fields["session_task"] = session.conversation.task_text
    if scope.is_rollup:
        fields["sources"] = [question.sources[number - 1].id for number in one.numbers]
    else:
        fields["source_events"] = [str(number) if number else DOCUMENTS[scope.reads][0] for number in one.numbers]
    return Draft(make_body(one, day), step.kind, one.title, one.tags, source="extracted", fields=tuple(fields.items()))


def make_body(one: Extracted, day: str) -> str:
    """Return the body of a learning.

    Example:
        >>> print(make_body(Extracted("Use UTC", (("Signal", "Said so."), ("Implication", "Use it.")), (), ()), "2026-01-02"))
        ## [2026-01-02] Use UTC
        <BLANKLINE>
        **Signal:** Said so.
        **Implication:** Use it.
    """
    return "\n".join((f"## [{day}] {one.title}", "", *(f"**{name}:** {text}" for name, text in one.lines)))


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


#: Characters of a document that a session is held against.
_DOCUMENT_CHARS = 6_000


@dataclass(frozen=True, slots=True)
class _Extracting:
    """A session that a model is asked about, the model, and what it was asked already."""

    session: Finished
    llm: Llm
    meter: Meter
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
    """The verbs extract, premortem and assume."""

    def __init__(
        self,
        vault: Vault,
        writer: Writer,
        store: EntryStore,
        evidence: SessionEvidence,
        stages: Stages,
        sessions: SessionFiles,
    ) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._evidence = evidence
        self._stages = stages
        self._sessions = sessions

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
        from memory_kb.providers.spending import Meter
        from memory_kb.store.logs import ExtractionLog
        from memory_kb.store.session_log import find_id

        found = find_id(session, self._sessions.ids())
        chosen = choose_scopes((scopes,) if isinstance(scopes, str) else scopes)
        settings = self._vault.settings.llm
        meter = Meter(self._vault.machine / "log" / "spend.jsonl", settings.daily_spend, settings.daily_runs)
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
        reports = [replace(one.report, kept=tuple(_tell(next(taken)) for _ in one.offers)) for one in consulted]
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

    def premortem(
        self,
        text: str,
        *,
        title: str | None = None,
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Write down, before the work begins, the plan and what may go wrong with it.

        It is written anew when the plan changes.

        Raises:
            UsageError: there is no text, or no such place.
            SecretRefused: it holds what looks like a credential.
        """
        place = self._vault.place_for("project", job, task)
        plan, name = check_plan(text, title, allow_secret=self._vault.allows_secrets)
        framed = frame_plan(plan, name, place, self._vault.clock())
        return self._write_beside(
            "premortem",
            place,
            PREMORTEM,
            lambda held, path: plan_premortem(held, path, framed),
            dry_run=dry_run,
        )

    def assume(
        self,
        milestone: str,
        *,
        complexity: str = "",
        approach: str = "",
        preferences: str = "",
        scope_note: str = "",
        recommendation: str = "continue",
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Write down what is assumed when a milestone is reached.

        Args:
            milestone: its name.
            complexity: how hard the work is taken to be.
            approach: whether the approach is taken to be viable.
            preferences: what the person is taken to want.
            scope_note: what is taken to belong to the work.
            recommendation: continue, notify or escalate.
            job: the job it is about; `task` likewise.
            dry_run: show what would be written.

        Raises:
            UsageError: nothing is assumed, or a word is none of ours.
            SecretRefused: it holds what looks like a credential.
        """
        from memory_kb.text import printable

        place = self._vault.place_for("project", job, task)
        texts = (
            " ".join(printable(text).split())
            for text in (milestone, complexity, approach, preferences, scope_note, recommendation)
        )
        name, *rest = texts
        made = Milestone(name, self._vault.timestamp(), *rest)
        checked = check_checkpoint(made, allow_secret=self._vault.allows_secrets)
        return self._write_beside(
            "assume",
            place,
            ASSUMPTIONS,
            lambda held, path: plan_checkpoint(held, path, checked),
            dry_run=dry_run,
        )

    def assumptions(self, *, job: str | None = None, task: str | None = None) -> Checkpoints:
        """Return what was assumed at the milestones so far.

        Raises:
            UsageError: there is no such place.
        """
        return parse_checkpoints(self._text_beside(self._vault.place_for("project", job, task), ASSUMPTIONS))

    def _write_beside(
        self,
        verb: str,
        place: Location,
        name: str,
        plan: Callable[[NoteText | None, str], Change | None],
        *,
        dry_run: bool,
    ) -> RunReport:
        """Write a file of a scope that is no note; one that changes meanwhile is planned anew."""
        from memory_kb.store.files import NoteText, read_if_there

        def make(path: str) -> tuple[Change, ...]:
            data = read_if_there(path, self._vault.resolve(path))
            change = plan(None if data is None else NoteText(path, data), path)
            return (change,) if change else ()

        return self._writer.run(verb, make(f"{self._vault.folder_of(place)}{name}"), replan=make, dry_run=dry_run)

    def _text_beside(self, place: Location, name: str) -> str:
        from memory_kb.store.files import read_if_there

        path = f"{self._vault.folder_of(place)}{name}"
        data = read_if_there(path, self._vault.resolve(path))
        return data.decode("utf-8", "replace") if data else ""

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
            self._documents(place),
        )

    def _documents(self, place: Location) -> Mapping[str, str]:
        from memory_kb.learning.conversation import clean
        from memory_kb.store.events import cut
        from memory_kb.store.files import read_if_there

        around = dict.fromkeys(((place.job, place.task), (place.job, None), (None, None)))
        intents = (self._text_beside(make_place("project", job, task), "INTENT.md").strip() for job, task in around)
        intent = next(filter(None, intents), "")
        if not intent and (data := read_if_there("INTENT.md", self._vault.resolve("INTENT.md"))):
            intent = data.decode("utf-8", "replace")
        assumed = show_checkpoints(parse_checkpoints(self._text_beside(place, ASSUMPTIONS)))
        texts = {"intent": intent, "premortem": self._text_beside(place, PREMORTEM), "assumptions": assumed}
        return {name: cut(clean(text), _DOCUMENT_CHARS) for name, text in texts.items()}


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
