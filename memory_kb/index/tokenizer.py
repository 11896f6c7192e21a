"""Split texts into words with SQLite's own tokenizer, and read where a full-text index has each."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

#: Words whose stems are remembered; more than these are forgotten together.
_MOST_STEMS = 50_000
#: Bits of the number of a word in its column, and of the number of a column.
PLACE_BITS, COLUMN_BITS = 16, 3


class TermPlaces(NamedTuple):
    """Every place where a term is, as a number: the row, the column and the word of it, in bits.

    The numbers have commas between them, and ascend. Words that the bits have no number for have the last one.
    """

    term: str
    number: int
    places: str


class TermTable(NamedTuple):
    """The content of a full-text index: the number of terms of each row, and the places of each term."""

    lengths: dict[int, int]
    terms: Iterator[TermPlaces]


def _add_sizes(sizes: bytes) -> int:
    """Return the sum of numbers that are written in groups of seven bits, of which all but the last have an eighth.

    Example:
        >>> _add_sizes(bytes([3, 129, 0, 0]))
        131
    """
    total = number = 0
    for byte in sizes:
        number = number << 7 | byte & 127
        if byte < 128:
            total, number = total + number, 0
    return total


class WordCutter:
    """The tokenizer of an index, for words and texts that are not in it."""

    def __init__(self, tokenizer: str) -> None:
        self._stems: dict[str, str] = {}
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._tokenize = f"tokenize = '{tokenizer.replace(chr(39), '')}'"
        self._connection.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, content = '', {self._tokenize})")
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab (words, instance)")

    def close(self) -> None:
        """Free the tokenizer."""
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
        # What is rolled back is neither written nor deleted, which would take most of the time.
        self._connection.execute("BEGIN")
        try:
            self._connection.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(texts))
            return self._connection.execute(f"SELECT doc, term FROM stems {order}").fetchall()
        finally:
            self._connection.execute("ROLLBACK")

    def read(self, texts: Iterable[tuple[int, Sequence[str | None]]], columns: Sequence[str]) -> TermTable:
        """Return the terms that a full-text index of some numbered texts, each given by its columns, would have."""
        named, marks = ", ".join(columns), ", ".join("?" * len(columns))
        self._connection.execute("DROP TABLE IF EXISTS texts")
        self._connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 ({named}, content = '', {self._tokenize})")
        self._connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS texts_terms USING fts5vocab (texts, instance)")
        self._connection.execute("BEGIN")
        rows = ((number, *values) for number, values in texts)
        self._connection.executemany(f"INSERT INTO texts (rowid, {named}) VALUES (?, {marks})", rows)
        self._connection.execute("COMMIT")
        sizes = self._connection.execute("SELECT id, sz FROM texts_docsize").fetchall()
        column = " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(columns))
        most = (1 << PLACE_BITS) - 1
        place = f"(doc << {COLUMN_BITS} | CASE col {column} END) << {PLACE_BITS} | min(offset, {most})"
        # Terms come in their order without sorting.
        found = f"SELECT term, count(*), group_concat({place}) FROM texts_terms GROUP BY term"
        terms = map(TermPlaces._make, self._connection.execute(found))
        return TermTable({row: _add_sizes(size) for row, size in sizes}, terms)
