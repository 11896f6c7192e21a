"""What SQLite's tokenizer makes of words and texts, asked through a table in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memory_kb.index.schema import TEXT_COLUMNS

#: Words whose stems are remembered; more than these are forgotten together.
_MOST_STEMS = 50_000
#: A place in a text: its column in the upper bits, the number of the word in the lower ones.
COLUMN_BITS = 24
_COLUMN = " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(TEXT_COLUMNS))
_COUNTS = " || char(9) || ".join(f"min(sum(col = '{name}'), 32767)" for name in TEXT_COLUMNS)


class Posting(NamedTuple):
    """Where a term is in the text with this key, which has so many terms in its columns together.

    `counts` says how often it is in each column, at most 32,767 times, and `places` where; both are written as
    PostgreSQL's COPY takes them.
    """

    key: int
    length: int
    counts: str
    term: str
    places: str


class WordCutter:
    """The tokenizer of an index, for words and texts that are not in it."""

    def __init__(self, tokenizer: str) -> None:
        self._stems: dict[str, str] = {}
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        tokenize = f"content = '', tokenize = '{tokenizer.replace(chr(39), '')}'"
        self._connection.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, {tokenize})")
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab (words, instance)")
        self._connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 ({', '.join(TEXT_COLUMNS)}, {tokenize})")
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (texts, instance)")

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        """Return every word as the full-text index holds it."""
        wanted = set(words)
        if len(self._stems) > _MOST_STEMS:
            self._stems.clear()
        unknown = [word for word in wanted if word not in self._stems]
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

    def postings(self, texts: Iterable[tuple[int, tuple[str | None, ...]]], longest: int) -> Iterator[Posting]:
        """Yield the postings of some texts, each given by its key and its columns, in the order of the terms.

        Terms of more characters than `longest` only count in the length.
        """
        self._connection.execute("INSERT INTO texts (texts) VALUES ('delete-all')")
        self._connection.execute("BEGIN")
        marks = ", ".join("?" * (len(TEXT_COLUMNS) + 1))
        self._connection.executemany(
            f"INSERT INTO texts (rowid, {', '.join(TEXT_COLUMNS)}) VALUES ({marks})",
            ((key, *columns) for key, columns in texts),
        )
        self._connection.execute("COMMIT")
        lengths = dict(self._connection.execute("SELECT doc, count(*) FROM terms GROUP BY doc").fetchall())
        rows = self._connection.execute(
            f"SELECT doc, {_COUNTS}, term, group_concat((CASE col {_COLUMN} END << {COLUMN_BITS}) + offset) "
            "FROM terms WHERE length(term) <= ? GROUP BY term, doc",
            (longest,),
        )
        for key, counts, term, places in rows:
            yield Posting(key, lengths[key], counts, term, f"{{{places}}}")
