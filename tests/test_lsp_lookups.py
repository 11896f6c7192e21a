"""The language server answers an editor: completion, hover, links there and back, symbols."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import editing
import pytest
from conftest import Files, Run
from editing import POSTGRES, REDIS, Edit, Reading, draft
from support import entry

folder = editing.folder
shared = editing.shared
read = editing.read
edit = editing.edit

Vault = Callable[[Files], Path]


def labels(items: list[dict[str, Any]]) -> list[str]:
    return [item["label"] for item in items]


def test_links_are_completed_by_title_id_and_words_within(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [[stag")
    item = {item["label"]: item for item in editor.complete(uri, "[[stag")}["Staging database"]
    assert item["textEdit"]["newText"] == "staging|Staging database]]"
    assert item["textEdit"]["range"] == {"start": {"line": 0, "character": 6}, "end": {"line": 0, "character": 10}}
    editor.type(uri, "See [[redis-c]] now", 4)
    (item,) = editor.complete(uri, "[[redis-c")
    assert item["textEdit"]["newText"] == "redis"
    assert item["textEdit"]["range"]["end"]["character"] == 13
    editor.type(uri, "See [[data", 5)
    assert labels(editor.complete(uri, "[[data")) == ["Staging database"]


def test_headings_and_block_ids_of_the_linked_note_are_completed(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [[Redis cache#")
    assert labels(editor.complete(uri, "#")) == ["Redis cache", "Keys", "^flush"]
    editor.type(uri, "See [[Redis cache#^", 4)
    (item,) = editor.complete(uri, "#^")
    assert item["textEdit"]["newText"] == "^flush]]"


def test_paths_and_headings_of_markdown_links_are_completed_and_nothing_in_code(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [x](red) now", "memory/rules/draft.md")
    (item,) = editor.complete(uri, "(red")
    assert item["textEdit"]["newText"] == "../learnings/redis.md"
    assert item["textEdit"]["range"] == {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 11}}
    editor.type(uri, "See [x](../learnings/redis.md#ke)", 4)
    (item,) = editor.complete(uri, "#ke")
    assert (item["label"], item["textEdit"]["newText"]) == ("Keys", "keys")
    editor.type(uri, "See `[x](red)` and [x](https://red)", 5)
    assert editor.complete(uri, "`[x](red") == editor.complete(uri, "https://red") == []


def test_a_markdown_link_leads_to_its_section_and_back(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [x](redis.md#keys).")
    place = editor.ask("textDocument/definition", editor.at(uri, "redis"))
    assert place["uri"].endswith("redis.md")
    lines = (folder / "memory/learnings/redis.md").read_text().splitlines()
    assert lines[place["range"]["start"]["line"]] == "## Keys"
    asked = editor.at(uri, "redis") | {"context": {"includeDeclaration": False}}
    assert uri in [one["uri"] for one in editor.ask("textDocument/references", asked)]


def test_a_link_with_a_heading_shows_that_section_on_hover(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [x](redis.md#keys), [[Redis cache#Keys]], [[redis#^flush]].")

    def hover(word: str) -> str:
        return str(editor.ask("textDocument/hover", editor.at(uri, word))["contents"]["value"])

    assert hover("(redis") == hover("[[Redis") == "## Keys\n\nPrefixed by tenant."
    assert hover("[[redis") == "Flushed every night. ^flush"


@pytest.mark.parametrize("text", ["See `[[red]]`", "```\n[[red\n```\n", "<!-- [[red -->"])
def test_links_are_not_completed_in_code_and_comments(read: Reading, text: str) -> None:
    editor, folder = read
    uri = draft(editor, folder, text)
    assert editor.complete(uri, "[[red") == []


def test_headings_are_found_in_all_notes(read: Reading) -> None:
    editor, _ = read

    def find(query: str) -> list[tuple[str, str, int]]:
        found = editor.ask("workspace/symbol", {"query": query})
        places = [(one["name"], one["location"]) for one in found]
        return [(name, at["uri"].rpartition("/")[2], at["range"]["start"]["line"]) for name, at in places]

    assert find("KEYS") == [("Keys", "redis.md", 9)]


@pytest.mark.parametrize(
    ("text", "word", "wanted", "unwanted"),
    [
        pytest.param("---\nki\n---\nText.\n", "ki", {"kind"}, {"tags"}, id="field-name"),
        pytest.param(
            "---\nkind: fact\n\n---\nText.\n",
            "fact\n",
            {"status", "tags"},
            {"kind"},
            id="only-fields-that-are-not-there",
        ),
        pytest.param("---\nkind: po\n---\n", "po", {"policy"}, {"fact"}, id="value"),
        pytest.param("---\nstatus: \n---\n", "status: ", {"active", "retired"}, {"policy"}, id="empty-value"),
        pytest.param("---\npinned: \n---\n", "pinned: ", {"true", "false"}, set(), id="flag"),
        pytest.param("---\ncreated_at: \n---\n", "created_at: ", {"'2026-11-21'"}, set(), id="day"),
        pytest.param("---\ntags: [db, ca\n---\n", ", ca", {"cache"}, {"db"}, id="tag-in-a-list"),
        pytest.param("---\ntags:\n  - st\n---\n", "- st", {"staging"}, {"db"}, id="tag-on-a-line"),
        pytest.param("---\nlinks: [{to: stag\n---\n", "to: stag", {"Staging database"}, set(), id="id-in-an-object"),
        pytest.param(
            "---\nlinks:\n- to: x\n  relation: sup\n---\n",
            "relation: sup",
            {"supersedes", "superseded_by"},
            {"related_to"},
            id="relation",
        ),
        pytest.param("---\nlinks:\n  - {to: stag\n---\n", "to: stag", {"Staging database"}, set(), id="id-in-a-list"),
        pytest.param("> [!wa", "[!wa", {"warning"}, {"note"}, id="callout"),
        pytest.param("---\nlinks: [{to: x, rel\n---\n", "rel", {"relation: "}, set(), id="key-in-an-object"),
        pytest.param("Text #ca", "#ca", {"cache"}, set(), id="tag-in-text"),
        pytest.param("Text.\n\n---\nid: a\nsta\n---\n", "sta", {"status"}, set(), id="second-entry"),
        pytest.param("---\nid: a\n", "\n", set(), set(), id="unclosed"),
    ],
)
def test_frontmatter_is_completed_where_it_is(
    read: Reading, text: str, word: str, wanted: set[str], unwanted: set[str]
) -> None:
    editor, folder = read
    uri = draft(editor, folder, text)
    found = set(labels(editor.complete(uri, word)))
    assert wanted <= found
    assert not unwanted & found


@pytest.mark.parametrize(
    "text",
    [
        "kind: po",
        "Text.\n\nstatus: ",
        "---\nid: a\n---\nkind: po",
        "```\n---\nkind: po\n```\n",
        "# Heading: po",
        "`#ca`",
    ],
)
def test_no_fields_are_offered_outside_of_frontmatter(read: Reading, text: str) -> None:
    editor, folder = read
    uri = draft(editor, folder, text)
    assert editor.complete(uri, text.rstrip("`\n")) == []


def test_accepting_an_id_writes_the_id(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "---\nlinks: [{to: stag}]\n---\n")
    (item,) = editor.complete(uri, "to: stag")
    assert item["textEdit"]["newText"] == "staging-db"


def test_hover_says_prominence_use_and_links(edit: Edit, folder: Path, run: Run) -> None:
    run("--vault", folder, "search", "postgres", "--no-embed", env={"MEMORY_KB_NOW": "2026-11-20T12:00:00+00:00"})
    run("--vault", folder, "search", "postgres", env={"MEMORY_KB_NOW": "2026-11-20T12:00:00+00:00"})
    editor = edit()
    uri = draft(editor, folder, "See [[Staging database]].")
    told = editor.ask("textDocument/hover", editor.at(uri, "[[Stag"))["contents"]["value"]
    assert "prominence 0.4 = importance 0.4 × decay 1 (undated) × 1 (reinforced 0×); scope × 1" in told
    assert "shown 1×, last on 2026-11-20; outcomes: none yet" in told
    assert "links: 1 out, 1 in" in told
    assert "Staging runs Postgres 15" in told


def test_hover_counts_what_is_not_saved_yet(read: Reading) -> None:
    editor, folder = read
    old = entry(
        "Text.", id="staging-db", kind="fact", importance="0.8", last_reinforced="'2026-08-23'", reinforcement_count=1
    )
    uri = editor.open(folder / "memory/learnings/staging.md", "[[")
    editor.wait_until_known(uri, "[[", "Redis cache")
    editor.type(uri, old, 3)
    told = editor.ask("textDocument/hover", editor.at(uri, "id: stag"))["contents"]["value"]
    assert "prominence 0.8 = importance 0.8 × decay 0.5 (90 days old) × 2 (reinforced 1×)" in told


@pytest.mark.slow
def test_hover_mentions_stale_claims(edit: Edit, folder: Path, run: Run) -> None:
    (folder / "app.py").write_text("one = 1\ntwo = 2\n", encoding="utf-8")
    done = run("--vault", folder, "cite", "staging-db", "app.py#L1-L2")
    assert done.returncode == 0, done.stderr
    (folder / "app.py").write_text("nothing = 0\n", encoding="utf-8")
    editor = edit()
    uri = draft(editor, folder, "See [[Staging database]].")
    assert "claims: **drifted**" in editor.ask("textDocument/hover", editor.at(uri, "[[Stag"))["contents"]["value"]
    cited = editor.open(folder / "memory/learnings/staging.md")
    assert "claim" in [one["code"] for one in editor.diagnostics(cited)]


def test_links_lead_to_their_entries_and_back(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [[Redis cache#Keys|keys]] and [[nowhere]].")
    place = editor.ask("textDocument/definition", editor.at(uri, "[[Redis"))
    assert place["uri"] == (folder / "memory/learnings/redis.md").as_uri()
    assert place["range"]["start"]["line"] == 9
    assert editor.ask("textDocument/definition", editor.at(uri, "[[nowh")) is None
    staging = editor.open(folder / "memory/learnings/staging.md")
    asked = editor.at(staging, "id: staging") | {"context": {"includeDeclaration": False}}
    assert [one["uri"].rpartition("/")[2] for one in editor.ask("textDocument/references", asked)] == ["pin.md"]
    asked = editor.at(uri, "[[Redis") | {"context": {"includeDeclaration": True}}
    found = editor.ask("textDocument/references", asked)
    assert [(one["uri"].rpartition("/")[2], one["range"]["start"]) for one in found] == [
        ("redis.md", {"line": 5, "character": 0}),
        ("staging.md", {"line": 6, "character": 30}),
        ("draft.md", {"line": 0, "character": 4}),
    ]


def test_symbols_are_entries_with_their_headings(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, f"{REDIS}\n{POSTGRES}")
    symbols = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    assert [(one["name"], [child["name"] for child in one["children"]]) for one in symbols] == [
        ("Redis cache", ["Redis cache", "Keys"]),
        ("Staging database", []),
    ]
    found = editor.ask("workspace/symbol", {"query": "redis"})
    assert [(one["name"], one["location"]["uri"].rpartition("/")[2]) for one in found] == [("Redis cache", "redis.md")]


def test_sections_fold_and_links_lead_to_their_notes(read: Reading) -> None:
    editor, folder = read
    text = "---\nid: x\nkind: fact\n---\n# A\n\nSee [[Redis cache]], [it](redis.md) and [[nowhere]].\n\n## B\n\nOne.\n\n# C\n\nEnd.\n"
    uri = draft(editor, folder, text)
    folds = editor.ask("textDocument/foldingRange", {"textDocument": {"uri": uri}})
    assert [(one["startLine"], one["endLine"]) for one in folds] == [(0, 3), (4, 11), (8, 11), (12, 14)]
    links = editor.ask("textDocument/documentLink", {"textDocument": {"uri": uri}})
    assert {one["target"].rpartition("/")[2] for one in links} == {"redis.md"}


@pytest.mark.slow
def test_a_note_with_thousands_of_sections_folds_while_somebody_waits(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "".join(f"## Release {number}\n\n- One fix.\n\n" for number in range(10_000)))
    folds = editor.ask("textDocument/foldingRange", {"textDocument": {"uri": uri}})
    assert [(one["startLine"], one["endLine"]) for one in folds[:2]] == [(0, 3), (4, 7)]
    assert len(folds) == 10_000
