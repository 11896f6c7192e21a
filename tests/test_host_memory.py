"""What agents remember by themselves is found, marked and never written, and `import` understands it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Files, Run

from memory_kb import KnowledgeBase
from memory_kb.errors import UnknownEntry

Vault = Callable[[Files], Path]
TOPIC = "---\nname: Quokka queue\ndescription: why uploads wait\ntype: project\n---\nThe upload queue waits for the quokka.\n"
NESTED = "---\nname: Tabs\nmetadata:\n  type: feedback\n---\nNever indent the bilby service with spaces.\n"
INDEX = "- [Quokka queue](quokka.md) — why uploads wait\n- [Tabs](tabs.md) — indentation\n- The wombat deploys on Fridays.\n"


def remember(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def snapshot(*folders: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def project(vault: Vault, tmp_path: Path) -> Path:
    """A vault with one fact, and what Claude Code, Codex and people keep beside it."""
    folder = vault(
        {"memory/config.yaml": "", "memory/learnings/a.md": "---\nid: a-1\n---\nThe upload runs at night.\n"}
    )
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in str(folder))
    remember(tmp_path / f".claude/projects/{name}/memory", {"MEMORY.md": INDEX, "quokka.md": TOPIC, "tabs.md": NESTED})
    remember(
        folder / ".claude/rules", {"api.md": '---\npaths: ["src/api/**"]\n---\nThe numbat checks every request.\n'}
    )
    remember(folder / ".claude/agent-memory/reviewer", {"MEMORY.md": "The dingo reviews on Mondays.\n"})
    remember(
        folder, {"CLAUDE.md": "Run `make echidna` first.\n<!-- memory-kb:begin -->\nplatypus\n<!-- memory-kb:end -->\n"}
    )
    remember(tmp_path / ".codex/memories", {"MEMORY.md": "The kookaburra cache is cold.\n", "raw_memories.md": "raw\n"})
    return folder


@pytest.fixture
def kb(project: Path, tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(project, tmp_path / ".memory", environ={"HOME": str(tmp_path)}) as kb:
        yield kb


@pytest.mark.parametrize(
    ("query", "path", "kind"),
    [
        ("quokka", "quokka.md", "fact"),
        ("bilby", "tabs.md", "rule"),
        ("wombat", "MEMORY.md", "fact"),
        ("numbat", ".claude/rules/api.md", "fact"),
        ("dingo", ".claude/agent-memory/reviewer/MEMORY.md", "fact"),
        ("echidna", "CLAUDE.md", "fact"),
        ("kookaburra", "~/.codex/memories/MEMORY.md", "fact"),
    ],
)
def test_a_search_finds_what_a_host_remembers(kb: KnowledgeBase, query: str, path: str, kind: str) -> None:
    (hit,) = kb.search(query).hits
    assert hit.path.endswith(path)
    assert (hit.scope, hit.kind) == ("host", kind)


@pytest.mark.parametrize("query", ["quokka", "wombat", "echidna"])
def test_show_gives_what_a_search_found(kb: KnowledgeBase, query: str) -> None:
    (hit,) = kb.search(query).hits
    shown = kb.show(hit.id)
    assert (shown.scope, shown.path) == ("host", hit.path)
    assert query in (shown.text or "")
    assert kb.show(f"{hit.path}:{hit.line}").id == hit.id
    with pytest.raises(UnknownEntry):
        kb.show("nobody")


def test_nothing_of_ours_is_found_again(kb: KnowledgeBase) -> None:
    assert not kb.search("platypus").hits


def test_hits_of_both_are_in_one_order(kb: KnowledgeBase) -> None:
    both = kb.search("upload queue waits").hits
    assert [(hit.scope, hit.rank) for hit in both] == [("host", 1), ("project", 2)]
    assert [hit.scope for hit in kb.search("upload", scope=["project"]).hits] == ["project"]
    assert [hit.scope for hit in kb.search("upload", scope=["host"]).hits] == ["host"]
    assert [hit.path for hit in kb.search("", file="src/api/x.py").hits] == [".claude/rules/api.md"]


def test_context_adds_only_what_the_host_does_not_give(kb: KnowledgeBase) -> None:
    assert "waits for the quokka" in kb.context("why does the upload queue wait").text
    assert "wombat" not in kb.context("when does the wombat deploy on Fridays").text


def test_it_can_be_switched_off(project: Path, run: Run) -> None:
    on = json.loads(run("search", "quokka", "--json", cwd=project).stdout)
    off = json.loads(run("search", "quokka", "--json", cwd=project, env={"MEMORY_KB_HOST": "off"}).stdout)
    assert ([hit["scope"] for hit in on["hits"]], off["hits"]) == (["host"], [])


def test_a_change_is_found_at_once_and_nothing_is_written(kb: KnowledgeBase, project: Path, tmp_path: Path) -> None:
    folders = (tmp_path / ".claude", tmp_path / ".codex", project / ".claude")
    before = snapshot(*folders)
    kb.search("quokka")
    kb.context("why does the upload queue wait")
    kb.maintain()
    assert snapshot(*folders) == before
    remember(tmp_path / ".codex/memories", {"MEMORY.md": "The cassowary cache is cold now.\n"})
    assert kb.search("cassowary").hits
    assert not kb.search("kookaburra").hits


def test_import_reads_topic_files_and_leaves_pointers_out(project: Path, tmp_path: Path, run: Run) -> None:
    source = next((tmp_path / ".claude/projects").iterdir()) / "memory"
    before = snapshot(source)
    done = run("import", str(source), "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    with KnowledgeBase.open(
        project, tmp_path / ".memory", environ={"HOME": str(tmp_path), "MEMORY_KB_HOST": "off"}
    ) as kb:
        entries = {entry.title: entry.kind for entry in kb.list() if entry.id != "a-1"}
    assert entries.pop("Quokka queue") == "fact"
    assert entries.pop("Tabs") == "rule"
    assert list(entries.values()) == ["fact"]
    assert snapshot(source) == before


def search(project: Path, tmp_path: Path, query: str) -> list[str]:
    with KnowledgeBase.open(project, tmp_path / ".memory", environ={"HOME": str(tmp_path)}) as kb:
        return [hit.path for hit in kb.search(query).hits]


def test_settings_of_a_clone_lead_to_no_folder_of_the_person(project: Path, tmp_path: Path) -> None:
    remember(tmp_path / "diary", {"MEMORY.md": "The axolotl moved out.\n"})
    remember(project / "notes/agent", {"MEMORY.md": "The ocelot moved in.\n"})
    settings = project / ".claude/settings.local.json"
    for named in (str(tmp_path / "diary"), "~/diary", "../diary"):
        settings.write_text(json.dumps({"autoMemoryDirectory": named}))
        assert search(project, tmp_path, "axolotl") == []
    settings.write_text(json.dumps({"autoMemoryDirectory": "notes/agent"}))
    assert search(project, tmp_path, "ocelot") == ["notes/agent/MEMORY.md"]
    remember(tmp_path / ".claude", {"settings.json": json.dumps({"autoMemoryDirectory": "~/diary"})})
    assert search(project, tmp_path, "axolotl") == ["~/diary/MEMORY.md"]


def test_settings_of_a_clone_that_cannot_be_read_are_none(project: Path, tmp_path: Path) -> None:
    remember(project, {".claude/settings.local.json": "[" * 100_000 + "]" * 100_000})
    assert search(project, tmp_path, "numbat")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_search_waits_for_no_pipe_of_an_archive(project: Path, tmp_path: Path) -> None:
    for name in (".claude/settings.local.json", ".claude/rules/pipe.md", "AGENTS.md"):
        os.mkfifo(project / name)
    assert search(project, tmp_path, "numbat")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_a_link_in_a_clone_leads_to_no_file_of_the_person(project: Path, tmp_path: Path) -> None:
    remember(tmp_path / "diary", {"private.md": "The axolotl moved out.\n"})
    (project / "AGENTS.md").symlink_to(tmp_path / "diary/private.md")
    (project / ".claude/agent-memory/spy").symlink_to(tmp_path / "diary")
    assert search(project, tmp_path, "axolotl") == []


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_a_folder_that_cannot_be_asked_about_hides_no_other(project: Path, tmp_path: Path) -> None:
    (project / ".claude/agent-memory/long").symlink_to("long" * 100)
    assert search(project, tmp_path, "dingo")


@pytest.mark.parametrize("how", ["a working tree", "the folder that all share"])
def test_a_repository_that_came_with_an_archive_names_no_other_project(how: str, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    remember(other / ".git", {"HEAD": "ref: refs/heads/main\n"})
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in str(other))
    remember(tmp_path / f".claude/projects/{name}/memory", {"MEMORY.md": "The axolotl moved out.\n"})
    if how == "a working tree":
        remember(project / ".git/worktrees/x", {"gitdir": f"{other}/.git\n"})
    else:
        remember(project / "git", {"commondir": f"{other}/.git\n", "gitdir": f"{project}/.git\n"})
        remember(project, {".git": "gitdir: git\n"})
    assert search(project, tmp_path, "axolotl") == []
