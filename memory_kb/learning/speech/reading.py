"""What one sentence holds that is worth keeping (S1-15 to S1-17), and what asks to be remembered."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from memory_kb.entry import Span
from memory_kb.expressions import lazy_compile
from memory_kb.learning.remember import Draft
from memory_kb.learning.speech import doubts, foreign, phrases, standing
from memory_kb.learning.speech.general import LEADING, is_for_once, read_general
from memory_kb.learning.speech.ownwords import OwnText, read_own_text
from memory_kb.learning.speech.spelling import Respelt, respell
from memory_kb.learning.speech.wording import headline, strip_wording

#: The shortest thing that is captured; the longest is in `phrases`.
MIN_SPAN = 5
#: So few words that the sentence before them may be needed to understand them.
_BRIEF, SHORT = 4, 6
#: So long is what may be asked to remember in any language.
_WIDE = 20
_KINDS = {"preference": "preference", "correction": "fact", "constraint": "policy", "statement": "fact"}
_SPOKEN = ("preference", "correction", "constraint")
#: Page order (S1-18); what is only told of comes last.
ORDER = tuple(_KINDS)
_EXPRESSIONS = {"preference": phrases.PREFERENCE, "correction": phrases.CORRECTION, "constraint": phrases.CONSTRAINT}
#: What is standing by other words is read last.
_STANDING = (("constraint", standing.CONSTRAINT), ("preference", standing.PREFERENCE))
#: After a rule: what follows from it for the thing at hand.
_THEN = lazy_compile(
    rf",? so (?:please |now |can you |could you )?{phrases.PLAIN_VERB} (?:this|it|that|them|these|those)\b[^?\n]*$",
    re.IGNORECASE,
)
_CONDITION = lazy_compile(
    rf"{phrases.LEAD}(?:if|when|whenever|every ?time|each time|before|after|once|for)\b", re.IGNORECASE
)
_PAUSE = lazy_compile(r"[,;:、，]\s*|\s[—–-]+\s+")
_ENDS = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Capture:
    """What a message says that is worth keeping.

    Attributes:
        pattern: `preference`, `correction`, `constraint`, `statement` for what is so and stays,
            `decision`, or `request` for what the person asked to be remembered.
        kind: of the entry.
        text: the whole sentence, or what follows the request, letter for letter.
        span: the thing itself within the text.
        like: the words by which it is like what is kept, where no form decided.
        is_answer: whether the person objected with it, or pointed at what was said before; the text need not say so.
    """

    pattern: str
    kind: str
    text: str
    span: str
    like: tuple[str, ...] = field(default=(), repr=False)
    is_answer: bool = field(default=False, repr=False)

    @property
    def title(self) -> str:
        """What to call it: the text, of several sentences the telling one, without the words that only lead to it or end it."""
        bare = strip_wording(self.span if self.like else self.text)
        return headline(bare[:1].upper() + bare[1:] if bare[:1].islower() and bare.split(" ", 1)[0].isalpha() else bare)

    @property
    def draft(self) -> Draft:
        """The learning that it becomes; corrections matter much, what is only like what is kept not too much, the rest as its kind implies."""
        priority = "high" if self.pattern == "correction" else "medium" if self.like else None
        return Draft(
            self.text,
            self.kind,
            self.title,
            priority=priority,
            source="user_explicit" if self.pattern == "request" else "observed",
        )


def read_request(masked: str, text: str) -> Capture | None:
    """Return what the person asked to be remembered."""
    request = phrases.REQUEST.match(masked)
    start = request.end() if request else foreign.request_in(masked)
    if start is None and _asks_within(masked):
        return Capture("request", "fact", text.strip(_ENDS), text.strip(_ENDS))
    if start is None or doubts.ONE_OFF.search(masked, start) or doubts.STILL_TO_DO.match(masked, start):
        return None
    if request is None and foreign.is_doubtful(masked[start:]):
        return None
    wanted = text[start:].strip(_ENDS)
    if len(wanted) < MIN_SPAN:
        return None
    told = _match(masked[start:], text[start:])
    return Capture("request", _KINDS[told.pattern] if told else "fact", wanted, wanted)


def _asks_within(masked: str) -> bool:
    """Tell whether a sentence asks, behind something it says, to remember that.

    Example:
        >>> _asks_within("the depot runs on local time, please remember this, it cost us a day"), _asks_within("yes, remember that")
        (True, False)
    """
    for pause in _PAUSE.finditer(masked):
        is_asked = phrases.REQUEST_BACK.match(masked, pause.end()) or foreign.asks_back(masked[pause.end() :])
        said = masked[: pause.start()]
        if (
            is_asked
            and foreign.width(said) >= _WIDE
            and not (doubts.ONE_OFF.search(said) or doubts.NOT_MEANT.search(said))
        ):
            return not foreign.is_doubtful(said)
    return False


def read_note(text: str) -> Capture:
    """Return what the person told the harness to note down, which asks to remember all of it.

    Example:
        >>> read_note("use tabs").kind, read_note("the wiki is frozen").kind
        ('preference', 'fact')
    """
    masked = read_own_text(text).masked
    told = _read(masked, masked, has_order=False)
    is_order = (
        re.match(rf"(?:please )?(?!the\b){phrases.PLAIN_VERB}(?! (?:is|are|has|have)\b)", masked, re.IGNORECASE)
        is not None
    )
    return Capture("request", _KINDS[told.pattern] if told else "preference" if is_order else "fact", text, text)


def read_request_back(own: OwnText, before: Span, span: Span) -> Capture | None:
    """Return what the person said before they asked to remember it, with what they add."""
    request = phrases.REQUEST_BACK.match(own.masked, *span)
    said = own.masked[slice(*before)]
    if (
        request is None
        and foreign.asks_back(own.masked[slice(*span)])
        and foreign.width(said) >= _WIDE
        and not foreign.is_doubtful(said)
    ):
        wanted = own.text[slice(*before)].strip(_ENDS)
        return Capture("request", "fact", wanted, wanted)
    if request is None or len(said.split()) < _BRIEF or doubts.ONE_OFF.search(said) or doubts.NOT_MEANT.search(said):
        return None
    has_more = len(own.masked[request.end() : span.end].split()) > _BRIEF // 2
    wanted = own.text[before.start : span.end if has_more else before.end].strip(_ENDS)
    return Capture("request", "fact", wanted, wanted)


def read_about_it(own: OwnText, before: Span, span: Span) -> Capture | None:
    """Return a rule about something together with the sentence that names it."""
    found = phrases.ABOUT_IT.match(own.masked, *span)
    if (
        found is None
        or phrases.GROUND.match(own.masked, *before) is None
        or doubts.NOT_MEANT.search(own.masked, before.start, span.end)
    ):
        return None
    return Capture(
        "preference", "preference", own.text[before.start : span.end], own.text[found.start("span") : found.end("span")]
    )


def read_sentence(masked: str, text: str, *, has_order: bool, may_point: bool = False) -> Capture | None:
    """Return the preference, correction or constraint that a sentence is; one that points needs the sentence before it.

    What is misspelt is read as it is meant, and kept as it was written.

    Example:
        >>> read_sentence("nevr mock the clock", "nevr mock the clock", has_order=False).span
        'mock the clock'
    """
    found = _read(masked, text, has_order=has_order, may_point=may_point)
    respelt = respell(masked)
    if found or respelt.text == masked:
        return found
    found = read_request(respelt.text, respelt.text) or _read(
        respelt.text, respelt.text, has_order=has_order, may_point=may_point
    )
    return _as_written(found, respelt, text) if found else None


def _as_written(found: Capture, respelt: Respelt, text: str) -> Capture:
    """Return what was read of a text that was spelt right, letter for letter as it was written."""

    def written(part: str) -> str:
        start = respelt.text.index(part)
        return text[respelt.place(start) : respelt.place(start + len(part))]

    return replace(found, text=written(found.text), span=written(found.span))


def _read(masked: str, text: str, *, has_order: bool, may_point: bool = False) -> Capture | None:
    then = _THEN.search(masked)
    if then and len(masked[: then.start()].split()) >= _BRIEF:
        masked, text = masked[: then.start()], text[: then.start()]
    lead = LEADING.match(masked)
    if is_for_once(masked[lead.end() :] if lead else masked):
        return None if has_order or may_point else _match_general(masked, text)
    found = _match(masked, text, may_point=may_point)
    if found and may_point and found.pattern == "correction":
        return None
    if found is None and not has_order and not may_point:
        found = _match_standing(masked, text) or _match_general(masked, text)
    if found is None and not may_point:
        found = _match_foreign(masked, text)
    if found and has_order and found.pattern == "constraint" and doubts.SPECIFIC.match(masked):
        return None
    is_open = found is not None and found.pattern != "correction" and "," in masked and not _CONDITION.match(masked)
    tail = doubts.NOW_TO_DO.search(masked, masked.find(",")) if is_open else None
    if (
        found
        and tail
        and not re.search(r"\b(?:i|we|you|not|never|\w+n't)$", masked[: tail.start()], re.IGNORECASE)
        and len(masked[: tail.start()].split()) >= _BRIEF
    ):
        return replace(
            found, text=text[: tail.start()], span=found.span[: max(MIN_SPAN, tail.start() - text.find(found.span))]
        )
    return found


def _match(masked: str, text: str, *, may_point: bool = False) -> Capture | None:
    order = ("constraint", "preference", "correction") if phrases.STRICT.search(masked) else _SPOKEN
    start = _start(masked)
    for pattern in order:
        for expression in _EXPRESSIONS[pattern]:
            found = expression.match(masked, start)
            if found is None or (
                pattern == "preference" and " " not in found["span"] and not phrases.LONE_VERB.match(found["span"])
            ):
                continue
            if (may_point or not doubts.POINTING.match(found["span"])) and not _is_undone(
                pattern, masked[found.start("span") :]
            ):
                return Capture(pattern, _KINDS[pattern], text, text[found.start("span") : found.end("span")])
    return None


def _match_standing(masked: str, text: str) -> Capture | None:
    """Return the instruction that a sentence is, where its own words say that it holds for more than once."""
    start = _start(masked)
    for pattern, expressions in _STANDING:
        for expression in expressions:
            found = expression.match(masked, start)
            if (
                found
                and not doubts.POINTING.match(found["span"])
                and not _is_undone(pattern, masked[found.start("span") :])
            ):
                return Capture(pattern, _KINDS[pattern], text, text[found.start("span") : found.end("span")])
    return None


def _start(masked: str) -> int:
    """Return where the sentence proper begins."""
    led_by = phrases.LED_BY.match(masked)
    return led_by.end() if led_by else 0


def _match_general(masked: str, text: str) -> Capture | None:
    """Return what a sentence is by its form."""
    said = read_general(masked)
    if said is None or doubts.TAKEN_BACK.search(masked, said.start):
        return None
    return Capture(said.pattern, _KINDS[said.pattern], text, text[said.start :].strip(_ENDS))


def _match_foreign(masked: str, text: str) -> Capture | None:
    """Return what a sentence in another language is."""
    told = foreign.read_foreign(masked)
    return Capture(told.pattern, _KINDS[told.pattern], text, text[told.start :].strip(_ENDS)) if told else None


def _is_undone(pattern: str, masked: str) -> bool:
    """Tell whether the sentence itself takes back what it seems to say."""
    undone = doubts.GOING_ON if pattern == "correction" else doubts.TAKEN_BACK
    return undone.search(masked) is not None
