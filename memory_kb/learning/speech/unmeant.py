"""Sentences that somebody says without meaning them: what is only supposed, and mockery."""

from __future__ import annotations

import functools
import re

from memory_kb.expressions import lazy_compile

_I = re.IGNORECASE
#: A longer sentence is a text; nobody mocks in so many words.
_LONGEST = 600
_LEAD = (
    r"^(?:(?:ok(?:ay)?|so|and|but|then|now|well|hm+|just|or|also|please|right|yes|no|for example|e\.g\.|(?:just )?thinking (?:out loud|aloud)(?:"
    r" here)?|"
    r"(?:just )?for the sake of (?:the |an )?argument|for argument's sake|(?:a |one )?(?:thought experiment|hypothetical(?: question)?"
    r"|theoretical question|"
    r"question|counterexample))[\s,.:!—–-]+)*"
)
_SOMEBODY = r"(?:that )?(?:we|i|you|they|he|she|it|there|someone|somebody|the|a|an|our|all|every|people)\b"
_WHILE = r"(?:for (?:a |one )?(?:moment|second|minute|now)|just|only)"
# What opens a case that is not so.
_SUPPOSED = lazy_compile(
    rf"{_LEAD}(?:(?:let's|let us|lets) (?:{_WHILE} )?(?:(?:say|assume|suppose|imagine) (?:{_WHILE} )?{_SOMEBODY}|pretend\b)|suppos(?:e|ing)\b|say"
    rf" {_SOMEBODY}|"
    rf"assum(?:e|ing) (?:{_WHILE} )?{_SOMEBODY}(?! (?:is|are) (?:always|never)\b)|imagin(?:e|ing)\b|pretend\b|what (?:if|about if)\b|what would"
    rf" (?:happen|break|be|go|change|fail|we|it|you|they|that|this|the)\b|"
    r"what happens if\b|hypothetically\b|theoretically\b|in theory\b|in a world\b|were (?:we|i|you|they) to\b|i wonder (?:if|whether|what|how|why)\b|"
    r"(?:would|could|should|do|does|did|can|are|is|am|shall|might) (?:it|we|i|you|they|that|this|there|he|she)\b|"
    r"angenommen\b|gesetzt den fall\b|nehmen wir an\b|mal angenommen\b|stell dir vor\b|was wäre,? wenn\b|supposons\b|mettons\b|imaginons\b"
    r"|imagine[zr]?\b|"
    r"et si (?:on|nous|je)\b|admettons\b|supongamos\b|imagina(?:te|mos)?\b|pongamos\b|y si\b|もし|仮に|例えば)",
    _I,
)
_EXPERIMENT = lazy_compile(
    r"\b(?:for the sake of (?:the |an )?argument|for argument's sake|thought experiment|hypothetical(?:ly)?)\b", _I
)
# A condition that is a choice not made, or a case that has not come; a condition that will come again is none.
_IF = r"\bif (?:we|i|they|you|somebody|someone) "
_OTHERWISE = lazy_compile(
    rf"{_LEAD}{_IF}(?:ever |really |just |only |all |suddenly )?(?:were|had|did|went|chose|picked|opted|decided|moved|switched|used|dropped|took"
    rf"|adopted|"
    rf"migrated|wanted|started|stopped|could|would)\b"
    rf"|{_LEAD}{_IF}(?:ever )?(?:go with|pick|choose|opt for|decide (?:on|for|to)|settle on|stay with)\b"
    rf"|{_LEAD}{_IF}[^.;]*?(?:\b(?:we|i|they|you|it|that)(?:'d| would| could| might)\b|,? but i(?:'d)? (?:like|prefer|would)\b)",
    _I,
)
_GOES_ON = lazy_compile(r"\b(?:would|could|might|then)\b|\w'd\b", _I)
# What nobody says who means it.
_MOCKING = lazy_compile(
    r"\bwho (?:even )?needs\b|\b(?:brilliant|genius|great|fantastic|wonderful|excellent|clever|amazing|splendid|lovely) (?:idea|plan|move"
    r"|thinking|job|strategy)"
    r"\b(?=[^.]*\b(?:always|never)\b|\W*$)|\bgenius\b\W*$|\bwhat could (?:possibly )?go wrong|\b(?:alert|call|stop) the press|\bslow clap\b|"
    r"\bsaid no ?(?:one|body) ever\b|\bas if\b\W*$|\b(?:is|are) (?:so |totally |just )?overrated\b|\bfor (?:losers|cowards|the weak|wimps"
    r"|amateurs)\b|"
    r"\b(?:always|never|that|which) (?:always )?(?:works?|worked|went|goes|turns?|ends?|turned|ended) (?:out )?(?:so|really|super) well\b|"
    r"\bhow original\b|\bjust what (?:we|i) (?:needed|wanted|always wanted)\b|\bbecause (?:obviously|of course|clearly|we always wanted|users?"
    r" are so|"
    r"that's what everybody)\b|\b(?:yeah|yea|yes),? right\b,|\bthat's how (?:the )?(?:pros?|professionals|real programmers) do\b|\bproblem solved\b|"
    r"\b(?:nobody|no one) will ever (?:find|notice|know|care)\b|\bonly get in the way\b|\blove(?:s)? full\b|[🙄🤡]|(?<!\S)/s(?!\S)|\blol\b",
    _I,
)
_ABSURD = lazy_compile(
    r"(?:^|[,;.:!] ?)(?:(?:sure|oh|wow|yeah|yes|great|nice|fantastic|wonderful|brilliant|bravo|congrats?|congratulations|awesome|lovely|perfect"
    r"|why not)"
    r"[\s,!.]+)*(?:let's|lets|let us|why (?:not|don't we)|we should) (?:just )?(?:never|always)\b[^.!?]*?\b(?:again|either|anything|everything"
    r"|everywhere|at all|"
    r"whole|while (?:we|you)'re at it)\b",
    _I,
)
_PRAISE = lazy_compile(
    r"^(?:sure|oh|wow|yeah|great|nice|fantastic|wonderful|brilliant|bravo|congrats?|congratulations|awesome|lovely|perfect|genius|good job|great"
    r" job|well done|"
    r"why not|of course|yes of course)\b",
    _I,
)
_BARE_PRAISE = lazy_compile(
    r"\W*(?:brilliant|genius|bravo|fantastic|slow clap|congrat(?:s|ulations)|how original|what a plan)(?: idea| plan| work| job)?\W*",
    _I,
)
_ORDERING = lazy_compile(r"\b(?:always|never|everywhere)\b", _I)


