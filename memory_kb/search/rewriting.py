"""Rewrite a query by what the sections say: which words to look for, and how the sections spell them."""

import re
from collections.abc import Iterator, Mapping

from memory_kb.index.port import Index
from memory_kb.model import Filters
from memory_kb.search.query import MAX_TERMS, Request, TextQuery, is_long, parse_query, parse_words
from memory_kb.search.scoring import WEIGHTS
from memory_kb.stop_words import is_stop_word
from memory_kb.terms import needs_cutting

#: How much of a long query is read for its rarest words; characters.
_READ_CHARS = 500
#: Sections that are read to find whether an excluded word is an option.
_MOST_READ = 60
#: Words by which people speak of themselves.
_PERSON = frozenset(("i", "me", "my", "we", "our", "us"))
#: A vault has conversations if so many sections, and such a share of all, say one of these words.
_LEAST_SPOKEN, _SHARE_SPOKEN = 10, 0.1
#: The least letters of a part of a joined word, and of a word that may be mistyped.
_LEAST_PART, _LEAST_MISTYPED = 2, 6
#: To import `string` for them would take a millisecond of every search.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: Letters of a word that is looked for in other spellings, at most, and how many such words of a query are.
_MOST_LETTERS, _MOST_WORDS = 30, 3


def choose_query(index: Index, request: Request) -> TextQuery:
    """Return what to look for: the key terms, if any, else the words of the text or the rarest of a long one."""
    if request.key_terms:
        return parse_words(" ".join(request.key_terms))
    if is_long(request.text):
        return _find_rare_words(index, request.text)
    query = _add_joined_words(index, _add_pronouns(index, _parse(index, request))).without_endings()
    return query.opened() if request.is_typing and request.text[-1:].isalnum() else query


def _parse(index: Index, request: Request) -> TextQuery:
    """Return the query for a text: for all its words if it describes a task.

    An option of a command is a word, too: what is excluded, but notes about it write with the dash, as in
    `Get-ChildItem -Recurse`.
    """
    if request.is_task:
        return parse_words(request.text)
    query = parse_query(request.text)
    options = frozenset(word for word in query.excluded if _is_option(index, word, query, request.filters))
    return parse_query(request.text, options) if options else query


def _is_option(index: Index, excluded: str, query: TextQuery, filters: Filters) -> bool:
    word = re.escape(excluded.strip('"'))
    option = re.compile(rf"(?<![\w-])-{word}(?!\w)", re.IGNORECASE)
    others = f" AND ({' OR '.join(query.terms)})" if query.terms else ""
    saying = index.match(excluded + others, WEIGHTS, filters, _MOST_READ)
    return any(option.search(chunk.content) for chunk in saying)


def _find_rare_words(index: Index, task: str) -> TextQuery:
    """Return a query for the rarest words in the beginning of a long text that some note has, the rarest first."""
    query = parse_words(task[:_READ_CHARS], MAX_TERMS * 4)
    counts = {term: index.frequency(term) for term in query.terms}
    known = sorted((term for term in query.terms if counts[term]), key=lambda term: counts[term])
    terms = tuple(known or query.terms)[:MAX_TERMS]
    pairs = tuple(pair for pair in query.pairs if any(term.strip('"') in pair for term in terms))
    return query._replace(terms=terms, pairs=pairs, is_cut=False)


def _add_pronouns(index: Index, query: TextQuery) -> TextQuery:
    """Return the query with its "I" and "my", too, where the sections say them as often as conversations do.

    Who asks like that means what a person said, not what an agent answered at length. A manual says "I" so
    rarely that it would count for more than the words that matter.
    """
    said = dict.fromkeys(f'"{word}"' for word in re.findall(r"\w+", " ".join(query.words).lower()) if word in _PERSON)
    least = max(_LEAST_SPOKEN, index.count_chunks() * _SHARE_SPOKEN) if said else 0.0
    return query.with_terms(term for term in said if term not in query.terms and index.frequency(term) >= least)


def _add_joined_words(index: Index, query: TextQuery) -> TextQuery:
    """Return the query with two adjacent words also joined, if the joined form is more than half as frequent.

    Who asks for data classes means dataclasses, too.
    """
    joined = {pair.replace(" ", ""): pair for pair in query.pairs if pair.count(" ") == 1 and not needs_cutting(pair)}
    counts = {term: index.frequency(term) for term in joined if term not in query.terms}
    return query.with_terms(
        term for term, count in counts.items() if count and 2 * count > index.frequency(joined[term])
    )


def respell(index: Index, query: TextQuery, counts: Mapping[str, int]) -> tuple[TextQuery, tuple[str, ...]]:
    """Return a query with the spellings of the sections for words that none of them says, and notes on what changed.

    Who asks for a reindex means to re-index, for a confgiuration a configuration, and for deploying a deployment.
    `counts` says how many sections say each term of the query.
    """
    respelt: dict[str, list[str]] = {}
    nouns = query.nouns()
    for term in list(_find_unknown(query, counts))[:_MOST_WORDS]:
        word = term.strip('"').lower()
        said = _find_said(index, [nouns[term]] if term in nouns else [])
        said = said or _find_said(index, list(_split(word))) or _find_mistyped(index, word)
        if said:
            respelt[term] = said
    terms = dict.fromkeys(one for term in query.terms for one in respelt.get(term, [term]))
    notes = (f"nothing says {term}; looked for {', '.join(said)} instead" for term, said in respelt.items())
    return query._replace(terms=tuple(terms)), tuple(notes)


def _find_unknown(query: TextQuery, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the terms that are words of Latin letters and that no section says, in another form or as a beginning."""
    forms = query.beginnings()
    for term in query.terms:
        word = term.strip('"')
        is_plain = word.isascii() and word.isalpha() and len(word) <= _MOST_LETTERS
        others = (term, f"{term} *", forms.get(term, term))
        if is_plain and not any(counts.get(one) for one in others):
            yield term


def _split(word: str) -> Iterator[str]:
    """Yield the phrases of two words that a word may be joined of.

    Example:
        >>> list(_split("rerun"))
        ['"re run"', '"rer un"']
    """
    for at in range(_LEAST_PART, len(word) - _LEAST_PART + 1):
        yield f'"{word[:at]} {word[at:]}"'


def _mistype(word: str) -> Iterator[str]:
    """Yield the words that differ by two letters exchanged, or by one that is missing or too much.

    One letter in the place of another makes too many other words: cancer and cancel, mature and nature.

    Example:
        >>> '"upload"' in _mistype("uplaod"), list(_mistype("load"))
        (True, [])
    """
    if len(word) < _LEAST_MISTYPED:
        return
    for at in range(len(word) + 1):
        before, behind = word[:at], word[at:]
        yield f'"{before}{behind[1:]}"'
        yield f'"{before}{behind[1:2]}{behind[:1]}{behind[2:]}"'
        for letter in _LETTERS:
            yield f'"{before}{letter}{behind}"'


def _find_mistyped(index: Index, word: str) -> list[str]:
    """Return what a word may be mistyped for, without forms of stop words: "shoulde" is no better than "should"."""
    said = _find_said(index, list(_mistype(word)))
    stems = index.stems(one.strip('"') for one in said)
    return [one for one in said if not is_stop_word(stems[one.strip('"')])]


def _find_said(index: Index, expressions: list[str]) -> list[str]:
    """Return the expressions that sections match, of many of which hardly any do."""
    if not expressions or not index.frequency(" OR ".join(expressions)):
        return []
    if len(expressions) == 1:
        return expressions
    middle = len(expressions) // 2
    return _find_said(index, expressions[:middle]) + _find_said(index, expressions[middle:])
