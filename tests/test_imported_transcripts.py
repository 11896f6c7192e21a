"""Transcripts come in once, whole, and whatever else stands in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcribing import CLAUDE, CODEX, claude, replay, short, write

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.sessions import TRANSCRIPT_FORMATS
from memory_kb.sessions.importing import READERS

if TYPE_CHECKING:
    from conftest import Run

Open = Callable[..., KnowledgeBase]
Record = dict[str, Any]


@pytest.mark.parametrize(("name", "records"), [("claude", CLAUDE), ("codex", CODEX)])
def test_importing_twice_adds_nothing(
    name: str, records: list[Record], open_kb: Open, folder: Path, tmp_path: Path
) -> None:
    kb = open_kb(folder)
    file = write(tmp_path / f"{name}.jsonl", records[:6])
    kb.sessions.import_(file)
    for _ in range(2):
        write(file, records)
        last = kb.sessions.import_(file)
    assert sum(report.added for report in last) == 0
    (tmp_path / "once").mkdir()
    once = open_kb(tmp_path / "once")
    for report in once.sessions.import_(file):
        assert sorted(map(short, replay(kb, report.session)), key=str) == sorted(
            map(short, replay(once, report.session)), key=str
        )


def test_a_resumed_session_brings_its_copies_once(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    kb.sessions.import_(write(tmp_path / "first.jsonl", CLAUDE[2:6]))
    (report,) = kb.sessions.import_(write(tmp_path / "second.jsonl", [*CLAUDE[3:6], claude("user", "Go on.", "u99")]))
    assert (report.added, report.known) == (1, 6)


def test_the_same_words_twice_are_two_events(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    chat = tmp_path / "chat.md"
    chat.write_text("User: go on\nAssistant: yes\nUser: go on\n", encoding="utf-8")
    for added in (4, 0):
        (report,) = kb.sessions.import_(chat)
        assert report.added == added
    chat.write_text(chat.read_text(encoding="utf-8") + "Assistant: yes\n", encoding="utf-8")
    (report,) = kb.sessions.import_(chat.rename(tmp_path / "moved.md"))
    assert (report.added, report.known) == (1, 4)


def test_credentials_stay_outside(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    token = "ghp_" + "aB3dE6gH9j" * 4
    (report,) = kb.sessions.import_(write(tmp_path / "c.jsonl", [claude("user", f"Use {token}.", "u1")]))
    assert report.redacted == ("a GitHub token",)
    assert token not in (kb.vault.machine / "sessions" / "c1.jsonl").read_text(encoding="utf-8")


def test_what_cannot_be_read_is_reported_and_passed_over(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    file = tmp_path / "c.jsonl"
    whole = [json.dumps(claude("user", f"Turn {n}.", f"u{n}")).encode() for n in range(2)]
    file.write_bytes(whole[0] + b"\n{torn\n\xff\xfe\n\n[1]\n" + whole[1])
    (report,) = kb.sessions.import_(file)
    assert report.added == 3
    assert [problem.line for problem in report.problems] == [2, 3, 5]


@pytest.mark.parametrize("name", ["../../evil", "a/b", "nul", "..", "x" * 300, "日本"])
def test_a_transcript_cannot_name_a_file_elsewhere(name: str, open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    (report,) = kb.sessions.import_(write(tmp_path / "c.jsonl", [claude("user", "Hi.", "u1", sessionId=name)]))
    assert (kb.vault.machine / "sessions" / f"{report.session}.jsonl").is_file()
    assert "/" not in report.session


@pytest.mark.parametrize("name", [".memory-kb", ".memory-kb.foreign-2"])
def test_our_own_logs_in_a_folder_are_no_transcripts(name: str, open_kb: Open, folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "project"
    (source / name / "log").mkdir(parents=True)
    write(source / name / "log/decisions.jsonl", [{"run": "a"}])
    write(source / "c.jsonl", [claude("user", "Hi.", "u1")])
    (report,) = open_kb(folder).sessions.import_(source, any_project=True)
    assert (report.added, report.problems) == (2, ())


def test_what_is_no_transcript_is_refused(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    with pytest.raises(UnreadableInput, match="no transcript"):
        kb.sessions.import_(write(tmp_path / "other.jsonl", [{"a": 1}]))
    with pytest.raises(UnreadableInput, match="cannot be read"):
        kb.sessions.import_(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="unknown format"):
        kb.sessions.import_(write(tmp_path / "c.jsonl", CLAUDE), format="word")


@pytest.mark.parametrize(
    ("name", "data", "options"),
    [
        pytest.param("readme.txt", b"Read me first.\n", (), id="prose"),
        pytest.param("junk.jsonl", b"not json\nnor this\n", (), id="no JSON"),
        pytest.param("bytes.jsonl", bytes(range(256)) * 20, (), id="bytes"),
        pytest.param("empty.md", b"", (), id="nothing"),
        pytest.param("junk.jsonl", b"{torn\n[1]\n", ("--format", "claude-code"), id="of a named format"),
    ],
)
def test_garbage_is_refused_on_the_command_line(
    run: Run, folder: Path, tmp_path: Path, name: str, data: bytes, options: tuple[str, ...]
) -> None:
    (tmp_path / name).write_bytes(data)
    done = run("--vault", folder, "session", "import", tmp_path / name, *options)
    assert (done.returncode, done.stdout) == (4, "")
    assert "no transcript that is known" in done.stderr
    assert ("no turn" in done.stderr) == (not name.endswith(".jsonl"))
    assert not list(folder.rglob("sessions/*.jsonl"))
    write(tmp_path / "c1.jsonl", CLAUDE)
    both = run(
        "--vault", folder, "session", "import", tmp_path / name, tmp_path / "c1.jsonl", "--format", "claude-code"
    )
    assert (both.returncode, both.stdout.startswith("c1  "), "not imported: " in both.stderr) == (4, True, True)


def test_a_folder_with_no_transcript_that_is_known_is_reported_in_the_exit_code(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    write(tmp_path / "theirs/other.jsonl", [{"a": 1}])
    done = run("--vault", folder, "session", "import", tmp_path / "theirs")
    assert (done.returncode, done.stdout) == (4, "")
    assert "no transcript that is known" in done.stderr
    assert "Nothing was imported." in done.stderr
    write(tmp_path / "theirs/c1.jsonl", CLAUDE)
    assert run("--vault", folder, "session", "import", tmp_path / "theirs", "--any-project").returncode == 0
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# A note\n")
    done = run("--vault", folder, "session", "import", tmp_path / "notes")
    assert "no transcript is recognised, and --format names what it is" in done.stderr


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["user", "tool_use", "text", "message", "message", "c1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "message",
                    "content",
                    "role",
                    "payload",
                    "uuid",
                    "id",
                    "name",
                    "input",
                    "text",
                    "output",
                    "sessionId",
                    "timestamp",
                    "attachment",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from(TRANSCRIPT_FORMATS),
    st.lists(
        st.one_of(st.builds(lambda value: json.dumps(value).encode(), ODD), st.binary(max_size=30), st.none()),
        max_size=4,
    ),
)
def test_no_transcript_makes_a_reader_fail(kind: str, lines: list[bytes | None]) -> None:
    for found in READERS[kind](lines):
        assert found.event is None or found.event.origin


@given(st.sampled_from([CLAUDE, CODEX]), st.data())
def test_odd_fields_cost_no_other_record(records: list[Record], data: st.DataObject) -> None:
    """One record changed beyond recognition leaves the messages of the others."""
    place = data.draw(st.integers(0, len(records) - 1))
    odd = dict(records[place])
    odd[data.draw(st.sampled_from(sorted(odd)))] = data.draw(ODD)
    changed = [*records[:place], odd, *records[place + 1 :]]
    read = READERS["codex" if records is CODEX else "claude-code"]

    def messages(some: list[Record]) -> list[str]:
        lines = (json.dumps(record).encode() for record in some)
        return [found.event.content or "" for found in read(lines) if found.event and found.event.type == "message"]

    others = messages(records[:place] + records[place + 1 :])
    assert not Counter(others) - Counter(messages(changed))


def test_import_on_the_command_line(run: Run, folder: Path, tmp_path: Path) -> None:
    project = tmp_path / "projects/-home-ana-api"
    project.mkdir(parents=True)
    write(project / "c1.jsonl", CLAUDE[2:])
    write(project / "other.jsonl", [{"a": 1}])
    done = run("--vault", folder, "session", "import", tmp_path / "projects", "--any-project")
    assert done.returncode == 0
    assert done.stdout == "c1  18 added, 0 already stored, 3 skipped, 1 with text from memory-kb\n"
    assert "no transcript that is known" in done.stderr
    again = json.loads(run("--vault", folder, "session", "import", project / "c1.jsonl", "--json").stdout)
    assert [(one["session"], one["added"], one["known"]) for one in again["sessions"]] == [("c1", 0, 18)]
