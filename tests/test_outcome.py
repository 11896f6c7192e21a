"""What the outcome of a task does to the entries that its agent was shown."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import NOW, REPOSITORY, Files, Run, clean_environment
from forking import command
from support import entry, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnknownEntry, UnreadableInput, UsageError
from memory_kb.injected_text import mark_as_own
from memory_kb.learning.outcomes import find_marks, parse_marks
from memory_kb.store.logs import Mark, Outcome, OutcomeLog, Retrieval, RetrievalLog
from memory_kb.store.session_events import Event

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
TODAY = "2026-11-21"
STATE = {"confidence": 0.5, "success_count": 1, "failure_count": 1, "last_applied": "'2026-08-23'", "tags": "[sse]"}
FILES: Files = {
    "memory/config.yaml": "reinforcement: {counts: shown}\n",
    "memory/rules/r1.md": entry("One.", id="r1", kind="rule", **STATE),
    "memory/rules/r2.md": entry("Two.", id="r2", kind="rule", **STATE),
    "memory/rules/p.md": entry("Avoid it.", id="p", kind="pitfall", **STATE),
    "memory/skills/s.md": entry("# Skill: s", id="s", kind="skill", **STATE),
    "memory/learnings/f.md": entry("A fact.", id="f", kind="fact"),
    "memory/rules/old.md": entry("Old.", id="old", kind="rule", status="retired", **STATE),
}
ALL = ("r1", "r2", "p", "s", "f", "old", "vanished")
#: What an outcome leaves of the confidence 0.5 that nobody used for 90 days, with its counters.
SUCCESS, FAILURE, SETTLED, UNTOUCHED = (0.3, 2, 1), (0.05, 1, 2), (0.25, 1, 1), (0.5, 1, 1)


#: As it is without a setting: what was used counts.
USED: Files = {**FILES, "memory/config.yaml": ""}


@pytest.fixture
def shown(vault: MakeVault) -> Path:
    """A vault in which the agent `coder` was shown everything for the task `t`."""
    folder = vault(FILES)
    show(folder, *ALL)
    return folder


def show(folder: Path, *names: str, agent: str | None = "coder", task: str = "t", **about: Any) -> None:
    KnowledgeBase.open(folder, environ=clean_environment(folder.parent / "home")).close()
    log = RetrievalLog(folder / "memory/.memory-kb/log")
    log.append(Retrieval(NOW.isoformat(), "context", names, agent=agent, task=task, **({"injected": True} | about)))


def state(folder: Path, name: str) -> tuple[float, int, int]:
    (file,) = folder.glob(f"memory/*/{name}.md")
    fields = yaml.safe_load(file.read_text().split("---\n")[1])
    return fields["confidence"], fields["success_count"], fields["failure_count"]


def states(folder: Path) -> dict[str, tuple[float, int, int]]:
    return {name: state(folder, name) for name in ("r1", "r2", "p", "s")}


@pytest.mark.parametrize(
    ("outcome", "rules", "pitfall", "skill"),
    [
        ("success", SUCCESS, SUCCESS, (0.5, 2, 1)),
        ("failure", FAILURE, FAILURE, (0.5, 1, 2)),
        ("mixed", SETTLED, SETTLED, UNTOUCHED),
        ("partial", SETTLED, SETTLED, UNTOUCHED),
    ],
)
def test_all_that_was_shown_gets_the_outcome(
    shown: Path,
    open_kb: OpenKB,
    outcome: str,
    rules: tuple[float, int, int],
    pitfall: tuple[float, int, int],
    skill: tuple[float, int, int],
) -> None:
    kb = open_kb(shown)
    before = notes_of(shown)
    assert kb.outcome("coder", "t", outcome, dry_run=True).run.changes
    assert notes_of(shown) == before
    report = kb.outcome("coder", "t", outcome)
    assert states(shown) == {"r1": rules, "r2": rules, "p": pitfall, "s": skill}
    assert [one.id for one in report.credits] == ["r1", "r2", "p", "s"]
    assert state(shown, "old") == UNTOUCHED
    assert (shown / "memory/learnings/f.md").read_text() == FILES["memory/learnings/f.md"]
    assert "last_applied: '2026-11-21'" in (shown / "memory/rules/r1.md").read_text()
    assert "last_applied: '2026-08-23'" in (shown / "memory/skills/s.md").read_text()


def test_each_entry_is_credited_once_for_a_task(shown: Path, open_kb: OpenKB) -> None:
    kb = open_kb(shown)
    kb.outcome("coder", "t", "success")
    once = notes_of(shown)
    again = kb.outcome("coder", "t", "failure", used=["r1"])
    assert (again.run.run, again.credits, set(again.known)) == (None, (), {"r1"})
    assert again.notice == "All of it was credited before."
    assert notes_of(shown) == once
    show(shown, "r1", task="t2")
    kb.outcome("coder", "t2", "success")
    assert state(shown, "r1") == (0.35, 3, 1)


def test_each_task_of_a_session_counts(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(USED)
    for task in ("t", "t2"):
        show(folder, "r1", task=task, session="s1")
        open_kb(folder).outcome("coder", task, "success", used=["r1"])
    assert state(folder, "r1") == (0.35, 3, 1)


def test_what_is_shown_later_is_credited_later(shown: Path, open_kb: OpenKB) -> None:
    kb = open_kb(shown)
    late = shown / "memory/rules/late.md"
    late.write_text(entry("Late.", id="late", kind="rule", **STATE))
    kb.outcome("coder", "t", "success")
    show(shown, "late")
    report = kb.outcome("coder", "t", "success")
    assert [one.id for one in report.credits] == ["late"]
    assert (state(shown, "late"), state(shown, "r1")) == (SUCCESS, SUCCESS)


@pytest.mark.parametrize(
    ("agent", "task", "session"), [("writer", "t", None), ("coder", "x", None), ("coder", "t", "elsewhere")]
)
def test_an_unknown_pair_changes_nothing(
    vault: MakeVault, open_kb: OpenKB, agent: str, task: str, session: str | None
) -> None:
    folder = vault(FILES)
    show(folder, "r1", session="s1")
    show(folder, "r2", agent=None)
    show(folder, "s")
    show(folder, "p", agent="writer", task="t", injected=False)
    before = notes_of(folder)
    report = open_kb(folder).outcome(agent, task, "failure", used=["r1"], session=session)
    assert (report.run.run, report.credits) == (None, ())
    assert f"Nothing was shown to {agent} for {task}" in report.notice
    assert notes_of(folder) == before


def test_losing_the_logs_doubles_nothing(shown: Path, open_kb: OpenKB) -> None:
    open_kb(shown).outcome("coder", "t", "success")
    before = notes_of(shown)
    log = shown / "memory/.memory-kb/log"
    for file in log.iterdir():
        file.unlink()
    assert open_kb(shown).outcome("coder", "t", "success", used=["r1"]).credits == ()
    assert notes_of(shown) == before


def test_only_what_was_used_is_credited(vault: MakeVault, open_kb: OpenKB) -> None:
    """Blame for everything on display is what ruins a playbook."""
    folder = vault(USED)
    show(folder, *ALL)
    open_kb(folder).outcome("coder", "t", "failure", used=["r1", "s", "p"])
    assert states(folder) == {"r1": FAILURE, "r2": UNTOUCHED, "p": FAILURE, "s": (0.5, 1, 2)}


@pytest.mark.parametrize("edits", [True, False], ids=["edits", "only reads"])
@pytest.mark.parametrize(
    ("words", "written"),
    [
        (
            {"r1": "Retry wombat uploads.", "r2": "Number invoices of the quokka."},
            "def upload(wombat): retry(wombat)",
        ),
        ({"r1": "上传失败后要重试三次。", "r2": "发票编号从一千开始。"}, "# 上传失败时重试三次"),
    ],
    ids=["english", "chinese"],
)
def test_without_names_what_the_session_used_is_credited(
    vault: MakeVault, open_kb: OpenKB, words: dict[str, str], written: str, edits: bool
) -> None:
    rules = {f"memory/rules/{name}.md": entry(said, id=name, kind="rule", **STATE) for name, said in words.items()}
    folder = vault({**USED, **rules})
    show(folder, *ALL, session="s1")
    kb = open_kb(folder)
    kb.sessions.start("s1", agent="coder")
    args = {"file_path": "upload.py", "content": written}
    kb.sessions.append(
        [Event(type="tool_call", tool="Write" if edits else "Read", args=args, call_id="1")], session="s1"
    )
    kb.sessions.append([Event(type="tool_result", tool="Write", content="ok", call_id="1", ok=True)], session="s1")
    before = notes_of(folder)
    report = kb.outcome("coder", "t", "success")
    if edits:
        assert [one.id for one in report.credits] == ["r1"]
        assert states(folder) == {"r1": SUCCESS, "r2": UNTOUCHED, "p": UNTOUCHED, "s": UNTOUCHED}
    else:
        assert "name in `used` what was" in report.notice
        assert notes_of(folder) == before
        assert [one.id for one in kb.outcome("coder", "t", "success", used=["r1"]).credits] == ["r1"]


def test_what_was_used_need_not_have_been_injected(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(FILES)
    show(folder, "r1")
    open_kb(folder).outcome("coder", "t", "success", used="r2")
    assert (state(folder, "r1"), state(folder, "r2")) == (UNTOUCHED, SUCCESS)


def test_what_the_agent_says_counts(shown: Path, open_kb: OpenKB) -> None:
    show(shown, "r1", session="s1")
    kb = open_kb(shown)
    kb.sessions.start("s1", agent="coder")
    kb.sessions.append([Event(role="assistant", content="Done. [memory-kb: helpful r1] - saved an hour")], session="s1")
    kb.sessions.append(
        [Event(type="tool_call", tool="Write", args={"content": "x = 1  # [memory-kb: harmful p]\n"})], session="s1"
    )
    kb.sessions.append([Event(type="tool_result", tool="Read", content="[memory-kb: harmful r2]")], session="s1")
    kb.sessions.append(
        [Event(role="user", content=mark_as_own("Write [memory-kb: harmful r2] when it hurts."))], session="s1"
    )
    kb.outcome("coder", "t", "mixed")
    assert states(shown) == {"r1": SUCCESS, "r2": SETTLED, "p": FAILURE, "s": UNTOUCHED}


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("[memory-kb: helpful a]", {"a": "success"}),
        ("[Memory-KB:harmful a,b c]", {"a": "failure", "b": "failure", "c": "failure"}),
        ("[memory-kb: helpful a] [memory-kb: harmful a]", {"a": "failure"}),
        ("[memory-kb: helpful]", {}),
        ("[memory-kb: useful a]", {}),
        ("[memory-kb: helpful a\nb]", {}),
        ("[memory-kb: helpful " + "x" * 10_000, {}),
        ("", {}),
    ],
)
def test_marks(text: str, marks: dict[str, str]) -> None:
    assert parse_marks(text) == marks
    assert find_marks([Event(content=text)]) == marks


def test_an_outcome_that_was_undone_may_be_told_again(shown: Path, open_kb: OpenKB) -> None:
    kb = open_kb(shown)
    before = notes_of(shown)
    run = kb.outcome("coder", "t", "failure").run.run
    kb.undo(run)
    assert notes_of(shown) == before
    kb.outcome("coder", "t", "success")
    assert state(shown, "r1") == SUCCESS
    assert kb.outcome("coder", "t", "success").credits == ()


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
def test_a_call_that_was_killed_is_counted_once(
    shown: Path, open_kb: OpenKB, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """It may have been killed before its notes were written, or after them and before it said so."""
    kb = open_kb(shown)
    append, count = OutcomeLog.append, 0

    def die_at_the_second(self: OutcomeLog, outcome: Outcome) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt
        append(self, outcome)

    monkeypatch.setattr(OutcomeLog, "append", die_at_the_second)
    if not is_written:
        monkeypatch.setattr(kb.writer, "run", lambda *_args, **_how: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        kb.outcome("coder", "t", "success")
    monkeypatch.undo()
    assert state(shown, "r1") == (SUCCESS if is_written else UNTOUCHED)
    open_kb(shown).outcome("coder", "t", "success")
    assert states(shown) == {"r1": SUCCESS, "r2": SUCCESS, "p": SUCCESS, "s": (0.5, 2, 1)}
    assert open_kb(shown).outcome("coder", "t", "success").credits == ()


def test_a_file_that_cannot_be_written_credits_nothing(
    shown: Path, open_kb: OpenKB, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = open_kb(shown)

    def fail(*_: Any, **__: Any) -> None:
        raise UnreadableInput("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(kb.writer, "run", fail)
        with pytest.raises(UnreadableInput):
            kb.outcome("coder", "t", "success")
    assert state(shown, "r1") == UNTOUCHED
    assert len(kb.outcome("coder", "t", "success").credits) == 4


def test_a_person_edits_in_between(shown: Path, open_kb: OpenKB, monkeypatch: pytest.MonkeyPatch) -> None:
    kb, file = open_kb(shown), shown / "memory/rules/r1.md"
    compose, is_first = kb.writer._compose, True

    def edit(*args: Any, **how: Any) -> Any:
        nonlocal is_first
        if is_first:
            file.write_text(
                file.read_text().replace("One.", "One, in new words.").replace("confidence: 0.5", "confidence: 0.9")
            )
        is_first = False
        return compose(*args, **how)

    monkeypatch.setattr(kb.writer, "_compose", edit)
    kb.outcome("coder", "t", "success")
    assert "in new words" in file.read_text()
    assert (state(shown, "r1"), state(shown, "r2")) == ((0.5, 2, 1), SUCCESS)


@pytest.mark.slow
def test_two_at_once_count_once(shown: Path, home: Path) -> None:
    outcome = command("--vault", shown, "outcome", "coder", "t", "success")
    env = clean_environment(home) | {"MEMORY_KB_NOW": NOW.isoformat()}
    processes = [
        subprocess.Popen(outcome, env=env, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60) and process.returncode for process in processes] == [0, 0, 0]
    assert states(shown) == {"r1": SUCCESS, "r2": SUCCESS, "p": SUCCESS, "s": (0.5, 2, 1)}


def test_the_project_is_credited_before_the_home(shown: Path, home: Path, open_kb: OpenKB) -> None:
    (home / "rules").mkdir(parents=True)
    (home / "rules/r1.md").write_text(entry("Global.", id="r1", kind="rule", **STATE))
    (home / "rules/g.md").write_text(entry("Global.", id="g", kind="rule", **STATE))
    show(shown, "g")
    before = (home / "rules/r1.md").read_text()
    open_kb(shown).outcome("coder", "t", "success")
    assert (state(shown, "r1"), (home / "rules/r1.md").read_text()) == (SUCCESS, before)
    assert "success_count: 2" in (home / "rules/g.md").read_text()


def test_wrong_words(shown: Path, open_kb: OpenKB) -> None:
    kb = open_kb(shown)
    before = notes_of(shown)
    with pytest.raises(UsageError):
        kb.outcome("coder", "t", "splendid")
    with pytest.raises(UnknownEntry):
        kb.outcome("coder", "t", "success", used=["nobody"])
    assert notes_of(shown) == before
    assert len(kb.outcome("coder", "t", "success").credits) == 4


def test_a_torn_or_foreign_line_costs_no_other(tmp_path: Path) -> None:
    log = OutcomeLog(tmp_path / "log")
    first = Outcome("2026-11-21T12:00:00.000Z", "coder", "t", "success", {"a": Mark("success", 1)})
    log.append(first)
    with log.file.open("ab") as stream:
        stream.write(b'7\n{"agent": "coder", "task": "t", "entries": {"b": 3}}\n{"agent": "cod')
    log.append(Outcome("", "coder", "t", "mixed", {"c": Mark("mixed", 0)}, "s", "run", is_done=True))
    found = list(log.read_all())
    assert found[0] == first
    assert [set(one.marks) for one in found] == [{"a"}, set(), {"c"}]


def test_context_and_outcome_go_together(vault: MakeVault, open_kb: OpenKB, run: Run) -> None:
    folder = vault(FILES)
    now = {"MEMORY_KB_NOW": NOW.isoformat()}
    told = run("--vault", folder, "context", "fix the stream", "--label", "sse", "--agent", "coder", env=now)
    assert "One." in told.stdout, told.stderr
    done = run("--vault", folder, "outcome", "coder", "fix the stream", "success", "--json", env=now)
    shown = json.loads(done.stdout)
    assert {"r1", "r2", "p"} <= {one["id"] for one in shown["credits"]}
    assert state(folder, "r1") == SUCCESS
    again = run("--vault", folder, "outcome", "coder", "fix the stream", "success", env=now)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "All of it was credited before.\n")


def test_the_command(shown: Path, run: Run) -> None:
    now = {"MEMORY_KB_NOW": NOW.isoformat()}
    dry = run("--vault", shown, "outcome", "coder", "t", "failure", "--used", "r1", "--dry-run", env=now)
    assert "failure  0.25 -> 0.05  r1" in dry.stdout
    assert "+failure_count: 2" in dry.stdout
    done = run("--vault", shown, "outcome", "coder", "t", "failure", "--used", "r1", env=now)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "failure  0.25 -> 0.05  r1  One.")
    assert run("--vault", shown, "outcome", "coder", "t", "fine").returncode == 2
    none = run("--vault", shown, "outcome", "nobody", "t", "success")
    assert (none.returncode, none.stdout) == (0, "")
    assert "Nothing was shown to nobody for t" in none.stderr
