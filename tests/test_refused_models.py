"""What is not fetched, and how that is told: damaged files, places outside of the folder, hubs that are none, full disks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import fake_hub
import pytest
from fake_hub import NAME, NEEDED, FakeHub, fetch, names_in, refuse

import memory_kb.providers.fetching as fetching_module
from memory_kb.errors import ProviderFailed
from memory_kb.providers.fetching import fetch_model

hub = fake_hub.hub
models = fake_hub.models


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


@pytest.mark.parametrize(
    "path", ["../evil", "/etc/evil", "a/../../evil", "C:\\evil", "..\\evil", "a//b", "./config.json", ""]
)
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
def test_a_refusal_is_told_in_a_sentence(
    hub: FakeHub, models: Path, status: int, token: str, said: str, hint: str
) -> None:
    hub.status = {"/api/": status}
    failed = refuse(hub, models, HF_TOKEN=token)
    assert said in str(failed)
    assert hint in str(failed.hint)
    assert "secret" not in f"{failed} {failed.hint}"
    assert failed.is_passing == (status in (429, 500))


@pytest.mark.parametrize(
    "listing",
    [b"<html>", b"[]", b"{}", b'{"sha": "a", "siblings": [1]}', b'{"sha": "a", "siblings": [{"rfilename": "a"}]}', b""],
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
    fetch_model(
        NAME, models, base_url="http://127.0.0.1:1", environ={"HF_ENDPOINT": hub.url + "/", "HF_TOKEN": "hf_secret"}
    )
    assert {one.token for one in hub.asked if not one.is_store} == {"Bearer hf_secret"}
    assert {one.token for one in hub.asked if one.is_store} == {None}


def test_a_token_follows_to_another_path_of_the_hub(hub: FakeHub, models: Path) -> None:
    hub.redirect_to = f"{hub.url}/moved"
    with pytest.raises(ProviderFailed):
        fetch(hub, models, HF_TOKEN="hf_secret")
    moved = [one for one in hub.asked if one.path.startswith("/moved")]
    assert moved
    assert {one.token for one in moved} == {"Bearer hf_secret"}


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("tokenizer.json", "has no tokenizer.json"),
        ("config.json", "config.json"),
        ("model.safetensors", "model.safetensors"),
    ],
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
