"""The HTTP client of all providers: limits, retries, and errors as sentences.

The providers' packages write requests and read answers, and retry nothing: a wait of theirs could not be ended by
closing, nor kept within the time limit of a search.
"""

from __future__ import annotations

import contextlib
import math
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from memory_kb.errors import ProviderFailed
from memory_kb.providers.protocols import Purpose, display_host, is_loopback
from memory_kb.text import load_json, printable, shorten

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

#: Seconds in which a server must accept the connection.
CONNECT_SECONDS = 5.0
#: The headers that the providers' packages may send; of others, some come from variables of the environment.
_SENT = {
    *("accept", "accept-encoding", "anthropic-version", "authorization", "connection"),
    *("content-length", "content-type", "host", "user-agent"),
}


def open_http_client(base_url: str, headers: Mapping[str, str]) -> httpx2.Client:
    """Return a client that sends to the host of `base_url` only, always with `headers`.

    Proxies of the environment are used, except for servers on this machine.
    """
    import httpx2

    try:
        target = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        target = httpx2.URL()
    if target.scheme not in ("http", "https") or not target.host:
        # What is before an @ may be a password.
        shown = base_url.rpartition("@")[2][:60]
        raise ProviderFailed(f"{shown} is no address", "base_url looks like http://localhost:11434/v1")

    def check(request: httpx2.Request) -> None:
        if (request.url.scheme, request.url.netloc) != (target.scheme, target.netloc):
            raise httpx2.UnsupportedProtocol(f"the request would have gone to {request.url.host}", request=request)
        for name in set(request.headers) - _SENT:
            del request.headers[name]
        request.headers.update({**headers, "host": target.netloc.decode()})
        timeout = request.extensions.get("timeout", {})
        timeout["connect"] = min(CONNECT_SECONDS, timeout.get("connect") or CONNECT_SECONDS)

    return httpx2.Client(
        trust_env=not is_loopback(base_url),
        verify=target.scheme == "https",
        event_hooks={"request": [check], "response": [_refuse_errors]},
    )


class Endpoint(NamedTuple):
    """Where a provider is asked, and what messages say about it.

    `label` is what people call the provider, and `base_url` the address of a server that speaks like it, None for its
    own. `key` is sent, and removed from messages; it is never shown. `key_names` are the variables that hold it, and
    `setting` is the group of settings that chose the provider. `open_client` makes a client of the provider's package
    for address and key, and the HTTP client below it, which is what is closed.
    """

    provider: str
    label: str
    base_url: str | None
    key: str
    key_names: str
    setting: str
    open_client: Callable[[str | None, str], tuple[Any, httpx2.Client]]

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"the server at {display_host(self.base_url)}" if self.base_url else self.label

    @property
    def model_hint(self) -> str:
        """The hint for an answer that cannot be used."""
        return f"check {self.setting}.model, and {self.setting}.base_url if it is set (like OpenAI's it usually ends in /v1)"

    @property
    def address_hint(self) -> str:
        """The hint for a server that does not answer."""
        return f"check the network connection, and {self.setting}.base_url if it is set: is that server running?"


# -- what comes instead of an answer -------------------------------------------------------

_QUOTED_CHARACTERS = 200
_KEY_SHAPES = re.compile(
    r"(?i:bearer\s+\S+)|\S*\*{3,}\S*|\b(?:sk|pk|rk|gsk|hf|xai|pplx|tgp|nvapi)[-_][\w-]{6,}|\bAIza[\w-]{6,}"
    r"|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])(?:\w{32,}|[\w-]{40,})"
)
#: Messages of servers about a text that they cannot take, sent with a status that means something else.
_UNFIT = re.compile(
    r"input length exceeds|input is too large|request too large|maximum context length"
    r"|unsupported value: (?:NaN|[+-]?Inf)",
    re.IGNORECASE,
)
#: Messages that an account has no credit, of OpenAI, Anthropic and Gemini; other refusals mean too many requests.
_NO_QUOTA = re.compile(r"insufficient_quota|credit balance|PerDay|\"quotaValue\": ?\"0\"", re.IGNORECASE)
_WRONG_KEY = re.compile(r"api_key_invalid|invalid_api_key|api key not valid|api key expired", re.IGNORECASE)


