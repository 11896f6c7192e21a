"""What a provider said instead of an answer, and how a person is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memory_kb.errors import ProviderFailed
from memory_kb.text import printable, shorten

_QUOTED_CHARACTERS = 200
_KEY_SHAPES = re.compile(
    r"(?i:bearer\s+\S+)|\S*\*{3,}\S*|\b(?:sk|pk|rk|gsk|hf|xai|pplx|tgp|nvapi)[-_][\w-]{6,}|\bAIza[\w-]{6,}"
    r"|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])(?:\w{32,}|[\w-]{40,})"
)
_TOO_LONG = re.compile(
    r"context.?length|maximum context|too (?:long|large|many tokens)|token (?:count|limit)|max(?:imum)?.{0,20}tokens"
    r"|exceeds?.{0,40}(?:length|size|limit)",
    re.IGNORECASE,
)
#: What some servers say with a status that means something else.
_TOO_LARGE = re.compile(
    r"input length exceeds|input is too large|request too large|maximum context length", re.IGNORECASE
)
#: Ollama computed a vector that is no number.
_NOT_A_NUMBER = re.compile(r"unsupported value: (?:NaN|[+-]?Inf)")
_NO_QUOTA = re.compile(r"insufficient_quota|billing|credit balance|PerDay|\"quotaValue\": ?\"0\"", re.IGNORECASE)
_WRONG_KEY = re.compile(r"api_key_invalid|invalid_api_key|api key not valid|api key expired", re.IGNORECASE)


class Service(NamedTuple):
    """Who is asked, in words for messages, and what mends which failure.

    `key` is here to be cut out of messages; it is never shown.
    """

    name: str
    key: str
    key_hint: str
    model_hint: str
    address_hint: str = "check the network connection"

    def __repr__(self) -> str:
        return f"Service({self.name!r})"


class Refusal(NamedTuple):
    """What came instead of an answer.

    `status` is None if no answer came, `kind` then says how: "unreachable", "timeout", "dropped"
    or "malformed". With a status it is "key", "model", "quota", "long", "input", "busy" or "other".
    """

    kind: str
    status: int | None
    said: str
    retry_after: float | None = None

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.is_unanswered or self.kind in ("unreachable", "busy", "quota")

    @property
    def is_unanswered(self) -> bool:
        """Whether the request may have been worked on, and paid for, though no answer came."""
        return self.kind in ("timeout", "dropped", "malformed")

    @property
    def can_retry(self) -> bool:
        """Whether it may succeed within a minute."""
        return self.is_passing and self.kind != "quota"


def read_refusal(exc: BaseException, now: float) -> Refusal:
    """Read what any of the providers' packages raised.

    They are told apart by what they carry, so that none need be loaded. `now` is the wall time
    that a date of Retry-After counts from.
    """
    import httpx2

    chain = list(_chain(exc))
    failed = next(
        (link for link in chain if isinstance(link, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError))),
        None,
    )
    if failed is not None:
        return Refusal("unreachable", None, str(failed) or "it does not take up the line")
    if any(isinstance(link, (TimeoutError, httpx2.TimeoutException)) for link in chain):
        return Refusal("timeout", None, "no answer in time")
    status = next(
        (value for value in (getattr(exc, "status_code", None), getattr(exc, "code", None)) if isinstance(value, int)),
        None,
    )
    if status is not None:
        return _read_answer(exc, status, now)
    transport = next((link for link in chain if isinstance(link, (httpx2.HTTPError, OSError))), None)
    if transport is not None and not isinstance(transport, httpx2.UnsupportedProtocol):
        return Refusal("dropped", None, str(transport) or type(transport).__name__)
    if any(isinstance(link, ValueError) for link in chain):
        return Refusal("malformed", None, "its answer is cut off or no JSON")
    return Refusal("other", None, str(transport or exc) or type(exc).__name__)


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__


def _read_answer(exc: BaseException, status: int, now: float) -> Refusal:
    body: Any = getattr(exc, "body", None) or getattr(exc, "details", None)
    if isinstance(body, Mapping) and isinstance(body.get("error"), (Mapping, str)):
        body = body["error"]
    said = body
    if isinstance(body, Mapping):
        said = body.get("message") or body.get("detail") or body
    everything = f"{body} {said}".replace("'", '"')
    headers = getattr(getattr(exc, "response", None), "headers", None) or {}
    wait = _retry_after(headers, now)
    if wait is None and (delay := re.search(r'"retryDelay": ?"([\d.]+)s"', everything)):
        wait = float(delay[1])
    return Refusal(_kind_of(status, everything), status, str(said or exc), wait)


def _kind_of(status: int, everything: str) -> str:
    """Sort an error by its status and its words.

    Example:
        >>> [_kind_of(429, words) for words in ("rate limit", "code: insufficient_quota", "Request too large for this model")]
        ['busy', 'quota', 'long']
    """
    if status in (401, 403) or (status == 400 and _WRONG_KEY.search(everything)):
        return "key"
    if status == 402 or (status in (400, 429) and _is_quota(status, everything)):
        return "quota"
    if status == 404:
        return "model"
    if status in (429, 500) and _TOO_LARGE.search(everything):
        return "long"
    if status == 500 and _NOT_A_NUMBER.search(everything):
        return "input"
    if status in (408, 409, 429) or status >= 500:
        return "busy"
    if status in (400, 413, 422):
        return "long" if status == 413 or _TOO_LONG.search(everything) else "input"
    return "other"


def _is_quota(status: int, everything: str) -> bool:
    """Tell whether an account is empty, not just asked too often.

    Gemini speaks of billing in every 429; there only the name of the quota tells.
    """
    if "quotaId" in everything:
        return "PerDay" in everything or '"quotaValue": "0"' in everything
    return (
        "RESOURCE_EXHAUSTED" not in everything
        and (status == 429 or "credit balance" in everything)
        and bool(_NO_QUOTA.search(everything))
    )


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait that a server asks for, as a number or a date.

    Example:
        >>> _retry_after({"retry-after": "1.5"}, 0.0), _retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0)
        (1.5, 10.0)
    """
    import email.utils

    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return max(0.0, seconds) if seconds == seconds else None  # noqa: PLR0124 - not a number


