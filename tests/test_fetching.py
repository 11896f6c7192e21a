"""Fetching a model: whole or not at all, continued where it broke, and no more than is needed."""

from __future__ import annotations

from pathlib import Path

import fake_hub
import pytest
from fake_hub import NAME, NEEDED, OWNED, FakeHub, fetch, names_in, refuse
from tiny_models import make_model, numbers, write_json, write_onnx

import memory_kb.providers.fetching as fetching_module
from memory_kb.errors import MemoryKBError, VaultBusy
from memory_kb.locks import hold_lock
from memory_kb.providers.fetching import fetch_model
from memory_kb.providers.local import LocalEmbedder
from memory_kb.providers.places import find_model

hub = fake_hub.hub
models = fake_hub.models


def test_a_fetched_model_is_the_one_that_was_published(hub: FakeHub, models: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    folder = fetch_model(
        NAME, models, base_url=hub.url, progress=lambda done, total: seen.append((done, total)), environ={}
    )
    assert folder == models / NAME == find_model(NAME, {"MEMORY_KB_MODELS": str(models)})
    assert names_in(models) == {f"{NAME}/{name}" for name in NEEDED} | {".lock"}
    assert (
        LocalEmbedder(folder).space.model.partition("@")[2]
        == LocalEmbedder(tmp_path / "source").space.model.partition("@")[2]
    )
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


@pytest.mark.parametrize(
    ("length", "starts"), [(None, []), (9, [9, 0]), (100_000, [0])], ids=["whole", "of-another-revision", "too-long"]
)
def test_what_a_broken_download_left_is_not_believed(
    hub: FakeHub, models: Path, length: int | None, starts: list[int]
) -> None:
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


def test_one_process_fetches_at_a_time(hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models.mkdir()
    monkeypatch.setattr(fetching_module, "_LOCK_SECONDS", 0.05)
    with hold_lock(models / ".lock", 1), pytest.raises(VaultBusy) as caught:
        fetch(hub, models)
    assert isinstance(caught.value, MemoryKBError)
    assert hub.asked == []