class Refused(Exception):
    """A request that failed or was refused.

    `kind` is "unreachable", "timeout", "dropped" or "malformed" where no answer came, and there is no `status` then;
    else it is "key", "model", "quota", "input", "busy" or "other". `retry_after` are the seconds that the server asks
    to wait.
    """

    def __init__(self, kind: str, said: str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(said)
        self.kind, self.said, self.status, self.retry_after = kind, said, status, retry_after

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.is_unanswered or self.kind in ("unreachable", "busy", "quota")

    @property
    def is_unanswered(self) -> bool:
        """Whether the request may have been worked on, and paid for, though no answer came."""
        return self.kind in ("timeout", "dropped", "malformed")


def _refuse_errors(response: httpx2.Response) -> None:
    """Raise `Refused` for an error status, before the provider's package sees the response."""
    if not response.is_error:
        return
    response.read()
    text = response.text
    body: Any = None
    with contextlib.suppress(ValueError):
        body = load_json(text)
        body = body.get("error", body) if isinstance(body, dict) else body
    said = (body.get("message") or body.get("detail") or body) if isinstance(body, dict) else body or text
    delay = re.search(r'"retryDelay": ?"([\d.]+)s"', text)
    wait = math.inf
    with contextlib.suppress(ValueError):
        wait = float(response.headers.get("retry-after") or (delay[1] if delay else "inf"))
    kind = _kind_of(response.status_code, text)
    raise Refused(kind, str(said), response.status_code, wait if 0 <= wait < math.inf else None)


def read_refusal(exc: BaseException) -> Refused:
    """Return a provider package's exception as `Refused`; most wrap an exception of their HTTP client."""
    import httpx2

    chain = [exc]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)

    def find(*kinds: type[BaseException]) -> BaseException | None:
        return next((link for link in chain if isinstance(link, kinds)), None)

    if isinstance(refused := find(Refused), Refused):
        return refused
    if failed := find(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError):
        return Refused("unreachable", str(failed) or "it does not accept connections")
    if find(TimeoutError, httpx2.TimeoutException):
        return Refused("timeout", "no answer in time")
    transport = find(httpx2.HTTPError, OSError)
    if transport and not isinstance(transport, httpx2.UnsupportedProtocol):
        return Refused("dropped", str(transport) or type(transport).__name__)
    if find(ValueError):
        return Refused("malformed", "its answer is cut off or no JSON")
    return Refused("other", str(transport or exc) or type(exc).__name__)


def _kind_of(status: int, text: str) -> str:
    """Sort an error by its status and its words.

    Example:
        >>> [_kind_of(429, words) for words in ("rate limit", "code: insufficient_quota", "Request too large for this model")]
        ['busy', 'quota', 'input']
    """
    if status in (401, 403) or (status == 400 and _WRONG_KEY.search(text)):
        return "key"
    if status == 402 or (status in (400, 429) and _NO_QUOTA.search(text)):
        return "quota"
    if status == 404:
        return "model"
    if status in (400, 413, 422) or (status in (429, 500) and _UNFIT.search(text)):
        return "input"
    return "busy" if status in (408, 409, 429) or status >= 500 else "other"


def quote_answer(said: str, key: str) -> str:
    """Return the server's words on one line, short and without anything that looks like a key.

    Example:
        >>> quote_answer("Incorrect API key:\\n sk-abc***xyz, mine-1234", "mine-1234")
        'Incorrect API key: … …'
    """
    text = printable(said)[:4000]
    if len(key) >= 4:
        text = text.replace(key, "…")
    text = _KEY_SHAPES.sub("…", text)
    for piece in (key[:8], key[-8:]) if len(key) >= 16 else ():
        text = text.replace(piece, "…")
    return shorten(text, _QUOTED_CHARACTERS)


def failure(endpoint: Endpoint, refused: Refused, tries: int) -> ProviderFailed:
    """Return a refusal as the error to raise, with a hint about what to do."""
    status = f" ({refused.status})" if refused.status is not None else ""
    often = f" {tries} times" if tries > 1 else ""
    verb, hint = {
        "key": ("refused the key", f"check {endpoint.key_names}"),
        "quota": ("has no quota left for this key", "check plan and billing at the provider"),
        "model": ("does not know the model or the address", endpoint.model_hint),
        "busy": ("could not answer", "it usually passes; try again in a minute"),
        "timeout": ("did not answer in time", endpoint.address_hint),
        "unreachable": ("cannot be reached", endpoint.address_hint),
        "dropped": ("broke off its answer", endpoint.address_hint),
        "malformed": ("gave an answer that cannot be read", endpoint.address_hint),
    }.get(refused.kind, ("refused the request", endpoint.model_hint))
    said = "" if refused.kind == "timeout" else quote_answer(refused.said, endpoint.key)
    colon = ": " if said else ""
    return ProviderFailed(f"{endpoint.name} {verb}{often}{status}{colon}{said}", hint, is_passing=refused.is_passing)


# -- calls ---------------------------------------------------------------------------------

