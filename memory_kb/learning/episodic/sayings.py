"""What people and agents say about their work: decisions, causes, lessons, corrections, what was done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memory_kb.learning.extraction.conversation import clean
from memory_kb.learning.speech.doubts import NOT_MEANT
from memory_kb.learning.speech.ownwords import GONE, read_own_text, sentences
from memory_kb.learning.speech.phrases import OBLIGING, PLAIN_VERB
from memory_kb.learning.speech.unmeant import meant
from memory_kb.text import shorten

#: A sentence outside these numbers of words says nothing, or too much at once.
_FEWEST, _MOST = 4, 60
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d+[.)])\s")
_LONGEST = 300
#: Characters looked at of a message, from its beginning and from its end.
_HEAD, _TAIL = 12_000, 6_000
_I = re.IGNORECASE
_BECAUSE = re.compile(
    r"\b(?:because|since|so that|so (?:we|it|the|that|there)|as (?:it|this|that|the|we)|to avoid|to keep|instead of|rather than|in order to|"
    r"which (?:lets|keeps|avoids|means|makes)|over (?:a|the)?)\b|[;—–]",
    _I,
)
_CHOICE = re.compile(
    r"^(?:(?:so|ok(?:ay)?|then|alright|right|good|great|given that|therefore|for now)[,:]? )*(?:(?:because|since|given that|as) [^,]{5,120}, )?(?:"
    r"(?:i|we)(?:'ll| will|'m going to| am going to|'re going to) (?!(?:first|now|also|just|then|quickly|only)?\s*(?:look|check"
    r"|run|read|start|see|try|search|find|"
    r"investigate|begin|verify|inspect|grep|open|explore|need|have a|take a|go (?:and|through|back)|show|list|wait|ask|stop"
    r"|continue|figure|dig|trace|fix|test|update|proceed|finish|clean|stage|commit|push)\b)\w+"
    r"|(?:i|we)(?:'ve| have)? (?:decided|chose|chosen|opted|settled|picked|went with|am going with|are going with)\b|(?:i'm|we're) going with\b"
    r"|let's (?:use|go with|keep|stick with|switch to|make|pin|move|drop|not|do)\b"
    r"|(?:the )?decision(?: is| was)?\s*:|decided\s*:|going with\b|opting for\b)",
    _I,
)
# Steps on the way, and choices that nobody understands who was not there.
_VAGUE = re.compile(
    r"\b(?:option|approach|variant|version|alternative) (?:[A-D]|\d)\b|\b(?:first|second|third|last|other|latter|former) (?:one"
    r"|option|approach|version|way)\b"
    r"|\b(?:since|as|because) you (?:asked|suggested|said|want|prefer)|\buse (?:grep|rg|sed|find|git|ls|cat|curl|a (?:quick|small) script)\b"
    r"|\b(?:first|next),? (?:so|to|because|and|since|then)\b|\bfirst\W*$|^let's go with (?:that|it|this)\W*$",
    _I,
)
_WILL = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|no|right|good|sure|fine|alright|hm+|great|perfect)[,.:!]? )*(?:"
    r"let's (?:use|go with|keep|stick with|switch to|make|pin|move|drop|not|do)\b|(?:please )?go with\b|we(?:'ll| will) (?:use"
    r"|keep|go with|stick with|not)\b"
    r"|use (?=.{3,80}\b(?:instead(?: of)?|rather than|not)\b)|keep (?=.{3,80}\b(?:as is|as it is|unchanged|the way)\b)"
    r"|(?:the )?decision(?: is| was)?\s*:|i(?:'ve| have)? decided\b|i(?:'d| would) go with\b)",
    _I,
)
_CAUSE = re.compile(
    r"\b(?:(?:root )?cause|problem|issue|bug|culprit|reason|failure|catch)\b(?: \w+){0,6}? (?:is|was|were|comes? from"
    r"|came from)\b(?! (?:to|not clear|unclear|still|fixed|gone|solved|that (?:i|we) (?:don't|do not|can't|cannot))\b)"
    r"|^(?:the|one) (?:fix|solution|trick|workaround) (?:is|was)\b|\b(?:i|we) found (?:out )?that\b"
    r"|^(?:the )?(?:root )?cause\s*:|\b(?:it )?turn(?:s|ed) out\b|\bfails? because\b|\bfailed because\b|\bwas (?:failing|breaking|"
    r"hanging) because\b"
    r"|\b(?:fail|crash|hang|break|time)(?:s|es|ed)?\b(?: out)?.{0,40}\bbecause\b|, so (?:the|it|that|this|every"
    r"|no)\b.{3,80}\b(?:cannot|can't|could not|never|fails?|failed)\b"
    r"|^(?:this|that|it) (?:happen(?:s|ed)|fail(?:s|ed)) (?:because|when)\b",
    _I,
)
_LESSON = re.compile(
    r"^(?:(?:key )?(?:lesson|learning|takeaway|note to self|for next time|worth remembering|remember|tip"
    r"|gotcha)s?(?: learned)?\s*[:—–-]\s*|note that\b|lesson learned\b"
    r"|(?:i|we)(?:'ve| have)? (?:learned|learnt) that\b|next time,? )",
    _I,
)
_RULE = re.compile(
    rf"^(?:[\w' ]{{1,30}}: )?(?:(?:please|and|also|but|no|note|btw|ok(?:ay)?|remember|actually)[,:]? )*(?:(?:in this (?:repo|project"
    rf"|codebase|service|package)|here)[,]? (?:we|you|the|all|every)\b"
    rf"|(?:always|never) (?!mind\b|again\b|\w*[^s\W]s\b)(?={PLAIN_VERB})\w|we (?:always|never|don't|do not|only|use|keep)\b|(?:you|we) must "
    rf"(?:(?:always|never|not|also) )*{OBLIGING}|don't ever\b)"
    rf"|\bwe (?:always|never|only|go with|went with|don't ever|no longer)\b|\bin this (?:repo|project|codebase|workspace|service)\b"
    rf"|^don't\b.*\bever\b|^(?:i|we) prefer\b"
    rf"|\b(?:is|are|comes?|come) (?:auto-?)?generated (?:from|with|by)\b|\b(?:on purpose|by design|intentional(?:ly)?|deliberate(?:ly)?)\b",
    _I,
)
# How it was done somewhere else, or once.
_ELSEWHERE = re.compile(
    r"\b(?:last|previous|old|former|other) (?:company|job|team|project|place|employer)\b|\bwe (?:always|never) (?:used|had|did|were|got)\b",
    _I,
)
_TENTATIVE = re.compile(
    r"\b(?:might|maybe|may|perhaps|probably|possibly|likely|seems?|looks? like|i think|i suspect|not sure|could be|let me|let's see|"
    r"guess)\b|\?$",
    _I,
)
_DONE = re.compile(
    r"^(?:(?:done|finished|all set|great|perfect)[.!:,—–-]+ *)?(?:(?:i|we)(?:'ve| have)?(?: now| also| successfully)? )?"
    r"(?:added|fixed|implemented|updated|removed|moved|renamed|replaced|rewrote|rewritten|extracted|split|migrated|converted"
    r"|refactored|created|wrote|written|"
    r"deployed|released|merged|documented|bumped|pinned|enabled|disabled|wired|changed|switched|introduced|cleaned up|reduced|covered|upgraded)\b",
    _I,
)
_STUCK = re.compile(
    r"^(?:(?:but|so|unfortunately|sadly|sorry)[,:]? )*(?:i|we) (?:need to stop|have to stop|must stop|could(?:n't| not)|can(?:'t"
    r"|not)|was(?:n't| not) able|am (?:not able|blocked|stuck)|"
    r"were(?:n't| not) able|don't have access|did not (?:manage|find)|didn't (?:manage|find))\b",
    _I,
)
_CORRECTION = re.compile(
    r"^(?:no\b(?! (?:idea|problem|worries|need|rush|hurry|thanks))|nope\b|nah\b|wrong\b|not (?:that|like|what|quite|there)\b"
    r"|that(?:'s| is) (?:wrong|not)\b|that (?:doesn't|does not|didn't) (?:work|help|fix)|stop\b|undo\b|"
    r"revert\b|actually,? |wait\b|(?:don't|do not)\b(?! (?:worry|bother|forget|think|know|mind|see|care))|you (?:also )?(?:broke"
    r"|forgot|missed|deleted|changed|ignored|didn't|put|used"
    r"|edited|added|removed|wrote|moved|renamed|upgraded|should(?:n't| not| have))|why did you\b|"
    r"i (?:said|told|asked|meant|didn't ask)|still (?:fail|broken|not|wrong|the same|red|doesn't)|it(?:'s| is)? (?:still|doesn't|does not)\b)",
    _I,
)
# A goodbye, thanks, or what somebody does without.
_DECLINING = re.compile(
    r"^(?:(?:no+|nope|nah|wait|stop|actually)[\s,.!:;—–-]+)+(?:(?:that(?:'s| is| was| will be|'ll be)|it(?:'s| is)|this is) (?:it|all|everything"
    r"|enough|fine|ok(?:ay)?|good|"
    r"great|perfect|right|correct|alright|all right|not (?:needed|necessary|important|urgent))\b(?! but\b)|(?:that|this|it) (?:will|should) (?:do"
    r"|be (?:fine|"
    r"all|enough))\b|i(?:'m| am) (?:good|done|fine|happy|all set|ok)\b|we(?:'re| are) (?:good|done|fine|all set)\b|(?:all|looks|sounds|very|so"
    r" far so) good\b|"
    r"(?:thanks|thank you|thx|cheers)\b|nothing(?: else| more)?\b|(?:i|we) (?:don't|do not|won't|no longer) (?:need|have|care|mind|think so)\b"
    r"|(?:not )?(?:now|"
    r"today|yet|needed|necessary|really|at all|for me)\b|leave (?:it|that|them) (?:be|alone|for (?:now|later))|(?:just )?(?:go ahead|continue|proceed"
    r"|carry on|ship it|"
    r"merge it)\b|(?:bye|see you|good night)\b|more \w+\W*$|no (?:more|other) )",
    _I,
)
_NO = re.compile(r"(?:no+|nope|nah|not really|don't|do not|actually,? no)\b", _I)
_WRONG = re.compile(
    r"\b(?:wrong|incorrect|not (?:what|how|right|correct|true|like that)|you (?:should|broke|forgot|missed|deleted|changed|ignored|put|used"
    r"|edited|added|removed)|"
    r"i (?:said|told|asked|meant)|why did|still|revert|undo|again)\b",
    _I,
)
_CALMING = re.compile(
    r"^(?:please )?(?:don't|do not) (?:worry|bother|forget|think|know|mind|see|care)\b|\bnever ?mind\b|\bthinking aloud\b|"
    r"\b(?:don't|do not) (?:do|change|touch) (?:anything|a thing)\b|\b(?:don't|do not) have to\b",
    _I,
)
# What somebody else holds, and not the person who tells of it.
_HEARSAY = re.compile(
    r"\b(?:colleagues?|friends?|team ?mates?|co-?workers?|buddy|brother|sister|wife|husband|people|folks|guys?|someone|somebody|everybody|blogs?|"
    r"articles?|books?|posts?|tweets?|videos?|reddit|stack ?overflow|chatgpt|copilot)\b(?: [\w'-]+){0,3}? "
    r"(?:says?|said|thinks?|thought|claims?|claimed|insists?|insisted|tells?|told|believes?|argues?|argued|wrote|writes|recommends?|suggests?)\b"
    r"|\bi (?:once |have |just )?(?:read|heard|was told)\b|^(?:he|she|they|(?-i:[A-Z][a-z]+)(?: from \w+)?) (?:always |once )?"
    r"(?:says?|said|thinks?|thought|claims?|insists?|believes?|argues?) ",
    _I,
)
# What somebody tells of what is, not of what must be.
_REPORT = re.compile(
    r"^(?:(?:hm+|well|ok(?:ay)?|so|but)[,]? )*(?:i|you|it|that|this|they|he|she)\b"
    r"(?! (?:must|has to|have to|should|needs? to|want|need|may not|cannot)\b)",
    _I,
)
_THANKS = re.compile(
    r"👍|🎉|❤|\b(?:thanks|thank you|thx|danke|merci|gracias|great|perfect|awesome|nice|excellent|lovely|well done|good job|works(?: now)?"
    r"|lgtm|looks good|ship it|"
    r"that(?:'s| is) it)\b",
    _I,
)
_COMPLAINT = re.compile(
    r"\b(?:still (?:fail|broken|not|wrong|red|doesn't|the same)\w*|(?:doesn't|does not|didn't|isn't|not) work\w*|broken|wrong"
    r"|useless|give up|giving up|forget it|never mind|"
    r"revert (?:it|this|that|everything|all)|waste of|worse|abort|stop here|leave it)\b",
    _I,
)
_CONSTRAINT = re.compile(
    rf"\b(?:must(?: not|n't)? {OBLIGING}|don't|do not|never (?={PLAIN_VERB})|without|only (?:use|touch|change|edit|in|if|when)|no (?:new|more|"
    rf"changes|downtime"
    r"|breaking)|has to|have to|"
    r"needs to (?:stay|remain|keep)|keep (?:the|it|all)|at most|at least|no later than|should not|shouldn't)\b",
    _I,
)

# What follows an objection and says how things are, and what asks for something now or is about the two who speak.
_FACTS = 3
_POINTING = re.compile(r"(?:it|this|that|they|these|those)\b", _I)
_FACT = re.compile(
    r"\b(?:is|are|was|were|isn't|aren't|has|have|must|may|can(?:not|'t)?|should|does|doesn't|do not|don't|never|always|only)\b|"
    r"\b(?:live|belong|go|come|run|stay|depend)s? (?:in|on|at|to|from|by|with|through|next|under|into|via)\b|"
    r"^(?:[\w`'./-]+ ){1,5}?[\w-]{2,}s (?:in|on|at|to|from|by|with|through|for|the|a|an|all|only|no|every)\b",
    _I,
)
_NO_FACT = re.compile(
    r"(?:(?:and|so|but|then|now|ok(?:ay)?|just|also|hm+|well)[,:]? )*(?:i|i'm|i'll|i've|i'd|let|let's|please|can|could|would|will|thanks?|sorry|"
    r"try|look|check|see|open|read|run|go|do|don't|stop|wait|use|put|add|make|move|remove|delete|change|revert|undo|fix|rename|start|show|tell|write|"
    r"you(?:'re|'ve| are| have| did| should| can| could| just| also)?|that's all|(?:it|this|that) (?:still|doesn't|does not|fails?|broke|is "
    r"(?:still|wrong|"
    r"broken|not what)))\b",
    _I,
)

#: How somebody takes back what they decided.
RETRACTION = re.compile(
    r"\b(?:scrap|scratch|strike|disregard) (?:that|it|this)\b|\bon second thoughts?\b|\bthinking about (?:it|this|that) again\b|\b(?:i|we)(?:'ve| "
    r"have)? changed (?:my|"
    r"our) minds?\b"
    r"|\bforget what i (?:said|wrote)\b|\bi take that back\b|\b(?:let's|lets) not do (?:that|it) after all\b|\bafter all,? let's\b",
    _I,
)
# What stands over a list of things worth knowing.
_LISTED = re.compile(
    r"\b(?:to know|worth knowing|worth noting|notes?|lessons?|learnings?|learned|takeaways?|gotchas?|for next time|to remember"
    r"|keep in mind)\b.{0,30}:$",
    _I,
)


class Sayings(NamedTuple):
    """What a message holds that is worth keeping, each a sentence as it was said.

    `fact` is what a `correction` goes on to tell of how things are.
    """

    decisions: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    correction: str | None = None
    fact: str | None = None
    retraction: str | None = None
    stuck: tuple[str, ...] = ()


def read_agent(message: str) -> Sayings:
    """Return what an agent decided, found out and did; a choice counts with its reason.

    Example:
        >>> said = read_agent("I'll use a lock file because two workers start at once. The cause was a missing index on user_id. Let me look.")
        >>> said.decisions, said.causes
        (("I'll use a lock file because two workers start at once.",), ('The cause was a missing index on user_id.',))
    """
    said = dict(_sentences(message))
    sure = tuple(text for text in said if not _TENTATIVE.search(text))
    return Sayings(
        decisions=tuple(
            text for text in sure if _CHOICE.search(text) and _BECAUSE.search(text) and not _VAGUE.search(text)
        ),
        causes=tuple(
            text
            for text in sure
            if _CAUSE.search(text) and not _CHOICE.search(text) and len(text.split()) > _FEWEST + 1
        ),
        lessons=tuple(text for text in sure if said[text] or _LESSON.search(text)),
        done=tuple(
            text for text in sure if _DONE.search(text) and not _CAUSE.search(text) and len(text.split()) > _FEWEST
        ),
        stuck=tuple(text for text in said if _STUCK.search(text)),
    )


def read_person(message: str, *, is_answer: bool = False) -> Sayings:
    """Return what a person decided, taught and asked for.

    Args:
        message: what they wrote.
        is_answer: whether the agent had asked them something, so that a mere no answers that.

    Example:
        >>> read_person("No, use the existing client instead of a new one. In this repo we never mock the clock.")[:3]
        (('No, use the existing client instead of a new one.',), (), ('In this repo we never mock the clock.',))
    """
    said = tuple(dict(_sentences(message, fewest=1)))
    told = tuple(text for text in meant(said) if not text.endswith("?"))
    first = " ".join(said[: 1 if said and len(said[0].split()) > 2 else 2])
    long = tuple(text for text in told if len(text.split()) >= _FEWEST)
    correction = (
        first
        if len(first.split()) > 2 and not said[0].endswith("?") and _is_correction(first, is_answer=is_answer)
        else None
    )
    lessons = tuple(text for text in long if (_RULE.search(text) and not _is_not_asked(text)) or _LESSON.search(text))
    return Sayings(
        decisions=tuple(text for text in long if _WILL.search(text) and not _VAGUE.search(text)),
        lessons=lessons,
        constraints=tuple(
            text
            for text in long
            if _CONSTRAINT.search(text) and not (_REPORT.match(text) or _CALMING.search(text) or _is_not_asked(text))
        ),
        retraction=" ".join(said) if any(map(RETRACTION.search, said)) else None,
        correction=correction,
        fact=_fact(correction, [text for text in said if text not in lessons or _POINTING.match(text)])
        if correction
        else None,
    )


def _is_correction(said: str, *, is_answer: bool) -> bool:
    """Tell whether a message begins with an objection, and not with a goodbye, thanks, or the answer to a question.

    Example:
        >>> [_is_correction(one, is_answer=False) for one in ("No, use the other client.", "no that's it", "no I don't need the legend")]
        [True, False, False]
        >>> _is_correction("no, leave the tests out", is_answer=True), _is_correction("no, that's wrong", is_answer=True)
        (False, True)
    """
    if not _CORRECTION.search(said) or _DECLINING.match(said):
        return False
    return not (is_answer and _NO.match(said)) or _WRONG.search(said) is not None


def _fact(correction: str, said: Sequence[str]) -> str | None:
    """Return the sentences after a correction that tell how things are.

    Example:
        >>> _fact("Nope, wrong bucket.", ["Nope, wrong bucket.", "The CI bucket is `up-ci-eu`.", "Please try it again."])
        'The CI bucket is `up-ci-eu`.'
    """
    told: list[str] = []
    for text in [text for text in said if text not in correction][:_FACTS]:
        if (
            _NO_FACT.match(text)
            or not _FACT.search(text)
            or text.endswith("?")
            or len(" ".join((correction, *told, text))) > _LONGEST
        ):
            break
        told.append(text)
    return " ".join(told) or None


def is_from_elsewhere(text: str) -> bool:
    """Tell whether a sentence is about another place, or is somebody else's view."""
    return any(one.search(text) for one in (_ELSEWHERE, _HEARSAY))


