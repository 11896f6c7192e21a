"""Find how the sections spell words of a query that none of them says."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
from collections.abc import Iterator, Mapping

from memory_kb.index.port import Index
from memory_kb.search.query import TextQuery
from memory_kb.stop_words import is_stop_word

#: The least letters of a part of a joined word, and of a word that may be mistyped.
_LEAST_PART, _LEAST_MISTYPED = 2, 6
#: To import `string` for them would take a millisecond of every search.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: Letters of a word that is looked for in other spellings, at most, and how many such words of a query are.
_MOST_LETTERS, _MOST_WORDS = 30, 3


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
