"""What tells that a sentence is not to be kept although it begins like one that is.

It is meant for this one occasion, is not meant at all, points at something that it does not name,
or takes back what it says. Sentences are masked as for `phrases`.
"""

from __future__ import annotations

import re

from memory_kb.learning.speech.phrases import LEAD, any_of


def _search(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_LASTING = any_of(
    "repo repository repos projects? codebase code_base code monorepo team company organi[sz]ation org workspace app application service "
    "product package library platform machine stack vault kind sort type way system cluster client customer site account"
)
# A part of what is shown, or of the text at hand: what is said of one such is said of that one.
_VIEW = any_of(
    "dialog dialogue page screen form modal header footer sidebar navbar toolbar card list menu tab panel layout button dropdown tooltip "
    "icon heading logo chart graph dashboard row cell image link popup widget spinner thumbnail banner checkbox slide field input item"
)
_TEXT = any_of(
    "(?<!config_)(?<!configuration_)(?<!lock_)(?<!log_)file function method script ticket section paragraph loop diff snippet example answer reply"
)
_PART = rf"(?:{_VIEW}|{_TEXT})"
_END = r"(?= *[.,;!?]| *$)"

_NOW = any_of(
    "for_now for_the_(?:moment|time_being) at_the_moment right_now this_(?:time|once) just_once today tonight tomorrow yesterday temporarily"
)
#: Words for this one occasion.
ONE_OFF = _search(
    rf"\b{_NOW}\b",
    r"\b(?:in the meantime|while (?:i|you|we)|as long as (?:i|we)|by (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    rf"\buntil (?:{any_of('i we it this that further then tomorrow next')}|the (?:bug|issue|problem|fix)|(?:all |every )?the (?:tests?|build|ci))\b",
    r"\bbefore (?:continuing|proceeding|finishing|(?:we|you) (?:finish|continue|proceed|go|start|begin|stop|move|ship))\b",
    r"\b(?:before|after|once) i(?:'ve| have)\b",
    r"\bwhen (?:you're|you are|i'm|we're) (?:done|finished|ready)\b",
    r"\byou(?:'re| are) (?:writing|working|making|building|editing|changing)\b",
    r"\byou (?:just|gave|wrote|sent|showed|added|made)\b",
    r"\bi (?:just )?(?:gave|sent|showed|told|mentioned)\b",
    r"\b(?:asking me|(?:we|you|i) do now|so (?:that )?i can (?:see|check|debug|test|look))\b",
    r"\bnext (?:step|commit|pr|time|week|release|sprint)\b|\b(?:step|lines?) \d",
    r"\b(?:my local|on my (?:machine|laptop|branch|fork|screen)|remaining|the rest of)\b",
    r"\bthe (?:two|three|four|five|six|first|second|third|fourth|last) |\b(?:as|like) before\b",
    rf"\b(?:above|below|there|first){_END}",
    rf"\b(?:in|on|at|of|for|from|into|to|under|above|below) (?:the|that|both) (?:[\w-]+ ){{0,2}}?{_PART}\b"
    r"(?! (?:messages?|descriptions?|titles?|bod(?:y|ies)|templates?|fields?)\b)",
    rf"\b(?:all|each|every|both|any)(?: of)?(?: the)? (?:[\w-]+ )?{_VIEW}s?\b(?= (?:must|should|have|has|is|are|in|on|needs?)\b)",
    r"\b(?:all|every|each|any) \w+ in \S+\.[a-z]{1,4}\b",
    r"\b(?:on|in|at|from|for|of|to|with) that \w",
    rf"\b(?:this|these|those) (?!{_LASTING}\b|is\b|was\b)\w",
    rf"\b(?:for|in|on|of|from) (?:this|that|these|those){_END}|\b(?:after|before|with|without) (?:that|this){_END}",
    r", so (?:please )?(?:add|make|fix|change|write|put)\b",
)
#: Words of somebody who does not mean it, or who only tells.
NOT_MEANT = _search(
    r"\b(?:maybe|perhaps|i guess|i suppose|i wonder|lol|lmao|haha\w*|ha|rofl|just kidding|jk|they said|that's the spirit|yeah,? (?:right|sure))\b",
    r"\b(?:what could (?:possibly )?go wrong|(?:brilliant|great|genius) idea|hence|which is (?:annoying|why)|so (?:i|it|that's))\b",
    r"(?<!\S)/s(?!\S)|[🙄😂🤣😅😉🙃]",
)
#: After a rule: what is to be done about it now.
NOW_TO_DO = re.compile(
    rf",? (?:and |so |then |please )*\b{any_of('add write create fix make put do move remove delete change update rename mend include')} "
    r"(?:one|it|them|that|this|some|those|these)\b(?!.*\b(?:instead|rather|first|before|when|whenever|if)\b)[^;]*$",
    re.IGNORECASE,
)
#: At the beginning of what is captured: it points at something, where the thing itself should be named.
POINTING = _search(
    r"(?:\S+ )?that \w+(?:\s*$| (?:with|to|on|in) )",
    r"(?:\S+\s+){0,2}?\b(?:it|that|this|them|those|these|there)(?=\s*(?:$|[.,;!?])|\s+(?:any ?more|ones?\b|like (?:that|this)|"
    rf"{any_of('again here there now please first twice in on for with to when unless before after without from as at by')})\b)",
)
#: The rest of the sentence takes a preference or a constraint back, or is about what is to be done now.
TAKEN_BACK = _search(
    rf"\bbut {any_of('there i we now here this that the it not still no')}\b",
    rf", (?:just \w|{any_of('''delete revert undo scaffold go_with let's go_ahead look_at so_let so_nobody''')}\b)|\b(?:can|could) you\b",
)
_NOW_DO = any_of("check look swap rename use change fix try remove add delete move put make revert let's rebase update run go keep")
#: The rest of a correction tells that it is about what is going on.
GOING_ON = _search(
    r"\b(?:again|still|yet|that(?:'s| is) (?:why|how)|that's the|so that can't|so (?:you|i|we|it) |now that|please|(?:can|could) you)\b",
    r"\b(?:have a look|look at|check (?:that|it|this)|don't judge|where|left|right|top|bottom|above|below)\b",
    rf"\b(?:the|an?|your|my) {any_of('old new wrong same other right correct first second third last next previous current original')} \w",
    r"\bin the (?:fixtures?|parent|previous|next|other|same)\b|\breturns? (?:an? )?(?:[45]\d\d|nothing|error|empty)\b",
    rf"[,;] (?:so |and |then )?(?:please )?{_NOW_DO}\b",
)
#: After a request: something that is still to be done, rather than known.
STILL_TO_DO = _search(r".*\byet\b", r"you (?:(?:still )?(?:have|need) to|were|said|promised|are supposed)\b")
#: An order to make something; what must be so in the same message may be about that alone.
ORDER = _search(
    r"(?:please |can you |could you |let's |now )*"
    rf"{any_of('write create implement build generate design draft add make develop document list render show')}\b"
)
#: A constraint that may be about the parts of one thing.
SPECIFIC = _search(LEAD + r"(?!(?:no|nobody|don't|do not|dont|you|we|our|under|it)\b)")
