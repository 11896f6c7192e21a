"""What to call something that somebody said: its words without those that only lead to it or politely end it."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.general import LEADING, OBJECTION
from memory_kb.learning.speech.openings import OPENING
from memory_kb.learning.speech.phrases import any_of
from memory_kb.text import shorten

#: The longest title, and the shortest that a longer one is cut to.
TITLE, _SHORTEST_TITLE = 80, 30

_I = re.IGNORECASE
_AGREEING = lazy_compile(r"(?:(?:yes|yeah|yep|right|correct|exactly|true)[,.!:]*\s+)*", _I)
_OBJECTING = lazy_compile(
    r"(?:no|nope|nah|nein|nee|non|não|wrong|falsch|いや|いいえ|不对)\s*[,:;.!–—、，]+\s*(?:actually,? )?", _I
)
_FOREIGN_LEAD = lazy_compile(
    rf"(?:{any_of('und bitte also übrigens außerdem et donc aussi y además por_favor e inoltre en graag')}(?:\s*[,:]\s*|\s+)(?=[\w`]{{2}})|"
    r"(?:achtung|wichtig|hinweis|attention|important|atención|importante|atenção|attenzione|let op)\s*[,:!]\s*)*",
    _I,
)
_PARTING = any_of(
    "please pls plz thanks thx thank_you btw by_the_way ok okay fyi bitte danke merci stp svp gracias por_favor grazie graag"
)
_TRAILING = lazy_compile(
    rf"(?:\s*[,;–—-]?\s*\b(?:{_PARTING}))+\s*$",
    _I,
)
# What is not cut apart: code, quotes, what is in brackets.
_WHOLE = lazy_compile(
    r"`[^`]*`?|\"[^\"]*\"?|“[^”]*”?|„[^“”]*[“”]?|«[^»]*»?|(?<!\w)'[^']*'(?!\w)|(?<![\w$])[\w$]*\([^()]*\)?|「[^」]*」?"
)
_CLAUSE_END = lazy_compile(r"(?<=[^\s,;:.!?–—-])(?=(?:[,;.!?]|(?<!\)):)[,;:.!?]*(?:\s|$)|\s[–—-]+\s|[、，；：。])")
_BEFORE_CLAUSE = lazy_compile(
    rf"(?=\s{any_of('because since so_that which unless weil damit sodass wobei parce_que puisque porque ya_que perché poiché omdat zodat')}\b)",
    _I,
)
#: Short words behind which something is missing.
_LOOSE_END = lazy_compile(r"(?:\s+[a-zà-ÿ]{1,3})+$")
_WORD_END = lazy_compile(r"(?<=\S)(?=\s)")


def strip_wording(text: str) -> str:
    """Return a sentence on one line without what leads to it and what only ends it.

    Example:
        >>> strip_wording("again: never rebase shared branches, please!"), strip_wording("No, no tests in CI")
        ('never rebase shared branches', 'no tests in CI')
    """
    bare = " ".join(text.split())
    for _ in range(3):
        before = bare
        for expression in (_AGREEING, LEADING, OBJECTION, _OBJECTING, _FOREIGN_LEAD, OPENING):
            rest = expression.sub("", bare, count=1) if expression.match(bare) else bare
            bare = rest if len(rest.split()) > 1 or (not re.search(r"\s", rest) and len(rest) > 4) else bare
        if bare == before:
            break
    bare = bare.rstrip(".!。！ ")
    rest = _TRAILING.sub("", bare)
    return (rest if len(rest) > 4 else bare).rstrip(".!,。！ ")


def headline(text: str, limit: int = TITLE) -> str:
    """Return a title: what is too long ends where a clause does, or a word, and never within code, a quote or brackets.

    Example:
        >>> headline("Replays have to be deterministic or the ghost races are pointless, so gameplay stays on the fixed tick")
        'Replays have to be deterministic or the ghost races are pointless…'
        >>> headline("Run `docker compose up -d --wait` each time before somebody starts `bundle exec rspec spec/models`")
        'Run `docker compose up -d --wait` each time before somebody starts…'
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    whole = [found.span() for found in _WHOLE.finditer(line)]
    for expression in (_CLAUSE_END, _BEFORE_CLAUSE, _WORD_END):
        places = (found.start() for found in expression.finditer(line, 0, limit))
        ends = [
            one
            for one in places
            if _SHORTEST_TITLE <= one < limit and not any(start < one < end for start, end in whole)
        ]
        if ends:
            title = line[: ends[-1]]
            return f"{_LOOSE_END.sub('', title) if expression is _WORD_END else title}…"
    return shorten(line, limit)
