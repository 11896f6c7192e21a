"""Reasons that no word announces: an argument in the next sentence, or a verdict on what else there was."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.norms import TASTE
from memory_kb.learning.speech import doubts

_I = re.IGNORECASE
_LONGEST = 360
_NOT_ANY = (
    r"(?!(?:the|this|that|it|its|it's|these|those|your|my|yours|mine|his|her|our|their|you|he|she|they|i|we|there|what|one|another|all|both|here"
    r"|so|and|or|"
    r"with|to|for|on|in|at|\w+ing)\b)"
)
# What is chosen by name: a word or two that are no article and no pronoun.
_CHOICE = lazy_compile(
    rf"\s*(?:(?:on|for|to (?:use|go with|take)) )?{_NOT_ANY}(?P<what>[\w.+#/@`-]+(?: (?!then\b|here\b|now\b)[\w.+#/@`-]+)?)"
    r"(?: (?:then|here|instead of .+|over .+|rather than"
    rf" .+))*[\s.!]*$",
    _I,
)
# How the next sentence tells why.
_ARGUMENT = lazy_compile(
    r"\bbut (?:we|nobody|no one|it|i|they|that|the|there|one|none)\b|\b(?:nobody|no one) (?:here|on|in|wants|knows|has|likes|needs|uses|else)\b|"
    r"\bwe (?:only|already|just|all) \w|\bwe (?:don't|do not|can't|cannot|have no) \w|\btoo (?:slow|heavy|big|complex|complicated|expensive|much|"
    r"fragile|old|limited|hard|young|verbose|risky)\b|\boverkill\b|\b(?:is|are|would be|gets?) (?:\w+ )?(?:simpler|cheaper|faster|slower|safer"
    r"|easier|smaller|"
    r"harder|heavier|slow|enough|unmaintained|deprecated|abandoned)\b|\b(?:hardly|no longer|barely|not) (?:maintained|supported|developed)\b|"
    r"^[\w.+#/`-]+(?: [\w.+#/`-]+){0,4}? (?:needs?|requires?|costs?|breaks?|lacks?|can't|cannot|doesn't|does not|would (?:need|cost|give|mean"
    r"|require|break|be))\b|"
    r"\bone more\b|\b(?:the team|everybody|everyone|we all) (?:knows?|likes?|uses?)\b",
    _I,
)
_WORK = lazy_compile(
    r"(?:(?:and|then|so|now|please|also|ok(?:ay)?)[,]? )*(?:write|add|create|make|put|start|do|let's|can|could|please|thanks?|great|did|check"
    r"|look|run|tell|show|go|"
    r"i'll|i will|we'll|you can)\b",
    _I,
)
_DOUBT = lazy_compile(r"\b(?:maybe|perhaps|probably|not sure|might|possibly|whatever)\b|\?", _I)
_FIRM = lazy_compile(
    r"let's (?:go (?:with|for)|use|stick|keep|standardi)|decided|chose|opted|settled|agreed|picked|going (?:with|for)|we(?:'ll| will)|went with"
    r"|it (?:is|stays)|"
    r"(?:'d|would)|decision|standardi[sz]ed",
    _I,
)
_SUBJECT = (
    r"(?:^|[,;:.] )(?:(?:and|but|so|also|ok(?:ay)?|yes|i (?:think|guess|believe)|imo|imho|honestly|for (?:that|this)),? )*"
    rf"(?:(?:a|an|one) )?{_NOT_ANY}[\w.+#/`-]+(?: [\w.+#/`-]+){{0,3}}? "
)
_TOO_MUCH = lazy_compile(
    rf"{_SUBJECT}(?:is|are|would be|seems?|feels?|looks?) (?:\w+ )?(?:overkill|too much|too heavy|not worth (?:it|the)|unnecessary|more than we"
    rf" need|over the top)\b"
    r"|\bwe (?:don't|do not) (?:really )?need (?:an? |any )(?!(?:new |second )?(?:button|icon|label|legend|tooltip|chart|banner)\b)\w",
    _I,
)
_ENOUGH = lazy_compile(
    r"(?:^|[,;:.] )(?:(?:and|but|so) )?(?:(?:a|an|one) )?"
    + _NOT_ANY.replace("one|", "")
    + r"[\w.+#/`-]+(?: [\w.+#/`-]+){0,3}? (?:(?:is|are|will"
    r" be|would be) "
    r"(?:\w+ )?(?:fine|enough|plenty|sufficient|all we need|good|ok(?:ay)?)\b|will do\b|does the job\b|suffices?\b)(?: (?:for|here|with)"
    r" [^,;.]{2,30})?",
    _I,
)
_WHY = lazy_compile(r"(?:[,;:—–-]+|\s*\b(?=since|because|as\b))\s*(?:since |because |as )?\S+(?: \S+){2,}", _I)
#: How somebody says what follows from a decision.
FOLLOWS = lazy_compile(
    r"(?:(?:and|so|hence|therefore|that means|which means)[, ]+)+(?!(?:please|let's|can|could|write|add)\b)[^.?]{2,80}\b(?:it"
    r" (?:is|stays)|stays?|remains?)\b",
    _I,
)


def find_argument(deciding: str, sentence: str, choice: str, following: str) -> str:
    """Return the next sentence where it argues for a choice made by name, else "".

    Example:
        >>> find_argument("let's go with", "let's go with SQS.", " SQS.", "Kafka would give us replay but nobody wants to run brokers")
        'Kafka would give us replay but nobody wants to run brokers'
        >>> find_argument("let's go with", "let's go with SQS.", " SQS.", "Write the adapter first.")
        ''
    """
    found = _CHOICE.match(choice)
    is_named = "it is" in deciding or "it stays" in deciding or found is not None
    is_argued = (
        15 <= len(following) <= _LONGEST and _ARGUMENT.search(following) is not None and not _WORK.match(following)
    )
    if (
        not (is_named and is_argued and _FIRM.search(deciding))
        or _DOUBT.search(following)
        or doubts.NOT_MEANT.search(following)
    ):
        return ""
    return "" if TASTE.search(f"{sentence} {following}") else following


def find_verdict_words(sentence: str, following: str) -> tuple[str, str] | None:
    """Return a sentence that calls one thing too much and another enough, with the next one where that tells the rest.

    Example:
        >>> find_verdict_words("a FIFO queue is overkill, standard is fine, the handlers are idempotent", "")
        ('a FIFO queue is overkill, standard is fine, the handlers are idempotent', '')
        >>> find_verdict_words("the tooltip is overkill, a label is fine", "") is None
        True
    """
    if len(sentence) > _LONGEST or not _TOO_MUCH.search(sentence):
        return None
    for text, rest in ((sentence, ""), (following, following)):
        enough = _ENOUGH.search(text)
        is_meant = text and not _DOUBT.search(f"{sentence} {rest}") and not TASTE.search(f"{sentence} {rest}")
        if enough and is_meant and _WHY.match(text, enough.end()) and len(text) <= _LONGEST:
            return sentence, rest
    return None
