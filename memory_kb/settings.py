"""Settings: their defaults, where they may be set, and who may set what.

defaults < `$MEMORY_KB_HOME/config.yaml` < the vault's `config.yaml` < `MEMORY_KB_*` < flags. A vault's own file comes
with a cloned repository, so it may not say where files are written or texts are sent.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.errors import InvalidSettings
from memory_kb.regular_files import read_file

TOKENIZERS = (
    "porter unicode61 remove_diacritics 2",
    "unicode61 remove_diacritics 2",
    "porter ascii",
    "porter unicode61",
    "trigram",
)


class ScopeWeights(NamedTuple):
    """The factor of a hit's score for each scope it may come from."""

    task: float = 1.5
    job: float = 1.2
    project: float = 1.2
    global_: float = 1.0

    def of(self, scope: str) -> float:
        """Return the weight of a scope by its name."""
        return float(getattr(self, "global_" if scope == "global" else scope))


class Ranking(NamedTuple):
    """How hits are ordered."""

    prominence_exponent: float = 0.1
    half_life_days: float = 90.0
    decay_floor: float = 0.1
    mmr_lambda: float = 0.7
    scope: ScopeWeights = ScopeWeights()
    fusion: str = "weighted"
    vector_weight: float = 0.7
    text_weight: float = 0.3


class IndexSettings(NamedTuple):
    """Where the index is and what goes in.

    `path` replaces the `.memory-kb` folder; None leaves it. `url` is the PostgreSQL server of a team's index,
    `vaults` says as NAME=FOLDER which of its vaults a folder is, and `branch` which branch is indexed there; None
    is the one that `origin` calls its own.
    """

    path: str | None = None
    tokenizer: str = TOKENIZERS[0]
    max_file_bytes: int = 4_000_000
    url: str | None = None
    vaults: tuple[str, ...] = ()
    branch: str | None = None


class EmbeddingSettings(NamedTuple):
    """Where vectors come from; `model` None is the provider's usual one, `dimensions` 0 as many as it gives."""

    provider: str = "auto"
    base_url: str | None = None
    model: str | None = None
    dimensions: int = 0


class LlmSettings(NamedTuple):
    """Which language model may be asked; none unless somebody chose one.

    `command` is a program that reads a prompt and prints the answer; it is chosen by being set where no
    provider is. `daily_spend` is in US dollars, `daily_runs` counts questions to any model.
    """

    provider: str = "none"
    base_url: str | None = None
    model: str | None = None
    daily_spend: float = 1.0
    command: tuple[str, ...] = ()
    daily_runs: int = 200


class ReinforcementSettings(NamedTuple):
    """What makes an entry weigh more: that it was `used`, or that it was `shown`."""

    counts: str = "used"


class WatchSettings(NamedTuple):
    """How files are watched; in seconds."""

    debounce: float = 0.3
    reconcile_seconds: float = 60.0
    poll: bool = False


class ContextSettings(NamedTuple):
    """How much of what is put before an agent.

    Tokens of the four layers together, tokens and number of rules, characters of retrieved learnings. `tokenizer` is
    what counts tokens: `estimate`, a quarter of the characters; a vocabulary of tiktoken by its name; or `auto`, the
    first of o200k_base and cl100k_base that is on this machine, else the estimate. Hooks always estimate. `floor` is
    the share of a prompt's rare words that an entry must say before a hook adds it; with `hooks` off, hooks add nothing
    and only log.
    """

    layer_tokens: int = 800
    rule_tokens: int = 500
    max_rules: int = 10
    max_chars: int = 8_000
    tokenizer: str = "auto"
    floor: float = 0.35
    hooks: bool = True


class LearningSettings(NamedTuple):
    """What is learned of sessions.

    `capture` keeps what people state with an explicit marker, proposes it for review, or is off.
    `ask_agent` lets the stop hook ask the agent's own model what to remember.
    """

    capture: str = "keep"
    ask_agent: bool = True


