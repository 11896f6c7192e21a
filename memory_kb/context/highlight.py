"""Find the words of a query in a text, to show what a hit was found by."""

from __future__ import annotations

import re

from memory_kb.similarity import stem
from memory_kb.stop_words import stop_words
from memory_kb.terms import MARKED_WORD, needs_cutting

#: The usual endings of English words, as an expression.
_ENDINGS = r"ing|ed|ers?|es|s|ions?|ment|able|e"
#: An expression that finds nothing.
_NOTHING = re.compile("((?!))")


def read_query_words(query: str) -> re.Pattern[str]:
    """Return an expression that finds the words of a query with any endings; its `split` gives them at odd places.

    Words of every sentence are left out. In scripts without spaces a word is found anywhere; a word that the query ends
    in may still be typed, and is found by its beginning.

    Example:
        >>> read_query_words("tests flak").split("Testing the flakiest test.")
        ['', 'Testing', ' the ', 'flakiest', ' ', 'test', '.']
    """
    tokens = [token.lower() for token in MARKED_WORD.findall(query)]
    stop = stop_words(tokens)
    tokens = [token for token in tokens if token not in stop] or tokens
    forms = list(map(_any_ending, tokens))
    if tokens and query[-1:].isalnum() and len(tokens[-1]) > 1 and not needs_cutting(tokens[-1]):
        forms.insert(0, rf"\b{re.escape(tokens[-1])}\w*")
    return re.compile(f"({'|'.join(forms)})", re.IGNORECASE) if forms else _NOTHING


def _any_ending(token: str) -> str:
    if needs_cutting(token):
        return re.escape(token)
    return rf"\b(?:{re.escape(token)}|{re.escape(stem(token))}(?:{_ENDINGS}){{0,2}})\b"
