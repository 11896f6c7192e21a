"""One thing rather than another, and what is not to be done any more: instructions by their form alone.

Both things must be kinds (`lexicon`): what a project is built with, or a way of writing. The words
of one file or one screen make such a sentence an order for the moment.
"""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.lexicon import WORK, is_at_hand, is_choice, is_kind
from memory_kb.learning.speech.ownwords import CODE
from memory_kb.learning.speech.phrases import any_of

_I = re.IGNORECASE | re.DOTALL
_THING = rf"[\w@#][\w.+#@/{CODE}'-]*(?: [\w@#][\w.+#@/{CODE}'-]*){{0,3}}?"
_RATHER = r"(?:,? (?:and )?(?:not|never|over|instead of|rather than|and not)|, no) "
_CUT = (
    r"(?=\s*(?:[.;!:,)(]|$|\s[—–-]|\b(?:for|in|on|across|throughout|please|pls|thanks|thx|everywhere|since|because|as we|like|when|whenever|to|"
    r"here|there|just|only|at|from|any ?more)\b))"
)
_POLITE = r"(?:(?:please|pls|so|and|but|then|also|we should|you should|we|you|just) )*"
_TAKE = any_of("use prefer take pick choose go_with stick_(?:to|with) switch_to try_to_use reach_for favou?r")
_SINCE = (
    r"(?:(?:we're|we are|we've|we have|we) (?!(?:need|want|should|can|could|will|must|had|were|got|just)\b)[^,;:.?!\n]{2,60}[,;] (?:so )?|"
    r"(?:in|across|throughout) (?:this|our) (?:whole )?(?:repo|repository|project|codebase|code base|monorepo|team),? |for [^,;:.?!\n]{2,40}, )?"
)
_ASKED = lazy_compile(
    rf"{_SINCE}{_POLITE}(?:{_TAKE} )(?P<one>{_THING}){_RATHER}(?P<other>{_THING}){_CUT}(?P<tail>.*)", _I
)
_BARE = lazy_compile(rf"{_SINCE}(?P<one>{_THING}){_RATHER}(?P<other>{_THING}){_CUT}(?P<tail>.*)", _I)
_IT_IS = lazy_compile(
    rf"(?:it's|it is|we're on|we are on|we're using|we are using|we run on) (?P<one>{_THING})(?:{_RATHER}(?P<other>{_THING}){_CUT}|"
    r" (?P<all>everywhere)\b)(?P<tail>.*)",
    _I,
)
_TAKE_ONE = lazy_compile(
    rf"{_POLITE}(?:{_TAKE}) (?P<one>{_THING}) for (?:the |our |all )?(?P<what>[\w-]+(?: [\w-]+)?s)(?P<tail>[.!,;]*\s*$|[,;.] .*)",
    _I,
)
_DROPPED = lazy_compile(
    rf"{_SINCE}{_POLITE}(?:don't|do not|no need to) (?:use|import|install|add|call|reach for|depend on|rely on|pull in) (?P<one>{_THING}) "
    r"(?:any ?more|any longer|anywhere)\b(?P<tail>.*)",
    _I,
)
_HAVE = lazy_compile(
    rf"{_POLITE}(?:don't|do not|avoid|no need to) (?:use|using|import|importing|install|add|adding|pull in) (?P<one>{_THING})[,;] "
    r"(?:(?:because|since|as) )?(?:we|it's|there's|that's) (?:(?:already|only|have|use|got|moved|switched|banned|dropped|are|our|all|"
    r"prefer)\b)(?P<tail>.*)",
    _I,
)
_STOP_USING = lazy_compile(
    rf"(?:and |so )?{_POLITE}(?:stop|quit|no more) (?:using|importing|adding|installing|calling|importing from|depending on|reaching for)"
    rf"(?: from)? (?P<one>{_THING}){_CUT}(?P<tail>.*)",
    _I,
)
#: What an agent does each time, rather than what a program does.
_TURN = (
    r"(?:every|each|any) (?:single )?(?:little |small )?(?:change|edit|step|commit|turn|message|answer|reply|response|task|tests?(?: "
    r"run)?|runs?|push|pr|pull request|"
    r"merge|release|deploy|session|action|command|line|time|file (?:edit|change|read|write)|iteration|fix|refactor(?:ing)?)s?\b"
)
_DOING = r"(?!(?:this|that|it|worry|know|think|see|get|understand)\b)[a-z]+"
_EACH_TURN = lazy_compile(
    rf"(?:and |so |but )*{_POLITE}(?:(?:stop|quit) \w+ing|(?:don't|do not|you don't (?:have|need) to|you needn't|no need to) "
    rf"{_DOING})\b[^.;!?\n]{{0,80}}?"
    rf"\b(?:after|before|in|into|to|on|at|for|with|(?:at )?the end of|in front of) {_TURN}",
    _I,
)
_STOPPED = lazy_compile(
    rf"we (?:(?:have )?(?:stopped|quit) using|dropped|banned|got rid of) (?P<one>{_THING})(?:,|;| so) (?P<tail>.*)", _I
)
_NO_MORE = lazy_compile(
    rf"(?:going forward |from now on |{_POLITE})*no more (?!than\b)(?P<one>(?:[\w.{CODE}-]+ ){{0,2}}?[\w{CODE}-]+s)\b(?P<tail>[^?]*)$",
    _I,
)
_WORK_WORD = lazy_compile(rf"\b{WORK}\b", _I)
_INTO = lazy_compile(
    rf"{_POLITE}(?:don't|do not) {_DOING} (?P<one>(?:[\w-]+ ){{0,2}}?[\w-]+) (?:to|in|into|inside|from) (?P<what>(?:our |any "
    rf")?(?:[\w-]+ ){{0,2}}?[\w-]+s)\b"
    r"(?P<tail>[.!]*\s*$|[,;] .*)",
    _I,
)
_NOTHING_OF = lazy_compile(
    rf"(?:please )?no (?P<one>(?:[\w.{CODE}-]+ ){{0,2}}?[\w{CODE}-]+(?:s|(?= (?:in|inside|from) )))(?: (?:in|inside|from) "
    rf"(?P<what>(?:our |any )?(?:[\w-]+ ){{0,2}}?[\w-]+s))?"
    r"(?P<tail>(?:,? (?:please|pls|anywhere|ever|in this (?:repo|project|codebase)))+[.!]*\s*$|[,;] (?:we|they|it hides|that hides)\b.*)",
    _I,
)
_NOTHING = any_of(
    "errors? problems? questions? changes issues? worries news warnings? ideas? conflicts? results? differences? tests? bugs? surprises?"
)
_ENDED = lazy_compile(r"\b(?:yet|before i|until|for now|please fix|, (?:just|only) |so (?:you|i|it)\b)", re.IGNORECASE)


