"""Which model is asked: by the settings and keys there are, and by nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_kb.errors import ProviderFailed
from memory_kb.providers import local, model_files
from memory_kb.providers.models import choose_embedder, choose_llm, estimate
from memory_kb.providers.protocols import VectorSpace, is_loopback
from memory_kb.providers.spending import SpendLog
from memory_kb.settings import EmbeddingSettings, LlmSettings

if TYPE_CHECKING:
    from fake_provider import FakeProvider

OPENAI = {"OPENAI_API_KEY": "key-one"}
GOOGLE = {"GOOGLE_API_KEY": "key-two"}
GEMINI = {"GEMINI_API_KEY": "key-three"}
LOCAL_URL = "http://localhost:11434/v1"
FAR_URL = "https://models.example.org/v1"
SMALL = VectorSpace("openai", "text-embedding-3-small", 1536)
GECKO = VectorSpace("gemini", "gemini-embedding-001", 3072)
NEAR = VectorSpace("local", "tiny@abc", 128)


class FakeLocal:
    """What stands for a model on this machine."""

    def __init__(self, folder: Path, dimensions: int = 0) -> None:
        self.folder = folder
        self.space = VectorSpace("local", f"{folder.name}@abc", dimensions or 128)


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str | None, Path]:
    """The local models that are there, by name."""
    found: dict[str | None, Path] = {}
    monkeypatch.setattr(model_files, "find_model", lambda name, _environ: found.get(name))
    monkeypatch.setattr(local, "LocalEmbedder", FakeLocal)
    return found


@pytest.fixture
def log(tmp_path: Path) -> SpendLog:
    return SpendLog(tmp_path / "spend.jsonl", 1.0)


@pytest.mark.parametrize(
    ("settings", "environ", "space"),
    [
        (EmbeddingSettings(), OPENAI, SMALL),
        (EmbeddingSettings(), OPENAI | GOOGLE | GEMINI, SMALL),
        (EmbeddingSettings(), GOOGLE, GECKO),
        (EmbeddingSettings(), GEMINI, GECKO),
        (EmbeddingSettings(), {"OPENAI_API_KEY": " "} | GEMINI, GECKO),
        (EmbeddingSettings(), {}, None),
        (EmbeddingSettings(base_url=LOCAL_URL, model="nomic"), {}, VectorSpace("openai", "nomic", 0)),
        (EmbeddingSettings(base_url=LOCAL_URL, model="nomic"), GOOGLE, VectorSpace("openai", "nomic", 0)),
        (EmbeddingSettings("openai", dimensions=256), OPENAI, SMALL._replace(dimension=256)),
        (EmbeddingSettings("openai", base_url=LOCAL_URL), {}, SMALL),
        (EmbeddingSettings("gemini", dimensions=768), OPENAI | GEMINI, GECKO._replace(dimension=768)),
        (EmbeddingSettings("none"), OPENAI | GEMINI, None),
        (EmbeddingSettings("none", base_url=LOCAL_URL), OPENAI, None),
    ],
)
def test_the_settings_and_keys_choose(
    settings: EmbeddingSettings, environ: Mapping[str, str], space: VectorSpace | None
) -> None:
    embedder = choose_embedder(settings, environ)
    assert (embedder and embedder.space) == space


def test_a_broken_address_is_on_no_machine() -> None:
    assert not is_loopback("http://[::1/v1")
    assert not is_loopback(None)


def test_a_local_model_is_taken_when_there_is_no_key(models: dict[str | None, Path]) -> None:
    models[None] = Path("/models/tiny")
    models["other"] = Path("/models/other")
    assert str(choose_embedder(EmbeddingSettings(), {}).space) == "local tiny@abc"  # type: ignore[union-attr]
    assert choose_embedder(EmbeddingSettings("local", model="other", dimensions=64), OPENAI).space == VectorSpace(  # type: ignore[union-attr]
        "local", "other@abc", 64
    )
    chosen = choose_embedder(EmbeddingSettings(), OPENAI)
    assert chosen is not None
    assert chosen.space.provider == "openai"


@pytest.mark.parametrize(
    ("settings", "environ", "words", "hint"),
    [
        (EmbeddingSettings("openai"), GEMINI, "no key", "OPENAI_API_KEY"),
        (EmbeddingSettings("gemini"), OPENAI, "no key", "GOOGLE_API_KEY or GEMINI_API_KEY"),
        (EmbeddingSettings("local", model="big"), OPENAI, "no local model big", "memory-kb model fetch"),
        (EmbeddingSettings(), {"OPENAI_API_KEY": "“key”"}, "OPENAI_API_KEY holds characters", "without quotes"),
    ],
)
def test_what_is_missing_is_named(
    settings: EmbeddingSettings, environ: Mapping[str, str], words: str, hint: str
) -> None:
    with pytest.raises(ProviderFailed) as caught:
        choose_embedder(settings, environ)
    assert words in str(caught.value)
    assert hint in str(caught.value.hint)
    assert not caught.value.is_passing


@pytest.mark.parametrize("address", ["localhost:11434", "http://[::1/v1", "file:///etc/passwd", "me:secret@x"])
def test_what_is_no_address_is_asked_nothing(address: str) -> None:
    embedder = choose_embedder(EmbeddingSettings(base_url=address), {})
    with pytest.raises(ProviderFailed, match="is no address") as caught:
        embedder.embed(["x"], "query")  # type: ignore[union-attr]
    assert "http://localhost:11434/v1" in str(caught.value.hint)
    assert "secret" not in str(caught.value)


def test_without_the_extra_there_is_no_local_model(
    models: dict[str | None, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    models[None] = Path("/models/tiny")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert choose_embedder(EmbeddingSettings(), {}) is None
    with pytest.raises(ProviderFailed, match="not installed") as caught:
        choose_embedder(EmbeddingSettings("local"), {})
    assert "memory-kb[local]" in str(caught.value.hint)


def test_keys_come_from_the_environment_handed_in(monkeypatch: pytest.MonkeyPatch, fake: FakeProvider) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    monkeypatch.setenv("GOOGLE_API_KEY", "another-key")
    assert choose_embedder(EmbeddingSettings(), {}) is None
    embedder = choose_embedder(EmbeddingSettings(base_url=fake.base_url, model="m"), {})
    assert embedder is not None
    embedder.embed(["one"], "query")
    embedder.close()
    assert fake.calls[0].headers["authorization"] == "Bearer none"


# Language models.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        (LlmSettings("openai", model="m"), OPENAI),
        (LlmSettings("openai", model="m"), {}),
        (LlmSettings("gemini", model="m"), GEMINI),
        (LlmSettings("anthropic", model="m"), {"ANTHROPIC_API_KEY": "key-four"}),
    ],
)
def test_a_language_model_is_asked_where_the_settings_say(
    fake: FakeProvider, log: SpendLog, settings: LlmSettings, environ: Mapping[str, str]
) -> None:
    llm = choose_llm(settings._replace(base_url=fake.base_url), environ, log)
    assert llm is not None
    form = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    assert llm.complete("Fill in.", form, timeout=20) == {"title": "text"}
    assert (next(iter(environ.values()), "none")) in str(fake.calls[0].headers)


def test_there_is_no_language_model_unless_one_is_chosen(log: SpendLog) -> None:
    everything = OPENAI | GOOGLE | {"ANTHROPIC_API_KEY": "key-four"}
    assert choose_llm(LlmSettings(), everything, log) is None
    assert choose_llm(LlmSettings("offline"), everything, log) is None
    for provider, name in (
        ("openai", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
    ):
        assert choose_llm(LlmSettings(provider), everything, log) is not None
        with pytest.raises(ProviderFailed, match=f"llm.provider is {provider}, but there is no key") as caught:
            choose_llm(LlmSettings(provider), {}, log)
        assert name in str(caught.value.hint)


@pytest.mark.parametrize("provider, model", [("openai", "gpt-5.4-mini"), ("gemini", "gemini-3.8-flash")])
def test_an_estimate_has_the_price_of_the_default_language_model(provider: str, model: str) -> None:
    assert estimate(LlmSettings(provider), 1_000) == estimate(LlmSettings(provider, model=model), 1_000)
