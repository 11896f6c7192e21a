"""How people word a preference, a correction, a constraint, or the request to remember something.

Each expression is tried at the beginning of a sentence whose quotes and inline code are masked
(`ownwords`), in lower or upper case; its group `span` is what it captures.
"""

from __future__ import annotations

import re

from memory_kb.learning.ownwords import CODE

_I = re.IGNORECASE
# Words before the sentence proper, as many as there are; none is taken back.
_LEAD = (
    r"(?:(?:please|pls|also|and|but|so|then|ok|okay|btw|by the way|fyi|hey|hi|again|note|nb|n\.b\.|important|reminder|remember|rule|"
    r"(?:one|another|last|small) (?:more |other |last |small )?(?:thing|rule|note|request)(?: though| from me)?|in general|generally|as a (?:general )?rule|"
    r"as always|thanks|thank you|one more|hm+|well|for the record|in principle|normally|by default)"
    r"(?:\s*[,:;!—–]+\s*|\s+-+\s+|\s+))*+"
)
# A condition or a place that holds for more than one occasion.
_SETTING = r"(?:(?:in|on|for|when|whenever|before|after|during|as|inside|outside) [^,.:;?!\n]{2,60}, (?:please )?)?"
# The thing itself goes to the end of its clause.
_CLAUSE_END = r"(?=[,;:!?](?:\s|$)|\.+[\s\"')]*$|\s[—–-]+\s|\s\(|\s*$)"
_SHORT = rf"(?P<span>\S.{{4,79}}?){_CLAUSE_END}"
_LONG = r"(?P<span>\S.{4,99}?)(?=[;!?](?:\s|$)|\.+[\s\"')]*$|\s*$)"
# After always and never: a verb in its plain form, so no participle, no noun, no complaint.
_VERB = (
    r"(?!(?:a|an|the|my|your|our|his|her|their|its|this|that|these|those|it|i|you|we|they|he|she|there|here|mind|again|same|on|in|at|so|too|more|"
    r"less|better|worse|good|nice|happy|sad|been|seen|had|got|gotten|heard|thought|knew|known|saw|done|did|was|were|is|are|am|has|made|went|came|took|"
    r"gave|felt|understood|found|said|told|lost|ran|wrote|broke|forget|forgot|remember|remembered|understand|know|liked|happens?|works?|wonder|one|"
    r"and|or|but|not|if|when|what|how|why|with|without|for|of|to|by|because|blame|say|mine|ready|busy|late|slow|broken|wrong|right|true|possible)\b)"
    r"(?!\w+(?<!e)ed\b(?<!embed))(?!\w+ing\b(?<!bring)(?<!ping)(?<!string))(?!\w+(?<![su])s\b(?<!alias))"
    rf"[a-z{CODE}][\w{CODE}-]*\b"
)
# A choice among what is on the table, or what to do now.
_NOT_CHOICE = (
    r"(?!(?:option|version|approach|variant|solution|alternative|number|plan|choice|[a-d1-9]|#?\d+|(?:the|your|this|that|my) (?:\w+er|first|second|third|"
    r"last|next|previous|current|original|new|old|other|latter|former|one|way|same|name|idea)|your|yours|this|that|it|them|these|those|if (?!you)|when|"
    r"(?:not )?to (?:wait|hold|pause|stop|see|think|stay|leave|go|start|continue|skip|look|discuss|talk|sleep|postpone|defer|know|answer|say|finish|"
    r"do (?:it|that|this)|have (?:it|that|this)))\b)"
)
_ADVERB = r"(?:(?:strongly|generally|usually|really|much|personally|always|definitely|still|also|just|only|mostly|normally|clearly|explicitly) )*"

