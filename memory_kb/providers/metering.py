"""What a language model is asked through one door, counted; and what asking it would cost."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from memory_kb.providers.spending import SpendLog, Usage, cost
from memory_kb.providers.wire import is_loopback
from memory_kb.settings import LlmSettings

#: Tokens that a filled-in form usually takes.
USUAL_OUTPUT = 600


class Metered(NamedTuple):
    """Calls so far, their tokens and dollars."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


class Meter(SpendLog):
    """A ledger that also counts what passes through it itself, other processes left aside."""

    def __init__(self, file: Path, daily: float, runs: int | None = None) -> None:
        super().__init__(file, daily, runs=runs)
        self.total = Metered()

    def check(self, usd: float) -> None:
        super().check(usd)
        self.total = self.total._replace(calls=self.total.calls + 1)

    def note(self, provider: str, model: str, usage: Usage, usd: float) -> None:
        super().note(provider, model, usage, usd)
        calls, tokens_in, tokens_out, spent = self.total
        self.total = Metered(
            calls, tokens_in + usage.input_tokens, tokens_out + usage.output_tokens, round(spent + usd, 9)
        )


def estimate(settings: LlmSettings, input_tokens: int) -> Metered:
    """Return what one call with a form to fill in would cost.

    Example:
        >>> estimate(LlmSettings("anthropic", model="claude-haiku-4-5"), 1_000)
        Metered(calls=1, input_tokens=1000, output_tokens=600, usd=0.004)
        >>> estimate(LlmSettings("openai", "http://localhost:11434/v1"), 1_000).usd
        0.0
    """
    usage = Usage(input_tokens, USUAL_OUTPUT)
    usd = (
        0.0
        if is_loopback(settings.base_url) or settings.provider == "command"
        else cost(settings.provider, settings.model or _usual_model(settings.provider), usage)
    )
    return Metered(1, *usage, usd)


def _usual_model(provider: str) -> str:
    from memory_kb.providers import anthropic, gemini_llm, openai_llm

    models = {"openai": openai_llm.USUAL_MODEL, "gemini": gemini_llm.USUAL_MODEL, "anthropic": anthropic.USUAL_MODEL}
    return models[provider]
