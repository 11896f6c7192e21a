"""What counts the tokens of budgets: the estimate, or tiktoken where its vocabulary is on this machine."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, Files, Run, write_files

from memory_kb.providers.models import choose_counter

MakeVault = Callable[[Files], Path]
#: A vocabulary in which every byte is a token, as a plugin of tiktoken.
PLUGIN = """
def every_byte():
    return {"name": "bytes", "pat_str": r"(?s:.+)", "mergeable_ranks": {bytes([n]): n for n in range(256)}, "special_tokens": {"<|end|>": 256}}

ENCODING_CONSTRUCTORS = {"bytes": every_byte}
"""
NOTES = {
    f"memory/learnings/p{n}.md": f"---\nid: p{n}\nkind: policy\nstatus: active\n---\nNever upload without a receipt, rule {n}.\n"
    for n in range(60)
}
NOTES["memory/rules/r.md"] = (
    "---\nid: r\nkind: rule\nconfidence: 0.9\ntags: [upload]\n---\nSay <|end|> when an upload ends.\n"
)


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine on which nothing is in the cache of tiktoken."""
    (tmp_path / "cache").mkdir()
    return {"TIKTOKEN_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, str]:
    """What lets Python find a plugin with a vocabulary."""
    write_files(tmp_path / "plugins", {"tiktoken_ext/bytewise.py": PLUGIN})
    return {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{tmp_path / 'plugins'}"}


def context(run: Run, folder: Path, tokenizer: str, machine: dict[str, str]) -> dict[str, object]:
    folder.joinpath("memory/config.yaml").write_text(f"context:\n  tokenizer: {tokenizer}\n")
    done = run("--vault", str(folder), "context", "change the upload", "--label", "upload", "--json", env=machine)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def test_a_vocabulary_by_its_name_counts_and_budgets_hold(
    vault: MakeVault, run: Run, machine: dict[str, str], plugin: dict[str, str]
) -> None:
    told = context(run, vault(NOTES), "bytes", machine | plugin)
    sections = {one["name"]: one for one in told["sections"]}  # type: ignore[attr-defined]
    assert all(one["tokens"] == len(one["text"].encode()) for one in sections.values())
    assert 700 < sections["activation"]["tokens"] <= 800
    assert "|end|> when an upload ends." in sections["guidelines"]["text"]
    assert told["tokens"] == len(str(told["text"]).encode())
    assert told["degraded"] == [one for one in told["degraded"] if "estimated" not in one]  # type: ignore[attr-defined]
    assert os.listdir(machine["TIKTOKEN_CACHE_DIR"]) == []


@pytest.mark.parametrize("tokenizer", ["estimate", "auto", "o200k_base", "klingon"])
def test_what_is_not_here_is_estimated_and_never_fetched(
    vault: MakeVault, run: Run, machine: dict[str, str], tokenizer: str
) -> None:
    told = context(run, vault(NOTES), tokenizer, machine)
    assert told["tokens"] == math.ceil(len(str(told["text"])) / 4)
    said = [one for one in told["degraded"] if one.startswith("tokens are estimated")]  # type: ignore[attr-defined]
    assert len(said) == (tokenizer in ("o200k_base", "klingon"))
    assert os.listdir(machine["TIKTOKEN_CACHE_DIR"]) == []


def test_without_tiktoken_the_reason_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert choose_counter("auto").notice == ""
    assert "pip install 'memory-kb[tokens]'" in choose_counter("cl100k_base").notice
