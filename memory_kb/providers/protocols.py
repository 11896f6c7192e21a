"""The protocols of embedding and language models."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: One vector per row, float32, each of length 1.
    Vectors = NDArray[np.float32]
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

#: Returns how many tokens a text has.
TokenCounter = Callable[[str], int]


#: The use of an embedded text: to be found, or to search with. Some models treat the two differently.
Purpose = Literal["document", "query"]


class VectorSpace(NamedTuple):
    """The model that vectors come from; only vectors of one space can be compared.

    `dimension` 0 means that it is not known before the model has answered once.
    """

    provider: str
    model: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.provider} {self.model}"


class Limits(NamedTuple):
    """The most that a provider takes in one request; more texts are sent in batches.

    `texts` and `tokens` are for one request, `parallel` is the number of requests at a time, and
    `price` is in US dollars for a million tokens, 0 where it costs nothing, None if unknown.
    """

    texts: int
    tokens: int
    parallel: int = 1
    price: float | None = 0.0


class Embedder(Protocol):
    """A model that turns texts into vectors.

    Making one is cheap; whatever is heavy is loaded by the first call of `embed`.
    """

    @property
    def space(self) -> VectorSpace:
        """The space of its vectors."""

    @property
    def limits(self) -> Limits:
        """The most that one request may hold."""

    def embed(self, texts: Sequence[str], purpose: Purpose) -> "Vectors":
        """Return a vector of length 1 for every text, in their order.

        A text longer than the model reads is cut or windowed, never refused. It may be called
        from several threads.

        Raises:
            ProviderFailed: the model cannot be reached or loaded, or does not answer as it should.
        """

    def close(self) -> None:
        """Close connections and free memory."""


def form_of(properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON schema of an object that has these properties, all of them and no others.

    Example:
        >>> form_of({"cause": {"type": "string"}})["required"]
        ['cause']
    """
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class Llm(Protocol):
    """A language model that fills in a form."""

    def complete(self, prompt: str, schema: Mapping[str, object], *, timeout: float) -> Mapping[str, Any]:
        """Return an object that fits a JSON schema.

        Raises:
            ProviderFailed: there is no such answer within `timeout` seconds.
            SpendLimitReached: the day's budget is spent.
        """


def is_loopback(url: str | None) -> bool:
    """Return whether an address is on this machine.

    Example:
        >>> is_loopback("http://localhost:11434/v1"), is_loopback("http://[::1]/v1"), is_loopback("https://api.openai.com/v1")
        (True, True, False)
    """
    import ipaddress
    from urllib.parse import urlsplit

    try:
        host = urlsplit(url or "").hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def display_host(url: str) -> str:
    """Return the host and port of an address, for messages: never a password.

    Example:
        >>> display_host("http://me:secret@localhost:11434/v1?key=x")
        'localhost:11434'
    """
    from urllib.parse import urlsplit

    return urlsplit(url).netloc.rpartition("@")[2]
