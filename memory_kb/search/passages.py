"""Cut the best sections into passages, and value the words of passages and of whole entries."""

import bisect
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memory_kb.index.port import Candidate, Index
from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.sections import cut_passages
from memory_kb.search.query import TextQuery
from memory_kb.terms import is_glued, needs_cutting, without_marks

#: How often a word counts that the title, or a heading, says for all passages under it.
TITLE_TIMES, HEADING_TIMES = 2.0, 1.0
#: BM25's constants: how soon a word that is said again counts less, and how much length does.
_SATURATION, _LENGTH = 1.2, 0.75
#: Characters of a passage and of an entry of usual length, and of a section that is not read.
_USUAL, _USUAL_ENTRY, _UNREAD = 400, 2_000, 1_600

_TOKEN = lazy_regex(r"[^\W_]+")
_LETTERS = lazy_regex(r"[\w\s]+")
#: Names as the index spells them out; see `memory_kb.text.symbol_terms`.
_SYMBOL = lazy_regex(r'"(\w+?)(plusplus|sharp)"')
_ACCENTED = lazy_regex("[\u00b5\u00c0-\u024f\u1e00-\u1eff]")


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


class Occurrence(NamedTuple):
    """A word of the query at its place in a text."""

    start: int
    stem: str


class Occurrences(NamedTuple):
    """Where a section has the words of the query, in its title, its headings and its content."""

    title: Sequence[Occurrence]
    headings: Sequence[Occurrence]
    content: Sequence[Occurrence]


