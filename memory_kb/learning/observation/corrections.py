"""What a person says against something the agent did, together with what that was."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.entry import Span
from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import TOOLS
from memory_kb.learning.observation.norms import NAME, TASTE, is_norm
from memory_kb.learning.observation.statements import said_by_person
from memory_kb.learning.speech import doubts
from memory_kb.learning.speech.clauses import begin, begins_as_order
from memory_kb.learning.speech.openings import OPENING
from memory_kb.learning.speech.phrases import GROUND
from memory_kb.learning.speech.unmeant import meant

_I = re.IGNORECASE
_SHORTEST, _LONGEST = 20, 2_000
_SIGNAL = 380
#: So few words that the sentence before them may be needed to understand them.
_BRIEF = 6
_LEAD = r"(?:(?:please|hey|ok(?:ay)?|hm+|wait|hang on|hold on|whoa|sorry|but|and|also|well|again|actually)[,.:!]? )*"
_AGAINST = lazy_compile(
    _LEAD
    + r"(?:(?:no){1,8}o*\b(?! (?:problem|worries|need|idea|rush|hurry|changes?))|nope\b|nah\b|stop\b|wait\b|wrong\b|not like (?:that|this)|"
    r"don't\b|"
    r"do not\b|dont\b|never\b|undo\b|revert\b|please don't|"
    r"that(?:'s| is| was) (?:not|wrong|incorrect)|this is (?:not|wrong)|you (?:should(?:n't| not)|must(?:n't| not)|(?:just |also |"
    r"again )?(?:put|edited|changed|used|added|removed|deleted|committed|pushed|"
    r"created|wrote|moved|renamed|forgot|broke|hard-?coded|mocked|touched|installed|upgraded|skipped|ignored|disabled|bypassed|duplicated|"
    r"reformatted|rewrote|branched|merged|rebased|squashed|ran|called|started|left|made|did|picked|chose))\b|"
    r"why (?:(?:did|are|do|would) you|(?!(?:is|are|was|were|does|do|did|would|not|don't)\b))|i (?:didn't|did not|never) (?:ask|want|say|tell)|"
    r"i (?:said|told you|asked)|we (?:don't|do not|never)\b|"
    r"instead\b|use\b|(?:btw|by the way),? next time\b|next time\b|i (?:really )?(?:don't|do not) (?:like|want)\b)",
    _I,
)
_TELLING = lazy_compile(
    _LEAD + r"(?:we (?:don't|do not|never)|never|don't|do not|dont|instead|use|(?:(?:btw|by the way),? )?next time)\b",
    _I,
)
_DISLIKE = lazy_compile(
    r"\bi (?:really )?(?:don't|do not) (?:like|want) (?:that |it when )?you\b|\byou should(?:n't| not) have\b", _I
)
_OBJECTION = lazy_compile(
    r"^(?:(?:(?:no)+|yes|yeah|yep|right|exactly|correct|(?:one|two|three|a few|some) (?:more )?(?:things?|mistakes?|notes?|points?|"
    r"problems?)|nope|nah|stop|wait|wrong|undo (?:that|it|this)|revert (?:that|it|this)|hey|again|sorry|ok(?:ay)?|hm+|that(?:'s| is) (?:wrong|"
    r"not (?:right|correct|true|what i (?:want|wanted|meant|asked for)))|(?:yes|yeah|yep)(?= \w))(?:[,.:!;]+ *|(?<=y[eu][sap]) (?=\w)|"
    r"(?<=yeah) (?=\w)| *[—–] *| - )+"
    r"|(?:actually|please|and|also|but)\b,? )",
    _I,
)
# One tool instead of another; of anything else it is a wish for this once.
_INSTEAD = lazy_compile(
    r"\buse (?P<one>(?!(?:the|that|this|a|an|it|your|my|another|one)\b)[^\s,]+(?: [^\s,]+){0,2}?),? (?:instead of|not|"
    r"rather than) (?P<other>(?!(?:the|that|this)\b)\S+)",
    _I,
)
# What is said of the whole project needs no objection before it.
_STRONG = lazy_compile(
    r"(?:^|[,;:.] )(?!(?:the|this|that|it|these|those|he|she|i|you|they|we|there|what|which|let|please)\b)(?:[\w`'-]+ ){0,3}?[\w`'-]+s "
    r"(?:should |must |always |only |never |all )?(?:come|go|live|belong) (?:only )?(?:from|through|in|into|to|under|via)\b|"
    r"\bhow we (?:do|run|deploy|build|release|ship|test)\b|\b(?:in|across) (?:this|our) (?:repo|repository|project|codebase|code base|"
    r"monorepo|workspace)\b"
    r"|\b(?:every|all|each) [\w-]+ (?:in|of) (?:the|our|this) [\w-]+ (?:is|are|has|have|uses?|calls?|must|goes?|lives?|gets?|takes?|needs?|"
    r"starts?|ends?)\b",
    _I,
)
# What somebody tells of the way things are, after something failed.
_HABIT = lazy_compile(
    r"\b(?:is|are) (?:always |only |all )?(?:generated|vendored|protected|deprecated|read-only|immutable|shared|mounted|managed|required|"
    r"reserved)\b"
    r"|(?:^|[,;:.] )(?!(?:the|this|that|it|these|those|he|she|i|you|they|there|what|which|let)\b)[\w`/.'-]+(?: [\w`/.'-]+){0,3}? "
    r"(?:should |must |always |only |never |all )?(?:comes?|go|goes|lives?|belongs?|runs?|needs?) (?:only )?(?:from|through|in|into|to|under|"
    r"via|on|with)\b"
    r"|\bwe (?:always|never|only|don't)\b|\byou (?:always )?(?:need|have) to \S+ .*\b(?:first|before)\b",
    _I,
)
# Words that make a wish hold for more than this once.
_LASTING = lazy_compile(
    r"(?:^|[,;:.] )(?:and )?no [\w-]+(?: (?:and|or) (?:no )?[\w-]+)? (?:in|from|inside|within) (?!(?:the|this|that|my|"
    r"your)\b)[\w-]+(?: [\w-]+)?(?<!s)s\b|"
    r"\b(?:is|are) [^,.;]{2,40} everywhere\b|"
    r"\b(?:the )?(?:law|tax office|authorit(?:y|ies)|customers?|clients?|legal|compliance|auditors?|finance|accounting|the contract|contracts?|"
    r"regulators?|gdpr|security team|app store|spec(?:ification)?|standard) (?:always )?(?:wants?|requires?|needs?|expects?|demands?|"
    r"forbids?|insists?)\b"
    r"|\bin (?:code|prose|tests|docs|comments|production|prod|staging|ci) (?:it|they|everything|we)? ?(?:stays?|must|always|never|remains?|"
    r"keeps?)\b"
    r"|(?:^|[,;:.] )(?:and )?only (?!(?:the|this|that|these|those|one|two|a|an|if|when|because)\b)\w+(?: \w+){0,2} (?:is|are|may|can|should|"
    r"must|gets?) "
    r"|\bwe already (?:have|use) \S|\b(?:don't|do not|never) (?:add|introduce|install|pull in) (?:a second|another|new|more|any)\b|"
    r"\bwhat we (?:do|use)\b|\beverywhere else\b|\b(?:bitten|burned|burnt) (?:us|me)\b|^(?:please )?only (?:use|run|call|add|"
    r"import|mock|"
    r"commit|push|edit|install)\b|"
    r"(?:^|[,;:.] )(?!(?:it|this|that|he|she|they|you)\b)\w+s (?:only|always|never) (?:run|happen|come|live|work)\b|\bnext time\b|"
    r"\bwe (?:(?:always|(?:don't|do not)(?! (?:have|need|know|see|want|get|think|care|mind)\b)|only|use|keep|put|write|run|go|store|pin|"
    r"name|branch|merge|squash|rebase|tag|sign|"
    r"generate|deploy|rely|agreed|follow|stick)\b|never (?!really\b|\w+(?<!e)ed\b|got\b|did\b|had\b|were\b|knew\b|thought\b|saw\b|found\b))"
    r"|\b(?:never (?!really\b|\w+(?<!e)ed\b|mind\b|again\b|got\b|did\b|thought\b|had\b|works?\b|was\b|been\b|seen?\b|saw\b|knew\b|heard\b|"
    r"happen|once\b)|ever\b|"
    r"always\b|from now on\b|every time\b|in general\b|"
    r"by convention\b|our convention\b|the convention\b|as a rule\b)"
    r"|\bin (?:this|our|the) (?:repo|repository|project|codebase|code base|monorepo|package|service|module|team|workspace)\b"
    r"|\b(?:is|are|it's|they're|gets?|was|were) (?:(?:auto-?|machine |already |all )?(?:generated|vendored|protected|deprecated|read-only|"
    r"immutable|applied|deployed|owned|shared|synced|checked in|copied|configured|defined|stored|declared|kept|documented|managed|reserved|"
    r"public|legacy|frozen))\b"
    r"|\b(?:by hand|manually|directly)\b.*\b(?:use|run|change|edit|through|via|generated?|instead)\b|\b(?:generated?|instead)\b.*\b(?:by hand|"
    r"manually|directly)\b"
    r"|\b(?:don't|do not|dont|never) .{2,80}\b(?:by hand|manually|directly)\b|\brun `[^`]+` instead\b|\buse `[^`]+ [^`]+` instead\b"
    r"|(?:^|[,;:.] |\b(?:all|every|each|our|any) )(?!(?:the|this|that|it|these|those|he|she|i|you|they|there|what|which|"
    r"let)\b)[\w`/.'-]+(?: [\w`/.'-]+){0,3}? "
    r"(?:should |must |always |only |never |all )?(?:comes?|go|goes|lives?|belongs?) (?:only )?(?:from|through|in|into|to|under|via)\b"
    r"|\b(?:must|should|may|can) (?:always|never|only|not)\b|\b(?:keep|limit|restrict|leave) \S.* (?:to|out of|in|within|alone)\b",
    _I,
)
_DONT = lazy_compile(r"\b(?:don't|do not|dont|never|stop) (?:\w+ing\b|\w+)", _I)
# A short sentence that points at what only those who were there have seen.
_SHORT = 45
_HERE = lazy_compile(
    r"^(?:use|put|call|add|make|take) .*\bhere\W*$|\bin (?:this|that|the) (?:file|function|component|test|line|method|case|class|block|query|"
    r"loop|branch|one)\b|\bthe (?:first|"
    r"second|third|last|other) (?:one|test|line|file)\b",
    _I,
)
# What is to be done now stands beside the rule, and is none.
_NEXT = lazy_compile(
    r"(?:(?:just|now|then|so|please|pls|ok(?:ay)?|and)[, ]+)*(?:(?:push|commit|continue|go on|"
    r"(?:put|bring|roll|change|turn) (?:it|that|this|them) back|restore|"
    r"go ahead|revert|undo|try again|let's|thanks|"
    r"thx)\b)",
    _I,
)
_BACK = lazy_compile(r"\b(?:that|this|the same) way\b|\blike (?:that|this)\b", _I)
# What is said after a rule of why it holds.
_ASIDE = lazy_compile(r", (?:[\w']+ ){1,4}(?:that|this|it)\W*$", _I)
# A part of the whole that stays when the task at hand is done.
_LAYER = lazy_compile(
    r"\bin this (?:layer|tier|crate|namespace|subsystem|domain|bounded context|folder|directory|schema)\b", _I
)
_NEXT_TIME = lazy_compile(r"\bnext time\b(?! (?:i|we|you see)\b)", _I)
_TOLD = lazy_compile(r"^i (?:already )?(?:told you|said)(?: before| already)?[:,]? (?:that )?", _I)
_ASKING = lazy_compile(
    r"\b(?:ask(?:ing)?|check(?:ing)?(?: in)? with|confirm(?:ing)? with|wait(?:ing)? for|need) (?:me|my|us|permission|approval|confirmation|"
    r"first|before)\b|\bwithout asking\b|\bneed(?:n't| not)? (?:to )?ask\b",
    _I,
)
_MORE_AUTONOMOUS = lazy_compile(
    r"\b(?:don't (?:need|have) to ask|do not need to ask|no need to ask|stop asking|don't ask|needn't ask|without asking me (?:is|"
    r"first is) (?:fine|ok)|you (?:can|may) .{2,60} without asking)\b",
    _I,
)
_ESCALATE = lazy_compile(
    r"\b(?:(?:always |please )?ask(?: me| us)?(?: first)? (?:before|when|if)|check with (?:me|us) (?:before|when|if)|(?:never|don't|"
    r"do not) .{2,80} without (?:asking|my|approval|confirm)|get my (?:ok|approval) before)\b",
    _I,
)
_UNASKED = lazy_compile(
    r"\bi (?:didn't|did not|never) (?:ask|tell) (?:you )?(?:to|for)\b|\b(?:out of scope|not (?:part|in scope) of)\b|\bbeyond what i asked\b",
    _I,
)


class Did(NamedTuple):
    """What the agent did last: `edited` with a file, `ran` with a command, or `looked` with nothing; where it was refused, `is_refused`."""

    verb: str = ""
    target: str = ""
    seq: int = 0
    is_refused: bool = False
    has_failed: bool = False

    @property
    def told(self) -> str:
        """It in words, behind the agent: `had run ...`, or `was refused to run ...`."""
        does, done = {"edited": ("edit", "edited"), "ran": ("run", "run")}[self.verb]
        return f"was refused to {does} `{self.target}`" if self.is_refused else f"had {done} `{self.target}`"


class Correction(NamedTuple):
    """What a person wants otherwise.

    Attributes:
        scope: the scope of extraction: `observations`, `escalation` or `intent-alignment`.
        signal: their sentences, letter for letter.
        title: the sentence that says most.
        context: what it was said of.
        direction: for an escalation, `More autonomous`, `Escalate more`, or both.
        is_against: whether they object to something, rather than tell how things are done.
    """

    scope: str
    signal: str
    title: str
    context: str = ""
    direction: str = ""
    is_against: bool = True


def find_correction(message: str, did: tuple[Did, ...]) -> Correction | None:
    """Return what a message says that holds beyond this once, or None.

    Args:
        message: what the person wrote.
        did: what the agent did since the person spoke last, in its order.

    Example:
        >>> find_correction("No, don't edit api.gen.ts by hand. It is generated, run `make gen`.", (Did("edited", "src/api.gen.ts", 4),)).context
        'had edited `src/api.gen.ts`'
        >>> find_correction("no, a darker green", (Did("edited", "src/Button.tsx", 4),)) is None
        True
    """
    if not _SHORTEST <= len(message) <= _LONGEST:
        return None
    everything = meant(said_by_person(message))
    said = tuple(one for one in everything if not one.endswith("?") and not doubts.NOT_MEANT.search(one))
    asking = tuple(
        one
        for one in said
        if _ASKING.search(one) and (_MORE_AUTONOMOUS.search(one) or _ESCALATE.search(one)) and not _is_for_once(one)
    )
    if asking:
        return _about_asking(asking)
    if not did:
        return None
    is_against = any(_AGAINST.match(one) or _DISLIKE.search(one) for one in everything[:3]) or any(
        one.is_refused for one in did[-2:]
    )
    is_help = any(is_norm(one) for one in said)
    is_help = is_help or any(
        (_STRONG.search(one) or (did[-1].has_failed and _HABIT.search(one))) and NAME.search(one) for one in said
    )
    if not (is_against or is_help):
        return None
    unasked = next((number for number, one in enumerate(said) if _UNASKED.search(one)), None)
    if unasked is not None:
        return _about_unasked(said[unasked:], did)
    found = _about_work(said, did)
    is_told = (
        not found
        or any(_objects(one) for one in everything[:3])
        or bool(found.context)
        or any(one.is_refused for one in did[-2:])
    )
    return found if is_told or found is None else found._replace(is_against=False)


def _objects(sentence: str) -> bool:
    """Tell whether a sentence is against something, and not only says how things are done."""
    return (_AGAINST.match(sentence) is not None and _TELLING.match(sentence) is None) or _DISLIKE.search(
        sentence
    ) is not None


def _about_asking(said: tuple[str, ...]) -> Correction:
    text = " ".join(said)
    directions = [
        word
        for word, pattern in (("More autonomous", _MORE_AUTONOMOUS), ("Escalate more", _ESCALATE))
        if pattern.search(text)
    ]
    return Correction("escalation", text[:_SIGNAL], _title(said[0]), direction=", ".join(directions))


def _about_unasked(said: tuple[str, ...], did: tuple[Did, ...]) -> Correction | None:
    lasting = next((one for one in said[1:3] if _LASTING.search(one) and not _is_for_once(one)), None)
    return (
        None
        if lasting is None
        else Correction("intent-alignment", f"{said[0]} {lasting}"[:_SIGNAL], _title(lasting), _context(said, did))
    )


def _about_work(said: tuple[str, ...], did: tuple[Did, ...]) -> Correction | None:
    text = " ".join(said)
    has_name = any(map(NAME.search, said))
    has_failed = did[-1].has_failed
    lasting = [
        number
        for number, one in enumerate(said)
        if (
            _LASTING.search(one)
            or _STRONG.search(one)
            or is_norm(one)
            or _is_of_tools(one)
            or (has_failed and _HABIT.search(one))
        )
        and not _is_for_once(one)
        and (has_name or not _is_pointing(one))
    ]
    if not lasting or (TASTE.search(text) and not any(NAME.search(said[number]) for number in lasting)):
        return None
    context = _context(said, did)
    if not NAME.search(text) and not context and not any(is_norm(one) for one in said):
        return None
    first = next((number for number, one in enumerate(said) if _DONT.search(one) or _AGAINST.match(one)), lasting[0])
    start = min(first, lasting[0])
    if start and len(said[start].split()) <= _BRIEF and GROUND.match(said[start - 1]):
        start -= 1
    stop = max(lasting) + 2
    while stop < len(said) and NAME.match(said[stop]) and not begins_as_order(said[stop]):
        stop += 1
    kept = list(said[start:stop])
    if len(kept) > 1 and kept[-1] != said[max(lasting)] and _NEXT.match(kept[-1]):
        kept.pop()
    while len(" ".join(kept)) > _SIGNAL and len(kept) > 1:
        kept.pop(0 if kept[0] not in [said[number] for number in lasting] else -1)
    signal = _bare(" ".join(one for one in kept if len(_bare(one)) > 8))
    if len(signal) > _SIGNAL:
        return None
    best = max(kept, key=lambda one: _weight(one, is_lasting=one in [said[number] for number in lasting]))
    return Correction("observations", signal, _title(best), context)


def _weight(sentence: str, *, is_lasting: bool) -> tuple[bool, bool, bool, int]:
    """Return how well a sentence stands for a correction: it says what holds, by name, in few words."""
    forbids = _DONT.search(sentence) is not None and not _DISLIKE.search(sentence)
    is_whole = not _is_pointing(sentence) and _BACK.search(sentence) is None
    return (forbids or is_lasting) and is_whole, forbids, NAME.search(sentence) is not None, -len(sentence)


def _is_for_once(sentence: str) -> bool:
    said = _NEXT_TIME.sub("", _TOLD.sub("", _LAYER.sub("", _ASIDE.sub("", sentence)), count=1))
    return doubts.ONE_OFF.search(said) is not None or _HERE.search(sentence) is not None


def _is_of_tools(sentence: str) -> bool:
    """Tell whether a sentence names a tool to use and one to leave.

    Example:
        >>> _is_of_tools("use pnpm, not npm"), _is_of_tools("use 0.1 instead of 0.15"), _is_of_tools("use minutes, not hours")
        (True, False, False)
    """
    found = _INSTEAD.search(sentence)
    if found is None:
        return False
    return any(
        word.strip("`.,").lower() in TOOLS or NAME.fullmatch(word.rstrip(".,"))
        for word in (*found["one"].split(), found["other"])
    )


def _is_pointing(sentence: str) -> bool:
    return len(sentence) < _SHORT and doubts.POINTING.search(sentence) is not None


def _context(said: tuple[str, ...], did: tuple[Did, ...]) -> str:
    """Return what was done that the words are about: what they name, what was refused, or the last thing."""
    text = " ".join(said)
    did = tuple(one for one in did if one.target)
    named = [one for one in did if _is_named(one, text)]
    refused = [one for one in did[-2:] if one.is_refused]
    edits = [one for one in did if one.verb == "edited"]
    last = [] if NAME.search(text) else (edits or list(did))
    one = next(iter([*reversed(refused), *reversed(named), *reversed(last)]), None)
    if one is None:
        return ""
    is_one_of_many = (
        not one.is_refused
        and one.verb == "ran"
        and one in named
        and len({other.target for other in named if other.verb == "ran"}) > 1
    )
    return one._replace(target=one.target.split(" ", maxsplit=1)[0]).told if is_one_of_many else one.told


def _is_named(one: Did, text: str) -> bool:
    """Tell whether a text names the file that was edited, or the command that was run."""
    words = text.lower()
    if not one.target:
        return False
    if one.verb == "edited":
        return one.target.rpartition("/")[2].lower() in words
    program, _, rest = one.target.lower().partition(" ")
    return (
        len(program) > 3 and re.search(rf"(?<![\w-]){re.escape(program)}(?![\w-])", words) is not None
    ) or f"{program} {rest.partition(' ')[0]}".strip() in words


def is_about_deed(correction: Correction, message: str, did: tuple[Did, ...]) -> bool:
    """Tell whether a correction is about something that the agent did, by name or because it was refused."""
    return bool(correction.context) and (
        any(one.is_refused for one in did[-2:]) or any(_is_named(one, message) for one in did)
    )


def _bare(sentence: str) -> str:
    """Return a sentence without the interjections at its beginning."""
    previous = None
    while previous != sentence:
        opening = OPENING.match(sentence)
        previous, sentence = sentence, _OBJECTION.sub("", sentence[opening.end() if opening else 0 :], count=1)
    return sentence


def _title(sentence: str) -> str:
    bare = _bare(sentence)
    bare = bare[begin(bare, Span(0, len(bare))).start :].rstrip(".! ")
    first = bare.split(" ", maxsplit=1)[0]
    is_name = bare[:1] in "`'\"" or first in TOOLS or any(sign in first for sign in "/._`")
    return bare if is_name else bare[:1].upper() + bare[1:]