# One message is looked at for several things in a row.
@functools.lru_cache(maxsize=16)
def meant(said: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sentences of a message that are meant: without suppositions, what follows from them, and mockery.

    Example:
        >>> meant(("Suppose we never cached.", "It would be slow.", "Pin the driver."))
        ('Pin the driver.',)
        >>> meant(("Sure, let's always use any, who needs types.",)), meant(("Great, let's always use UTC.",))
        ((), ("Great, let's always use UTC.",))
    """
    mocking = [_is_mocking(one) for one in said]
    kept, is_case = [], False
    for number, one in enumerate(said):
        is_case = is_supposed(one) or (is_case and _GOES_ON.search(one) is not None)
        is_beside = _ORDERING.search(one) is not None and any(mocking[max(0, number - 1) : number + 2])
        if not (is_case or mocking[number] or is_beside):
            kept.append(one)
    return tuple(kept)


def is_supposed(sentence: str) -> bool:
    """Tell whether a sentence puts a case that is not so, or asks.

    Example:
        >>> is_supposed("If we went with Mongo we must never join."), is_supposed("If we add a table, always run make schema.")
        (True, False)
    """
    return len(sentence) <= _LONGEST and any(one.search(sentence) for one in (_SUPPOSED, _EXPERIMENT, _OTHERWISE))


def _is_mocking(sentence: str) -> bool:
    if len(sentence) > _LONGEST:
        return False
    if _MOCKING.search(sentence) or _BARE_PRAISE.fullmatch(sentence):
        return True
    return _ABSURD.search(sentence) is not None and (
        _PRAISE.match(sentence) is not None or re.search(r"\bnever\b", sentence, _I) is not None
    )
