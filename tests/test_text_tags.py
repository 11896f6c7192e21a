"""Tags that stand in the text of a note: filters and completion know them, ranking goes by the frontmatter alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run, write_files
from lsp_client import Editor
from support import entry, ids, rebuilt, rows

from memory_kb import KnowledgeBase
from memory_kb.markdown.links import find_tags

FILES = {
    "memory/config.yaml": "",
    "memory/learnings/a.md": entry("Call the shop first. #urgent #deploy/prod", id="a", kind="fact", tags="[ops]"),
    "memory/learnings/b.md": entry("Text.", id="b", kind="fact", tags="[deploy/staging, Urgent]"),
    "memory/learnings/c.md": entry("A `#urgent` in code, issue #123.\n\n```\n#deploy\n```", id="c", kind="fact"),
    "memory/learnings/d.md": entry("One. " * 500 + "\n\n" + "Two. " * 500 + "#late", id="d", kind="fact"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "vault", FILES)


BEARERS = {
    "urgent": ["a", "b"], "URGENT": ["a", "b"], "#urgent": ["a", "b"], "deploy": ["a", "b"], "deploy/prod": ["a"], "deploy/": [],
    "dep": [], "ops": ["a"], "late": ["d"], "": [],
}  # fmt: skip


@pytest.mark.parametrize("is_memory", [True, False])
def test_a_tag_finds_what_bears_it_or_one_below_it(run: Run, tmp_path: Path, is_memory: bool) -> None:
    files = (
        FILES if is_memory else {name.rpartition("/")[2]: text for name, text in FILES.items() if name.endswith(".md")}
    )
    folder = write_files(tmp_path / "notes", files)
    for tag, wanted in BEARERS.items():
        done = run("--vault", folder, "list", "--tag", tag, "--json")
        assert [one["id"] for one in json.loads(done.stdout)["entries"]] == wanted, tag


def test_every_chunk_of_an_entry_bears_its_tags(folder: Path, home: Path) -> None:
    with KnowledgeBase.open(folder, home=home, environ={"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}) as kb:
        kb.sync()
        assert set(ids(kb, "one", tag="late")) == {"d"}


def test_tags_in_text_follow_every_change_and_a_rebuild(folder: Path, home: Path, tmp_path: Path) -> None:
    with KnowledgeBase.open(folder, home=home, environ={"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}) as kb:
        kb.sync()
        (folder / "memory/learnings/b.md").write_text(entry("Now #later.", id="b", kind="fact"), encoding="utf-8")
        kb.sync()
        assert [one.id for one in kb.list(tag="later")] == ["b"]
        assert [one.id for one in kb.list(tag="urgent")] == ["a"]
        with rebuilt(kb, tmp_path / "fresh") as fresh:
            assert rows(fresh) == rows(kb)


def test_ranking_goes_by_the_tags_of_the_frontmatter(tmp_path: Path, home: Path) -> None:
    text = "Buffer the chunks of a stream."
    files = {f"{name}.md": entry(f"{text} {mark}", id=name, kind="fact", **fields) for name, mark, fields in (
        ("in-text", "#wombat", {}), ("in-fields", "wombat", {"tags": "[wombat]"}), ("in-words", "wombat.", {}),
    )}  # fmt: skip
    folder = write_files(tmp_path / "notes", files)
    with KnowledgeBase.open(folder, home=home, environ={"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}) as kb:
        scores = {hit.id: hit.score for hit in kb.search("wombat").hits}
    assert scores["in-fields"] > scores["in-text"]
    # a passage's length is counted in characters; the same text twice would be one hit
    assert scores["in-text"] == pytest.approx(scores["in-words"], rel=1e-3)


def test_they_are_completed_in_text_and_in_frontmatter(folder: Path, home: Path) -> None:
    editor = Editor(home, "--vault", folder, cwd=folder)
    editor.start()
    uri = editor.open(folder / "memory/learnings/new.md", "---\ntags: [lat]\n---\nText #urg and #prod")
    assert [item["label"] for item in editor.complete(uri, "#urg")] == ["Urgent", "urgent"]
    assert [item["label"] for item in editor.complete(uri, "#prod")] == ["deploy/prod"]
    assert [item["label"] for item in editor.complete(uri, "[lat")] == ["late"]
    editor.kill()


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#urgent", ["urgent"]),
        ("In (#brackets), **#bold**, > #quoted.", ["brackets", "bold", "quoted"]),
        ("- #item\n    #of-item\n\n1. #one", ["item", "of-item", "one"]),
        ("## A heading #tagged", ["tagged"]),
        ("#a/b/c, #ends/ #dash- #2024-goals #3d #snake_case", ["a/b/c", "ends", "dash", "2024-goals", "3d", "snake_case"]),
        ("数据 #标签/子 ，#两", ["标签/子", "两"]),
        ("#add #face #decade", ["add", "face", "decade"]),
        ("#1 #123, (#45) #12-14", []),
        ("# Heading\n\n## \n\n#\n##two ###three", []),
        ("C# F# a#b x.py#L10 #v1.2 #c++ #main()", []),
        ('[[Note#Heading]] [[#Here|#shown]] [x](#anchor) [y](a.md#b) <a href="#c"> &#39; &#x27;', []),
        ("https://a.example/#frag https://b.example/x#y", []),
        ("`#inline` ``#two``\n\n```\n#fenced\n```\n\n~~~py\n#tilde\n~~~", []),
        ("Text.\n\n    #indented\n\n    #still\n\n\t#tabbed\n\nThen #real.", ["real"]),
        ("```\n#never closed", []),
        ("'#quoted' \"#quoted\" '#main > a'", []),
    ],
)  # fmt: skip
def test_what_is_a_tag(text: str, tags: list[str]) -> None:
    assert list(find_tags(text)) == tags
