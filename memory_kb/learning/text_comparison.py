"""Compare two texts: do they say the same, the contrary, or another value of the same."""

from __future__ import annotations

import functools
import itertools
import re
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.similarity import CLASH_ABOVE, stem, word_set
from memory_kb.terms import MARKED_WORD, jaccard, to_nfc, word_tokens
from memory_kb.text import encode, hash_of

#: More alike than this, two texts of one kind are one learning.
TWIN_SIMILARITY = 0.95


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that deny the whole of a sentence, and those that deny something in it.
_DENIALS = _words(
    """not no never cannot none nor without nicht kein keine nie ohne ne pas jamais sans non sin nunca sem não
    не нет без ни"""
)
_NEGATIONS = _DENIALS | _words("neither nobody nothing nowhere unless hardly")
#: A word and its opposite; the second represents the first, turned round.
_OPPOSITES = {
    opposite: word
    for word, opposites in {
        "use": "avoid",
        "enable": "disable",
        "allow": "forbid forbidden disallow prohibit ban deny block",
        "require": "optional",
        "include": "exclude omit",
        "accept": "reject refuse",
        "on": "off",
        "add": "remove drop",
        "start": "stop",
        "increase": "decrease reduce",
        "true": "false",
        "sync": "async",
        "synchronous": "asynchronous",
        "keep": "delete discard",
        "safe": "unsafe",
        "support": "unsupported",
        "stable": "unstable",
        "mutable": "immutable",
        "with": "without",
        "if": "unless",
        "more": "less",
        "public": "private",
        "encrypted": "unencrypted plaintext",
    }.items()
    for opposite in opposites.split()
}
_SAME = {"prefer": "use", "permit": "allow", "mandatory": "require", "kept": "keep"}
#: Words that neither make a sentence another one nor its opposite.
_FILLERS = _words(
    """a an the is are was were be been being am do does did done to of and or we you i it its this that these those our your there here
    please also just will would shall should must have has had always ever any anyone anybody all every each everybody everyone so then
    really strictly longer anymore currently now again turn switch"""
)
#: Words that make a claim about a part: its negation may hold for another part.
_PARTIAL = _words("some many few several most mostly sometimes often occasionally usually partly partially might only")
_BEFORE, _AFTER, _OVER = _words("before until"), _words("after once"), _words("over than instead")
#: What each opposite turns round, by its stem.
_BASES = {stem(opposite): word for opposite, word in _OPPOSITES.items()}
#: The words, by their stems, in which texts that say the same do not differ.
_TURNING = {
    stem(word): word
    for word in (*_OPPOSITES, *_BEFORE, *_AFTER, *_OVER, "unless", "without", "never", "nobody", "nothing", "neither")
}
_SIGN = lazy_regex(r"[<>=+%&|^~$@]+|!=|(?<!\w)-{1,2}(?=\w)|(?<=[A-Za-z])#")
_NAME = lazy_regex(r"(?<![.!?:;\w])(?<![.!?:;*#>-][ \t])(?<=[^\n]) ?\b[\w./:-]*[A-Z]\w*|\b\w+(?:[-_./]\w+)+")
_FENCE = lazy_regex(r"^ {0,3}(```|~~~).*?^ {0,3}\1[^\n]*$", re.MULTILINE | re.DOTALL)
_DATED_HEADING = lazy_regex(r"\A(\s*#{1,6} )\[\d{4}-\d{2}-\d{2}\] ?")
_DIGIT = lazy_regex(r"\d")
_SHORT_NOT = lazy_regex(r"n['\u2019]t\b")


# -- the same ------------------------------------------------------------------------------------------


def likeness(one: str, other: str) -> float:
    """Return how much two texts say the same.

    That is the Jaccard of their words, or 0 where a difference matters. Words in another order,
    another number or a negation turn a sentence round, however many other words it shares.

    Example:
        >>> likeness("Migrate, then deploy.", "migrate then deploy"), likeness("Migrate, then deploy.", "Deploy, then migrate.")
        (1.0, 0.0)
    """
    one, other = undated(one), undated(other)
    if turning_words(one) != turning_words(other):
        return 0.0
    words, others = (list(dict.fromkeys(words_of(text))) for text in (one, other))
    shared = set(words) & set(others)
    if [word for word in words if word in shared] != [word for word in others if word in shared]:
        return 0.0
    return jaccard(word_tokens(one), word_tokens(other))


