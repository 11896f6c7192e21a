"""Fetching a model from a hub: no more than is needed, nothing twice, and failures in a sentence."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from forking import command
from tiny_models import make_model

from memory_kb.errors import ProviderFailed
from memory_kb.providers.local import LocalEmbedder
from memory_kb.providers.model_files import fetch_model, find_model

pytest.importorskip("onnxruntime")
pytest.importorskip("huggingface_hub")

NAME = "all-tiny"
OWNED = f"sentence-transformers/{NAME}"
COMMIT = "a" * 40
NEEDED = {
    "1_Pooling/config.json",
    "config.json",
    "modules.json",
    "onnx/model.onnx",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
}


class FakeHub:
    """A hub on loopback that serves the files of one model.

    Attributes:
        files: what is listed and sent.
        status: what requests of the model's description are refused with, 0 for not at all.
        sent: the paths of the files that were sent.
        tokens: the tokens that came with requests.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.status = files, 0
        self.sent: list[str] = []
        self.tokens: set[str | None] = set()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.answer(with_body=False)

            def do_GET(self) -> None:
                self.answer(with_body=True)

            def answer(self, *, with_body: bool) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.tokens.add(self.headers.get("Authorization"))
                if path.startswith("/api/"):
                    known = path.startswith(f"/api/models/{OWNED}") and not hub.status
                    self.send(
                        hub.status or 200 if known or hub.status else 404, hub.describe(path), with_body=with_body
                    )
                    return
                name = path.partition(f"/{OWNED}/resolve/{COMMIT}/")[2]
                if name not in hub.files:
                    self.send(404, b"", with_body=with_body)
                    return
                if with_body:
                    hub.sent.append(name)
                self.send(200, hub.files[name], with_body=with_body)

            def send(self, status: int, content: bytes, *, with_body: bool) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", COMMIT)
                self.end_headers()
                if with_body:
                    self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def describe(self, path: str) -> bytes:
        """Return the description of the model, or the list of its files."""
        if "/tree/" in path:
            rows = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in self.files.items()
            ]
            return json.dumps(rows).encode()
        siblings = [{"rfilename": name} for name in self.files]
        return json.dumps({"id": OWNED, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}).encode()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that has one model, beside files that nobody here needs."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    source = make_model(tmp_path / "source")
    files = {file.relative_to(source).as_posix(): file.read_bytes() for file in source.rglob("*") if file.is_file()}
    unused = ("README.md", "pytorch_model.bin", "model.safetensors", "onnx/model_qint8.onnx", "openvino/model.xml")
    with closing(FakeHub(files | {name: name.encode() for name in unused})) as fake:
        yield fake


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def fetch(hub: FakeHub, models: Path, name: str = NAME, **environ: str) -> Path:
    return fetch_model(name, models, environ={"HF_ENDPOINT": f"{hub.url}/"} | environ)


def names_in(folder: Path) -> set[str]:
    """Return the files of a model, without what the library notes for itself."""
    found = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    return {file.as_posix() for file in found if file.parts[0] != ".cache"}


def refuse(hub: FakeHub, models: Path, name: str = NAME, **environ: str) -> ProviderFailed:
    with pytest.raises(ProviderFailed) as caught:
        fetch(hub, models, name, **environ)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_fetched_model_is_the_one_that_was_published(hub: FakeHub, models: Path, tmp_path: Path) -> None:
    folder = fetch(hub, models, HF_TOKEN="hf_mine")
    assert folder == models / NAME == find_model(NAME, {"MEMORY_KB_MODELS": str(models)})
    assert names_in(folder) == NEEDED
    marks = {LocalEmbedder(one).space.model.partition("@")[2] for one in (folder, tmp_path / "source")}
    assert len(marks) == 1
    assert LocalEmbedder(folder).embed(["w5"], "query").shape == (1, 8)
    assert hub.tokens == {"Bearer hf_mine"}


def test_a_model_with_an_owner_gets_a_folder_below_it(hub: FakeHub, models: Path) -> None:
    assert fetch(hub, models, OWNED) == models / OWNED
    assert names_in(models / OWNED) == NEEDED


def test_only_what_changed_is_fetched_again(hub: FakeHub, models: Path) -> None:
    folder = fetch(hub, models)
    assert sorted(hub.sent) == sorted(NEEDED)
    hub.sent.clear()
    fetch(hub, models)
    assert hub.sent == []
    (folder / "tokenizer.json").unlink()
    fetch(hub, models)
    assert hub.sent == ["tokenizer.json"]


def test_a_model_without_a_tokenizer_is_refused(hub: FakeHub, models: Path) -> None:
    del hub.files["tokenizer.json"]
    assert "has no tokenizer.json" in str(refuse(hub, models))


def test_a_model_without_an_export_in_the_usual_place_is_refused(hub: FakeHub, models: Path) -> None:
    hub.files["onnx/model_qint8.onnx"] = hub.files.pop("onnx/model.onnx")
    assert "ONNX export (onnx/model.onnx)" in str(refuse(hub, models))
    assert "onnx/model_qint8.onnx" not in hub.sent


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_one_sentence(hub: FakeHub, models: Path, status: int) -> None:
    hub.status = status
    failed = refuse(hub, models, HF_TOKEN="hf_mine")
    assert f"has no model {OWNED}, or does not give it to you (status {status})" in str(failed)
    assert all(word in str(failed.hint) for word in ("spelling", "terms", "HF_TOKEN"))
    assert "hf_mine" not in f"{failed} {failed.hint}"


def test_a_hub_that_cannot_be_reached_is_named_with_the_way_by_hand(hub: FakeHub, models: Path) -> None:
    hub.close()
    failed = refuse(hub, models)
    assert failed.is_passing
    assert hub.url.removeprefix("http://") in str(failed)
    assert f"copy the model's folder to {models / NAME} by hand" in str(failed.hint)


def test_a_folder_that_cannot_be_written_is_named_with_another_way(hub: FakeHub, models: Path) -> None:
    models.write_text("a file")
    failed = refuse(hub, models)
    assert str(models) in str(failed)
    assert "cannot be written" in str(failed)
    assert "MEMORY_KB_MODELS" in str(failed.hint)


@pytest.mark.parametrize("name", ["a/b/c", "../evil", "a b", ""])
def test_what_is_no_name_is_refused(hub: FakeHub, models: Path, name: str) -> None:
    assert "no name of a model" in str(refuse(hub, models, name))


def test_the_command_prints_the_folder(hub: FakeHub, models: Path) -> None:
    environ = os.environ | {"HF_ENDPOINT": hub.url, "MEMORY_KB_MODELS": str(models), "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        command("model", "fetch", NAME),
        check=False,
        capture_output=True,
        text=True,
        env=environ,
    )
    assert (done.returncode, done.stdout) == (0, f"{models / NAME}\n"), done.stderr
    assert "embeddings.model" in done.stderr
