"""Language models of Gemini."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_kb.ports import Llm
from memory_kb.providers.calls import Calls, Timing
from memory_kb.providers.gemini import open_client, service_of
from memory_kb.providers.llms import OUTPUT_TOKENS, Model, Question, RemoteLlm, Reply
from memory_kb.providers.spending import SpendLog, Usage
from memory_kb.providers.wire import is_loopback

if TYPE_CHECKING:
    from google import genai

USUAL_MODEL = "gemini-3.8-flash"


def gemini_llm(
    model: str | None, base_url: str | None, *, key: str, log: SpendLog, timing: Timing | None = None
) -> Llm:
    """Return a model of Gemini, or of the server at `base_url`."""
    name = (model or USUAL_MODEL).removeprefix("models/")

    def ask(client: genai.Client, question: Question) -> Reply:
        from google.genai.types import AutomaticFunctionCallingConfig, FinishReason, GenerateContentConfig, HttpOptions

        answer = client.models.generate_content(
            model=name,
            contents=question.prompt,
            config=GenerateContentConfig(
                max_output_tokens=OUTPUT_TOKENS,
                response_mime_type="application/json",
                response_json_schema=dict(question.schema) if question.level == "schema" else None,
                automatic_function_calling=AutomaticFunctionCallingConfig(disable=True),
                automatic_continuation=False,
                http_options=HttpOptions(timeout=max(1, int(1000 * question.seconds))),
            ),
        )
        parts = [
            part for choice in (answer.candidates or [])[:1] if choice.content for part in choice.content.parts or []
        ]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        is_cut = (
            bool(answer.candidates)
            and answer.candidates is not None
            and answer.candidates[0].finish_reason == FinishReason.MAX_TOKENS
        )
        counts = answer.usage_metadata
        if counts is None or counts.prompt_token_count is None:
            return Reply(text, None, is_cut)
        written = (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
        return Reply(text, Usage(counts.prompt_token_count, written), is_cut)

    is_free = is_loopback(base_url)
    return RemoteLlm(
        Model("gemini", name, is_free),
        Calls(service_of(base_url, key, "llm"), timing),
        log,
        lambda: open_client(base_url, key),
        ask,
    )
