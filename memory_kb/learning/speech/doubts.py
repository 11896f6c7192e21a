"""What tells that a sentence is not to be kept although it begins like one that is.

It is meant for this one occasion, is not meant at all, points at something that it does not name,
or takes back what it says. Sentences are masked as for `phrases`.
"""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.phrases import LEAD, any_of


def _search(*patterns: str) -> re.Pattern[str]:
    return lazy_compile("|".join(patterns), re.IGNORECASE)


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

_DAY = any_of(
    "mon(?:day)? tue(?:s|sday)? wed(?:nesday)? thu(?:rs|rsday)? fri(?:day)? sat(?:urday)? sun(?:day)? jan(?:uary)? feb(?:ruary)? "
    "march april june july "
    "aug(?:ust)? sept(?:ember)? oct(?:ober)? nov(?:ember)? dec(?:ember)? christmas easter tonight tomorrow next midnight noon spring "
    "summer autumn winter "
    r"\d+"
)
_EVENT = any_of(
    "release demo launch migration incident audit freeze deadline vacation holidays? weekend meeting review cutover rollout upgrade "
    "handover outage sprint "
    "move switch hackathon presentation call go-live end customer client vendor new beta rc fix patch"
)
#: A limit after which it does not hold any more.
LIMITED = (
    (
        rf"\b(?:until|till|til|'til|through|thru|up to|before) (?:the )?(?:coming |next |this |end of )*(?:the )?{_DAY}\b(?! ?(?:%|chars?|"
        rf"characters|lines?|kb|mb|gb|items?|"
        r"requests?|columns|addresses|words|retries))"
    ),
    (
        rf"\b(?:until|till|til|'til|through) (?:(?:after |the |our |a |an |next |end of )*(?:\w+ ){{0,2}}?{_EVENT}\b|(?:they|he|she|you|"
        rf"everyone|everybody|nobody|\w+) (?:is|are|has|have|"
        r"publish\w*|ship\w*|release\w*|fix\w*|says?|comes?|gets?|mend\w*)\b)"
    ),
    (
        r"\b(?:this (?:week|month|sprint|quarter|morning|afternoon|evening|weekend|year|release|iteration)|(?:today|tonight|tomorrow) only|"
        r"for the next (?:\w+ ){0,2}"
        r"(?:hours?|days?|weeks?|months?|sprints?|minutes?)|for (?:a|one|two|three|the) (?:while|day|days|week|weeks|hour|hours)|over the "
        r"(?:weekend|holidays)|"
        r"(?:during|throughout) the (?:freeze|incident|migration|outage|demo|audit|hackathon|cutover|rollout))\b"
    ),
)
_NOW = any_of(
    "for_now for_the_(?:moment|time_being) at_the_moment right_now this_(?:time|once) just_once today tonight tomorrow yesterday temporarily"
)
_ONCE = (
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
    r"\b(?:on|in|at|from|for|of|to|with) that \w",
    rf"\b(?:this|these|those) (?!{_LASTING}\b|is\b|was\b)\w",
    rf"\b(?:for|in|on|of|from) (?:this|that|these|those){_END}|\b(?:after|before|with|without) (?:that|this){_END}",
    r", so (?:please )?(?:add|make|fix|change|write|put)\b",
)
# One part of what is being made.
_ONE_PART = (
    (
        rf"\b(?:in|on|at|of|for|from|into|to|under|above|below) (?:the|that|both) (?:[\w-]+ ){{0,2}}?{_PART}\b"
        r"(?! (?:messages?|descriptions?|titles?|bod(?:y|ies)|templates?|fields?)\b)"
    ),
    rf"\b(?:all|each|every|both|any)(?: of)?(?: the)? (?:[\w-]+ )?{_VIEW}s?\b(?= (?:must|should|have|has|is|are|in|on|needs?)\b)",
    r"\b(?:all|every|each|any) \w+ in \S+\.[a-z]{1,4}\b",
)
#: Words for this one occasion.
ONE_OFF = _search(*_ONCE, *_ONE_PART)
#: The same, and what has an end.
NOT_LASTING = _search(*LIMITED, *_ONCE, *_ONE_PART)
#: The same of what is only told of, where a part may well be named.
PASSING = _search(*LIMITED, *_ONCE)
#: Words of somebody who does not mean it, or who only tells.
NOT_MEANT = _search(
    r"\b(?:maybe|perhaps|i guess|i suppose|i wonder|lol|lmao|haha\w*|ha|rofl|just kidding|jk|they said|that's the spirit|yeah,? (?:right|sure))\b",
    r"\b(?:what could (?:possibly )?go wrong|(?:brilliant|great|genius) idea|hence|which is (?:annoying|why)|so (?:i|it|that's))\b",
    r"\b(?:let's say|suppose|supposing|imagine|assume|assuming|hypothetically|in theory|what if|in an ideal world|say we|who needs|"
    r"nobody needs|(?:fantastic|wonderful|"
    r"awesome|clever|excellent|what a) (?:idea|plan)|great plan|that will (?:surely |definitely )?(?:fix|solve) it|yeah right)\b",
    (
        r"\bif (?:we|you|they|i) (?:went|go|chose|choose|decided|decide|picked|pick|opted|took|had)\b|\b(?:we|you|one) (?:could|might) "
        r"(?:always|never|also)\b"
    ),
    r"(?:(?:oh|well|yes|sure|great|right|ok|okay),? )+(?:let's|lets) (?:always|never|just)\b",
    r"\bthen (?:nothing|nobody|no one|everything) (?:can|will|could|would)\b|^(?:oh )?sure,? (?:always|never) just\b",
    r"(?<!\S)/s(?!\S)|[🙄😂🤣😅😉🙃]",
)
#: What would be if something came about one day: an idea, no rule. What is to be done in a case is one.
SOMEDAY = _search(
    r"\bif\b[^.;!?]*\b(?:ever|one day|some ?day)\b[^.;!?]*\b(?:would|could|might|probably|(?:we|i|it|they|you)'d)\b",
    r"\b(?:would|could|might)\b[^.;!?]*\bif\b[^.;!?]*\b(?:ever|one day|some ?day)\b",
    (
        r"\b(?:wenn|falls|sollten?)\b[^.;!?]*\b(?:irgendwann|eines tages|jemals)\b[^.;!?]*"
        r"\b(?:könnten?|müssten?|würden?|wären?|bräuchten?|vermutlich|wahrscheinlich)\b"
    ),
    r"\bsi (?:un jour|jamais)\b[^.;!?]*\b(?:faudrait|pourrait|devrait|serait|aurait|pourrions|devrions)\b",
    r"\bsi (?:algún día|alguna vez)\b[^.;!?]*\b(?:habría|podría\w*|tendría\w*|sería|seguramente)\b",
    r"\bse (?:um dia|algum dia)\b[^.;!?]*\b(?:teria\w*|poderia\w*|seria|daria|provavelmente)\b",
    r"\bse (?:un giorno|mai)\b[^.;!?]*\b(?:dovremmo|potremmo|potrebbe|sarebbe|bisognerebbe|probabilmente)\b",
    r"\bals\b[^.;!?]*\booit\b[^.;!?]*\b(?:zou|zouden|waarschijnlijk)\b",
    r"(?:いつか|将来|そのうち)[^。！？]*(?:かもしれ|かも|だろう|でしょう)",
    r"(?:要是|如果|万一|以后|将来|哪天)[^。；！？]*(?:以后|将来|哪天|有一天)?[^。；！？]*(?:估计|可能|也许|大概)(?:要|得|会|需要)",
)
#: After a rule: what is to be done about it now.
NOW_TO_DO = lazy_compile(
    rf"(?:,|,? (?:and|so|then|please|to))(?: (?:and|so|then|please))* "
    rf"{any_of('add write create fix make put do move remove delete change update rename mend include')} "
    r"(?:one|it|them|that|this|some|those|these)\b(?!.*\b(?:instead|rather|first|before|when|whenever|if)\b)[^;]*$",
    re.IGNORECASE,
)
#: What is said with this is for nobody's file.
UNWRITTEN = _search(
    r"\b(?:don'?t|do not|never|pls not|please not) (?:write|save|store|note|put|post|paste|log|share|keep)\w* (?:it|that|this|them|those) "
    r"(?:down )?(?:anywhere|any where|to disk|in any file)\b",
    r"\bnirgend(?:s|wo) (?:auf|hin|rein)?(?:schreib|speicher|notier)\w*|\bnicht (?:irgendwo )?(?:aufschreiben|notieren|abspeichern)\b",
    r"\b(?:ne )?l['’]écri\w+ nulle part|\bne (?:le |la |les )?(?:note|garde|stocke)\w* (?:pas|nulle part)",
    r"\bno l[oa]s? (?:escrib|guard|apunt)\w+|\bnão (?:escrev|guard|anot|salv)\w+ (?:isso|ela|ele|em lugar)",
    r"\bnon (?:scriverl|salvarl|annotarl)[oaei]\b|\bnergens (?:op|neer)?(?:schrijv|sla|bewar)\w*",
    r"\bschreib\w* (?:das|es|die|den|ihn) (?:bitte )?(?:nirgend\w*|nicht) (?:auf|hin|rein)\b",
    r"(?:どこにも|保存|記録)(?:書か|し)ないで|(?:不要|别)(?:写|存|记)(?:下来|到|在)",
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
_NOW_DO = any_of(
    "check look swap rename use change fix try remove add delete move put make revert let's rebase update run go keep"
)
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
#: A sentence after another that shows that it was not meant.
MOCKING = _search(
    r"(?:what an? )?(?:brilliant|great|genius|fantastic|wonderful|excellent|awesome|clever|lovely|amazing|terrific) (?:idea|plan|move|"
    r"thinking|strategy)\W*$"
)
