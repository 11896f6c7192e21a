"""Recognise credentials by their shape, so that none is stored."""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memory_kb.credential_rules import CODE, COMMON, NO_VALUE, PLACEHOLDER, RULES, CredentialPattern
from memory_kb.lazy_regex import lazy_regex
from memory_kb.private_text import cut_private

#: No pattern of a token matches less than this, or a blank.
_LEAST_WORD = 12
#: What chance leaves out of no token: a digit, or capitals in a row.
_RANDOM_PART = lazy_regex(r"[0-9]|[A-Z]{8}")
#: The beginning of what is in a text for a credential that was taken out.
REDACTED = "[redacted: "
#: What nobody sees, and a key may be broken by.
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e"
#: A line end inside a run of characters that a token is made of.
_BREAK = lazy_regex(r"(?<=[A-Za-z0-9_+/=.-]{4})[ \t]?\\?\r?\n[ \t>]*(?=[A-Za-z0-9_+/=-]{4})")
#: So many characters on each side of a break are looked at for what chance leaves out of no token.
_PART = 200
#: Matches wherever `_BREAK` does, and at a few more places; much faster, since it begins with a letter to search for.
_POSSIBLE_BREAK = lazy_regex(r"\n(?<=[A-Za-z0-9_+/=. \t\\\r-]{4}\n)[ \t>]*(?=[A-Za-z0-9_+/=-]{4})")
#: So many characters of a break may be in front of the line end.
_BREAK_LEAD = 3


#: The key of a service has so many characters.
_LEAST_KEY = 16
#: What it looks like: a long run of characters with a digit, assigned to something.
_ASSIGNED = lazy_regex(r"[:=]>?\s{0,3}[\"'`]?(?=[\w=+/-]{16})[\w=+/-]*\d")
#: The service's name is so near in front of its key.
_NEAR = 60


class FoundCredential(NamedTuple):
    """A credential in a text: its kind and place; `shown` are the words before it and its first characters."""

    what: str
    start: int
    end: int
    line: int
    shown: str

    @property
    def described(self) -> str:
        """What it looks like, and where."""
        return f"{self.what} (line {self.line}: {self.shown})"


class Redacted(NamedTuple):
    """A text without its credentials, and what they looked like."""

    text: str
    found: tuple[str, ...] = ()


@functools.cache
def _keywords_of(judged: str) -> frozenset[str]:
    """Return the keywords of the rules for a `token`, a `service`, or with "" all others."""
    chosen = (rule for rule in RULES if judged == (rule.judged if rule.judged in ("token", "service") else ""))
    return frozenset().union(*(rule.keywords for rule in chosen))


class _View(NamedTuple):
    """A text in the form that is searched, with the rules' keywords in it, and each character's original place."""

    text: str
    folded: str
    keywords: set[str]
    places: Sequence[int]


def find_secret(text: str) -> str | None:
    """Name the first credential the text seems to hold, or return None.

    Example:
        >>> find_secret("deploy with AKIAABCDEFGHIJKLMNOP")
        'an AWS access key'
    """
    return next((rule.what for rule, _ in _search(text)), None)


def locate_secrets(text: str) -> Iterator[FoundCredential]:
    """Yield every credential that the text seems to hold, each once, with a few characters of its value.

    Example:
        >>> next(locate_secrets("Go online.\\nThe wifi password is hunter2!")).described
        'a password (line 2: The wifi password is hu…)'
    """
    return (_describe(text, what, start, end) for start, end, what in _spans(text))


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the places of credentials and the kind of each; where rules overlap, the first counts."""
    taken: list[tuple[int, int]] = []
    for rule, (start, end) in _search(text):
        if all(end <= first or start >= last for first, last in taken):
            taken.append((start, end))
            yield start, end, rule.what


def texts_of(value: object) -> Iterator[str]:
    """Yield the texts of a value of frontmatter, each behind the name it has, so that it can be judged by that.

    Example:
        >>> list(texts_of({"env": {"api_key": "x"}, "files": ["a.py", 1]}))
        ['env', 'api_key: x', 'files', 'a.py']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, held in value.items():
            yield f"{name}: {held}" if isinstance(held, str) else str(name)
            yield from () if isinstance(held, str) else texts_of(held)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item)


def describe_secret(found: FoundCredential) -> str:
    """Return what `lint`, `doctor` and `ci` say of a credential in a text."""
    return f"the text contains what looks like {found.what}: {found.shown}; take it out and revoke it"


def redact(text: str) -> Redacted:
    """Cut the private parts of a text and replace every credential by a word about it; the rest stays.

    Example:
        >>> redact("export DB_PASSWORD=hunter2hunter; make")
        Redacted(text='export DB_PASSWORD=[redacted: a password or key]; make', found=('a password or key',))
    """
    text = cut_private(text)
    spans = list(_spans(text))
    found = tuple(dict.fromkeys(what for _, _, what in spans))
    for start, end, what in sorted(spans, reverse=True):
        text = f"{text[:start]}{REDACTED}{what}]{text[end:]}"
    return Redacted(text, found)


def _search(text: str) -> Iterator[tuple[CredentialPattern, tuple[int, int]]]:
    """Yield what is found, rule by rule, with its place in the text."""
    plain = _unhide(text)
    views = [plain, *_join_lines(plain)]
    called = {word for view in views for word in view.keywords}
    for rule in [rule for rule in RULES if not called.isdisjoint(rule.keywords)]:
        for view in views if rule.judged == "token" else views[:1]:
            keywords = rule.keywords & view.keywords
            for match in _matches(rule, view, keywords) if keywords else ():
                first, last = match.span("value") if "value" in match.re.groupindex and match["value"] else match.span()
                value = view.text[first:last]
                cut = _trim(value) if rule.judged in ("name", "service", "address") else value
                is_cut_short = view.text.startswith("...", first + len(cut))
                if not is_cut_short and _is_credential(rule, cut):
                    yield rule, (view.places[first], view.places[first + len(cut) - 1] + 1)


