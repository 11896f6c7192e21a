"""Opposite words, other values."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.similarity import CLASH_ABOVE, stem, word_set
from memory_kb.text import jaccard

_SENTENCE = re.compile(
    r"""(?P<subject>.+?)\s*
    (?:\b(?P<verb>is\s+set\s+to|are\s+set\s+to|is\s+limited\s+to|is\s+called|is\s+named|defaults\s+to|set\s+to|equals|expires?\s+(?:after|in)
        |listens\s+(?:on|at)|runs\s+(?:on|at)|lives\s+(?:in|at)|is\s+stored\s+in|is\s+at|is\s+on|times\s+out\s+after|takes|uses|requires
        |needs|keeps?|allows?|is|are|was|must\s+be|should\s+be)\b|(?P<sign>[=:])(?=\s))\s*
    (?P<value>.+)""",
    re.VERBOSE | re.IGNORECASE,
)


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"`[^`]+`|\"[^\"]+\"|[\w$€£%][\w./:@%+-]*")
_NUMBER = re.compile(r"[$€£v]?\d[\d.,:_/-]*(?P<unit>[a-z%]*)", re.IGNORECASE)
_FILLERS = _set(
    "a an the our your its this that it they he she now currently always by at on in to about exactly only still"
)
#: Verbs after which a thing can have only one value that is a name; it may well use two databases.
_SINGLE = re.compile(
    r"(?:is|are|was|=|:|equals|must be|should be|(?:is|are)? ?set to|defaults to|is (?:called|named|stored in|at|on)|lives (?:in|at))\Z"
)
#: What has one value at a time, whatever the value looks like.
_UNIQUE = _set(
    """default primary main master current official name branch port url host hostname owner version format language timezone
    encoding region database endpoint address maintainer license limit timeout interval"""
)
#: What a line with a colon records of one occasion.
_RECORDED = _set(
    "date time day duration author result status step created updated started ended cost score count total"
)
_DENIAL = re.compile(r"\b(?:not|no|never|without|unless|cannot|if|when|except|between|and|or)\b|n't\b|,", re.IGNORECASE)


class Values(NamedTuple):
    """Two values of one subject."""

    subject: str
    one: str
    other: str


def values_differ(one: str, other: str, least: int = 1) -> Values | None:
    """Return the two values that two sentences give the same subject, or None.

    A number differs from a number in one place; a name from a name where the subject can have
    only one. All else that they say is the same. The subject has at least so many words.

    Example:
        >>> values_differ("The port of the API is 5432.", "The port of the API is 5433.")
        Values(subject='port of the API', one='5432', other='5433')
        >>> values_differ("The API uses Redis.", "The API uses Postgres.") is None
        True
    """
    mine, yours = _match(one), _match(other)
    if not mine or not yours:
        return None
    subject = _words(mine["subject"])
    if len(subject) < least or set(subject) != set(_words(yours["subject"])):
        return None
    values, others = (
        [word for word in _WORD.findall(found["value"]) if word.casefold() not in _FILLERS] for found in (mine, yours)
    )
    if not values or len(values) != len(others):
        return None
    different = [(a, b) for a, b in zip(values, others, strict=True) if _plain(a) != _plain(b)]
    if len(different) != 1:
        return None
    value, contrary = different[0]
    if (mine["sign"] or yours["sign"]) and (len(subject) < 2 or not _RECORDED.isdisjoint(subject)):
        return None
    verbs = [" ".join((found["verb"] or found["sign"]).casefold().split()) for found in (mine, yours)]
    if _are_numbers(value, contrary):
        is_conflict = verbs[0] == verbs[1] or all(map(_SINGLE.match, verbs))
    else:
        is_single = all(map(_SINGLE.match, verbs)) and len(values) == 1
        is_conflict = is_single and ((_is_name(value) and _is_name(contrary)) or not _UNIQUE.isdisjoint(subject))
    shown = re.sub(r"^(?:the|our|your|its|this)\s+", "", mine["subject"].strip(), flags=re.IGNORECASE)
    return Values(shown, value, contrary) if is_conflict else None


@functools.lru_cache(maxsize=8_192)
def _match(sentence: str) -> re.Match[str] | None:
    """Return the parts of a sentence that gives a subject a value."""
    found = _SENTENCE.match(sentence.strip().rstrip(".!"))
    return None if found is None or _DENIAL.search(found["value"]) else found


@functools.lru_cache(maxsize=8_192)
def _words(text: str) -> list[str]:
    return [_plain(word) for word in _WORD.findall(text) if word.casefold() not in _FILLERS]


def _plain(word: str) -> str:
    return word.strip("`\"'.:,").casefold()


def _are_numbers(one: str, other: str) -> bool:
    """Return whether both are numbers of the same unit; 60 s and 1 min may be the same."""
    mine, yours = _NUMBER.fullmatch(_plain(one)), _NUMBER.fullmatch(_plain(other))
    return bool(mine and yours and mine["unit"].casefold() == yours["unit"].casefold())


def _is_name(word: str) -> bool:
    return (
        word[0] in '`"'
        or word[0].isupper()
        or any(sign in word[:-1] for sign in "./_@:")
        or any(sign.isdigit() for sign in word)
    )


_FENCE = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1[^\n]*$", re.MULTILINE | re.DOTALL)
_BLANKS = re.compile(r"[^\S\n]+")
_OPPOSITES_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+| (?=(?:but|whereas) )")
_REASON = re.compile(
    r"\s*[,(:;—-]*\s*\b(?:because|since|so that|in order to|as it|as they)\b.*|\([^)]*\)", re.DOTALL | re.IGNORECASE
)
_TOKEN = re.compile(r"\w+(?:[-.'/:_]\w+)*|,")
_SHORT_NOT = re.compile(r"n't\b")
#: A step of instructions, which has its opposite in the instructions for the opposite.
_STEP = re.compile(r"\d+[.)] |.*\b(?:select|click|press|tap|choose)\b|to turn ", re.IGNORECASE)
_SIGN = re.compile(r"[<>=+%&|^~$@]+|!=|(?<!\w)-{1,2}(?=\w)|(?<=[A-Za-z])#")
_SECTION = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$|^\*\*(.+?):?\*\*:?", re.MULTILINE)


def _opposite_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _opposite_words("not no never cannot neither nor none nobody nothing nowhere without unless hardly")
#: How much of a text is read, and the longest sentence that is; characters.
_READ_CHARS, _MOST_SENTENCES, _LONGEST = 20_000, 200, 400
_FEW_SENTENCES = 3
#: A word and its opposite; the second stands for the first, turned round.
_OPPOSITES = {
    opposite: word
    for word, opposites in {
        "use": "avoid",
        "enable": "disable",
        "allow": "forbid disallow prohibit ban deny block",
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
_SAME = {
    "prefer": "use",
    "must": "",
    "permit": "allow",
    "mandatory": "require",
    "kept": "keep",
    "turn": "",
    "switch": "",
    "everybody": "",
    "everyone": "",
}
#: Words that neither make a sentence another one nor its opposite.
_OPPOSITES_FILLERS = _opposite_words(
    """a an the is are was were be been being am do does did done to of and or we you i it its this that these those our your there here
    please also just will would shall should must have has had always ever any anyone anybody all every each everybody everyone so then ,
    really strictly under circumstances instead longer anymore currently now again"""
)
#: Words that make a claim about a part; its negation may hold for another part.
_PARTIAL = _opposite_words(
    "some many few several most mostly sometimes often occasionally usually partly partially might only"
)
_EVERYBODY = frozenset(("nobody", "everybody", "everyone"))
_BEFORE, _AFTER = frozenset(("before", "until")), frozenset(("after", "once"))
_OVER = frozenset(("over", "than", "instead"))


@dataclass(frozen=True, slots=True)
class _Claim:
    """What one sentence says.

    Attributes:
        words: what it is about, without what turns it round.
        is_negated: whether it is turned round, an odd number of times.
        is_partial: whether it speaks of a part, so that its opposite may be just as true.
        order: what it puts first and what second, where it does.
    """

    words: frozenset[str]
    is_negated: bool
    is_partial: bool
    order: _Order | None = None


class _Order(NamedTuple):
    first: frozenset[str]
    second: frozenset[str]


def find_opposition(one: str, other: str) -> str | None:
    """Return how two texts contradict each other, in a few words, or None.

    Example:
        >>> find_opposition("Use tabs.", "Never use tabs!"), find_opposition("Use tabs in Go.", "Use tabs in Makefiles.")
        ('one says what the other denies', None)
    """
    if _approaches_clash(one, other):
        return "what is correct in one is incorrect in the other"
    mine, yours = _sentences(one), _sentences(other)
    # In long texts a few words such as "it is off" may be about anything.
    is_short = min(len(mine), len(yours)) <= _FEW_SENTENCES
    # What both say is no difference between them, whatever else they say.
    mine, yours = tuple(one for one in mine if one not in yours), tuple(one for one in yours if one not in mine)
    claims, others = ([_read_claim(sentence) for sentence in sentences] for sentences in (mine, yours))
    claims, others = (
        [claim for claim in claims if claim not in others],
        [claim for claim in others if claim not in claims],
    )
    for claim, contrary in itertools.product(claims, others):
        signal = _compare(claim, contrary) if is_short or len(claim.words) > 2 else None
        if signal:
            return signal
    for sentence, opposite in itertools.product(mine, yours):
        values = values_differ(sentence, opposite, 1 if is_short else 2)
        if values:
            return f"{values.subject}: {values.one} or {values.other}"
    return None


@functools.lru_cache(maxsize=4_096)
def marked_words(text: str) -> frozenset[str]:
    """Return the words of a text that turn a sentence round or put things in order.

    Texts that differ in one of them do not say the same, whatever else they share.

    Example:
        >>> sorted(marked_words("Avoid tabs; disable the cache before the run."))
        ['avoid', 'before', 'disable']
    """
    return frozenset(_MARKED[root] for root in set(map(stem, set(_tokens(text)))) if root in _MARKED)


def names(text: str) -> frozenset[str]:
    """Return the names in a text: code, paths, and words in capitals within a sentence.

    Two texts that differ in a name are about different things.

    Example:
        >>> sorted(names("Deploy with `make ship`. Then tell Redis and the orders-db."))
        ['db', 'make', 'orders', 'redis', 'ship']
    """
    found = {part for code in re.findall(r"`([^`\n]+)`", text) for part in word_set(code)}
    for match in re.finditer(
        r"(?<![.!?:;\w])(?<![.!?:;*#>-][ \t])(?<=[^\n]) ?\b[\w./:-]*[A-Z]\w*|\b\w+(?:[-_./]\w+)+", text
    ):
        found |= word_set(match.group())
    return frozenset(found)


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
    return tuple(_cut(text))


def _cut(text: str) -> Iterator[str]:
    found = _OPPOSITES_SENTENCE.split(_BLANKS.sub(" ", _FENCE.sub("\n", text[:_READ_CHARS].replace("\u2019", "'"))))
    for sentence in (" ".join(line.split()).lstrip("#>*-+ ") for line in found[:_MOST_SENTENCES]):
        if sentence and len(sentence) <= _LONGEST and not sentence.endswith(("?", ":")) and not _STEP.match(sentence):
            yield sentence


def _tokens(sentence: str) -> list[str]:
    return _TOKEN.findall(_SHORT_NOT.sub(" not", sentence.replace("\u2019", "'").casefold()))


@functools.lru_cache(maxsize=8_192)
def _read_claim(sentence: str) -> _Claim:
    found = _tokens(_REASON.sub("", sentence))
    order = _read_order(found)
    turned = [_turn(word) for word in found]
    words = frozenset(stem(word) for _, word in turned if word and word not in _OPPOSITES_FILLERS)
    is_negated = sum(is_turning for is_turning, _ in turned) % 2 == 1
    is_partial = not _PARTIAL.isdisjoint(found) or ("may" in found and _EVERYBODY.isdisjoint(found))
    return _Claim(words, is_negated, is_partial, order)


def _turn(word: str) -> tuple[bool, str]:
    """Return whether a word turns its sentence round, and what it adds to it in its plain form."""
    is_turning = True
    if word in _NEGATIONS:
        word = {"without": "with", "unless": "if"}.get(word, "")
    elif word.startswith("non-"):
        word = word.removeprefix("non-")
    elif stem(word) in _TURNED:
        word = _TURNED[stem(word)]
    else:
        is_turning = False
    return is_turning, _SAME.get(word, _SAME.get(stem(word), word))


def _read_order(words: list[str]) -> _Order | None:
    """Return what a sentence puts first and second: before and after, over and instead of."""
    for place, word in enumerate(words):
        if word not in _BEFORE | _AFTER | _OVER:
            continue
        if place == 0 and "," in words and word not in _OVER:
            comma = words.index(",")
            left, right = words[comma + 1 :], words[1:comma]
        else:
            left, right = words[:place], words[place + 1 :]
        sides = _Order(_content(left), _content(right))
        if sides.first and sides.second:
            return sides if word not in _AFTER else _Order(sides.second, sides.first)
    return None


def _content(words: list[str]) -> frozenset[str]:
    left_out = _OPPOSITES_FILLERS | _NEGATIONS | _BEFORE | _AFTER | _OVER | {"rather", "prefer"}
    return frozenset(stem(plain) for _, plain in map(_turn, words) if plain and plain not in left_out)


def _compare(one: _Claim, other: _Claim) -> str | None:
    if one.order and other.order:
        if one.order == other.order:
            return "one says what the other denies" if one.is_negated != other.is_negated else None
        mine, yours = one.order, other.order
        is_swapped = mine.first - yours.first == yours.second - mine.second != frozenset()
        is_swapped = is_swapped and mine.second - yours.second == yours.first - mine.first != frozenset()
        return "they name opposite orders" if is_swapped and one.is_negated == other.is_negated else None
    if one.words != other.words or one.is_negated == other.is_negated or one.is_partial or other.is_partial:
        return None
    return "one says what the other denies" if one.words else None


def _approaches_clash(one: str, other: str) -> bool:
    """Return whether what one text calls correct is what the other calls incorrect (S2)."""
    mine, yours = _approaches(one), _approaches(other)
    if not any(mine) or not any(yours):
        return False
    for (right, wrong), (other_right, other_wrong) in ((mine, yours), (yours, mine)):
        clash = jaccard(right, other_wrong)
        if clash > CLASH_ABOVE and clash > max(
            jaccard(right, other_right), jaccard(wrong, other_wrong), jaccard(right, wrong)
        ):
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


_TURNED = {stem(opposite): word for opposite, word in _OPPOSITES.items()}
_MARKED = {
    stem(word): word
    for word in (*_OPPOSITES, *_BEFORE, *_AFTER, *_OVER, "unless", "without", "never", "nobody", "nothing", "neither")
}
