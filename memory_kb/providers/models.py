"""The language model of a vault, created when first used."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import functools
from typing import TYPE_CHECKING

from memory_kb.providers.base import Llm

if TYPE_CHECKING:
    from memory_kb.providers.spending import SpendLog
    from memory_kb.vault import Vault


class Models:
    """The language model of a vault and what it cost, each made when first asked for."""

    def __init__(self, vault: "Vault") -> None:
        self._vault = vault

    @functools.cached_property
    def llm(self) -> Llm | None:
        """The language model that the settings name, or None."""
        from memory_kb.providers.choose import choose_llm

        return choose_llm(self._vault.settings.llm, self._vault.environ, self.spent)

    @functools.cached_property
    def spent(self) -> "SpendLog":
        """The ledger of the language model's calls and their cost."""
        from memory_kb.providers.spending import SpendLog

        chosen = self._vault.settings.llm
        return SpendLog(self._vault.machine / "log" / "spend.jsonl", chosen.daily_spend, runs=chosen.daily_runs)