def read_contrast(core: str) -> str | None:
    """Return the pattern of a sentence that says what to take, what not to, or which of two; nothing for others.

    Example:
        >>> [read_contrast(one) for one in ("use ripgrep, not grep", "use the red one, not the blue", "we're on Gradle, not Maven")]
        ['preference', None, 'statement']
        >>> [read_contrast(one) for one in ("don't summarise after every edit", "don't show a toast after every click")]
        ['preference', None]
    """
    if _ENDED.search(core):
        return None
    found = _IT_IS.match(core)
    if (
        found
        and is_choice(found["one"])
        and (found["all"] or (is_choice(found["other"]) and not _is_more(found)))
        and not _is_for_one(found["tail"].replace("that", ""))
    ):
        return "statement"
    for expression in (_ASKED, _BARE):
        found = expression.match(core)
        if found and is_choice(found["one"]) and is_choice(found["other"]) and _is_plain(found, expression):
            return "preference"
    return "preference" if _is_no_more(core) else None


def _is_for_one(tail: str) -> bool:
    """Tell whether what follows makes it about one thing; in a later clause stands why."""
    return (
        is_at_hand(re.split(r"[,;.!]", tail, maxsplit=1)[0])
        or re.search(r"\b(?:just|only|once|there)\b", tail, re.IGNORECASE) is not None
    )


def _is_plain(found: re.Match[str], expression: re.Pattern[str]) -> bool:
    """Tell whether a choice is one in general; without a verb it needs a comma, or two names."""
    between = found.string[found.end("one") : found.start("other")]
    return not _is_for_one(found["tail"]) and (expression is _ASKED or "," in between or _is_of_names(found))


def _is_more(found: re.Match[str]) -> bool:
    """Tell whether two words compare, as `bigger` and `smaller` do."""
    return all(re.fullmatch(r"\w+er", found[one]) for one in ("one", "other"))


def _is_of_names(found: re.Match[str]) -> bool:
    """Tell whether two things without a comma between them are single names, or are told apart by more than `not`."""
    return not re.search(r" not $", found.string[: found.start("other")]) or " " not in found["one"] + found["other"]


def reads_as_choice(core: str) -> bool:
    """Tell whether a sentence says what is taken for a kind of things, which after an objection is how things are.

    Example:
        >>> reads_as_choice("use Cypress for the browser tests."), reads_as_choice("use the helper for the tests.")
        (True, False)
    """
    found = _TAKE_ONE.match(core)
    return found is not None and is_choice(found["one"]) and not _is_for_one(found["tail"])


def _is_no_more(core: str) -> bool:
    """Tell whether a sentence forbids a kind of things, or what is done each time."""
    for expression in (_DROPPED, _STOPPED):
        found = expression.match(core)
        if found and is_choice(found["one"]) and (expression is _STOPPED or not _is_for_one(found["tail"])):
            return True
    found = _HAVE.match(core) or _STOP_USING.match(core)
    if found and (
        is_choice(found["one"])
        or (is_kind(found["one"]) and re.match(r"[,;] we (?:have|use)\b", found["tail"], re.IGNORECASE))
    ):
        return True
    if _EACH_TURN.match(core):
        return True
    found = _NO_MORE.match(core)
    if found and is_kind(found["one"]) and not re.search(rf"\b{_NOTHING}$", found["one"], re.IGNORECASE):
        return not _is_for_one(found["tail"]) or "now on" in core.lower()
    found = _INTO.match(core)
    if found and is_kind(found["one"]) and is_kind(found["what"]) and _WORK_WORD.search(found["what"]):
        return True
    found = _NOTHING_OF.match(core)
    return found is not None and is_kind(found["one"]) and not re.search(rf"\b{_NOTHING}$", found["one"], re.IGNORECASE)
