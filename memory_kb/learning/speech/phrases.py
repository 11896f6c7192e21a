"""How people word a preference, a correction, a constraint, or the request to remember something.

Each expression is tried at the beginning of a sentence whose quotes and inline code are masked
(`ownwords`), in any case; its group `span` is what it captures. What makes such a sentence
doubtful all the same is in `doubts`.
"""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.ownwords import CODE


def any_of(words: str) -> str:
    """Return an expression for any of some words; an underscore stands for a space.

    Example:
        >>> any_of("always do_not  never")
        '(?:always|do not|never)'
    """
    return f"(?:{'|'.join(words.split())})".replace("_", " ")


def compile_all(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Return expressions for sentences proper that begin so, to be asked where `LED_BY` ends."""
    return tuple(lazy_compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns)


_FIRST_WORDS = any_of(
    r"please pls also and but so then ok okay btw by_the_way fyi hey hi again note nb n\.b\. important reminder remember rule in_general "
    "generally as_a_rule as_a_general_rule as_always thanks thank_you one_more hm+ well for_the_record in_principle normally by_default "
    "(?:one|another|last|small|quick)_(?:(?:more|other|last|small|quick)_)?(?:thing|rule|note|request|point|favou?r|reminder)(?:_though|_from_me)?"
)
#: Words before the sentence proper, as many as there are; none is taken back.
LEAD = rf"(?:{_FIRST_WORDS}(?:\s*[,:;!—–]+\s*|\s+-+\s+|\s+))*+"
LED_BY = lazy_compile(LEAD, re.IGNORECASE)
# A condition or a place that holds for more than one occasion.
_SETTING = (
    r"(?:(?:(?:in|on|during|inside|outside) |for (?!each\b|every\b|the\b)|(?:when|whenever|before|after) (?:you|we|an?|any|\w+ing)\b)"
    r"[^,.:;?!\n]{2,60}, (?:please )?)?"
)
# The thing itself goes to the end of its clause, and of a correction to the end of the sentence.
_CLAUSE_END = r"(?=[,;:!?](?:\s|$)|\.+[\s\"')]*$|\s[—–-]+\s|\s\(|\s*$)"
SHORT = rf"(?P<span>\S.{{4,79}}?){_CLAUSE_END}"
_LONG = r"(?P<span>\S.{4,99}?)(?=[;!?](?:\s|$)|\.+[\s\"')]*$|\s*$)"

# -- preferences ---------------------------------------------------------------------------

_NO_VERB = any_of(
    "a an the my your our his her their its this that these those it i you we they he she there here mine one all any some every no and or "
    "but not if when what how why with without for from of to by on in at because since until before after again ever even once quite so too "
    "more less am is are was were has had been did done would could should will can may might got gotten made went came took gave felt seen "
    "saw heard found said told thought knew known understood lost ran wrote broke liked forgot remembered happens? works? forget remember "
    r"understand know wonder blame say mind have_(?:\w+ed|been|done|gone|had) better worse good nice happy sad ready busy late slow broken "
    "wrong right true possible great fun funny interesting hard easy tricky important worth weird strange awesome cool sure open available "
    "welcome glad curious null undefined zero empty green red same"
)
# A verb in its plain form: no participle, no third person, no adverb.
_VERB = (
    rf"(?!{_NO_VERB}\b)(?!\w+(?<!e)ed\b(?<!embed))(?!\w+ing\b(?<!bring)(?<!ping)(?<!string))(?!\w+(?<![su])s\b(?<!alias))"
    rf"(?!\w+ly\b(?<!\bapply)(?<!\bsupply)(?<!\brely)(?<!\breply)(?<!\bcomply)(?<!\bmultiply))[a-z{CODE}][\w{CODE}-]*\b"
)
_ADVERB = r"(?:(?:much|always|still|also|just|\w+ly) )*"
_ON_THE_TABLE = any_of(
    r"\w+_(?:one|solution|approach|way|version|option|variant)\b \w+er layout design colou?rs? look wording logo sidebar dropdown button "
    "first second third last next previous current original new old other latter former one way same name idea"
)
_TO_DO_NOW = any_of(
    "wait hold pause stop see think stay leave go start continue skip look discuss talk sleep postpone defer know answer say finish "
    "do_(?:it|that|this) have_(?:it|that|this)"
)
# Not a choice among what is on the table, and not what to do now.
_STANDING = (
    r"(?!(?:option|version|approach|variant|solution|alternative|number|plan|choice|[a-d](?= *$| *[.,;!)]| (?:for|here|then|and|is)\b)|#?\d+|"
    rf"(?:the|your|this|that|my) {_ON_THE_TABLE}|yours?|this|that|it|them|these|those|if (?!you)|when|(?:not )?to {_TO_DO_NOW})\b)"
)
_ANY_OLD = any_of("the an? something anything red green blue black white yellow gr[ae]y")
_WISH = r"(?:i|we)(?:'d| would)"
# Who only tells, or asks, or what somebody else says.
_REPORTING = (
    r"(?:(?:please |pls |now |then |and |also )*(?:write|create|implement|build|generate|design|draft|add|make|develop|document|list|render|"
    r"show|fix|refactor|"
    r"update|change|rename|move|remove|delete|run|check|try|go|put|let|look|start|open|set|turn|give)\b"
    r"|(?:i|he|she|they|you|it|if|why|what|how|when|who|which|whether|can|could|would|should|do|does|did|is|are|was|were|let's|let me)\b"
    r"|[^,;:]{0,60}\b(?:says?|said|tells?|told|wrote|writes|reads?|shows?|prints?|complains?|promised|claims?)\b)"
)
_HABIT = any_of(
    "use want(?!_to_(?!see)) write run commit put keep log squash merge rebase push ship deploy test pin name return store add edit change "
    "check call import mock cache catch expose throw swallow need_to_see format lint tag version document review validate prefix"
)
_WOULD_DO = any_of(
    "have use keep see write read avoid get you_(?:didn't|did_not|don't|do_not|not|never|always|used|asked|kept)"
)

PREFERENCE = compile_all(
    rf"{_SETTING}(?:(?:let's|you should|we should) )?(?:always|never(?: ever)?) (?={_ADVERB}{_VERB}){SHORT}",
    rf"{_SETTING}(?:i|we) {_ADVERB}prefer (?:that )?{_STANDING}{SHORT}",
    rf"{_SETTING}{_WISH} {_ADVERB}prefer (?!{_ANY_OLD}\b)(?:that )?{_STANDING}{SHORT}",
    rf"{_SETTING}{_WISH} {_ADVERB}rather {_WOULD_DO} (?!the\b){_STANDING}{SHORT}",
    rf"(?:my|our) {_ADVERB}(?:preference|convention|rule|policy|standard) (?:is|would be) (?:that |for |to )?{_STANDING}{SHORT}",
    rf"prefer (?=\S.{{1,60}} (?:over|to) ){_STANDING}{SHORT}",
    rf"(?:i|we) (?:really |much )?like (?P<span>\S.{{1,50}} (?:better|more) than .{{2,40}}?){_CLAUSE_END}",
    rf"(?:we (?:always|never)|i always|i never(?= (?:want|need|accept|merge|push|commit)\b)) (?!.*\bwrong\b)(?={_HABIT}\b){SHORT}",
    r"(?:from now on|from here on(?: out)?|going forward|in (?:the )?future|henceforth)[,:]? (?:please )?"
    rf"(?!{any_of('''continue proceed go just work let wait i'll we'll stop take''')}\b)"
    rf"(?:(?:always|never|only|don't|do not|prefer) )?(?={_VERB}){SHORT}",
    rf"for (?:all|every|each|any|new) [^,.:;?!\n]{{2,50}}, (?:please )?(?=(?:use|prefer|follow|avoid|stick to)\b){SHORT}",
    rf"(?={_VERB})(?P<span>\S.{{4,79}}?),? always[.!]*\s*$",
    r"(?:don't|do not|avoid|stop) (?P<span>\S.{4,79}?), (?:i|we) (?:find|hate|dislike|prefer|don't like|can't stand)\b",
    rf"our (?:house |code |coding |writing |naming |docs? |documentation |commit |branch )?(?:style|naming|convention|policy|"
    rf"rule)s?(?: here)?\s*: {SHORT}",
    rf"(?:[^,;:?!\n]{{3,80}}, )*?(?:because |since |as )?we (?:only |always )?(?:use|write|run|follow|keep) "
    rf"(?P<span>\S.{{2,60}}? (?:everywhere|throughout|across the board|for everything)){_CLAUSE_END}",
    rf"(?!{_REPORTING})(?!(?:the|this|that|these|those|there)\b)(?:[\w`'{CODE}/-]+ ){{0,3}}?[\w`'{CODE}/-]+s "
    rf"(?P<span>(?:have to|must|need to|should|are) (?:always )?(?:be |go |come |happen )?(?:\w+ ){{0,2}}?(?:by|in|on|from|with|via|through|as|to) "
    rf"[^,;?!\n]{{2,50}}, (?:never|not) (?!yet\b|really\b|sure\b)[^,;?!\n]{{2,50}}?){_CLAUSE_END}",
    rf"(?P<span>(?!{_REPORTING})\S[^?!\n]{{3,90}}?\bonly\b[^?!\n]{{2,60}}?, (?:and )?never\b[^?!,;\n]{{2,50}}?){_CLAUSE_END}",
    rf"(?!{_REPORTING})[^?!\n]{{3,140}}?(?:[,;:]|[,;]? (?:so|and|but)|\s[—–-]+) (?:please |pls )?(?:always|never) (?={_ADVERB}{_VERB}){SHORT}",
)

# -- constraints ---------------------------------------------------------------------------

PARTICIPLE = r"(?:\w+(?:ed|en|wn|lt|nt)|been|had|done|gone|come|run|broke|cut|set|made|kept)"
# Not what must be the case, or must happen now.
_BINDING = (
    rf"(?!(?:still |also |just )?have {PARTICIPLE}\b|(?:admit|say|suddenly|stop|forget|give up|think|be careful|be able to)\b|"
    rf"be (?:\w+ing|{any_of('stuck off overloaded gone full confused tired wrong crazy broken missing down happy flaky mad nice fun')})\b)"
)
# The people who use what is being made: what they must do is a feature of it.
_USERS = any_of(
    "users? customers? visitors? players? children people members? guests? students? readers? shoppers? admins?"
)
# What a team makes rules about: its code, its ways of working, its data. What must be so of other things is a feature.
MATTERS = any_of(
    "api endpoint route handler service server job worker request response call query commit pr pull_request merge_request branch branches "
    "release build pipeline deployment migration test code function method class classes module package library libraries dependency "
    "dependencies import component script image container config configuration setting option flag variable constant secret password "
    "credential token key log error exception warning timestamp money amount string table column schema data change update feature docs? "
    "documentation docstring comment changelog review approval version tag id url type interface contract backup webhook permission access "
    "query queries"
)
_ONMATTERS = rf"(?=[^,;:.?!\n]{{0,60}}?\b{MATTERS}s?\b[^,;:.?!\n]{{0,40}}? must\b)"
_UNIVERSAL = (
    rf"{_ONMATTERS}(?:all|every|each|any)\b(?! (?:\w+ )?{_USERS} must\b)(?! (?:two|three|four|five|six|the|these|those|this|my|of|\d+)\b)"
    r"[^,;:.?!\n]{0,60}?"
)
_NO_NOUN = any_of(
    "the this that these those it there here he she they you we i one two three four both a an my your his her their its someone somebody "
    "something what which who if when while because as then maybe not all every each any no must things people guys"
)
# A noun without article, number or pronoun.
_BARE = rf"{_ONMATTERS}(?!(?:our )?(?:[\w-]+ )?{_USERS} must\b)(?!{_NO_NOUN}\b)"
_NOUN = rf"[\w'{CODE}/-]+"
_NOUNS = rf"(?:{_NOUN} ){{0,4}}?"
_FIRMLY = r"(?:(?:not|never|always|only|also) )?"
_WHOEVER = any_of("you we agents contributors nobody everyone everybody anyone")

CONSTRAINT = compile_all(
    rf"{_SETTING}(?:you |we )?(?:don't|do not|dont) ever (?!(?:worry|mind|give up)\b){SHORT}",
    rf"{_SETTING}{_WHOEVER} must (?:always|never|not(?: ever)?) {_BINDING}{SHORT}",
    rf"{_SETTING}{_UNIVERSAL} must {_FIRMLY}{_BINDING}{SHORT}",
    rf"{_SETTING}no [^,;:.?!\n]{{2,50}}? (?:may|can) (?:ever )?be {SHORT}",
    rf"{_SETTING}(?:our )?{_BARE}{_NOUNS}{_NOUN}(?<!s) must (?:not|never|always|only) {SHORT}",
    rf"{_SETTING}our (?!(?:\w+ )?{_USERS} must\b){_NOUNS}{_NOUN} must {_BINDING}{SHORT}",
    rf"{_SETTING}{_BARE}{_NOUNS}{_NOUN}(?<!s)s must {_FIRMLY}{_BINDING}{SHORT}",
    rf"{_SETTING}(?!{any_of('the this that these those my your its what which if it there')}\b)[\w{CODE}][^,;:.?!\n]{{2,60}}? (?:is|are) "
    r"(?:always |strictly )?required (?=(?:on|for|in|with|from|by) (?:all|every|each|any|new)\b|before (?!that|you|we|this|i)\w|at all times|"
    rf"by (?:law|policy|compliance)){SHORT}",
    rf"(?:it is|it's) (?:strictly )?required (?:that|to) (?=.*\b(?:all|every|each|any|always|never)\b){SHORT}",
    rf"under no circumstances,? (?:(?:may|should|must) )?{SHORT}",
)
#: A verb in its plain form, as it follows `always` and `never` where they begin a rule.
PLAIN_VERB = rf"{_ADVERB}{_VERB}"
#: What follows `must` where it obliges somebody to something.
OBLIGING = rf"(?!see\b|hear\b|try\b){_BINDING}"
#: The habit of one person, which is a rule only where they are not just asking.
OWN_HABIT = lazy_compile(rf"{LEAD}i (?:always|never) (?!(?:want|need|expect|prefer|like|accept)\b)", re.IGNORECASE)
#: What makes a rule with nothing but `always` or `never` before it.
LONE_VERB = lazy_compile(
    any_of(
        "squash rebase merge commit push force-push deploy ship vendor mock stub lint format amend fork branch inline minify transpile tag sign pin "
        "cache log test document paginate escape quote review monkeypatch hardcode hard-code cherry-pick stash hotfix memoi[sz]e typecheck"
    )
    + r"\b",
    re.IGNORECASE,
)
#: A sentence with one of these is tried as a constraint first (S1-19).
STRICT = lazy_compile(r"\b(?:must|required|(?:don't|do not|dont) ever|under no circumstances)\b", re.IGNORECASE)

# -- corrections ---------------------------------------------------------------------------

_AT_HAND = any_of(
    "error bug issue problem failure crash exception page screen output results? diff changes? cause reason fix it that this these those he "
    "she they i you there here variable value button line message same nothing something file function method class "
    "(?<!main_)(?<!default_)(?<!release_)branch commit pr ticket name only argument parameter callback prop property column component "
    "handler hook constructor warning user import thing tag"
)
# The subject is no part of the work at hand; what is said of such is about the moment.
_LASTING = (
    r"(?!(?:my|your|his|her|this|that|these|those) (?!repo|project|codebase|team|app|service|package|product|company)|"
    rf"(?:(?:the|our|same|all|both|some)\s+)*(?:\w+ )?(?:{_AT_HAND} |(?:tests?|build|job|pipeline) "
    r"(?:is|are|isn't|aren't|was|were|contains?|returns?|uses?|comes?|still|now)\b))"
)
_NO_SUBJECT = any_of(
    "i you we they he she it that which who is are was were to because think but when if there what just key should could can will"
)
_SUBJECT = rf"(?:(?!{_NO_SUBJECT}\b)[\w'{CODE}/.+#-]+ ){{1,9}}?"
_IS_MADE = any_of(
    "called named deployed hosted stored written generated built located owned maintained pinned limited capped loaded formatted versioned "
    "based defined configured mounted served managed provided handled signed encrypted indexed cached mandatory optional deprecated "
    "immutable nullable read-only case-sensitive published released measured counted kept run rotated scheduled triggered"
)
_HOLDS = any_of(
    r"lives? resides? runs?_(?:on|under|as|with|every|at_\d) uses? comes?_from belongs?_(?:to|in) returns? expects? accepts? requires? "
    "supports? depends?_on defaults?_to points?_to expires? consists? stores? shares? reads?_from writes?_to speaks? targets? listens?_on "
    "goe?s?_(?:through|into) talks?_to connects?_to"
)
_CONTRAST = r"(?:,? (?:and |but )?(?:not|never) (?!yet\b|really\b|sure\b)\S|,? (?:instead of|rather than|as opposed to) \S|, only\b|; only\b)"
_MEASURE = any_of(
    "limit timeout version port default minimum maximum size interval quota budget region branch domain bucket prefix convention format unit "
    "owner licen[cs]e encoding time_?zone locale currency retention threshold window schema"
)
_NAME = rf"(?-i:[A-Z]|\d|{CODE})"
_WE_DO = any_of(
    r"use run(?!_into\b|_out\b) deploy ship host store target support keep build publish write version pin sign release serve maintain follow "
    "format name test_against standardi[sz]ed_on moved switched migrated renamed replaced"
)
_NO_NAME = any_of(
    "the a an in on at that this just line step page only about my your still because more less too not fine ok all for to from by"
)
_ARTICLE = any_of("a an the this that your my it one both them these those another some yet")
_BY = any_of("automatically manually by from with via as per on")
_TROUBLE = any_of("problem issue cause culprit reason bug point question")
_STATEMENTS = (
    rf"we (?:{any_of('''don't do_not no_longer only always never just also mostly currently all''')} )*{_WE_DO} (?!(?:it|that|this|them)\b)",
    r"we(?:'re| are) (?:on|using|running|targeting|hosted|deploying)\b",
    rf"it's (?=[^,;]{{0,60}}{_NAME})(?!{_NO_NAME}\b)\S{{2,30}}(?: \S{{1,20}}){{0,2}}?,? not (?!yet\b)\S",
    r"it's called \S",
    rf"use (?!{_ARTICLE}\b)\S{{2,30}}(?: \S{{2,20}}){{0,2}}?,? not (?!{_ARTICLE}\b)\S",
    rf"{_LASTING}{_SUBJECT}(?:(?:don't|doesn't|do not|does not|only|always|never|all|both) )?{_HOLDS} \S",
    rf"{_LASTING}{_SUBJECT}(?:is|are) (?:(?:always|only|never|all|also|now) )?{_IS_MADE}\b",
    rf"{_LASTING}{_SUBJECT}(?:is|are) (?!still|now|already|too|just|fine|ok\b|(?:the |an? )?{_TROUBLE}\b).{{2,60}}?{_CONTRAST}",
    rf"{_LASTING}(?!(?:the|an?|some|all|both)\b){_SUBJECT}are (?:(?:all|always|only|never) )?{PARTICIPLE} {_BY}\b",
    rf"{_LASTING}(?:the|our) {_SUBJECT}(?!is\b|was\b|has\b)\w+s \S.{{1,50}}?,? not (?:to|on|in|at|by|from|with|via|through|the)\b",
    rf"{_LASTING}our (?:[\w-]+ ){{1,4}}?is {_NAME}",
    rf"(?:the|our) (?:[\w-]+ ){{0,5}}?{_MEASURE}(?: \w+)? (?:is|are) (?:(?:currently|now|set to|at|about|called) )?{_NAME}",
)
_SIGH = r"(?:(?:hm+|wait|ah|oh|oops|sorry|well|um|uh),?\s+)?"
_NO = any_of(
    "actually nope no nah wrong incorrect correction not_(?:quite|exactly|really) that(?:'s|_is)_(?:wrong|incorrect|not_(?:right|correct|true))"
)
_OPPOSING = rf"{_SIGH}(?:{_NO}(?:\s*[,:;—–]+\s*|\s+-+\s+)|actually\s+|no\s+(?=(?:we|our|the|it's)\s))(?:actually,? )?"
_NO_THING = any_of(
    "only sure a an the just that this because so yet to in on really quite all every everyone bad too always my your it for with at null "
    "none undefined true false empty great ideal perfect nice pretty elegant"
)
_WORD = rf"[\w.+#{CODE}-]+"

CORRECTION = compile_all(
    rf"{_OPPOSING}(?=(?:{'|'.join(_STATEMENTS)})){_LONG}",
    rf"(?P<span>not (?!{_NO_THING}\b){_WORD}(?: {_WORD}){{0,2}} but {_WORD} "
    r"(?:(?:is|are) (?:what|the|used|our)|runs?|handles?|serves?|builds?)\b[^;!?\n]{2,80}?)(?=\.?\s*$|[;!?])",
)

# -- requests ------------------------------------------------------------------------------

_LATER = r"for (?:later|next time|the future|future \w+)"
#: A request to remember; what it is about follows it.
REQUEST = lazy_compile(
    r"(?:(?:please|pls|bitte|also|and|so|ok|okay|hey|btw|thanks|you should|i want you to|i need you to)[,:]?\s+)*+(?:"
    rf"remember (?:this|the following)(?: {_LATER})?\s*[:—–-]+\s*|remember(?: {_LATER})?\s*:\s*"
    rf"|remember (?:{_LATER},? )?that\s+(?!(?:{any_of('time day bug one issue thing error weird week we_had')}\b)"
    r"|(?!when|if|before|after|because|unless|whenever)\w+ (?:we|you|i) )"
    r"|remember (?=(?!to\b|when\b|how\b|why\b|what\b|if\b|i\b|we\b|you\b|that\b|this\b|it\b|the (?:time|day|first|last)\b)\S+(?: \S+){0,3}? "
    r"(?:is|are|must|needs?|counts?|belongs?|goes?|can't|cannot|may not|should not) )"
    r"|remember (?:to )?(?=(?:always|never)\s)|remember (?=(?:i|we) (?:strongly |always )?(?:prefer|use|want|like)\b)"
    r"|(?:do not|don't|never) forget that\s+|(?:keep|bear) in mind that\s+"
    r"|(?:make|take|leave) (?:yourself )?a (?:mental )?note(?: for (?:later|the future|next time))?(?:\s*:\s*| that\s+)"
    r"|(?:a )?note (?:for (?:the )?(?:future|later|next time)|to (?:self|you|yourself)(?: and (?:to )?\w+)?|for future \w+)\s*[:,—–-]+\s*"
    r"|(?:write|jot|note) (?:this|that|it|the following) down(?: for (?:later|next time|the future))?\s*[:—–-]+\s*"
    r"|(?:save|add|store|commit|put)(?: (?:this|that|it|the following))? (?:to|in|into) (?:your |the )?memory(?:\s*[:—–-]+\s*|,? that\s+)"
    r"|memori[sz]e(?: (?:this|the following))?(?:\s*[:—–-]+\s*|,? that\s+)|for the record\s*[:,—–-]+\s*(?!i\b|he\b|she\b|we (?:did|were|had)\b)"
    r"|for (?:(?:future|your) reference\s*[:,—–-]+|(?:the future|later|next time)\s*:)\s*"
    r"|merke? dir(?: bitte)?(?:\s*:\s*|,? dass\s+)"
    r"|(?:souviens-toi|retiens|n'oublie pas) que\s+|(?:recuerda|ten en cuenta|no olvides) que\s+)",
    re.IGNORECASE,
)
#: A request to remember what was said right before it.
REQUEST_BACK = lazy_compile(
    r"(?:(?:please|pls|and|so|also|but|ok|okay)[,:]?\s+)*(?:(?:remember|memori[sz]e|note|keep|bear) (?:this|that|it)(?: in mind| down)?|"
    r"(?:make|take) a note of (?:this|that|it)|"
    rf"(?:don't|do not) forget (?:this|that|it))(?: {_LATER})?(?: please| pls)?(?=\s*(?:[.,;!]|$))",
    re.IGNORECASE,
)
#: A rule about something that the sentence before it names.
ABOUT_IT = lazy_compile(
    LEAD
    + r"(?:for|in|on|with|at) (?:that|those|such) (?!(?:file|function|method|class|line|case|one|page|test|branch|commit)\b)\w+,? "
    rf"(?:please )?(?:always|never) (?={_ADVERB}{_VERB}){SHORT}",
    re.IGNORECASE | re.DOTALL,
)
#: A sentence that says what something is, so that the next one may be short.
GROUND = lazy_compile(
    LEAD
    + r"(?:(?:this|it|that)(?:'s| is) (?:an?|our|the) |we(?:'re| are| use| have)\b|(?!(?:i|you|he|she|they|there|that|this|"
    r"it)\b)[\w`.-]+(?: [\w`.-]+)? "
    r"(?:is|are|has|have|points?|contains?|holds?|runs?|lives?|comes?|belongs?|uses?|gets?) )",
    re.IGNORECASE,
)
