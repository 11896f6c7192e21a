"""What links call a note, and what becomes of them when it is renamed: other readers go by the names of files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Files, Run, write_files
from lsp_client import Editor, apply_workspace_edit
from support import notes_of

from memory_kb import KnowledgeBase

Write = Callable[[Files], Path]

FILES = {
    "Deploy.md": "---\naliases: [Ship it, DG] # mine\n---\n# How we deploy\n\nFirst [[Tea#Steps|brew]], ![[Tea#^b1]].\n",
    "sub/Tea.md": "# Tea\n\n## Steps\n\nBoil. ^b1\n",
    "a/Twin.md": "One.\n",
    "b/Twin.md": "Two.\n",
    "Misled.md": "# Tea\n\nA note whose heading is what another file is called.\n",
    "Links.md": "[[Tea]] [[sub/Tea.md]] [[How we deploy]] [[Deploy|x]] [[DG]] [[dg#Now]] [[b/Twin]]\n",
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_files(tmp_path / "notes", FILES)


@pytest.fixture
def editor(notes: Path, home: Path) -> Iterator[Editor]:
    one = Editor(home, "--vault", notes, cwd=notes)
    one.start()
    yield one
    one.kill()


def draft(editor: Editor, notes: Path, text: str) -> str:
    uri = editor.open(notes / "New.md", "[[Depl")
    editor.wait_until_known(uri, "[[Depl", "How we deploy")
    editor.type(uri, text, 3)
    return uri


def read(notes: Path, name: str) -> str:
    return (notes / name).read_text(encoding="utf-8")


def test_a_new_title_leaves_links_that_name_the_file(run: Run, notes: Path) -> None:
    before = notes_of(notes)
    assert run("--vault", notes, "rename", "sub/Tea.md", "Brewing", "--title").returncode == 0
    assert read(notes, "sub/Tea.md") == FILES["sub/Tea.md"].replace("# Tea", "# Brewing")
    assert {name for name, data in notes_of(notes).items() if data != before[name]} == {"notes/sub/Tea.md"}


def test_a_new_title_takes_links_by_the_title_along(run: Run, notes: Path) -> None:
    assert run("--vault", notes, "rename", "Deploy.md", "Shipping", "--title").returncode == 0
    assert read(notes, "Links.md") == FILES["Links.md"].replace("[[How we deploy]]", "[[Shipping]]")


FIELDS = """---
up: "[[How we deploy]]"
related:
  - "[[How we deploy#First|this]]" # why
  - [[How we deploy]]
