"""Where vectors fail, are missing or belong to another model, a search has an answer all the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import embedding
import pytest
from conftest import write_files
from embedding import NOTES

from memory_kb import KnowledgeBase

if TYPE_CHECKING:
    from fake_provider import FakeProvider

open_with = embedding.open_with

Open = Callable[..., KnowledgeBase]


FAILURES = [
    ("bad-key", "OPENAI_API_KEY"),
    ("no-quota", "quota"),
    ("unknown-model", "embeddings.model"),
    ("wrong-dimension", "65"),
    ("malformed", "127.0.0.1"),
    ("unavailable", "503"),
    ("drop", "127.0.0.1"),
    ("html", "base_url"),
]


def test_a_provider_that_fails_leaves_a_text_search(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    kb.sync()
    for number, (kind, word) in enumerate(FAILURES, 7):
        fake.fail(kind, times=None)
        result = kb.search(f"topic{number}")
        assert (result.mode, result.hits[0].path) == ("text", f"n{number:03}.md")
        assert len(result.degraded) == 1
        assert word in result.degraded[0]
        assert result.degraded[0].endswith("this is a text search")
        fake.heal()
        kb.close()
        assert kb.search(f"topic{number}").degraded == ()


@pytest.mark.slow
def test_a_provider_that_hangs_holds_no_search_up(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    kb.sync()
    fake.fail("slow", times=None, seconds=600)
    started = time.monotonic()
    result = kb.search("topic7 elsewhere")
    assert time.monotonic() - started < 300
    assert result.hits[0].path == "n007.md"
    assert result.degraded


def test_without_any_vectors_a_search_says_what_makes_them(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    result = kb.search("topic7")
    assert result.mode == "text"
    assert result.degraded == (
        "no passage has a vector of openai small yet, so this is a text search; `memory-kb index` makes them",
    )
    assert not fake.calls


def test_a_few_new_notes_are_embedded_by_the_search_itself(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    folder = write_files(tmp_path / "vault", NOTES)
    kb = open_with(folder)
    kb.sync()
    (folder / "car.md").write_text("Our automobile is parked outside.")
    result = kb.search("vehicle")
    assert result.hits[0].path == "car.md"
    assert (result.mode, result.degraded) == ("hybrid", ())
    for number in range(50):
        (folder / f"more{number}.md").write_text(f"another thing {number}")
    result = kb.search("vehicle")
    assert result.hits[0].path == "car.md"
    assert result.degraded == (
        "50 passages have no vector yet and are found by their words alone; `memory-kb index` makes them",
    )
    kb.sync()
    assert kb.search("vehicle").degraded == ()


@pytest.mark.parametrize(("text", "how"), [("topic7 car", {"mode": "text"}), ('"topic7"', {}), ("", {"file": "a.py"})])
def test_what_needs_no_model_asks_none(
    text: str, how: dict[str, str], tmp_path: Path, open_with: Open, fake: FakeProvider
) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES))
    kb.sync()
    calls = len(fake.calls)
    result = kb.search(text, **how)  # type: ignore[arg-type]
    assert (result.mode, result.degraded, len(fake.calls)) == ("text", (), calls)


def test_none_is_a_choice(tmp_path: Path, open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(write_files(tmp_path / "vault", NOTES), MEMORY_KB_EMBEDDINGS_PROVIDER="none")
    assert kb.sync().embedded == 0
    assert kb.search("topic7").degraded == ()
    (reason,) = kb.search("topic7", mode="vector").degraded
    assert reason == "vector search needs an embedding provider, and there is none; this is a text search"
    assert not fake.calls


@pytest.mark.parametrize(
    "changed", [{"MEMORY_KB_EMBEDDINGS_MODEL": "large"}, {"MEMORY_KB_EMBEDDINGS_DIMENSIONS": "32"}]
)
def test_vectors_of_another_model_or_size_do_not_answer(
    changed: dict[str, str], tmp_path: Path, open_with: Open, fake: FakeProvider
) -> None:
    folder = write_files(tmp_path / "vault", NOTES | {"car.md": "Our automobile is parked outside."})
    first = open_with(folder)
    first.sync()
    first.close()
    other = open_with(folder, **changed)
    result = other.search("topic7")
    assert (result.mode, result.hits[0].path) == ("text", "n007.md")
    assert "`memory-kb index` makes them" in result.degraded[0]
    assert other.sync().embedded == len(NOTES) + 1
    result = other.search("vehicle")
    assert (result.mode, result.hits[0].path, result.degraded) == ("hybrid", "car.md", ())
    assert len(other.status().vectors) == 1
    calls = len(fake.calls)
    back = open_with(folder)
    assert back.sync().embedded == 0
    assert len(fake.calls) == calls
