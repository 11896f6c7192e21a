"""Embedders over the network, through the providers' own packages, against a server on this machine."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from asking import KEY, Make, failure_of
from conftest import REPOSITORY
from fake_provider import FakeProvider

from memory_kb.errors import ProviderFailed
from memory_kb.providers.gemini import gemini_embedder
from memory_kb.providers.http import QUERY, open_http_client
from memory_kb.providers.openai import openai_embedder
from memory_kb.providers.protocols import Embedder, Limits, VectorSpace

# What comes back.


def test_texts_become_vectors_of_length_one_in_their_order(make: Make, fake: FakeProvider) -> None:
    embedder = make()
    vectors = embedder.embed(["A car is fast.", "bananas", "The quick automobile"], "document")
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.allclose(vectors[1], fake.vector("bananas"), atol=1e-6)
    assert vectors[0] @ vectors[2] > 0.9 > 0.5 > vectors[0] @ vectors[1]
    assert embedder.embed([], "document").shape[0] == 0


def test_a_query_meets_the_documents(make: Make) -> None:
    embedder = make()
    documents = embedder.embed(["delete the old login", "the test is flaky"], "document")
    (query,) = embedder.embed(["remove a password"], "query")
    assert int(np.argmax(documents @ query)) == 0


def test_gemini_gets_what_a_text_is_for(fake: FakeProvider) -> None:
    embedder = gemini_embedder(None, fake.base_url, 256, key=KEY)
    embedder.embed(["one", "two"], "document")
    embedder.embed(["one"], "query")
    embedder.close()
    first, second = (call.body["requests"] for call in fake.calls)
    assert [request["taskType"] for request in first + second] == ["RETRIEVAL_DOCUMENT"] * 2 + ["RETRIEVAL_QUERY"]
    assert {request["outputDimensionality"] for request in first} == {256}
    assert fake.calls[0].path.endswith("/models/gemini-embedding-001:batchEmbedContents")
    assert fake.calls[0].headers["x-goog-api-key"] == KEY


@pytest.mark.parametrize(
    ("embedder", "space", "price"),
    [
        (openai_embedder(), VectorSpace("openai", "text-embedding-3-small", 1536), 0.02),
        (openai_embedder("text-embedding-3-large"), VectorSpace("openai", "text-embedding-3-large", 3072), 0.13),
        (
            openai_embedder("text-embedding-3-large", dimensions=256),
            VectorSpace("openai", "text-embedding-3-large", 256),
            0.13,
        ),
        (openai_embedder("text-embedding-ada-002"), VectorSpace("openai", "text-embedding-ada-002", 1536), 0.10),
        (openai_embedder("new"), VectorSpace("openai", "new", 0), None),
        (openai_embedder("new", "http://localhost:11434/v1"), VectorSpace("openai", "new", 0), 0.0),
        (openai_embedder("new", "https://example.org/v1"), VectorSpace("openai", "new", 0), None),
        (gemini_embedder(key=KEY), VectorSpace("gemini", "gemini-embedding-001", 3072), 0.15),
        (
            gemini_embedder("models/gemini-embedding-001", dimensions=768, key=KEY),
            VectorSpace("gemini", "gemini-embedding-001", 768),
            0.15,
        ),
        (gemini_embedder("new", key=KEY), VectorSpace("gemini", "new", 0), None),
    ],
)
def test_a_model_is_known_before_it_is_asked(embedder: Embedder, space: VectorSpace, price: float | None) -> None:
    assert embedder.space == space
    assert embedder.limits.price == price
    assert embedder.limits.texts >= 100
    embedder.close()


def test_an_unknown_dimension_is_learned_from_the_first_answer(make: Make, fake: FakeProvider) -> None:
    embedder = make()
    assert embedder.space.dimension == 0
    embedder.embed(["one"], "document")
    assert embedder.space.dimension == 64
    fake.dimension = 32
    error = failure_of(embedder)
    assert "32" in str(error)
    assert "64" in str(error)


def test_dimensions_are_asked_for_only_if_they_are_set(fake: FakeProvider, openai: Embedder) -> None:
    openai.embed(["one"], "document")
    assert "dimensions" not in fake.calls[-1].body
    small = openai_embedder("some-model", fake.base_url, 16)
    assert small.embed(["one"], "document").shape == (1, 16)
    assert small.space.dimension == 16
    fake.refuses.add("dimensions")
    assert "'dimensions' is not supported" in str(failure_of(small))
    small.close()


def test_servers_that_know_no_base64_are_understood(fake: FakeProvider, openai: Embedder) -> None:
    expected = openai.embed(["one", "two"], "document")
    fake.answers_lists = True
    assert np.allclose(openai.embed(["one", "two"], "document"), expected, atol=1e-6)
    fake.refuses.add("base64")
    assert np.allclose(openai.embed(["one", "two"], "document"), expected, atol=1e-6)
    asked = len(fake.calls)
    openai.embed(["three"], "document")
    assert len(fake.calls) == asked + 1, "what a server refuses is not tried again"


def test_a_server_without_a_key_is_asked_with_a_dummy(fake: FakeProvider) -> None:
    embedder = openai_embedder("some-model", fake.base_url)
    embedder.embed(["one"], "document")
    embedder.close()
    assert fake.calls[0].headers["authorization"] == "Bearer none"


def test_many_texts_come_back_in_order(make: Make, fake: FakeProvider) -> None:
    embedder = make()
    texts = [f"text number {number}" for number in range(300)]
    vectors = embedder.embed(texts, "document")
    assert [int(np.argmax(vectors @ np.array(fake.vector(texts[n]), np.float32))) for n in (0, 150, 299)] == [
        0,
        150,
        299,
    ]


# Texts that cannot be taken as they are.


def test_nothing_empty_is_sent(make: Make, fake: FakeProvider) -> None:
    vectors = make().embed(["", " \n", "word", "half \ud800 character"], "document")
    assert np.isfinite(vectors).all()
    assert set(fake.embedded_texts) == {".", "word", "half ? character"}


def test_a_text_that_is_too_long_is_halved(make: Make, fake: FakeProvider) -> None:
    embedder = make()
    fake.longest_text = 100
    texts = [f"short {number}" for number in range(9)] + ["x" * 700]
    vectors = embedder.embed(texts, "document")
    assert np.allclose(vectors[-1], fake.vector("x" * 87), atol=1e-6)
    assert np.allclose(vectors[4], fake.vector(texts[4]), atol=1e-6)
    assert len(fake.calls) < 15
    embedder.embed(["after"], "document")


@pytest.mark.parametrize(
    "said",
    ["the input length exceeds the context length", "input is too large to process. increase the physical batch size"],
)
def test_too_long_may_come_as_a_server_error(openai: Embedder, fake: FakeProvider, said: str) -> None:
    fake.fail("server-error", when="word " * 20, says=said, times=None)
    vectors = openai.embed(["word " * 30, "short"], "document")
    assert np.allclose(vectors[1], fake.vector("short"), atol=1e-6)
    assert len(fake.calls) == 4


def test_one_bad_text_does_not_lose_the_rest(make: Make, fake: FakeProvider) -> None:
    embedder = make()
    fake.fail("bad-text", when="poison", times=None)
    texts = [f"text {number}" for number in range(31)] + ["good words first, then poison"]
    vectors = embedder.embed(texts, "document")
    assert np.allclose(vectors[-1], fake.vector("good words fir"), atol=1e-6)
    assert np.allclose(vectors[7], fake.vector("text 7"), atol=1e-6)
    assert len(fake.calls) < 20
    assert np.allclose(embedder.embed(["poison"], "document"), fake.vector("poi"), atol=1e-6)


@pytest.mark.parametrize("kind", ["nan", "zero"])
def test_a_text_whose_vector_has_no_direction_does_not_lose_the_rest(make: Make, fake: FakeProvider, kind: str) -> None:
    embedder = make()
    fake.fail(kind, when="poison", times=None)
    texts = [f"text {number}" for number in range(31)] + ["good words first, then poison"]
    vectors = embedder.embed(texts, "document")
    assert np.allclose(vectors[:31], [fake.vector(text) for text in texts[:31]], atol=1e-6)
    assert np.allclose(vectors[31], fake.vector("good words fir"), atol=1e-6)
    assert len(fake.calls) < 20
    assert np.allclose(embedder.embed(["@"], "document"), fake.vector("@"), atol=1e-6)
    fake.fail(kind, when="@", times=None)
    assert np.allclose(embedder.embed(["@"], "document"), fake.vector("."), atol=1e-6)


def test_a_vector_that_came_broken_once_is_asked_for_again(make: Make, fake: FakeProvider) -> None:
    fake.fail("nan")
    assert np.allclose(make().embed(["one", "two"], "document"), [fake.vector("one"), fake.vector("two")], atol=1e-6)
    assert len(fake.calls) == 3


def test_ollama_saying_that_a_vector_is_no_number_loses_that_text_alone(openai: Embedder, fake: FakeProvider) -> None:
    fake.fail("server-error", when="poison", says="failed to encode response: json: unsupported value: NaN", times=None)
    vectors = openai.embed(["one", "poison", "two"], "document")
    assert np.allclose(vectors, [fake.vector(text) for text in ("one", "poi", "two")], atol=1e-6)


def test_a_server_that_refuses_everything_is_not_asked_a_hundred_times(make: Make, fake: FakeProvider) -> None:
    fake.fail("bad-text", times=None)
    error = failure_of(make(), tuple(f"text {number}" for number in range(64)))
    assert "is invalid" in str(error)
    assert not error.is_passing
    assert len(fake.calls) < 12


def test_a_text_of_which_nothing_can_be_sent_gets_a_stand_in(make: Make, fake: FakeProvider) -> None:
    embedder = make()
    fake.fail("bad-text", when="@", times=None)
    assert np.allclose(embedder.embed(["@"], "document"), fake.vector("."), atol=1e-6)
    fake.longest_text = 0
    assert "maximum" in str(failure_of(embedder, ("some words",)))


def test_half_of_the_batches_failing_loses_nothing(make: Make, fake: FakeProvider) -> None:
    fake.fail("server-error", every=2, times=None)
    texts = [f"text {number}" for number in range(300)]
    assert make().embed(texts, "document").shape == (300, 64)
    assert set(fake.embedded_texts.values()) == {1}


# Several at once, and the world around.


def test_vectors_of_different_lengths_are_none(make: Make, fake: FakeProvider) -> None:
    fake.fail("uneven")
    assert not failure_of(make()).is_passing


def test_an_odd_status_is_quoted(make: Make, fake: FakeProvider) -> None:
    fake.fail("teapot")
    error = failure_of(make())
    assert "refused the request (418): I am a teapot." in str(error)
    assert not error.is_passing


def test_time_that_has_run_out_is_reported(make: Make, fake: FakeProvider) -> None:
    embedder = make(query=QUERY._replace(total=0.0))
    assert "did not answer in time" in str(failure_of(embedder, purpose="query"))
    assert fake.calls == []


def test_a_package_that_cannot_start_is_reported(fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_HTTP_CLIENT", "httpx")
    embedder = gemini_embedder("m", fake.base_url, key=KEY)
    try:
        embedder.embed(["one"], "query")
    except ProviderFailed as exc:
        assert "cannot start" in str(exc)
    embedder.close()


def test_several_threads_share_an_embedder(make: Make, fake: FakeProvider) -> None:
    embedder = make()
    fake.fail("server-error", every=5, times=8)
    fake.fail("slow", seconds=0.05, times=8)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: embedder.embed([f"text {number}"], "document")[0], range(40)))
    assert all(np.allclose(answer, fake.vector(f"text {number}"), atol=1e-6) for number, answer in enumerate(answers))
    assert fake.most_at_once > 1


def test_the_environment_redirects_nothing(make: Make, fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider() as other:
        elsewhere = other.base_url
        for name, value in {
            "OPENAI_BASE_URL": elsewhere,
            "OPENAI_API_KEY": "another-key",
            "OPENAI_ADMIN_KEY": "another-key",
            "OPENAI_ORG_ID": "another-org",
            "OPENAI_PROJECT_ID": "another-project",
            "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer another-key\nX-Elsewhere: yes\nHost: elsewhere.example",
            "GOOGLE_API_KEY": "another-key",
            "GEMINI_API_KEY": "another-key",
            "GOOGLE_GEMINI_BASE_URL": elsewhere,
            "GOOGLE_VERTEX_BASE_URL": elsewhere,
            "GOOGLE_GENAI_USE_VERTEXAI": "true",
            "GOOGLE_GENAI_USE_ENTERPRISE": "true",
            "GOOGLE_GENAI_API_VERSION": "v9",
            "GOOGLE_GENAI_CLIENT_MODE": "replay",
            "GOOGLE_CLOUD_PROJECT": "another-project",
            "GOOGLE_CLOUD_LOCATION": "elsewhere",
            "HTTP_PROXY": elsewhere,
            "ALL_PROXY": elsewhere,
            "http_proxy": elsewhere,
        }.items():
            monkeypatch.setenv(name, value)
        make().embed(["one"], "document")
        assert other.calls == []
    (call,) = fake.calls
    assert "another" not in str(call.headers)
    assert "elsewhere" not in str(call.headers)
    assert KEY in str(call.headers)
    assert "v9" not in call.path


@pytest.mark.parametrize(
    "address",
    [
        "https://Example.org:443/v1",
        "http://me:secret@127.0.0.1:80/v1",
        "http://[::1]:8080",
        "https://bücher.example/v1",
    ],
)
def test_any_way_to_write_an_address_is_the_same_host(address: str) -> None:
    import httpx2

    with open_http_client(address, {"authorization": "x"}) as line:
        request = line.build_request("POST", httpx2.URL(address).join("embeddings"), headers={"X-Other": "y"})
        line.event_hooks["request"][0](request)
        assert request.headers["authorization"] == "x"
        assert "x-other" not in request.headers


def test_no_address_at_all_is_reported() -> None:
    embedder = openai_embedder("m", "http://example.org:port/v1")
    assert "is no address" in str(failure_of(embedder))


def test_a_line_leads_to_one_host_only() -> None:
    import httpx2

    with (
        FakeProvider() as other,
        open_http_client("http://127.0.0.1:1/v1", {}) as line,
        pytest.raises(httpx2.UnsupportedProtocol),
    ):
        line.get(other.base_url)


def test_making_an_embedder_loads_and_opens_nothing() -> None:
    code = (
        "import sys\n"
        "from memory_kb.settings import EmbeddingSettings\n"
        "from memory_kb.providers.models import choose_embedder\n"
        "none = choose_embedder(EmbeddingSettings(provider='none'), {})\n"
        "early = [name for name in ('logging', 'hashlib', 'http', 'numpy', 'openai', 'google') if name in sys.modules]\n"
        "choose_embedder(EmbeddingSettings(), {'OPENAI_API_KEY': 'x'}).space\n"
        "choose_embedder(EmbeddingSettings(), {'GEMINI_API_KEY': 'x'}).limits\n"
        "print(early, [name for name in ('numpy', 'openai', 'google.genai', 'httpx2', 'anthropic') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.stdout == "[] []\n", done.stderr


def test_the_fake_runs_as_a_process() -> None:
    command = [sys.executable, str(REPOSITORY / "tests" / "fake_provider.py"), "--port", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        embedder = openai_embedder("m", process.stdout.readline().strip())
        assert embedder.embed(["one"], "document").shape == (1, 64)
        embedder.close()
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert threading.active_count() < 50


def test_limits_are_what_providers_take(make: Make) -> None:
    limits = make().limits
    assert isinstance(limits, Limits)
    assert limits.texts <= 128
    assert limits.tokens <= 40_000
    assert limits.price == 0.0
