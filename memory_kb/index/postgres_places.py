"""Look for phrases in a few chunks of a team's index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memory_kb.index.postgres_schema import BLOCK_BITS, KEY_BITS
from memory_kb.index.postgres_words import PLACE_KEY, Phrase
from memory_kb.index.words import COLUMN_BITS, PLACE_BITS

if TYPE_CHECKING:
    from psycopg import Connection

#: Row security looks keys up in an index only where they are not computed in the same place, hence the OFFSET.
_QUERY = f"""SELECT term, key, place & {(1 << (PLACE_BITS + COLUMN_BITS)) - 1}, c.length FROM (
    SELECT term, {PLACE_KEY} AS key, place FROM (
        SELECT p.term, p.block, unnest(p.places) AS place
        FROM unnest(%(blocks)s::bigint[]) b
        JOIN postings p ON p.block = b AND p.vault = (b >> {KEY_BITS - BLOCK_BITS})::integer
        WHERE p.term = ANY(%(terms)s)) s
    WHERE {PLACE_KEY} = ANY(%(keys)s::bigint[]) OFFSET 0) k JOIN chunks c USING (key)"""


class ChunkPlaces:
    """Where terms are in some chunks; what was asked once is known."""

    def __init__(self, connection: Connection, keys: Sequence[int]) -> None:
        self._connection, self.keys = connection, tuple(keys)
        self._said: dict[str, dict[int, set[int]]] = {}
        #: The length of each chunk that says one of the terms.
        self.lengths: dict[int, int] = {}

    def read(self, phrases: Iterable[Phrase]) -> None:
        """Read where the terms of some phrases are, if that is not known."""
        new = {term for phrase in phrases for term in phrase.terms} - self._said.keys()
        self._said |= {term: defaultdict(set) for term in new}
        blocks = sorted({key >> BLOCK_BITS for key in self.keys})
        values = {"blocks": blocks, "keys": list(self.keys), "terms": sorted(new)}
        for term, key, place, length in self._connection.execute(_QUERY.encode(), values) if new else ():
            self._said[term][key].add(place)
            self.lengths[key] = length

    def starts(self, phrase: Phrase) -> dict[int, set[int]]:
        """Return where a phrase starts, by chunk: a term is as many places later as it has before it."""
        self.read([phrase])
        found: dict[int, set[int]] = {}
        for number, term in enumerate(phrase.terms):
            said = {key: {place - number for place in places} for key, places in self._said[term].items()}
            found = {key: found[key] & said[key] for key in found.keys() & said.keys()} if number else said
        return {key: starts for key, starts in found.items() if starts}