class Settings(NamedTuple):
    """Everything that can be set."""

    ranking: Ranking = Ranking()
    index: IndexSettings = IndexSettings()  # type: ignore[assignment]  # hides that of tuples
    embeddings: EmbeddingSettings = EmbeddingSettings()
    llm: LlmSettings = LlmSettings()
    learning: LearningSettings = LearningSettings()
    reinforcement: ReinforcementSettings = ReinforcementSettings()
    watch: WatchSettings = WatchSettings()
    context: ContextSettings = ContextSettings()
    ignore: tuple[str, ...] = ("node_modules",)
    #: Whether a search also finds what agents remember by themselves.
    host: bool = True
    #: The commands of rules, in their `check:`, that may be run.
    checks: tuple[str, ...] = ()


_FIX = "correct it, or take it out for the default"
_CHOICES = {
    "index.tokenizer": TOKENIZERS,
    "ranking.fusion": ("weighted", "rrf"),
    "embeddings.provider": ("auto", "openai", "gemini", "local", "none"),
    "reinforcement.counts": ("used", "shown"),
    "learning.capture": ("keep", "propose", "off"),
    "llm.provider": ("none", "openai", "gemini", "anthropic", "command", "offline"),
}
#: Settings that a vault's own file may not have: they say where files are written, where texts
#: are sent, what is run, or what is spent.
_NOT_FROM_VAULT = frozenset(
    {"index.path", "index.url", "index.vaults", "index.branch", "embeddings.base_url", "host", "checks"}
    | {f"llm.{name}" for name in LlmSettings._fields}
)
#: What a vault's own file may ask for at most, unless the person's own configuration asks for more.
_VAULT_MAXIMA: Mapping[str, float] = {
    "index.max_file_bytes": 32_000_000,
    "watch.debounce": 10,
    "watch.reconcile_seconds": 3_600,
    "context.layer_tokens": 20_000,
    "context.rule_tokens": 20_000,
    "context.max_rules": 100,
    "context.max_chars": 100_000,
}
_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_AT_MOST_ONE = frozenset({"decay_floor", "mmr_lambda", "floor"})
_ABOVE_ZERO = frozenset({"half_life_days", "reconcile_seconds"})


class LoadedSettings(NamedTuple):
    """Settings with the warnings that reading them gave."""

    settings: Settings
    warnings: tuple[str, ...]


def load_settings(home_file: Path, vault_file: Path, environ: Mapping[str, str]) -> LoadedSettings:
    """Read the settings from their files and the environment.

    Raises:
        InvalidSettings: a file is not YAML, or a value is not of the kind its key takes.
    """
    settings, warnings = merge_settings(Settings(), _read_file(home_file), str(home_file), is_trusted=True)
    settings, more = merge_settings(settings, _read_file(vault_file), str(vault_file), is_trusted=False)
    values = _from_environ(environ)
    settings, last = merge_settings(settings, values, "the environment", is_trusted=True)
    if settings.llm.command and settings.llm.provider == "none" and "provider" not in values.get("llm", {}):
        settings = settings._replace(llm=settings.llm._replace(provider="command"))
    return LoadedSettings(settings, (*warnings, *more, *last))


def _read_file(file: Path) -> dict[str, Any]:
    try:
        text = read_file(file).decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as exc:
        raise InvalidSettings(f"{file} cannot be read: {exc.strerror}", "fix it or move it away") from exc
    except UnicodeDecodeError as exc:
        raise InvalidSettings(f"{file} cannot be read: it is not UTF-8", "save it as UTF-8 or move it away") from exc
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    from memory_kb.yaml_loader import InvalidBlock, load_mapping

    try:
        return load_mapping(text)
    except InvalidBlock as exc:
        raise InvalidSettings(f"{file}:{exc.line + 1}: the file {exc.what}", "fix the line") from exc


