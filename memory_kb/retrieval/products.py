"""The product of many rows and one vector, worked on by as many threads as come along.

A library for linear algebra shares a product out among all cores too, but in equal parts, and
waits for the last of them: beside a full-text query that keeps one core busy that takes longer
than on a single core. And OpenBLAS keeps the other cores busy with waiting for a tenth of a
second after each product. Here each thread takes the next small part when it is done with one.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

#: Numbers in one part, about a millisecond's work.
_PART = 1 << 21


class Product:
    """The products of some rows and a vector; whole when every call of `work` has come back."""

    def __init__(self, rows: Floats, vector: Floats) -> None:
        import numpy as np

        self._rows, self.vector = rows, vector
        self._length = max(1, _PART // max(1, rows.shape[1]))
        self._starts = deque(range(0, len(rows), self._length))
        self.values: Floats = np.empty(len(rows), np.float32)

    @property
    def parts(self) -> int:
        """The number of parts that nobody has begun."""
        return len(self._starts)

    def work(self) -> None:
        """Do parts until none is left that nobody has begun."""
        import numpy as np

        while True:
            try:
                start = self._starts.popleft()
            except IndexError:
                return
            stop = start + self._length
            # One dot product a row: numpy lets other threads go on, and no library starts more of them.
            np.vecdot(self._rows[start:stop], self.vector, out=self.values[start:stop])


def multiply(rows: Floats, vector: Floats) -> Floats:
    """Return the product of every row and a vector.

    Example:
        >>> import numpy as np
        >>> multiply(np.array([[1, 2], [3, 4]], np.float32), np.array([10, 1], np.float32)).tolist()
        [12.0, 34.0]
    """
    product = Product(rows, vector)
    with helping(product):
        pass
    return product.values


@contextlib.contextmanager
def helping(product: Product) -> Iterator[None]:
    """Let the other cores work on a product meanwhile; at the end it is whole."""
    from concurrent.futures import ThreadPoolExecutor

    helpers = max(1, min(product.parts, count_cores() - 1))
    with ThreadPoolExecutor(helpers) as pool:
        begun = [pool.submit(product.work) for _ in range(helpers)]
        yield
        product.work()
        for each in begun:
            each.result()


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