# Several steps in a row ask it of the same few thousand texts.
@functools.lru_cache(maxsize=4_096)
def turning_words(text: str) -> frozenset[str]:
    """Return the words that decide what a text claims: numbers, negations, opposites, and words of order.

    Texts in which these differ do not say the same, whatever else they share.
    """
    words = set(words_of(text))
    turning = {word for word in words if word in _NEGATIONS or _DIGIT.search(word)}
    return frozenset(turning | {_TURNING[root] for root in map(stem, words) if root in _TURNING})


def words_of(text: str) -> list[str]:
    """Return the words of a text in order; "n't" is "not"."""
    return MARKED_WORD.findall(_SHORT_NOT.sub(" not", to_nfc(text).casefold()))


def fingerprint(text: str) -> str:
    """Return what a tombstone remembers of a text: the same for any spacing or case."""
    return hash_of(encode(" ".join(undated(text).casefold().split())))


def undated(text: str) -> str:
    """Return a text without the day in its heading, which does not make it another learning."""
    return _DATED_HEADING.sub(r"\1", text, count=1)


def names_in(text: str) -> frozenset[str]:
    """Return the names in a text, by which texts on different things differ: code, paths, capitalised words."""
    found = (*re.findall(r"`([^`\n]+)`", text), *_NAME.findall(text))
    return frozenset[str]().union(*map(word_set, found))


def signs_in(text: str) -> frozenset[str]:
    """Return what a text says without words: operators, signs of options, and its blocks of code.

    Example:
        >>> sorted(signs_in("Call it with --force if a != b.")), signs_in("Well - fine!")
        (['!=', '--'], frozenset())
    """
    blocks = ("".join(block.group().split()) for block in _FENCE.finditer(text))
    return frozenset(_SIGN.findall(_FENCE.sub("", text))) | frozenset(blocks)


# -- the contrary --------------------------------------------------------------------------------------

