"""The language model that is none: whoever asks it takes the path that needs no model."""

from __future__ import annotations

from collections.abc import Mapping

from memory_kb.errors import ProviderFailed


class OfflineLlm:
    """A language model that never answers and never reaches for the network."""

    def complete(self, prompt: str, schema: Mapping[str, object], *, timeout: float) -> Mapping[str, object]:  # noqa: ARG002 - the port's
        raise ProviderFailed(
            "no language model is asked: llm.provider is offline", "set llm.provider to one that answers"
        )
