"""The log of what was shown holds no credentials, whoever asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.store.logs import Retrieval, RetrievalLog

MakeVault = Callable[[Files], Path]
AWS, GITHUB = "AKIAABCDEFGHIJKLMNOP", "ghp_" + "a1B2" * 9
FILES: Files = {
    "memory/config.yaml": "",
    "memory/rules/key.md": entry("The upload key rotates.", id="key-1", kind="rule"),
}


@pytest.fixture
def folder(vault: MakeVault) -> Path:
    return vault(FILES)


def logs(folder: Path) -> str:
    return "".join(file.read_text() for file in (folder / "memory/.memory-kb").rglob("*.jsonl"))


def test_a_prompt_is_written_down_without_its_credentials(folder: Path, run: Run) -> None:
    said = {"session_id": "s", "cwd": str(folder), "prompt": f"the upload key is {AWS}, rotates"}
    assert "rotates" in run("hook", "prompt", stdin=json.dumps(said)).stdout
    assert AWS not in logs(folder)
    assert (
        "the upload key is [redacted: an AWS access key], rotates"
        in (folder / "memory/.memory-kb/log/retrievals.jsonl").read_text()
    )


def test_so_are_searches_and_contexts_and_what_came_of_them(
    folder: Path, open_kb: Callable[[Path], KnowledgeBase]
) -> None:
    kb, task = open_kb(folder), f"rotate the upload key {GITHUB}"
    kb.search(f"upload key password=hunter2hunter {AWS}", mode="text")
    kb.skills.search(f"upload key {AWS}")
    kb.context(task, agent="coder")
    assert [one.id for one in kb.outcome("coder", task, "success", used=["key-1"]).credits] == ["key-1"]
    assert kb.outcome("coder", task, "success", used=["key-1"]).credits == ()
    told = logs(folder)
    assert not [secret for secret in (AWS, GITHUB, "hunter2hunter") if secret in told]
    assert "rotate the upload key [redacted: a GitHub token]" in told


def test_no_half_of_a_credential_is_left_where_a_query_is_cut(tmp_path: Path) -> None:
    log = RetrievalLog(tmp_path)
    log.append(Retrieval("t", "search", ("a",), query=f"{'x' * 490} {AWS}"))
    (line,) = log.read()
    assert line.query == f"{'x' * 490} [redacted"[:500]
    assert "AKIA" not in log.file.read_text()
