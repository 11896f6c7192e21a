"""Keep what people say in passing: a message in, at most one learning out (S1-14 to S1-19).

Expressions alone decide, so that it costs nothing and may run on every message. Where they are in
doubt they keep nothing: a learning that is missed is said again, a wrong one is followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from memory_kb.credentials import find_secret, is_redacted
from memory_kb.entry import Span
from memory_kb.expressions import lazy_compile
from memory_kb.learning.intake import Offer
from memory_kb.learning.speech import doubts, phrases
from memory_kb.learning.speech.asking import is_question
from memory_kb.learning.speech.clauses import is_asked_for_now
from memory_kb.learning.speech.ownwords import MAX_RAW, OwnText, read_own_text, sentences
from memory_kb.learning.speech.reading import (
    ORDER,
    SHORT,
    Capture,
    read_about_it,
    read_note,
    read_request,
    read_request_back,
    read_sentence,
)
from memory_kb.learning.speech.retractions import Doubt, Retractions, Taken, settle
from memory_kb.model import Location
from memory_kb.notes.events import Event
from memory_kb.notes.splice import Value
from memory_kb.reports import RunReport

__all__ = [
    "Capture",
    "CaptureReport",
    "Captured",
    "Heard",
    "Verdict",
    "hear",
    "make_offer",
    "offer_captures",
    "read_all",
    "read_message",
    "read_own",
]

#: How many characters of their own a message has that is looked at (S1-18).
MIN_MESSAGE, MAX_MESSAGE = 20, 2000
#: What a person told the harness to note down.
_NOTED = lazy_compile(r"\s*<user-memory-input>\s*(?P<noted>[^<]{5,2000}?)\s*</user-memory-input>\s*")
# Another request within a sentence.
_AND_REMEMBER = lazy_compile(
    (
        r"(?:,|;|\s[—–-]+) (?:(?:and|but|also|so|und|et|y) )?(?:also |please |bitte )?(?=remember (?!it\b|this\b)|keep in mind that|"
        r"(?:don't|do not|never) forget that|note that|merke? dir)"
    ),
    re.IGNORECASE,
)
# A sentence that only says how far the one before it reaches.
_REACH = lazy_compile(
    r"(?:and |so |that's |this is |that goes |same )*(?:for|in|on|across|throughout) (?:all|every|each|any|the whole) [\w `/-]{2,40}[.!]*\s*$",
    re.IGNORECASE,
)


class Verdict(NamedTuple):
    """Whether a message holds something to keep, and why."""

    capture: Capture | None
    reason: str


class Heard(NamedTuple):
    """An event of a session and the verdict on it; `doubt` where the person took back later what it says."""

    event: Event
    verdict: Verdict
    doubt: Doubt | None = None


def read_message(message: str) -> Verdict:
    """Return what is worth keeping of something a person wrote.

    Example:
        >>> read_message("Fix the login, please. Always use zod for validation.").capture
        Capture(pattern='preference', kind='preference', text='Always use zod for validation.', span='use zod for validation')
        >>> read_message("Actually, staging runs on Postgres 15, not on 14.").capture.draft.priority
        'high'
        >>> read_message("Should we always use zod for validation?")
        Verdict(capture=None, reason='no sentence begins as a preference, a correction or a constraint does')
    """
    own, why_not = read_own(message)
    if own is None:
        return Verdict(None, why_not)
    noted = _NOTED.match(message)
    if noted:
        return Verdict(read_note(noted["noted"]), "it reads as a request")
    if not MIN_MESSAGE <= own.size <= MAX_MESSAGE:
        return Verdict(
            None,
            f"{own.size:,} characters of it are the person's own, and {MIN_MESSAGE} to {MAX_MESSAGE:,} are looked at",
        )
    found = min(_candidates(own), key=lambda one: (one.rank, one.place), default=None)
    if found is None:
        return Verdict(None, "no sentence begins as a preference, a correction or a constraint does")
    if found.capture.text not in message:
        return Verdict(None, "its sentence goes across text that is not the person's")
    return Verdict(found.capture, f"it reads as a {found.capture.pattern}")


def read_all(message: str) -> tuple[Capture, ...]:
    """Return all that a message says that is worth keeping, in the order in which it does, however short it is.

    Example:
        >>> [one.text for one in read_all("Always run the linter. Never touch dist.")]
        ['Always run the linter.', 'Never touch dist.']
    """
    own, _ = read_own(message)
    noted = _NOTED.match(message) if own else None
    found = sorted(_candidates(own), key=lambda one: one.place) if own and own.size <= MAX_MESSAGE else []
    return (
        *([read_note(noted["noted"])] if noted else []),
        *(one.capture for one in found if one.capture.text in message),
    )


def read_own(message: str) -> tuple[OwnText | None, str]:
    """Return what the person wrote of a message, or why it is not looked at."""
    if len(message) > MAX_RAW:
        return None, f"it is longer than {MAX_RAW:,} characters"
    secret = find_secret(message)
    if secret:
        return None, f"it holds what looks like {secret}"
    if is_redacted(message):
        return None, "a credential was taken out of it"
    if doubts.UNWRITTEN.search(message):
        return None, "it says that nobody may write it down"
    own = read_own_text(message)
    return (None, "it is a prompt for an agent") if own.boilerplate else (own, "")


class _Candidate(NamedTuple):
    rank: int
    place: int
    capture: Capture


def _candidates(own: OwnText) -> Iterator[_Candidate]:
    """Yield what the sentences of a message hold, each at most one."""
    has_order, before, kept = False, None, None
    spans = tuple(part for span in sentences(own.masked) for part in _parts(own.masked, span))
    if any(doubts.MOCKING.match(own.masked, *span) for span in spans[1:]):
        return
    is_asking = any(is_question(own.masked[slice(*span)]) for span in spans)
    for place, span in enumerate(spans):
        masked, text = own.masked[slice(*span)], own.text[slice(*span)]
        asks, found = is_question(masked), None
        if not asks and not (is_asking and phrases.OWN_HABIT.match(masked)):
            request = read_request(masked, text) or (read_request_back(own, before, span) if before else None)
            found = (
                request
                or read_sentence(masked, text, has_order=has_order)
                or (read_about_it(own, before, span) if before else None)
            )
            if found is None and before and phrases.GROUND.match(own.masked, *before):
                found = read_sentence(masked, text, has_order=has_order, may_point=True)
                found = replace(found, text=own.text[before.start : span.end]) if found else None
            elif found and _REACH.match(masked):
                found = replace(found, text=own.text[before.start : span.end]) if before else None
            elif (
                found
                and before
                and not kept
                and not request
                and len(found.text.split()) <= SHORT
                and phrases.GROUND.match(own.masked, *before)
            ):
                found = replace(found, text=own.text[before.start : span.end])
            if found and not request and is_asked_for_now(masked):
                found = None
            if found:
                yield _Candidate(-1 if found.pattern == "request" else ORDER.index(found.pattern), place, found)
        has_order = has_order or doubts.ORDER.match(masked) is not None
        before = None if asks else span
        kept = found


def _parts(masked: str, span: Span) -> Iterator[Span]:
    """Yield what stands before and after a request within a sentence, or the sentence."""
    request = _AND_REMEMBER.search(masked, *span)
    if request is None:
        yield span
    else:
        yield Span(span.start, request.start())
        yield Span(request.end(), span.end)


def hear(events: Iterable[Event]) -> Iterator[Heard]:
    """Yield the messages that people wrote in a session, each with its verdict and what they took back of it later.

    What agents, tools and harnesses say is passed over, and so is text of memory-kb's own.

    Example:
        >>> events = [Event(role="user", content="Never push to master."), Event(role="assistant", content="I never push.")]
        >>> [(heard.event.role, heard.verdict.capture.kind) for heard in hear(events)]
        [('user', 'preference')]
    """
    heard: list[Heard] = []
    stated: dict[str | None, Retractions] = {}
    taken: list[Taken] = []
    for event in events:
        before = stated.setdefault(event.session, Retractions())
        if event.type == "tool_call":
            before.do(" ".join(one for one in (event.args or {}).values() if isinstance(one, str)))
        if event.type != "message" or not event.content or event.injected == "whole":
            continue
        if event.role == "assistant":
            before.answer(event.content)
        elif event.role == "user":
            verdict = read_message(event.content)
            taken += before.hear(event.content)
            if verdict.capture:
                taken += before.state(str(len(heard)), verdict.capture.text, event.content)
            heard.append(Heard(event, verdict))
    doubts_of = settle(taken)
    yield from (one._replace(doubt=doubts_of.get(str(number))) for number, one in enumerate(heard))


def offer_captures(
    heard: Iterable[Heard], now: datetime, place: Location | None = None, session: str | None = None
) -> list[Offer]:
    """Return what is to be kept of what was heard, as offers for the intake.

    The same event of the same session is the same offer, however often it is heard. What somebody
    says holds for the project, unless a place is named.

    Args:
        heard: messages with their verdicts.
        now: the time; a request that belongs to no session is a new one every time.
        place: where the entries go.
        session: where the messages come from, for those that do not say it themselves.
    """
    return [
        replace(make_offer(event, verdict.capture, now, place or Location(), session), doubt=doubt)
        for event, verdict, doubt in heard
        if verdict.capture
    ]


def make_offer(event: Event, capture: Capture, now: datetime, place: Location, session: str | None) -> Offer:
    """Return the offer of a capture, with where it comes from."""
    origin = event.session or session
    fields: list[tuple[str, Value]] = [("session_id", origin)] if origin else []
    if origin and event.seq:
        fields.append(("session_seq", event.seq))
    number = (
        str(event.seq)
        if origin and event.seq
        else blake2b((event.content or "").encode("utf-8", "replace"), digest_size=12).hexdigest()
    )
    if capture.pattern == "request" and not origin:
        number += f"/{event.ts or now.isoformat()}"
    asked = "Asked to remember it" if capture.pattern == "request" else f"Said as a {capture.pattern}"
    if capture.like:
        asked = f"Told like what is worth keeping ({', '.join(capture.like)})"
    where = f" in session {origin}{f', event {event.seq}' if event.seq else ''}" if origin else ""
    key = f"capture/{origin or ''}/{number}"
    return Offer(
        replace(capture.draft, fields=tuple(fields)), place, key, f"{asked}{where}.", origin, said=event.ts or None
    )


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of one message.

    Attributes:
        action: `created`, `reinforced`, `known`, `forgotten`, `refused` or `withdrawn`; `passed` where the
            message holds nothing to keep.
        reason: why, in words.
        pattern: what the sentence reads as: preference, correction, constraint, statement, or request.
        text: the sentence that is kept, `span` the thing itself within it.
        session: where the message comes from; `seq` is the number of its event.
    """

    action: str
    reason: str
    pattern: str | None = None
    kind: str | None = None
    text: str | None = None
    span: str | None = None
    source: str | None = None
    id: str | None = None
    path: str | None = None
    session: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """What was made of the messages of people, in their order, and the run that wrote it."""

    messages: tuple[Captured, ...]
    run: RunReport

    @property
    def kept(self) -> tuple[Captured, ...]:
        """Those that hold something to keep, whatever became of it."""
        return tuple(one for one in self.messages if one.action != "passed")
