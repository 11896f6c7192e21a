"""Asking a provider: time limits, second tries, and when to stop asking."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from memory_kb.errors import ProviderFailed
from memory_kb.providers.refusals import Refusal, Service, failure, read_refusal

T = TypeVar("T")

_FIRST_DELAY = 1.0
#: Calls that fail in a row before asking stops, and for how many seconds it does at first and at most.
_PATIENCE = 3
_FIRST_PAUSE = 30.0
_LONGEST_PAUSE = 300.0


class Pace(NamedTuple):
    """How long a call may take, in seconds, and how often it is tried again.

    `total` None is no limit; `longest_wait` is what a server may ask for between two tries, and
    `is_capped` whether a longer wish is cut to it instead of ending the call.
    """

    timeout: float
    total: float | None
    retries: int
    longest_wait: float
    is_capped: bool


#: Indexing can wait; a search is never held up.
DOCUMENTS = Pace(timeout=60.0, total=None, retries=5, longest_wait=60.0, is_capped=True)
QUERY = Pace(timeout=5.0, total=5.0, retries=1, longest_wait=2.0, is_capped=False)


class Timing(NamedTuple):
    """The clocks and the chance that calls depend on; `sleep` None waits until the caller closes."""

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], object] | None = None
    rng: random.Random = random.Random()  # noqa: S311 - only spreads out second tries


class Refused(Exception):
    """A request that was refused for what it holds; the caller may change it and ask again."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.said)
        self.refusal = refusal


class Calls:
    """Calls to one provider, from any number of threads.

    After three calls that failed in a row it fails at once for half a minute, longer each time; a
    refused key ends all calls until `close`.
    """

    def __init__(self, service: Service, timing: Timing | None = None) -> None:
        self.service = service
        self._timing = timing or Timing()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._reset()

    def _reset(self) -> None:
        self._failures = 0
        self._pause = _FIRST_PAUSE
        self._until = 0.0
        self._last: ProviderFailed | None = None
        self._final: ProviderFailed | None = None

    def close(self) -> None:
        """Wake whoever waits for a second try, and forget all failures."""
        with self._lock:
            self._closing.set()
            self._closing = threading.Event()
            self._reset()

    def deadline(self, pace: Pace) -> float | None:
        """Return the moment at which a call that begins now must have ended."""
        return None if pace.total is None else self._timing.clock() + pace.total

    def call(self, request: Callable[[float], T], pace: Pace, deadline: float | None = None) -> T:
        """Return what `request` does, which is given the seconds it may take.

        Raises:
            ProviderFailed: it failed to the last try, or asking has stopped.
            Refused: the provider cannot work with what was sent.
        """
        self._check_pause()
        closing = self._closing
        for tried in range(1, pace.retries + 2):
            try:
                answer = self._attempt(request, pace, deadline)
            except Refused as refused:
                refusal = refused.refusal
                if refusal.kind in ("input", "long"):
                    raise
                wait = self._wait_before(tried, refusal, pace, deadline)
                if wait is None:
                    raise self.note_failure(refusal, tried) from None  # what the package raised may hold the key
            else:
                self._note_success()
                return answer
            (self._timing.sleep or closing.wait)(wait)
            if closing.is_set():
                raise ProviderFailed(f"{self.service.name} was not asked again: it is being closed", is_passing=True)
        raise AssertionError

    def _attempt(self, request: Callable[[float], T], pace: Pace, deadline: float | None) -> T:
        seconds = pace.timeout
        try:
            if deadline is None:
                return request(seconds)
            seconds = min(seconds, deadline - self._timing.clock())
            if seconds <= 0:
                raise TimeoutError  # noqa: TRY301 - told like any other
            return within(seconds, lambda: request(seconds))
        except Exception as exc:
            raise Refused(read_refusal(exc, self._timing.now())) from exc

    def _wait_before(self, tried: int, refusal: Refusal, pace: Pace, deadline: float | None) -> float | None:
        """Return the seconds to wait before the next try, or None if there is to be none."""
        if not refusal.can_retry or tried > pace.retries:
            return None
        wait = refusal.retry_after
        if wait is None:
            wait = self._timing.rng.uniform(0, min(pace.longest_wait, _FIRST_DELAY * 2 ** (tried - 1)))
        elif wait > pace.longest_wait:
            if not pace.is_capped:
                return None
            wait = pace.longest_wait
        if deadline is not None and self._timing.clock() + wait >= deadline:
            return None
        return wait

    def _check_pause(self) -> None:
        with self._lock:
            if self._final is not None:
                raise ProviderFailed(str(self._final), self._final.hint)
            left = self._until - self._timing.clock()
            if left > 0 and self._last is not None:
                raise ProviderFailed(
                    f"{self._last}; it is asked again in {left:.0f} s", self._last.hint, is_passing=True
                )

    def _note_success(self) -> None:
        with self._lock:
            self._failures, self._pause = 0, _FIRST_PAUSE

    def note_failure(self, refusal: Refusal, tries: int = 1) -> ProviderFailed:
        """Count a failed call and return what to raise."""
        error = failure(self.service, refusal, tries)
        with self._lock:
            self._failures += 1
            self._last = error
            if refusal.kind == "key":
                self._final = error
            elif (self._failures >= _PATIENCE or refusal.kind == "quota") and self._timing.clock() >= self._until:
                self._until = self._timing.clock() + self._pause
                self._pause = min(_LONGEST_PAUSE, 2 * self._pause)
        return error


def within(seconds: float, action: Callable[[], T]) -> T:
    """Return what `action` does, or give up waiting for it.

    The time limits of sockets are for single steps; a server that sends a byte now and then, or a
    name server that is silent, would hold a search up for much longer.

    Raises:
        TimeoutError: it took more than `seconds`.
    """
    from concurrent.futures import Future

    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(action())
        except BaseException as exc:  # noqa: BLE001 - raised again by whoever waits
            future.set_exception(exc)

    threading.Thread(target=run, daemon=True).start()
    return future.result(timeout=seconds)
