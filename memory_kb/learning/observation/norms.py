"""Tell whether a sentence says how things of a kind are or must be, rather than how one of them fares."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech import doubts
from memory_kb.learning.speech.phrases import MATTERS

_I = re.IGNORECASE
#: A longer sentence tells too much at once to be kept as one thing.
_LONGEST = 360
#: What stands for a name in a sentence: code, paths, files, and words that are written as such.
NAME = lazy_compile(
    r"`[^`\n]+`|[\w@-]*(?:[\w-]+/)+[\w.-]*|\b[\w-]+\.(?:[a-z]{1,5})\b|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|\b[A-Z]{2,}[A-Za-z]*\b|"
    r"\b\w+\(\)"
)
#: A wish about how something looks or sounds, here and now.
TASTE = lazy_compile(
    r"\b(?:colou?r|font|darker|lighter|bigger|smaller|rounder|wider|narrower|padding|margin|pixels?|px|icon|headline|wording|shorter|longer)\b",
    _I,
)
# A subject that is no one thing at hand.
_ANY = (
    r"(?:^|[,;:.] )(?:(?:and|but|also|because|since) )*(?!(?:the|this|that|it|these|those|he|she|i|we|you|they|there|what|which|who|let|my|"
    r"your|hm+|one|"
    r"some|something)\b)(?:[\w./-]+ ){0,4}?[\w./-]+ "
)
# How things of a kind are, whatever is being done now.
_NORM = lazy_compile(
    rf"{_ANY}(?:is|are) (?:always|never|only) (?:ever )?(?:\w+ed|by|in|on|for|from|via|run|done|kept|set|built|read|sent|written)\b"
    r"|\b(?:on|in|for|at) (?:the |our )?[\w-]+(?: [\w-]+){0,2},? (?:it's|it is) (?:always|never|only) \S"
    r"|\b(?:every|each) (?!time\b|day\b|one\b)[\w-]+(?: [\w-]+){0,3}? (?:needs?|has to|must) (?!\d|more\b|less\b)"
    r"|\b(?:everything|anything|nothing|all [\w-]+) (?:with|in|that|about|from|under|of|for) [^,.;]{2,50}? (?:has to|have to|must|needs to|"
    r"need to)\b"
    r"|\b(?:you|we|nobody) (?:may|must) (?:not|never|only) (?!(?:need|have|be|want|know|get|see|find)\b)\w|\b(?:is|are|'re) not (?:allowed|"
    r"permitted|supposed) to\b"
    r"|\b(?:run|done|made|written|called|used|deployed|managed|handled|created|changed) (?:only )?(?:by|from|via|through|with|in|"
    r"on) [\w./-]+(?: [\w./-]+)? only\b"
    r"|\b(?!(?:i|we|you|he|she|they|it|that|this|which|who|just)\b)[\w-]+ (?:always|never|only) (?:gives?|sends?|returns?|delivers?|uses?|"
    r"stores?|expects?|accepts?|wants?|speaks?|takes?|writes?|reads?) (?!(?:me|the same|half|part|one|once|two|the first)\b)\S"
    r"|\b(?:is|are) [^,.;]{2,40}, (?:and )?only [\w-]+(?: [\w-]+){0,2} (?:is|are)\b"
    r"|\bwe (?:[\w-]+ ){1,2}?(?:everything|everywhere|all [\w-]+) (?:in|with|as|by|via|through|from|to|on)\b"
    r"|\b(?:is|are) (?:marked|tagged|prefixed|suffixed|labelled) (?:as |with )?\S|\bonly (?:runs?|happens?|works?|starts?) (?!if\b|when\b|once\b)\S"
    r"|\b(?:whenever|every time|each time) [^.;]{4,80}? (?:has to|have to|must|needs? to)\b"
    r"|\blike (?:in )?(?:every|all) (?:the )?(?:other|others)(?: [\w-]+)?\W*$|\b(?:like|as) (?:we do )?everywhere(?: else)?\b"
    r"|\b(?:is|are) (?:called|named|hosted|stored|kept|located|deployed|based|owned) [^,.;]{2,40}?(?: now)?, not (?!yet\b)\S"
    r"|\b(?:is|are) (?:called|named|hosted|stored|kept|located|deployed|based|owned|run|handled) [^,.;]{2,60}\b(?:here|in our|in this|"
    r"by convention)\b",
    _I,
)
_MATTER = lazy_compile(
    rf"\b{MATTERS}s?\b|\b(?:db|database|repo|repository|project|file|model|mart|bucket|box|server|cluster|machine|laptop|board|experiment|"
    rf"result|split|"
    r"record|row|field|number|amount|price|currency|date|path|name|hook|mock|fixture|seed|logger|client|code|folder|director(?:y|ies)|"
    r"region|contract|"
    r"licen[cs]e|review|ticket|format|encoding|unit)s?\b",
    _I,
)
# What is wished of what is being made, or told of how it fares.
_FEATURE = lazy_compile(
    r"\b(?:users?|visitors?|players?|customers?|guests?|readers?|button|page|screen|dialog|modal|menu|header|footer|sidebar|hero|section|form|icon|"
    r"label|tooltip|popup|banner|logo|layout|card|dropdown|enem(?:y|ies)|level|mobile|visible|hidden|logged (?:in|out)|scroll\w*|click\w*|"
    r"bold|italic|"
    r"sorted|aligned|cent(?:er|re)d|shown|displayed|checkbox\w*)\b"
    r"|, (?:why|is (?:it|that)|can you|could you|right|ok|please|nice|lol)\b"
    r"|\b(?:broken|(?:whole |entire )thing|fail(?:s|ed|ing|ure)?|crash\w*|slow|wrong|empty|null|undefined|zero|error(?! codes?| handling|"
    r" class| types?| messages?)|red|stuck|flaky|same|50\d|40\d|missing|still|again|weird|odd)\b",
    _I,
)
# What nobody may do, whatever was done.
_FORBIDDEN = lazy_compile(
    r"\b(?:is|are|stays?|remains?) (?:strictly |completely |all )?(?:forbidden|not allowed|off[- ]limits|frozen|read-only|taboo|banned)\b|"
    r"\b(?:nobody|no one|no-one) (?:ever )?(?:changes|touches|edits|modifies|pushes|deploys|is allowed|may)\b|\bhands off\b",
    _I,
)
# Where things of a kind belong, and where not.
_PLACED = lazy_compile(
    r"(?:^|[,;:.] )(?!(?:the|this|that|it|these|those|he|she|i|you|they|we|there|what|which|let)\b)(?:[\w`'/-]+ ){0,4}?[\w`'/-]+ "
    r"(?:should |must |always |only |have to |need to )?(?:comes?|goe?s?|lives?|belongs?|starts?|stays?|are|is|be) (?:only |"
    r"always )?(?:with|from|through|in|into|"
    r"to|under|via|by|on)\b [^.;]{2,80}?, (?:not|never) (?:from|through|in|into|to|under|via|by|on|the)\b"
    r"|(?:^|[,;:.] )(?!(?:the|this|that|it|these|those|he|she|i|you|they|we|there|what|which|let)\b)(?:[\w`'-]+ ){0,3}?[\w`'-]+s "
    r"(?:have|has|need|must|should)(?: to)? (?:be \w+|go|come|live|start|end|have|carry|follow)\b[^.;]{3,120}\b(?:otherwise|too|because|"
    r"as well|or else)\b"
    r"|(?:^|[,;:.] )(?!(?:the|this|that|it|these|those|he|she|i|we|you|they|there|what|which|"
    r"let)\b)(?:[\w`'-]+ ){0,3}?(?!always\b)[\w`'-]+s (?:always |never |only )?"
    r"(?:starts?|ends?|begins?|uses?|carry|follow|contain|have|are|is)\b [^.,;]{2,60}\b(?:here|in this (?:repo|project|codebase|team))\b",
    _I,
)
_NO_SUBJECT = (
    r"(?!(?:the (?:test|build|error|bug|page|screen|button|output)|this|that|it|these|those|he|she|i|we|you|they|there|what|which|who|why|how|if"
    r"|when|let|"
    r"is|are|was|did|do|does)\b)"
)
_BY_DESIGN = lazy_compile(r",? (?:you|we) can rely on (?:that|it)\b|: [^:]*$", _I)
# What holds in this repository, by what somebody does there.
_HERE = lazy_compile(
    r"\b(?:in|across|throughout) (?:this|our) (?:whole )?(?:repo|repository|project|code ?base|monorepo|workspace|service|team),? (?:we|you"
    r"|nobody|everybody|"
    r"everyone|all of us) (?:always|never|only|don't|do not|must|may)\b(?! (?:used to|had|did|were|got|actually|really|need to|have to worry|know"
    r"|think|"
    r"\w+(?<!e)ed)\b)",
    _I,
)
# What is as it is because somebody wanted it so.
_DESIGNED = lazy_compile(
    rf"(?:^|[,;:.] ){_NO_SUBJECT}[\w`'/.-]+(?: [\w`'/.%-]+){{0,6}}? (?:is|are|has|have|stays?|stay|returns?|uses?|does not|doesn't|do not"
    rf"|don't)\b[^.;?!]{{2,80}}? "
    r"(?:by design|on purpose|deliberately|intentionally)\b|"
    rf"(?:^|[,;:.] ){_NO_SUBJECT}[\w`'/.-]+(?: [\w`'/.%-]+){{0,6}}? (?:is|are) (?:deliberately|intentionally|purposely) \w",
    _I,
)
# A rule about what the same sentence names.
_ABOUT_THESE = lazy_compile(
    rf"^(?:(?:and|but|no|stop|also|btw|note)[,:.]? )*{_NO_SUBJECT}(?!(?:my|your|his|her) )[\w`'/.-]+s(?: [\w`'/.-]+){{0,4}}? are [^.;?!]{{3,60}}?,? "
    r"(?:so |and )?(?:we|you) (?:never|always|don't|do not|must never|must not) (?!(?:know|see|need|have|get|want)\b)\w+ (?:them|those|these)\b",
    _I,
)


def is_told(sentence: str) -> bool:
    """Tell whether a sentence tells of this repository what holds there, or what is so on purpose.

    Example:
        >>> is_told("the timeout is 90 s by design"), is_told("in this repo we never mock the clock"), is_told("did you do that on purpose")
        (True, True, False)
    """
    if (
        len(sentence) > _LONGEST
        or doubts.ORDER.match(sentence)
        or doubts.NOT_MEANT.search(sentence)
        or doubts.ONE_OFF.search(_BY_DESIGN.sub("", sentence))
    ):
        return False
    return any(one.search(sentence) for one in (_HERE, _DESIGNED, _ABOUT_THESE))


def is_norm(sentence: str) -> bool:
    """Tell whether a sentence says how things of a kind are or must be, and not how one of them fares.

    Example:
        >>> is_norm("phone numbers are always stored as E.164 in our db"), is_norm("the page is always empty"), is_norm("the list is only short")
        (True, False, False)
    """
    if (
        not any(one.search(sentence) for one in (_NORM, _FORBIDDEN, _PLACED))
        or doubts.ORDER.match(sentence)
        or _FEATURE.search(sentence)
        or TASTE.search(sentence)
    ):
        return False
    return NAME.search(sentence) is not None or _MATTER.search(sentence) is not None
