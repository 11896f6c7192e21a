"""What a language model is asked about a session, scope by scope, and the entries that its answers become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memory_kb.learning.answer_check import Extracted, Sifted, sift
from memory_kb.learning.conversation import Conversation, ShownRecord
from memory_kb.learning.ingest import Offer, newest
from memory_kb.learning.new_entry import Draft, fingerprint
from memory_kb.learning.prompt import (
    FEWEST,
    ScopeQuestion,
    choose_sources,
    find_known,
    names_of,
    show_sources,
    with_document,
)
from memory_kb.learning.scopes import Scope
from memory_kb.markdown.splice import Value
from memory_kb.model import Location
from memory_kb.providers.base import Llm
from memory_kb.store.plan import Memory

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
