"""A replay of transcripts counts what earlier sessions knew, and nothing that only later ones did."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Run

FAILED = "Exit code 127\n/bin/sh: pytest: command not found in the quokka container"


class Log:
    """A transcript of Claude Code, written line by line."""

    def __init__(self, session: str, day: int) -> None:
        self.session, self.day, self.lines = session, day, list[dict[str, Any]]()

    def _add(self, kind: str, content: object) -> None:
        stamp = f"2026-03-{self.day:02}T10:{len(self.lines):02}:00.000Z"
        self.lines.append(
            {
                "type": kind,
                "sessionId": self.session,
                "cwd": "/home/ana/api",
                "timestamp": stamp,
                "uuid": f"{self.session}-{len(self.lines)}",
                "message": {"role": kind, "content": content},
            }
        )

    def says(self, text: str) -> Log:
        self._add("user", text)
        return self

    def calls(self, tool: str, result: str = "", *, ok: bool = True, **values: str) -> Log:
        name = f"t{len(self.lines)}"
        self._add("assistant", [{"type": "tool_use", "id": name, "name": tool, "input": values}])
        block = {"type": "tool_result", "tool_use_id": name, "content": result, "is_error": not ok}
        self._add("user", [block])
        return self

    def write(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        (folder / f"{self.session}.jsonl").write_text(text, encoding="utf-8")


def sessions() -> Iterator[Log]:
    for number, day in (("one", 2), ("two", 5)):
        log = Log(f"session-{number}", day).says("Run the quokka upload tests please, they are flaky in the container.")
        log.says("From now on always name migrations by their quokka ticket number.")
        log.calls("Bash", FAILED, ok=False, command="pytest -q tests/test_upload.py")
        log.calls("Bash", "1 passed", command="uv run pytest -q tests/test_upload.py")
        yield log.calls("Edit", "done", file_path="/home/ana/api/src/upload.py", old_string="a", new_string="b")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for log in sessions():
        log.write(tmp_path / "logs")
    return tmp_path / "logs"


def replay(run: Run, folder: Path, *more: str | Path) -> dict[str, Any]:
    done = run("benefit", folder, "--json", *more)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_what_was_found_out_again_is_counted_once(run: Run, logs: Path) -> None:
    made = replay(run, logs)
    assert (made["sessions"], made["prompts"]) == (2, 4)
    assert made["found_again"] == {"error": 1, "command": 1, "file": 1, "correction": 1}
    assert made["failed_commands"] == 1
    assert {check["session"] for check in made["checks"]} == {"session-two"}
    facts = {check["sort"]: check["fact"] for check in made["checks"]}
    assert facts["command"] == "uv run pytest -q tests/test_upload.py"
    assert facts["file"] == "src/upload.py"


def test_ways_of_remembering_are_compared(run: Run, logs: Path) -> None:
    scores = replay(run, logs)["scores"]
    assert scores["nothing"] == {"given": {}, "failed_commands": 0, "saved_tokens": 0, "added_tokens": 0}
    assert scores["MEMORY.md"] == scores["nothing"]
    assert scores["memory-kb"]["given"]["correction"] == 1
    assert scores["memory-kb"]["added_tokens"] > 0


def test_the_projects_notes_are_those_of_git_at_the_time(run: Run, logs: Path, tmp_path: Path) -> None:
    project = tmp_path / "api"
    (project / "memory/rules").mkdir(parents=True)
    (project / "CLAUDE.md").write_text("Tests run with `uv run pytest -q tests/test_upload.py`.\n")
    (project / ".cursor/rules").mkdir(parents=True)
    (project / ".cursor/rules/a.mdc").write_text("---\nalwaysApply: true\n---\nUploads: `src/upload.py`.\n")
    (project / ".cursor/rules/b.mdc").write_text("---\nalwaysApply: false\n---\nThe quokka container has no pytest.\n")
    rule = "---\nid: up\nkind: rule\nsource: user_explicit\npriority: high\n---\nUploads are in src/upload.py.\n"
    (project / "memory/rules/up.md").write_text(rule)
    later = commit_all(project, "2026-03-04T12:00:00Z")
    made = replay(run, logs, "--project", project)
    assert made["curated"] == 1
    assert made["scores"]["MEMORY.md"]["given"] == {"command": 1, "file": 1}
    assert made["scores"]["memory-kb"]["given"]["file"] == 1
    later("2026-03-06T12:00:00Z")
    made = replay(run, logs, "--project", project)
    assert (made["curated"], made["scores"]["MEMORY.md"]["added_tokens"]) == (0, 0)


def commit_all(folder: Path, moment: str) -> Callable[[str], object]:
    def git(*words: str, at: str = moment) -> None:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env=dict(os.environ) | who | dates)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "notes")
    return lambda at: git("commit", "-q", "--amend", "--no-edit", "--date", at, at=at)


def test_a_session_that_ran_at_the_same_time_taught_nothing(run: Run, logs: Path) -> None:
    file = logs / "session-one.jsonl"
    last = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
    last |= {"timestamp": "2026-03-09T10:00:00.000Z", "uuid": "late", "type": "assistant"}
    last["message"] = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    file.write_text(file.read_text(encoding="utf-8") + json.dumps(last) + "\n", encoding="utf-8")
    assert replay(run, logs)["found_again"] == {}


def test_private_words_and_broken_lines_do_no_harm(run: Run, logs: Path, tmp_path: Path) -> None:
    (logs / "broken.jsonl").write_text('{"type": "user", "sessionId"\n\0\0\n[]\n', encoding="utf-8")
    page = tmp_path / "page.html"
    made = replay(run, logs, "--html", page)
    assert made["sessions"] == 2
    assert "uv run pytest" in page.read_text(encoding="utf-8")


def test_a_folder_without_transcripts_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("benefit", tmp_path / "none")
    assert done.returncode != 0
    assert "name the folder" in done.stderr


def test_what_the_log_does_not_prove_is_not_counted(run: Run, tmp_path: Path) -> None:
    for number, day in (("one", 2), ("two", 5)):
        log = Log(f"session-{number}", day).says("Install the quokka and try it out in the container.")
        log.calls("Bash", FAILED, ok=False, command="pip install -e quokka")
        log.calls("Bash", "done", command="pip install -e ./quokka 2>&1 | grep -v Warning || echo done")
        created = "File created successfully at: /home/ana/api/try.py"
        log.calls("Write", created, content="print(1)", file_path="/home/ana/api/try.py")
        log.calls("Edit", "done", file_path="/home/ana/api/try.py", old_string="1", new_string="2")
        log.write(tmp_path / "logs")
    assert replay(run, tmp_path / "logs")["found_again"] == {"error": 1}
