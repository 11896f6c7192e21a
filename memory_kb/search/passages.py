"""Cut the best sections into passages, and choose those to return."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memory_kb.index.port import Index, StoredChunk
from memory_kb.search.query import TextQuery
from memory_kb.text import has_cjk

#: How often a word counts that the title, or a heading, says for all passages under it.
TITLE_TIMES, HEADING_TIMES = 2.0, 1.0
#: What two words of the query that are adjacent add, as a share of what they are worth.
PAIR_SHARE = 0.25
#: BM25's constants: how soon a word that is said again counts less, and how much length does.
_SATURATION, _LENGTH = 1.2, 0.75
#: Characters of a passage of usual length.
_USUAL = 400

_TOKEN = re.compile(r"[^\W_]+")
#: Names as the index spells them out; see `memory_kb.text.symbol_terms`.
_SYMBOL = re.compile(r'"(\w+?)(plusplus|sharp)"')
#: Latin letters with accents, which the index's tokenizer takes for those without.
_ACCENTED = "\u00c0-\u024f\u1e00-\u1eff"
_NOTHING_BETWEEN = re.compile(r"[\W_]*")


class Passage(NamedTuple):
    """A part of a section, in characters from the section's start.

    `number` counts the passages of the section from 0, `is_last` marks its last one, and `words`
    is what the query's words in it are worth.
    """

    key: int
    number: int
    is_last: bool
    start: int
    end: int
    words: float


class _Word(NamedTuple):
    """A word of the query where a text says it."""

    start: int
    end: int
    stem: str


class WordFinder:
    """Finds the words of a query in texts, in all their forms.

    Forms come from the index's own tokenizer. Only words that begin like one of the query are
    given to it.
    """

    def __init__(self, index: Index, query: TextQuery, weights: Mapping[str, float]) -> None:
        self._index = index
        self._stems: dict[str, str] = {}
        tokens = {term: _TOKEN.findall(term) for term in (*query.terms, *query.phrases, *query.pairs)}
        stems = index.stems({token for found in tokens.values() for token in found})
        self.weights: dict[str, float] = {}
        self._literals: dict[str, re.Pattern[str]] = {}
        self._beginnings: list[str] = []
        self._chains: dict[tuple[str, ...], float] = {}
        for term in dict.fromkeys((*query.terms, *query.phrases)):
            weight, found = weights.get(term, 0.0), tokens[term]
            if not found:
                continue
            if has_cjk(term):
                self._add_literal(found[0] + "".join(token[-1] for token in found[1:]), weight)
            elif symbol := _SYMBOL.fullmatch(term):
                self._add_literal(symbol[1] + ("++" if symbol[2] == "plusplus" else "#"), weight)
            elif len(found) > 1:
                self._chains[tuple(stems[token] for token in found)] = weight
            else:
                stem = stems[found[0]]
                self.weights[stem] = max(weight, self.weights.get(stem, 0.0))
                if term.endswith("*"):
                    self._beginnings.append(stem)
        for pair in query.pairs:
            chain = tuple(stems[token] for token in tokens[pair])
            if not has_cjk(pair):
                self._chains.setdefault(chain, PAIR_SHARE * sum(self.weights.get(stem, 0.0) for stem in chain))
        self._known = {*self.weights, *(stem for chain in self._chains for stem in chain)}
        starts = {_beginning(token) for found in tokens.values() for token in found if not has_cjk(token)}
        choices = "|".join([*sorted(starts), f"[^\\W_]?[{_ACCENTED}]"])
        self._pattern = re.compile(rf"(?<![^\W_])(?:{choices})[^\W_]*", re.IGNORECASE)

    def find(self, texts: Sequence[str]) -> list[list[_Word]]:
        """Return the query's words in every one of some texts."""
        matches = [[(match.start(), match.group()) for match in self._pattern.finditer(text)] for text in texts]
        words = {word for found in matches for _, word in found}
        stems = self._index.stems(words - self._stems.keys())
        self._stems |= {word: self._recognise(stem) for word, stem in stems.items()}
        return [self._choose(text, found) for text, found in zip(texts, matches, strict=True)]

    def _recognise(self, stem: str) -> str:
        """Return what a word of a text counts as: itself, if the query has it, or a beginning that it has."""
        if stem in self._known:
            return stem
        return next((start for start in self._beginnings if stem.startswith(start)), stem)

    def _choose(self, text: str, matches: Sequence[tuple[int, str]]) -> list[_Word]:
        found = []
        for place, word in matches:
            stem = self._stems[word]
            if stem in self._known:
                found.append(_Word(place, place + len(word), stem))
        for literal, pattern in self._literals.items():
            found.extend(
                _Word(match.start(), match.start() + len(literal), literal) for match in pattern.finditer(text)
            )
        return found

    def find_chains(self, text: str, words: Sequence[_Word]) -> dict[tuple[str, ...], float]:
        """Return the phrases, names and pairs of the query that a text says, and what each is worth."""
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            places.setdefault(word.stem, []).append(place)
        return {
            chain: worth
            for chain, worth in self._chains.items()
            if any(_says(text, words, place, chain) for place in places.get(chain[0], ()))
        }

    def _add_literal(self, text: str, weight: float) -> None:
        letters = r"[^\w\s]*".join(map(re.escape, text))  # Thai's marks, say, are none
        self._literals[text] = re.compile(f"(?={letters})", re.IGNORECASE)
        self.weights[text] = weight


