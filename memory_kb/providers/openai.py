"""Embedding and language models of OpenAI and compatible endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memory_kb.errors import ProviderFailed
from memory_kb.providers.http import Endpoint, ProviderCalls, Timing, open_http_client
from memory_kb.providers.llm import OUTPUT_TOKENS, FormRequest, RemoteLlm, Reply
from memory_kb.providers.protocols import Limits, Llm, Purpose, VectorSpace, is_loopback
from memory_kb.providers.remote_embedder import RemoteEmbedder
from memory_kb.providers.spending import SpendLog, TokenUsage

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    import openai
    from numpy.typing import NDArray


USUAL_ADDRESS = "https://api.openai.com/v1"
USUAL_MODEL = "text-embedding-3-small"
#: Dimension, and dollars for a million tokens.
_KNOWN = {
    "text-embedding-3-small": (1536, 0.02),
    "text-embedding-3-large": (3072, 0.13),
    "text-embedding-ada-002": (1536, 0.10),
}
#: Servers without a key still want a header.
_NO_KEY = "none"


def open_client(base_url: str | None, key: str | None) -> tuple[openai.OpenAI, httpx2.Client]:
    """Return a client of the package that takes nothing from the environment, and its HTTP client."""
    import openai

    address = base_url or USUAL_ADDRESS
    http_client = open_http_client(address, {"authorization": f"Bearer {key or _NO_KEY}"})
    return openai.OpenAI(api_key=key or _NO_KEY, base_url=address, http_client=http_client, max_retries=0), http_client


def _endpoint(base_url: str | None, key: str | None, setting: str) -> Endpoint:
    return Endpoint("openai", "OpenAI", base_url, key or "", "OPENAI_API_KEY", setting, open_client)


def openai_embedder(
    model: str | None = None,
    base_url: str | None = None,
    dimensions: int = 0,
    *,
    key: str | None = None,
    timing: Timing | None = None,
) -> RemoteEmbedder:
    """Return an embedding model of OpenAI, or of a server at `base_url` that speaks like it and may want no key.

    `dimensions` is how many numbers the model is asked for; 0 takes as many as it gives.
    """
    name = model or USUAL_MODEL
    known, price = _KNOWN.get(name, (0, None))
    endpoint = _endpoint(base_url, key, "embeddings")

    def ask(client: openai.OpenAI, texts: Sequence[str], _: Purpose, seconds: float) -> NDArray[np.float32]:
        options: dict[str, Any] = {"dimensions": dimensions} if dimensions else {}
        answer = client.embeddings.create(
            input=list(texts),
            model=name,
            encoding_format="float",  # what every compatible server knows
            timeout=seconds,
            **options,
        )
        return _rows_of(answer, endpoint.name)

    return RemoteEmbedder(
        ProviderCalls(endpoint, timing),
        VectorSpace("openai", name, dimensions or known),
        Limits(texts=128, tokens=40_000, parallel=4, price=0.0 if is_loopback(base_url) else price),
        ask,
    )


def _rows_of(answer: object, name: str) -> NDArray[np.float32]:
    """Return the vectors of an answer in the order of its texts."""
    import numpy as np

    try:
        data = list(answer.data)  # type: ignore[attr-defined]
        numbers = {item.index for item in data}
        if numbers == set(range(len(data))):
            data.sort(key=lambda item: item.index)
        elif numbers - {0, None}:  # some servers number none of them
            raise ValueError("the vectors are not numbered")  # noqa: TRY301 - handled like any other
        rows = [np.array(item.embedding, np.float32) for item in data]
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)
    except (AttributeError, TypeError, ValueError) as exc:
        raise ProviderFailed(
            f"{name} answered with something other than vectors", "check embeddings.base_url; it usually ends in /v1"
        ) from exc


USUAL_LLM = "gpt-5.4-mini"


def openai_llm(
    model: str | None, base_url: str | None, *, key: str | None, log: SpendLog, timing: Timing | None = None
) -> Llm:
    """Return a model of OpenAI or a server, asked through chat completions, which every compatible one understands."""
    name = model or USUAL_LLM
    limit = "max_tokens" if base_url else "max_completion_tokens"
    # A server on this machine costs nothing, and may have less room than that.
    limits = {} if is_loopback(base_url) else {limit: OUTPUT_TOKENS}

    def ask(client: openai.OpenAI, question: FormRequest) -> Reply:
        options: dict[str, Any] = dict(limits)
        if question.schema:
            form = {"name": "form", "strict": True, "schema": dict(question.schema)}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        answer: Any = client.chat.completions.create(
            model=name, messages=[{"role": "user", "content": question.prompt}], timeout=question.seconds, **options
        )
        # The package passes an answer on as the server shaped it.
        choice = next(iter(getattr(answer, "choices", None) or ()), None)
        text = getattr(getattr(choice, "message", None), "content", None)
        usage = getattr(answer, "usage", None)
        asked, written = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        known = TokenUsage(asked, written) if isinstance(asked, int) and isinstance(written, int) else None
        return Reply(text if isinstance(text, str) else "", known, getattr(choice, "finish_reason", None) == "length")

    return RemoteLlm(_endpoint(base_url, key, "llm"), name, log, ask, timing)