#: How much of a text is read, and the longest sentence that is; characters.
_READ_CHARS, _MOST_SENTENCES, _LONGEST = 20_000, 200, 400
_FEW_SENTENCES = 3
_BLANKS = lazy_regex(r"[^\S\n]+")
_SENTENCE = lazy_regex(r"(?<=[.!?;])\s+|\n+| (?=(?:but|whereas) )")
_REASON = lazy_regex(r"\s*[,(:;—-]*\s*\b(?:because|since|so that|in order to)\b.*|\([^)]*\)", re.IGNORECASE)
_TOKEN = lazy_regex(r"\w+(?:[-.'/:_]\w+)*%?")
_NUMBER = lazy_regex(r"v?\d[\d.,:_/-]*(?P<unit>[a-z%]*)")
#: A number after fewer words is one of many, as in "step 1", rather than the value of something.
_SUBJECT_WORDS = 3
_SECTION = lazy_regex(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$|^\*\*(.+?):?\*\*:?", re.MULTILINE)


class _Assertion(NamedTuple):
    """What one sentence says: its words, whether they are negated, and what it puts first and second."""

    words: frozenset[str]
    is_negated: bool
    order: tuple[frozenset[str], frozenset[str]] | None


def find_opposition(one: str, other: str) -> str | None:
    """Return how two texts contradict each other, in a few words, or None.

    Example:
        >>> find_opposition("Use tabs.", "Never use tabs!"), find_opposition("Use tabs in Go.", "Use tabs in Makefiles.")
        ('one says what the other denies', None)
        >>> find_opposition("The port of the API is 5432.", "The port of the API is 5433.")
        'the port of the api is 5432 or 5433'
    """
    if _approaches_clash(one, other):
        return "what is correct in one is incorrect in the other"
    mine, yours = _sentences(one), _sentences(other)
    # In long texts a few words such as "it is off" may be about anything.
    least = 1 if min(len(mine), len(yours)) <= _FEW_SENTENCES else 3
    # What both say is no difference between them, whatever else they say.
    same = set(map(_read_assertion, mine)) & set(map(_read_assertion, yours))
    mine, yours = (tuple(one for one in each if _read_assertion(one) not in same) for each in (mine, yours))
    for sentence, contrary in itertools.product(mine, yours):
        signal = _compare(_read_assertion(sentence), _read_assertion(contrary), least) or _compare_values(
            sentence, contrary, least
        )
        if signal:
            return signal
    return None


# An entry is compared with many: what it claims is read once.
@functools.lru_cache(maxsize=8_192)
def _sentences(text: str) -> tuple[str, ...]:
    """Return the sentences that claim something of all of their subject: no question, no heading."""
    found = _SENTENCE.split(_BLANKS.sub(" ", _FENCE.sub("\n", text[:_READ_CHARS].replace("\u2019", "'"))))
    lines = (" ".join(line.split()).lstrip("#>*-+ ") for line in found[:_MOST_SENTENCES])
    return tuple(
        line
        for line in lines
        if line and len(line) <= _LONGEST and not line.endswith(("?", ":")) and _PARTIAL.isdisjoint(_tokens(line))
    )


def _tokens(sentence: str) -> list[str]:
    return _TOKEN.findall(_SHORT_NOT.sub(" not", sentence.replace("\u2019", "'").casefold()))


@functools.lru_cache(maxsize=8_192)
def _read_assertion(sentence: str) -> _Assertion:
    found = _tokens(_REASON.sub("", sentence))
    is_negated = sum(word in _NEGATIONS or stem(word) in _BASES for word in found) % 2 == 1
    return _Assertion(_content(found), is_negated, _read_order(found))


def _content(words: list[str]) -> frozenset[str]:
    """Return the stems of what words are about, each opposite as the word that it turns round."""
    plain = (_BASES.get(stem(word), "" if word in _NEGATIONS else word) for word in words)
    same = (_SAME.get(word, _SAME.get(stem(word), word)) for word in plain)
    return frozenset(stem(word) for word in same if word and word not in _FILLERS)


def _read_order(words: list[str]) -> tuple[frozenset[str], frozenset[str]] | None:
    place = next((place for place, word in enumerate(words) if word in _BEFORE | _AFTER | _OVER), 0)
    if not place:
        return None
    first, second = _content(words[:place]), _content(words[place + 1 :])
    return (second, first) if words[place] in _AFTER else (first, second)


def _compare(one: _Assertion, other: _Assertion, least: int) -> str | None:
    if one.order and other.order:
        (first, second), (others_first, others_second) = one.order, other.order
        is_swapped = bool(first - others_first) and bool(second - others_second)
        is_swapped &= first - others_first == others_second - second and second - others_second == others_first - first
        if is_swapped and one.is_negated == other.is_negated:
            return "they name opposite orders"
    is_denied = one.words == other.words and one.is_negated != other.is_negated
    return "one says what the other denies" if is_denied and len(one.words) >= least else None


def _compare_values(one: str, other: str, least: int) -> str | None:
    """Return the two numbers, of the same unit, that two sentences give the same subject: their only difference."""
    words, others = _tokens(one), _tokens(other)
    different = [place for place, (a, b) in enumerate(zip(words, others, strict=False)) if a != b]
    if len(words) != len(others) or len(different) != 1 or different[0] < _SUBJECT_WORDS:
        return None
    before, value, contrary = words[: different[0]], words[different[0]], others[different[0]]
    numbers = _NUMBER.fullmatch(value), _NUMBER.fullmatch(contrary)
    is_same_unit = numbers[0] and numbers[1] and numbers[0]["unit"] == numbers[1]["unit"]
    return f"{' '.join(before)} {value} or {contrary}" if is_same_unit and len(_content(before)) >= least else None


def _approaches_clash(one: str, other: str) -> bool:
    """Return whether what one text calls correct is what the other calls incorrect."""
    mine, yours = _approaches(one), _approaches(other)
    if not any(mine) or not any(yours):
        return False
    for (right, wrong), (other_right, other_wrong) in ((mine, yours), (yours, mine)):
        clash = jaccard(right, other_wrong)
        agreed = max(jaccard(right, other_right), jaccard(wrong, other_wrong), jaccard(right, wrong))
        if clash > CLASH_ABOVE and clash > agreed:
            return True
    return False


@functools.lru_cache(maxsize=8_192)
def _approaches(text: str) -> tuple[frozenset[str], frozenset[str]]:
    found = {"correct approach": "", "incorrect approach": ""}
    heads = list(_SECTION.finditer(text))
    for number, head in enumerate(heads):
        name = (head[1] or head[2]).strip().casefold()
        if name in found:
            found[name] = text[head.end() : heads[number + 1].start() if number + 1 < len(heads) else len(text)]
    return word_set(found["correct approach"]), word_set(found["incorrect approach"])


# -- another value of the same -------------------------------------------------------------------------

#: Two statements have one subject where they share so much of the shorter one's words, and of all their words.
_OF_SHORTER, _OF_ALL = 0.8, 0.4
_VALUE = re.compile(r"`[^`\n]+`|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)|“[^”\n]+”|\b\d+(?:\.\d+)*\b")
#: What a statement says no longer holds: the word after "instead of" and its like.
_LEFT = re.compile(
    r"\b(?:not|no longer|instead of|rather than|over|(?:switched|moved|migrated) from)\s+(?:(?:use|using|the|an?)\s+)*['\"`]?([\w@./+-]*\w)",
    re.IGNORECASE,
)
_USES = re.compile(r"\b(?:use|uses|using)\b", re.IGNORECASE)
#: Words that do not belong to the subject of a statement.
_BESIDE_SUBJECT = _DENIALS | _words(
    """always never all any every each the a an we you your our from now on not do don't please should must to of
    for in it it's i i'd and when whenever make sure ensure want like need them that with as also new going forward
    remember prefer anymore longer"""
)


def is_replaced(older: str, newer: str) -> bool:
    """Return whether a newer statement says otherwise of the same subject.

    Example:
        >>> is_replaced("Always start function names with 'f_'.", "For function names, start them with 'fn_'.")
        True
    """
    if _is_left(older, newer):
        return True
    old, new = (frozenset(found.casefold() for found in _VALUE.findall(text)) for text in (older, newer))
    older, newer = _VALUE.sub(" ", older), _VALUE.sub(" ", newer)
    said, says = _informative(older), _informative(newer)
    if bool(old) != bool(new) or not _is_same(said, says):
        return False
    if old:
        return old.isdisjoint(new) and len(old) <= len(new)
    # What is denied of a part, "never force push to main", leaves the rule for all the rest.
    return _denials(older) != _denials(newer) and set(says) <= set(said)


def _is_left(older: str, newer: str) -> bool:
    """Return whether a newer statement names what an older one says as what no longer holds.

    What else the older one says is in the newer one, too. Of three words and more the first, which is its verb, may be
    missing; any other may be what the older one holds for.
    """
    kept = _LEFT.sub(" ", older)
    if not _DENIALS.isdisjoint(words_of(kept)):
        return False
    said, left = _informative(_USES.sub(" ", kept)), frozenset(_informative(" ".join(_LEFT.findall(newer))))
    others, new = [word for word in said if word not in left], frozenset(_informative(_LEFT.sub(" ", newer)))
    missing = [word for word in others if word not in new]
    return not left.isdisjoint(said) and (not missing or (len(others) > 2 and missing == others[:1]))


def _denials(text: str) -> frozenset[str]:
    return frozenset(word for word in words_of(text) if word in _DENIALS or _DIGIT.search(word))


def _informative(text: str) -> list[str]:
    return [stem(word) for word in words_of(text) if word not in _BESIDE_SUBJECT]


def _is_same(older: list[str], newer: list[str]) -> bool:
    """Return whether the words that two subjects share are adjacent in both, and are nearly all of the shorter one."""
    shared = set(older) & set(newer)
    fewest = min(len(set(words)) for words in (older, newer))
    if len(shared) < max(2, _OF_SHORTER * fewest) or len(shared) < _OF_ALL * len({*older, *newer}):
        return False
    return all(
        any(is_in and shared <= set(run) for is_in, run in itertools.groupby(words, shared.__contains__))
        for words in (older, newer)
    )
