"""Split texts into words with SQLite's own tokenizer."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: Words whose stems are remembered; more than these are forgotten together.
_MOST_STEMS = 50_000
#: A place in a text: its column in the upper bits, the number of the word in the lower ones.
COLUMN_BITS = 24
#: The number of a column in the number of a text.
_COLUMN_MARK = 3


class Postings(NamedTuple):
    """How many terms each of some texts has, by number, and where every term is.

    A row is a term, and for each place where it is the number of the text, the digit of the column, and the place.
    All numbers are texts, and those of texts and places have commas between them.
    """

    lengths: Counter[str]
    rows: list[tuple[str, str, str, str]]


class WordCutter:
    """The tokenizer of an index, for words and texts that are not in it."""

    def __init__(self, tokenizer: str) -> None:
        self._stems: dict[str, str] = {}
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        tokenize = f"content = '', tokenize = '{tokenizer.replace(chr(39), '')}'"
        self._connection.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, {tokenize})")
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab (words, instance)")
        self._connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (text, columnsize = 0, {tokenize})")
        self._connection.execute(
            "INSERT INTO texts (texts, rank) VALUES ('pgsz', 32000)"
        )  # read through once, not searched
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (texts, instance)")

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        """Return every word as the full-text index holds it."""
        wanted = set(words)
        if len(self._stems) > _MOST_STEMS:
            self._stems.clear()
        if unknown := [*wanted.difference(self._stems)]:
            # Where a word is cut into several, the first of them is taken.
            firsts = dict(self._cut(unknown, "ORDER BY offset DESC"))
            self._stems.update({word: firsts.get(number, word) for number, word in enumerate(unknown)})
        return {word: self._stems[word] for word in wanted}

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text in their order."""
        return [term for _, term in self._cut([text], "ORDER BY offset")]

    def _cut(self, texts: Sequence[str], order: str) -> list[tuple[int, str]]:
        self._connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self._connection.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(texts))
        return self._connection.execute(f"SELECT doc, term FROM stems {order}").fetchall()

    def postings(self, texts: Iterable[tuple[int, Sequence[str | None]]], longest: int) -> Postings:
        """Return the postings of some texts, each given by its number and its columns.

        Terms of more characters than `longest` only count in the length.
        """
        self._connection.execute("INSERT INTO texts (texts) VALUES ('delete-all')")
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            (
                (number << _COLUMN_MARK | column, text)
                for number, columns in texts
                for column, text in enumerate(columns)
                if text
            ),
        )
        self._connection.execute("COMMIT")
        column = f"(doc & {(1 << _COLUMN_MARK) - 1})"
        # Terms come in their order without sorting; a text is there once for each column that says one.
        found = self._connection.execute(
            f"SELECT term, group_concat(doc >> {_COLUMN_MARK}), group_concat({column}, ''), "
            f"group_concat({column} << {COLUMN_BITS} | offset) FROM terms GROUP BY term"
        )
        rows = found.fetchall()
        lengths = Counter(itertools.chain.from_iterable(owners.split(",") for _, owners, _, _ in rows))
        return Postings(lengths, [row for row in rows if len(row[0]) <= longest])
