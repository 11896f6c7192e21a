"""Language models through their packages: forms that are filled in, and what happens to those that are not."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from asking import FILLED, FORM, KEY, LLMS, proper, quick
from fake_provider import FakeProvider

from memory_kb.errors import ProviderFailed
from memory_kb.providers.anthropic import anthropic_llm
from memory_kb.providers.http import Endpoint
from memory_kb.providers.llm import OUTPUT_TOKENS, FormRequest, Misfilled, RemoteLlm, Reply, check_form
from memory_kb.providers.openai import open_client, openai_llm
from memory_kb.providers.protocols import Llm
from memory_kb.providers.spending import SpendLog, TokenUsage

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> SpendLog:
    return SpendLog(tmp_path / "log" / "spend.jsonl", 1.0, lambda: NOON)


@pytest.fixture(params=LLMS)
def llm(request: pytest.FixtureRequest, fake: FakeProvider, log: SpendLog) -> Llm:
    return LLMS[request.param]("some-model", fake.base_url, key=KEY, log=log, timing=quick())


def failure_of(llm: Llm, timeout: float = 20.0) -> ProviderFailed:
    with pytest.raises(ProviderFailed) as caught:
        llm.complete("Fill in.", FORM, timeout=timeout)
    return proper(caught.value)


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


# Forms.


def test_a_form_is_filled_in(llm: Llm, fake: FakeProvider) -> None:
    fake.answers.append(FILLED)
    assert llm.complete("What went wrong?", FORM, timeout=20) == FILLED
    assert llm.complete("What went wrong?", FORM, timeout=20)["kind"] == "pitfall"
    assert "What went wrong?" in json.dumps(fake.calls[0].body)
    assert "maxItems" in json.dumps(fake.calls[0].body)
    assert KEY in str(fake.calls[0].headers)


def test_each_provider_gets_the_schema_in_its_own_way(fake: FakeProvider, log: SpendLog) -> None:
    for make in LLMS.values():
        make("m", fake.base_url, key=KEY, log=log).complete("Fill in.", FORM, timeout=20)
    openai, gemini, anthropic = (call.body for call in fake.calls)
    form = openai["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"] == FORM
    assert "max_tokens" not in openai
    assert gemini["generationConfig"]["responseJsonSchema"] == FORM
    assert gemini["generationConfig"]["maxOutputTokens"] == OUTPUT_TOKENS
    assert anthropic["output_config"]["format"]["schema"]["required"] == ["title", "kind", "tags"]
    assert anthropic["max_tokens"] == OUTPUT_TOKENS
    assert [call.path.rpartition("/")[2] for call in fake.calls] == ["completions", "m:generateContent", "messages"]


def test_a_fence_is_taken_off(llm: Llm, fake: FakeProvider) -> None:
    fake.answers.append("```json\n" + json.dumps(FILLED) + "\n```")
    assert llm.complete("Fill in.", FORM, timeout=20) == FILLED


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("I cannot do that.", "no JSON"),
        ("", "is empty"),
        ("[1]", "is no object"),
        ('"text"', "is no object"),
        (FILLED | {"kind": "story"}, "kind is none of"),
        (FILLED | {"title": 7}, "title is no string"),
        (FILLED | {"tags": "http"}, "tags is no array"),
        (FILLED | {"tags": ["a", None]}, "tags[1] is no string"),
        ({"title": "x", "kind": "pattern"}, "lacks tags"),
    ],
)
def test_what_is_wrong_with_a_form_is_reported(
    fake: FakeProvider, log: SpendLog, answer: str | Mapping[str, Any], words: str
) -> None:
    llm = openai_llm("m", fake.base_url, key=KEY, log=log)
    fake.answers += [answer, answer, FILLED]
    error = failure_of(llm)
    assert words in str(error)
    assert "did not fill in the form" in str(error)
    assert len(fake.calls) == 2


def test_a_form_filled_in_wrongly_is_asked_for_once_more(llm: Llm, fake: FakeProvider) -> None:
    fake.answers += ["I cannot do that.", FILLED]
    assert llm.complete("Fill in.", FORM, timeout=20) == FILLED
    assert "could not be used: the answer is no JSON" in json.dumps(fake.calls[1].body)


def test_a_form_is_an_object(fake: FakeProvider, log: SpendLog) -> None:
    fake.answers += ["[1]", "[1]"]
    with pytest.raises(ProviderFailed, match="the answer is no object"):
        openai_llm("m", fake.base_url, key=None, log=log).complete("Fill in.", {}, timeout=20)


def test_a_model_that_counts_no_tokens_is_counted_for(llm: Llm, fake: FakeProvider, tmp_path: Path) -> None:
    fake.tells_usage = False
    llm.complete("Fill in. " * 100, FORM, timeout=20)
    (line,) = lines_of(tmp_path / "log" / "spend.jsonl")
    assert 300 < line["input_tokens"] < 600
    assert 0 < line["output_tokens"] < 100


@pytest.mark.parametrize(
    ("value", "schema", "mistake"),
    [
        (True, {"type": "integer"}, "x is no integer"),
        (1.5, {"type": "integer"}, "x is no integer"),
        ("c", {"type": "string", "enum": ["a", "b"]}, "x is none of ['a', 'b']"),
        (
            {"a": {"b": ["c", None]}},
            {
                "properties": {
                    "a": {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "string"}}}},
                },
            },
            "x.a.b[1] is no string",
        ),
    ],
)
def test_mistakes_are_found(value: object, schema: Mapping[str, Any], mistake: str) -> None:
    with pytest.raises(Misfilled) as caught:
        check_form(value, schema, "x")
    assert str(caught.value) == mistake


def test_more_than_was_asked_for_is_no_mistake() -> None:
    check_form({"other": 1}, {"type": "object", "properties": {}})


# Servers that know less.


def test_a_server_without_schemas_is_reported_in_words(fake: FakeProvider, log: SpendLog) -> None:
    for refused in ("json_schema", "response_format"):
        llm = openai_llm("m", fake.base_url, key=None, log=log)
        fake.refuses = {refused}
        fake.answers += [FILLED, FILLED]
        assert llm.complete("Fill in.", FORM, timeout=20) == FILLED
        asked = len(fake.calls)
        assert llm.complete("Fill in.", FORM, timeout=20) == FILLED
        assert ["response_format" in call.body for call in fake.calls[asked:]] == [False]
        assert '"maxItems": 3' in fake.calls[-1].body["messages"][0]["content"]


@pytest.mark.parametrize(("kind", "refused"), [("gemini", "responseJsonSchema"), ("anthropic", "output_config")])
def test_a_model_without_schemas_is_reported_in_words(
    fake: FakeProvider, log: SpendLog, kind: str, refused: str
) -> None:
    llm = LLMS[kind]("m", fake.base_url, key=KEY, log=log)
    fake.refuses = {refused}
    fake.answers.append(FILLED)
    assert llm.complete("Fill in.", FORM, timeout=20) == FILLED
    assert "Its JSON schema" in json.dumps(fake.calls[-1].body)


def test_a_server_that_refuses_everything_is_quoted(llm: Llm, fake: FakeProvider) -> None:
    fake.fail("bad-text", times=None)
    assert "is invalid" in str(failure_of(llm))
    assert len(fake.calls) <= 3


def test_a_server_that_answers_something_else_is_no_crash(fake: FakeProvider, log: SpendLog) -> None:
    llm = openai_llm("m", fake.base_url, key=None, log=log)
    fake.fail("html", times=2)
    assert "is empty" in str(failure_of(llm))


# Failures.


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("rate-limit", "could not answer 3 times (429)"),
        ("malformed", "an answer that cannot be read"),
        ("drop", "broke off its answer"),
    ],
)
def test_what_passes_is_tried_three_times(llm: Llm, fake: FakeProvider, kind: str, words: str) -> None:
    fake.fail(kind, times=None)
    error = failure_of(llm)
    assert words in str(error)
    assert error.is_passing
    assert len(fake.calls) == 3


def test_an_answer_comes_in_time_or_not_at_all(llm: Llm, fake: FakeProvider) -> None:
    fake.fail("slow", seconds=600, times=None)
    started = time.monotonic()
    assert "did not answer in time" in str(failure_of(llm, timeout=0.3))
    assert time.monotonic() - started < 300


def test_an_answer_that_was_cut_off_is_no_answer(log: SpendLog, fake: FakeProvider) -> None:
    def ask(_client: object, _question: FormRequest) -> Reply:
        return Reply(json.dumps(FILLED), TokenUsage(1, 1), is_cut=True)

    endpoint = Endpoint("openai", "OpenAI", fake.base_url, "", "OPENAI_API_KEY", "llm", open_client)
    llm = RemoteLlm(endpoint, "m", log, ask)
    assert "longer than 8000 tokens" in str(failure_of(llm))


def test_the_environment_redirects_nothing(llm: Llm, fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider() as other:
        for name, value in {
            "ANTHROPIC_BASE_URL": other.base_url,
            "ANTHROPIC_API_KEY": "another-key",
            "ANTHROPIC_AUTH_TOKEN": "another-key",
            "ANTHROPIC_PROFILE": "another-profile",
            "ANTHROPIC_CUSTOM_HEADERS": "X-Api-Key: another-key\nX-Elsewhere: yes",
            "OPENAI_BASE_URL": other.base_url,
            "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer another-key",
            "GOOGLE_GEMINI_BASE_URL": other.base_url,
            "GOOGLE_GENAI_USE_VERTEXAI": "true",
            "HTTP_PROXY": other.base_url,
        }.items():
            monkeypatch.setenv(name, value)
        llm.complete("Fill in.", FORM, timeout=20)
        assert other.calls == []
    (call,) = fake.calls
    assert "another" not in str(call.headers)
    assert "elsewhere" not in str(call.headers).lower()


def test_a_missing_package_is_named(log: SpendLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ProviderFailed) as caught:
        anthropic_llm(None, None, key=KEY, log=log)
    assert caught.value.hint == "pip install 'memory-kb[anthropic]'"
