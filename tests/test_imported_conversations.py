"""What exports of conversations and memories become: of Claude, of ChatGPT, of mem0, whole or broken off."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import importing
import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import CHATGPT, CLAUDE, MEM0, counts
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput
from memory_kb.importers import chat_exports, notes
from memory_kb.store.session_log import SessionFiles

if TYPE_CHECKING:
    from conftest import Run

source = importing.source

Open = Callable[..., KnowledgeBase]


@pytest.fixture
def kb(open_kb: Open, folder: Path) -> KnowledgeBase:
    return open_kb(folder)


def test_only_what_people_state_is_kept_of_conversations(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source({"conversations.json": CLAUDE}))
    assert counts(report) == {("statement", "created"): 1}
    (view,) = kb.list()
    assert "Always use zod for validation." in (kb.show(view.id).text or "")
    assert (view.kind, view.metadata["session_id"], view.metadata["created_at"][:10]) == (
        "policy",
        "claude-11111111-aaaa",
        "2026-01-05",
    )
    assert view.metadata["imported_from"] == "claude-export: Validation"
    assert {(one.what, one.number) for one in report.left_out} == {("message", 1), ("conversation", 1)}


def test_of_a_branched_conversation_the_shown_branch_counts(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source({"conversations.json": CHATGPT}))
    (piece,) = report.pieces
    assert "I prefer double quotes in Python code." in (kb.show(piece.id).text or "")


@pytest.mark.parametrize("last", [None, "gone"])
def test_a_conversation_whose_last_message_is_not_named_is_read_by_time(
    kb: KnowledgeBase, source: Callable[..., Path], last: str | None
) -> None:
    report = kb.import_(source({"conversations.json": [CHATGPT[0] | {"current_node": last}]}))
    assert any("I prefer double quotes in Python code." in (kb.show(one.id).text or "") for one in report.pieces)


@pytest.mark.parametrize(
    ("wanted", "export", "session", "events"),
    [("claude-export", CLAUDE, "claude-11111111-aaaa", 3), ("chatgpt-export", CHATGPT, "chatgpt-c-1", 4)],
)
def test_conversations_become_sessions_once(
    kb: KnowledgeBase, folder: Path, source: Callable[..., Path], wanted: str, export: Any, session: str, events: int
) -> None:
    origin = source({"conversations.json": export})
    assert kb.import_(origin, as_sessions=True, dry_run=True).sessions == 1
    assert SessionFiles(kb.vault.machine).ids() == []
    report = kb.import_(origin, as_sessions=True)
    assert (report.format, report.sessions, report.events) == (wanted, 1, events + 1)
    logged = [event for event in SessionFiles(kb.vault.machine).read(session) if event.type == "message"]
    assert len(logged) == events and logged[0].role == "user" and logged[0].ts.startswith("2026-01-0")
    assert notes_of(folder) == {}
    again = kb.import_(origin, as_sessions=True)
    assert (again.sessions, again.events) == (0, 0)
    assert len(list(SessionFiles(kb.vault.machine).read(session))) == events + 1


def test_the_archive_of_an_export_is_read_as_it_is(kb: KnowledgeBase, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("data-2026/users.json", "[]")
        archive.writestr("data-2026/conversations.json", json.dumps(CLAUDE))
    assert counts(kb.import_(tmp_path / "export.zip")) == {("statement", "created"): 1}
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "")
    with pytest.raises(UnreadableInput, match=r"holds no conversations\.json"):
        kb.import_(tmp_path / "other.zip")


def test_a_broken_export_is_refused_with_its_place(run: Run, folder: Path, source: Callable[..., Path]) -> None:
    origin = source({"conversations.json": json.dumps(CLAUDE)[:-1] + ", {oops]"})
    done = run("--vault", folder, "import", origin / "conversations.json")
    assert (done.returncode, done.stdout) == (4, "")
    assert "not valid JSON" in done.stderr
    assert "line 1" in done.stderr


def test_memories_of_mem0_keep_their_owners_and_days(kb: KnowledgeBase, source: Callable[..., Path]) -> None:
    report = kb.import_(source({"m.json": MEM0}) / "m.json")
    assert [(one.what, one.why) for one in report.left_out] == [("memory", "it is empty")]
    made = {view.kind: view for view in kb.list()}
    assert made["fact"].tags == ("work", "professional", "dev")
    assert made["fact"].metadata["created_at"].startswith("2024-09-03")
    assert made["preference"].metadata["imported_from"] == "mem0: a2, user_id arjun"


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["user", "Always use tabs.", "2026-01-01", "m1", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "mapping",
                    "chat_messages",
                    "message",
                    "author",
                    "role",
                    "content",
                    "parts",
                    "text",
                    "sender",
                    "uuid",
                    "id",
                    "parent",
                    "create_time",
                    "memory",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(value=_JSON)
def test_no_export_breaks_a_reader(value: Any) -> None:
    notes.read_mem0(value, "m.json", 1)
    for record in (
        value,
        {"uuid": "u", "chat_messages": [value]},
        {"id": "u", "mapping": {"a": value, "b": {"message": value}}, "current_node": "a"},
    ):
        if chat_exports.kind_of(record):
            talk = chat_exports.read_export(record)
            assert talk is None or talk.events
