"""What tells that a sentence says how things are done, weighed against what tells that it is about the moment.

The last resort, for what no form is known for: no sign decides by itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.lexicon import FARING, SHOWN
from memory_kb.learning.speech.ownwords import CODE

#: So much must speak for a sentence, when all is counted.
ENOUGH = 4
#: Fewer words say too little by themselves.
_FEW = 6
_SCOPE = r"(?:repo|repository|project|code ?base|monorepo|team|company|workspace|organi[sz]ation|department)"
#: A subject that is a kind of things: many of them, or one that stands for all.
_MANY = (
    r"(?:(?:all|any|our|new|every|each|no) (?:the )?(?:new |public |our )?)?(?!(?:the|this|that|these|those|it|he|she|i|we|you|they|there|what|which|"
    rf"who|his|her|its|my|your|thanks|let|lots|sometimes|always|tests? (?:are|is))\b)(?:[\w{CODE}./-]+ ){{0,4}}?"
)
_HOW = (
    r"(?:are|is|go|goe?s|come|comes|live|lives|use|uses|have|has|get|gets|belong|belongs|answer|answers|return|returns|start|starts|end|ends|stay|"
    r"stays|run|runs|sit|sits|follow|follows|need|needs|count|counts|read|reads|write|writes|take|takes|carry|talk|talks|speak|speaks|must|may)"
)


class _Sign(NamedTuple):
    weight: int
    words: re.Pattern[str]


def _sign(weight: int, *words: str) -> _Sign:
    return _Sign(weight, lazy_compile("|".join(words), re.IGNORECASE))


_SIGNS = (
    _sign(
        2, r"(?<!look )(?<!put )(?<!it )(?<!that )(?<!right )(?<!click )(?<!done )(?<!from )\b(?:around )?here\b(?! (?:is|are|we go|you go|goes)\b)"
    ),
    _sign(2, rf"\b(?:in|across|throughout|within|for) (?:this|our|the) (?:whole |entire )?{_SCOPE}\b"),
    _sign(2, r"\b(?:nowhere(?: else)?|anywhere|everywhere(?: else)?|across the board|no exceptions?|full stop|as a rule|by convention|by policy)\b"),
    _sign(2, r"\b(?:we|nobody|no one|everybody|everyone) (?:don't|do not|never|only|always|no longer|deliberately)\b"),
    _sign(2, rf"^(?:and |so |but )*our (?:[\w{CODE}-]+ ){{1,4}}?{_HOW}\b"),
    _sign(
        2, r"\b(?:only be|only (?:reachable|run|runs|work|works|through|via|from|in|on|for)|there(?:'s| is| are) only|can only|may only|must only)\b"
    ),
    _sign(
        1, r"(?:,|\band) not (?:as |in |from |through |via |by |with |on |the |an? )?[\w`.-]+(?=[\s.,;!)]|$)(?<!not yet)(?<!not sure)(?<!not really)"
    ),
    _sign(2, r"\b(?:instead of|rather than)\b"),
    _sign(2, r"\b(?:don't|do not|never) ever\b|\b(?:under no circumstances|hands off|off[- ]limits|not even|frozen|taboo|forbidden)\b"),
    _sign(2, r"\b(?:not just this one|for all [\w-]+s\b|in general\b)"),
    _sign(1, rf"^(?:and |so |but )*{_MANY}[\w{CODE}'-]*(?<![us])s(?: (?:of|in|on|for|under|from) [\w{CODE}./-]+(?: [\w{CODE}-]+){{0,2}}?)? {_HOW}\b"),
    _sign(1, rf"^(?:and |so |but )*(?:new|an?|every|each|any) [\w{CODE} -]{{3,40}}? {_HOW}\b"),
    _sign(1, r"\b(?:because|otherwise|or else|so that)\b|[,;:] (?:we|they|legal|security|the team|it (?:leaked|broke|wipes|breaks)|[\w-]+ wipes)\b"),
    _sign(1, r"\b(?:counts? as|belongs? to|stays?|is meant|are meant|by hand|in production|idempotent|goes? under|come out of|comes? from)\b"),
    _sign(1, rf"{CODE}|\b[\w-]+(?:/[\w.-]+)+/?|\b(?:[a-z]+_[a-z_]+|[a-z]+[A-Z]\w+|[A-Z]{{2,}}\w*)\b"),
    _sign(-1, r"\b(?:must|has to|have to)\b"),
    _sign(1, r"\b(?:keep in mind|gotta|shouldn't|should (?:never|always|not))\b"),
    _sign(-3, r"\b(?:i|i'm|i've|i'd|i'll|me|mine)\b"),
    _sign(-1, r"\bmy\b"),
    _sign(-2, r"^(?:and |so |but |then )*you (?!must\b|never\b|may only\b|have to\b)|\bthen[.!]*\s*$"),
    _sign(-3, r"\b(?:today|now|yet|again|tonight|tomorrow|yesterday|this time|for now|at the moment|currently|in this pr|until|just like that)\b"),
    _sign(-2, rf"\b(?:this|that|these|those) (?!(?:whole |entire )?{_SCOPE}\b|is\b|one\b|way\b)[a-z]"),
    _sign(-2, r"^(?:and |so |but )*(?:it|this|that|they|he|she|there)\b(?!'s only)"),
    _sign(-2, r"\b(?:the user|users?|players?|visitors?|customers?|people|boss|enemy|readers?)\b"),
    _sign(-3, r"\b(?:if|when|once|as soon as) (?:the|he|she|it|they|this|that)\b"),
    _sign(-2, r"\b(?:was|were|had|did|got|went|made|broke|used to|has been|have been)\b"),
    _sign(-2, r"\b(?:maybe|perhaps|probably|i think|seems?|looks?|feels?|kind of|sort of|hopefully|apparently|prob)\b"),
    _sign(-2, r"\b(?:can|could|would|will|shall) (?:you|we|u)\b|\b(?:please|pls)\b.*\b(?:the|it|them)\b|\b(?:px|\d+ ?%|ms|seconds?)\b"),
    _sign(
        -2,
        r"^(?:and |so |but |then |also |please |just |ok |now )*(?:add|make|put|move|change|rename|remove|delete|fix|show|set|create|write|check|"
        r"revert|bump|drop|leave|give|take|turn|replace|update|build|implement|refactor|use|try|plot|draw|keep|let|push|merge|commit|run|open|look|go|get|"
        r"do)\b",
    ),
    _sign(-2, r"^(?:and |so |but )*the (?!(?:suite|build|pipeline|api|cluster|repo|staging|production|prod|database|db|ci)\b)"),
)


def weigh(core: str) -> int:
    """Return what speaks for a sentence to hold for more than this once, less what speaks against it.

    Example:
        >>> weigh("handlers here answer errors as JSON, not as plain text") >= ENOUGH, weigh("the button here should be red, not blue") >= ENOUGH
        (True, False)
    """
    against = 2 * (SHOWN.search(core) is not None) + 2 * (FARING.search(core) is not None) + (len(core.split()) < _FEW)
    return sum(sign.weight for sign in _SIGNS if sign.words.search(core)) - against