def _from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return settings of the environment: `MEMORY_KB_RANKING_FUSION=rrf` becomes `{"ranking": {"fusion": "rrf"}}`."""
    values: dict[str, Any] = {}
    for section in ("ranking", "index", "embeddings", "llm", "learning", "watch", "context"):
        for name in getattr(Settings(), section)._fields:
            text = environ.get(f"MEMORY_KB_{section}_{name}".upper())
            if text is not None and name != "scope":
                values.setdefault(section, {})[name] = text
    if "MEMORY_KB_HOST" in environ:
        values["host"] = environ["MEMORY_KB_HOST"]
    if "MEMORY_KB_IGNORE" in environ:
        values["ignore"] = [word for word in environ["MEMORY_KB_IGNORE"].split(",") if word]
    return values


def merge_settings(
    settings: Any, values: Mapping[str, Any], origin: str, *, is_trusted: bool, prefix: str = ""
) -> tuple[Any, list[str]]:
    """Lay a mapping of values over a group of settings; unknown keys come back as warnings.

    Example:
        >>> merge_settings(Settings(), {"ranking": {"half_life_days": 30}, "colour": 1}, "config.yaml", is_trusted=False)[1]
        ['config.yaml: unknown setting colour']
    """
    fields = {name.rstrip("_"): name for name in settings._fields}
    changes, warnings = dict[str, Any](), list[str]()
    for key, value in values.items():
        name = f"{prefix}{key}"
        if key not in fields:
            warnings.append(f"{origin}: unknown setting {name}")
            continue
        old = getattr(settings, fields[key])
        if not is_trusted and _reaches_outside(name, value, old):
            why = "is ignored here; a vault may not say where files are written or sent, your own configuration may"
            warnings.append(f"{origin}: {name} {why}")
        elif isinstance(value, Mapping) and hasattr(old, "_fields"):
            changes[fields[key]], inner = merge_settings(old, value, origin, is_trusted=is_trusted, prefix=f"{name}.")
            warnings += inner
        elif hasattr(old, "_fields") and value is not None:
            raise InvalidSettings(f"{origin}: {name} takes a group of settings, not {value!r}", _FIX)
        elif value is not None:
            new = _coerce(name, value, old, origin)
            most = max(old, _VAULT_MAXIMA[name]) if name in _VAULT_MAXIMA and not is_trusted else None
            if most is not None and new > most:
                why = "a vault may not ask for more, your own configuration may"
                warnings.append(f"{origin}: {name} is {most:,} here; {why}")
                new = type(old)(most)
            changes[fields[key]] = new
    return settings._replace(**changes), warnings


def _reaches_outside(name: str, value: Any, old: Any) -> bool:
    """Return whether a vault's own file asks for more than it may.

    It may name a model but no path to one, and a provider unless the person chose another.
    """
    if name == "embeddings.provider":
        return old not in ("auto", value) and value != "none"
    if name == "embeddings.model":
        return str(value)[:1] in "./~\\" or str(value)[1:2] == ":"
    return name in _NOT_FROM_VAULT


def _coerce(name: str, value: Any, old: Any, origin: str) -> Any:
    leaf = name.rpartition(".")[2]
    if isinstance(old, tuple):
        if name == "llm.command" and not isinstance(value, list):
            import shlex

            value = shlex.split(value)
        return tuple(map(str, value if isinstance(value, list) else [value]))
    if name in _CHOICES:
        word = str(value).lower()
        if word not in _CHOICES[name]:
            raise InvalidSettings(f"{origin}: {name} is {value!r}", f"it may be one of: {', '.join(_CHOICES[name])}")
        return word
    if isinstance(old, bool):
        if str(value).lower() not in _TRUTH:
            raise InvalidSettings(f"{origin}: {name} takes true or false, not {str(value)[:60]!r}", _FIX)
        return _TRUTH[str(value).lower()]
    if isinstance(old, (int, float)):
        try:
            number = type(old)(value)
        except (TypeError, ValueError, OverflowError) as exc:
            raise InvalidSettings(f"{origin}: {name} takes a number, not {str(value)[:60]!r}", _FIX) from exc
        if not 0 <= number < 1e15 or (leaf in _AT_MOST_ONE and number > 1) or (leaf in _ABOVE_ZERO and number == 0):
            raise InvalidSettings(f"{origin}: {name} is out of range: {str(value)[:60]}", _FIX)
        return number
    return str(value)
