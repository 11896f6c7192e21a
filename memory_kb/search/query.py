"""A request for hits, and the parsing of its query into a safe full-text expression."""

import re
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.model import Filters
from memory_kb.stop_words import is_english, stop_words
from memory_kb.terms import cut_word, has_cjk, is_glued, needs_cutting, query_terms, symbol_terms, to_nfc, without_marks

#: More distinct terms than this make a query slower, not better.
MAX_TERMS = 32
MAX_PAIRS = 12
#: A query longer than this is a task description: its quotes and dashes are part of the text.
LONG = 300
_LEAST_PREFIX = 2
#: Letters that may be an ending, of a word of another language than English, and the least that must be left.
_ENDING, _LEAST_STEM = 3, 4
#: Letters before and behind a word that may be other ones, where its parts are looked for.
_CHANGED = 2
_MAX_CHARS = 4_000

# A part of the query: perhaps a minus, then a quoted phrase or a word.
_PART = lazy_regex(r"(?:(?<=\s)|^)(-?)[\"“”„]([^\"“”„]*)[\"“”„]|(\S+)")
_PUNCTUATION = "?!.,;:()[]{}<>\"'`*“”„"
#: What ends a sentence, in any script. One is read as a text: its dashes exclude nothing, nor need its phrases occur.
_SENTENCE_ENDS = tuple("?!.…;؟۔।。！？።፧")
#: What may stand behind the end of a sentence.
_AFTER_SENTENCE = " \"'“”„’»"
_WORD = lazy_regex(r"[^\W_]")
_TOKEN = lazy_regex(r"[^\W_]+")
_POSSESSIVE = lazy_regex(r"['’]s$", re.IGNORECASE)
_CAMEL = lazy_regex(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
#: A verb in -y or its noun, as a term.
_VERB = lazy_regex(r'"(\w+[aeou]y)(?:s|ed|ing|(ments?))?"', re.IGNORECASE)
_UNPRINTABLE = lazy_regex(r"[\x00-\x1f\x7f\ud800-\udfff]")


class Request(NamedTuple):
    """One search: the text, the filters, and the limits of the answer.

    `max_chars` 0 is no budget; `key_terms` are looked for in place of the text's own words; with `is_typing` the last
    word may be the beginning of one; with `is_task` the text describes a task, quotes and dashes are part of it, and
    each entry gives one hit; with `per_entry` it gives no more than so many while others match.
    """

    text: str
    filters: Filters = Filters()
    limit: int = 10
    max_chars: int = 0
    explain: bool = False
    mode: str = "auto"
    key_terms: tuple[str, ...] = ()
    is_typing: bool = False
    is_task: bool = False
    per_entry: int = 0


class TextQuery(NamedTuple):
    """A query as the full-text index takes it.

    `terms` are the alternatives, any of which may match and more of which score higher; every
    one of `phrases` must occur in the text, and none of `excluded` may. `pairs` are terms that
    are adjacent in the query. All are quoted expressions of the index's language; `words`
    are the query's own, `ignored` those left out of it since they say nothing. `parts` are the terms
    that are parts of the word before them.
    """

    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    is_cut: bool = False
    ignored: tuple[str, ...] = ()
    parts: frozenset[str] = frozenset()

    @property
    def whole(self) -> str | None:
        """The query as one phrase, stop words and all; None for a single word that is looked for in no other way."""
        phrase = _phrase(" ".join(self.words))
        return phrase if len(_TOKEN.findall(phrase)) > 1 or len(self.whole_words) > 1 else None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look for."""
        return not (self.terms or self.phrases)

    @property
    def expression(self) -> str:
        """The whole query for a full-text MATCH."""
        wanted = " OR ".join(dict.fromkeys((*self.phrases, *self.terms)))
        if self.phrases:
            wanted = f"{' AND '.join(self.phrases)} AND ({wanted})"
        return f"({wanted}) NOT ({' OR '.join(self.excluded)})" if self.excluded else wanted

    def loosened(self) -> "TextQuery":
        """Return the query with its phrases and excluded words as ordinary words."""
        return _make_query([*self.words, *" ".join((*self.phrases, *self.excluded)).split()])

    def opened(self) -> "TextQuery":
        """Return the query with its last word also as the beginning of one, if it has two letters or more.

        Example:
            >>> parse_query("test flak").opened().terms
            ('"test"', '"flak"', '"flak" *')
        """
        last = _TOKEN.findall(self.words[-1])[-1:] if self.words else []
        if not last or len(last[0]) < _LEAST_PREFIX or needs_cutting(last[0]):
            return self
        return self.with_terms([_quote(last[0]) + " *"])

    @property
    def whole_words(self) -> tuple[str, ...]:
        """The terms without parts of words."""
        return tuple(term for term in self.terms if term not in self.parts)

    def nouns(self) -> dict[str, str]:
        """Return, by term, the noun of a verb such as "deploy", or the verb of a noun: their stems differ in the index.

        Example:
            >>> parse_query("deploying").nouns(), parse_query("deployments").nouns()
            ({'"deploying"': '"deployment"'}, {'"deployments"': '"deploy"'})
        """
        verbs = ((term, _VERB.fullmatch(term)) for term in self.terms)
        return {term: _quote(found[1] + ("" if found[2] else "ment")) for term, found in verbs if found}

    def beginnings(self) -> dict[str, str]:
        """Return, by term, the beginning that other forms of the word have too; none in English, which the index stems.

        Example:
            >>> parse_query("wo sind die Häuser").beginnings()
            {'"Häuser"': '"Häus" *'}
        """
        if is_english([token.lower() for word in self.words for token in _TOKEN.findall(word)]):
            return {}
        bare = {term: term.strip('"') for term in self.terms}
        words = {term: word for term, word in bare.items() if word.isalpha() and len(word) > _LEAST_STEM}
        return {
            term: _quote(word[: max(_LEAST_STEM, len(word) - _ENDING)]) + " *"
            for term, word in words.items()
            if not needs_cutting(word)
        }

    def other_forms(self) -> dict[str, str]:
        """Return, by term, an expression for other forms of the word: its beginning, or most of it in a longer word.

        Example:
            >>> parse_query("الملفات").other_forms()
            {'"الملفات"': '"الم لمل ملف" OR "لمل ملف لفا" OR "ملف لفا فات"'}
        """
        words = {term: without_marks(term) for term in self.whole_words if needs_cutting(term) and not has_cjk(term)}
        return (
            self.nouns()
            | self.beginnings()
            | {term: " OR ".join(_inner_phrases(word)) for term, word in words.items() if len(word) > _LEAST_STEM}
        )

    def without_endings(self) -> "TextQuery":
        """Return the query with its words also as beginnings, so that other forms match; an English one as it is.

        Example:
            >>> parse_query("wo sind die Häuser").without_endings().terms
            ('"Häuser"', '"Häus" *')
        """
        return self.with_terms(self.beginnings().values())

    def with_terms(self, terms: Iterable[str]) -> "TextQuery":
        """Return the query with further terms, each once."""
        return self._replace(terms=tuple(dict.fromkeys((*self.terms, *terms))))


def parse_query(text: str, options: Container[str] = ()) -> TextQuery:
    """Read a query: words, `"exact phrases"` and `-excluded` ones, of which `options` are words all the same.

    Anything else is a word too. In what ends like a sentence all are words, and phrases are further ones. Stop words
    are left out unless there is nothing else. A name such as `foo-bar` or `v1.2.3` is looked for as it is and in its
    parts, CJK runs as bigrams.

    Example:
        >>> parse_query('fix "flaky tests" in user_name -legacy').expression
        '("flaky tests" AND ("flaky tests" OR "fix" OR "user_name" OR "user" OR "name")) NOT ("legacy")'
        >>> parse_query('Who wrote "Holding Back"?').expression
        '"wrote" OR "Holding" OR "Back" OR "Holding Back"'
        >>> parse_query("C++").expression
        '"C" OR "Cplusplus"'
        >>> parse_query('*:"').is_empty
        True
    """
    text = clean(text)
    phrases: dict[str, None] = {}
    excluded: dict[str, None] = {}
    words: list[str] = []
    for part in _PART.finditer(text):
        if part[3] is None:
            if _WORD.search(part[2]):
                (excluded if part[1] else phrases)[_phrase(part[2])] = None
        elif part[3][0] == "-" and part[3][1:2].isalnum():
            word = _phrase(part[3].strip(_PUNCTUATION))
            if word in options:
                words.append(part[3][1:])
            else:
                excluded[word] = None
        else:
            words.append(part[3])
    wanted = tuple(phrases)[:MAX_TERMS]
    if text.rstrip(_AFTER_SENTENCE).endswith(_SENTENCE_ENDS):
        return parse_words(text).with_terms(wanted)
    return _make_query(words, wanted, tuple(excluded)[:MAX_TERMS])


def clean(text: str) -> str:
    """Return what is read of a query: its beginning, without control characters."""
    return _UNPRINTABLE.sub(" ", to_nfc(text[:_MAX_CHARS]))


def parse_words(text: str, most: int = MAX_TERMS) -> TextQuery:
    """Read a text as words only: its quotes and dashes are part of the text; keep `most` different terms.

    Example:
        >>> parse_words('Never -force "main"').expression
        '"Never" OR "force" OR "main"'
    """
    text = clean(text)
    return _make_query([word.lstrip("-") for word in text.split()], most=most)


def _make_query(
    words: list[str], phrases: tuple[str, ...] = (), excluded: tuple[str, ...] = (), most: int = MAX_TERMS
) -> TextQuery:
    """Return the query for some words: their distinct terms without stop words, and neighbouring terms as pairs."""
    stop = stop_words([token.lower() for word in words for token in _TOKEN.findall(word)])
    terms: dict[str, None] = {}
    dropped: dict[str, None] = {}
    pairs: dict[str, None] = {}
    parts = set[str]()
    last = ""
    for word in words:
        for term, bare in _word_terms(_POSSESSIVE.sub("", word.strip(_PUNCTUATION))):
            if bare in stop:
                dropped[term] = None
                last = ""
                continue
            if bare is None:
                if term not in terms:
                    parts.add(term)
                terms[term] = None
                continue
            parts.discard(term)
            if last and term not in terms and not term.endswith("*"):
                pairs[f"{last[:-1]} {term[1:]}"] = None
            terms[term] = None
            last = "" if term.endswith("*") else term
    if needs_cutting(" ".join(words)):  # a word of a script without spaces is several terms
        most *= 2
    kept = tuple(terms or dropped)[:most]
    is_cut = len(terms or dropped) > most
    ignored = tuple(dropped) if terms else ()
    return TextQuery(kept, phrases, excluded, tuple(pairs)[:MAX_PAIRS], tuple(words), is_cut, ignored, frozenset(parts))


def _word_terms(word: str) -> Iterator[tuple[str, str | None]]:
    """Yield what to look for one word, each with its bare lower-case form."""
    if not _WORD.search(word):
        return
    if needs_cutting(word):
        yield from _cut_terms(word)
        return
    tokens = _TOKEN.findall(word)
    # One token in signs is not a name: `(tests)`, `it's`; several are: `foo-bar`.
    joined = word if len(tokens) > 1 else tokens[0]
    yield _quote(joined), joined.lower()
    if len(tokens) > 1:
        for token in tokens:
            if len(token) > 1:
                yield _quote(token), token.lower()
    elif len(parts := _CAMEL.findall(tokens[0])) > 1 and not tokens[0].isupper() and "".join(parts) == tokens[0]:
        yield _quote(" ".join(parts)), ""
    symbols = symbol_terms(word)
    if symbols:
        yield _quote(symbols), ""


def _inner_phrases(word: str) -> Iterator[str]:
    """Yield phrases of the parts of a word that find a longer one with all but a few letters of it in a row."""
    size = max(_LEAST_STEM, len(word) - _CHANGED)
    for start in range(len(word) - size + 1):
        yield _quote(" ".join(query_terms(word[start : start + size])[0]))


def _cut_terms(word: str) -> Iterator[tuple[str, str | None]]:
    """Yield what to look for one word of several scripts; a part of another term has no bare form."""
    for piece, is_cjk in cut_word(word):
        if not is_cjk:
            yield from _word_terms(piece)
        else:
            terms, is_short = query_terms(piece)
            if is_glued(piece):
                yield _quote(piece), ""
            for term in terms:
                yield _quote(term) + (" *" if is_short else ""), None if is_glued(piece) else ""


def _phrase(text: str) -> str:
    """Return a phrase to be found as it is, with CJK runs as chains of bigrams."""
    words: list[str] = []
    symbols = symbol_terms(text)
    if symbols and len(text.split()) == 1:
        return _quote(symbols)
    for word in text.lstrip("-").split():
        for piece, is_cjk in cut_word(word):
            words += query_terms(piece)[0] if is_cjk and not is_glued(piece) else [piece]
    return _quote(" ".join(words))


def _quote(text: str) -> str:
    return '"' + text.replace('"', " ") + '"'


def is_long(text: str) -> bool:
    """Return whether a query is rather the description of a task.

    Example:
        >>> is_long("flaky tests"), is_long("word " * 100)
        (False, True)
    """
    return len(text) > LONG
