"""The models of a vault, created when first used."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_kb.providers.base import Llm
    from memory_kb.providers.embeddings import ChosenCounter
    from memory_kb.providers.spending import SpendLog
    from memory_kb.vault import Vault


class Models:
    """The language model and the token counter of a vault, each made when first asked for."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    @functools.cached_property
    def llm(self) -> Llm | None:
        """The language model that somebody asked for, or None.

        Raises:
            ProviderFailed: it lacks its key.
        """
        from memory_kb.providers.choose import choose_llm

        return choose_llm(self._vault.settings.llm, self._vault.environ, self.spent)

    @functools.cached_property
    def spent(self) -> SpendLog:
        """What the language model has cost."""
        from memory_kb.providers.spending import SpendLog

        chosen = self._vault.settings.llm
        return SpendLog(self._vault.machine / "log" / "spend.jsonl", chosen.daily_spend, runs=chosen.daily_runs)

    @functools.cached_property
    def counter(self) -> ChosenCounter:
        """What counts the tokens of budgets."""
        from memory_kb.providers.embeddings import choose_counter

        return choose_counter(self._vault.settings.context.tokenizer)
