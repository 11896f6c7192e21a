"""What language models cost: noted call by call, and no more than a person allows for a day."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from asking import FILLED, FORM, KEY, LLMS, proper, quick
from conftest import REPOSITORY

from memory_kb.errors import ProviderFailed, SpendLimitReached
from memory_kb.providers.openai import openai_llm
from memory_kb.providers.protocols import Llm
from memory_kb.providers.spending import SpendLog, TokenUsage, cost

if TYPE_CHECKING:
    from fake_provider import FakeProvider

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> SpendLog:
    return SpendLog(tmp_path / "log" / "spend.jsonl", 1.0, lambda: NOON)


def failure_of(llm: Llm, timeout: float = 20.0) -> ProviderFailed:
    with pytest.raises(ProviderFailed) as caught:
        llm.complete("Fill in.", FORM, timeout=timeout)
    return proper(caught.value)


def lines_of(log: Path) -> list[dict[str, Any]]:
    # A writer that meets the unfinished line of another closes it, which leaves an empty one.
    return [json.loads(line) for line in log.read_text().splitlines() if line]


@pytest.fixture(params=LLMS)
def paid(request: pytest.FixtureRequest, fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Llm]:
    """A function that makes a model which costs something, though it answers from this machine."""
    for module in ("llm", "openai"):
        monkeypatch.setattr(f"memory_kb.providers.{module}.is_loopback", lambda _: False)
    return lambda log, model=None: LLMS[request.param](model, fake.base_url, key=KEY, log=log, timing=quick())


def test_every_call_is_noted_with_its_cost(
    paid: Callable[..., Llm], fake: FakeProvider, log: SpendLog, tmp_path: Path
) -> None:
    llm = paid(log)
    fake.answers += ["nonsense", FILLED]
    llm.complete("Fill in.", FORM, timeout=20)
    first, second = lines_of(tmp_path / "log" / "spend.jsonl")
    assert first == second
    assert list(first) == ["time", "provider", "model", "input_tokens", "output_tokens", "usd"]
    assert (first["time"], first["input_tokens"], first["output_tokens"]) == ("2026-11-21T12:00:00+00:00", 1000, 100)
    expected = {"openai": 0.0012, "gemini": 0.00225, "anthropic": 0.00015}[first["provider"]]
    assert first["usd"] == pytest.approx(expected)
    assert log.spent_today() == pytest.approx(2 * expected)


def test_nothing_is_asked_when_the_day_is_spent(
    paid: Callable[..., Llm], fake: FakeProvider, log: SpendLog, tmp_path: Path
) -> None:
    log.record("openai", "m", TokenUsage(1, 1), 0.9999)
    with pytest.raises(SpendLimitReached) as caught:
        paid(log).complete("Fill in.", FORM, timeout=20)
    assert "$1.00 of $1.00 for today is spent" in str(caught.value)
    assert "00:00 UTC" in str(caught.value.hint)
    assert "llm.daily_spend" in str(caught.value.hint)
    assert fake.calls == []
    tomorrow = SpendLog(tmp_path / "log" / "spend.jsonl", 1.0, lambda: NOON + timedelta(hours=12))
    assert paid(tomorrow).complete("Fill in.", FORM, timeout=20)


def test_a_budget_of_nothing_allows_nothing_but_what_is_free(
    paid: Callable[..., Llm], fake: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = SpendLog(tmp_path / "spend.jsonl", 0.0, lambda: NOON)
    with pytest.raises(SpendLimitReached):
        paid(nothing).complete("Fill in.", FORM, timeout=20)
    monkeypatch.undo()
    assert openai_llm("m", fake.base_url, key=None, log=nothing).complete("Fill in.", FORM, timeout=20)
    assert lines_of(tmp_path / "spend.jsonl")[0]["usd"] == 0


@pytest.mark.parametrize(
    ("kind", "is_paid"), [("slow", True), ("drop", True), ("server-error", False), ("bad-key", False)]
)
def test_a_call_that_may_be_on_the_bill_is_noted(
    paid: Callable[..., Llm], fake: FakeProvider, log: SpendLog, kind: str, is_paid: bool
) -> None:
    fake.fail(kind, seconds=5, times=None)
    failure_of(paid(log), timeout=0.1 if kind == "slow" else 20)
    assert (log.spent_today() > 0) is is_paid


def test_prices() -> None:
    assert cost("openai", "gpt-5-mini-2025-08-07", TokenUsage(1_000_000 // 100, 0)) == pytest.approx(0.0025)
    assert cost("openai", "never-heard-of", TokenUsage(1000, 1000)) == cost(
        "openai", "gpt-5.5-pro", TokenUsage(1000, 1000)
    )
    assert cost("anthropic", "claude-haiku-5-5", TokenUsage(200_000, 1_000)) == pytest.approx(5 * 0.0205)
    assert cost("gemini", "gemini-3.8-flash", TokenUsage(0, 0)) == 0


def test_a_torn_ledger_still_counts(tmp_path: Path) -> None:
    file = tmp_path / "spend.jsonl"
    log = SpendLog(file, 1.0, lambda: NOON)
    assert log.spent_today() == 0
    log.record("openai", "m", TokenUsage(1, 1), 0.25)
    with file.open("ab") as ledger:
        ledger.write(
            b'\xff\xfe junk\n{"time": "2026-11-21T13:00:00", "usd": "0.5"}\n{"time": "2026-11-20T13:00:00", "usd": 9}\n{"time": "2026-11-21T1'
        )
    assert log.spent_today() == 0.75
    log.record("openai", "m", TokenUsage(1, 1), 0.125)
    assert log.spent_today() == 0.875


def test_a_ledger_that_cannot_be_written_stops_spending(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file where the folder should be")
    log = SpendLog(tmp_path / "log" / "spend.jsonl", 1.0, lambda: NOON)
    with pytest.raises(ProviderFailed, match="cannot be written"):
        log.check(0.1)
    with pytest.raises(ProviderFailed, match="cannot be written"):
        log.record("openai", "m", TokenUsage(1, 1), 0.1)
    log.check(0.0)


@pytest.mark.slow
def test_several_processes_keep_one_ledger(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from memory_kb.providers.spending import SpendLog, TokenUsage\n"
        "log = SpendLog(pathlib.Path(sys.argv[1]), 1.0)\n"
        "for _ in range(100): log.record('openai', 'm', TokenUsage(1, 1), 0.001)\n"
    )
    file = tmp_path / "spend.jsonl"
    started = [subprocess.Popen([sys.executable, "-c", code, str(file)], cwd=REPOSITORY) for _ in range(4)]
    assert [process.wait(timeout=60) for process in started] == [0] * 4
    assert len(lines_of(file)) == 400
