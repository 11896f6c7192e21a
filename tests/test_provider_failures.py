"""What goes wrong with a provider, and what is done about it: sentences, second tries, and no more of them."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from asking import KEY, Clock, Make, failure_of

from memory_kb.errors import ProviderFailed
from memory_kb.providers.gemini import gemini_embedder
from memory_kb.providers.http import (
    DOCUMENTS,
    QUERY,
    Endpoint,
    Pace,
    ProviderCalls,
    Timing,
    quote_answer,
    read_refusal,
)
from memory_kb.providers.openai import open_client, openai_embedder
from memory_kb.providers.protocols import Embedder

if TYPE_CHECKING:
    from fake_provider import FakeProvider

# What goes wrong.


FAILURES = [
    ("bad-key", 1, False, "refused the key"),
    ("forbidden", 1, False, "refused the key"),
    ("unknown-model", 1, False, "does not know the model"),
    ("no-quota", 1, True, "has no quota left"),
    ("rate-limit", 6, True, "could not answer 6 times (429)"),
    ("timeout-status", 6, True, "could not answer 6 times (408)"),
    ("conflict", 6, True, "could not answer 6 times (409)"),
    ("server-error", 6, True, "could not answer 6 times (500)"),
    ("unavailable", 6, True, "could not answer 6 times (503)"),
    ("empty", 6, True, "could not answer 6 times (503)"),
    ("malformed", 6, True, "an answer that cannot be read"),
    ("drop", 6, True, "broke off its answer"),
    ("wrong-dimension", 1, False, "65 dimensions, not 64"),
    ("wrong-count", 1, False, "1 vectors for 2 texts"),
]


def test_every_failure_has_its_sentence(make: Make, fake: FakeProvider, clock: Clock) -> None:
    for kind, tries, is_passing, words in FAILURES:
        embedder = make()
        embedder.embed(["one"], "document")
        fake.fail(kind, times=None)
        asked, slept = len(fake.calls), len(clock.slept)
        error = failure_of(embedder)
        fake.heal()
        assert words in str(error)
        assert not str(error).rstrip().endswith(":")
        assert fake.base_url.split("/")[2] in str(error)
        assert error.is_passing is is_passing, kind
        assert len(fake.calls) - asked == tries, kind
        assert len(clock.slept) - slept == tries - 1, kind


@pytest.mark.parametrize("kind", ["nan", "zero"])
def test_a_model_whose_vectors_have_no_direction_is_reported(make: Make, fake: FakeProvider, kind: str) -> None:
    embedder = make()
    fake.fail(kind, times=None)
    for texts in (("one",), ("one", "two")):
        error = failure_of(embedder, texts)
        assert "zero or no number" in str(error)
        assert fake.base_url.split("/")[2] in str(error)
        assert error.is_passing
    assert len(fake.calls) <= 8


def test_a_page_instead_of_vectors_is_reported(openai: Embedder, fake: FakeProvider) -> None:
    fake.fail("html")
    error = failure_of(openai)
    assert "something other than vectors" in str(error)
    assert "/v1" in str(error.hint)


def test_vectors_out_of_order_are_put_in_order(openai: Embedder, fake: FakeProvider) -> None:
    expected = openai.embed(["one", "two", "three"], "document")
    for kind in ("shuffled", "unnumbered"):
        fake.fail(kind)
        assert np.array_equal(openai.embed(["one", "two", "three"], "document"), expected)


def test_vectors_with_wrong_numbers_are_not_taken(openai: Embedder, fake: FakeProvider) -> None:
    fake.fail("misnumbered")
    assert "something other than vectors" in str(failure_of(openai, ("one", "two")))


def test_hints_name_what_to_set(fake: FakeProvider, clock: Clock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    nobody = openai_embedder("m", f"http://127.0.0.1:{port}/v1", timing=clock.timing)
    error = failure_of(nobody)
    assert "cannot be reached" in str(error)
    assert "embeddings.base_url" in str(error.hint)
    nobody.close()
    gemini = gemini_embedder("m", fake.base_url, key=KEY)
    fake.fail("bad-key")
    assert "GOOGLE_API_KEY or GEMINI_API_KEY" in str(failure_of(gemini).hint)
    gemini.close()


WITH_A_KEY = [
    f"Incorrect API key provided: {KEY}.",
    f"no\nsuch key\r\n{KEY}\t" + "x " * 500,
    "Incorrect API key provided: sk-abcd**********wxyz.",
    "Bearer abcdefghijk is unknown",
    "key AIzaSyA1234567890abcdefghijklmnop is unknown",
    "token 0123456789abcdef0123456789abcdef is unknown",
]


def test_what_looks_like_a_key_is_not_repeated(make: Make, fake: FakeProvider) -> None:
    for said in WITH_A_KEY:
        fake.fail("server-error", times=None, says=said)
        shown = str(failure_of(make()))
        fake.heal()
        for piece in ("0123456789", "abcd*", "wxyz", "abcdefghijk", "AIza"):
            assert piece not in shown


def test_a_quote_is_one_short_line() -> None:
    assert quote_answer("a\nb  c", "") == "a b c"
    assert len(quote_answer("word " * 100, "")) <= 200
    plain = "the model text-embedding-nomic-embed-text-v1.5 is unknown"
    assert quote_answer(plain, "") == plain
    assert (
        quote_answer("key begins with abcdefgh, ends with 12345678", "abcdefgh-something-12345678")
        == "key begins with …, ends with …"
    )


# Second tries.


def test_a_failure_that_passes_is_not_noticed(make: Make, fake: FakeProvider, clock: Clock) -> None:
    fake.fail("server-error", times=3)
    assert len(make().embed(["one"], "document")) == 1
    assert len(fake.calls) == 4
    assert all(0 <= slept <= 2**number for number, slept in enumerate(clock.slept))
    assert len(set(clock.slept)) == 3


@pytest.mark.parametrize(
    ("retry_after", "slept"),
    [("2", 2.0), ("0.25", 0.25), ("soon", None)],
    ids=["seconds", "fraction", "nonsense"],
)
def test_a_wait_that_is_asked_for_is_kept(
    openai: Embedder, fake: FakeProvider, clock: Clock, retry_after: str, slept: float | None
) -> None:
    fake.fail("rate-limit", retry_after=retry_after)
    openai.embed(["one"], "document")
    assert len(clock.slept) == 1
    assert clock.slept[0] <= 1 if slept is None else clock.slept == [slept]


def test_a_server_that_asks_for_a_longer_wait_is_not_asked_again(
    openai: Embedder, fake: FakeProvider, clock: Clock
) -> None:
    fake.fail("rate-limit", retry_after=3600)
    assert failure_of(openai).is_passing
    assert (len(fake.calls), clock.slept) == (1, [])


def test_gemini_says_in_its_own_way_how_long_to_wait(fake: FakeProvider, clock: Clock) -> None:
    embedder = gemini_embedder("m", fake.base_url, key=KEY, timing=clock.timing)
    fake.fail("rate-limit", retry_after=17)
    embedder.embed(["one"], "document")
    assert clock.slept == [17.0]
    embedder.close()


def test_a_query_is_tried_twice_and_waits_for_nobody(make: Make, fake: FakeProvider, clock: Clock) -> None:
    embedder = make()
    fake.fail("rate-limit", retry_after=1)
    embedder.embed(["one"], "query")
    assert clock.slept == [1.0]
    fake.fail("rate-limit", retry_after=3)
    assert "(429)" in str(failure_of(embedder, purpose="query"))
    fake.fail("server-error", times=None)
    before = len(fake.calls)
    failure_of(embedder, purpose="query")
    assert len(fake.calls) == before + 2
    assert sum(clock.slept) < 3


def test_the_usual_limits() -> None:
    assert Pace(timeout=5.0, total=5.0, retries=1, longest_wait=2.0) == QUERY
    assert Pace(timeout=60.0, total=None, retries=5, longest_wait=60.0) == DOCUMENTS


@pytest.mark.parametrize(("kind", "seconds"), [("slow", 600.0), ("trickle", 0.2)])
def test_a_query_ends_in_time_whatever_the_server_does(
    make: Make, fake: FakeProvider, kind: str, seconds: float
) -> None:
    embedder = make(query=QUERY._replace(timeout=0.1, total=0.1), timing=Timing())
    embedder.embed(["one"], "document")
    fake.fail(kind, seconds=seconds, times=None)
    started = time.monotonic()
    error = failure_of(embedder, purpose="query")
    assert time.monotonic() - started < 300
    assert "did not answer in time" in str(error)
    assert error.is_passing


def test_documents_have_a_time_limit_too(make: Make, fake: FakeProvider) -> None:
    embedder = make(document=DOCUMENTS._replace(timeout=0.1, retries=1))
    fake.fail("slow", seconds=5, times=None)
    assert "did not answer in time 2 times" in str(failure_of(embedder))


def test_closing_ends_the_wait_for_a_second_try(fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    decide, has_decided = ProviderCalls._wait_before, threading.Event()

    def wait_before(*given: Any) -> float | None:
        seconds = decide(*given)
        has_decided.set()
        return seconds

    monkeypatch.setattr(ProviderCalls, "_wait_before", wait_before)
    embedder = openai_embedder("m", fake.base_url)
    fake.fail("rate-limit", retry_after=50, times=None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(embedder.embed, ["one"], "document")
        assert has_decided.wait(60)
        embedder.close()
        with pytest.raises(ProviderFailed, match="being closed"):
            waiting.result(timeout=40)


# When asking stops.


def test_after_three_failures_asking_stops_for_a_while(make: Make, fake: FakeProvider, clock: Clock) -> None:
    embedder = make(document=DOCUMENTS._replace(retries=0))
    fake.fail("unavailable", times=None)
    for pause in (60, 60, 60):
        while len(fake.calls) < 3:
            failure_of(embedder)
        asked = len(fake.calls)
        error = failure_of(embedder)
        assert f"asked again in {pause} s" in str(error)
        assert "(503)" in str(error)
        assert error.is_passing
        clock.time += pause - 1
        failure_of(embedder)
        assert len(fake.calls) == asked
        clock.time += 1
        failure_of(embedder)
        assert len(fake.calls) == asked + 1
    fake.heal()
    clock.time += 60
    embedder.embed(["one"], "document")
    fake.fail("unavailable", times=2)
    failure_of(embedder)
    failure_of(embedder)
    embedder.embed(["one"], "document")


def test_an_empty_account_stops_asking_at_once(make: Make, fake: FakeProvider, clock: Clock) -> None:
    embedder = make()
    fake.fail("no-quota")
    failure_of(embedder)
    assert "has no quota left" in str(failure_of(embedder))
    assert len(fake.calls) == 1
    clock.time += 60
    embedder.embed(["one"], "document")


def test_a_wrong_key_stops_asking_until_closed(make: Make, fake: FakeProvider) -> None:
    embedder = make()
    fake.fail("bad-key")
    first, again = failure_of(embedder), failure_of(embedder)
    assert str(again).startswith(str(first))
    assert (again.hint, again.is_passing) == (first.hint, False)
    assert len(fake.calls) == 1
    embedder.close()
    embedder.embed(["one"], "document")


def test_what_no_package_should_raise_is_reported_too() -> None:
    refused = read_refusal(RuntimeError("odd"))
    assert (refused.kind, refused.status, refused.said) == ("other", None, "odd")
    assert KEY not in repr(Endpoint("x", "X", None, KEY, "", "llm", open_client))
