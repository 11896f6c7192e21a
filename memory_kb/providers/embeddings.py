"""Embed texts, check the vectors, and count tokens."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from memory_kb.errors import ProviderFailed
from memory_kb.providers.base import Limits, Purpose, Space, TokenCounter
from memory_kb.providers.http import DOCUMENTS, QUERY, Calls, Connection, Pace, Refused
from memory_kb.text import count_tokens, printable

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    from numpy.typing import NDArray

    from memory_kb.providers.base import Vectors

    #: Sends texts and returns one row for each; raises `Refused` for texts it cannot take.
    Ask = Callable[[Sequence[str]], Vectors]

C = TypeVar("C")

#: What is embedded in place of a text of which nothing can be embedded; providers refuse empty ones.
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


def fit(text: str, tokens: int) -> str:
    """Return a text a provider takes: not empty, no half characters, cut to `tokens`.

    Example:
        >>> fit(" \\n", 10), fit("x" * 100, 3), fit("as it is", 10)
        ('.', 'xxxxxxxxx', 'as it is')
    """
    text = printable(text)
    if estimate_tokens(text) > tokens:
        text = text[: tokens * _ASCII_PER_TOKEN]
        while estimate_tokens(text) > tokens:
            text = text[: int(len(text) * tokens / estimate_tokens(text))]
    return text if text.strip() else STAND_IN


class RemoteEmbedder(Generic[C]):
    """An embedding model over the network.

    Args:
        space: its space; a dimension of 0 is learned from the first answer.
        limits: what it takes at once.
        most_tokens: what it reads of one text.
        calls: the calls to its provider.
        open_client: makes a client of the provider's package, and its line.
        ask: returns a row for each of some texts, within some seconds.
        paces: the time limits for the two purposes.
    """

    def __init__(
        self,
        space: Space,
        limits: Limits,
        most_tokens: int,
        calls: Calls,
        open_client: Callable[[], tuple[C, httpx2.Client]],
        ask: Callable[[C, Sequence[str], Purpose, float], NDArray[np.float32]],
        paces: Mapping[Purpose, Pace] | None = None,
    ) -> None:
        self.space = space
        self.limits = limits
        self._most_tokens = most_tokens
        self._calls = calls
        self._connection = Connection(open_client)
        self._ask = ask
        self._paces = {"document": DOCUMENTS, "query": QUERY} if paces is None else paces

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        import numpy as np

        client, pace = self._connection.get(), self._paces[purpose]
        deadline = self._calls.deadline(pace)

        def ask(batch: Sequence[str]) -> Vectors:
            rows = self._calls.call(lambda seconds: self._ask(client, batch, purpose, seconds), pace, deadline)
            vectors = check_vectors(rows, len(batch), self.space.dimension, self._calls.service.name)
            self.space = self.space._replace(dimension=vectors.shape[1])
            return vectors

        fitting = [fit(text, self._most_tokens) for text in texts]
        return ask_all(fitting, ask, self._calls) if fitting else np.zeros((0, 0), np.float32)

    def close(self) -> None:
        self._calls.close()
        self._connection.close()


def ask_all(texts: Sequence[str], ask: Ask, calls: Calls) -> Vectors:
    """Return the vectors of a batch, even if some of its texts are refused or get no direction.

    A refused batch is halved until the text at fault is found, and that text is cut in half
    until what is left of it is taken. So is a text whose vector is zero or no number.

    Raises:
        ProviderFailed: even the simplest text is refused, or gets no direction.
    """
    import numpy as np

    try:
        vectors = ask(texts)
    except Refused as refused:
        if len(texts) == 1:
            if texts[0] == STAND_IN:
                raise calls.note_failure(refused.refusal) from None
            return ask_all([_half(texts[0])], ask, calls)
        middle = len(texts) // 2
        return np.concatenate([ask_all(texts[:middle], ask, calls), ask_all(texts[middle:], ask, calls)])
    for row in np.flatnonzero(np.isnan(vectors[:, 0])).tolist():
        if texts[row] == STAND_IN:
            said = f"{calls.service.name} answered with a vector that is zero or no number"
            raise ProviderFailed(said, "choose another embeddings.model", is_passing=True)
        # Among others it may have come broken once.
        again = texts[row] if len(texts) > 1 else _half(texts[row])
        vectors[row] = ask_all([again], ask, calls)[0]
    return vectors


def _half(text: str) -> str:
    return fit(text[: len(text) // 2], len(text))


def check_vectors(rows: NDArray[np.float32], count: int, dimension: int, name: str) -> Vectors:
    """Return vectors as float32 of length 1, if they are what was asked for.

    `dimension` 0 takes any. Of a vector that is zero or no number, every number is NaN.

    Raises:
        ProviderFailed: there are too few or too many, or they have another dimension.
    """
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
    lengths[~np.isfinite(lengths) | (lengths == 0)] = np.nan
    vectors: Vectors = (wide / lengths).astype(np.float32)
    return vectors


#: The vocabularies that `auto` looks for, the newer one first.
_COMMON = ("o200k_base", "cl100k_base")
ESTIMATE = "estimate"


class ChosenCounter(NamedTuple):
    """What counts tokens, by which vocabulary, and why it is the estimate where another was asked for."""

    count: TokenCounter
    name: str = ESTIMATE
    notice: str = ""


def choose_counter(wanted: str) -> ChosenCounter:
    """Return what counts tokens: the estimate, a vocabulary by its name, or for `auto` the first that is here.

    Nothing is fetched: a vocabulary that tiktoken does not find in its cache is not there.

    Example:
        >>> choose_counter("estimate").count("12345")
        2
    """
    if wanted == ESTIMATE:
        return ChosenCounter(count_tokens)
    names = _COMMON if wanted == "auto" else (wanted,)
    why = ""
    for name in names:
        try:
            return ChosenCounter(_load(name), name)
        except ImportError:
            why = "tiktoken is not installed (`pip install 'memory-kb[tokens]'`)"
            break
        except Exception as exc:  # noqa: BLE001 - plugins of tiktoken raise what they like
            why = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
    notice = "" if wanted == "auto" else f"tokens are estimated, not counted by {wanted}: {why}"
    return ChosenCounter(count_tokens, notice=notice)


def _load(name: str) -> TokenCounter:
    import tiktoken

    with _offline():
        encoding = tiktoken.get_encoding(name)
    # What looks like a model's control token is text here.
    return lambda text: len(encoding.encode(text, disallowed_special=()))


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep tiktoken, in this thread, from fetching what it lacks."""
    from tiktoken import load

    fetch, mine = load.read_file, threading.get_ident()

    def refuse(blobpath: str) -> bytes:
        if threading.get_ident() != mine or "://" not in blobpath:
            return fetch(blobpath)
        raise FileNotFoundError("its vocabulary is not in tiktoken's cache (TIKTOKEN_CACHE_DIR)")

    load.read_file = refuse
    try:
        yield
    finally:
        load.read_file = fetch
