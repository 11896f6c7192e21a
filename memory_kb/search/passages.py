"""Cut the best sections into passages, and choose those to return."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memory_kb.index.port import Index, StoredChunk
from memory_kb.search.query import TextQuery
from memory_kb.text import has_cjk

#: How often a word counts that the title, or a heading, says for all passages under it.
TITLE_TIMES, HEADING_TIMES = 2.0, 1.0
#: What two words of the query that are adjacent add, as a share of what they are worth.
PAIR_SHARE = 0.25
#: BM25's constant: how soon a word that is said again counts less. Passages are about as long as one another.
_SATURATION = 1.2

_TOKEN = re.compile(r"[^\W_]+")
#: Names as the index spells them out; see `memory_kb.text.symbol_terms`.
_SYMBOL = re.compile(r'"(\w+?)(plusplus|sharp)"')
#: Latin letters with accents, which the index's tokenizer takes for those without.
_ACCENTED = (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
#: So many letters of a word are compared before the tokenizer is asked about it.
_MOST_SURE = 3
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
        self._chains_from: dict[str, list[tuple[str, ...]]] = {}
        for chain in self._chains:
            self._chains_from.setdefault(chain[0], []).append(chain)
        words = [word for pair in stems.items() for word in pair if not has_cjk(pair[0])]
        # The last letter of a stem may be another one in the text: cries, cry.
        sure = max(1, min(_MOST_SURE, min(map(len, words), default=1) - 1))
        first, *others = (_one_of({word[place] for word in words}) for place in range(sure))
        # A pattern that begins with a class of letters is found fastest.
        self._pattern = re.compile(rf"{first}(?<![^\W_].){''.join(others)}[^\W_]*")

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
        return {
            chain: self._chains[chain]
            for place, word in enumerate(words)
            for chain in self._chains_from.get(word.stem, ())
            if _says(text, words, place, chain)
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


def _one_of(letters: Iterable[str]) -> str:
    """Return an expression for one of some letters, whatever its case and accents; for none of none."""
    return f"[{re.escape(''.join(sorted(map(_variants, letters))))}]" if letters else "(?!)"


@functools.cache
def _variants(letter: str) -> str:
    """Return a letter with all that differ from it by case and accents."""
    block = ord(letter) & ~0xFF
    near = map(chr, (*range(block, block + 256), *_ACCENTED))
    return "".join({letter, *(char for char in near if _bare(char) == _bare(letter))})


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
    parts = ((f"{chunk.title}\n{chunk.names}", chunk.headings, chunk.content) for chunk in chunks.values())
    found = finder.find([part for chunk in parts for part in chunk])
    by_chunk = zip(chunks.values(), found[::3], found[1::3], found[2::3], strict=True)
    return [passage for words in by_chunk for passage in _cut(index, finder, *words)]


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
            own = _score(finder, _count(finder, found, 1.0, above))
            own += sum((said | finder.find_chains(text, found)).values())
            yield Passage(chunk.key, number, number == last, start, end, own)
    if not pieces:
        yield Passage(chunk.key, 0, True, 0, len(text), _score(finder, above))


def _count(finder: WordFinder, words: Sequence[_Word], times: float, before: Mapping[str, float]) -> dict[str, float]:
    counts = dict(before)
    for word in words:
        if word.stem in finder.weights:
            counts[word.stem] = counts.get(word.stem, 0.0) + times
    return counts


def _score(finder: WordFinder, counts: Mapping[str, float]) -> float:
    """Return what the words in a passage are worth: BM25 by the statistics of sections."""
    return sum(
        finder.weights[stem] * count * (_SATURATION + 1) / (count + _SATURATION) for stem, count in counts.items()
    )
