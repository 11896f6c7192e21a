"""All that one message of a person says that is worth keeping: the one judgement, for entries and for episodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.episodic.sayings import is_from_elsewhere
from memory_kb.learning.observation.corrections import Correction, Did, find_correction, is_about_deed
from memory_kb.learning.observation.norms import is_told
from memory_kb.learning.observation.statements import find_decisions, said_by_person
from memory_kb.learning.speech.capture import Capture, read_all, read_message
from memory_kb.learning.speech.clauses import begins_as_order, is_for_now
from memory_kb.learning.speech.retractions import stemmed_words
from memory_kb.learning.speech.telling import points_back, read_told
from memory_kb.learning.speech.unmeant import meant
from memory_kb.retrieval.similarity import overlap, stemmed_set

_IDLE = stemmed_words(
    "use always never please must should not here repo project code codebase want need prefer just do make only instead no yes"
)

_FEW = 2
#: So long are neighbours that are kept as one.
_LONGEST = 360
#: So much of the shorter of two is in the other where they say the same.
_MOSTLY = 0.6
# What is a rule wherever it stands.
_RULE = lazy_compile(
    r"\b(?:always|never|from now on|every time|under no circumstances|(?:don't|do not) ever|must)\b", re.IGNORECASE
)


class Remarks(NamedTuple):
    """What a message says.

    Attributes:
        captures: what stands by itself, in the order in which it is said, each with what follows the
            message in its key: nothing for the one that a message alone would give.
        correction: what is said against something that was done.
        main: what a message alone would give, where the correction holds it.
    """

    captures: tuple[tuple[str, Capture], ...] = ()
    correction: Correction | None = None
    main: Capture | None = None


def read_remarks(text: str, did: tuple[Did, ...], objection: str = "", *, answered: str | None = "") -> Remarks:
    """Return what a message says that is worth keeping; sentences about one thing are kept together.

    Args:
        text: what the person wrote.
        did: what the agent did since they spoke last.
        objection: what they wrote just before, where that only objects.
        answered: the message before it; None where it is the first, which tells the task.

    Example:
        >>> said = read_remarks("no, we use uv here. `uv add`, never pip", (Did("ran", "pip install httpx", 4, is_refused=True),))
        >>> said.captures, said.correction.signal
        ((), 'we use uv here. `uv add`, never pip')
        >>> [one.text for _, one in read_remarks("Always run the linter. Never touch dist.", ()).captures]
        ['Always run the linter.', 'Never touch dist.']
    """
    captures = tuple(_cut_apart(_only_meant(read_all(text), text)))
    message = f"{objection}\n{text}" if objection else text
    found = find_correction(message, did)
    if found and captures and not is_about_deed(found, text, did) and not _says_more(found, captures):
        found = None
    if found and found.scope == "observations":
        apart = [one for one in captures if not _is_related(one, text, did)]
        more = find_correction(_without(message, apart), did) if apart else found
        found = more or found
    captures = _with_told(captures, text, found, answered=answered)
    held = [one for one in captures if found and _is_held(one, found)]
    main = _main(text, captures)
    kept = [("" if one == main else f"/{_digest(one.text)}", one) for one in captures if one not in held]
    return Remarks(tuple(_put_together(kept, text)), found, main if main in held else None)


def _only_meant(captures: tuple[Capture, ...], text: str) -> tuple[Capture, ...]:
    said = said_by_person(text) if captures else ()
    sure = frozenset(meant(said))
    out = [one for one in said if one not in sure]
    return tuple(
        one
        for one in captures
        if one.pattern == "request" or not any(_plain(one.text) in part or part in _plain(one.text) for part in out)
    )


def _is_for_now(one: Capture, said: tuple[str, ...]) -> bool:
    """Tell whether a capture is an order for the work at hand, or the beginning of one."""
    itself = _plain(one.text)
    return begins_as_order(itself) and is_for_now(next((sentence for sentence in said if itself in sentence), itself))


def _with_told(
    captures: tuple[Capture, ...], text: str, correction: Correction | None, *, answered: str | None
) -> tuple[Capture, ...]:
    """Return what is said together with what a message tells of how things are here, in the order of the text."""
    known = " ".join(_plain(one.text) for one in captures)
    told = [
        one
        for one in meant(said_by_person(text))
        if one in text and one not in known and not one.endswith("?") and is_told(one)
    ]
    told = [one for one in told if not is_from_elsewhere(one)]
    found = (*captures, *(Capture("correction", "fact", one, one) for one in told))
    like = (
        one
        for one in _like_kept(text, found, answered=answered)
        if correction is None or not _is_mostly_held(one, correction)
    )
    return tuple(sorted((*found, *like), key=lambda one: text.find(one.text)))


def _like_kept(text: str, known: tuple[Capture, ...], *, answered: str | None) -> Iterator[Capture]:
    """Yield what is like sentences that are worth keeping, and is neither known nor a decision that is found with its reason."""
    said = said_by_person(text)
    sure = frozenset(meant(said))
    out = [_plain(one) for one in said if one not in sure]
    out += [_plain(one.text) for one in known] + [_plain(one.sentence) for one in find_decisions(said, is_person=True)]
    told = read_told(text, out, answered=answered)
    yield from (one for one in told if not (is_from_elsewhere(one.text) or _is_for_now(one, said)))


def _main(text: str, captures: tuple[Capture, ...]) -> Capture | None:
    """Return what the message alone would give; of a message too short for that, the first."""
    if not captures:
        return None
    alone = read_message(text).capture
    return next(
        (one for one in captures if alone is None or (one.pattern, one.span) == (alone.pattern, alone.span)), None
    )


def _cut_apart(captures: tuple[Capture, ...]) -> Iterator[Capture]:
    """Yield each without the sentence before it, where that is kept by itself."""
    for one in captures:
        before = next((other.text for other in captures if other is not one and one.text.startswith(other.text)), "")
        rest = one.text[len(before) :].strip()
        yield replace(one, text=rest) if before and one.span in rest else one


def _put_together(kept: list[tuple[str, Capture]], text: str) -> Iterator[tuple[str, Capture]]:
    """Yield what is kept, neighbours that say one thing as one; it is called by what says more, and keeps the key of the message."""
    before: tuple[str, Capture] | None = None
    for mark, one in kept:
        whole = _as_one(before[1], one, text) if before else None
        if before and whole:
            before = (min(before[0], mark, key=len), whole)
            continue
        if before:
            yield before
        before = (mark, one)
    if before:
        yield before


def _as_one(first: Capture, second: Capture, text: str) -> Capture | None:
    """Return two neighbouring sentences as one where they are about the same, or the second points back, and not both are rules.

    What both are known for by their form is told apart there.
    """
    start, place = text.find(first.text), text.find(second.text)
    whole = text[start : place + len(second.text)]
    gap = text[start + len(first.text) : place]
    is_beside = 0 <= start < place and not gap.strip(" .!,;。！") and "\n" not in gap and len(whole) <= _LONGEST
    is_open = bool(first.like) != bool(second.like) and "request" not in (first.pattern, second.pattern)
    is_same = points_back(second.text) or not (stemmed_set(first.text) - _IDLE).isdisjoint(stemmed_set(second.text))
    if not (is_beside and is_open and is_same) or (_RULE.search(first.text) and _RULE.search(second.text)):
        return None
    more = max((first, second), key=lambda one: (len(stemmed_set(one.text)), one is first))
    return replace(
        more,
        text=whole,
        span=more.span if more.like else more.text,
        like=first.like or second.like,
        is_answer=first.is_answer,
    )


def _is_related(one: Capture, text: str, did: tuple[Did, ...]) -> bool:
    """Tell whether something belongs to what is said around it: it is about the same, about what was refused, or no rule in so many words."""
    if one.pattern != "request" and not _RULE.search(one.text):
        return True
    refused = " ".join(deed.target for deed in did[-2:] if deed.is_refused)
    return not (stemmed_set(one.text) - _IDLE).isdisjoint(stemmed_set(f"{_without(text, [one])} {refused}"))


def _says_more(found: Correction, captures: tuple[Capture, ...]) -> bool:
    """Tell whether a correction goes beyond what is kept of the message by itself, none of which is a rule in so many words."""
    return (
        not any(one.pattern == "request" or _RULE.search(one.text) for one in captures)
        and len(stemmed_set(_without(found.signal, list(captures)))) > _FEW
    )


def _is_held(one: Capture, found: Correction) -> bool:
    return stemmed_set(one.span) <= stemmed_set(found.signal)


def _is_mostly_held(one: Capture, found: Correction) -> bool:
    return overlap(stemmed_set(one.text), stemmed_set(found.signal)) >= _MOSTLY


def _without(text: str, captures: list[Capture]) -> str:
    for one in captures:
        text = text.replace(one.text, " ")
    return text


def _plain(text: str) -> str:
    return " ".join(text.split())


def _digest(text: str) -> str:
    return blake2b(_plain(text).encode("utf-8", "replace"), digest_size=4).hexdigest()
