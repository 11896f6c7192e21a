"""Language models of OpenAI, or of any server that speaks like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory_kb.ports import Llm
from memory_kb.providers.calls import Calls, Timing
from memory_kb.providers.forms import strict
from memory_kb.providers.llms import OUTPUT_TOKENS, Model, Question, RemoteLlm, Reply
from memory_kb.providers.openai import open_client, service_of
from memory_kb.providers.spending import SpendLog, Usage
from memory_kb.providers.wire import is_loopback

if TYPE_CHECKING:
    import openai

USUAL_MODEL = "gpt-5.4-mini"


def openai_llm(
    model: str | None, base_url: str | None, *, key: str | None, log: SpendLog, timing: Timing | None = None
) -> Llm:
    """Return a model of OpenAI, or of the server at `base_url`.

    It is asked through chat completions, which is what every compatible server understands.
    """
    name = model or USUAL_MODEL
    limit = "max_tokens" if base_url else "max_completion_tokens"
    # A server on this machine costs nothing, and may have less room than that.
    limits = {} if is_loopback(base_url) else {limit: OUTPUT_TOKENS}

    def ask(client: openai.OpenAI, question: Question) -> Reply:
        options: dict[str, Any] = {**limits, **_format_of(question)}
        answer: Any = client.chat.completions.create(
            model=name, messages=[{"role": "user", "content": question.prompt}], timeout=question.seconds, **options
        )
        return _reply_of(answer)

    return RemoteLlm(
        Model("openai", name, is_free=is_loopback(base_url)),
        Calls(service_of(base_url, key, "llm"), timing),
        log,
        lambda: open_client(base_url, key),
        ask,
        ("schema", "object", "text"),
    )


def _format_of(question: Question) -> dict[str, Any]:
    if question.level == "schema":
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "form", "strict": True, "schema": strict(question.schema)},
            }
        }
    return {"response_format": {"type": "json_object"}} if question.level == "object" else {}


def _reply_of(answer: Any) -> Reply:
    """Read an answer that the package passes on as the server shaped it."""
    choices = getattr(answer, "choices", None)
    if not choices:
        return Reply("", None)
    text = getattr(getattr(choices[0], "message", None), "content", None)
    usage = getattr(answer, "usage", None)
    counts = (getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None))
    known = Usage(counts[0], counts[1]) if isinstance(counts[0], int) and isinstance(counts[1], int) else None
    return Reply(text if isinstance(text, str) else "", known, getattr(choices[0], "finish_reason", None) == "length")