_PREFERENCE = (
    rf"{_SETTING}(?:always|never(?: ever)?) (?=(?:{_ADVERB})(?:{_VERB})){_SHORT}",
    rf"{_SETTING}(?:i|we) {_ADVERB}prefer (?:that )?{_NOT_CHOICE}{_SHORT}",
    rf"{_SETTING}(?:i|we)(?:'d| would) {_ADVERB}prefer (?!the\b)(?:that )?{_NOT_CHOICE}{_SHORT}",
    rf"{_SETTING}(?:i|we)(?:'d| would) {_ADVERB}rather (?:have|use|keep|see|write|read|avoid|get|you (?:didn't|did not|don't|do not|not|never|always|used|asked|kept)) "
    rf"(?!the\b){_NOT_CHOICE}{_SHORT}",
    rf"(?:my|our) {_ADVERB}preference (?:is|would be) (?:that |for )?{_NOT_CHOICE}{_SHORT}",
    rf"prefer (?=\S.{{1,60}} (?:over|to) ){_NOT_CHOICE}{_SHORT}",
    r"(?:i|we) (?:really |much )?like (?P<span>\S.{1,50} (?:better|more) than .{2,40}?)" + _CLAUSE_END,
    rf"(?:i|we) (?:always|never) (?=(?:use|want|write|run|commit|put|keep|log|squash|merge|rebase|push|ship|deploy|test|pin|name|return|store|add|edit|"
    rf"change|check|call|import|mock|cache|catch|expose|throw|swallow|need to see|name|format|lint|tag|version|document|review|validate|prefix)\b){_SHORT}",
    rf"(?:from now on|from here on(?: out)?|going forward|in future|in the future|henceforth)[,:]? (?:please )?"
    rf"(?!(?:continue|proceed|go|just|work|let|wait|i'll|we'll|stop|take)\b)(?:always |never |only |don't |do not |prefer )?(?={_VERB}){_SHORT}",
    rf"for (?:all|every|each|any|new) [^,.:;?!\n]{{2,50}}, (?:please )?(?={_VERB}){_SHORT}",
)

_UNIVERSAL = rf"(?:all|every|each|any|no|nobody|no one|everything|everyone)\b(?! (?:two|three|four|five|six|the|these|those|this|my|of|\d+)\b)[^,;:.?!\n]{{0,60}}?"
_MUST = r"(?:must|may|have to|has to)"
_NOT_EPISTEMIC = r"(?!(?:still |also |just )?have (?:been|had|\w+(?:ed|wn|en|ne|lt|nt)|gone|come|run|broke)\b|admit\b|say\b)"
# A bare plural or mass noun: no article, no number, no pronoun.
_BARE = (
    r"(?!(?:the|this|that|these|those|it|there|here|he|she|they|you|we|i|one|two|three|four|both|a|an|my|your|his|her|their|its|someone|somebody|"
    r"something|what|which|who|if|when|while|because|as|then|maybe|not|must|things|people|guys)\b)"
)
_NOUNS = rf"(?:[\w'{CODE}/-]+ ){{0,4}}?"

_CONSTRAINT = (
    rf"{_SETTING}(?:you |we )?(?:don't|do not|dont) ever (?!(?:worry|mind)\b){_SHORT}",
    rf"{_SETTING}(?:you|we|agents|contributors|nobody|everyone|everybody|anyone) must (?:(?:always|never|not(?: ever)?) )(?:be able to )?{_SHORT}",
    rf"{_SETTING}{_UNIVERSAL} must (?:not |never |always |only |also )?{_NOT_EPISTEMIC}{_SHORT}",
    rf"{_SETTING}no [^,;:.?!\n]{{2,50}}? (?:may|must|can) (?:ever )?be {_SHORT}",
    rf"{_SETTING}(?:our )?{_BARE}{_NOUNS}[\w'{CODE}/-]+(?<!s) must (?:not|never|always|only) {_SHORT}",
    rf"{_SETTING}our {_NOUNS}[\w'{CODE}/-]+ must {_NOT_EPISTEMIC}{_SHORT}",
    rf"{_SETTING}{_BARE}{_NOUNS}[\w'{CODE}/-]{{2,}}(?<!s)s must (?:not |never |always |only |also )?{_NOT_EPISTEMIC}{_SHORT}",
    rf"{_SETTING}(?!(?:the|this|that|these|those|my|your|its|what|which|if|it|there|\W)\b)[\w{CODE}][^,;:.?!\n]{{2,60}}? (?:is|are) (?:always |strictly )?required "
    r"(?=(?:on|for|in|with|from|by) (?:all|every|each|any|new)\b|before (?!that|you|we|this|i)\w|at all times|by (?:law|policy|compliance))" + _SHORT,
    rf"(?:it is|it's) (?:strictly )?required (?:that|to) (?=.*\b(?:all|every|each|any|always|never|no)\b){_SHORT}",
    rf"under no circumstances,? (?:may |should |must )?{_SHORT}",
)

