"""From a long task description to what is looked for, with a language model and without."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import NOW, write_files

from memory_kb import KnowledgeBase

if TYPE_CHECKING:
    from fake_provider import FakeProvider

Open = Callable[..., KnowledgeBase]
NOTES = {
    f"common{number}.md": f"The service and the deployment of the team, part {number}." for number in range(30)
} | {
    "quokka.md": "The quokka lock is taken before the deployment.",
    "wombat.md": "Wombat certificates expire in spring.",
}
TASK = (
    'Please fix the "service" deployment -quickly- for the team. '
    + "The team owns the service and its deployment. " * 6
    + "It seems that the quokka lock is not released. "
)


@pytest.fixture
def open_with(tmp_path: Path, home: Path) -> Iterator[Open]:
    opened: list[KnowledgeBase] = []

    def open_one(**variables: str) -> KnowledgeBase:
        folder = write_files(tmp_path / "vault", NOTES)
        environ = {"HOME": str(home.parent), "MEMORY_KB_EMBEDDINGS_PROVIDER": "none"} | variables
        opened.append(KnowledgeBase.open(folder, home, environ=environ, clock=lambda: NOW))
        return opened[-1]

    yield open_one
    for kb in opened:
        kb.close()


def asking(fake: FakeProvider, **more: str) -> dict[str, str]:
    return {
        "MEMORY_KB_LLM_PROVIDER": "openai",
        "MEMORY_KB_LLM_BASE_URL": fake.base_url,
        "MEMORY_KB_LLM_MODEL": "m",
    } | more


def test_without_a_model_the_rare_words_of_a_task_decide(open_with: Open) -> None:
    """Its quotes and dashes are text, and common words do not crowd out the rare one."""
    result = open_with().search(TASK, limit=3)
    assert result.hits[0].path == "quokka.md"
    assert result.degraded == ()


def test_only_the_beginning_of_a_task_is_read_without_a_model(open_with: Open) -> None:
    assert "wombat.md" not in [
        hit.path for hit in open_with().search(TASK + "word " * 100 + "wombat certificates").hits
    ]


def test_a_model_names_the_key_terms_once(open_with: Open, fake: FakeProvider) -> None:
    fake.answers.append({"terms": ["wombat", "certificates"]})
    kb = open_with(**asking(fake))
    for _ in range(2):
        result = kb.search(TASK)
        assert (result.hits[0].path, result.degraded) == ("wombat.md", ())
    assert open_with(**asking(fake)).search(TASK).hits[0].path == "wombat.md"
    assert len(fake.calls) == 1
    sent = json.dumps(fake.calls[0].body)
    assert "quokka lock" in sent
    spent = [json.loads(line) for line in (kb.vault.machine / "log" / "spend.jsonl").read_text().splitlines()]
    assert [line["model"] for line in spent] == ["m"]


def test_a_short_question_costs_nothing(open_with: Open, fake: FakeProvider) -> None:
    assert open_with(**asking(fake)).search("quokka lock").hits[0].path == "quokka.md"
    assert not fake.calls


@pytest.mark.parametrize("answer", [{"terms": []}, {"terms": ["?!"]}, {"words": ["x"]}, "no JSON"])
def test_an_answer_of_no_use_leaves_the_rare_words(answer: object, open_with: Open, fake: FakeProvider) -> None:
    fake.answers.extend([answer, answer, answer])  # type: ignore[list-item]
    result = open_with(**asking(fake)).search(TASK)
    assert result.hits[0].path == "quokka.md"
    assert result.degraded[0].endswith("looked for the rarest words of the text")


@pytest.mark.parametrize("kind", ["bad-key", "no-quota"])
def test_a_model_that_fails_leaves_the_rare_words(kind: str, open_with: Open, fake: FakeProvider) -> None:
    fake.fail(kind, times=None)
    result = open_with(**asking(fake)).search(TASK)
    assert result.hits[0].path == "quokka.md"
    assert len(result.degraded) == 1


def test_a_key_that_is_missing_is_reported(open_with: Open) -> None:
    result = open_with(MEMORY_KB_LLM_PROVIDER="gemini").search(TASK)
    assert result.hits[0].path == "quokka.md"
    assert "GOOGLE_API_KEY" in result.degraded[0]


def test_offline_is_a_choice(open_with: Open) -> None:
    assert open_with(MEMORY_KB_LLM_PROVIDER="offline").search(TASK).degraded == ()


def test_the_daily_budget_ends_the_asking(open_with: Open, fake: FakeProvider) -> None:
    fake.answers.append({"terms": ["wombat"]})
    variables = asking(fake, MEMORY_KB_LLM_DAILY_SPEND="0", MEMORY_KB_LLM_MODEL="gpt-5-mini", OPENAI_API_KEY="sk-test")
    del variables["MEMORY_KB_LLM_BASE_URL"]
    result = open_with(**variables).search(TASK)
    assert result.hits[0].path == "quokka.md"
    assert "daily_spend" in result.degraded[0]
    assert not fake.calls