def _is_not_asked(text: str) -> bool:
    return is_from_elsewhere(text) or NOT_MEANT.search(text) is not None


def mood(message: str) -> int:
    """Return 1 for thanks, -1 for a complaint, 0 for neither; only short messages are judged.

    Example:
        >>> mood("Perfect, thanks!"), mood("No, it is still broken."), mood("Now add a test."), mood("Not great, does not work.")
        (1, -1, 0, -1)
    """
    text = message.strip()
    if len(text) > 300:
        return 0
    if _COMPLAINT.search(text):
        return -1
    return int(_THANKS.search(text) is not None)


def _sentences(message: str, fewest: int = _FEWEST) -> Iterator[tuple[str, bool]]:
    """Yield the sentences that are long enough, and whether each stands in a list of things worth knowing."""
    text = message if len(message) <= _HEAD + _TAIL else f"{message[:_HEAD]}\n\n{message[-_TAIL:]}"
    own = read_own_text(clean(text))
    is_listed = False
    for start, end in sentences(own.masked):
        is_item = _ITEM.match(own.text, own.text.rfind("\n", 0, start) + 1) is not None
        is_listed = (is_listed and is_item) or (not is_item and _LISTED.search(own.text[start:end]) is not None)
        if GONE in own.masked[start:end] or "[redacted:" in own.text[start:end]:
            continue
        said = " ".join(own.text[start:end].replace("**", "").split()).strip("*_ ")
        if fewest <= len(said.split()) <= _MOST and len(said) <= _LONGEST:
            yield said, is_listed and is_item


def first_words(message: str, limit: int) -> str:
    """Return the beginning of a message on one line, without what was pasted or injected."""
    own = read_own_text(clean(message[:_HEAD]))
    kept = "".join(" " if mask == GONE else sign for sign, mask in zip(own.text, own.masked, strict=True))
    return shorten(kept if kept.strip() else own.text, limit)