# What people say about the moment; never a lasting fact.
_FLEETING = (
    r"(?!(?:(?:the|our|my|your|that|this|same|all|both|some)\s+)*(?:\w+ )?(?:error|bug|issue|problem|failure|crash|exception|tests?|build|job|page|screen|output|result|"
    r"results|diff|change|changes|cause|reason|fix|it|that|this|these|those|he|she|they|i|you|there|here|variable|value|button|line|message|same|nothing|"
    r"something|file|function|only) (?:is|are|isn't|aren't|was|were|contains?|returns?|uses?|comes?|still|now)\b)"
)
_PASSIVE = (
    r"(?:called|named|deployed|hosted|stored|written|generated|built|located|owned|maintained|pinned|limited|capped|loaded|formatted|versioned|based|"
    r"defined|configured|mounted|served|managed|provided|handled|signed|encrypted|indexed|cached|mandatory|optional|deprecated|immutable|nullable|"
    r"read-only|case-sensitive|published|released|measured|counted|kept|run|rotated|scheduled|triggered)\b"
)
_HOLDS = (
    r"(?:lives?|resides?|runs?|uses?|comes? from|belongs? (?:to|in)|returns?|expects?|accepts?|requires?|supports?|depends? on|defaults? to|points? to|"
    r"starts? (?:at|with)|expires?|consists?|stores?|share|shares|sends?|reads?|writes? to|speaks?|targets?|listens? on|goes? (?:through|in|into|to)|"
    r"go (?:through|in|into|to)|needs?)\b"
)
_CONTRAST = r"(?:,? (?:and |but )?(?:not|never) (?!yet\b|really\b|sure\b)\S|,? (?:instead of|rather than|as opposed to) \S|, only\b|; only\b)"
_MEASURE = (
    r"(?:limit|timeout|version|port|default|minimum|maximum|size|interval|quota|budget|region|branch|domain|bucket|prefix|convention|format|"
    r"unit|owner|licen[cs]e|encoding|time ?zone|locale|currency|retention|threshold|window|schema)"
)
_PHRASE = rf"(?:[\w'{CODE}/.+#-]+ ){{1,9}}?"
_DURABLE = (
    r"(?:"
    r"we (?:don't |do not |no longer |only |always |never |just |also |mostly |currently |all )*(?:use|run|deploy|ship|host|store|target|support|keep|build|publish|"
    r"write|version|pin|sign|release|serve|maintain|follow|format|name|test against|standardi[sz]ed on|moved|switched|migrated|renamed|dropped|replaced) (?!it\b|that\b|this\b|them\b)"
    r"|we(?:'re| are) (?:on|using|running|targeting|hosted|deploying)\b"
    r"|it's (?!(?:the|a|an|in|on|at|that|this|just|line|step|page|only|about|my|your|still|because|more|less|too|not|fine|ok|all|for|to|from|by)\b)"
    rf"\S{{2,30}}(?: \S{{1,20}}){{0,2}}?,? not (?!yet\b)\S"
    r"|use (?!(?:a|an|the|this|that|your|my|it|one|both|them|these|those|another|some)\b)\S{2,30}(?: \S{2,20}){0,2}?(?:,? not| instead of| rather than) "
    r"(?!(?:a|an|the|this|that|your|my|it|yet)\b)\S"
    rf"|{_FLEETING}{_PHRASE}(?:don't |doesn't |do not |does not |only |always |never |all |both )?{_HOLDS} \S"
    rf"|{_FLEETING}{_PHRASE}(?:is|are) (?:always |only |never |all |also |now )?{_PASSIVE}"
    rf"|{_FLEETING}{_PHRASE}(?:is|are) (?!still|now|already|too|just|fine|ok\b).{{2,60}}?{_CONTRAST}"
    rf"|(?:the|our) (?:[\w-]+ ){{0,5}}?{_MEASURE}(?: \w+)? (?:is|are) (?!still|now|too|just|wrong|broken|fine|ok\b|missing|empty)\S"
    r")"
)
_SIGH = r"(?:(?:hm+|wait|ah|oh|oops|sorry|well|um|uh),?\s+)?"
_OPPOSING = (
    rf"{_SIGH}(?:(?:actually|no|nope|nah|wrong|incorrect|not (?:quite|exactly|really)|that(?:'s| is) (?:wrong|not (?:right|correct|true)|incorrect)|correction)"
    r"(?:\s*[,:;—–]+\s*|\s+-+\s+)|actually\s+|no\s+(?=(?:we|our|the|it's)\s))(?:actually,? )?"
)
_CORRECTION = (
    rf"{_OPPOSING}(?={_DURABLE}){_LONG}",
    r"(?P<span>not (?!(?:only|sure|a|an|the|just|that|this|because|so|yet|to|in|on|really|quite|all|every|everyone|bad|too|always|my|your|it|for|with|at|"
    rf"great|ideal|perfect|nice|pretty|elegant)\b)[\w.+#{CODE}-]+(?: [\w.+#{CODE}-]+){{0,2}} but [\w.+#{CODE}-]+ [^;!?\n]{{4,80}}?)(?=\.?\s*$|[;!?])",
)

