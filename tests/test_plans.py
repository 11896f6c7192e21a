"""Plans: what their changes make of files, what is refused, and that no byte beside them changes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from planning import ODD, ONE, Scene, scenes

from memory_kb.markdown.document import parse_document
from memory_kb.store.changes import Change, create_file, move, remove, replace_entry, set_body, set_fields
from memory_kb.store.file_edits import NoteText
from memory_kb.store.render_changes import compose, paths_of
from memory_kb.text import decode, hash_of

MANY = NoteText("memory/many.md", ODD)
SINGLE = NoteText("memory/one.md", ONE)
FILES: dict[str, bytes | None] = {MANY.path: ODD, SINGLE.path: ONE}


def outcome(*changes: Change) -> dict[str, bytes | None]:
    """Return what a plan makes of the two files, those that change."""
    made = compose(changes, FILES | {path: None for path in paths_of(changes) if path not in FILES})
    assert made.conflicts == ()
    return {file.path: file.after for file in made.files}


def test_several_changes_to_one_file_are_one_write() -> None:
    after = outcome(
        set_fields(MANY, "a", {"status": "retired"}, "Over."),
        set_fields(MANY, "c", {"importance": 0.9}, "Used."),
        set_body(MANY, "b", "New.\nTwo.", "Wrong."),
    )
    text = (
        ODD.decode()
        .replace("active   # why", "retired   # why")
        .replace("id: 'c'\r\n", "id: 'c'\r\nimportance: 0.9\r\n")
        .replace("Beta.", "New.\r\nTwo.")
    )
    assert after == {MANY.path: text.encode()}


def test_a_new_entry_is_a_new_file() -> None:
    assert outcome(create_file("memory/rules/r.md", "New.\n", "Seen.")) == {"memory/rules/r.md": b"New.\n"}


def test_an_entry_that_has_its_file_to_itself_moves_with_all_of_it() -> None:
    assert outcome(move(SINGLE, "memory/archive/2026-11/one.md", "Old.", "one")) == {
        SINGLE.path: None,
        "memory/archive/2026-11/one.md": ONE,
    }


def test_an_entry_of_many_is_taken_out_into_a_file_of_its_own() -> None:
    after = outcome(move(MANY, "memory/archive/b.md", "Old.", "b"))
    piece = "---\r\nid: b\r\nunknown: {k:   v}\r\n---\r\nBeta.\r\n\r\n"
    assert after == {MANY.path: ODD.decode().replace(piece, "").encode(), "memory/archive/b.md": piece.encode()[:-2]}


def test_a_changed_entry_moves_as_it_is_changed() -> None:
    after = outcome(
        set_fields(SINGLE, "one", {"status": "archived"}, "Old."), move(SINGLE, "memory/archive/one.md", "Old.", "one")
    )
    assert after == {SINGLE.path: None, "memory/archive/one.md": ONE.replace(b"active", b"archived")}


def test_removing_the_only_entry_removes_the_file() -> None:
    assert outcome(remove(SINGLE, "Empty.", "one"), remove(MANY, "Gone.", "a")) == {
        SINGLE.path: None,
        MANY.path: b"\xef\xbb\xbf" + ODD[ODD.index(b"---\r\nid: b") :],
    }


def test_an_entry_without_an_id_gets_one_when_it_moves_or_its_text_changes() -> None:
    plain = NoteText("memory/plain.md", b"Just text.\r\n")
    (entry,) = parse_document(plain.text, plain.path).entries
    block = f"---\r\nid: {entry.id}\r\nkind: fact\r\n---\r\n".encode()
    moved = compose([move(plain, "memory/b.md", "x", entry.id)], {plain.path: plain.data, "memory/b.md": None})
    assert [file.after for file in moved.files] == [None, block + plain.data]
    edited = compose([set_body(plain, entry.id, "Other.", "x")], {plain.path: plain.data})
    assert [file.after for file in edited.files] == [block + b"Other.\r\n"]


def test_a_value_that_is_there_already_stays_as_it_is_written() -> None:
    note = NoteText("a.md", b"---\nid: x\nimportance: 0.80\ntags: [ a,  b ]\nflag: true\n---\n")
    plan = [set_fields(note, "x", {"importance": 0.8, "tags": ["a", "b"]}, "x")]
    assert compose(plan, {"a.md": note.data}).files == ()
    assert compose([set_fields(note, "x", {"flag": 1}, "x")], {"a.md": note.data}).files[0].after == note.data.replace(
        b"true", b"1"
    )


def test_text_that_would_open_another_entry_does_not() -> None:
    (file,) = compose([set_body(SINGLE, "one", "A.\n\n---\nid: evil\n---\nB.", "x")], {SINGLE.path: ONE}).files
    assert file.after == ONE.replace(b"One.", b"A.\n\n ---\nid: evil\n ---\nB.")


REFUSED = [
    pytest.param(
        [Change("memory/one.md", set_fields(SINGLE, "one", {"a": 1}, "x").action, "x", "one", hash_of(b"else"))],
        "changed by somebody",
        id="changed",
    ),
    pytest.param([set_fields(NoteText("memory/gone.md", ONE), "one", {"a": 1}, "x")], "gone.md is gone", id="gone"),
    pytest.param([create_file("memory/one.md", "x", "x")], "is there already", id="taken"),
    pytest.param([move(MANY, "memory/one.md", "x", "a")], "is there already", id="target-taken"),
    pytest.param([set_fields(SINGLE, "two", {"a": 1}, "x")], "no entries with the id two", id="no-such-entry"),
    pytest.param([replace_entry(SINGLE, "one", "---\nid: other\n---\n", "x")], "no longer be read", id="other-id"),
    pytest.param(
        [create_file("n.md", "1", "x"), create_file("n.md", "2", "x")], "is there already", id="two-new-of-one-name"
    ),
]


@pytest.mark.parametrize(("plan", "message"), REFUSED)
def test_what_cannot_be_done_is_a_conflict_and_the_rest_goes_on(plan: Sequence[Change], message: str) -> None:
    good = set_fields(MANY, "c", {"importance": 0.9}, "Used.")
    made = compose([good, *plan], FILES | {"memory/gone.md": None, "n.md": None})
    assert message in made.conflicts[0].message
    assert MANY.path in [file.path for file in made.files]
    assert SINGLE.path not in [file.path for file in made.files]


def test_changes_that_belong_together_are_refused_together() -> None:
    lost = set_fields(SINGLE, "two", {"a": 1}, "x")._replace(together="merge")
    kept = set_fields(MANY, "a", {"importance": 0.9}, "x")
    plan = [
        set_fields(MANY, "b", {"importance": 0.1}, "x")._replace(together="merge"),
        kept,
        lost,
        set_body(MANY, "b", "New.", "x"),
    ]
    made = compose(plan, FILES)
    assert [(one.path, one.entry_id, one.action) for one in made.decisions] == [(kept.path, kept.entry_id, "set")]
    assert len(made.conflicts) == 3


@given(scenes())
def test_entries_that_no_change_names_keep_every_byte(scene: Scene) -> None:
    made = compose(scene.plan, {path: scene.files.get(path) for path in (*scene.files, *paths_of(scene.plan))})
    assert len(made.conflicts) + len(made.decisions) <= len(scene.plan)
    for file in made.files:
        named = {one.entry_id for one in made.decisions if file.path in (one.path, one.to)}
        if file.before is None or file.after is None or None in named:
            continue
        old, new = (
            [(entry.id, decode(data)[slice(*entry.span)]) for entry in parse_document(decode(data), file.path).entries]
            for data in (file.before, file.after)
        )
        assert [piece for piece in old if piece[0] not in named] == [piece for piece in new if piece[0] not in named]
