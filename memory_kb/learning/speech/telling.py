"""What a message tells in words that no form is known for: which sentences are kept, and what goes with each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memory_kb.entry import Span
from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech import doubts, takebacks
from memory_kb.learning.speech.asking import asks
from memory_kb.learning.speech.capture import MAX_MESSAGE, read_own
from memory_kb.learning.speech.clauses import (
    begin,
    end,
    is_for_now,
    is_order_alone,
    most_telling,
    names_something,
    points_at_something,
)
from memory_kb.learning.speech.foreign import width
from memory_kb.learning.speech.lasting import Judgement, judge
from memory_kb.learning.speech.ownwords import OwnText, sentences
from memory_kb.learning.speech.reading import Capture
from memory_kb.learning.speech.wording import TITLE

#: What a sentence reads as that is known by what it is like.
_PATTERNS = {"fact": "statement", "policy": "constraint", "preference": "preference", "decision": "decision"}
#: How far below what is enough a sentence may be that stands before a kept one, one that is pointed at there, and one that follows. A
#: word too much does less harm than half of a rule: only what is quite unlike anything that lasts stays away, and orders for now.
_BEFORE, _POINTED_AT, _BEHIND = -3.7, -5.3, -6.2
_POINTS_BACK = lazy_compile(
    r"(?:(?:no|nope|nah|nein|non|nee|yes|yeah|ja|oui|sí|si)[, ]+)?"
    r"(?:that's|that|this|it's|its|it|those|these|they|he|she|so|then|das|dies|es|ça|c'est|eso|esto)\b",
    re.IGNORECASE,
)
_NAMELESS = lazy_compile(
    r"(?:it|its|it's|that's|those|these|they|they're|he|she|c'est|ça|ce sont|es (?:ist|sind|gibt|la|el|un|una)|è|eso|esto|isso|isto)\b(?! that\b)"
    r"|(?:that|this|that one|this one|das|dies|dat|dit)\b(?= (?:is|was|has|have|must|can|can't|cannot|stays?|goes|comes|runs|lives|needs|will|won't|"
    r"ist|war|hat|muss|kann|bleibt|läuft|kommt|heißt|geht|moet|blijft|kan|heeft)\b)|(?:それ|これ|あれ)(?:は|が|も)|(?:那|这)(?:是|个是)",
    re.IGNORECASE,
)
_PERHAPS = lazy_compile(
    r"(?:vielleicht|peut-être|quizás?|tal vez|talvez|forse|misschien|もしかし|也许|可能)", re.IGNORECASE
)
_OBJECTS = lazy_compile(
    r"(?:no+|nope|nah|nein|non|nee|não)(?:[,.!:]| (?=(?:wait|stop|do|don|warte|attends|espera|wacht)\b))|(?:いや|いいえ|不)[,、，。！]",
    re.IGNORECASE,
)
#: How what is to be done next begins.
_NEXT = lazy_compile(
    r"(?:(?:and|so|ok|okay|good|und|gut|also|et|bon|y|e|en)[,.]? )*(?:now|next|jetzt|nun|als nächstes|maintenant|ensuite|ahora|agora|adesso|ora|nu)"
    r"(?: \w+){0,4}: (?!.*\b(?:never|always|must|nie|niemals|immer|jamais|toujours|nunca|siempre|sempre|mai|nooit|altijd)\b)",
    re.IGNORECASE,
)
#: How lines of programs begin.
_PASTED = lazy_compile(
    r"(?:\w*(?:[a-z](?:Error|Exception|Denied|Failed|Failure|Warning|Invalid|NotFound|Timeout|Fault|Refused)|[A-Z]_[A-Z_]+)"
    r"|(?:fatal |uncaught )?error|fatal|panic|traceback|warn(?:ing)?)(?:\[\S*\])?: ",
)
#: What is told in less says too little by itself; a wide sign counts twice.
_WIDTH = 22
#: What is told in less is better understood with what it answers.
_SELF_CONTAINED = 90
#: So long are sentences that are kept as one.
_LONGEST_TOLD = 360


def read_told(message: str, known: Iterable[str] = (), *, answered: str | None = "") -> tuple[Capture, ...]:
    """Return what a message tells in words that no form is known for, by what such sentences are like.

    What stands beside a kept sentence in its line is kept with it, unless it is quite unlike one, or
    an order for now.

    Args:
        message: what the person wrote.
        known: sentences that are kept already, or are not meant.
        answered: the message before it; None where it is the first of a session, which tells the task,
            so that it must be more like what is kept.

    Example:
        >>> [one.text for one in read_told("New tables go under the reporting schema, the public schema is frozen. Can you run it again?")]
        ['New tables go under the reporting schema, the public schema is frozen.']
    """
    own, _ = read_own(message)
    if own is None or own.size > MAX_MESSAGE:
        return ()
    spans = list(sentences(own.masked))
    texts = [own.masked[slice(*span)] for span in spans]
    if any(map(doubts.MOCKING.match, texts[1:])):
        return ()
    out = [plain for one in known if (plain := " ".join(one.split()))]
    told: list[_Told] = []
    for span, masked, judged in zip(spans, texts, judge(texts, answered=answered), strict=True):
        plain = " ".join(own.text[slice(*span)].split())
        if not (asks(masked) or _is_not_meant(masked) or any(plain in one or one in plain for one in out)):
            told.append(_Told(span, judged, _points_back_to(masked)))
    is_asked = answered is not None and asks(answered)
    found = (
        _put_together(own, group, is_asked=is_asked)
        for line in _lines(own.masked, told)
        for group in _around_kept(line)
    )
    return tuple(one for one in found if one.text in message and width(one.text) >= _WIDTH)


class _Told(NamedTuple):
    span: Span
    judged: Judgement
    points_back: bool


def _lines(masked: str, told: Sequence[_Told]) -> Iterator[list[_Told]]:
    """Yield sentences that follow each other directly, together."""
    line: list[_Told] = []
    for one in told:
        if line and masked[line[-1].span.end : one.span.start] not in ("", " "):
            yield line
            line = []
        line.append(one)
    yield line


def _around_kept(line: Sequence[_Told]) -> Iterator[Sequence[_Told]]:
    """Yield each kept sentence of a line with what goes with it: what leads to it, and what follows."""
    done = place = 0
    while place < len(line):
        if not line[place].judged.is_lasting:
            place += 1
            continue
        first, last = place, place + 1
        least = _POINTED_AT if line[first].points_back else _BEFORE
        while (
            first > done
            and line[first - 1].judged.margin >= least
            and line[place].span.end - line[first - 1].span.start <= _LONGEST_TOLD
        ):
            first -= 1
        while (
            last < len(line)
            and line[last].judged.margin >= _BEHIND
            and line[last].span.end - line[first].span.start <= _LONGEST_TOLD
        ):
            last += 1
        yield line[first:last]
        done = place = last


def points_back(text: str) -> bool:
    """Tell whether a text begins by pointing at what was said before it, or by objecting to it.

    Example:
        >>> points_back("nope, 24 has to stay, the old tablets have it"), points_back("no it's the audit table"), points_back("Notes live here.")
        (True, True, False)
    """
    return _POINTS_BACK.match(text) is not None or _OBJECTS.match(text) is not None


def is_nameless(text: str) -> bool:
    """Tell whether what a sentence is about is not named in it, but only pointed at.

    Example:
        >>> is_nameless("it's 30 days for logs"), is_nameless("c'est le mainframe qui l'écrit"), is_nameless("that folder has its own branch")
        (True, True, False)
    """
    return _NAMELESS.match(text) is not None and not names_something(text)


def _points_back_to(masked: str) -> bool:
    """Tell whether a sentence begins with what points at another one, or its first clause ends with it."""
    return _POINTS_BACK.match(masked) is not None or points_at_something(masked)


def _is_not_meant(masked: str) -> bool:
    """Tell whether a sentence begins as a guess, holds what takes it back or an order for now, or takes back what was said before."""
    if any(one.match(masked) for one in (doubts.NOT_MEANT, _PERHAPS, _PASTED, _NEXT)) or doubts.SOMEDAY.search(masked):
        return True
    return _is_taken_back(masked) and _is_taken_back(masked[slice(*_thing_itself(masked, Span(0, len(masked))))])


def _is_taken_back(masked: str) -> bool:
    return (
        any(one.search(masked) for one in (doubts.TAKEN_BACK, doubts.NOW_TO_DO)) or takebacks.points(masked) is not None
    )


def _put_together(own: OwnText, group: Sequence[_Told], *, is_asked: bool) -> Capture:
    """Return sentences that are kept as one; the thing itself is the strongest that does not point back."""
    best = max(group, key=lambda one: one.judged.margin).judged
    group = _without_orders(own.masked, group)
    named = [one for one in group if not one.points_back and one.judged.margin >= _BEFORE]
    head = max(named or group, key=lambda one: one.judged.margin)
    ends = _ends(own.masked, group)
    is_answer = (
        is_asked or width(own.text[slice(*ends)]) < _SELF_CONTAINED or points_back(own.masked[slice(*group[0].span)])
    )
    itself = _thing_itself(own.masked, head.span)
    itself = most_telling(own.masked, itself) if itself.end - itself.start > TITLE else itself
    return Capture(
        _PATTERNS[best.kind],
        best.kind,
        own.text[slice(*ends)],
        own.text[slice(*itself)],
        best.words,
        is_answer=is_answer,
    )


def _ends(masked: str, group: Sequence[_Told]) -> Span:
    """Return the part of sentences that go together which is kept."""
    if len(group) == 1:
        return _thing_itself(masked, group[0].span)
    return Span(begin(masked, group[0].span).start, end(masked, group[-1].span).end)


def _without_orders(masked: str, group: Sequence[_Told]) -> Sequence[_Told]:
    """Return sentences that go together without orders for now around what is kept."""
    first, last = 0, len(group)
    while last - first > 1 and _is_order(masked, group[last - 1]):
        last -= 1
    while last - first > 1 and _is_order(masked, group[first]) and not group[first + 1].points_back:
        first += 1
    return group[first:last]


def _is_order(masked: str, told: _Told) -> bool:
    said = masked[slice(*told.span)]
    return not told.judged.is_lasting and (is_order_alone(said) or is_for_now(said))


def _thing_itself(masked: str, span: Span) -> Span:
    return end(masked, begin(masked, span))