_REQUEST = (
    r"(?:(?:please|pls|bitte|also|and|so|ok|okay|hey|btw|thanks|you should|i want you to|i need you to)[,:]?\s+)*+(?:"
    r"remember (?:this|the following)(?: for (?:later|next time|the future|future \w+))?\s*[:—–-]+\s*"
    r"|remember(?: for (?:later|next time|the future|future \w+))?\s*:\s*"
    r"|remember (?:for (?:later|next time|the future),? )?that\s+(?!(?:time|day|bug|one|issue|thing|error|weird|week|when|we had)\b)"
    r"|remember (?:to )?(?=(?:always|never)\s)"
    r"|remember (?=(?:i|we) (?:strongly |always )?(?:prefer|use|want|like)\b)"
    r"|(?:do not|don't|never) forget that\s+|(?:keep|bear) in mind that\s+"
    r"|(?:make|take|leave) (?:yourself )?a (?:mental )?note(?: for (?:later|the future|next time))?(?:\s*:\s*| that\s+)"
    r"|(?:a )?note (?:for (?:the )?(?:future|later|next time)|to self|for future \w+)\s*[:,—–-]+\s*"
    r"|for (?:future|your) reference\s*[:,—–-]+\s*"
    r"|merk(?:e)? dir(?: bitte)?(?:\s*:\s*|,? dass\s+)"
    r"|(?:souviens-toi|retiens|n'oublie pas) que\s+|(?:recuerda|ten en cuenta|no olvides) que\s+"
    r")"
)

#: A request to remember; what it is about follows it.
REQUEST = re.compile(_REQUEST, _I)
#: The expressions of a kind, in the order in which they are tried.
PREFERENCE = tuple(re.compile(_LEAD + pattern, _I | re.DOTALL) for pattern in _PREFERENCE)
CORRECTION = tuple(re.compile(_LEAD + pattern, _I | re.DOTALL) for pattern in _CORRECTION)
CONSTRAINT = tuple(re.compile(_LEAD + pattern, _I | re.DOTALL) for pattern in _CONSTRAINT)
#: A sentence with one of these is tried as a constraint first (S1-19).
STRICT = re.compile(r"\b(?:must|required|(?:don't|do not|dont) ever|under no circumstances)\b", _I)

_LASTING = (
    r"(?:repo|repository|repos|project|projects|codebase|code base|code|monorepo|team|company|organi[sz]ation|org|workspace|app|application|service|product|"
    r"package|library|platform|machine|stack|vault|kind|sort|type|way|system|cluster|client|customer|site|account|week's release)"
)
#: Words for this one occasion.
ONE_OFF = re.compile(
    r"\b(?:for now|for the (?:moment|time being)|at the moment|right now|this (?:time|once)|just once|today|tonight|tomorrow|yesterday|temporarily|"
    r"in the meantime|while (?:i|you|we)\b|as long as (?:i|we)\b|until (?:i|we|it|this|that|the (?:bug|issue|problem|fix)|further|then|tomorrow|next)\b|"
    r"before (?:continuing|proceeding|finishing|we (?:continue|proceed|go|start|move|ship)|you (?:finish|continue|proceed|go on|start))|"
    r"when (?:you're|you are|i'm|we're) (?:done|finished|ready)|next (?:step|commit|pr|time|week|release|sprint)|step \d|"
    rf"(?:this|these|those) (?!{_LASTING}\b|is\b|was\b|way\b)\w+|(?:for|in|on|of|from) (?:this|that|these|those)(?= *[,.;!?]| *$))",
    _I,
)
#: Words of somebody who does not mean it, or is not sure.
NOT_MEANT = re.compile(
    r"\b(?:maybe|perhaps|i guess|i suppose|i wonder|lol|lmao|haha\w*|rofl|what could (?:possibly )?go wrong|(?:brilliant|great|genius) idea|they said|"
    r"yeah,? (?:right|sure)|that's the spirit|just kidding|jk)\b|(?<!\S)/s(?!\S)|[🙄😂🤣😅😉]",
    _I,
)
#: A word that points at something outside the sentence, where the thing itself should be named.
POINTING = re.compile(
    r"\b(?:it|that|this|them|those|these|there)(?=\s*(?:$|[.,;!?])|\s+(?:again|any ?more|like (?:that|this)|here|there|now|please|first|twice|in|on|for|"
    r"with|to|when|unless|before|after|without|from|as|at|by)\b)",
    _I,
)
#: An order to make something; what must be so in the same message may be about that alone.
ORDER = re.compile(
    r"(?:please |can you |could you |let's |now )*(?:write|create|implement|build|generate|design|draft|add|make|develop|document|list|render|show)\b", _I
)
#: What must be so of some things only; where something was ordered in the same message, of its parts.
SPECIFIC = re.compile(_LEAD + r"(?!(?:all|every|each|any|no|nobody|everyone|don't|do not|dont|you|we|our|under|it)\b)", _I)
