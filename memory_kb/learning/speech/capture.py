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

from memory_kb.credentials import find_secret
from memory_kb.entry import Span
from memory_kb.learning.intake import Offer
from memory_kb.learning.remember import Draft
from memory_kb.learning.speech import doubts, phrases, standing
from memory_kb.learning.speech.ownwords import MAX_RAW, OwnText, read_own_text, sentences
from memory_kb.learning.speech.retractions import Doubt, Retractions, Taken, settle
from memory_kb.model import Location
from memory_kb.notes.events import Event
from memory_kb.notes.splice import Value
from memory_kb.reports import RunReport
from memory_kb.text import shorten

#: How many characters of their own a message has that is looked at (S1-18).
MIN_MESSAGE, MAX_MESSAGE = 20, 2000
#: The shortest thing that is captured; the longest is in `phrases`.
MIN_SPAN = 5
#: The longest title.
TITLE = 80
#: So few words that the sentence before them may be needed to understand them.
_BRIEF, _SHORT = 4, 6
_KINDS = {"preference": "preference", "correction": "fact", "constraint": "policy"}
#: Page order (S1-18).
_ORDER = tuple(_KINDS)
_EXPRESSIONS = {"preference": phrases.PREFERENCE, "correction": phrases.CORRECTION, "constraint": phrases.CONSTRAINT}
#: What is standing by other words is read last.
_STANDING = (("constraint", standing.CONSTRAINT), ("preference", standing.PREFERENCE))
_ENDS = " \t\r\n"
_LEAD = re.compile(rf"(?:(?:yes|yeah|yep|right|correct|exactly|true)[,.!:]*\s+)*{phrases.LEAD}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Capture:
    """What a message says that is worth keeping.

    Attributes:
        pattern: `preference`, `correction`, `constraint`, or `request` for what the person asked to
            be remembered.
        kind: of the entry.
        text: the whole sentence, or what follows the request, letter for letter.
        span: the thing itself within the text.
    """

    pattern: str
    kind: str
    text: str
    span: str

    @property
    def title(self) -> str:
        """What to call it: the text without the words that only lead to it."""
        bare = _LEAD.sub("", " ".join(self.text.split()), count=1).rstrip(".! ")
        return shorten(bare[:1].upper() + bare[1:] if bare[:1].islower() and bare.split(" ", 1)[0].isalpha() else bare, TITLE)

    @property
    def draft(self) -> Draft:
        """The learning that it becomes; corrections matter much, the rest as its kind implies."""
        priority = "high" if self.pattern == "correction" else None
        return Draft(self.text, self.kind, self.title, priority=priority, source="user_explicit" if self.pattern == "request" else "observed")


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
    own, why_not = _read_own(message)
    if own is None:
        return Verdict(None, why_not)
    if not MIN_MESSAGE <= own.size <= MAX_MESSAGE:
        return Verdict(None, f"{own.size:,} characters of it are the person's own, and {MIN_MESSAGE} to {MAX_MESSAGE:,} are looked at")
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
    own, _ = _read_own(message)
    found = sorted(_candidates(own), key=lambda one: one.place) if own and own.size <= MAX_MESSAGE else []
    return tuple(one.capture for one in found if one.capture.text in message)


def _read_own(message: str) -> tuple[OwnText | None, str]:
    """Return what the person wrote of a message, or why it is not looked at."""
    if len(message) > MAX_RAW:
        return None, f"it is longer than {MAX_RAW:,} characters"
    secret = find_secret(message)
    if secret:
        return None, f"it holds what looks like {secret}"
    own = read_own_text(message)
    return (None, "it is a prompt for an agent") if own.boilerplate else (own, "")


class _Candidate(NamedTuple):
    rank: int
    place: int
    capture: Capture


def _candidates(own: OwnText) -> Iterator[_Candidate]:
    """Yield what the sentences of a message hold, each at most one."""
    has_order, before = False, None
    spans = tuple(sentences(own.masked))
    is_asking = any(_is_question(own.masked[slice(*span)]) for span in spans)
    for place, span in enumerate(spans):
        masked, text = own.masked[slice(*span)], own.text[slice(*span)]
        is_question = _is_question(masked)
        if not is_question and not (is_asking and phrases.OWN_HABIT.match(masked)):
            request = _read_request(masked, text) or (_read_request_back(own, before, span) if before else None)
            found = request or _read_sentence(masked, text, has_order=has_order) or (_read_about_it(own, before, span) if before else None)
            if found is None and before and phrases.GROUND.match(own.masked, *before):
                found = _read_sentence(masked, text, has_order=has_order, may_point=True)
                found = replace(found, text=own.text[before.start : span.end]) if found else None
            elif found and before and not request and len(found.text.split()) <= _SHORT and phrases.GROUND.match(own.masked, *before):
                found = replace(found, text=own.text[before.start : span.end])
            if found:
                yield _Candidate(-1 if request else _ORDER.index(found.pattern), place, found)
        has_order = has_order or doubts.ORDER.match(masked) is not None
        before = None if is_question else span


def _is_question(masked: str) -> bool:
    return masked.rstrip("\"')*_ ").endswith("?")


def _read_request(masked: str, text: str) -> Capture | None:
    """Return what the person asked to be remembered."""
    request = phrases.REQUEST.match(masked)
    if request is None or doubts.ONE_OFF.search(masked, request.end()) or doubts.STILL_TO_DO.match(masked, request.end()):
        return None
    wanted = text[request.end() :].strip(_ENDS)
    if len(wanted) < MIN_SPAN:
        return None
    told = _match(masked[request.end() :], text[request.end() :])
    return Capture("request", _KINDS[told.pattern] if told else "fact", wanted, wanted)


def _read_request_back(own: OwnText, before: Span, span: Span) -> Capture | None:
    """Return what the person said before they asked to remember it, with what they add."""
    request = phrases.REQUEST_BACK.match(own.masked, *span)
    said = own.masked[slice(*before)]
    if request is None or len(said.split()) < _BRIEF or doubts.ONE_OFF.search(said) or doubts.NOT_MEANT.search(said):
        return None
    has_more = len(own.masked[request.end() : span.end].split()) > _BRIEF // 2
    wanted = own.text[before.start : span.end if has_more else before.end].strip(_ENDS)
    return Capture("request", "fact", wanted, wanted)


def _read_about_it(own: OwnText, before: Span, span: Span) -> Capture | None:
    """Return a rule about something together with the sentence that names it."""
    found = phrases.ABOUT_IT.match(own.masked, *span)
    if found is None or phrases.GROUND.match(own.masked, *before) is None or doubts.NOT_MEANT.search(own.masked, before.start, span.end):
        return None
    return Capture("preference", "preference", own.text[before.start : span.end], own.text[found.start("span") : found.end("span")])


def _read_sentence(masked: str, text: str, *, has_order: bool, may_point: bool = False) -> Capture | None:
    """Return the preference, correction or constraint that a sentence is; one that points needs the sentence before it."""
    if doubts.ONE_OFF.search(masked) or doubts.NOT_MEANT.search(masked):
        return None
    found = _match(masked, text, may_point=may_point)
    if found and may_point and found.pattern == "correction":
        return None
    if found is None and not has_order and not may_point:
        found = _match_standing(masked, text)
    if found and has_order and found.pattern == "constraint" and doubts.SPECIFIC.match(masked):
        return None
    tail = doubts.NOW_TO_DO.search(masked, masked.find(",")) if found and found.pattern != "correction" and "," in masked else None
    if found and tail and len(masked[: tail.start()].split()) >= _BRIEF:
        return replace(found, text=text[: tail.start()], span=found.span[: max(MIN_SPAN, tail.start() - text.find(found.span))])
    return found


def _match(masked: str, text: str, *, may_point: bool = False) -> Capture | None:
    order = ("constraint", "preference", "correction") if phrases.STRICT.search(masked) else _ORDER
    for pattern in order:
        for expression in _EXPRESSIONS[pattern]:
            found = expression.match(masked)
            if found is None or (pattern == "preference" and " " not in found["span"] and not phrases.LONE_VERB.match(found["span"])):
                continue
            if (may_point or not doubts.POINTING.match(found["span"])) and not _is_undone(pattern, masked[found.start("span") :]):
                return Capture(pattern, _KINDS[pattern], text, text[found.start("span") : found.end("span")])
    return None


def _match_standing(masked: str, text: str) -> Capture | None:
    """Return the instruction that a sentence is, where its own words say that it holds for more than once."""
    for pattern, expressions in _STANDING:
        for expression in expressions:
            found = expression.match(masked)
            if found and not doubts.POINTING.match(found["span"]) and not _is_undone(pattern, masked[found.start("span") :]):
                return Capture(pattern, _KINDS[pattern], text, text[found.start("span") : found.end("span")])
    return None


def _is_undone(pattern: str, masked: str) -> bool:
    """Tell whether the sentence itself takes back what it seems to say."""
    undone = doubts.GOING_ON if pattern == "correction" else doubts.TAKEN_BACK
    return undone.search(masked) is not None


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
        if event.type != "message" or not event.content or event.injected == "whole":
            continue
        before = stated.setdefault(event.session, Retractions())
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


def offer_captures(heard: Iterable[Heard], now: datetime, place: Location | None = None, session: str | None = None) -> list[Offer]:
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
    number = str(event.seq) if origin and event.seq else blake2b((event.content or "").encode("utf-8", "replace"), digest_size=12).hexdigest()
    if capture.pattern == "request" and not origin:
        number += f"/{event.ts or now.isoformat()}"
    asked = "Asked to remember it" if capture.pattern == "request" else f"Said as a {capture.pattern}"
    where = f" in session {origin}{f', event {event.seq}' if event.seq else ''}" if origin else ""
    key = f"capture/{origin or ''}/{number}"
    return Offer(replace(capture.draft, fields=tuple(fields)), place, key, f"{asked}{where}.", origin, said=event.ts or None)


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of one message.

    Attributes:
        action: `created`, `reinforced`, `known`, `forgotten`, `refused` or `withdrawn`; `passed` where the
            message holds nothing to keep.
        reason: why, in words.
        pattern: what the sentence reads as: preference, correction, constraint, or request.
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
