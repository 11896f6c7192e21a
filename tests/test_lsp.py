"""The language server over real JSON-RPC: what an editor asks it, about notes that are saved and notes that are not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Files, Run, write_files
from lsp_client import CAPABILITIES, Editor, apply_workspace_edit
from support import entry, notes_of

from memory_kb.lsp.edits import text_edits
from memory_kb.lsp.positions import Ruler
from memory_kb.lsp.spots import find_spot

Vault = Callable[[Files], Path]

POSTGRES = entry("Staging runs Postgres 15, see [[Redis cache]].", id="staging-db", kind="fact", title="Staging database", tags="[db, staging]")
REDIS = entry("# Redis cache\n\nFlushed every night. ^flush\n\n## Keys\n\nPrefixed by tenant.", id="redis-cache", kind="fact", tags="[db, cache]")
RULE = entry("Always pin the image.", id="pin-image", kind="rule", links="[{to: staging-db, relation: elaborates}]", status="proposed")


FILES = {
    "memory/config.yaml": "",
    "memory/learnings/staging.md": POSTGRES,
    "memory/learnings/redis.md": REDIS,
    "memory/review/pin.md": RULE,
    "README.md": "# No note of the vault\n\n[[\n",
}
CLOCK = {"MEMORY_KB_NOW": "2026-11-21T12:00:00+00:00"}


@pytest.fixture
def folder(vault: Vault) -> Path:
    return vault(FILES)


class Reading(NamedTuple):
    """An editor that many tests share, on a vault that none of them may change."""

    editor: Editor
    folder: Path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reading]:
    folder = write_files(tmp_path_factory.mktemp("shared") / "vault", FILES)
    editor = Editor(folder.parent / "home", "--vault", folder, cwd=folder.parent, env=CLOCK)
    editor.start()
    before = notes_of(folder)
    yield Reading(editor, folder)
    editor.kill()
    assert notes_of(folder) == before


@pytest.fixture
def read(shared: Reading) -> Iterator[Reading]:
    """The shared editor without any note open."""
    yield shared
    shared.editor.close_notes()


@pytest.fixture
def edit(folder: Path, home: Path) -> Iterator[Callable[..., Editor]]:
    """A function that starts an editor on the vault; it is gone when the test ends."""
    editors: list[Editor] = []

    def start(capabilities: dict[str, Any] | None = None, **env: str) -> Editor:
        editor = Editor(home, "--vault", folder, cwd=folder.parent, env={**CLOCK, **env})
        editors.append(editor)
        editor.start(capabilities=capabilities)
        return editor

    yield start
    for editor in editors:
        editor.kill()


Edit = Callable[..., Editor]


def draft(editor: Editor, folder: Path, text: str, name: str = "memory/learnings/draft.md") -> str:
    """Open a note that is not saved."""
    uri = editor.open(folder / name, "[[")
    editor.type(uri, text, 3)
    return uri


def labels(items: list[dict[str, Any]]) -> list[str]:
    return [item["label"] for item in items]


# -- starting and ending -----------------------------------------------------------------------


def test_it_begins_tells_what_it_can_and_ends(folder: Path, home: Path) -> None:
    editor = Editor(home, "--vault", folder, cwd=folder)
    told = editor.start()
    able = told["capabilities"]
    assert told["serverInfo"]["name"] == "memory-kb"
    assert {"completionProvider", "hoverProvider", "definitionProvider", "referencesProvider", "renameProvider", "codeActionProvider"} <= able.keys()
    assert able["renameProvider"] == {"prepareProvider": True}
    assert editor.close() == 0


def test_it_ends_when_the_editor_is_gone(folder: Path, home: Path) -> None:
    editor = Editor(home, "--vault", folder, cwd=folder)
    editor.start()
    assert editor.process.stdin
    editor.process.stdin.close()
    assert editor.end() == 0


def test_without_a_name_it_serves_the_vault_around_the_open_folder(folder: Path, home: Path, tmp_path: Path) -> None:
    editor = Editor(home, cwd=tmp_path)
    editor.start(root=folder / "memory" / "learnings")
    uri = editor.open(folder / "memory/learnings/new.md", "[[Stag")
    editor.wait_until_known(uri, "[[Stag", "Staging database")
    editor.kill()


def test_where_there_is_no_vault_it_makes_none_and_says_so(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "elsewhere"
    project.mkdir()
    editor = Editor(home, cwd=project)
    editor.start(root=project)
    uri = editor.open(project / "notes.md", "[[")
    assert "no vault" in editor.stderr.get(timeout=20)
    assert editor.complete(uri, "[[") == []
    editor.kill()
    assert list(project.iterdir()) == []


# -- completion --------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("text", "word", "wanted", "unwanted"),
    [
        pytest.param("---\nki\n---\nText.\n", "ki", {"kind"}, {"tags"}, id="field-name"),
        pytest.param("---\nkind: fact\n\n---\nText.\n", "fact\n", {"status", "tags"}, {"kind"}, id="only-fields-that-are-not-there"),
        pytest.param("---\nkind: po\n---\n", "po", {"policy"}, {"fact"}, id="value"),
        pytest.param("---\nstatus: \n---\n", "status: ", {"active", "retired"}, {"policy"}, id="empty-value"),
        pytest.param("---\npinned: \n---\n", "pinned: ", {"true", "false"}, set(), id="flag"),
        pytest.param("---\ncreated_at: \n---\n", "created_at: ", {"'2026-11-21'"}, set(), id="day"),
        pytest.param("---\ntags: [db, ca\n---\n", ", ca", {"cache"}, {"db"}, id="tag-in-a-list"),
        pytest.param("---\ntags:\n  - st\n---\n", "- st", {"staging"}, {"db"}, id="tag-on-a-line"),
        pytest.param("---\nlinks: [{to: stag\n---\n", "to: stag", {"Staging database"}, set(), id="id-in-an-object"),
        pytest.param("---\nlinks:\n- to: x\n  relation: sup\n---\n", "relation: sup", {"supersedes", "superseded_by"}, {"related_to"}, id="relation"),
        pytest.param("---\nlinks: [{to: x, rel\n---\n", "rel", {"relation: "}, set(), id="key-in-an-object"),
        pytest.param("Text #ca", "#ca", {"cache"}, set(), id="tag-in-text"),
        pytest.param("Text.\n\n---\nid: a\nsta\n---\n", "sta", {"status"}, set(), id="second-entry"),
        pytest.param("---\nid: a\n", "\n", set(), set(), id="unclosed"),
    ],
)
def test_frontmatter_is_completed_where_it_stands(read: Reading, text: str, word: str, wanted: set[str], unwanted: set[str]) -> None:
    editor, folder = read
    uri = draft(editor, folder, text)
    found = set(labels(editor.complete(uri, word)))
    assert wanted <= found
    assert not unwanted & found


@pytest.mark.parametrize(
    "text", ["kind: po", "Text.\n\nstatus: ", "---\nid: a\n---\nkind: po", "```\n---\nkind: po\n```\n", "# Heading: po", "`#ca`"]
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


# -- hover, going there, coming back -----------------------------------------------------------


def test_hover_tells_prominence_use_and_links(edit: Edit, folder: Path, run: Run) -> None:
    run("--vault", folder, "search", "postgres", "--no-embed", env={"MEMORY_KB_NOW": "2026-11-20T12:00:00+00:00"})
    run("--vault", folder, "search", "postgres", env={"MEMORY_KB_NOW": "2026-11-20T12:00:00+00:00"})
    editor = edit()
    uri = draft(editor, folder, "See [[Staging database]].")
    told = editor.ask("textDocument/hover", editor.at(uri, "[[Stag"))["contents"]["value"]
    assert "prominence 0.4 = importance 0.4 × decay 1 (undated) × 1 (reinforced 0×); scope × 1" in told
    assert "shown 1×, last on 2026-11-20; outcomes: none yet" in told
    assert "links: 1 out, 2 in" in told
    assert "Staging runs Postgres 15" in told


def test_hover_counts_what_is_not_saved_yet(read: Reading) -> None:
    editor, folder = read
    old = entry("Text.", id="staging-db", kind="fact", importance="0.8", last_reinforced="'2026-08-23'", reinforcement_count=1)
    uri = editor.open(folder / "memory/learnings/staging.md", "[[")
    editor.wait_until_known(uri, "[[", "Redis cache")
    editor.type(uri, old, 3)
    told = editor.ask("textDocument/hover", editor.at(uri, "id: stag"))["contents"]["value"]
    assert "prominence 0.8 = importance 0.8 × decay 0.5 (90 days old) × 2 (reinforced 1×)" in told


def test_hover_over_a_field_says_what_it_means(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "---\nid: a\nevergreen: true\n---\n")
    assert "does not age" in editor.ask("textDocument/hover", editor.at(uri, "everg"))["contents"]["value"]


def test_hover_tells_of_stale_claims(edit: Edit, folder: Path, run: Run) -> None:
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
        ("draft.md", {"line": 0, "character": 4}),
        ("staging.md", {"line": 6, "character": 30}),
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
    assert [(one["name"], one["location"]["uri"].rpartition("/")[2]) for one in found] == [("Redis cache", "redis.md"), ("Redis cache", "draft.md")]


# -- renaming ----------------------------------------------------------------------------------


def test_an_id_is_renamed_with_its_links_saved_or_not(read: Reading) -> None:
    editor, folder = read
    before = notes_of(folder)
    uri = draft(editor, folder, "See [[staging-db|it]] and [[Staging database]] 😀 [[staging-db]].\n")
    staging = editor.open(folder / "memory/learnings/staging.md")
    assert editor.ask("textDocument/prepareRename", editor.at(staging, "id: staging"))["placeholder"] == "staging-db"
    asked = editor.at(staging, "id: staging") | {"newName": "stage-database"}
    made = apply_workspace_edit(editor.ask("textDocument/rename", asked), {uri: editor.text(uri), staging: editor.text(staging)})
    assert made[uri] == "See [[stage-database|it]] and [[Staging database]] 😀 [[stage-database]].\n"
    assert made[staging] == POSTGRES.replace("staging-db", "stage-database")
    assert made[(folder / "memory/review/pin.md").as_uri()] == RULE.replace("staging-db", "stage-database")
    assert len(made) == 3
    assert notes_of(folder) == before


def test_a_title_is_renamed_from_a_link_to_it(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [[redis cache#Keys]] and [[redis-cache]].")
    asked = editor.at(uri, "[[redis ca") | {"newName": "The  cache"}
    made = apply_workspace_edit(editor.ask("textDocument/rename", asked), {uri: editor.text(uri)})
    assert made[uri] == "See [[The cache#Keys]] and [[redis-cache]]."
    assert made[(folder / "memory/learnings/redis.md").as_uri()] == REDIS.replace("# Redis cache", "# The cache")
    assert made[(folder / "memory/learnings/staging.md").as_uri()] == POSTGRES.replace("[[Redis cache]]", "[[The cache]]")


def test_a_name_that_is_taken_is_refused(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [[Redis cache]].")
    assert editor.ask("textDocument/rename", editor.at(uri, "[[Redis") | {"newName": "Staging database"}) is None
    said = editor.wait(lambda one: one.get("method") == "window/showMessage")
    assert "is called already" in said["params"]["message"]


def test_the_command_renames_whatever_the_line_ends(run: Run, folder: Path) -> None:
    crlf = folder / "memory/learnings/crlf.md"
    crlf.write_bytes(b"\xef\xbb\xbf---\r\nid: other # mine\r\nlinks:\r\n  - {to: staging-db, relation: related_to}\r\n---\r\nSee [[staging-db]].\r\n")
    before = notes_of(folder)
    dry = run("--vault", folder, "rename", "staging-db", "stage", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "+id: stage" in dry.stdout
    assert notes_of(folder) == before
    done = run("--vault", folder, "rename", "staging-db", "stage")
    assert done.returncode == 0, done.stderr
    after = crlf.read_bytes()
    assert after.replace(b"[{to: stage, relation: related_to}]", b"").count(b"\r\n") == after.count(b"\n")
    assert b"[[stage]].\r\n" in after and after.startswith(b"\xef\xbb\xbf---\r\nid: other # mine\r\n")
    assert run("--vault", folder, "lint").stderr == "Nothing to mend.\n"
    assert run("--vault", folder, "show", "stage").returncode == 0
    assert run("--vault", folder, "undo").returncode == 0
    assert notes_of(folder) == before
    assert run("--vault", folder, "rename", "staging-db", "redis-cache").returncode == 2
    assert run("--vault", folder, "rename", "staging-db", "a]b").returncode == 2


def test_what_stands_around_a_name_stays_as_it_is(run: Run, folder: Path) -> None:
    file = folder / "memory/learnings/mine.md"
    text = (
        '---\nid: mine\nlinks:\n  # why\n  - to: "staging-db"   # first\n    relation: related_to\n  - {to: redis-cache, relation: elaborates}\n'
        "sources: [staging-db, s1] # two\ntags: [staging-db]\n---\nText, staging-db.\n"
    )
    file.write_text(text, encoding="utf-8")
    assert run("--vault", folder, "rename", "staging-db", "yes: it is").returncode == 0
    renamed = text.replace('"staging-db"', '"yes: it is"').replace("sources: [staging-db", "sources: ['yes: it is'")
    assert file.read_text(encoding="utf-8") == renamed


def test_a_note_called_by_its_file_is_renamed_with_its_file(run: Run, vault: Vault, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "sub" / "Tea.md").write_text("Green.\n", encoding="utf-8")
    (notes / "a.md").write_text("[[Tea]] ![[sub/Tea#^x]] [[tea.md|t]] [[Teapot]]\n", encoding="utf-8")
    done = run("--vault", notes, "rename", "sub/Tea.md", "Green tea", "--title")
    assert done.returncode == 0, done.stderr
    assert (notes / "sub" / "Green tea.md").read_text(encoding="utf-8") == "Green.\n"
    assert not (notes / "sub" / "Tea.md").exists()
    assert (notes / "a.md").read_text(encoding="utf-8") == "[[Green tea]] ![[sub/Green tea#^x]] [[Green tea.md|t]] [[Teapot]]\n"


# -- what is amiss -----------------------------------------------------------------------------


def test_what_is_amiss_is_said_at_its_place_before_saving(read: Reading) -> None:
    editor, folder = read
    text = (
        "---\nid: redis-cache\nkind: polcy\nimportance: 7\n---\n数据库 😀 [[nowhere]] and [[Redis cache]] ![[pic.png]].\nkey AKIAIOSFODNN7EXAMPLQ\n"
    )
    uri = draft(editor, folder, text)
    said = {one["code"]: one for one in editor.diagnostics(uri, 3)}
    assert said.keys() == {"field", "link", "id", "secret"}
    assert said["link"]["range"] == {"start": {"line": 5, "character": 7}, "end": {"line": 5, "character": 18}}
    assert said["secret"]["range"]["start"]["line"] == 6 and said["secret"]["severity"] == 1
    assert "memory/learnings/redis.md:6" in said["id"]["message"]
    assert said["id"]["range"] == {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 15}}
    editor.type(uri, "---\nid: fine\nkind: fact\n---\n[[Redis cache]] is there.\n", 4)
    assert editor.diagnostics(uri, 4) == []


def test_it_says_what_lint_says(edit: Edit, folder: Path, run: Run) -> None:
    text = "---\nid: odd\nkind: fact\nlinks: [{to: gone, relation: knows}]\ncreated_at: soon\n---\nSee [[nowhere]].\n"
    file = folder / "memory/learnings/odd.md"
    file.write_text(text, encoding="utf-8")
    linted = json.loads(run("--vault", folder, "lint", "--json").stdout)
    editor = edit()
    uri = draft(editor, folder, "x")
    uri = editor.open(file)
    said = [one["message"] for one in editor.diagnostics(uri)]
    assert sorted(said) == sorted(problem["message"] for problem in linted["problems"] if problem["path"].endswith("odd.md"))
    assert len(said) == 4


def test_double_and_forgotten_texts_are_told_and_doubles_merged(edit: Edit, folder: Path, run: Run) -> None:
    editor = edit()
    before = notes_of(folder)
    text = entry("Staging runs Postgres 15, see [[Redis cache]].", id="twice", kind="fact", importance="0.9")
    uri = draft(editor, folder, text)
    (said,) = editor.diagnostics(uri, 3)
    assert said["code"] == "twin" and "Staging database" in said["message"]
    asked = {"textDocument": {"uri": uri}, "range": said["range"], "context": {"diagnostics": [said]}}
    action = next(one for one in editor.ask("textDocument/codeAction", asked) if one["title"].startswith("Merge"))
    assert "edit" not in action
    made = apply_workspace_edit(editor.ask("codeAction/resolve", action)["edit"], {uri: text})
    assert "{relation: supersedes, to: staging-db}" in (made[uri] or "")
    assert made[(folder / "memory/learnings/staging.md").as_uri()] is None
    moved = next(text for name, text in made.items() if "/archive/2026-11/" in name)
    assert "status: archived" in (moved or "") and "{relation: superseded_by, to: twice}" in (moved or "")
    assert notes_of(folder) == before
    run("--vault", folder, "forget", "staging-db")
    editor.type(uri, text + "\n", 4)
    editor.wait(lambda one: "forgotten before" in json.dumps(one.get("params", {})))


def test_a_rule_over_the_budget_and_broken_frontmatter_are_told(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, entry("word " * 600, id="long", kind="rule"))
    (said,) = editor.diagnostics(uri, 3)
    assert said["code"] == "budget" and "context.rule_tokens allows 500" in said["message"]
    editor.type(uri, "---\nid: [a\n---\nText.\n", 4)
    (said,) = editor.diagnostics(uri, 4)
    assert said["code"] == "block" and said["range"]["start"]["line"] in (1, 2)


def test_what_others_write_is_noticed(edit: Edit, folder: Path) -> None:
    editor = edit()
    uri = draft(editor, folder, "See [[brand new]].")
    assert [one["code"] for one in editor.diagnostics(uri, 3)] == ["link"]
    (folder / "memory/learnings/new.md").write_text(entry("Text.", id="brand-new", title="Brand new"), encoding="utf-8")
    assert editor.diagnostics(uri, 3) == []


def test_closing_a_note_takes_back_what_was_said(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "[[nowhere]]")
    assert editor.diagnostics(uri, 3)
    editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert editor.diagnostics(uri) == []


# -- what can be done --------------------------------------------------------------------------


def actions(editor: Editor, uri: str, word: str) -> dict[str, dict[str, Any]]:
    place = editor.at(uri, word)["position"]
    asked = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    return {one["title"]: one for one in editor.ask("textDocument/codeAction", asked)}


def test_an_entry_is_retired_in_the_unsaved_text(read: Reading) -> None:
    editor, folder = read
    text = (POSTGRES + "\nEdited 😀.\n").replace("\n", "\r\n")
    uri = draft(editor, folder, text, "memory/learnings/staging.md")
    offered = actions(editor, uri, "Edited")
    assert set(offered) == {"Retire this entry", "Promote this entry to the home"}
    resolved = editor.ask("codeAction/resolve", offered["Retire this entry"])
    made = apply_workspace_edit(resolved["edit"], {uri: text})
    assert made == {uri: text.replace("tags: [db, staging]\r\n", "tags: [db, staging]\r\nstatus: retired\r\n")}
    (change,) = resolved["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == 3
    assert len(change["edits"]) == 1


def test_a_proposal_is_approved_and_moves(read: Reading) -> None:
    editor, folder = read
    draft(editor, folder, "x")
    uri = editor.open(folder / "memory/review/pin.md")
    offered = actions(editor, uri, "pin-image")
    assert set(offered) == {"Approve this entry"}
    made = apply_workspace_edit(editor.ask("codeAction/resolve", offered["Approve this entry"])["edit"], {uri: RULE})
    assert made[uri] is None
    assert "status: active" in (made[(folder / "memory/rules/pin.md").as_uri()] or "")


def test_an_entry_of_a_job_is_promoted_to_the_project(read: Reading) -> None:
    editor, folder = read
    text = entry("Quote the shell variables.", id="quote", kind="rule")
    uri = draft(editor, folder, text, "memory/jobs/api/rules/quote.md")
    offered = actions(editor, uri, "Quote")
    made = apply_workspace_edit(editor.ask("codeAction/resolve", offered["Promote this entry to the project"])["edit"], {uri: text})
    ((address, promoted),) = made.items()
    assert "/memory/rules/" in address
    assert "promoted_from: session" in (promoted or "") and "Quote the shell variables." in (promoted or "")


def test_an_editor_that_cannot_delete_files_is_told_and_resolves_at_once(edit: Edit, folder: Path) -> None:
    editor = edit({"workspace": {"workspaceEdit": {"documentChanges": True}}})
    draft(editor, folder, "x")
    uri = editor.open(folder / "memory/review/pin.md")
    offered = actions(editor, uri, "pin-image")
    assert offered["Approve this entry"].get("edit") is None
    said = editor.wait(lambda one: one.get("method") == "window/showMessage")
    assert "command line" in said["params"]["message"]
    staging = editor.open(folder / "memory/learnings/staging.md")
    assert actions(editor, staging, "Staging runs")["Retire this entry"]["edit"]["documentChanges"]


def test_a_misspelt_word_is_corrected(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "---\nid: a\nkind: polcy # why\n---\nText.\n")
    (said,) = editor.diagnostics(uri, 3)
    asked = {"textDocument": {"uri": uri}, "range": said["range"], "context": {"diagnostics": [said], "only": ["quickfix"]}}
    (action,) = editor.ask("textDocument/codeAction", asked)
    (change,) = action["edit"]["changes"][uri]
    assert change == {"range": {"start": {"line": 2, "character": 6}, "end": {"line": 2, "character": 11}}, "newText": "policy"}


def test_it_writes_no_note_whatever_is_asked(edit: Edit, folder: Path) -> None:
    before = notes_of(folder)
    editor = edit()
    uri = draft(editor, folder, POSTGRES, "memory/learnings/staging.md")
    for action in actions(editor, uri, "Staging runs").values():
        editor.ask("codeAction/resolve", action)
    editor.tell("textDocument/didSave", {"textDocument": {"uri": uri}})
    editor.diagnostics(uri)
    assert editor.close() == 0
    assert notes_of(folder) == before


def test_notes_outside_of_the_vault_are_left_alone(read: Reading) -> None:
    editor, folder = read
    draft(editor, folder, "x")
    uri = editor.open(folder / "README.md")
    assert editor.complete(uri, "[[") == []
    assert editor.ask("textDocument/hover", editor.at(uri, "note")) is None


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff---\r\nid: x\r\n---\r\n",
        "\u2028\u2028[[",
        "\x00\x0c#",
        "---\n---\n---\n---",
        "---\n[[\n",
        "[[" * 200,
        "{" * 300,
        "---\nid: " + "[" * 200,
    ],
)
def test_odd_texts_break_nothing(read: Reading, text: str) -> None:
    editor, folder = read
    uri = draft(editor, folder, text)
    end = {"textDocument": {"uri": uri}, "position": {"line": 99, "character": 99}}
    editor.ask("textDocument/completion", end)
    editor.ask("textDocument/hover", end)
    editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    editor.diagnostics(uri, 3)


# -- places ------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_every_place_is_found_again(encoding: str) -> None:
    text = "a\r\n数据 😀👩‍👩‍👧 b\n\nc\u2028d\re"
    ruler = Ruler(text, encoding)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] != "\r\n":
            assert ruler.offset(ruler.position(offset)) == offset


def test_an_agreed_encoding_is_used(edit: Edit, folder: Path) -> None:
    editor = edit(CAPABILITIES | {"general": {"positionEncodings": ["utf-8"]}})
    uri = editor.open(folder / "memory/learnings/draft.md", "数 [[")
    for _ in range(200):
        items = (editor.ask("textDocument/completion", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 6}}) or {}).get("items")
        if items:
            break
        time.sleep(0.05)
    assert items
    assert items[0]["textEdit"]["range"]["start"] == {"line": 0, "character": 6}


def test_edits_are_small() -> None:
    before = "".join(f"line {number} 😀\r\n" for number in range(50))
    after = before.replace("line 7 ", "line seven ").replace("line 40 😀\r\n", "")
    assert len(text_edits(before, after)) == 2


def test_a_spot_in_frontmatter_knows_its_field() -> None:
    text = "---\nlinks:\n  - to: ab\n    relation: cd\nsources: [x, yz]\n---\n"
    for word, field in (("ab", "links.to"), ("cd", "links.relation"), ("yz", "sources")):
        spot = find_spot(text, text.index(word) + 2)
        assert (spot.kind, spot.field, spot.word) == ("value", field, word)