see: '[[Deploy]], not [[Tea]]'
---
Text.
"""


@pytest.mark.parametrize(
    ("way", "new", "fields"),
    [
        ("--title", "Shipping", FIELDS.replace("How we deploy", "Shipping")),
        ("--file", "Shipping", FIELDS.replace("[[Deploy]]", "[[Shipping]]")),
    ],
    ids=["title", "file"],
)
def test_links_in_fields_are_shown_and_follow_a_new_name(
    run: Run, notes: Path, way: str, new: str, fields: str
) -> None:
    (notes / "Field.md").write_text(FIELDS)
    linked = json.loads(run("--vault", notes, "links", "Deploy.md", "--json").stdout)
    assert "Field.md" in {one["path"] for one in linked["incoming"]}
    assert run("--vault", notes, "rename", "Deploy.md", new, way).returncode == 0
    assert read(notes, "Field.md") == fields
    assert run("--vault", notes, "undo").returncode == 0
    assert read(notes, "Field.md") == FIELDS


def test_a_link_in_fields_is_shown_whatever_its_case(run: Run, notes: Path) -> None:
    (notes / "Äpfel.md").write_text("Round.\n")
    (notes / "Field.md").write_text('---\nup: "[[äpfel]]"\n---\nText.\n')
    linked = json.loads(run("--vault", notes, "links", "Äpfel.md", "--json").stdout)
    assert [one["path"] for one in linked["incoming"]] == ["Field.md"]


def test_lists_in_a_list_are_no_links(run: Run, notes: Path) -> None:
    (notes / "Field.md").write_text('---\nrows: [["Deploy", "x"], ["y", "z"]]\n---\nText.\n')
    assert json.loads(run("--vault", notes, "links", "Field.md", "--json").stdout)["outgoing"] == []


def test_an_open_link_in_a_long_field_is_passed_over_at_once(
    open_kb: Callable[..., KnowledgeBase], notes: Path
) -> None:
    (notes / "Field.md").write_text(f'---\nsaid: "[[{"x " * 30_000}"\nup: "[[Tea]]"\n---\nText.\n')
    started = time.process_time()
    assert [one.target for one in open_kb(notes).links("Field.md").outgoing] == ["Tea"]
    assert time.process_time() - started < 3


def test_links_without_quotes_that_a_new_name_would_break_stay_as_they_are(run: Run, notes: Path) -> None:
    (notes / "Field.md").write_text(FIELDS)
    assert run("--vault", notes, "rename", "Deploy.md", "Why, not", "--title").returncode == 0
    renamed = FIELDS.replace('"[[How we deploy', '"[[Why, not')
    assert read(notes, "Field.md") == renamed and "  - [[How we deploy]]\n" in renamed


@pytest.mark.parametrize(
    ("before", "heading", "renamed"),
    [
        ("<!--\n# From a template\n-->\n\n", "# Sidecars", "# Helpers"),
        ("[![build](ci.svg)](ci)\n<p align=center>\n\n", "Sidecars\n===", "Helpers\n==="),
    ],
)
def test_a_heading_below_comments_and_badges_is_the_title(
    run: Run, notes: Path, before: str, heading: str, renamed: str
) -> None:
    note = notes / "README.md"
    note.write_text(f"{before}{heading}\n\nStarted before the rest.\n")
    listed = run("--vault", notes, "search", "started before the rest", "--json")
    assert json.loads(listed.stdout)["hits"][0]["title"] == "Sidecars"
    assert run("--vault", notes, "rename", "README.md", "Helpers", "--title").returncode == 0
    assert note.read_text() == f"{before}{renamed}\n\nStarted before the rest.\n"


def test_a_new_title_is_in_the_heading_and_in_the_links_to_it_in_its_own_note(run: Run, notes: Path) -> None:
    note = notes / "Sidecars.md"
    note.write_text("<!-- Sidecars -->\n# Sidecars\n\nSee [[#Sidecars]].\n")
    assert run("--vault", notes, "rename", "Sidecars.md", "Helpers", "--title").returncode == 0
    assert note.read_text() == "<!-- Sidecars -->\n# Helpers\n\nSee [[#Helpers]].\n"


@pytest.mark.parametrize(
    ("heading", "renamed"),
    [
        ("# [2026-01-02] Side  cars #", "# [2026-01-02] Helpers #"),
        ("# Sidecars [2026-01-02]", "# Helpers [2026-01-02]"),
        ("# [2026-01-02]", "# Helpers"),
    ],
)
def test_a_day_in_the_heading_stays_beside_a_new_title(run: Run, notes: Path, heading: str, renamed: str) -> None:
    note = notes / "Sidecars.md"
    note.write_text(f"{heading}\n\nThey help.\n")
    assert run("--vault", notes, "rename", "Sidecars.md", "Helpers", "--title").returncode == 0
    assert note.read_text() == f"{renamed}\n\nThey help.\n"


def test_a_new_file_name_takes_links_by_the_file_along_and_leaves_the_title(run: Run, notes: Path) -> None:
    assert run("--vault", notes, "rename", "sub/Tea.md", "Chai", "--file").returncode == 0
    assert read(notes, "sub/Chai.md") == FILES["sub/Tea.md"]
    assert read(notes, "Links.md") == FILES["Links.md"].replace("[[Tea]] [[sub/Tea.md]]", "[[Chai]] [[sub/Chai.md]]")
    assert "![[Chai#^b1]]" in read(notes, "Deploy.md")
    assert run("--vault", notes, "rename", "Deploy.md", "x", "--file", "--title").returncode == 2


def test_links_in_quotes_that_a_new_name_would_break_stay_as_they_are(run: Run, notes: Path) -> None:
    note = notes / "Props.md"
    note.write_text("---\nup: '[[Tea]]'\nat: \"é [[Tea#Bags]]\"  # why\n---\nSee [[Tea]].\n")
    (notes / "sub/Tea.md").write_text("# Tea\n\n## Bags\n")
    assert run("--vault", notes, "rename", "sub/Tea.md", "Bob's", "--file").returncode == 0
    assert note.read_text() == "---\nup: '[[Tea]]'\nat: \"é [[Bob's#Bags]]\"  # why\n---\nSee [[Bob's]].\n"


def test_a_note_moves_whatever_the_frontmatter_around_it(run: Run, notes: Path) -> None:
    (notes / "Broken.md").write_text("---\ntags: [a\n---\nSee [[Tea]].\n")
    assert run("--vault", notes, "rename", "sub/Tea.md", "Chai", "--file").returncode == 0
    assert run("--vault", notes, "rename", "Broken.md", "Mended", "--file").returncode == 0
    assert read(notes, "Mended.md") == "---\ntags: [a\n---\nSee [[Chai]].\n"


def test_quotes_in_frontmatter_keep_their_signs_and_lines(run: Run, notes: Path) -> None:
    note = notes / "Props.md"
    written = "---\nup: \"🍵 [[Tea]]\\t and\n  more\"\nat: 'one\n\n  [[Tea]]'\n---\nSee [[Tea]].\n"
    note.write_text(written)
    assert run("--vault", notes, "rename", "sub/Tea.md", "Bob", "--file").returncode == 0
    assert note.read_text() == written.replace("Tea", "Bob")


def test_a_new_id_leaves_links_by_a_file_of_that_name_and_changes_typed_ones(run: Run, vault: Write) -> None:
    folder = vault(
        {
            "memory/rules/pin.md": "---\nid: pin\nkind: rule\n---\nPin it.\n",
            "memory/rules/b.md": "---\nid: b\nlinks: [{to: pin, relation: related_to}]\n---\nSee [[pin]].\n",
        }
    )
    assert run("--vault", folder, "rename", "pin", "pin-image").returncode == 0
    assert (
        read(folder, "memory/rules/b.md")
        == "---\nid: b\nlinks: [{to: pin-image, relation: related_to}]\n---\nSee [[pin]].\n"
    )
    assert run("--vault", folder, "lint").stderr == "Nothing to fix.\n"


LED = {
    "Tea": "sub/Tea.md", "sub/Tea": "sub/Tea.md", "sub/tea.md": "sub/Tea.md", "Misled": "Misled.md", "dg": "Deploy.md",
    "how we deploy": "Deploy.md", "a/Twin": "a/Twin.md", "b/Twin": "b/Twin.md",
}  # fmt: skip


def test_links_go_by_paths_and_file_names_before_titles(run: Run, notes: Path) -> None:
    for link, path in LED.items():
        (notes / "Asks.md").write_text(f"See [[{link}]].\n", encoding="utf-8")
        told = json.loads(run("--vault", notes, "links", "Asks.md", "--json").stdout)
        assert [one["path"] for one in told["outgoing"]] == [path], link


COMPLETED = [
    ("[[Dep", "Deploy", "Deploy]]"),
    ("[[Dep", "How we deploy", "Deploy|How we deploy]]"),
    ("[[ship", "Ship it", "Deploy|Ship it]]"),
    ("![[DG", "DG", "Deploy]]"),
    ("[[twin", "Twin", "b/Twin]]"),
    ("[[sub/", "Tea", "Tea]]"),
    ("[[te", "Tea", "Tea]]"),
]


def test_any_name_is_completed_to_one_that_every_reader_follows(editor: Editor, notes: Path) -> None:
    uri = draft(editor, notes, "See ")
    for version, (typed, label, written) in enumerate(COMPLETED, 4):
        editor.type(uri, f"See {typed}", version)
        items = editor.complete(uri, typed)
        assert (label, written) in [(item["label"], item["textEdit"]["newText"]) for item in items], typed


def test_completion_in_a_memory_vault_names_the_file(run: Run, home: Path, vault: Write) -> None:
    folder = vault(
        {
            "memory/MEMORY.md": "---\nid: second\nkind: fact\n---\nOne.\n\n---\nid: deep\nkind: fact\ntitle: 'Deep: down'\n---\nTwo.\n"
        }
    )
    run("--vault", folder, "learn", "Wait for the event.", "--title", "Flaky tests: wait")
    (made,) = (folder / "memory/learnings").glob("*.md")
    editor = Editor(home, "--vault", folder, cwd=folder)
    editor.start()
    uri = editor.open(folder / "memory/learnings/new.md", "[[flaky [[deep")
    editor.wait_until_known(uri, "[[flaky", "Flaky tests: wait")
    assert [item["textEdit"]["newText"] for item in editor.complete(uri, "[[flaky")] == [
        f"{made.stem}|Flaky tests: wait]]"
    ]
    assert [item["textEdit"]["newText"] for item in editor.complete(uri, "[[deep")] == ["deep|Deep: down]]"]
    editor.kill()


def test_a_link_is_renamed_by_the_name_it_uses(editor: Editor, notes: Path) -> None:
    uri = draft(editor, notes, "[[sub/Tea#Steps]] [[DG]] [[How we deploy]]")
    assert editor.ask("textDocument/prepareRename", editor.at(uri, "sub/T"))["placeholder"] == "Tea"
    texts = {uri: editor.text(uri)}

    def renamed(word: str, name: str) -> dict[str, str | None]:
        made = apply_workspace_edit(editor.ask("textDocument/rename", editor.at(uri, word) | {"newName": name}), texts)
        return {address.rpartition("/")[2]: text for address, text in made.items()}

    file = renamed("sub/T", "Chai")
    assert (file["Tea.md"], file["Chai.md"]) == (None, FILES["sub/Tea.md"])
    assert file["New.md"] == "[[sub/Chai#Steps]] [[DG]] [[How we deploy]]"
    assert editor.ask("textDocument/prepareRename", editor.at(uri, "[[D")) is None
    title = renamed("[[How", "Shipping")
    assert title["Deploy.md"] == FILES["Deploy.md"].replace("# How we deploy", "# Shipping")
    assert title["New.md"] == "[[sub/Tea#Steps]] [[DG]] [[Shipping]]"


def test_an_entry_is_named_by_its_title_an_alias_or_its_file(run: Run, notes: Path) -> None:
    shown = {name: run("--vault", notes, "show", name, "--json") for name in ("How we deploy", "ship it", "Deploy")}
    assert {json.loads(one.stdout)["path"] for one in shown.values()} == {"Deploy.md"}
    rivals = run("--vault", notes, "links", "Twin")
    assert (rivals.returncode, "a/Twin.md:1, b/Twin.md:1" in rivals.stderr) == (2, True)


def test_an_entry_takes_the_place_of_another(run: Run, tmp_path: Path) -> None:
    vault = write_files(
        tmp_path, {"memory/learnings/a.md": "---\nid: old-port\n---\nThe staging API listens on port 8000.\n"}
    )
    run("--vault", vault, "index")
    made = run("--vault", vault, "learn", "The staging API listens on port 9000.", "--json")
    assert json.loads(made.stdout)["near"][0]["id"] == "old-port"
    assert run("--vault", vault, "supersede", "old-port", json.loads(made.stdout)["id"]).returncode == 0
    assert "superseded_by" in read(vault, "memory/learnings/a.md")
    newest = run("--vault", vault, "learn", "Staging moved to the cluster.", "--supersedes", "old-port", "--json")
    links = run("--vault", vault, "links", json.loads(newest.stdout)["id"], "--json")
    assert {(one["relation"], one["id"]) for one in json.loads(links.stdout)["outgoing"]} == {
        ("supersedes", "old-port")
    }
    assert run("--vault", vault, "supersede", "old-port", "old-port").returncode == 2


def test_lists_are_cut_and_sorted_and_families_alone_list(run: Run, notes: Path) -> None:
    listed = run("--vault", notes, "list", "--sort", "title", "--limit", "2", "--json")
    assert [one["title"] for one in json.loads(listed.stdout)["entries"]] == ["How we deploy", "Links"]
    for family in ("rules", "diary", "skills", "session", "ledger", "handoff"):
        assert run("--vault", notes, family, "--json").stdout.startswith("{"), family
    assert run("--vault", notes, "rename", "Deploy.md", "two words").returncode == 2
