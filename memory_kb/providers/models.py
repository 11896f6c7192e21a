"""The models of a vault, which its settings and the keys choose, each created when first used; what they cost."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.errors import ProviderFailed, explain_failure
from memory_kb.providers.protocols import Embedder, Llm, TokenCounter, is_loopback
from memory_kb.settings import EmbeddingSettings, LlmSettings
from memory_kb.text import count_tokens

if TYPE_CHECKING:
    from memory_kb.providers.spending import Metered, SpendLog
    from memory_kb.vault import Vault


class Models:
    """The language model and the token counter of a vault, each made when first asked for."""

    def __init__(self, vault: "Vault") -> None:
        self._vault = vault

    @functools.cached_property
    def llm(self) -> Llm | None:
        """The language model that the settings name, or None."""
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


#: The variables that may hold the key of a provider.
_KEYS: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY",),
}


def choose_embedder(settings: EmbeddingSettings, environ: Mapping[str, str]) -> Embedder | None:
    """Return the embedding model that the settings ask for, or None.

    "auto" is OpenAI if its key or an address is set, else Gemini if one of its keys is, else a
    local model if one is installed.

    Raises:
        ProviderFailed: a provider was chosen that lacks its key or its model.
    """
    base_url = (settings.base_url or "").rstrip("/") or None
    provider = settings.provider
    if provider == "auto":
        is_openai = base_url or _key("openai", environ)
        provider = "openai" if is_openai else "gemini" if _key("gemini", environ) else "local"
    if provider == "openai":
        from memory_kb.providers.openai import openai_embedder

        openai_key = _openai_key(base_url, environ, "embeddings")
        return openai_embedder(settings.model, base_url, settings.dimensions, key=openai_key)
    if provider == "gemini":
        from memory_kb.providers.gemini import gemini_embedder

        key = _need_key("gemini", environ, "embeddings")
        return gemini_embedder(settings.model, base_url, settings.dimensions, key=key)
    return _local(settings, environ) if provider == "local" else None


def choose_llm(settings: LlmSettings, environ: Mapping[str, str], log: "SpendLog") -> Llm | None:
    """Return the language model that the settings ask for, or None."""
    base_url = (settings.base_url or "").rstrip("/") or None
    match settings.provider:
        case "openai":
            from memory_kb.providers.openai import openai_llm

            return openai_llm(settings.model, base_url, key=_openai_key(base_url, environ, "llm"), log=log)
        case "gemini":
            from memory_kb.providers.gemini import gemini_llm

            return gemini_llm(settings.model, base_url, key=_need_key("gemini", environ, "llm"), log=log)
        case "anthropic":
            from memory_kb.providers.anthropic import anthropic_llm

            key = _need_key("anthropic", environ, "llm")
            return anthropic_llm(settings.model, base_url, key=key, log=log)
        case "command":
            from memory_kb.providers.command import CommandLlm

            return CommandLlm(settings.command, environ, log)
        case _:
            return None


def _local(settings: EmbeddingSettings, environ: Mapping[str, str]) -> Embedder | None:
    """Return the model on this machine; where there is none, that is an error only if it was asked for."""
    import importlib.util

    reason, hint = (
        "what local models need is not installed",
        "pip install 'memory-kb[local]', then `memory-kb model fetch`",
    )
    if all(importlib.util.find_spec(name) is not None for name in ("tokenizers", "onnxruntime")):
        from memory_kb.providers.model_files import find_model

        folder = find_model(settings.model, environ)
        if folder is not None:
            from memory_kb.providers.local import LocalEmbedder

            return LocalEmbedder(folder, settings.dimensions)
        name = f" {settings.model}" if settings.model else ""
        reason, hint = f"there is no local model{name} on this machine", "get one with `memory-kb model fetch`"
    if settings.provider == "local":
        raise ProviderFailed(f"embeddings.provider is local, but {reason}", hint)
    return None


def _openai_key(base_url: str | None, environ: Mapping[str, str], setting: str) -> str | None:
    return _key("openai", environ) if base_url else _need_key("openai", environ, setting)


def _key(provider: str, environ: Mapping[str, str]) -> str | None:
    """Return the first key of a provider that is set."""
    for name in _KEYS[provider]:
        key = environ.get(name, "").strip()
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise ProviderFailed(f"{name} holds characters that no key has", "set it again, without quotes or spaces")
        if key:
            return key
    return None


def _need_key(provider: str, environ: Mapping[str, str], setting: str) -> str:
    if key := _key(provider, environ):
        return key
    said = f"{setting}.provider is {provider}, but there is no key for it"
    raise ProviderFailed(said, f"set {' or '.join(_KEYS[provider])}")


#: Tokens that a filled-in form usually takes.
USUAL_OUTPUT = 600


def estimate(settings: LlmSettings, input_tokens: int) -> "Metered":
    """Return what one call with a form to fill in would cost.

    Example:
        >>> estimate(LlmSettings("anthropic", model="claude-haiku-4-5"), 1_000)
        Metered(calls=1, input_tokens=1000, output_tokens=600, usd=0.004)
        >>> estimate(LlmSettings("openai", "http://localhost:11434/v1"), 1_000).usd
        0.0
    """
    from memory_kb.providers import anthropic, gemini, openai
    from memory_kb.providers.spending import Metered, TokenUsage, cost

    usage = TokenUsage(input_tokens, USUAL_OUTPUT)
    if is_loopback(settings.base_url) or settings.provider == "command":
        return Metered(1, *usage, 0.0)
    usual = {"openai": openai.USUAL_LLM, "gemini": gemini.USUAL_LLM, "anthropic": anthropic.USUAL_MODEL}
    return Metered(1, *usage, cost(settings.provider, settings.model or usual[settings.provider], usage))
