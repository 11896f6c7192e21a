"""Tell where a person takes back what they said before in the same session.

Some words take back whatever was said last; other statements are taken back only by what denies
them: the same words turned round, the choice that they had turned down, another choice in their
place. An exception for one occasion takes nothing back.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech import doubts, takebacks
from memory_kb.learning.speech.ownwords import GONE, QUOTE, read_own_text, sentences
from memory_kb.retrieval.similarity import stem, stemmed_set
from memory_kb.text import has_cjk

#: `withdrawn` where a statement holds no more, `doubtful` where that is not certain.
Doubt = Literal["withdrawn", "doubtful"]


def stemmed_words(words: str) -> frozenset[str]:
    """Return the stems of all words of a list.

    Example:
        >>> sorted(stemmed_words("using it"))
        ['it', 'us']
    """
    return frozenset(map(stem, words.split()))


_I = re.IGNORECASE
#: So many statements are kept in mind; a longer message takes nothing back.
_MOST, _LONGEST, _SENTENCES = 40, 600, 4
#: So much of what was done since is kept in mind.
_DONE = 4_000
#: An answer of more words that shares none with a statement is about something else.
_BRIEF = 12
_CHANGED = lazy_compile(r"\bon second thoughts?\b|\b(?:i|we)(?:'ve| have)? changed (?:my|our) minds?\b", _I)
_WRONG = lazy_compile(
    r"\b(?:i was|i am|i'm) (?:wrong|mistaken)\b(?! (?:about|on|with|to)\b)|\bmy (?:mistake|bad|fault|error)\b", _I
)
# How somebody begins who is about to think again.
_AGAIN = lazy_compile(
    r"^(?:(?:hm+|oh|ah|ok(?:ay)?|well|so|and|but|um|uh|yes|yeah)[\s,.!…]+)*(?:sorry|oops|oh (?:right|wait|sorry|no)|ah (?:right|ok|wait|sorry|no)|"
    r"no,? wait|wait,? no|(?:hold|hang) on|wait|actually|you(?:'re| are|r) (?:right|correct)|true|fair (?:point|enough)|good point|right|"
    r"my (?:mistake|bad|fault|error)|i was (?:wrong|mistaken)|i misspoke|correction|on second thoughts?|thinking about it again|"
    r"i(?:'ve| have)? changed my mind|(?:scratch|scrap|strike|disregard|forget|ignore|never ?mind) (?:that|it|this)|i take (?:that|it) back)\b",
    _I,
)
# How somebody begins who wants it otherwise than they said, in words that object to nothing else.
_THINKS_AGAIN = lazy_compile(
    rf"{_AGAIN.pattern}|(?:(?:hm+|uh|oh|ah|eh|mm+)[\s,.!…]+)*(?:(?:no|nah|nope),? )?(?:actually|on second thoughts?|hm+|mm+)\b"
    r"|(?:(?:ach|nein),? )?doch (?:nicht|lieber)\b|(?:finalement|en fait|mejor|al final|melhor|pensando bem|meglio|anzi|ripensandoci)\b"
    r"|toch (?:maar )?(?:niet|weer)\b|やっぱり?|やはり|还是|算了",
    _I,
)
_AFTER_ALL = lazy_compile(rf"\b(?:after all|no longer|any ?more)\b|{_CHANGED.pattern}", _I)
_AS_SAID = lazy_compile(
    r"\b(?:(?:as|like) (?:i|we) (?:said|told|agreed)|(?<!what )(?<!thing )(?<!everything )(?<!forget )(?<!forget that )i "
    r"(?:already )?(?:said|told you))\b(?! wrong)",
    _I,
)
# What is said of one occasion is an exception.
_EXCEPTION = lazy_compile(
    r"\b(?:here|there|now|though|this (?:one|time|pr|branch|file|case|once)|(?:just|only) (?:for|in|on)|too|as well|unless|except)\b",
    _I,
)
_NOT = lazy_compile(
    r"\b(?:don't|do not|dont|doesn't|does not|isn't|aren't|not|never|no longer|no need|needn't|unnecessary|optional|forget|drop|skip|stop|without|"
    r"avoid|won't|cannot|can't|mustn't|shouldn't)\b",
    _I,
)
_FORBIDS = lazy_compile(
    rf"{_NOT.pattern}|\b(?:no|nicht|kein\w*|nie|niemals|ne|pas|jamais|nunca|não|non|mai|niet|geen|nooit)\b|ない|禁止|不|别|勿",
    _I,
)
_MAY = lazy_compile(
    r"\b(?:is|are|was|were|'s) (?:all |totally |perfectly |quite |just )?(?:fine|ok(?:ay)?|allowed|good|alright|all right|possible|right|correct)\b|"
    r"\b(?:you|we) (?:can|may|should)\b|\bfeel free\b|\bgo ahead\b|^(?:then |please |and |so |just )*do (?!not\b)\w",
    _I,
)
_TURNED_DOWN = lazy_compile(
    r"(?:,\s*(?:and )?(?:not|never)|\s(?:instead of|rather than|over)|\w not(?= \S*\d)) "
    r"(?P<other>(?:(?:on|in|at|to|the|a|an) )*[\w./:#+-]+)",
    _I,
)
_IS_RIGHT = lazy_compile(
    r"(?:^|[\s,])(?P<it>[\w./:#+-]+) (?:is|was|were|are) (?:indeed |actually |the )?(?:right|correct)\b", _I
)
_IS_IT = lazy_compile(
    r"\b(?:it|that|this)(?:'s| is| was) (?:indeed |actually |really |still )?(?P<is>[\w./:#+-]+)|\b(?:use|keep|take|stay with) "
    r"(?P<use>[\w./:#+-]+)",
    _I,
)
_CHOOSING = lazy_compile(r"\b(?:always use|use|prefer|stick (?:to|with)|go with|write|format|log|answer)\b", _I)
_INSTEAD = lazy_compile(
    r"\b(?:use|prefer|take|go with|stick (?:to|with)|make it) (?!(?:the|this|that|a|an|it|your|my|another|one|both|them|these|those)\b)"
    r"(?P<new>[\w.+#@/-]+(?: [\w.+#@/-]+)?)(?P<tail>[^.!?;]*)",
    _I,
)
_TAIL = lazy_compile(r"(?:instead|please|then|rather|after all|(?:instead of|rather than) .*|,.*)?\s*", _I)
_CLAUSE = lazy_compile(r"[,;:.!…—–]+|\s-+\s|\b(?:and|but|so)\b")
#: Small words of other languages, which are about nothing.
_SMALL = frozenset(
    (
        *(
            "der",
            "die",
            "das",
            "den",
            "dem",
            "des",
            "zu",
            "zur",
            "zum",
            "mit",
            "ein",
            "eine",
            "einen",
            "le",
            "la",
            "les",
            "l'",
            "un",
            "une",
            "du",
            "de",
        ),
        *("el", "los", "las", "lo", "del", "al", "con", "de", "regarding"),
    )
)
_IDLE = stemmed_words(
    "use using please sorry right wrong correct fine ok okay allowed good need needed necessary optional do will any want then actually "
    "forget drop skip stop always never rule longer all after everywhere anymore instead can may should must own one just really wait oh say "
    "said way"
)


class Taken(NamedTuple):
    """A statement that was taken back, by its key, and how certain that is; `instead` is what it becomes, where that was said."""

    key: str
    doubt: Doubt
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class _Statement:
    key: str
    text: str
    is_alone: bool
    #: What agents answered since, up to the person's next message; how many messages of theirs came since.
    answered: str = ""
    #: What agents did since, likewise.
    done: str = ""
    age: int = 0

    @property
    def is_old(self) -> bool:
        return self.age > 0


@dataclass(slots=True)
class Retractions:
    """What a person stated in a session, and what of it they take back later.

    Example:
        >>> session = Retractions()
        >>> list(session.state("1", "Always squash before merging.", "Always squash before merging."))
        []
        >>> list(session.hear("Sorry, I forgot the file.")), list(session.hear("Sorry, I was wrong, don't squash."))
        ([], [Taken(key='1', doubt='withdrawn', instead=None)])
    """

    _stated: list[_Statement] = field(default_factory=list)

    def answer(self, said: str) -> None:
        """Take in what an agent says."""
        self._stated = [
            one if one.is_old else replace(one, answered=f"{one.answered} {said}"[:2_000]) for one in self._stated
        ]

    def do(self, done: str) -> None:
        """Take in what an agent does: the words of an edit or of a command."""
        self._stated = [one if one.is_old else replace(one, done=f"{one.done} {done}"[:_DONE]) for one in self._stated]

    def state(self, key: str, text: str, message: str) -> Iterator[Taken]:
        """Take in a statement of a message; yield it where the rest of the message takes it back."""
        said = _own_sentences(message)
        place = next((number for number, one in enumerate(said) if text in one or one in text), len(said))
        statement = _Statement(key, text, len(said) <= 1)
        taken = _judge(replace(statement, is_alone=True), said[place + 1 : place + 1 + _SENTENCES])
        if taken:
            yield taken
        else:
            self._stated = [*self._stated, statement][-_MOST:]

    def hear(self, message: str) -> Iterator[Taken]:
        """Take in what the person says; yield what of the statements before it takes back."""
        said = _own_sentences(message)[:_SENTENCES] if len(message) <= _LONGEST else ()
        found = [_judge(one, said, is_last=one is self._stated[-1]) for one in self._stated] if said else []
        taken = {one.key: one for one in found if one}
        self._stated = [replace(one, age=one.age + 1) for one in self._stated if one.key not in taken]
        yield from taken.values()


def _own_sentences(message: str) -> tuple[str, ...]:
    own = read_own_text(message[: 10 * _LONGEST])
    found = ((own.masked[start:end], own.text[start:end]) for start, end in sentences(own.masked))
    return tuple(" ".join(text.split()) for masked, text in found if GONE not in masked and QUOTE * 2 not in masked)


def _judge(one: _Statement, said: tuple[str, ...], *, is_last: bool = False) -> Taken | None:
    said = tuple(itertools.dropwhile(takebacks.INTERJECTION.fullmatch, said[:-1])) + said[-1:] if said else ()
    told = [text for text in said if not text.endswith("?") and not _AS_SAID.search(text)]
    words = _words(one.text)
    named = [about for text in told for about in takebacks.names(text)]
    if named:
        return Taken(one.key, "withdrawn") if any(_is_named(one.text, words, about) for about in named) else None
    is_first = bool(told) and told[0] == said[0]
    is_again = is_first and _AGAIN.match(told[0]) is not None
    if any((is_again or _AFTER_ALL.search(text)) and _denies(one.text, words, text) for text in told):
        return Taken(one.key, "withdrawn")
    if one.is_old:
        is_own = one.age == 1 and is_last and any(takebacks.points(text) == "own" for text in told)
        return Taken(one.key, "doubtful") if is_own else None
    instead = next(
        (new for text in told[:1] if is_first and (new := takebacks.replace_in(one.text, text)) is not None), None
    )
    if instead is not None:
        return Taken(one.key, _doubt_of(one), instead or None)
    if is_again and any(_replaces(one.text, words, text) for text in told):
        return Taken(one.key, _doubt_of(one))
    doubt = _of_undoing(one, words, told) or _of_pointing(one, words, told, is_first=is_first)
    return Taken(one.key, doubt) if doubt else None


def _of_undoing(one: _Statement, words: frozenset[str], told: list[str]) -> Doubt | None:
    """Judge a statement by what was done for it, where somebody has that put back; what somebody does not want is not done for them."""
    if (
        not any(map(takebacks.undoes, told[:2]))
        or _FORBIDS.search(one.text)
        or words.isdisjoint(stemmed_set(one.done) - _IDLE)
    ):
        return None
    return "withdrawn" if _THINKS_AGAIN.match(told[0]) else "doubtful"


def _of_pointing(one: _Statement, words: frozenset[str], told: list[str], *, is_first: bool) -> Doubt | None:
    """Judge a statement by words that only point back at it, or tell of a slip."""
    pointing = [takebacks.points(text) for text in told]
    if "own" in pointing:
        return _doubt_of(one)
    has_to_do = _is_of(one, words)
    if "mixup" in pointing[:2]:
        return _doubt_of(one) if has_to_do else "doubtful"
    if not is_first:
        return None
    if pointing[0] == "that" and "?" not in one.answered:
        return _doubt_of(one) if has_to_do else "doubtful"
    if _CHANGED.search(told[0]):
        return "doubtful"
    if _WRONG.search(told[0]):
        return _of_the_wrong(one, words, told, has_to_do=has_to_do)
    return None


@functools.lru_cache(maxsize=4 * _MOST)
def _words(text: str) -> frozenset[str]:
    return stemmed_set(text)


def _is_named(text: str, words: frozenset[str], about: str) -> bool:
    """Tell whether what somebody names is what a statement is about."""
    if has_cjk(about):
        return about.rpartition("、")[2].strip() in text
    return _covers(words, " ".join(word for word in about.split() if word.lower() not in _SMALL))


def _of_the_wrong(one: _Statement, words: frozenset[str], told: list[str], *, has_to_do: bool) -> Doubt | None:
    """Judge a statement by what somebody says who was wrong: nothing more, or what is right."""
    right = [found["it"] for text in told for found in _IS_RIGHT.finditer(text)]
    if right:
        is_other = any(not _stands_in(value, one.text) and stemmed_set(value) & words for value in right)
        return "withdrawn" if is_other else None
    has_more = any(not stemmed_set(_WRONG.sub(" ", text)) <= _IDLE for text in told)
    return None if has_more or not (one.answered.strip() and has_to_do) else _doubt_of(one)


def _doubt_of(one: _Statement) -> Doubt:
    """Return how certain it is that words which only point back mean a statement."""
    return "withdrawn" if one.is_alone and "?" not in one.answered else "doubtful"


def _is_of(one: _Statement, words: frozenset[str]) -> bool:
    """Tell whether what agents answered to a statement is about nothing else."""
    return len(one.answered.split()) <= _BRIEF or not words.isdisjoint(stemmed_set(one.answered) - _IDLE)


def _denies(kept: str, words: frozenset[str], said: str) -> bool:
    """Tell whether a sentence says the opposite of a statement, in its words and no others."""
    if doubts.ONE_OFF.search(said) or _EXCEPTION.search(said):
        return False
    other = [found["other"] for found in _TURNED_DOWN.finditer(kept)]
    if any(_affirms(value, said) for value in other):
        return True
    is_negative = _NOT.search(_TURNED_DOWN.sub(" ", kept)) is not None if other else _NOT.search(kept) is not None
    clauses = [clause.strip() for clause in _CLAUSE.split(said)]
    return any(
        (_MAY if is_negative else _NOT).search(one) and _covers(words, one) and not (is_negative and _NOT.search(one))
        for one in clauses
    )


def _affirms(value: str, said: str) -> bool:
    found = [
        one[name]
        for pattern, names in ((_IS_RIGHT, ("it",)), (_IS_IT, ("is", "use")))
        for one in pattern.finditer(said)
        for name in names
    ]
    bare = value.rsplit(maxsplit=1)[-1].strip(".,").lower()
    return any(one and one.strip(".,").lower() == bare for one in found)


def _replaces(kept: str, words: frozenset[str], said: str) -> bool:
    """Tell whether a sentence names another choice in the place of the one that was stated."""
    found = _INSTEAD.search(said)
    is_ban = _NOT.search(_TURNED_DOWN.sub(" ", kept)) is not None
    if found is None or is_ban or doubts.ONE_OFF.search(said) or _EXCEPTION.search(said) or not _CHOOSING.search(kept):
        return False
    tail = found["tail"].strip()
    new = stemmed_set(found["new"]) - _IDLE
    is_all = _TAIL.fullmatch(tail) is not None or stemmed_set(tail) <= words
    return is_all and bool(new) and not new <= words


def _covers(words: frozenset[str], said: str) -> bool:
    """Tell whether all that a clause is about was spoken of."""
    about = stemmed_set(said) - _IDLE
    return bool(about) and about <= words


def _stands_in(value: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(value)}(?![\w-])", text, _I) is not None


def settle(taken: Iterable[Taken]) -> dict[str, Doubt]:
    """Return what was taken back by its key; the last word counts."""
    return {one.key: one.doubt for one in taken}
