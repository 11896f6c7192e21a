"""Look for phrases in a few chunks of a team's index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memory_kb.index.postgres_schema import BLOCK_BITS, KEY_BITS
from memory_kb.index.postgres_words import LAST, PLACE_KEY, Bm25, Phrase, QueryNode, has_choice_only, phrases_of
from memory_kb.index.words import COLUMN_BITS, PLACE_BITS

if TYPE_CHECKING:
    from psycopg import Connection

#: A term, and whether any that begins like it will do.
Word = tuple[str, bool]
_IN_CHUNK = (1 << (PLACE_BITS + COLUMN_BITS)) - 1
_QUERY = f"""SELECT term, key, place & {_IN_CHUNK} FROM (
    SELECT term, {PLACE_KEY} AS key, place FROM (
        SELECT p.term, p.block, unnest(p.places) AS place
        FROM unnest(%(blocks)s::bigint[]) b JOIN postings p ON p.block = b AND p.vault = (b >> {KEY_BITS - BLOCK_BITS})::integer
        WHERE {{condition}}) s) k WHERE key = ANY(%(keys)s::bigint[])"""


class ChunkPlaces:
    """Where words are in some chunks; what was asked once is known."""

    def __init__(self, connection: Connection, keys: Sequence[int]) -> None:
        self._connection, self.keys = connection, tuple(keys)
        self._said: dict[Word, dict[int, set[int]]] = {}
        self._lengths: dict[int, int] = {}

    def ranks(self, node: QueryNode, weights: Sequence[float], bm25: Bm25) -> dict[int, float]:
        """Return the BM25 of an expression in the chunks that it matches, better is more negative."""
        phrases = list(phrases_of(node))
        self._read(phrases)
        found = [(phrase, starts) for phrase in phrases if (starts := self._starts(phrase))]
        wanted = None if has_choice_only(node) else self.matching(node)
        lengths = self._read_lengths({key for _, starts in found for key in starts})
        ranks: dict[int, float] = defaultdict(float)
        # What nothing here says has not to be counted, which takes longest.
        for phrase, starts in found:
            rarity, (fixed, growing) = bm25.find_rarity(phrase), bm25.damping
            for key, places in starts.items():
                freq = sum(weights[place >> PLACE_BITS] for place in places)
                ranks[key] -= rarity / (1 + (fixed + growing * lengths[key]) / freq)
        return {key: rank for key, rank in ranks.items() if wanted is None or key in wanted}

    def matching(self, node: QueryNode) -> set[int]:
        """Return the keys of the chunks that an expression matches."""
        if node.left and node.right:
            left, right = self.matching(node.left), self.matching(node.right)
            return left | right if node.operator == "OR" else left & right if node.operator == "AND" else left - right
        assert node.phrase
        self._read([node.phrase])
        return set(self._starts(node.phrase))

    def _starts(self, phrase: Phrase) -> dict[int, set[int]]:
        """Return where a phrase starts, by chunk: a term is as many places later as it has before it."""
        found: dict[int, set[int]] | None = None
        for number, word in enumerate(_words(phrase)):
            said = {key: {place - number for place in places} for key, places in self._said[word].items()}
            found = said if found is None else {key: found[key] & said[key] for key in found.keys() & said.keys()}
        return {key: starts for key, starts in (found or {}).items() if starts}

    def _read(self, phrases: Iterable[Phrase]) -> None:
        """Read where the words of some phrases are, if that is not known."""
        new = {word for phrase in phrases for word in _words(phrase)} - self._said.keys()
        self._said |= {word: defaultdict(set) for word in new}
        values: dict[str, object] = {
            "blocks": sorted({key >> BLOCK_BITS for key in self.keys}),
            "keys": list(self.keys),
            "terms": sorted(term for term, is_open in new if not is_open),
        }
        if values["terms"]:
            for term, key, place in self._connection.execute(
                _QUERY.format(condition="p.term = ANY(%(terms)s)").encode(), values
            ):
                self._said[term, False][key].add(place)
        for term, is_open in new:
            if is_open:
                values |= {"first": term, "last": term + LAST}
                condition = "p.term >= %(first)s AND p.term < %(last)s"
                for _, key, place in self._connection.execute(_QUERY.format(condition=condition).encode(), values):
                    self._said[term, True][key].add(place)

    def _read_lengths(self, keys: set[int]) -> dict[int, int]:
        if new := keys - self._lengths.keys():
            rows = self._connection.execute("SELECT key, length FROM chunks WHERE key = ANY(%s)", (list(new),))
            self._lengths |= dict(rows.fetchall())
        return self._lengths


def _words(phrase: Phrase) -> list[Word]:
    last = len(phrase.terms) - 1
    return (
        [(term, phrase.is_open and number == last) for number, term in enumerate(phrase.terms)]
        if phrase.is_findable
        else []
    )
