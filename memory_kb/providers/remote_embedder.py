"""Embed texts over the network, and check the vectors."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from memory_kb.errors import ProviderFailed
from memory_kb.providers.http import ProviderCalls, Refused
from memory_kb.providers.protocols import Limits, Purpose, VectorSpace
from memory_kb.text import printable

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    from numpy.typing import NDArray

    from memory_kb.providers.protocols import Vectors

    #: Sends texts and returns one row for each; raises `Refused` for texts it cannot take.
    Ask = Callable[[Sequence[str]], Vectors]

#: Embedded instead of a text that has nothing to embed; providers refuse empty texts.
STAND_IN = "."
#: Plain English has about four characters to a token, dense code three.
_ASCII_PER_TOKEN = 3


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few.

    Example:
        >>> estimate_tokens("abcdef"), estimate_tokens("検索"), estimate_tokens("")
        (2, 2, 0)
    """
    plain = len(text) if text.isascii() else sum(map(str.isascii, text))
    return math.ceil(plain / _ASCII_PER_TOKEN) + len(text) - plain


def _readable(text: str) -> str:
    """Return a text a provider takes: not empty, no half characters."""
    return printable(text) if text.strip() else STAND_IN


class RemoteEmbedder:
    """An embedding model over the network.

    A dimension of 0 in its space is learned from the first answer. `ask` returns a row for each of some texts, within
    some seconds.
    """

    def __init__(
        self,
        calls: ProviderCalls,
        space: VectorSpace,
        limits: Limits,
        ask: Callable[[Any, Sequence[str], Purpose, float], NDArray[np.float32]],
    ) -> None:
        self._calls, self._ask = calls, ask
        self.space, self.limits = space, limits
        self._lock = threading.Lock()
        self._opened: tuple[Any, httpx2.Client] | None = None

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        import numpy as np

        with self._lock:
            endpoint = self._calls.endpoint
            client, _ = self._opened = self._opened or endpoint.open_client(endpoint.base_url, endpoint.key)
        pace = self._calls.timing.paces[purpose]
        deadline = self._calls.deadline(pace)

        def ask(batch: Sequence[str]) -> Vectors:
            rows = self._calls.call(lambda seconds: self._ask(client, batch, purpose, seconds), pace, deadline)
            vectors = check_vectors(rows, len(batch), self.space.dimension, self._calls.endpoint.name)
            self.space = self.space._replace(dimension=vectors.shape[1])
            return vectors

        readable = list(map(_readable, texts))
        return ask_all(readable, ask, self._calls) if readable else np.zeros((0, 0), np.float32)

    def close(self) -> None:
        self._calls.close()
        with self._lock:
            opened, self._opened = self._opened, None
        if opened:
            opened[1].close()


def ask_all(texts: Sequence[str], ask: Ask, calls: ProviderCalls) -> Vectors:
    """Return the vectors of a batch, even if some of its texts are refused or get a vector of zeros.

    Such a batch is halved until the text at fault is found, and that text is cut in half until what is left of it is
    taken.
    """
    import numpy as np

    try:
        return ask(texts)
    except Refused as refused:
        if len(texts) > 1:
            middle = len(texts) // 2
            return np.concatenate([ask_all(texts[:middle], ask, calls), ask_all(texts[middle:], ask, calls)])
        if texts[0] == STAND_IN:
            raise calls.note_failure(refused) from None
    return ask_all([_readable(texts[0][: len(texts[0]) // 2])], ask, calls)


def check_vectors(rows: NDArray[np.float32], count: int, dimension: int, name: str) -> Vectors:
    """Return vectors as float32 of length 1, or raise if number or dimension are wrong; `dimension` 0 takes any."""
    import numpy as np

    if rows.ndim != 2 or len(rows) != count:
        raise ProviderFailed(f"{name} answered with {len(rows) if rows.ndim else 0} vectors for {count} texts")
    if rows.shape[1] == 0 or dimension not in (0, rows.shape[1]):
        raise ProviderFailed(
            f"{name} answered with vectors of {rows.shape[1]} dimensions, not {dimension}",
            "set embeddings.dimensions to what the model gives, or choose another embeddings.model",
        )
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise Refused("malformed", "a vector is zero or no number")
    vectors: Vectors = (wide / lengths).astype(np.float32)
    return vectors
