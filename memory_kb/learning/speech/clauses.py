"""The part of told sentences that holds what lasts: without the words that only lead to it and without orders for now.

Cut is only at the ends, where a clause begins or ends, and only what is surely no part of it; what
is left stands in the text as it was written.
"""

from __future__ import annotations

from memory_kb.entry import Span
from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.foreign import width
from memory_kb.learning.speech.lasting import judge
from memory_kb.learning.speech.openings import OPENING
from memory_kb.learning.speech.orders import (
    ANSWER,
    CASE,
    EASTERN_ORDER,
    FOLLOWING,
    FOR_NOW,
    HOLDS,
    LASTS,
    LEANING,
    ORDER,
    POINTS_AT,
    REASON,
)
from memory_kb.learning.speech.ownwords import CODE, read_own_text, sentences

#: Where a clause ends and the next begins.
_PAUSE = lazy_compile(
    r"\s[:;]-?[)D]+(?=\s)|(?<=[^\s,;:])[,;:](?=\s)|\s[–—-]+(?=\s)|[、，；：]|,(?=[\u3040-\u9fff])"
    r"|\s(?=(?:so|donc|du coup|alors|así que|entonces|então|quindi|dus) )"
)
#: An order that names where or with what may be half of what is told.
_NAMED = lazy_compile(rf"{CODE}|(?<!\w)[/~]\w|\w/\w|\w_\w|(?<!\S)--?[a-z]\w")
_KANA = lazy_compile(r"[\u3040-\u30ff]")
_GAP = " \t\n,;:–—-、，；："
#: How much like what is kept the rest must be; how unlike an order, one that is said to follow, and one that is only worded so.
_REST, _ORDER, _FOLLOWS, _PLAIN = -1.2, -1.2, -0.7, -1.9
#: A sentence of its own is sooner an order than a clause.
_ALONE = 1.2
#: So much more a clause must be like what is kept than the one before it, to be told for it.
_MORE = 1.0
#: How unlike what is kept a clause behind an order may be that tells something of its own.
_ADDS = -1.7
#: How much like what is kept a clause must be that is told for the whole, or lasts without what is said before it.
_SURE = 0.3
#: A sentence with more pauses is a list.
_MOST = 24
#: What is left must say something.
_WIDTH, _WORDS = 22, 4


def without_opening(masked: str, span: Span) -> Span:
    """Return where a sentence begins after the words that only lead to it.

    Example:
        >>> text = "nope, btw we drop support for Windows 7"
        >>> text[without_opening(text, Span(0, len(text))).start :]
        'we drop support for Windows 7'
    """
    opening = OPENING.match(masked, *span)
    return Span(opening.end(), span.end) if opening and _says_something(masked[opening.end() : span.end]) else span


def begin(masked: str, span: Span) -> Span:
    """Return a sentence without the words that lead to it, and without an order before what is told.

    Example:
        >>> text = "ok, move that out please, controllers hold no queries in our services"
        >>> text[slice(*begin(text, Span(0, len(text))))]
        'controllers hold no queries in our services'
    """
    span = without_opening(masked, span)
    for start, place in reversed(_pauses(masked, span)):
        first, rest = masked[span.start : start], without_opening(masked, Span(place, span.end))
        said = masked[slice(*rest)]
        # In Japanese an order and a clause that goes on look alike.
        is_loose = not (_KANA.search(first) or _NAMED.search(first) or LEANING.match(said))
        if is_loose and all(map(is_order, _parts(first))) and _stands_alone(said):
            return rest
    return span


def end(masked: str, span: Span) -> Span:
    """Return a sentence without an order, or an answer to something else, behind what is told.

    Example:
        >>> text = "money is stored as integer cents in all our tables, so fix the serializer and rerun the tests"
        >>> text[slice(*end(text, Span(0, len(text))))]
        'money is stored as integer cents in all our tables'
    """
    for start, place in _pauses(masked, span):
        rest, tail = masked[span.start : start], masked[place : span.end]
        is_other = (
            is_order(tail)
            and (REASON.search(rest) or not _KANA.search(tail))
            and not _leads_on(rest, masked[start:place])
        )
        if (is_other or ANSWER.match(tail)) and _stands_alone(rest):
            return Span(span.start, start)
    return span


def most_telling(masked: str, span: Span) -> Span:
    """Return a sentence from what it says to follow from its beginning, where that is much more like what is kept.

    Example:
        >>> text = "the treasurer opens this in an old spreadsheet, so our exports always use semicolons and a BOM"
        >>> text[slice(*most_telling(text, Span(0, len(text))))]
        'our exports always use semicolons and a BOM'
    """
    first = judge([_parts(masked[slice(*span)])[0]])[0].margin
    for _, place in _pauses(masked, span):
        so = FOLLOWING.match(masked, place)
        rest = Span(so.end(), span.end) if so else span
        said = masked[slice(*rest)]
        is_clear = (
            so is not None and _says_something(said) and not LEANING.match(said) and not points_at_something(said)
        )
        if is_clear and judge([_parts(said)[0]])[0].margin > max(_SURE, first + _MORE):
            return rest
    return span


