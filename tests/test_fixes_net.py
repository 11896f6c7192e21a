"""A server that is not reached comes and goes, unless it was not reached again and an option helped at once."""

from __future__ import annotations

import pytest
from chaining import learned

TIMED_OUT = (
    "  WARNING: Retrying (Retry(total={n})) after connection broken by 'ConnectTimeoutError(<at 0x7f0c>, 'timed out')'\n"
    "ERROR: Could not install packages: HTTPSConnectionPool(host='files.example.org', port=443): Max retries exceeded"
)
FIRST, AGAIN = TIMED_OUT.format(n=4), TIMED_OUT.format(n=0)
REFUSED = (
    "npm error network request to https://registry.example.org/left failed, reason: connect ETIMEDOUT 10.0.0.1:443"
)
MIRROR = "-i https://mirror.example.org/simple"

FIXES = {
    "a mirror behind a short option": (
        [
            ("-", "pip install -r a.txt", FIRST),
            ("-", "pip install -r a.txt --timeout 60", AGAIN),
            ("+", f"pip install -r a.txt {MIRROR}"),
        ],
        (
            "`pip install -r a.txt` works",
            f"`pip install -r a.txt {MIRROR}` worked",
            "host='files.example.org', port=443): Max retries exceeded",
        ),
    ),
    "the same twice": (
        [
            ("-", "pnpm install", REFUSED),
            ("-", "pnpm install", REFUSED),
            ("+", "pnpm install --registry https://npm.example.org"),
        ],
        ("works with `--registry https://npm.example.org`", "ETIMEDOUT"),
    ),
}


@pytest.mark.parametrize(("steps", "words"), FIXES.values(), ids=FIXES)
def test_the_option_is_kept_that_helped_at_once_after_the_same_failure_twice(
    steps: list[tuple[str, ...]], words: tuple[str, ...]
) -> None:
    (offer,) = learned(*steps)
    told = f"{offer.draft.title}\n{offer.draft.text}"
    assert all(word in told for word in words), told


BUSY = "Error: listen EADDRINUSE: address already in use :::3000"
NOTHING = {
    "only once": [("-", "pip install -r a.txt", FIRST), ("+", f"pip install -r a.txt {MIRROR}")],
    "not the same": [
        ("-", "pip install -r a.txt", FIRST),
        ("-", "pip install -r a.txt", "ERROR: could not resolve host: files.example.org"),
        ("+", f"pip install -r a.txt {MIRROR}"),
    ],
    "it works by itself": [
        ("-", "pip install -r a.txt", FIRST),
        ("-", "pip install -r a.txt", AGAIN),
        ("+", "pip install -r a.txt"),
    ],
    "it had worked before": [
        ("+", "pip install -r a.txt"),
        ("-", "pip install -r a.txt", FIRST),
        ("-", "pip install -r a.txt", AGAIN),
        ("+", f"pip install -r a.txt {MIRROR}"),
    ],
    "something was changed before": [
        ("-", "pip install -r a.txt", FIRST),
        ("-", "pip install -r a.txt", AGAIN),
        ("E", "a.txt"),
        ("+", f"pip install -r a.txt {MIRROR}"),
    ],
    "it only waits longer": [
        ("-", "pip install -r a.txt", FIRST),
        ("-", "pip install -r a.txt", AGAIN),
        ("+", "pip install -r a.txt --timeout 90"),
    ],
    "two options more": [
        ("-", "pip install -r a.txt", FIRST),
        ("-", "pip install -r a.txt", AGAIN),
        ("+", f"pip install -r a.txt --pre {MIRROR}"),
    ],
    "a port that is in use": [("-", "webx serve", BUSY), ("-", "webx serve", BUSY), ("+", "webx serve --port 3001")],
    "a test that takes too long": [
        ("-", "e2e run", "Test timeout of 30000ms exceeded."),
        ("-", "e2e run", "Test timeout of 30000ms exceeded."),
        ("+", "e2e run --headed"),
    ],
}


@pytest.mark.parametrize("steps", NOTHING.values(), ids=NOTHING)
def test_what_comes_and_goes_teaches_nothing(steps: list[tuple[str, ...]]) -> None:
    assert [offer.draft.text for offer in learned(*steps)] == []