class WordFinder:
    """Finds the words of a query in texts, in every form that the index's tokenizer stems alike."""

    def __init__(self, index: Index, query: TextQuery, weights: Mapping[str, float]) -> None:
        self._index, self.query = index, query
        #: The sections that were read, by their keys.
        self.occurrences: dict[int, Occurrences] = {}
        cut = ((term, _TOKEN.findall(term)) for term in (*query.terms, *query.phrases))
        tokens = {term: found for term, found in cut if found}
        stems = index.stems({token for found in tokens.values() for token in found})
        self.weights: dict[str, float] = {}
        #: A term of the query by what is counted of it.
        self.terms: dict[str, str] = {}
        self._literals: dict[str, re.Pattern[str]] = {}
        #: Parts of words by their letters, and whether each is but a whole word.
        self._parts: dict[str, bool] = {}
        self._beginnings: list[str] = []
        for term, found in tokens.items():
            weight = weights.get(term, 0.0)
            if needs_cutting(term):
                self._add_run(term, found, weight)
            elif symbol := _SYMBOL.fullmatch(term):
                self._add_literal(re.escape(symbol[1] + ("++" if symbol[2] == "plusplus" else "#")), term, weight)
            elif len(found) > 1:
                self._add_literal(r"(?<![^\W_])" + r"[\W_]+".join(found), term, weight)
            else:
                stem = stems[found[0]]
                self.weights[stem] = max(weight, self.weights.get(stem, 0.0))
                self.terms[stem] = term
                if term.endswith("*"):
                    self._beginnings.append(stem)
        # The last letter of a stem may be another one in the text: cries, cry.
        self._starts = {_bare(stem)[: max(1, len(stem) - 1)] for stem in stems.values() if not needs_cutting(stem)}

    def read(self, chunks: Mapping[int, Candidate]) -> dict[int, Occurrences]:
        """Return the query's words in every section that was read, some more among them."""
        if new := {key: chunk for key, chunk in chunks.items() if key not in self.occurrences}:
            parts = ((f"{chunk.title}\n{chunk.names}", chunk.headings, chunk.content) for chunk in new.values())
            found = self._find([part for chunk in parts for part in chunk])
            self.occurrences |= zip(new, map(Occurrences, found[::3], found[1::3], found[2::3]), strict=True)
        return self.occurrences

    def name_terms(self, key: int) -> tuple[list[str], list[str]]:
        """Return the terms of the query that a section says or has above it, and those that it lacks."""
        stems = {word.stem for words in self.occurrences[key] for word in words}
        found = [term for stem, term in self.terms.items() if stem in stems]
        return found, [term for term in self.terms.values() if term not in found]

    def _find(self, texts: Sequence[str]) -> list[list[Occurrence]]:
        """Return the query's words in every text. All are searched as one: there are many, and most are short."""
        whole, bare = "\n".join(texts), "\n".join(map(_bare, texts))
        starts = list(itertools.accumulate((len(text) + 1 for text in texts), initial=0))
        found: list[list[Occurrence]] = [[] for _ in texts]

        def add(words: Iterable[tuple[int, str]]) -> None:
            for place, stem in words:
                number = bisect.bisect_right(starts, place) - 1
                found[number].append(Occurrence(place - starts[number], stem))

        add(self._find_forms(whole, bare))
        for literal, pattern in self._literals.items():  # which must not begin in one text and end in the next
            for words, text in zip(found, texts, strict=True):
                words += [Occurrence(match.start(), literal) for match in pattern.finditer(text)]
        add(self._find_parts(whole))
        return found

    def _find_forms(self, text: str, bare: str) -> Iterator[tuple[int, str]]:
        """Yield where a text has a form of a word of the query, and its stem; words that begin alike are stemmed."""
        places = sorted({place for start in self._starts for place in _find_all(bare, start)})
        beginnings = (place for place in places if not (place and bare[place - 1].isalnum()))
        words = {place: found.group() for place in beginnings if (found := _TOKEN.match(text, place))}
        stems = self._index.stems(set(words.values()))
        for place, word in words.items():
            stem = stems[word]
            if stem not in self.weights:
                stem = next((start for start in self._beginnings if stem.startswith(start)), stem)
            if stem in self.weights:
                yield place, stem

    def _add_run(self, term: str, found: Sequence[str], weight: float) -> None:
        """Look for a part of a word, or for words of a script without spaces: a phrase of overlapping parts."""
        word = term.strip('" *')
        is_word = is_glued(word) and " " not in word
        letters = without_marks(word) if is_word else found[0] + "".join(token[-1] for token in found[1:])
        if (is_word or len(found) == 1) and not term.endswith("*"):
            self._parts[letters] = is_word and len(letters) < 3
            self.weights[letters] = weight
            self.terms[letters] = term
        else:
            self._add_literal(r"[^\w\s]*".join(letters), term, weight)  # Thai's marks, say, are none

    def _find_parts(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield where a text has the query's parts of words; signs between letters, such as Thai's marks, are none."""
        letters, places = [], list[int]()
        for run in _LETTERS.finditer(text) if self._parts else ():
            letters.append(run.group())
            places.extend(range(run.start(), run.end()))
        bare = "".join(letters)
        for part, is_word in self._parts.items():
            for place in _find_all(bare, part):
                if is_word and (bare[place - 1 : place].isalnum() or bare[place + len(part) :][:1].isalnum()):
                    continue
                yield places[place], part

    def _add_literal(self, expression: str, term: str, weight: float) -> None:
        """Look for a phrase, a name, or a term of a script without spaces as it is."""
        self._literals[expression] = re.compile(f"(?={expression})", re.IGNORECASE)
        self.weights[expression] = weight
        self.terms[expression] = term


def _find_all(text: str, part: str) -> Iterator[int]:
    """Yield every place where a text has a part."""
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _bare(text: str) -> str:
    """Return a text in small letters, and as long, without the accents that the index's tokenizer leaves out.

    Example:
        >>> _bare("Größe, İzmir, ÉTÉ")
        'große, izmir, ete'
    """
    if text.isascii():
        return text.lower()
    return _ACCENTED.sub(lambda letter: unicodedata.normalize("NFKD", letter[0])[0], text.replace("İ", "i").lower())


def find_passages(
    finder: WordFinder | None,
    chunks: Mapping[int, Candidate],
    nearness: Mapping[int, Sequence[float]] | None = None,
) -> list[Passage]:
    """Return the passages that say a word of the query or stand out by their `nearness`.

    A section without either is a passage by itself, worth nothing by its words.
    """
    occurrences = finder.read(chunks) if finder else {}
    weights = finder.weights if finder else {}
    passages: list[Passage] = []
    for key, chunk in chunks.items():
        near = (nearness or {}).get(key, ())
        passages += _cut(weights, near, chunk, occurrences.get(key, Occurrences((), (), ())))
    return passages


def _cut(
    weights: Mapping[str, float], near: Sequence[float], chunk: Candidate, occurrences: Occurrences
) -> list[Passage]:
    above, passages = _count_above(occurrences, {}), list[Passage]()
    pieces = cut_passages(chunk.content) if any(occurrences) or any(near) else ()
    is_said_above = not (occurrences.content or any(near))
    for number, (start, end, _) in enumerate(pieces):
        found = [word for word in occurrences.content if start <= word.start < end]
        if found or any(near[number : number + 1]) or (is_said_above and not number):
            own = _score(weights, _count(found, 1.0, above), (end - start) / _USUAL)
            passages.append(Passage(chunk.key, number, number == len(pieces) - 1, start, end, own))
    return passages or [Passage(chunk.key, 0, True, 0, len(chunk.content), _score(weights, above, 0))]


def score_entries(index: Index, finder: WordFinder, chunks: Mapping[int, Candidate]) -> dict[int, float]:
    """Return what the query's words are worth in the whole entry of every section, by the section's key.

    A section that was read counts a word as often as it says it, any other of the entry once. An entry that is about
    all of the query, a part of it here and a part there, is worth more than one that says the same words in one place.
    """
    neighbours = frozenset(index.neighbours(chunks))

    def find_entry(chunk: Candidate) -> tuple[int, ...]:  # its sections follow each other, others do not
        return tuple(itertools.takewhile(neighbours.__contains__, itertools.count(chunk.key - chunk.part)))

    entries = dict.fromkeys(map(find_entry, chunks.values()))
    unread = [key for entry in entries for key in entry if key not in chunks]
    matching = index.matching(finder.terms.values(), unread) if unread else {}
    others = {stem: matching[term] for stem, term in finder.terms.items()} if unread else {}
    sizes = {entry: sum(len(chunks[key].content) if key in chunks else _UNREAD for key in entry) for entry in entries}
    # Beside others as long no entry is long: the files of a log, say.
    usual = max(_USUAL_ENTRY, min(sizes.values(), default=0))
    occurrences, scores = finder.read(chunks), dict[int, float]()
    for entry, size in sizes.items():
        read = [key for key in entry if key in chunks]
        counts = {stem: float(len(sections.intersection(entry))) for stem, sections in others.items()}
        for key in read:
            counts = _count(occurrences[key].content, 1.0, _count_above(occurrences[key], counts))
        scores |= dict.fromkeys(read, _score(finder.weights, counts, size / usual))
    return scores


def _count_above(occurrences: Occurrences, before: Mapping[str, float]) -> dict[str, float]:
    return _count(occurrences.headings, HEADING_TIMES, _count(occurrences.title, TITLE_TIMES, before))


def _count(words: Sequence[Occurrence], times: float, before: Mapping[str, float]) -> dict[str, float]:
    counts = dict(before)
    for word in words:
        counts[word.stem] = counts.get(word.stem, 0.0) + times
    return counts


def _score(weights: Mapping[str, float], counts: Mapping[str, float], length: float) -> float:
    """Return what words are worth in a text of some times the usual length: BM25 by the statistics of sections."""
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * length)
    return sum(weights[stem] * count * (_SATURATION + 1) / (count + norm) for stem, count in counts.items())
