"""Make the rows of postings from the words of a full-text index."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from memory_kb.index.postgres_schema import BLOCK_BITS, LENGTH_BITS, MOST_TERM_CHARS
from memory_kb.index.vectors import batched
from memory_kb.index.words import COLUMN_BITS, PLACE_BITS, TermTable

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

#: Where a number has how often each column of a chunk says a term, and the most that fits: a content is the longest.
COUNTS = ((15, 255), (23, 255), (0, 32_767), (31, 255), (39, 255), (47, 255), (55, 255))
#: Terms that are worked on at a time.
_TERMS = 500
#: The columns of a row.
POSTING = "vault, block, term, heads, counts, places"


def posting_rows(
    vault: int, table: TermTable, keys: Mapping[int, int]
) -> Iterator[tuple[int, int, str, str, str, str]]:
    """Yield the rows for the chunks that have a key, given by their numbers in the table; both ascend."""
    import numpy as np

    size = 1 + max(table.lengths, default=0)
    key_of, length_of = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    key_of[list(keys)] = list(keys.values())
    length_of[list(table.lengths)] = np.minimum(list(table.lengths.values()), (1 << LENGTH_BITS) - 1)
    shifts, most = map(np.array, zip(*COUNTS, strict=True))
    for some in batched(
        (one for one in table.terms if len(one.term) <= MOST_TERM_CHARS and "\0" not in one.term), _TERMS
    ):
        values = np.fromstring(",".join(one.places for one in some), np.int64, sep=",")
        term = np.repeat(np.arange(len(some)), [one.number for one in some])
        has_key = key_of[values >> (PLACE_BITS + COLUMN_BITS)] >= 0
        values, term = values[has_key], term[has_key]
        chunk, column = values >> (PLACE_BITS + COLUMN_BITS), values >> PLACE_BITS & ((1 << COLUMN_BITS) - 1)
        key = key_of[chunk]
        number = key & ((1 << BLOCK_BITS) - 1)
        by_row, by_chunk, by_column = _starts(term, key >> BLOCK_BITS), _starts(term, key), _starts(term, key, column)
        times = np.minimum(np.diff(by_column, append=len(term)), most[column[by_column]]) << shifts[column[by_column]]
        counts = np.add.reduceat(times, np.searchsorted(by_column, by_chunk)) if len(term) else times
        heads = (number << LENGTH_BITS | length_of[chunk])[by_chunk]
        places = number << (PLACE_BITS + COLUMN_BITS) | values & ((1 << (PLACE_BITS + COLUMN_BITS)) - 1)
        first = np.searchsorted(by_chunk, by_row)
        arrays = _arrays(heads, first), _arrays(counts, first), _arrays(places, by_row)
        names = (some[place].term for place in term[by_row])
        yield from zip(itertools.repeat(vault), (key >> BLOCK_BITS)[by_row].tolist(), names, *arrays, strict=False)


def _starts(*columns: Array) -> Array:
    """Return where one of the columns changes."""
    import numpy as np

    differs = np.ones(len(columns[0]), np.bool_)
    differs[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(differs)


def _arrays(numbers: Array, starts: Array) -> Iterator[str]:
    """Yield arrays of the numbers from a start to the next."""
    listed = numbers.tolist()
    for start, end in itertools.pairwise((*starts.tolist(), len(listed))):
        yield f"{{{str(listed[start:end])[1:-1]}}}"
