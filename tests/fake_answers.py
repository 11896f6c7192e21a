"""What the fake provider answers: vectors that need no model, forms filled in, and errors in the words of each provider."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("car", "automobile", "vehicle"),
    ("flaky", "unreliable", "intermittent"),
    ("test", "spec"),
    ("delete", "remove", "erase"),
    ("password", "credential", "login"),
    ("error", "failure", "fault", "bug"),
    ("fast", "quick", "rapid"),
    ("retry", "reattempt"),
)
_STOPWORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "the",
        "to",
        "was",
    ]
)
_Row = np.ndarray[Any, np.dtype[np.float64]]


#: Status, code and words of each refusal, as the providers put them.
REFUSALS = {
    "bad-key": (
        401,
        "invalid_api_key",
        "Incorrect API key provided: sk-abcd**********wxyz. You can find your API key at https://example.com.",
    ),
    "forbidden": (403, "permission_denied", "You are not allowed to do this."),
    "unknown-model": (404, "model_not_found", "The model does not exist or you do not have access to it."),
    "teapot": (418, "teapot", "I am a teapot."),
    "timeout-status": (408, "timeout", "The request took too long."),
    "conflict": (409, "conflict", "The request conflicts with another one."),
    "rate-limit": (429, "rate_limit_exceeded", "Rate limit reached for requests. Please try again soon."),
    "no-quota": (
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "server-error": (500, "server_error", "The server had an error while processing your request. Sorry about that!"),
    "unavailable": (503, "overloaded", "That model is currently overloaded with other requests."),
    "too-long": (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens, however you requested 9000 tokens.",
    ),
    "bad-text": (400, "invalid_request_error", "'$.input' is invalid. Please check the API reference."),
}
_GEMINI_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
}


class WordVectors:
    """A deterministic embedding: every word has a direction of its own, synonyms nearly the same."""

    def __init__(self, synonyms: Sequence[Sequence[str]] = SYNONYMS) -> None:
        self._canonical = {_stem(word): _stem(group[0]) for group in synonyms for word in group}
        self._words: dict[tuple[str, int], _Row] = {}

    def of(self, text: str, size: int) -> list[float]:
        """Return the vector of a text, of length 1 and never zero."""
        total = 0.001 * self._word("\0", size)
        for word in re.findall(r"\w+", text.lower()):
            if word not in _STOPWORDS:
                stem = _stem(word)
                total = total + self._word(self._canonical.get(stem, stem), size) + 0.1 * self._word("\0" + stem, size)
        return [float(number) for number in total / np.linalg.norm(total)]

    def _word(self, word: str, size: int) -> _Row:
        if (word, size) not in self._words:
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
            self._words[word, size] = np.random.default_rng(seed).standard_normal(size)
        return self._words[word, size]


def _stem(word: str) -> str:
    """Cut the usual English endings off a word."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending)
    return word


def example_of(schema: Mapping[str, Any]) -> Any:
    """Return the smallest value that fits a JSON schema."""
    if "enum" in schema:
        return schema["enum"][0]
    names = schema.get("type", "object")
    match names if isinstance(names, str) else names[0]:
        case "object":
            return {name: example_of(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [example_of(schema.get("items", {"type": "string"}))] * max(1, schema.get("minItems", 0))
        case "string":
            return "text"
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return max(1, schema.get("minimum", 1))


class Refused(Exception):
    """A request that is answered with a status other than 200."""

    def __init__(self, status: int, message: str, code: str, retry_after: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.retry_after = status, message, code, retry_after


def error_body(path: str, refused: Refused) -> Mapping[str, Any]:
    """Return an error as the provider asked at `path` would put it; Gemini's status may differ."""
    if ":" in path.rpartition("/")[2]:
        return {"error": _gemini_error(refused)}
    if path.endswith("/messages"):
        return {"type": "error", "error": {"type": refused.code, "message": refused.message}}
    return {"error": {"message": refused.message, "type": refused.code, "param": None, "code": refused.code}}


def _gemini_error(refused: Refused) -> Mapping[str, Any]:
    details: list[Mapping[str, Any]] = []
    kind = "type.googleapis.com/google.rpc."
    if refused.code == "invalid_api_key":
        refused.status, refused.message = 400, "API key not valid. Please pass a valid API key."
        details.append({"@type": kind + "ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"})
    elif refused.status == 429:
        period = "Day" if refused.code == "insufficient_quota" else "Minute"
        refused.message = "You exceeded your current quota, please check your plan and billing details."
        violation = {
            "quotaId": f"EmbedContentRequestsPer{period}PerUserPerProjectPerModel-FreeTier",
            "quotaValue": "100",
        }
        details.append({"@type": kind + "QuotaFailure", "violations": [violation]})
        if refused.retry_after:
            details.append({"@type": kind + "RetryInfo", "retryDelay": f"{refused.retry_after}s"})
            refused.retry_after = None
    elif refused.code == "context_length_exceeded":
        refused.message = "The input token count (9000) exceeds the maximum number of tokens allowed (2048)."
    name = _GEMINI_STATUS.get(refused.status, "INTERNAL" if refused.status == 500 else "UNAVAILABLE")
    return {"code": refused.status, "message": refused.message, "status": name, "details": details}