def _matches(rule: CredentialPattern, view: _View, keywords: frozenset[str]) -> Iterator[re.Match[str]]:
    """Yield the matches of a rule, which begin at one of its keywords or a little in front: elsewhere none is tried."""
    if rule.lead is None or len(view.folded) != len(view.text):
        yield from rule.pattern.finditer(view.text)
        return
    done = 0
    for place in sorted({place for word in keywords for place in _places_of(word, view.folded)}):
        for start in range(max(done, place - rule.lead), place + 1):
            done = start + 1
            if match := rule.pattern.match(view.text, start):
                yield match
                done = match.end()
                break


def _places_of(word: str, text: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _trim(value: str) -> str:
    """Return a value without the punctuation of the sentence or the code around it."""
    value = value.split("&", maxsplit=1)[0] if "&" in value[8:] else value
    return re.sub(r"(?:\\[nrt]|[.,;:)\]}>*&?]|</\w*)+$", "", value)


def _is_credential(rule: CredentialPattern, value: str) -> bool:
    """Return whether a value is a credential and no placeholder."""
    judged = rule.judged
    if rule.least and (_entropy(value) < rule.least or REDACTED[1:-2] in value):
        return False
    if judged in NO_VALUE:
        is_common = judged != "token" and COMMON.fullmatch(value)
        return not (NO_VALUE[judged].search(value) or is_common)
    if judged == "base64":
        return bool(re.search("[a-z]", value) and re.search("[A-Z0-9]", value)) and not PLACEHOLDER.search(value)
    if judged not in ("name", "service"):
        return True
    is_mixed = re.search(r"\d", value) or len(re.findall(r"[a-z][A-Z]", value)) > len(value) // 5
    if len(value) < 8 or not is_mixed or not re.search(r"[A-Za-z]", value):
        return False
    return not (PLACEHOLDER.search(value) or CODE.search(value) or ("/" in value and value == value.lower()))


def _entropy(value: str) -> float:
    """Return the Shannon entropy of a text, in bits per character."""
    size = len(value) or 1
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def _unhide(text: str) -> _View:
    """Return a text without the characters that nobody sees."""
    places: Sequence[int] = range(len(text))
    if not text.isascii() and any(sign in text for sign in _INVISIBLE):
        places = [place for place, sign in enumerate(text) if sign not in _INVISIBLE]
        text = "".join(text[place] for place in places)
    folded, random = text.casefold(), _find_random_words(text)
    keywords = _find_keywords("token", " ".join(random).casefold()) | _find_keywords("", folded)
    if any(len(word) >= _LEAST_KEY for word in random):
        assigned = [text[max(0, one.start() - _NEAR) : one.end()] for one in _ASSIGNED.finditer(text)]
        keywords |= _find_keywords("service", "\n".join(assigned).casefold())
    return _View(text, folded, keywords, places)


def _find_random_words(text: str) -> list[str]:
    """Return the words of a text that may be a token."""
    return [word for word in {word for word in text.split() if len(word) >= _LEAST_WORD} if _RANDOM_PART.search(word)]


def _find_keywords(judged: str, folded: str) -> set[str]:
    return {word for word in _keywords_of(judged) if word in folded}


def _join_lines(view: _View) -> Iterator[_View]:
    """Yield the text without the line ends that break words, if one of these words may be a token."""
    text, breaks = view.text, list(_find_breaks(view.text))
    if not any(_is_random(text, *one) for one in breaks):
        return
    edges = [0, *itertools.chain.from_iterable(breaks), len(text)]
    spans = list(zip(edges[::2], edges[1::2], strict=True))
    joined = "".join(text[start:end] for start, end in spans)
    places = [place for start, end in spans for place in view.places[start:end]]
    keywords = view.keywords | _find_keywords("token", " ".join(_find_random_words(joined)).casefold())
    yield _View(joined, joined.casefold(), keywords, places)


def _find_breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield what `_BREAK` matches, faster."""
    end = 0
    for line_end in (possible.start() for possible in _POSSIBLE_BREAK.finditer(text)):
        for start in range(max(end, line_end - _BREAK_LEAD), line_end + 1):
            if found := _BREAK.match(text, start):
                yield found.span()
                end = found.end()
                break


def _is_random(text: str, start: int, end: int) -> bool:
    """Return whether the words on both sides of a break may be parts of a token."""
    before, after = (
        text[max(0, start - _PART) : start].rsplit(maxsplit=1)[-1],
        text[end : end + _PART].split(maxsplit=1)[0],
    )
    return _RANDOM_PART.search(before + after) is not None


def _describe(text: str, what: str, start: int, end: int) -> FoundCredential:
    line = text.rfind("\n", 0, start) + 1
    before = redact(text[max(line, start - 1000) : start]).text[-30:].lstrip()
    value = text[start:end]
    length = 2 if len(value) < 12 else 4 if len(value) < 30 else 8
    head = value.split("\n")[0] if value.startswith("-----") else f"{value[:length]}…"
    return FoundCredential(what, start, end, text.count("\n", 0, start) + 1, f"{before}{head}")