_FIRST_DELAY = 1.0
#: After this many failed calls in a row, all calls fail at once for this many seconds.
_PATIENCE, _PAUSE = 3, 60.0


class Pace(NamedTuple):
    """How long a call may take, in seconds, and how often it is tried again.

    `total` None is no limit; a server that asks for more than `longest_wait` between two tries is not asked again.
    """

    timeout: float
    total: float | None
    retries: int
    longest_wait: float


#: Indexing can wait; a search is never held up.
DOCUMENTS = Pace(timeout=60.0, total=None, retries=5, longest_wait=60.0)
QUERY = Pace(timeout=5.0, total=5.0, retries=1, longest_wait=2.0)


class Timing(NamedTuple):
    """The clock that calls depend on, and how long they may take; `sleep` None waits until the caller closes."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] | None = None
    paces: Mapping[Purpose, Pace] = {"document": DOCUMENTS, "query": QUERY}


class ProviderCalls:
    """Calls to one provider, from any number of threads.

    After three failed calls in a row, a refused key or a spent quota, further calls fail at once for a minute.
    """

    def __init__(self, endpoint: Endpoint, timing: Timing | None = None) -> None:
        self.endpoint = endpoint
        self.timing = timing or Timing()
        self._closing = threading.Event()
        self._failures, self._until = 0, 0.0
        self._last: ProviderFailed | None = None

    def close(self) -> None:
        """End the waits of calls that are to be tried again, and forget all failures."""
        self._closing.set()
        self._closing = threading.Event()
        self._failures, self._until = 0, 0.0

    def deadline(self, pace: Pace) -> float | None:
        """Return the moment at which a call that begins now must have ended."""
        return None if pace.total is None else self.timing.clock() + pace.total

    def call(self, request: Callable[[float], T], pace: Pace, deadline: float | None = None) -> T:
        """Call `request` with the seconds it may take, again if it fails, and return its result.

        Raises:
            ProviderFailed: it failed to the last try, or asking has stopped.
            Refused: the provider cannot work with what was sent; the caller may change it and ask again.
        """
        last, left = self._last, self._until - self.timing.clock()
        if last and left > 0:
            again = f"it is asked again in {left:.0f} s"
            raise ProviderFailed(f"{last}; {again}", last.hint, is_passing=last.is_passing)
        closing = self._closing
        for tried in range(1, pace.retries + 2):
            try:
                answer = self._attempt(request, pace, deadline)
            except Refused as refused:
                if refused.kind == "input":
                    raise
                wait = self._wait_before(tried, refused, pace, deadline)
                if wait is None:
                    raise self.note_failure(refused, tried) from None  # what the package raised may hold the key
            else:
                self._failures = 0
                return answer
            (self.timing.sleep or closing.wait)(wait)
            if closing.is_set():
                raise ProviderFailed(f"{self.endpoint.name} was not asked again: it is being closed", is_passing=True)
        raise AssertionError

    def _attempt(self, request: Callable[[float], T], pace: Pace, deadline: float | None) -> T:
        seconds = pace.timeout if deadline is None else min(pace.timeout, deadline - self.timing.clock())
        try:
            if seconds <= 0:
                raise TimeoutError  # noqa: TRY301 - handled like any other
            return request(seconds) if deadline is None else within(seconds, lambda: request(seconds))
        except ProviderFailed:
            raise
        except Exception as exc:
            raise read_refusal(exc) from exc

    def _wait_before(self, tried: int, refused: Refused, pace: Pace, deadline: float | None) -> float | None:
        """Return the seconds to wait before the next try, or None for no further try."""
        if not refused.is_passing or refused.kind == "quota" or tried > pace.retries:
            return None
        wait = refused.retry_after
        if wait is None:
            wait = random.uniform(0, min(pace.longest_wait, _FIRST_DELAY * 2 ** (tried - 1)))  # noqa: S311 - jitter
        is_late = deadline is not None and self.timing.clock() + wait >= deadline
        return None if is_late or wait > pace.longest_wait else wait

    def note_failure(self, refused: Refused, tries: int = 1) -> ProviderFailed:
        """Count a failed call and return the error to raise."""
        self._last = failure(self.endpoint, refused, tries)
        self._failures += 1
        if refused.kind in ("key", "quota") or self._failures >= _PATIENCE:
            self._until = self.timing.clock() + _PAUSE
        return self._last


def within(seconds: float, action: Callable[[], T]) -> T:
    """Return the result of `action`, or raise `TimeoutError` if it takes longer than `seconds`.

    The time limits of sockets are for single steps; a server that sends a byte now and then, or a
    name server that is silent, would hold a search up for much longer.
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
