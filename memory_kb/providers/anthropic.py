"""Language models of Anthropic; needs the extra `anthropic`."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from memory_kb.errors import ProviderFailed
from memory_kb.providers.http import Endpoint, Timing, open_http_client
from memory_kb.providers.llm import OUTPUT_TOKENS, FormRequest, RemoteLlm, Reply
from memory_kb.providers.protocols import Llm
from memory_kb.providers.spending import SpendLog, TokenUsage

if TYPE_CHECKING:
    import anthropic
    import httpx2

USUAL_ADDRESS = "https://api.anthropic.com"
USUAL_MODEL = "claude-haiku-5-5"


def anthropic_llm(
    model: str | None, base_url: str | None, *, key: str, log: SpendLog, timing: Timing | None = None
) -> Llm:
    """Return a model of Anthropic, or of the server at `base_url`."""
    if importlib.util.find_spec("anthropic") is None:
        raise ProviderFailed(
            "llm.provider is anthropic, but its package is not installed", "pip install 'memory-kb[anthropic]'"
        )
    name = model or USUAL_MODEL

    def ask(client: anthropic.Anthropic, question: FormRequest) -> Reply:
        import anthropic

        options: dict[str, Any] = {}
        if question.schema:
            form = {"type": "json_schema", "schema": anthropic.transform_schema(dict(question.schema))}
            options["output_config"] = {"format": form}
        answer: Any = client.messages.create(
            model=name,
            max_tokens=OUTPUT_TOKENS,
            messages=[{"role": "user", "content": question.prompt}],
            timeout=question.seconds,
            **options,
        )
        blocks = getattr(answer, "content", None) or []
        text = "".join(block.text for block in blocks if getattr(block, "type", None) == "text")
        usage = getattr(answer, "usage", None)
        known = None if usage is None else TokenUsage(usage.input_tokens, usage.output_tokens)
        return Reply(text, known, getattr(answer, "stop_reason", None) == "max_tokens")

    endpoint = Endpoint("anthropic", "Anthropic", base_url, key, "ANTHROPIC_API_KEY", "llm", _open_client)
    return RemoteLlm(endpoint, name, log, ask, timing)


def _open_client(base_url: str | None, key: str) -> tuple[anthropic.Anthropic, httpx2.Client]:
    import anthropic

    address = base_url or USUAL_ADDRESS
    http_client = open_http_client(address, {"x-api-key": key})
    client = anthropic.Anthropic(
        api_key=key, base_url=address, http_client=http_client, max_retries=0, open_telemetry=False
    )
    return client, http_client
