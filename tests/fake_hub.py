"""A hub of models on this machine, and what is fetched from it, for the tests of fetching."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from tiny_models import make_model

import memory_kb.providers.fetching as fetching_module
from memory_kb.errors import ProviderFailed
from memory_kb.providers.fetching import fetch_model

NAME = "all-tiny"
OWNED = f"sentence-transformers/{NAME}"


class Asked(NamedTuple):
    """A request that arrived at the hub or at its store of large files."""

    path: str
    token: str | None
    start: int
    is_store: bool


class FakeHub:
    """A hub on loopback that serves the files of a folder as a model.

    Attributes:
        asked: all requests.
        cut_after, cuts, cut_what: how many bytes of an answer are sent before the line is cut, how
            often, and what is in the paths of which this is so.
        spoiled: paths that are sent with a changed byte.
        status: what every request of a path that holds a word is refused with.
        ignores_ranges: whether files are always sent from their beginning.
        files: what is listed and sent.
        extra: rows that are listed besides.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.files: dict[str, bytes] = {}
        self.extra: list[dict[str, Any]] = []
        self.listing: bytes | None = None
        self.cut_after, self.cuts, self.cut_what = 0, 0, "/resolve/"
        self.spoiled: set[str] = set()
        self.status: dict[str, int] = {}
        self.ignores_ranges = False
        self.content_range = ""
        self.redirect_to = ""
        self.servers = [
            ThreadingHTTPServer(("127.0.0.1", 0), self._handler(is_store=is_store)) for is_store in (False, True)
        ]
        for server in self.servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.servers[0].server_port}"

    @property
    def store(self) -> str:
        return f"http://localhost:{self.servers[1].server_port}"

    def serve(self, folder: Path) -> None:
        """Serve these files from now on."""
        self.files = {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }

    def downloads(self) -> list[str]:
        """Return the paths of the files that were sent, in order."""
        return [
            one.path.partition("/resolve/abc123/")[2]
            for one in self.asked
            if "/resolve/" in one.path and not one.is_store
        ]

    def close(self) -> None:
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def list_rows(self) -> list[dict[str, Any]]:
        rows = []
        for path, content in self.files.items():
            row: dict[str, Any] = {"rfilename": path, "size": len(content)}
            row["blobId"] = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            if is_large(path):
                row["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            rows.append(row)
        return rows + self.extra

    def _handler(self, *, is_store: bool) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                path = unquote(urlsplit(self.path).path)
                start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
                hub.asked.append(Asked(path, self.headers.get("Authorization"), start, is_store))
                refused = next((status for word, status in hub.status.items() if word in path), None)
                if refused:
                    self.send(refused, b"no")
                elif path == f"/api/models/{OWNED}/revision/main":
                    self.send(
                        200,
                        hub.listing
                        if hub.listing is not None
                        else json.dumps({"sha": "abc123", "siblings": hub.list_rows()}).encode(),
                    )
                elif (name := path.partition("/resolve/abc123/")[2]) in hub.files:
                    if is_large(name) and not is_store:
                        self.send(302, b"", Location=f"{hub.redirect_to or hub.store}{self.path}")
                    else:
                        self.send_file(name, start)
                else:
                    self.send(404, b"not here")

            def send_file(self, name: str, start: int) -> None:
                content = hub.files[name]
                if name in hub.spoiled:
                    content = content[:-1] + bytes([content[-1] ^ 1])
                if start and not hub.ignores_ranges:
                    place = hub.content_range or f"bytes {start}-{len(content) - 1}/{len(content)}"
                    self.send(206, content[start:], **{"Content-Range": place})
                else:
                    self.send(200, content)

            def send(self, status: int, content: bytes, **headers: str) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if hub.cuts and len(content) > hub.cut_after and hub.cut_what in self.path:
                    hub.cuts -= 1
                    content = content[: hub.cut_after]
                    self.close_connection = True
                self.wfile.write(content)

        return Handler


def is_large(path: str) -> bool:
    return path.endswith((".safetensors", ".onnx"))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that has one model, beside files that nobody here needs."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setattr(fetching_module, "_PAUSE", 0.001)
    with closing(FakeHub()) as fake:
        source = make_model(tmp_path / "source")
        for name in (
            "README.md",
            "pytorch_model.bin",
            "onnx/model_qint8.onnx",
            "openvino/openvino_model.xml",
            "tf_model.h5",
            "vocab.txt",
        ):
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).write_text(name)
        fake.serve(source)
        yield fake


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def fetch(hub: FakeHub, models: Path, name: str = NAME, **environ: str) -> Path:
    """Fetch a model from the hub, and return its folder."""
    return fetch_model(name, models, base_url=hub.url, environ=environ)


def names_in(folder: Path) -> set[str]:
    """Return the files in a folder."""
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def refuse(hub: FakeHub, models: Path, name: str = NAME, **environ: str) -> ProviderFailed:
    """Return how fetching fails, which must be told with a hint and leave no model."""
    with pytest.raises(ProviderFailed) as caught:
        fetch(hub, models, name, **environ)
    assert caught.value.hint
    assert caught.value.exit_code == 5
    assert "\n" not in str(caught.value)
    assert not (models / NAME).exists()
    return caught.value


NEEDED = {
    "1_Pooling/config.json",
    "config.json",
    "model.safetensors",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
}
