"""What the tests of providers share: clocks, makers and failures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from memory_kb.errors import ProviderFailed
from memory_kb.providers.anthropic import anthropic_llm
from memory_kb.providers.gemini import gemini_embedder, gemini_llm
from memory_kb.providers.http import DOCUMENTS, QUERY, Pace, Timing
from memory_kb.providers.openai import openai_embedder, openai_llm
from memory_kb.providers.protocols import Embedder, Llm, Purpose

if TYPE_CHECKING:
    from fake_provider import FakeProvider

KEY = "sk-test" + "-0123456789" * 3
EMBEDDERS: dict[str, Callable[..., Embedder]] = {"openai": openai_embedder, "gemini": gemini_embedder}
LLMS: dict[str, Callable[..., Llm]] = {"openai": openai_llm, "gemini": gemini_llm, "anthropic": anthropic_llm}
Make = Callable[..., Embedder]

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "kind": {"type": "string", "enum": ["pitfall", "pattern"]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    },
    "required": ["title", "kind", "tags"],
    "additionalProperties": False,
}
FILLED = {"title": "Retry", "kind": "pitfall", "tags": ["http"]}


class Clock:
    """A clock on which waiting takes no time."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    @property
    def timing(self) -> Timing:
        return Timing(clock=lambda: self.time, sleep=self.sleep)


def quick() -> Timing:
    """Return the real clock without its waits."""
    return Timing(sleep=lambda _: None)


@contextlib.contextmanager
def making(kind: str, fake: FakeProvider, clock: Clock) -> Iterator[Make]:
    """Give a function that makes embedders which ask the fake; they are closed in the end."""
    with contextlib.ExitStack() as stack:

        def make_one(
            model: str = "some-model", timing: Timing = clock.timing, document: Pace = DOCUMENTS, query: Pace = QUERY
        ) -> Embedder:
            paced = timing._replace(paces={"document": document, "query": query})
            embedder = EMBEDDERS[kind](model, fake.base_url, key=KEY, timing=paced)
            stack.callback(embedder.close)
            return embedder

        yield make_one


def failure_of(
    embedder: Embedder, texts: Sequence[str] = ("one", "two"), purpose: Purpose = "document"
) -> ProviderFailed:
    """Return how an embedder fails."""
    with pytest.raises(ProviderFailed) as caught:
        embedder.embed(texts, purpose)
    return proper(caught.value)


def proper(error: ProviderFailed) -> ProviderFailed:
    """Check what all errors have in common: one short line, and no key."""
    for said in (str(error), str(error.hint), repr(error)):
        assert KEY not in said
        assert "\n" not in said
        assert len(said) < 400
    return error
