"""Write postings as rows of PostgreSQL's binary COPY."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from memory_kb.index.postgres_schema import BLOCK_BITS, LENGTH_BITS, MOST_TERM_CHARS
from memory_kb.index.words import COLUMN_BITS, PLACE_BITS, TermPlaces, TermTable

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

#: Where a number has how often each column of a chunk says a term, and the most that fits: a content is the longest.
COUNTS = ((0, 255), (8, 255), (48, 32_767), (16, 255), (24, 255), (32, 255), (40, 255))
#: What comes before all rows and after them.
HEAD, TAIL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
#: Places that are worked on at a time.
_BATCH = 250_000
_INTEGER, _BIGINT = 23, 20


def posting_rows(vault: int, table: TermTable, keys: Mapping[int, int]) -> Iterator[bytes]:
    """Yield rows of `postings`, many at a time, for the chunks that have a key, given by their numbers in the table; both ascend."""
    import numpy as np

    size = 1 + max(table.lengths, default=0)
    key_of, length_of = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    key_of[list(keys)] = list(keys.values())
    length_of[list(table.lengths)] = list(table.lengths.values())
    for some in _batches(table.terms):
        values = np.fromstring(",".join(one.places for one in some), np.int64, sep=",")
        term = np.repeat(np.arange(len(some)), [one.number for one in some])
        has_key = key_of[values >> (PLACE_BITS + COLUMN_BITS)] >= 0
        values, term = values[has_key], term[has_key]
        if len(values):
            doc = values >> (PLACE_BITS + COLUMN_BITS)
            yield b"".join(
                _rows(vault, [one.term.encode() for one in some], term, values, (key_of[doc], length_of[doc]))
            )


def _batches(terms: Iterable[TermPlaces]) -> Iterator[list[TermPlaces]]:
    some: list[TermPlaces] = []
    total = 0
    for one in terms:
        if len(one.term) <= MOST_TERM_CHARS and "\0" not in one.term:
            some.append(one)
            total += one.number
        if total > _BATCH:
            yield some
            some, total = [], 0
    if some:
        yield some


def _rows(vault: int, names: list[bytes], term: Array, values: Array, of_chunk: tuple[Array, Array]) -> Iterator[bytes]:
    """Yield the rows of some places: the number of the term of each, the place, and the key and length of its chunk."""
    import numpy as np

    def starts(*columns: Array) -> Array:
        """Return where one of the columns changes."""
        differs = np.ones(len(term), np.bool_)
        differs[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        return np.flatnonzero(differs)

    key, length = of_chunk
    number, column = key & ((1 << BLOCK_BITS) - 1), values >> PLACE_BITS & ((1 << COLUMN_BITS) - 1)
    by_row, by_chunk = starts(term, key >> BLOCK_BITS), starts(term, key)
    by_column = starts(term, key, column)
    shifts, most = (np.array(one)[column[by_column]] for one in zip(*COUNTS, strict=True))
    times = np.minimum(np.diff(by_column, append=len(term)), most) << shifts
    heads = number << LENGTH_BITS | np.minimum(length, (1 << LENGTH_BITS) - 1)
    places = number << (PLACE_BITS + COLUMN_BITS) | values & ((1 << (PLACE_BITS + COLUMN_BITS)) - 1)
    said = np.add.reduceat(times, np.searchsorted(by_column, by_chunk))
    first = np.searchsorted(by_chunk, by_row)
    arrays = _arrays(_INTEGER, heads[by_chunk], first), _arrays(_BIGINT, said, first), _arrays(_INTEGER, places, by_row)
    for row, *columns in zip(by_row, *arrays, strict=True):
        name = names[term[row]]
        start = struct.pack(">hiiiqi", 6, 4, vault, 8, key[row] >> BLOCK_BITS, len(name))
        yield b"".join((start, name, *columns))


def _arrays(kind: int, numbers: Array, starts: Array) -> Iterator[bytes]:
    """Yield arrays as PostgreSQL receives them, each of the numbers from a start to the next."""
    import numpy as np

    width = 4 if kind == _INTEGER else 8
    elements = np.empty(len(numbers), np.dtype([("size", ">i4"), ("number", f">i{width}")]))
    elements["size"], elements["number"] = width, numbers
    joined, size = elements.tobytes(), 4 + width
    for start, end in itertools.pairwise((*starts.tolist(), len(numbers))):
        data = joined[start * size : end * size]
        yield struct.pack(">iiiiii", 20 + len(data), 1, 0, kind, end - start, 1) + data