def _leads_on(rest: str, pause: str) -> bool:
    """Tell whether an order behind belongs to what is said before it: steps, what a colon leads to, what is to be done in a case."""
    parts = _parts(rest)
    return (
        not {":", "："}.isdisjoint(pause.split())
        or any(map(ORDER.match, parts))
        or any(map(CASE.match, (parts[0], parts[-1])))
    )


def without_orders_before(text: str, itself: str) -> str:
    """Return sentences without those before them that are orders for now, as long as the thing itself is not among them.

    Example:
        >>> without_orders_before("Revert that second edit. The files in gen/ must never be edited by hand.", "The files in gen/")
        'The files in gen/ must never be edited by hand.'
    """
    own = read_own_text(text)
    spans = list(sentences(own.masked))
    first = 0
    while (
        len(spans) - first > 1
        and is_order_alone(own.masked[slice(*spans[first])])
        and not LEANING.match(own.masked, spans[first + 1].start)
    ):
        first += 1
    kept = own.text[spans[first].start :] if first else text
    return kept if itself.lower() in kept.lower() and kept in text else text


def is_order_alone(sentence: str) -> bool:
    """Tell whether a sentence is an order for the work at hand; it is sooner one than a clause, unless it shows how something is done."""
    return CODE not in sentence and is_order(sentence, slack=_ALONE)


def is_for_now(sentence: str) -> bool:
    """Tell whether a sentence is for the work at hand alone: an order or a request, with no more than its reason.

    Example:
        >>> is_for_now("can u rename that button, its too long"), is_for_now("can u always rename the old one")
        (True, False)
        >>> is_for_now("remove the retries again, they only hide it"), is_for_now("retries are capped at 3 by the bank's gateway")
        (True, False)
    """
    said = _without_opening(sentence)
    first, *rest = _parts(said)
    # In Japanese an order and a clause that goes on look alike.
    is_plain_order = not (LASTS.search(said) or _KANA.search(said)) and is_order(first) and not any(map(_adds, rest))
    return is_plain_order or is_asked_for_now(sentence)


def is_asked_for_now(sentence: str) -> bool:
    """Tell whether a sentence asks for something at this moment, or does without it, in so many words.

    Example:
        >>> is_asked_for_now("nvm, that's enough"), is_asked_for_now("could u check the logs"), is_asked_for_now("never log the body")
        (True, True, False)
    """
    said = _without_opening(sentence)
    return FOR_NOW.match(said) is not None and not LASTS.search(said)


def begins_as_order(part: str) -> bool:
    """Tell whether something begins as an order or a request does, whatever it goes on to say.

    Example:
        >>> begins_as_order("assign it to Pat"), begins_as_order("retries are capped at 3")
        (True, False)
    """
    said = _without_opening(part)
    return any(one.match(said) for one in (FOR_NOW, ORDER)) or EASTERN_ORDER.search(_parts(said)[0]) is not None


def _without_opening(sentence: str) -> str:
    opening = OPENING.match(sentence)
    return sentence[opening.end() :] if opening else sentence


def _adds(part: str) -> bool:
    """Tell whether a clause behind an order tells something of its own."""
    return ORDER.match(part) is None and judge([part])[0].margin >= (_SURE if LEANING.match(part) else _ADDS)


def is_order(clause: str, *, slack: float = 0.0) -> bool:
    """Tell whether a clause is an order for the work at hand, and quite unlike what is kept.

    Example:
        >>> is_order("so swap requests out please"), is_order("so always swap requests out")
        (True, False)
    """
    plain = clause.strip(_GAP + ".!")
    if HOLDS.search(plain):
        return False
    order = ORDER.match(plain)
    limit = _FOLLOWS if order and order["so"] else _PLAIN if order and order["plain"] else _ORDER
    parts = _parts(plain)
    if order is None and not all(map(EASTERN_ORDER.search, parts)):
        return False
    return max(one.margin for part in {plain, *parts} for one in judge([part])) < limit + slack


def _parts(text: str) -> list[str]:
    """Return the clauses of a text."""
    starts = [0, *(place for _, place in _pauses(text, Span(0, len(text))))]
    return [text[start:end].strip(_GAP) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _stands_alone(rest: str) -> bool:
    return _says_something(rest) and judge([rest])[0].margin >= _REST


def points_at_something(text: str) -> bool:
    """Tell whether the first clause of a text ends by pointing at something.

    Example:
        >>> points_at_something("use that, the other share is slow"), points_at_something("use the cache, the share is slow")
        (True, False)
    """
    return POINTS_AT.search(_parts(text)[0]) is not None


def names_something(text: str) -> bool:
    """Tell whether a clause behind the first lasts by itself and does not point at what is said before it."""
    return any(not LEANING.match(part) and judge([part])[0].margin >= _SURE for part in _parts(text)[1:])


def _says_something(rest: str) -> bool:
    return width(rest) >= _WIDTH and (len(rest.split()) >= _WORDS or width(rest) > len(rest))


def _pauses(masked: str, span: Span) -> list[Span]:
    """Return the pauses within a sentence, each with the signs around it; none of a list, which has more than a sentence."""
    found = []
    for pause in _PAUSE.finditer(masked, *span):
        start, end = pause.span()
        while start > span.start and masked[start - 1] in _GAP:
            start -= 1
        while end < span.end and masked[end] in _GAP:
            end += 1
        if span.start < start and end < span.end:
            found.append(Span(start, end))
    return found if len(found) <= _MOST else []