def quote(said: str, key: str) -> str:
    """Return the server's words on one line, short and without anything that looks like a key.

    Example:
        >>> quote("Incorrect API key:\\n sk-abc***xyz, mine-1234", "mine-1234")
        'Incorrect API key: … …'
    """
    text = printable(said)[:4000]
    if len(key) >= 4:
        text = text.replace(key, "…")
    text = _KEY_SHAPES.sub("…", text)
    for piece in (key[:8], key[-8:]) if len(key) >= 16 else ():
        text = text.replace(piece, "…")
    return shorten(text, _QUOTED_CHARACTERS)


def failure(service: Service, refusal: Refusal, tries: int = 1) -> ProviderFailed:
    """Put a refusal into a sentence that says what to do."""
    status = f" ({refusal.status})" if refusal.status is not None else ""
    often = f" {tries} times" if tries > 1 else ""
    verb, hint = {
        "key": ("refused the key", service.key_hint),
        "quota": ("has no quota left for this key", "check plan and billing at the provider"),
        "model": ("does not know the model or the address", service.model_hint),
        "busy": ("could not answer", "it usually passes; try again in a minute"),
        "timeout": ("did not answer in time", service.address_hint),
        "unreachable": ("cannot be reached", service.address_hint),
        "dropped": ("broke off its answer", service.address_hint),
        "malformed": ("gave an answer that cannot be read", service.address_hint),
    }.get(refusal.kind, ("refused the request", service.model_hint))
    said = "" if refusal.kind == "timeout" else f": {quote(refusal.said, service.key)}"
    return ProviderFailed(f"{service.name} {verb}{often}{status}{said}", hint, is_passing=refusal.is_passing)
