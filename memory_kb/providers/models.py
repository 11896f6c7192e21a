"""The language model and the token counter of a vault, created when first used."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.errors import ProviderFailed, explain_failure
from memory_kb.providers.protocols import Llm, TokenCounter
from memory_kb.text import count_tokens

if TYPE_CHECKING:
    from memory_kb.providers.spending import SpendLog
    from memory_kb.vault import Vault


class Models:
    """The language model and the token counter of a vault, each made when first asked for."""

    def __init__(self, vault: "Vault") -> None:
        self._vault = vault

    @functools.cached_property
    def llm(self) -> Llm | None:
        """The language model that the settings name, or None."""
        from memory_kb.providers.choose import choose_llm

        return choose_llm(self._vault.settings.llm, self._vault.environ, self.spent)

    @property
    def has_llm(self) -> bool:
        """Whether the settings ask for a language model, even one that cannot be used."""
        try:
            return self.llm is not None
        except ProviderFailed:
            return True

    def ask(
        self, prompt: str, schema: Mapping[str, object], seconds: float, otherwise: str
    ) -> tuple[Mapping[str, Any] | None, str]:
        """Return what the language model fills in, or None and, where it fails, why and what is done otherwise."""
        try:
            return self.llm.complete(prompt, schema, timeout=seconds) if self.llm else None, ""
        except ProviderFailed as exc:
            return None, f"{explain_failure(exc)}; {otherwise}"

    @functools.cached_property
    def spent(self) -> "SpendLog":
        """The ledger of the language model's calls and their cost."""
        from memory_kb.providers.spending import SpendLog

        chosen = self._vault.settings.llm
        return SpendLog(self._vault.machine / "log" / "spend.jsonl", chosen.daily_spend, runs=chosen.daily_runs)

    @functools.cached_property
    def counter(self) -> "ChosenCounter":
        """The counter for the tokens of budgets."""
        return choose_counter(self._vault.settings.context.tokenizer)


ESTIMATE = "estimate"


class ChosenCounter(NamedTuple):
    """A token counter, its vocabulary, and a notice if it is the estimate although another was wanted."""

    count: TokenCounter
    name: str = ESTIMATE
    notice: str = ""


def choose_counter(wanted: str) -> ChosenCounter:
    """Return a token counter: the estimate, a vocabulary by its name, or for `auto` the first installed one.

    Example:
        >>> choose_counter("estimate").count("12345")
        2
    """
    if wanted == ESTIMATE:
        return ChosenCounter(count_tokens)
    names = ("o200k_base", "cl100k_base") if wanted == "auto" else (wanted,)
    why = ""
    for name in names:
        try:
            return ChosenCounter(_load(name), name)
        except ImportError:
            why = "tiktoken is not installed (`pip install 'memory-kb[tokens]'`)"
            break
        except Exception as exc:  # noqa: BLE001 - plugins of tiktoken raise what they like
            why = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
    notice = "" if wanted == "auto" else f"tokens are estimated, not counted by {wanted}: {why}"
    return ChosenCounter(count_tokens, notice=notice)


def _load(name: str) -> TokenCounter:
    """Return a counter by a vocabulary that is in tiktoken's cache; nothing is downloaded."""
    import tiktoken
    from tiktoken import load

    fetch = load.read_file

    def read_local(blobpath: str) -> bytes:
        if "://" in blobpath:
            raise FileNotFoundError("its vocabulary is not in tiktoken's cache (TIKTOKEN_CACHE_DIR)")
        return fetch(blobpath)

    load.read_file = read_local
    try:
        encoding = tiktoken.get_encoding(name)
    finally:
        load.read_file = fetch
    # What looks like a model's control token is text here.
    return lambda text: len(encoding.encode(text, disallowed_special=()))
