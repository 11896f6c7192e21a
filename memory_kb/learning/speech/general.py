"""Instructions and facts that hold for more than this once, told by the form of a sentence and not by its words.

What the expressions of `phrases` and `standing` do not know is read here: which of two (`contrasts`),
how things are done (`customs`), what surrounds the project (`surroundings`). Each of them asks what
a sentence is about (`lexicon`), so that names nobody thought of are read like the others.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech import doubts, phrases
from memory_kb.learning.speech.contrasts import read_contrast, reads_as_choice
from memory_kb.learning.speech.customs import read_custom
from memory_kb.learning.speech.lexicon import PICKING, SHOWN
from memory_kb.learning.speech.surroundings import read_surrounding

#: A longer sentence tells a story.
_LONGEST = 320
_FEWEST = 3
_BRIEF = 12
_REPEATING = (
    r"(?:(?:how (?:many times|often)|as|like|what did|have) (?:do |did |have |must |should |will )?(?:i|you) (?:have to |already |just |need to )*"
    r"(?:say|said|tell|told|repeat|mention|mentioned|ask|asked|explain|explained|written|wrote)[^:,.?!\n]{0,40}[:,?]\s*|"
    r"(?:i (?:already )?(?:told|said|asked|mentioned)[^:.?!\n]{0,30}|let's agree (?:on (?:this|one thing|that))?|(?:my|our|one|the|a) "
    r"(?:one |only |basic |house )?"
    r"(?:rule|convention|policy)|(?:the )?rule (?:here )?is|agreed|please note|for the future|once more|same as always|important|"
    r"attention|warning)\s*[:,]\s*)"
)
_INTERJECTION = (
    r"(?:(?:fyi|heads[- ]up|for context|just so you know|nb|note|oh|ah|ugh|argh|yeah|yes|yep|right|correct|exactly|true|good|great|"
    r"nice|fine|cool|perfect|"
    r"hm+|um+|well|sure|come on|seriously|also|ya|guys|dude|man)\b[,:;.!—–-]*\s+|stop[,:;.!—–-]+\s+)"
)
#: What stands before a sentence proper, in as many pieces as there are.
LEADING = lazy_compile(rf"(?:{phrases.LEAD}(?:{_INTERJECTION}|{_REPEATING}))*{phrases.LEAD}(?:that )?", re.IGNORECASE)
#: How somebody says that it is not so.
OBJECTION = lazy_compile(
    r"(?:no|nope|nah|wrong|actually|that's (?:wrong|not right))\s*[,:;.!—–-]+\s*(?:please )?", re.IGNORECASE
)
_SINCE = lazy_compile(r"(?:on|in|at|because|since|as|for) [^,;:.?!\n]{3,60}, (?:so )?(?:please )?", re.IGNORECASE)
# Who tells of what was, or of what somebody else does.
_TELLING = lazy_compile(
    r"(?:(?:i|he|she|they|it|you|we|this|that|there|who|what|why|how|when did|which|where)\b(?! (?:only|never|always|don't|do not|no "
    r"longer|use|write|need|have to|must|"
    r"should|make|push|do|cut|run|handle|commit|merge|tag|release|deploy|name|keep|put|test|log|store|throw|return|stopped|dropped|"
    r"build|ship|format|want|may|all|"
    r"strictly|deliberately|exclusively|usually|moved|migrated|switched|changed|went|replaced|soft-?|create|sign|publish|take|banned|"
    r"got rid)\b)(?!'(?:re|ve|s)\b)|(?:(?:should|could|can|would|will|do|does|did|is|are|was|were) (?:i|we|you|it|"
    r"the|that|this|there|they)\b)|[^,;:]{0,40}\b(?:says?|said|tells?|told|thinks?|claims?|insists?|wrote|asks?|asked|wants?|wanted) )",
    re.IGNORECASE,
)
_PAST = lazy_compile(
    (
        r"\b(?:used to|back then|in the past|at the time|previously|last (?:year|week|month|time|job|company)|years? ago|once had|in my "
        r"last|until 20\d\d|formerly)\b"
    ),
    re.IGNORECASE,
)
#: Where it stands at the end of what holds always, it says in what order.
_FIRST = lazy_compile(r"\bfirst(?=\s*[.!]*\s*$)", re.IGNORECASE)


_REPEATED = lazy_compile(r"\bhow (?:many times|often)\b", re.IGNORECASE)
_RULE = lazy_compile(
    r"\bhow (?:many times|often)\b[^:,]*[:,?]\s*$|\b(?:my|our|one|basic|house) (?:\w+ )?(?:rule|convention|policy)(?: here)?\s*[:,]\s*$",
    re.IGNORECASE,
)
#: Why it is so; what such a clause points at is the rule itself.
_REASON = lazy_compile(r"[,;(] ?(?:i|we|because|since|otherwise|you can|it|it's|they|that's)\b.*", re.IGNORECASE)
_POINTER = lazy_compile(r"\bthe rest of\b|\b(?:this|that|these|those)\b(?=\s*[.,!;)]|\s*$| at\b)", re.IGNORECASE)
# Such things come each time, and the place was named.
_EACH_TIME = lazy_compile(
    r"\b(?:after|before|in|at the end of|for|with) (?:every|each) (?:single )?(?:change|edit|step|commit|turn|message|answer|task|run|push|pr|fix)\b",
    re.IGNORECASE,
)
_THESE = lazy_compile(r"\b(?:these|those)\b", re.IGNORECASE)
_PLACED = lazy_compile(r"(?:on|in|at) (?:the|our) [^,;:.?!\n]{3,80}[,;] ", re.IGNORECASE)
_THERE = lazy_compile(r"\bthere(?=\s*[.!]*\s*$)", re.IGNORECASE)
_SWITCHED = lazy_compile(
    r"we(?:'ve| have)? (?:just |finally )?(?:moved|migrated|switched|changed|went|dropped|replaced) [^,;:.?!\n]{2,60}[,;] ",
    re.IGNORECASE,
)
#: A part of the code that has ways of its own.
_OUR_WAY = lazy_compile(r"\bwe (?:never|always|only|don't|do not|deliberately)\b", re.IGNORECASE)
_OUR_PLACE = lazy_compile(r"\bin this (?:layer|module|package|crate|directory|folder|library)\b", re.IGNORECASE)


#: What is supposed, or told of something else.


class Said(NamedTuple):
    """What a sentence is and where the thing itself begins."""

    pattern: str
    start: int


def read_general(masked: str) -> Said | None:
    """Return what a sentence is that holds for more than this once by its form.

    Example:
        >>> read_general("fyi we only use tagged templates in this repo"), read_general("fyi we only use the first")
        (Said(pattern='preference', start=4), None)
        >>> read_general("no, take Gradle instead of Maven").pattern
        'correction'
    """
    flat = masked.replace("\n", " ")
    if len(flat) > _LONGEST or doubts.ORDER.match(flat):
        return None
    lead = LEADING.match(flat)
    start = lead.end() if lead else 0
    objection = OBJECTION.match(flat, start)
    start = objection.end() if objection else start
    core = flat[start:].rstrip()
    if len(core.split()) < _FEWEST - 1 or _TELLING.match(core) or _PAST.search(_SWITCHED.sub("", core)):
        return None
    if is_for_once(core):
        told = None if is_for_once(core, doubts.PASSING) else read_surrounding(core, flat[:start])
        return Said("correction" if objection else told, start) if told else None
    pattern = _read(core, flat[:start])
    if (
        pattern is None
        and _RULE.search(flat[:start])
        and not re.search(r"\b(?:it|this|that|them)\b", core, re.IGNORECASE)
    ):
        pattern = "preference" if _REPEATED.search(flat[:start]) is None or is_short_rule(core) else None
    if pattern is None and objection and reads_as_choice(core):
        pattern = "correction"
    if pattern is None:
        since = _SINCE.match(core)
        pattern = _read(core[since.end() :], "") if since and not is_for_once(since[0]) else None
        pattern = None if pattern == "statement" else pattern
    return Said("correction" if objection else pattern, start) if pattern else None


def _read(core: str, lead: str) -> str | None:
    return read_contrast(core) or read_custom(core) or read_surrounding(core, lead)


def is_short_rule(core: str) -> bool:
    """Tell whether some words name kinds alone, as a rule does that was told before.

    Example:
        >>> is_short_rule("no logic in controllers"), is_short_rule("remove the button")
        (True, False)
    """
    return (
        len(core.split()) <= _BRIEF
        and PICKING.search(re.sub(r"\bno\b|\bnot\b", "", core, flags=re.IGNORECASE)) is None
        and SHOWN.search(core) is None
    )


def is_for_once(sentence: str, words: re.Pattern[str] = doubts.NOT_LASTING) -> bool:
    """Tell whether a sentence is for this one occasion, or not meant.

    Example:
        >>> is_for_once("always format first"), is_for_once("format that file first"), is_for_once("never deploy until monday")
        (False, True, True)
    """
    checked = (
        _FIRST.sub("", sentence) if re.search(r"\b(?:always|never|every|each)\b", sentence, re.IGNORECASE) else sentence
    )
    checked = _REASON.sub(lambda found: _POINTER.sub("it", found[0]), checked)
    checked = _OUR_PLACE.sub("here", checked) if _OUR_WAY.search(checked) else checked
    checked = _THESE.sub("such", checked) if _EACH_TIME.search(checked) else checked
    checked = _THERE.sub("", checked) if _PLACED.match(checked) else checked
    return words.search(checked) is not None or doubts.NOT_MEANT.search(checked) is not None
