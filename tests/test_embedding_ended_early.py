"""Runs of embedding that fail, are ended early or happen twice at once: nothing is paid for twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import embedding
import pytest
from conftest import clean_environment, write_files
from embedding import assert_every_vector_is_its_text, environment
from watching import eventually

from memory_kb import KnowledgeBase
from memory_kb.index.vectors import EmbeddingCache

if TYPE_CHECKING:
    from fake_provider import FakeProvider

open_with = embedding.open_with

Open = Callable[..., KnowledgeBase]


@pytest.mark.slow
def test_half_of_the_batches_failing_loses_nothing_of_the_rest(
    tmp_path: Path, open_with: Open, fake: FakeProvider
) -> None:
    notes = {f"{number}.md": f"# Number {number}\n\n" + f"word{number} " * 20 for number in range(400)}
    kb = open_with(write_files(tmp_path / "vault", notes))
    fake.fail("no-quota", every=2, times=None)
    report = kb.sync()
    # When the first answer is a refusal, the requests that have not been sent yet are spared.
    assert report.embedded < 400
    assert len(report.notices) == 1
    assert "quota" in report.notices[0]
    result = kb.search("word7")
    assert result.hits[0].path == "7.md"
    # "have no vector yet", or where all others were spared, "no passage has a vector of openai small yet".
    assert any(" yet" in reason or "quota" in reason for reason in result.degraded)
    kb.close()
    fake.heal()
    assert kb.sync().embedded == 400 - report.embedded
    assert max(count for text, count in fake.embedded_texts.items() if text.startswith("# Number")) == 1
    assert_every_vector_is_its_text(kb, fake)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on_where_it_was(
    sent: int, tmp_path: Path, open_with: Open, fake: FakeProvider, home: Path
) -> None:
    notes = {f"{number}.md": f"# Number {number}\n\n" + f"word{number} " * 30 for number in range(2000)}
    folder = write_files(tmp_path / "vault", notes)
    fake.fail("slow", times=5, seconds=0.0)
    fake.fail("slow", times=None, seconds=600.0)
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder), "index"]
    process = subprocess.Popen(
        command, env=clean_environment(home) | environment(fake, home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    eventually(lambda: len(fake.embedded_texts) >= 600)
    process.send_signal(sent)
    fake.release()
    process.communicate(timeout=60)
    assert process.returncode == (130 if sent == signal.SIGINT else -sent)
    fake.heal()
    kb = open_with(folder)
    paid = len(fake.embedded_texts)
    assert 600 <= paid < 2000
    report = kb.sync()
    assert report.embedded <= 2000 - 128
    if sent == signal.SIGINT:
        assert report.embedded == 2000 - paid
        assert max(fake.embedded_texts.values()) == 1
    assert_every_vector_is_its_text(kb, fake)


@pytest.mark.slow
def test_an_answer_that_is_being_kept_when_ctrl_c_comes_is_not_paid_for_twice(
    vault: Callable[..., Path], open_with: Open, fake: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = open_with(vault({f"{number}.md": f"# Number {number}\n\n" + f"word{number} " * 3 for number in range(600)}))
    remember = EmbeddingCache.remember
    moments = iter((0, 1))

    def interrupt(*arguments: object) -> None:
        if next(moments, None) == 1:
            raise KeyboardInterrupt
        remember(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddingCache, "remember", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kb.sync()
    paid = len(fake.embedded_texts)
    assert paid >= 256
    assert kb.sync().embedded == 600 - paid
    assert max(fake.embedded_texts.values()) == 1


@pytest.mark.slow
def test_two_at_once_embed_each_text_once(tmp_path: Path, fake: FakeProvider, home: Path) -> None:
    folder = write_files(
        tmp_path / "vault", {f"{number}.md": f"# Number {number}\n\n" + f"word{number} " * 40 for number in range(300)}
    )
    fake.fail("slow", times=None, seconds=0.05)
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder), "index"]
    both = [
        subprocess.Popen(command, env=clean_environment(home) | environment(fake, home), stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert max(fake.embedded_texts.values()) == 1
    assert len(fake.embedded_texts) == 300
