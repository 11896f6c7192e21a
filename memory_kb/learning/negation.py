"""Find texts that contradict each other: a denial, an opposite word, an opposite order or another value."""

from __future__ import annotations

import functools
import itertools
import re
from typing import NamedTuple

from memory_kb.regex import regex
from memory_kb.similarity import CLASH_ABOVE, stem, word_set
from memory_kb.text import jaccard

#: How much of a text is read, and the longest sentence that is; characters.
_READ_CHARS, _MOST_SENTENCES, _LONGEST = 20_000, 200, 400
_FEW_SENTENCES = 3
_FENCE = regex(r"^ {0,3}(```|~~~).*?^ {0,3}\1[^\n]*$", re.MULTILINE | re.DOTALL)
_BLANKS = regex(r"[^\S\n]+")
_SENTENCE = regex(r"(?<=[.!?;])\s+|\n+| (?=(?:but|whereas) )")
_REASON = regex(r"\s*[,(:;—-]*\s*\b(?:because|since|so that|in order to)\b.*|\([^)]*\)", re.IGNORECASE)
_TOKEN = regex(r"\w+(?:[-.'/:_]\w+)*%?")
_SHORT_NOT = regex(r"n't\b")
_NUMBER = regex(r"v?\d[\d.,:_/-]*(?P<unit>[a-z%]*)")
_SIGN = regex(r"[<>=+%&|^~$@]+|!=|(?<!\w)-{1,2}(?=\w)|(?<=[A-Za-z])#")
_SECTION = regex(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$|^\*\*(.+?):?\*\*:?", re.MULTILINE)
_NAME = regex(r"(?<![.!?:;\w])(?<![.!?:;*#>-][ \t])(?<=[^\n]) ?\b[\w./:-]*[A-Z]\w*|\b\w+(?:[-_./]\w+)+")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _set("not no never cannot neither nor none nobody nothing nowhere without unless hardly")
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
_FILLERS = _set(
    """a an the is are was were be been being am do does did done to of and or we you i it its this that these those our your there here
    please also just will would shall should must have has had always ever any anyone anybody all every each everybody everyone so then
    really strictly longer anymore currently now again turn switch"""
)
#: Words that make a claim about a part: its negation may hold for another part.
_PARTIAL = _set("some many few several most mostly sometimes often occasionally usually partly partially might only")
_BEFORE, _AFTER, _OVER = _set("before until"), _set("after once"), _set("over than instead")
#: A number after fewer words is one of many, as in "step 1", rather than the value of something.
_SUBJECT_WORDS = 3
_TURNED = {stem(opposite): word for opposite, word in _OPPOSITES.items()}
_MARKED = {
    stem(word): word
    for word in (*_OPPOSITES, *_BEFORE, *_AFTER, *_OVER, "unless", "without", "never", "nobody", "nothing", "neither")
}


class _Claim(NamedTuple):
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
    same = set(map(_read_claim, mine)) & set(map(_read_claim, yours))
    mine, yours = (tuple(one for one in each if _read_claim(one) not in same) for each in (mine, yours))
    for sentence, contrary in itertools.product(mine, yours):
        signal = _compare(_read_claim(sentence), _read_claim(contrary), least) or _compare_values(
            sentence, contrary, least
        )
        if signal:
            return signal
    return None


@functools.lru_cache(maxsize=4_096)
def marked_words(text: str) -> frozenset[str]:
    """Return the words of a text that turn a sentence round or put things in order.

    Texts that differ in one of them do not say the same, whatever else they share.
    """
    return frozenset(_MARKED[root] for root in set(map(stem, set(_tokens(text)))) if root in _MARKED)


def names(text: str) -> frozenset[str]:
    """Return the names in a text, in which texts about different things differ: code, paths, words in capitals in a sentence."""
    found = (*re.findall(r"`([^`\n]+)`", text), *_NAME.findall(text))
    return frozenset[str]().union(*map(word_set, found))


def signs(text: str) -> frozenset[str]:
    """Return what a text says without words: operators, signs of options, and its blocks of code.

    Example:
        >>> sorted(signs("Call it with --force if a != b.")), signs("Well - fine!")
        (['!=', '--'], frozenset())
    """
    blocks = ("".join(block.group().split()) for block in _FENCE.finditer(text))
    return frozenset(_SIGN.findall(_FENCE.sub("", text))) | frozenset(blocks)


# An entry is held against many: what it claims is read once.
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
def _read_claim(sentence: str) -> _Claim:
    found = _tokens(_REASON.sub("", sentence))
    is_negated = sum(word in _NEGATIONS or stem(word) in _TURNED for word in found) % 2 == 1
    return _Claim(_content(found), is_negated, _read_order(found))


def _content(words: list[str]) -> frozenset[str]:
    """Return the stems of what words are about, each opposite as the word that it turns round."""
    plain = (_TURNED.get(stem(word), "" if word in _NEGATIONS else word) for word in words)
    same = (_SAME.get(word, _SAME.get(stem(word), word)) for word in plain)
    return frozenset(stem(word) for word in same if word and word not in _FILLERS)


def _read_order(words: list[str]) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return what a sentence puts first and second: before and after, over and instead of."""
    place = next((place for place, word in enumerate(words) if word in _BEFORE | _AFTER | _OVER), 0)
    if not place:
        return None
    first, second = _content(words[:place]), _content(words[place + 1 :])
    return (second, first) if words[place] in _AFTER else (first, second)


def _compare(one: _Claim, other: _Claim, least: int) -> str | None:
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
    """Return the words of the correct and of the incorrect approach of a rule."""
    found = {"correct approach": "", "incorrect approach": ""}
    heads = list(_SECTION.finditer(text))
    for number, head in enumerate(heads):
        name = (head[1] or head[2]).strip().casefold()
        if name in found:
            found[name] = text[head.end() : heads[number + 1].start() if number + 1 < len(heads) else len(text)]
    return word_set(found["correct approach"]), word_set(found["incorrect approach"])
