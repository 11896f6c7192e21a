"""Fetching a model: whole or not at all, checked, continued where it broke, and never outside its folder."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from tiny_models import make_model, numbers, write_json, write_onnx

import memory_kb.providers.fetching as fetching_module
from memory_kb.errors import MemoryKBError, ProviderFailed, VaultBusy
from memory_kb.locks import hold_lock
from memory_kb.providers.fetching import fetch_model
from memory_kb.providers.local import LocalEmbedder
from memory_kb.providers.places import find_model

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
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), self._handler(is_store=is_store)) for is_store in (False, True)]
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
        self.files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}

    def downloads(self) -> list[str]:
        """Return the paths of the files that were sent, in order."""
        return [one.path.partition("/resolve/abc123/")[2] for one in self.asked if "/resolve/" in one.path and not one.is_store]

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
                    self.send(200, hub.listing if hub.listing is not None else json.dumps({"sha": "abc123", "siblings": hub.list_rows()}).encode())
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
        for name in ("README.md", "pytorch_model.bin", "onnx/model_qint8.onnx", "openvino/openvino_model.xml", "tf_model.h5", "vocab.txt"):
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).write_text(name)
        fake.serve(source)
        yield fake


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def fetch(hub: FakeHub, models: Path, name: str = NAME, **environ: str) -> Path:
    return fetch_model(name, models, base_url=hub.url, environ=environ)


def names_in(folder: Path) -> set[str]:
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


def test_a_fetched_model_is_the_one_that_was_published(hub: FakeHub, models: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    folder = fetch_model(NAME, models, base_url=hub.url, progress=lambda done, total: seen.append((done, total)), environ={})
    assert folder == models / NAME == find_model(NAME, {"MEMORY_KB_MODELS": str(models)})
    assert names_in(models) == {f"{NAME}/{name}" for name in NEEDED} | {".lock"}
    assert LocalEmbedder(folder).space.model.partition("@")[2] == LocalEmbedder(tmp_path / "source").space.model.partition("@")[2]
    total = sum(len(hub.files[name]) for name in NEEDED)
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_model_with_an_owner_gets_a_folder_below_it(hub: FakeHub, models: Path) -> None:
    assert fetch(hub, models, OWNED) == models / OWNED
    assert names_in(models / OWNED) == NEEDED


def test_what_is_there_is_not_fetched_again(hub: FakeHub, models: Path) -> None:
    folder = fetch(hub, models)
    assert sorted(hub.downloads()) == sorted(NEEDED)
    hub.asked.clear()
    assert fetch(hub, models) == folder
    assert hub.downloads() == []
    assert [path for path in models.iterdir() if path.name.endswith(".partial")] == []


def test_only_what_changed_is_fetched(hub: FakeHub, models: Path) -> None:
    folder = fetch(hub, models)
    (folder / "tokenizer.json").unlink()
    (folder / "mine.txt").write_text("not of the model")
    hub.files["modules.json"] += b" "
    hub.asked.clear()
    fetch(hub, models)
    assert sorted(hub.downloads()) == ["modules.json", "tokenizer.json"]
    assert names_in(models) == {f"{NAME}/{name}" for name in NEEDED} | {".lock"}
    assert (folder / "modules.json").read_bytes() == hub.files["modules.json"]


def test_a_cut_line_is_taken_up_where_it_broke(hub: FakeHub, models: Path) -> None:
    hub.cut_after, hub.cuts = 5_000, 1
    folder = fetch(hub, models)
    weights = [one for one in hub.asked if one.path.endswith("model.safetensors") and one.is_store]
    assert [one.start for one in weights] == [0, 5_000]
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_a_line_that_breaks_again_and_again_is_taken_up_as_long_as_it_leads_on(hub: FakeHub, models: Path) -> None:
    hub.cut_after, hub.cuts = 400, 15
    fetch(hub, models)
    assert sum(one.start > 0 for one in hub.asked if one.is_store) > 5


def test_the_next_run_goes_on_where_the_last_one_stopped(hub: FakeHub, models: Path) -> None:
    hub.status = {"tokenizer.json": 503}
    failed = refuse(hub, models)
    assert failed.is_passing
    assert "busy (status 503)" in str(failed)
    assert "by hand" in str(failed.hint)
    weights = models / f"{NAME}.partial" / "model.safetensors.part"
    weights.write_bytes(hub.files["model.safetensors"][:1_234])
    hub.status = {}
    hub.asked.clear()
    folder = fetch(hub, models)
    assert "config.json" not in hub.downloads()
    assert [one.start for one in hub.asked if one.is_store] == [1_234]
    assert LocalEmbedder(folder).embed(["w5"], "query").shape == (1, 8)


@pytest.mark.parametrize(("length", "starts"), [(None, []), (9, [9, 0]), (100_000, [0])], ids=["whole", "of-another-revision", "too-long"])
def test_what_a_broken_download_left_is_not_believed(hub: FakeHub, models: Path, length: int | None, starts: list[int]) -> None:
    part = models / f"{NAME}.partial" / "model.safetensors.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(hub.files["model.safetensors"] if length is None else b"x" * length)
    folder = fetch(hub, models)
    assert [one.start for one in hub.asked if one.is_store] == starts
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_a_hub_that_cannot_begin_later_is_asked_for_everything(hub: FakeHub, models: Path) -> None:
    hub.ignores_ranges = True
    hub.cut_after, hub.cuts = 5_000, 1
    folder = fetch(hub, models)
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_another_part_than_was_asked_for_is_refused(hub: FakeHub, models: Path) -> None:
    hub.content_range = "bytes 17-18/19"
    hub.cut_after, hub.cuts = 5_000, 1
    assert "another part" in str(refuse(hub, models))


@pytest.mark.parametrize("path", ["model.safetensors", "tokenizer.json"])
def test_a_damaged_file_is_thrown_away(hub: FakeHub, models: Path, path: str) -> None:
    hub.spoiled = {path}
    assert f"sent a damaged {path}" in str(refuse(hub, models))
    left = names_in(models)
    assert not any(path in name for name in left)
    hub.spoiled = set()
    assert names_in(fetch(hub, models)) == NEEDED


def test_a_file_longer_than_it_was_listed_is_refused(hub: FakeHub, models: Path) -> None:
    rows = hub.list_rows()
    for row in rows:
        if row["rfilename"] == "vocab.txt":
            row["size"] -= 1
    hub.listing = json.dumps({"sha": "abc123", "siblings": rows}).encode()
    assert "damaged vocab.txt" in str(refuse(hub, models))


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "a/../../evil", "C:\\evil", "..\\evil", "a//b", "./config.json", ""])
def test_a_file_outside_of_the_folder_is_refused(hub: FakeHub, models: Path, tmp_path: Path, path: str) -> None:
    hub.extra = [{"rfilename": path, "size": 4, "blobId": None}]
    hub.files["../evil"] = b"evil"
    assert "outside of its folder" in str(refuse(hub, models))
    assert hub.downloads() == []
    assert list(tmp_path.rglob("evil")) == []


def test_a_revision_that_leads_elsewhere_is_refused(hub: FakeHub, models: Path) -> None:
    hub.listing = json.dumps({"sha": "../../api", "siblings": hub.list_rows()}).encode()
    assert "outside of its folder" in str(refuse(hub, models))


@pytest.mark.parametrize(
    ("status", "token", "said", "hint"),
    [
        (404, "", "has no model sentence-transformers/all-tiny", "spelling"),
        (401, "", "shows it only to those who sign in", "HF_TOKEN"),
        (401, "hf_secret", "status 401", "check HF_TOKEN"),
        (403, "hf_secret", "does not give you", "terms"),
        (429, "", "is busy (status 429)", "run the command again"),
        (500, "", "is busy (status 500)", "run the command again"),
        (418, "", "refused to give", "HF_ENDPOINT"),
    ],
)
def test_a_refusal_is_told_in_a_sentence(hub: FakeHub, models: Path, status: int, token: str, said: str, hint: str) -> None:
    hub.status = {"/api/": status}
    failed = refuse(hub, models, HF_TOKEN=token)
    assert said in str(failed)
    assert hint in str(failed.hint)
    assert "secret" not in f"{failed} {failed.hint}"
    assert failed.is_passing == (status in (429, 500))


@pytest.mark.parametrize(
    "listing", [b"<html>", b"[]", b"{}", b'{"sha": "a", "siblings": [1]}', b'{"sha": "a", "siblings": [{"rfilename": "a"}]}', b""]
)
def test_what_is_no_hub_is_told(hub: FakeHub, models: Path, listing: bytes) -> None:
    hub.listing = listing
    assert "does not answer like Hugging Face" in str(refuse(hub, models))


def test_a_listing_that_breaks_off_is_told(hub: FakeHub, models: Path) -> None:
    hub.cut_after, hub.cuts, hub.cut_what = 400, 1, "/api/"
    failed = refuse(hub, models)
    assert "broke the connection off" in str(failed)
    assert failed.is_passing


def test_without_a_network_the_way_by_hand_is_told(models: Path, monkeypatch: pytest.MonkeyPatch, hub: FakeHub) -> None:
    monkeypatch.setattr(fetching_module, "_TRIES", 1)
    closed = FakeHub()
    closed.close()
    failed = refuse(closed, models)
    assert "cannot be reached" in str(failed)
    assert str(models / NAME) in str(failed.hint)
    hub.redirect_to = closed.store
    assert "cannot be reached" in str(refuse(hub, models))


@pytest.mark.parametrize("address", ["huggingface.co", "file:///etc", "ftp://127.0.0.1", ""])
def test_an_address_that_is_none_is_told(models: Path, address: str) -> None:
    with pytest.raises(ProviderFailed, match="no address"):
        fetch_model(NAME, models, base_url=address, environ={})


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/etc", "a/b/c", "a b", "a\\b", "x.partial"])
def test_a_name_that_is_none_is_told(hub: FakeHub, models: Path, name: str) -> None:
    with pytest.raises(ProviderFailed, match="no name of a model"):
        fetch(hub, models, name)
    assert hub.asked == []


def test_a_token_goes_to_the_hub_alone(hub: FakeHub, models: Path) -> None:
    fetch_model(NAME, models, base_url="http://127.0.0.1:1", environ={"HF_ENDPOINT": hub.url + "/", "HF_TOKEN": "hf_secret"})
    assert {one.token for one in hub.asked if not one.is_store} == {"Bearer hf_secret"}
    assert {one.token for one in hub.asked if one.is_store} == {None}


def test_a_token_follows_to_another_path_of_the_hub(hub: FakeHub, models: Path) -> None:
    hub.redirect_to = f"{hub.url}/moved"
    with pytest.raises(ProviderFailed):
        fetch(hub, models, HF_TOKEN="hf_secret")
    moved = [one for one in hub.asked if one.path.startswith("/moved")]
    assert moved
    assert {one.token for one in moved} == {"Bearer hf_secret"}


def test_ctrl_c_leaves_what_the_next_run_goes_on_with(hub: FakeHub, models: Path) -> None:
    hub.files["model.safetensors"] += b"\0" * 2_000_000

    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_model(NAME, models, base_url=hub.url, progress=interrupt, environ={})
    assert not (models / NAME).exists()
    hub.asked.clear()
    folder = fetch(hub, models)
    assert next(one.start for one in hub.asked if one.is_store) > 500_000
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_an_onnx_export_is_fetched_where_numpy_cannot_compute(hub: FakeHub, models: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_onnx(source / "onnx" / "model.onnx", numbers("table", 40, 8))
    write_json(source / "config.json", {"model_type": "mystery", "hidden_size": 8})
    hub.serve(source)
    assert names_in(fetch(hub, models)) == NEEDED - {"model.safetensors"} | {"onnx/model.onnx"}


def test_shards_and_dense_layers_are_fetched(hub: FakeHub, models: Path, tmp_path: Path) -> None:
    source = make_model(tmp_path / "other", dense="Tanh")
    (source / "model.safetensors").rename(source / "model-00001-of-00001.safetensors")
    write_json(source / "model.safetensors.index.json", {"weight_map": {"a": "model-00001-of-00001.safetensors"}})
    hub.serve(source)
    folder = fetch(hub, models)
    assert {"model-00001-of-00001.safetensors", "2_Dense/config.json", "2_Dense/model.safetensors"} <= names_in(folder)
    assert LocalEmbedder(folder).embed(["w5"], "query").shape == (1, 4)


@pytest.mark.parametrize(
    ("missing", "said"), [("tokenizer.json", "has no tokenizer.json"), ("config.json", "config.json"), ("model.safetensors", "model.safetensors")]
)
def test_what_cannot_be_used_is_not_fetched(hub: FakeHub, models: Path, missing: str, said: str) -> None:
    del hub.files[missing]
    assert said in str(refuse(hub, models))


def test_a_full_disk_is_told_before_it_is_full(hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    failed = refuse(hub, models)
    assert "does not fit on the disk" in str(failed)
    assert "MEMORY_KB_MODELS" in str(failed.hint)
    assert "model.safetensors" not in hub.downloads()


def test_a_folder_that_cannot_be_written_is_told(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ProviderFailed, match="cannot be written") as caught:
        fetch(hub, tmp_path / "file" / "models")
    assert "MEMORY_KB_MODELS" in str(caught.value.hint)


def test_one_process_fetches_at_a_time(hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models.mkdir()
    monkeypatch.setattr(fetching_module, "_LOCK_SECONDS", 0.05)
    with hold_lock(models / ".lock", 1), pytest.raises(VaultBusy) as caught:
        fetch(hub, models)
    assert isinstance(caught.value, MemoryKBError)
    assert hub.asked == []
