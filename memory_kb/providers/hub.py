"""A Hugging Face hub over HTTP: what a model consists of, and the bytes of its files.

The proxies and certificates of the system are used. A token goes to the hub itself and never to
the servers that it sends us on to for large files.
"""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import quote, urlsplit

from memory_kb.errors import ProviderFailed
from memory_kb.providers.wire import place_of

#: Seconds that the other side may be silent.
_TIMEOUT = 30.0
_LISTING_LIMIT = 20_000_000
_BLOCK = 1 << 18
_PASSING = {408, 425, 429, 500, 502, 503, 504}


class RemoteFile(NamedTuple):
    """A file of a model; large ones are known by a sha256, others by git's sha1."""

    path: str
    size: int
    sha256: str | None
    git_sha1: str | None


class Listing(NamedTuple):
    """The files of a model at one revision."""

    revision: str
    files: tuple[RemoteFile, ...]


class Hub:
    """A hub at an address; models there are named `owner/name`.

    Failures that may pass by themselves, such as a broken connection, say so.
    """

    def __init__(self, base_url: str, token: str | None) -> None:
        address = urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ProviderFailed(
                f"{place_of(base_url) or base_url[:60]!r} is no address of a model hub",
                "set HF_ENDPOINT to https://...",
            )
        self._base, self._token = base_url.rstrip("/"), token
        self.host = place_of(base_url)
        self._opener = urllib.request.build_opener(_Redirects)

    def list_files(self, model: str) -> Listing:
        """Return the files of a model as they are now.

        Raises:
            ProviderFailed: the hub has none, or does not answer as it should.
        """
        with self._open(f"{self._base}/api/models/{quote(model)}/revision/main?blobs=true", model, 0) as answer:
            text = b"".join(self.read(answer, _LISTING_LIMIT))
        try:
            values = json.loads(text)
            revision = str(values["sha"])
            files = tuple(_read_file(row) for row in values["siblings"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise ProviderFailed(f"{self.host} does not answer like Hugging Face", "check HF_ENDPOINT") from exc
        for path in [file.path for file in files] + [revision]:
            if not is_inside(path):
                raise ProviderFailed(
                    f"{model} lists a file that would lie outside of its folder: {path[:80]!r}; nothing was fetched",
                    "do not use this model",
                )
        return Listing(revision, files)

    def open_file(self, model: str, revision: str, path: str, start: int) -> tuple[IO[bytes], int]:
        """Open a file from `start`, or from 0 if the hub cannot begin later; return where, too.

        Raises:
            ProviderFailed: the hub does not give it.
        """
        answer = self._open(
            f"{self._base}/{quote(model)}/resolve/{quote(revision, safe='')}/{quote(path)}", model, start
        )
        if answer.status != 206:
            return answer, 0
        place = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
        if place is None or int(place[1]) != start:
            answer.close()
            raise self._lost("sent another part than was asked for")
        return answer, start

    def read(self, answer: IO[bytes], limit: int) -> Iterator[bytes]:
        """Yield what comes, up to a block behind `limit` bytes.

        Raises:
            ProviderFailed: the connection broke.
        """
        try:
            while limit > 0 and (block := answer.read(_BLOCK)):
                yield block
                limit -= len(block)
        except (OSError, http.client.HTTPException) as exc:
            raise self._lost(f"broke the connection off ({_reason(exc)})") from exc
        if limit > 0 and getattr(answer, "length", None):
            raise self._lost("broke the connection off")

    def _lost(self, what: str) -> ProviderFailed:
        return ProviderFailed(f"{self.host} {what}", is_passing=True)

    def _open(self, url: str, model: str, start: int) -> Any:
        request = urllib.request.Request(url, headers={"User-Agent": "memory-kb", "Accept": "*/*"})  # noqa: S310 - http or https, see above
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            return self._opener.open(request, timeout=_TIMEOUT)
        except urllib.error.HTTPError as exc:
            exc.close()
            raise self._explain(exc.code, model) from exc
        except urllib.error.URLError as exc:
            raise self._lost(f"cannot be reached ({_reason(exc.reason)})") from exc
        except (OSError, http.client.HTTPException) as exc:
            raise self._lost(f"broke the connection off ({_reason(exc)})") from exc

    def _explain(self, status: int, model: str) -> ProviderFailed:
        """Return what to raise for an answer that is none."""
        if status in _PASSING:
            return self._lost(f"is busy (status {status})")
        spelling = "check the spelling; names look like sentence-transformers/all-MiniLM-L6-v2"
        if status == 404:
            return ProviderFailed(f"{self.host} has no model {model}", spelling)
        if status == 401 and not self._token:
            return ProviderFailed(
                f"{self.host} has no model {model}, or shows it only to those who sign in",
                f"{spelling}, or set HF_TOKEN",
            )
        if status in (401, 403):
            return ProviderFailed(
                f"{self.host} does not give you {model} (status {status})",
                f"check HF_TOKEN, and the model's terms at {self.host}/{model}",
            )
        return ProviderFailed(f"{self.host} refused to give {model} (status {status})", "check HF_ENDPOINT")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections, with the token only on the host that it is for."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme != "https" and req.type == "https":
            raise urllib.error.URLError("sent on to an address without encryption")
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        token = req.unredirected_hdrs.get("Authorization")
        if new and token and (new.type, new.host) == (req.type, req.host):
            new.add_unredirected_header("Authorization", token)
        return new


def _reason(exc: object) -> str:
    text = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc) or type(exc).__name__
    return " ".join(text.split())[:120]


def _read_file(row: Mapping[str, Any]) -> RemoteFile:
    large = row.get("lfs") or {}
    sha256 = large.get("sha256") or large.get("oid")
    size = large.get("size", row["size"])
    if not isinstance(size, int) or not isinstance(row["rfilename"], str):
        raise TypeError(size)
    return RemoteFile(row["rfilename"], size, sha256 and str(sha256).removeprefix("sha256:"), row.get("blobId"))


def is_inside(path: str) -> bool:
    """Tell whether a path that somebody else gave stays below the folder it is put into.

    Example:
        >>> [is_inside(path) for path in ("onnx/model.onnx", "../evil", "/etc/passwd", "a/../../b", "C:\\\\evil", "a//b", "a\\x00b")]
        [True, False, False, False, False, False, False]
    """
    parts = path.split("/")
    return (
        not set(path) & set("\\:\0")
        and all(part not in ("", ".", "..") for part in parts)
        and str(PurePosixPath(path)) == path
    )
