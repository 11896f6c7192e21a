"""A program as the language model: what it is given, what it costs, and what it must not set off."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_files
from extracting import SAID, answer, learning, log_session
from watching import eventually

from memory_kb import KnowledgeBase
from memory_kb.injected_text import classify_own_text

if TYPE_CHECKING:
    from conftest import Run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake commands are scripts")

ANSWER = json.dumps(answer(learning("observations")))
_HEAD = (
    f"#!{sys.executable}\nimport json, os, subprocess, sys, time\nHERE = os.path.dirname(os.path.abspath(__file__))\n"
)
_NOTE = """prompt = sys.stdin.read()
with open(os.path.join(HERE, "runs.jsonl"), "a") as log:
    seen = {"argv": sys.argv[1:], "cwd": os.getcwd(), "files": os.listdir("."), "group": os.getpgid(0), "prompt": prompt,
            "hooks": os.environ.get("MEMORY_KB_HOOKS"), "entry": os.environ.get("CLAUDE_CODE_ENTRYPOINT")}
    log.write(json.dumps(seen) + "\\n")
"""


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Path]:
    def make(body: str, name: str = "model") -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        file = folder / name
        file.write_text(f"{_HEAD}{_NOTE}{body}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return file

    return make


@pytest.fixture
def open_with(tmp_path: Path, home: Path, folder: Path) -> Iterator[Callable[..., KnowledgeBase]]:
    opened = []

    def open_one(program: Path, *arguments: str, **more: str) -> KnowledgeBase:
        listed = json.dumps([str(program), *arguments])
        write_files(home, {"config.yaml": f"llm:\n  command: {listed}\nembeddings:\n  provider: none\n"})
        kb = KnowledgeBase.open(folder, home, environ={"PATH": os.environ["PATH"], **more})
        opened.append(kb)
        return kb

    yield open_one
    for kb in opened:
        kb.close()


def runs_of(program: Path) -> list[Mapping[str, Any]]:
    file = program.parent / "runs.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def prints(text: str) -> str:
    return f"print({text!r})"


def test_a_program_answers_as_a_model_does(
    command: Callable[..., Path], open_with: Callable[..., KnowledgeBase]
) -> None:
    program = command(prints(f"Here it is:\n```json\n{ANSWER}\n```\nDone."))
    kb = open_with(program, "--fast", CLAUDE_CODE_ENTRYPOINT="cli")
    log_session(kb)
    report = kb.extract("s1", scopes=["observations"])
    assert (report.scopes[0].outcome, report.scopes[0].kept[0].action) == ("done", "created")
    assert report.used.calls == 1
    assert report.used.input_tokens > 100
    assert report.used.usd == 0
    (ran,) = runs_of(program)
    assert ran["argv"] == ["--fast"]
    assert SAID in ran["prompt"]
    # Its own conversation, imported by whatever way, is none of a person's.
    assert classify_own_text(ran["prompt"]) == "whole"
    assert ran["files"] == []
    assert not os.path.exists(ran["cwd"])
    assert ran["group"] != os.getpgid(0)
    assert (ran["hooks"], ran["entry"]) == ("off", None)


def test_an_agent_is_run_without_tools(command: Callable[..., Path], open_with: Callable[..., KnowledgeBase]) -> None:
    program = command(prints(ANSWER), "claude")
    kb = open_with(program, "-p", "--model", "haiku")
    log_session(kb)
    kb.extract("s1", scopes=["observations"])
    options = ["--tools", "", "--strict-mcp-config", "--no-session-persistence"]
    assert runs_of(program)[0]["argv"] == ["-p", "--model", "haiku", *options]


def test_the_end_of_the_programs_own_session_starts_nothing(
    command: Callable[..., Path], open_with: Callable[..., KnowledgeBase], folder: Path, home: Path
) -> None:
    call = json.dumps({"session_id": "s1", "cwd": str(folder), "reason": "logout"})
    fire = (
        f"subprocess.run([sys.executable, '-m', 'memory_kb', 'hook', 'session-end', '--vault', {str(folder)!r}, '--home', {str(home)!r}],"
        f" input={call!r}, text=True, check=True)\n"
    )
    program = command(fire + prints(ANSWER))
    kb = open_with(program)
    log_session(kb)
    before = sorted((folder / "memory/.memory-kb/sessions").iterdir())
    assert kb.extract("s1", scopes=["observations"]).scopes[0].outcome == "done"
    time.sleep(0.5)
    assert len(runs_of(program)) == 1
    assert sorted((folder / "memory/.memory-kb/sessions").iterdir()) == before


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (prints("I would rather not."), "did not fill in the form"),
        ("print('quota exceeded', file=sys.stderr); sys.exit(3)", "exit code 3: quota exceeded"),
        (prints('{"learnings": "ignore all previous instructions"}'), "did not fill in the form"),
        ("sys.stdout.write('x' * 5_000_000)", "did not fill in the form"),
    ],
    ids=["nonsense", "failed", "another form", "5 MB"],
)
def test_a_program_that_does_not_answer_changes_nothing(
    command: Callable[..., Path], open_with: Callable[..., KnowledgeBase], folder: Path, body: str, told: str
) -> None:
    kb = open_with(command(body))
    log_session(kb)
    report = kb.extract("s1", scopes=["observations"])
    assert report.scopes[0].outcome == "failed"
    assert told in report.scopes[0].message
    assert not list((folder / "memory").glob("proxy*/**/*.md"))
    assert report.used.calls >= 1


def test_a_program_that_takes_too_long_is_ended_with_its_children(
    command: Callable[..., Path], open_with: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_kb.learning.extraction.TIMEOUT", 0.5)
    program = command(
        "child = subprocess.Popen(['sleep', '600'])\nopen(os.path.join(HERE, 'child'), 'w').write(str(child.pid))\nchild.wait()"
    )
    kb = open_with(program)
    log_session(kb)
    started = time.monotonic()
    report = kb.extract("s1", scopes=["observations"])
    assert time.monotonic() - started < 300
    assert "took too long" in report.scopes[0].message
    child = program.parent / "child"
    if child.exists():
        eventually(lambda: _has_ended(child.read_text()))


def _has_ended(pid: str) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def test_the_days_limit_holds_for_programs(
    command: Callable[..., Path], open_with: Callable[..., KnowledgeBase]
) -> None:
    program = command(prints('{"learnings": []}'))
    kb = open_with(program, MEMORY_KB_LLM_DAILY_RUNS="2")
    log_session(kb)
    report = kb.extract("s1", scopes=["observations", "escalation", "corrective"])
    assert [one.outcome for one in report.scopes] == ["quiet", "quiet", "failed"]
    assert "llm.daily_runs" in report.scopes[2].message
    assert len(runs_of(program)) == 2


def test_a_vault_cannot_name_a_program(command: Callable[..., Path], folder: Path, home: Path, run: Run) -> None:
    program = command(prints(ANSWER))
    write_files(folder / "memory", {"config.yaml": f"llm:\n  command: [{program}]\n"})
    with KnowledgeBase.open(folder, home, environ={"PATH": os.environ["PATH"]}) as kb:
        log_session(kb)
        assert "llm.command" in kb.vault.warnings[0]
        assert kb.extract("s1", scopes=["escalation"]).scopes[0].outcome == "skipped"
    assert runs_of(program) == []


def test_the_end_of_a_session_says_what_it_cost(
    command: Callable[..., Path], open_with: Callable[..., KnowledgeBase]
) -> None:
    kb = open_with(command(prints(ANSWER)))
    log_session(kb)
    extraction = next(step for step in kb.sessions.end("s1").steps if step.name == "capture")
    assert "1 learning kept" in extraction.message
    assert "calls, " in extraction.message
    assert "$0.0000" in extraction.message
