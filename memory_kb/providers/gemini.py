"""Embedding and language models of Google."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import ProviderFailed
from memory_kb.providers.http import Endpoint, ProviderCalls, Timing, open_http_client
from memory_kb.providers.llm import OUTPUT_TOKENS, FormRequest, RemoteLlm, Reply
from memory_kb.providers.protocols import Limits, Llm, Purpose, VectorSpace, is_loopback
from memory_kb.providers.remote_embedder import RemoteEmbedder
from memory_kb.providers.spending import SpendLog, TokenUsage

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    from google import genai
    from google.genai.types import EmbedContentConfig
    from numpy.typing import NDArray

USUAL_ADDRESS = "https://generativelanguage.googleapis.com"
USUAL_MODEL = "gemini-embedding-001"
#: Dimension, and dollars for a million tokens.
_KNOWN = {"gemini-embedding-001": (3072, 0.15)}
_TASKS: dict[Purpose, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


def open_client(base_url: str | None, key: str) -> tuple[genai.Client, httpx2.Client]:
    """Return a client of the package that takes nothing from the environment, and its HTTP client."""
    import logging

    from google import genai
    from google.genai.client import DebugConfig
    from google.genai.types import HttpOptions

    address = base_url or USUAL_ADDRESS
    http_client = open_http_client(address, {"x-goog-api-key": key})
    options = HttpOptions(
        base_url=address,
        api_version="v1beta",
        httpx_client=http_client,
    )
    # It would warn of two keys in the environment, though it is given one.
    logging.getLogger("google_genai._api_client").setLevel(logging.ERROR)
    try:
        client = genai.Client(
            vertexai=False,
            api_key=key,
            debug_config=DebugConfig(client_mode=None, replays_directory=None, replay_id=None),
            http_options=options,
        )
    except (ImportError, ValueError) as exc:
        http_client.close()
        raise ProviderFailed(f"the google-genai package cannot start: {exc}", "unset GOOGLE_GENAI_* variables") from exc
    return client, http_client


def _endpoint(base_url: str | None, key: str, setting: str) -> Endpoint:
    return Endpoint("gemini", "Gemini", base_url, key, "GOOGLE_API_KEY or GEMINI_API_KEY", setting, open_client)


def gemini_embedder(
    model: str | None = None,
    base_url: str | None = None,
    dimensions: int = 0,
    *,
    key: str,
    timing: Timing | None = None,
) -> RemoteEmbedder:
    """Return an embedding model of Gemini; the arguments are those of `openai_embedder`."""
    name = (model or USUAL_MODEL).removeprefix("models/")
    known, price = _KNOWN.get(name, (0, None))
    endpoint = _endpoint(base_url, key, "embeddings")

    def ask(client: genai.Client, texts: Sequence[str], purpose: Purpose, seconds: float) -> NDArray[np.float32]:
        from google.genai.types import EmbedContentConfig, HttpOptions

        config = EmbedContentConfig(
            task_type=_TASKS[purpose],
            output_dimensionality=dimensions or None,
            http_options=HttpOptions(timeout=max(1, int(1000 * seconds))),
        )
        return _embed(client, name, texts, config, endpoint.name)

    return RemoteEmbedder(
        ProviderCalls(endpoint, timing),
        VectorSpace("gemini", name, dimensions or known),
        # A hundred texts is what it takes at once; more than two requests at a time meet its limits per minute.
        Limits(texts=100, tokens=20_000, parallel=2, price=0.0 if is_loopback(base_url) else price),
        ask,
    )


USUAL_LLM = "gemini-3.8-flash"


def _embed(
    client: genai.Client, model: str, texts: Sequence[str], config: EmbedContentConfig, service: str
) -> NDArray[np.float32]:
    """Return the vectors of some texts, a row for each."""
    import numpy as np
    from google.genai.types import Content, Part

    # Plain texts would be parts of one content to some models, which answer with one vector then.
    contents = [Content(parts=[Part(text=text)]) for text in texts]
    answer = client.models.embed_content(model=model, contents=contents, config=config)
    rows = [item.values or [] for item in answer.embeddings or []]
    if len({len(row) for row in rows}) > 1:
        raise ProviderFailed(f"{service} answered with vectors of different lengths")
    return np.array(rows or np.zeros((0, 0)), np.float32)


def gemini_llm(
    model: str | None, base_url: str | None, *, key: str, log: SpendLog, timing: Timing | None = None
) -> Llm:
    """Return a model of Gemini, or of the server at `base_url`."""
    name = (model or USUAL_LLM).removeprefix("models/")

    def ask(client: genai.Client, question: FormRequest) -> Reply:
        from google.genai.types import AutomaticFunctionCallingConfig, FinishReason, GenerateContentConfig, HttpOptions

        answer = client.models.generate_content(
            model=name,
            contents=question.prompt,
            config=GenerateContentConfig(
                max_output_tokens=OUTPUT_TOKENS,
                response_mime_type="application/json",
                response_json_schema=dict(question.schema) if question.schema else None,
                automatic_function_calling=AutomaticFunctionCallingConfig(disable=True),
                automatic_continuation=False,
                http_options=HttpOptions(timeout=max(1, int(1000 * question.seconds))),
            ),
        )
        parts = [
            part for choice in (answer.candidates or [])[:1] if choice.content for part in choice.content.parts or []
        ]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        is_cut = any(choice.finish_reason == FinishReason.MAX_TOKENS for choice in (answer.candidates or [])[:1])
        counts = answer.usage_metadata
        if counts is None or counts.prompt_token_count is None:
            return Reply(text, None, is_cut)
        written = (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
        return Reply(text, TokenUsage(counts.prompt_token_count, written), is_cut)

    return RemoteLlm(_endpoint(base_url, key, "llm"), name, log, ask, timing)
