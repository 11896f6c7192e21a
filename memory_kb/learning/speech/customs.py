"""How things are done here: what the team does, what holds for things of a kind, and what is to be done on every occasion."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech import doubts
from memory_kb.learning.speech.lexicon import FARING, SHOWN, WORK, is_at_hand, is_choice, is_kind
from memory_kb.learning.speech.ownwords import CODE
from memory_kb.learning.speech.phrases import PLAIN_VERB, any_of

_I = re.IGNORECASE | re.DOTALL
_THIS = (
    r"(?:this|our|the) (?:whole |entire )?(?:repo|repository|project|codebase|code base|monorepo|team|company|module|layer|package|"
    r"service|app|org|house)"
)
_HERE = (
    rf"(?:here|around here|(?:in|across|throughout|within) (?:all )?{_THIS}|everywhere|in our (?:\w+ )?(?:code|\w+s)|at our place|(?:in|"
    rf"within) the \w+ (?:layer|package|module|code))"
)
_DO = (
    "use write run put keep name format test deploy ship follow mock pin tag squash rebase merge commit push log store generate "
    "vendor document throw "
    "return avoid lint sign version wrap validate translate prefix indent catch raise import export inject build host publish track "
    "manage handle hand "
    "pass cache call do make touch edit cut open review stick nest inherit extend hardcode hard-code print encode serialise serialize model type "
    "declare define read fetch query delete remove soft_delete soft-delete expose depend rely add create accept allow release "
    "backport cherry-pick force-push "
    "sort order number count measure round convert escape quote"
)
_DOES = any_of(_DO)
_WE = r"(?:we|you|everybody|everyone|nobody|no one|people)"
_WHERE = rf"(?:(?:{_HERE}|for [\w-]+(?: [\w-]+)?s),? )?"
_FIRMLY = any_of("only never always exclusively strictly do_not don't no_longer deliberately consistently")
_OF_US = lazy_compile(
    (
        rf"{_WHERE}(?:because |since )?(?P<who>{_WE}) (?P<firm>{_FIRMLY} )?(?:ever )?(?:{_DOES})(?:e?s)? (?!(?:on )?\w+ing\b)(?:out "
        rf")?(?P<what>[^.;!?\n]{{2,160}})"
    ),
    _I,
)
_DEFINITE = lazy_compile(
    r"(?:(?:it|that|this|them|those|these|the|a|an|my|your|one|two|three|anything|something|so|some|both|too|much|more|less|well)\b)",
    _I,
)
_NORMATIVE = lazy_compile(
    rf"\b{_HERE}\b|, (?:not|never|no) (?!yet\b)|\b(?:instead of|rather than|and never|and not|on purpose|by convention|by design|before code)\b"
    r"|[,;] (?:it|they|that|because|since|as|so) ",
    _I,
)
_NOBODY = lazy_compile(
    (
        rf"(?:{_HERE},? )?(?:nobody|no one|no-one) (?:ever )?(?:push|commit|merge|deploy|release|touch|edit|change|write|use|call|tag|"
        rf"force)\w*\b[^.;?!\n]{{2,80}}"
    ),
    _I,
)
_MAY = lazy_compile(
    r"(?:only (?:the |our )?[^,.;:?!\n]{2,40}? (?:may|can|is allowed to|are allowed to|gets? to) (?:push|merge|tag|release|deploy|approve|"
    r"touch|sign|publish)\b|nothing (?:gets|is|may be|goes) (?:merged|released|deployed|pushed|shipped|committed|live|out)\b[^.;?!\n]{0,20}? "
    r"(?:without|before|unless|until)\b|(?:nobody|no one|no-one) (?:is allowed|may|is permitted)\b)",
    _I,
)
_NO_SUBJECT = (
    r"(?!(?:the|this|that|these|those|it|he|she|they|i|we|you|there|here|my|your|his|her|their|its|what|which|who|why|how|when|where|"
    r"if|one|two|three|some|both|"
    r"most|many|another|other|let|please|and|but|so|also|only|now|then|just|make|add|write|create|use|do|does|did|is|are|was|were|can|"
    r"could|would|should|"
    r"remove|delete|fix|show|put|set|change|rename|move|check|look|run)\b)"
)
_OF_A_KIND = (
    rf"(?P<all>(?:all|every|each|any|no) (?:new |our |public |the )*)?(?P<our>our |the )?(?P<subject>(?:{_NO_SUBJECT}[\w{CODE}./'-]+ ){{0,3}}?"
    rf"{_NO_SUBJECT}[\w{CODE}./'-]+)(?P<of> (?:in|of|for|on|from|inside) (?:the |our |a |an )?[\w{CODE}./-]+(?: [\w{CODE}-]+)?)?"
)
_BOUND = lazy_compile(
    rf"{_OF_A_KIND} (?:(?:has|have|needs?) to(?: always| never)? |must(?: not| never| always)? |(?:may|can) (?:not|never|only) |"
    rf"should(?:n't| not| never| always)? |"
    r"mustn't )(?:be |get |go |come |start |end |follow |use |have |carry |live |stay |contain |explain |depend |reach |touch |import |"
    r"know |call |describe |name |"
    r"mention |reference |belong )(?P<rest>[^.?!\n]{3,140})",
    _I,
)
_NEEDS = lazy_compile(
    (
        rf"(?P<all>every|each|any|all) (?:new |public )*(?P<subject>[\w{CODE}-]+(?: [\w{CODE}-]+)?) (?:needs?|requires?|gets?|carr(?:y|"
        rf"ies)) (?:an? |its )(?P<rest>(?![^.?!\n]*\bexcept\b)[^.?!\n]{{3,80}})"
    ),
    _I,
)
_NEED_BE = lazy_compile(rf"{_OF_A_KIND} need (?:to be )?(?P<rest>(?:\w+ed|\w+ing)\b[^.?!\n]{{0,80}})", _I)
_BANNED = lazy_compile(
    rf"(?P<subject>{_NO_SUBJECT}[\w@][\w.+#@/{CODE}-]*(?: [\w.+#@/{CODE}-]+){{0,2}}?) (?:is|are) (?:strictly |completely |all "
    rf")?(?:banned|forbidden|prohibited|taboo|"
    rf"off[- ]limits|not allowed|not permitted|mandatory|compulsory)\b(?P<rest>[^?!\n]{{0,80}})",
    _I,
)
_KEPT = any_of(
    "stored saved kept returned sent deployed built generated formatted named signed encrypted hosted managed versioned tracked "
    "written passed handled "
    "rotated published tagged validated cached released served rendered_with persisted represented modelled modeled expressed measured given quoted "
    "injected mocked wrapped prefixed sorted grouped owned reviewed scheduled run squashed linted loaded_from provisioned configured "
    "documented imported "
    "thrown raised logged paginated serialized serialised"
)
_STATED = lazy_compile(
    (
        rf"{_OF_A_KIND} (?:are|is|get|gets) (?:all |always |never |only )?(?:{_KEPT} )?(?:around )?(?:by|in|on|from|with|via|through|as|to|"
        rf"under|inside) (?P<rest>[^?!\n]{{2,120}})"
    ),
    _I,
)
_ARE = lazy_compile(rf"{_OF_A_KIND} (?:are|is) (?P<rest>(?-i:[A-Z])\w*[A-Z0-9]\w*\b[^?!\n]{{0,100}})", re.DOTALL)
_GO = any_of(
    "lives? starts? begins? ends? goe?s? comes? runs? belongs? sits? follows? stays? uses? points? depends? resides? talks? speaks? "
    "writes? reads? connects?"
)
_PLACED = lazy_compile(rf"{_OF_A_KIND} (?:always |never |only )?(?:{_GO}) (?P<rest>[^?!\n]{{4,120}})", _I)
_UNIT = lazy_compile(
    rf"\b(?:UTC|ISO|UUID\w*|ULID\w*|JSON|YAML|TOML|cents?|pence|millis(?:econds)?|metres|meters|minor units|snake.case|camelcase|"
    rf"kebab-case|pascalcase|lower-?case|"
    rf"upper-?case|English|German|French|Spanish|epoch|micros(?:econds)?|grams?|bytes|base64|utf-?8)\b|{CODE}|(?-i:(?<=\w )[A-Z]\w+)",
    _I,
)
_CONTRAST = lazy_compile(
    (
        r", (?:and )?(?:not|never) (?!yet\b|sure\b|really\b)|\b(?:instead of|rather than)\b|\bnever\b|\balways\b|, nobody\b|\banything "
        r"(?:but|except|other than)\b|\bnothing but\b"
    ),
    _I,
)
_TELLING = lazy_compile(
    r"\bshould (?:always |never )?(?:explain|describe|say|mention|reference|start|end|contain|carry)\b", re.IGNORECASE
)
# What has to be done to them now.
_TO_DO = lazy_compile(
    r"\b(?:be|get|been) (?:fixed|rewritten|renamed|updated|removed|deleted|moved|added|changed|adapted|adjusted|replaced|refactored|"
    r"cleaned|split|repaired|migrated|"
    r"converted|re-?run|regenerated|finished|done|restored|checked|green)\b|\b(?:fixing|rewriting|renaming|updating|adapting|cleaning|work)\b",
    re.IGNORECASE,
)
#: What is written and done by the rules of a team; of others it is told how they are.
_OURS = lazy_compile(
    r"\b(?:commits?|branch(?:es)?|branch names|tests?|functions?|comments?|docstrings?|names?|migrations?|messages?|pull requests|prs|"
    r"components?|modules?|"
    r"imports?|exports?|variables?|files|constants|errors|exceptions|merges?|tags?|hooks?)$",
    _I,
)
_WORK = lazy_compile(rf"\b{WORK}$", _I)
#: Occasions of the work, which come again.
_EVENT = (
    r"(?:commit|push|merge|release|deploy|deployment|pr|pull request|merge request|rebase|migration|edit|change|refactor(?:ing)?|task|"
    r"session|test run|build|"
    r"tag|upgrade|code change|schema change)"
)
_EACH = rf"(?:before|after|with|on|for|in) (?:each|every|any|all) (?:{_EVENT}|new {WORK})s?(?: (?:to|into|on|in|of) [^,;:.?!\n]{{2,40}})?"
_ON = (
    rf"(?:{_EACH}|"
    r"(?:before|when) (?:committing|pushing|merging|releasing|deploying|tagging|publishing)(?: (?:anything|to \w+))?)"
)
_WHEN = (
    rf"(?:(?:you|we|somebody|someone|anybody|anyone) [^,;:.?!\n]{{4,80}}|(?:an?|any|one of) (?:new )?(?:[\w-]+ )?(?:{WORK}|schema|"
    rf"dependency|lockfile|proto)s? "
    r"(?:changes?|is (?:\w+ed|new)|gets? \w+ed|moves?)\b[^,;:.?!\n]{0,40})"
)
_CLAUSE = rf"(?:whenever|every ?time|each time|any ?time) (?P<when>{_WHEN})"
_ANY_OF_THEM = (
    r"(?:(?:when|if|after|before|once|as soon as) (?:you |we )?(?!(?:find|see|need|want|have|can|get|think|are|like|notice|know|finish|"
    r"start|'re)\b)[a-z-]+ "
    r"(?:an?|any|new|another|more) (?P<what>[^,;:.?!\n]{2,80})|when (?:writing|adding|naming|creating|changing|reviewing|refactoring|"
    r"renaming) (?P<some>[a-z-]+(?: [a-z-]+)?s))"
)
_OCCASION = lazy_compile(
    rf"(?:{_ON}|{_CLAUSE}|{_ANY_OF_THEM})(?:[,:] (?:then |please |always |also |you (?:have|need) to |we |make sure (?:to |you )?|be "
    rf"sure to )*| (?=add\b|run\b|"
    rf"update\b|write\b|please\b)(?:please )?)(?P<do>(?:don't |do not |never )?{PLAIN_VERB}.*)",
    _I,
)
_AFTERWARDS = lazy_compile(
    rf"(?:please |always |also )*(?P<do>{PLAIN_VERB}[^.;:!?\n]{{2,60}}?),? (?:{_EACH}|whenever (?P<when>{_WHEN})|(?:each|every) time "
    rf"(?P<time>{_WHEN}))"
    r"(?=[.!,;)]|\s*$)",
    _I,
)
_OWN_TIME = lazy_compile(
    (
        r"\b(?:i|i'm|i've|me|my|you have time|you're|you are (?:done|ready|finished|stuck|unsure)|you feel|you like|you want|possible|"
        r"needed|necessary)\b"
    ),
    _I,
)
_PICKED = lazy_compile(
    r"\b(?:this|that|these|those|my|your) \w|\bthe (?:last|first|next|second|old|new|other|same|current|failing|remaining)\b|\bme\b",
    _I,
)
_MYSELF = lazy_compile(
    r"(?:and |but |btw |also )*i (?:always |usually |only )?(?:do|make|push|cut|run|handle|write|create|commit|merge|tag|release|"
    r"deploy|publish|sign|take care of) "
    r"(?:(?:the|all|all the|our|my) )?(?:(?!this\b|that\b)[\w-]+ ){0,2}?(?:commits?|commit messages|merges?|merging|tags?|tagging|"
    r"releases?|releasing|deploys?|deployments?|"
    r"deploying|pushes|pushing|committing|migrations|changelogs?|changelog entries|version bumps?|bumps|pull requests|prs|rebases|"
    r"rebasing|git (?:stuff|work)|git)"
    r"(?: always)? (?:by )?myself\b(?!.*\b(?:later|this time|tonight|tomorrow|today|soon)\b)",
    _I,
)
_LEFT_TO_ME = lazy_compile(
    (
        r"(?:please )?(?:always )?leave (?:the |all )?(?:commits?|committing|merges?|merging|pushing|releases?|releasing|tagging|deploys|"
        r"deploying|git)(?: \w+)? to me\b"
    ),
    _I,
)
_KEEP_SIZE = lazy_compile(
    (
        r"(?:please |try to |and |also )*(?:keep|make|write) (?P<one>(?:[\w-]+ ){0,2}?[\w-]+s) (?:under|below|short|small|at most|shorter "
        r"than|within|to (?:under|at most))\b(?P<rest>.*)"
    ),
    _I,
)
_ALL_OVER = lazy_compile(
    (
        rf"(?:please )?(?P<one>(?:[\w.{CODE}-]+ ){{0,2}}?[\w.{CODE}-]+) (?:everywhere|throughout|across the board)(?P<rest>(?: in (?:the|"
        rf"our) [\w. -]{{2,30}})?(?: please| pls)?[.!]*\s*$)"
    ),
    _I,
)
_ONLY = lazy_compile(
    rf"(?:please )?(?P<one>(?:[\w.-]+ ){{0,2}}?[\w-]+s) only(?P<what> (?:for|in) [\w -]{{3,40}})?(?:,? (?:please|pls)|,? (?:{_HERE}))+[.!]*\s*$",
    _I,
)
_ALWAYS_LAST = lazy_compile(
    r"(?!i\b|it\b|as\b|this\b|that\b|the\b|you\b|he\b|she\b|we\b|they\b)[^?!\n,]{8,90}, always[.!]*\s*$", _I
)
_NEVER_LAST = lazy_compile(
    r"(?:please |and )*(?:use|sort|write|name|keep|format|store|log|return|run|prefer|follow|test|mock|indent|quote|import|put|build|"
    r"deploy|install|pass|raise|throw|"
    r"manage|call|generate|create|edit|change|bump) (?!(?:a|an|it|this|that|one|some)\b)[^,.;?!\n]{2,60}, (?:and )?never (?!(?:mind|"
    r"the (?:other|old|new|first))\b)[^.;?!\n]{2,60}",
    _I,
)
_FROM_NOW = lazy_compile(
    rf"(?:please |and |ok,? )*(?!{any_of('continue proceed go work wait take')}\b){PLAIN_VERB}[^.;?!\n]{{3,100}} (?:from now on|going "
    rf"forward|from here on|in (?:the )?future)"
    r"(?: please| pls)?[.!]*\s*$",
    _I,
)


def read_custom(core: str) -> str | None:
    """Return the pattern of a sentence that says how things are done here; nothing for others.

    Example:
        >>> [read_custom(one) for one in ("we never throw in this layer", "every release has to be tagged by the bot", "we use it twice")]
        ['preference', 'constraint', None]
        >>> [read_custom(one) for one in ("Whenever you add a route, update the spec.", "whenever I click, it hangs", "all sums are kept in cents")]
        ['preference', None, 'statement']
    """
    return _read_occasion(core) or _read_habit(core) or _read_norm(core)


def _read_occasion(core: str) -> str | None:
    found = _OCCASION.match(core)
    if found is None:
        found = _AFTERWARDS.match(core)
        when = (found["when"] or found["time"] or "") if found else ""
    else:
        when = " ".join(filter(None, (found["when"], found["what"], found["some"])))
    if found is None or _OWN_TIME.search(when) or SHOWN.search(core) or _PICKED.search(core):
        return None
    if doubts.POINTING.match(found["do"]) and not when:
        return None
    is_about_one = re.match(r"(?:when|if|after|before|once|as soon as)\b", core, re.IGNORECASE) and re.search(
        r"\bthe\b", when
    )
    return (
        None
        if is_about_one or re.match(r"(?:go|wait|tell|see|stop|continue|look|start|let)\b", found["do"], re.IGNORECASE)
        else "preference"
    )


def _read_habit(core: str) -> str | None:
    """Return the pattern of what the people of a team do, or keep for themselves."""
    if _MYSELF.match(core) or _LEFT_TO_ME.match(core):
        return "preference"
    if SHOWN.search(core):
        return None
    found = _OF_US.match(core)
    if found and not _DEFINITE.match(found["what"]) and not FARING.search(found["what"]):
        is_firm = found["firm"] or _NORMATIVE.search(core)
        if is_firm and (found["who"].lower() == "we" or _NORMATIVE.search(core)):
            return "preference"
    if _NOBODY.match(core) and re.search(rf"\b{_HERE}\b|\bby hand\b|\bmanually\b|\bdirectly\b", core, re.IGNORECASE):
        return "preference"
    return "constraint" if _MAY.match(core) else _read_style(core)


def _read_style(core: str) -> str | None:
    """Return the pattern of how a kind of things is written, said without a verb or in one word."""
    sized = _KEEP_SIZE.match(core)
    all_over = None if sized else _ALL_OVER.match(core)
    found = sized or all_over or _ONLY.match(core)
    if found and is_kind(found["one"]) and (not all_over or " " in found["one"] or is_choice(found["one"])):
        is_bare = not (sized or all_over or found["what"]) and " " not in found["one"]
        if is_bare or (sized and is_at_hand(sized["rest"])):
            return None
        has_verb = re.match(
            rf"(?:rename|replace|remove|add|put|fix|change|do|use it|it|apply|check|search|delete)\b|{_NO_SUBJECT}\w+s \w+ed\b",
            found["one"],
            re.IGNORECASE,
        )
        return None if has_verb else "preference"
    if _NEVER_LAST.match(core) or _ALWAYS_LAST.match(core) or _FROM_NOW.match(core):
        return None if _PICKED.search(core) else "preference"
    return None


def _read_norm(core: str) -> str | None:
    """Return the pattern of what holds for all things of a kind."""
    if SHOWN.search(core):
        return None
    found = _BANNED.match(core)
    if found and (is_choice(found["subject"]) or is_kind(found["subject"])) and not FARING.search(core):
        return "constraint"
    for expression in (_BOUND, _NEEDS, _NEED_BE):
        found = expression.match(core)
        if found and _is_of_a_kind(found) and not FARING.search(found["rest"]):
            is_soft = expression is _BOUND and re.search(r"\bshould(?! not| never|n't)", found[0], re.IGNORECASE)
            if _TO_DO.search(found[0]) or (is_soft and not (_CONTRAST.search(found[0]) or _TELLING.search(found[0]))):
                continue
            gets = expression is _NEEDS and re.search(r"\b(?:gets?|carr(?:y|ies)) ", found[0])
            return "preference" if is_soft or gets else "constraint"
    for expression in (_STATED, _ARE, _PLACED):
        found = expression.match(core)
        if (
            found
            and " but " not in core
            and not FARING.search(core)
            and _is_of_a_kind(found, by_name=True)
            and (_CONTRAST.search(core) or _is_said_of_all(found, is_placed=expression is _PLACED))
        ):
            is_ours = _OURS.search(found["subject"]) is not None and expression is _PLACED
            if (
                is_ours
                or expression is not _PLACED
                or _UNIT.search(found["rest"])
                or re.search(r"\bnever\b", found["rest"], re.IGNORECASE)
            ):
                is_firm = re.search(r"\b(?:are|is|get|gets) (?:always|never|only) ", found[0], re.IGNORECASE)
                return "preference" if is_ours or is_firm else "statement"
    return None


def _is_said_of_all(found: re.Match[str], *, is_placed: bool) -> bool:
    return _UNIT.search(found["rest"]) is not None or bool(
        is_placed and _OURS.search(found["subject"]) and re.match(r"(?:with|by)\b", found["rest"])
    )


def _is_of_a_kind(found: re.Match[str], *, by_name: bool = False) -> bool:
    """Tell whether a subject is every one of a kind, or many without an article; `by_name` where a name will do."""
    subject, groups = found["subject"], found.groupdict()
    if not is_kind(subject):
        return False
    if groups.get("all"):
        return by_name or _WORK.search(subject) is not None
    if (groups.get("our") or "").lower() == "the " and not _CONTRAST.search(found[0]):
        return False
    is_many = subject.endswith("s") and not re.search(r"(?:ss|us|is)$", subject)
    return is_many and (by_name or _WORK.search(subject) is not None)
