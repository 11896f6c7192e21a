"""The page over real HTTP: what it writes, and what it leaves to an editor."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pages
import pytest
from conftest import write_files
from pages import FILES, Start, form_of, save_form
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.errors import ChangedOnDisk, SecretRefused, UsageError

start = pages.start


@pytest.mark.slow
def test_an_entry_is_edited_in_its_place_and_taken_back(start: Start) -> None:
    server = start(FILES)
    file = server.vault / "memory/learnings/dos.md"
    before = file.read_bytes()
    fields = form_of(server, "dos-1")
    saved = save_form(server, fields | {"text": fields["text"].replace("second", "second\nthird <b>")})
    assert saved.status == 303
    assert file.read_bytes() == before.replace(b"second\r\n", b"second\r\nthird <b>\r\n")
    page = server.ask(saved.headers["location"]).text
    assert "Saved." in page and "third &lt;b&gt;" in page
    assert "Edited by hand." in server.ask("/entry/changes?id=dos-1", hx_request="true").text
    found = re.search(r'name="run" value="(\w+)"', page)
    assert found
    assert (
        server.send("/undo", "/entry/edit?id=dos-1", run=found[1], back="/entry?id=dos-1").headers["location"]
        == "/entry?id=dos-1"
    )
    assert file.read_bytes() == before
    assert server.send("/undo", "/entry/edit?id=dos-1", run="ffffffff", back="//evil.example").status == 400


@pytest.mark.slow
def test_saving_what_was_not_changed_writes_nothing(start: Start) -> None:
    server = start(FILES)
    for wanted in ("dos-1", "flaky-1", "evil-1"):
        before = {file: file.read_bytes() for file in server.vault.rglob("*.md")}
        saved = save_form(server, form_of(server, wanted))
        assert saved.status == 303 and "said=same" in saved.headers["location"], saved.text
        assert {file: file.read_bytes() for file in server.vault.rglob("*.md")} == before


@pytest.mark.slow
def test_what_somebody_else_wrote_meanwhile_is_shown_and_not_overwritten(start: Start) -> None:
    server = start(FILES)
    file = server.vault / "memory/learnings/flaky.md"
    fields = form_of(server, "flaky-1")
    file.write_text(file.read_text().replace("Seed the generator.", "Seed it with THEIRS."))
    theirs = file.read_bytes()
    mine = fields | {"text": fields["text"].replace("Seed the generator.", "Seed it with MINE.")}
    answer = save_form(server, mine)
    assert (
        answer.status == 409
        and "MINE" in answer.text
        and "THEIRS" in answer.text
        and "Nothing was written" in answer.text
    )
    assert file.read_bytes() == theirs
    again = re.search(r'name="was" value="(\w+)"', answer.text)
    assert again and save_form(server, mine | {"was": again[1]}).status == 303
    assert b"MINE" in file.read_bytes()


def test_nothing_typed_is_lost_when_it_cannot_be_saved(start: Start) -> None:
    server = start(FILES)
    before = {file: file.read_bytes() for file in server.vault.rglob("*.md")}
    fields = form_of(server, "flaky-1")
    for change, words in (
        ({"text": fields["text"] + "\nAKIAIOSFODNN7EXAMPLQ\n"}, "AWS"),
        ({"text": fields["text"].replace("id: flaky-1", "id: other")}, "one entry"),
        ({"text": ""}, "one entry"),
    ):
        answer = save_form(server, fields | change)
        assert answer.status == 422 and words in answer.text, answer.text
        assert (
            change.get("text", fields["text"]).splitlines()[-1:] == []
            or change.get("text", fields["text"]).splitlines()[-1] in answer.text
        )
    assert {file: file.read_bytes() for file in server.vault.rglob("*.md")} == before
    server.end()
    assert save_form(start({}), fields | {"text": fields["text"] + "\nIt waited for a new server.\n"}).status == 303


def test_proposals_are_judged_and_a_judgment_taken_back(start: Start) -> None:
    server = start(FILES)
    queue = server.ask("/review").text
    assert "2 entries wait" in queue or "3 entries wait" in queue
    item = server.ask("/review/item?id=prop-1", hx_request="true").text
    assert 'class="removed"' in item and 'class="added"' in item and "Deploy on Fridays." in item
    assert "Deploy on Fridays." in server.ask("/review").text
    approved = server.send("/review/judge", "/review", id="prop-1", judgment="approve")
    assert approved.headers["location"].startswith("/review?said=approve&run=")
    assert not (server.vault / "memory/review/new.md").exists() and "id=prop-1" in server.ask("/?q=deploy+fridays").text
    rejected = server.send("/review/judge", "/review", id="prop-2", judgment="reject", reason="We do test.")
    assert b"status: rejected" in (server.vault / "memory/review/bad.md").read_bytes()
    run_ = rejected.headers["location"].rpartition("=")[2]
    server.send("/undo", "/review", run=run_, back="/review")
    assert (server.vault / "memory/review/bad.md").read_text() == FILES["memory/review/bad.md"]
    assert server.send("/review/judge", "/review", id="prop-2", judgment="maybe").status == 400


def test_a_proposal_is_edited_and_snoozed(start: Start) -> None:
    server = start(FILES)
    page = server.ask("/review/item?id=prop-1").text
    was = page.partition('name="was" value="')[2][:64]
    edited = {"id": "prop-1", "judgment": "edit", "text": "Deploy on Mondays.\r\nNot later.", "was": was}
    assert "said=edit" in server.send("/review/judge", "/review/item?id=prop-1", **edited).headers["location"]
    text = (server.vault / "memory/review/new.md").read_text()
    assert text.rstrip().endswith("---\nDeploy on Mondays.\nNot later.") and "status: proposed" in text
    assert server.send("/review/judge", "/review/item?id=prop-1", **edited).status == 409
    assert server.send("/review/judge", "/review", id="prop-1", judgment="snooze", days="x").status == 400
    snoozed = server.send("/review/judge", "/review", id="prop-1", judgment="snooze", days="7")
    assert "said=snooze" in snoozed.headers["location"]
    assert "id=prop-1" not in server.ask("/review").text


def test_an_entry_is_retired(start: Start) -> None:
    server = start(FILES)
    assert "said=retired" in server.send("/entry/forget", "/entry/edit?id=retry-1", id="retry-1").headers["location"]
    assert b"status: retired" in (server.vault / "memory/rules/retry.md").read_bytes()


def test_editing_leaves_the_rest_of_the_file(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    file = folder / "memory/learnings/two.md"
    first, second = entry("# One\n\nfirst", id="one"), entry("# Two\n\nsecond", id="two")
    write_files(folder, {"memory/learnings/two.md": f"{first}\n{second}"})
    kb = open_kb(folder)
    source = kb.source("one")
    file.write_text(file.read_text().replace("second", "changed meanwhile"))
    assert kb.edit("one", source.text.replace("first", "mine"), source.hash, dry_run=True).diff
    assert "first" in file.read_text()
    run_ = kb.edit("one", source.text.replace("first", "mine"), source.hash)
    assert "mine" in file.read_text() and "changed meanwhile" in file.read_text()
    with pytest.raises(ChangedOnDisk):
        kb.edit("one", source.text, source.hash)
    with pytest.raises(SecretRefused):
        kb.edit("two", kb.source("two").text + "\nAKIAIOSFODNN7EXAMPLQ\n", kb.source("two").hash)
    kb.undo(run_.run)
    assert "first" in file.read_text() and "changed meanwhile" in file.read_text()


def test_what_a_form_would_damage_is_left_to_an_editor(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    write_files(
        folder,
        {
            "memory/learnings/odd.md": b"---\nid: odd\n---\ncaf\xe9\n",
            "memory/learnings/mac.md": b"---\nid: mac\n---\na\rb\n",
        },
    )
    kb = open_kb(folder)
    for name in ("odd", "mac"):
        source = kb.source(name)
        assert source.uneditable
        with pytest.raises(UsageError, match="cannot be edited here"):
            kb.edit(name, "---\nid: odd\n---\nx\n", source.hash)


def test_changes_of_both_sides_are_put_together_for_a_look(start: Start) -> None:
    server = start({"memory/learnings/a.md": entry("# Tea\n\nOne.\n\nTwo.\n\nThree.\n", id="a", kind="fact")})
    file = server.vault / "memory/learnings/a.md"
    fields = form_of(server, "a")
    fields |= {"base": fields["text"], "text": fields["text"].replace("One.", "ONE.")}
    file.write_text(file.read_text().replace("Three.", "THREE."))
    answer = save_form(server, fields)
    assert answer.status == 409 and "Keep mine" in answer.text
    merged = re.findall(r'<textarea id="text"[^>]*>\n(.*?)</textarea>', answer.text, re.DOTALL)[0]
    assert "ONE." in merged and "THREE." in merged and "ONE." not in file.read_text()


def test_frontmatter_that_cannot_be_read_is_not_saved(start: Start) -> None:
    server = start(FILES)
    fields = form_of(server, "flaky-1")
    answer = save_form(server, fields | {"text": fields["text"].replace("kind: fact", "kind: [fact")})
    assert answer.status == 422 and "cannot be read" in answer.text and "[fact" in answer.text
    assert "[fact" not in (server.vault / "memory/learnings/flaky.md").read_text()


def test_a_new_note_is_made_renamed_and_previewed(start: Start) -> None:
    server = start(FILES)
    made = server.send("/new", "/new", title="Brewing tea", folder="memory/learnings", text="Boil, see [[Retry rule]].")
    file = server.vault / "memory/learnings/Brewing tea.md"
    assert made.status == 303 and file.read_text() == "# Brewing tea\n\nBoil, see [[Retry rule]].\n"
    assert "there already" in server.send("/new", "/new", title="Brewing tea", folder="memory/learnings", text="x").text
    assert server.send("/new", "/new", title="x", folder="../..", text="x").status == 422
    assert server.send("/new", "/new", title="x", folder=".memory-kb", text="x").status == 422
    seen = server.send(
        "/entry/preview", "/new", text="---\nid: x\n---\n# A\n\n**b** <script>", path="memory/rules/x.md"
    ).text
    assert "<strong>b</strong>" in seen and "<script>" not in seen and "id: x" not in seen
    renamed = server.send("/entry/rename", "/new", id="memory/learnings/Brewing tea.md", new="Tea", way="file")
    assert renamed.status == 303 and not file.exists() and (file.parent / "Tea.md").exists()
    assert '"Retry rule"' in server.ask("/entry/names?word=retr").text
    assert "testing" in server.ask("/entry/names?word=test&tag=1").text


def test_properties_are_a_form_and_change_nothing_else(start: Start) -> None:
    text = "---\nid: a # mine\ntags: [x, y]\nkind: fact\npinned: true\nlinks: [{to: b}]\n---\n# A\n\nText.\n"
    server = start({"memory/learnings/a.md": text, "memory/learnings/plain.md": "# Plain\n"})
    page = server.ask("/entry/edit?id=a").text
    assert 'name="p:tags" value="x, y"' in page and 'name="p:links"' not in page and 'name="p:id"' not in page
    was = re.findall(r'name="was" value="(\w+)"', page)[0]
    head, _, body = text.partition("# A\n")
    fields = {"id": "a", "was": was, "head": head, "text": f"# A\n{body}", "o:tags": "x, y", "o:pinned": "yes"}
    saved = server.send(
        "/entry/edit", "/new", **fields, **{"p:tags": "x, z", "p:pinned": "no", "p-name": "owner", "p-value": "me"}
    )
    assert "said=saved" in saved.headers["location"], saved.text
    after = text.replace("[x, y]", "[x, z]").replace("true", "false").replace("{to: b}]\n", "{to: b}]\nowner: me\n")
    assert (server.vault / "memory/learnings/a.md").read_text() == after
    bad = server.send("/entry/edit", "/new", **fields, **{"p-name": "tags: [", "p-value": "x"})
    assert bad.status in (409, 422) and "Text." in bad.text
    page = server.ask("/entry/edit?id=memory/learnings/plain.md").text
    was = re.findall(r'name="was" value="(\w+)"', page)[0]
    fields = {
        "id": "memory/learnings/plain.md",
        "was": was,
        "head": "",
        "text": "# Plain\n",
        "p-name": "tags",
        "p-value": "a, #b",
    }
    assert server.send("/entry/edit", "/new", **fields).status == 303
    assert (server.vault / "memory/learnings/plain.md").read_text() == "---\ntags: [a, b]\n---\n# Plain\n"


def test_what_is_to_be_fixed_is_said_before_it_is_saved(start: Start) -> None:
    server = start(FILES)
    said = server.send(
        "/entry/remarks",
        "/new",
        head="---\nid: n\nkind: nonsense\n---\n",
        text="See [[Nobody]].",
        path="memory/learnings/n.md",
    ).text
    assert "nonsense" in said and "line 5" in said and "Nobody" in said