def _says(text: str, words: Sequence[_Word], place: int, chain: tuple[str, ...]) -> bool:
    """Return whether the words of a chain are adjacent, starting at a place."""
    there = words[place : place + len(chain)]
    return tuple(word.stem for word in there) == chain and all(
        _NOTHING_BETWEEN.fullmatch(text, one.end, other.start) for one, other in itertools.pairwise(there)
    )


def _beginning(token: str) -> str:
    """Return an expression for the letters that all forms of a word begin with, whatever their accents."""
    if token[:2].isascii():
        return token[: 3 if len(token) > 5 and token[:3].isascii() else 2]
    letter = _bare(token[0])
    block = ord(token[0]) & ~0xFF
    return f"[{re.escape(token[0])}{''.join(char for char in map(chr, range(block, block + 256)) if _bare(char) == letter)}]"


@functools.cache
def _bare(letter: str) -> str:
    return unicodedata.normalize("NFD", letter)[0].casefold()


def find_passages(
    index: Index, query: TextQuery | None, chunks: Mapping[int, StoredChunk], weights: Mapping[str, float]
) -> list[Passage]:
    """Return the passages that say a word of the query, by section.

    A section without one is a passage by itself, worth nothing by its words.
    """
    if query is None or not weights:
        return [Passage(key, 0, True, 0, len(chunk.content), 0.0) for key, chunk in chunks.items()]
    finder = WordFinder(index, query, weights)
    listed = list(chunks.values())
    above = (
        finder.find([f"{chunk.title}\n{chunk.names}" for chunk in listed]),
        finder.find([chunk.headings for chunk in listed]),
    )
    inside = finder.find([chunk.content for chunk in listed])
    return [passage for found in zip(listed, *above, inside, strict=True) for passage in _cut(index, finder, *found)]


def _cut(
    index: Index, finder: WordFinder, chunk: StoredChunk, titled: list[_Word], headed: list[_Word], words: list[_Word]
) -> Iterator[Passage]:
    text = chunk.content
    if not (words or titled or headed):
        yield Passage(chunk.key, 0, True, 0, len(text), 0.0)
        return
    above = _count(finder, headed, HEADING_TIMES, _count(finder, titled, TITLE_TIMES, {}))
    said = finder.find_chains(f"{chunk.title}\n{chunk.names}", titled) | finder.find_chains(chunk.headings, headed)
    pieces = index.cut(text)
    last = len(pieces) - 1
    for number, (start, end) in enumerate(pieces):
        found = [word for word in words if start <= word.start < end]
        if found or not (words or number):
            own = _score(finder, _count(finder, found, 1.0, above), end - start)
            own += sum((said | finder.find_chains(text, found)).values())
            yield Passage(chunk.key, number, number == last, start, end, own)
    if not pieces:
        yield Passage(chunk.key, 0, True, 0, len(text), _score(finder, above, 0))


def _count(finder: WordFinder, words: Sequence[_Word], times: float, before: Mapping[str, float]) -> dict[str, float]:
    counts = dict(before)
    for word in words:
        if word.stem in finder.weights:
            counts[word.stem] = counts.get(word.stem, 0.0) + times
    return counts


def _score(finder: WordFinder, counts: Mapping[str, float], length: int) -> float:
    """Return what the words in a passage are worth: BM25 by the statistics of sections."""
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * length / _USUAL)
    return sum(finder.weights[stem] * count * (_SATURATION + 1) / (count + norm) for stem, count in counts.items())
