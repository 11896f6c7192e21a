"""Working memory: ledgers that say where an agent stands, handoffs from one to the next."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from conftest import NOW, REPOSITORY, Files, Run, clean_environment
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.entry import Span
from memory_kb.errors import AmbiguousId, SecretRefused, UnknownEntry, UsageError
from memory_kb.learning.working.ledgers import read_checkpoint
from memory_kb.notes.frontmatter import load_mapping
from memory_kb.notes.gitstate import parse_status, read_git_state
from memory_kb.notes.splice import set_value

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}
SECRET = "ghp_" + "a1b2" * 9
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")


def git(folder: Path, *arguments: str) -> str:
    environment = clean_environment(folder / "nobody") | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    names = ["-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", "-C", folder, *names, *arguments], check=True, capture_output=True, text=True, env=environment).stdout.strip()


@pytest.fixture
def repository(folder: Path) -> Path:
    """A vault in a repository with one commit."""
    (folder / ".gitignore").write_text("home/\n")
    git(folder, "init", "-q")
    (folder / "code.py").write_text("one\n")
    git(folder, "add", "code.py", ".gitignore")
    git(folder, "commit", "-q", "-m", "First words")
    return folder


def head_of(folder: Path, path: str) -> dict[str, object]:
    found = yaml.safe_load((folder / path).read_text().split("---\n")[1])
    assert isinstance(found, dict)
    return found


# -- ledgers -------------------------------------------------------------------------------


def test_a_first_checkpoint(folder: Path, open_kb: Open) -> None:
    """S2-37."""
    done = open_kb(folder).ledger_set(
        "eng-001-backend",
        task="T-42",
        goal="CRUD for users",
        files=["src/users.py"],
        tech=["fastapi"],
        patterns=["sem-001"],
        uncommitted=True,
        commit="abc123",
    )
    assert (done.action, done.ledger.path) == ("created", "memory/ledgers/eng-001-backend.md")
    assert done.ledger.as_mapping == {
        "agent_id": "eng-001-backend",
        "last_checkpoint": "2026-11-21T12:00:00Z",
        "tasks_completed": 0,
        "current_task": "T-42",
        "state": {"files_modified": ["src/users.py"], "uncommitted_changes": True, "last_git_commit": "abc123"},
        "context": {"tech_stack": ["fastapi"], "patterns_learned": ["sem-001"], "current_goal": "CRUD for users"},
    }
    head = head_of(folder, done.ledger.path)
    assert (head["kind"], head["agent_id"], head["state"]) == ("ledger", "eng-001-backend", done.ledger.as_mapping["state"])


def test_a_checkpoint_says_what_is_new_and_keeps_the_rest(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.ledger_set("a", task="T-1", goal="Ship", files=["x"], git=False)
    kb.ledger_set("a", task="T-2", completed=["T-1"], git=False)
    kb.ledger_set("a", completed=["T-1", "T-0"], files=["y"], git=False)
    ledger = kb.ledger_show("a").as_mapping
    assert (ledger["tasks_completed"], ledger["current_task"]) == (2, "T-2")
    assert (ledger["state"]["files_modified"], ledger["context"]["current_goal"]) == (["y"], "Ship")
    assert kb.ledger_set("a", completed=["T-1"], git=False).run.run is None
    kb.ledger_set("a", tasks_completed=12, task="", git=False)
    assert (kb.ledger_show("a").tasks_completed, kb.ledger_show("a").current_task) == (12, None)
    assert len(list((folder / "memory/ledgers").iterdir())) == 1


def test_a_checkpoint_splices(vault: MakeVault, open_kb: Open) -> None:
    text = (
        "---\nid: mine   # of the night shift\nkind: ledger\nagent_id: eng-002\nlast_checkpoint: '2026-01-01T00:00:00Z'\ntasks_completed: 3\n"
        "mood: good\nstate:\n  port: 80 # theirs\n  files_modified: [a.py] # so far\n# between\ncontext: {current_goal: Old}\n---\n\n"
        "My own notes.\n\n---\n\nMore.\n"
    )
    folder = vault(CONFIG | {"memory/notes/ledger.md": text})
    kb = open_kb(folder)
    kb.ledger_set("eng-002", files=["b.py"], goal="New", completed=["T-9"], git=False)
    after = text.replace("2026-01-01T00:00:00Z", "2026-11-21T12:00:00Z").replace("tasks_completed: 3", "tasks_completed: 4")
    after = after.replace("[a.py]", "[b.py]").replace("{current_goal: Old}\n", "{current_goal: New}\ncompleted_tasks: [T-9]\n")
    assert (folder / "memory/notes/ledger.md").read_text() == after
    kb.undo()
    assert (folder / "memory/notes/ledger.md").read_text() == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("id: a\n", "id: a\nstate:\n  x: 1\n  y: [b, 'c: d']\n"),
        ("state:\n  x: 0 # why\n  # old\nid: a\n", "state:\n  x: 1 # why\n  y: [b, 'c: d']\n  # old\nid: a\n"),
        ("state:\n    y:\n      - b\n      - 'c: d'\n    x: 0\nid: a\n", "state:\n    y:\n      - b\n      - 'c: d'\n    x: 1\nid: a\n"),
        ("state:\n  gone: 1\n  x: 0\nid: a\n", "state:\n  x: 1\n  y: [b, 'c: d']\nid: a\n"),
        ("state: {x: 0} # why\nid: a\n", "state: {x: 1, y: [b, 'c: d']} # why\nid: a\n"),
        ("state: none\nid: a\n", "state: {x: 1, y: [b, 'c: d']}\nid: a\n"),
        ("", "state:\n  x: 1\n  y: [b, 'c: d']\n"),
    ],
)
def test_a_mapping_stands_on_lines_of_its_own(before: str, after: str, newline: str) -> None:
    value = {"x": 1, "y": ["b", "c: d"]}
    before, after = before.replace("\n", newline), after.replace("\n", newline)
    if not before and newline == "\r\n":
        return
    assert set_value(before, Span(0, len(before)), "state", value) == after
    assert load_mapping(after)["state"] == value


def test_an_object_in_the_shape_of_the_seed(folder: Path, open_kb: Open) -> None:
    told = {
        "agent_id": "eng-001",
        "tasks_completed": 12,
        "current_task": "task-042",
        "state": {"files_modified": ["src/api/users.ts"], "uncommitted_changes": True, "last_git_commit": "abc123", "branch": "x"},
        "context": {"tech_stack": ["express"], "patterns_learned": ["sem-001"], "current_goal": "CRUD", "notes": {"deep": [1]}},
        "mood": "good",
    }
    kb = open_kb(folder)
    done = kb.ledger_set(told=told)
    assert done.notices == ("mood is no field of a ledger",)
    shown = kb.ledger_show("eng-001").as_mapping
    assert {name: shown[name] for name in ("tasks_completed", "current_task", "state", "context")} == {
        name: told[name] for name in ("tasks_completed", "current_task", "state", "context")
    }
    assert kb.ledger_set(told=shown).run.run is None


@pytest.mark.parametrize(
    "told",
    [
        {"tasks_completed": "many"},
        {"tasks_completed": -1},
        {"tasks_completed": True},
        {"state": []},
        {"state": {"uncommitted_changes": "perhaps"}},
        {"context": "x"},
    ],
)
def test_odd_objects_are_complained_of(told: dict[str, object]) -> None:
    checkpoint, wrong = read_checkpoint(told)
    assert wrong
    assert checkpoint.tasks_completed is None
    assert checkpoint.uncommitted_changes is None


def test_odd_ledgers_are_shown_as_far_as_they_go(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(
        vault(
            CONFIG
            | {
                "memory/ledgers/a.md": entry("", kind="ledger", id="odd", tasks_completed="[T-1, T-2]", state="words", context="[1]"),
                "memory/ledgers/b.md": entry("", kind="ledger", agent_id="b", status="retired"),
            }
        )
    )
    [ledger] = kb.ledger_list()
    assert (ledger.agent_id, ledger.tasks_completed, ledger.as_mapping["state"]["files_modified"]) == ("odd", 2, [])
    with pytest.raises(UnknownEntry, match=r"^no ledger of 'b'"):
        kb.ledger_show("b")


def test_each_scope_has_its_own_ledger_of_an_agent(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.ledger_set("a", task="P", git=False)
    kb.ledger_set("a", task="J", job="api", git=False)
    assert (kb.ledger_show("a").current_task, kb.ledger_show("a", "api").current_task) == ("P", "J")
    assert kb.ledger_show("a", "api").path == "memory/jobs/api/ledgers/a.md"
    assert len(kb.ledger_list()) == 2


def test_two_agents_of_one_slug(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for agent in ("a/b", "a b", "../a b"):
        kb.ledger_set(agent, task=agent, git=False)
    assert sorted(one.name for one in (folder / "memory/ledgers").iterdir()) == ["a-b-2.md", "a-b-3.md", "a-b.md"]
    assert kb.ledger_show("a b").current_task == "a b"


def test_ledgers_are_not_found_unasked(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.ledger_set("wombat", task="T", git=False)
    kb.handoff_create("wombat", "bilby", done=["Wombat things."], git=False)
    assert kb.search("wombat").hits == ()
    assert {hit.kind for hit in kb.search("wombat", kind=["ledger", "handoff"]).hits} == {"ledger", "handoff"}


@pytest.mark.parametrize(
    "told",
    [
        {"task": SECRET},
        {"goal": SECRET},
        {"files": [SECRET]},
        {"completed": [SECRET]},
        {"told": {"agent_id": "a", "state": {"env": {"api_key": "hunter2hunter2"}}}},
    ],
)
def test_a_ledger_keeps_no_credentials(told: dict[str, object], folder: Path, open_kb: Open) -> None:
    with pytest.raises(SecretRefused):
        open_kb(folder).ledger_set("a", git=False, **told)  # type: ignore[arg-type]
    assert not (folder / "memory/ledgers").exists()


# -- handoffs ------------------------------------------------------------------------------


def test_a_handoff(folder: Path, open_kb: Open) -> None:
    """S2-38, requirements §6.2."""
    kb = open_kb(folder)
    learned = kb.learn("Check the type first.", kind="rule").id
    made = kb.handoff_create(
        "planner",
        "coder",
        done=["Wrote the plan.", "Asked Ana:\nshe agrees."],
        artifacts=["docs/plan.md", "#12"],
        needs_testing=["The import."],
        known_issues=["tag: exists"],
        patterns=[learned[:8]],
        git_state="main, clean",
    )
    assert (made.action, made.handoff.id, made.handoff.path) == ("created", "handoff-001", "memory/handoffs/handoff-001.md")
    shape = {
        "id": "handoff-001",
        "from_agent": "planner",
        "to_agent": "coder",
        "timestamp": "2026-11-21T12:00:00Z",
        "context": {
            "what_was_done": "Wrote the plan.\nAsked Ana:\nshe agrees.",
            "artifacts": ["docs/plan.md", "#12"],
            "git_state": "main, clean",
            "needs_testing": ["The import."],
            "known_issues": ["tag: exists"],
            "relevant_patterns": [learned],
        },
    }
    assert made.handoff.as_mapping == kb.handoff_show("handoff-001").as_mapping == kb.handoff_show("1").as_mapping == shape
    text = (folder / made.handoff.path).read_text()
    assert "\n## Done\n\n- Wrote the plan.\n- Asked Ana:\n  she agrees.\n\n## Needs testing\n\n- The import.\n\n## Known issues\n" in text
    head = head_of(folder, made.handoff.path)
    assert (head["from_agent"], head["relevant_patterns"], head["kind"]) == ("planner", [learned], "handoff")


def test_numbers_go_on(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        CONFIG
        | {
            "memory/handoffs/handoff-007.md": entry("Gone.", id="handoff-007", kind="handoff", status="retired"),
            "memory/handoffs/handoff-009.md": "",
            "memory/jobs/api/handoffs/handoff-020.md": entry("Other.", id="handoff-020", kind="handoff"),
        }
    )
    kb = open_kb(folder)
    ids = [kb.handoff_create("a", "b", done=[str(number)], git=False).handoff.id for number in range(2)]
    assert ids == ["handoff-010", "handoff-011"]
    assert kb.handoff_create("a", "b", git=False, job="api").handoff.id == "handoff-021"


def test_the_same_again_is_the_same_handoff(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    told = {"done": ["One. " + "word " * 500, "Two."], "artifacts": ["a"], "git": False}
    kb.handoff_create("a", "b", **told)  # type: ignore[arg-type]
    again = kb.handoff_create("a", "b", **told)  # type: ignore[arg-type]
    assert (again.action, again.handoff.id, again.run.run) == ("known", "handoff-001", None)
    assert kb.handoff_create("a", "c", **told).handoff.id == "handoff-002"  # type: ignore[arg-type]


def test_the_latest(folder: Path, open_kb: Open) -> None:
    for number, (to, job) in enumerate([("coder", None), ("tester", None), ("coder", "api")]):
        open_kb(folder, NOW + timedelta(hours=number)).handoff_create("planner", to, done=[to], git=False, job=job)
    kb = open_kb(folder)
    assert [one.path for one in kb.handoff_list()] == [
        "memory/jobs/api/handoffs/handoff-001.md",
        "memory/handoffs/handoff-002.md",
        "memory/handoffs/handoff-001.md",
    ]
    latest = kb.handoff_latest("tester")
    assert latest
    assert latest.id == "handoff-002"
    assert kb.handoff_latest("nobody") is None
    assert kb.handoff_show("1").path == "memory/handoffs/handoff-001.md"
    assert kb.handoff_show("1", "api").path == "memory/jobs/api/handoffs/handoff-001.md"
    with pytest.raises(UnknownEntry, match=r"^no handoff 'handoff-9'"):
        kb.handoff_show("handoff-9")


def test_nothing_appended_claims_no_last_event(folder: Path, run: Run) -> None:
    run("--vault", folder, "session", "start", "s1")
    assert run("--vault", folder, "session", "append", "s1", stdin="").stdout == "unchanged s1  0 events\n"
    assert run("--vault", folder, "diary", "list").stderr == "The diary has no entry yet.\n"


def test_whose_handoff_there_is_not_is_told(folder: Path, run: Run) -> None:
    for command in ("latest", "list"):
        assert run("--vault", folder, "handoff", command).stderr == "There is no handoff.\n"
        assert run("--vault", folder, "handoff", command, "--to", "tester").stderr == "There is no handoff to tester.\n"


def test_a_number_of_two_jobs_is_asked_back(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for job in ("api", "web"):
        kb.handoff_create("a", "b", git=False, job=job)
    with pytest.raises(AmbiguousId):
        kb.handoff_show("handoff-001")


def test_an_unknown_pattern_is_named_all_the_same(folder: Path, open_kb: Open) -> None:
    made = open_kb(folder).handoff_create("a", "b", patterns=["sem-404"], git=False)
    assert made.handoff.relevant_patterns == ("sem-404",)
    assert "sem-404" in made.notices[0]


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"from_agent": " "}, UsageError),
        ({"to_agent": ""}, UsageError),
        ({"done": [SECRET]}, SecretRefused),
        ({"artifacts": [SECRET]}, SecretRefused),
        ({"git_state": SECRET}, SecretRefused),
    ],
)
def test_what_is_refused(told: dict[str, object], error: type[Exception], folder: Path, open_kb: Open) -> None:
    with pytest.raises(error):
        open_kb(folder).handoff_create(**({"from_agent": "a", "to_agent": "b", "git": False} | told))  # type: ignore[arg-type]
    assert not (folder / "memory/handoffs").exists()


def test_dry_runs_write_nothing(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    assert "+from_agent: a" in kb.handoff_create("a", "b", git=False, dry_run=True).run.diff
    assert "+current_task: T" in kb.ledger_set("a", task="T", git=False, dry_run=True).run.diff
    assert sorted(one.name for one in (folder / "memory").iterdir() if not one.name.startswith(".")) == ["config.yaml"]


def test_a_handoff_of_any_text_reads_back(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    done = ["# head", "- dash", "```\n---\nid: x\n---", "## Known issues", "1. one\n\n   two"]
    made = kb.handoff_create("a", "b", done=done, known_issues=["last"], git=False)
    shown = kb.handoff_show(made.handoff.id)
    assert (shown.done, shown.known_issues) == (tuple(done), ("last",))


def test_two_processes_take_two_numbers(folder: Path, home: Path) -> None:
    code = (
        "import sys; from memory_kb import KnowledgeBase\n"
        "with KnowledgeBase.open(sys.argv[1], sys.argv[2]) as kb:\n"
        "    for number in range(4): kb.handoff_create(sys.argv[3], 'b', done=[str(number)], git=False)\n"
    )
    environment = clean_environment(home) | {"PYTHONPATH": str(REPOSITORY)}
    made = [subprocess.Popen([sys.executable, "-c", code, folder, home, name], env=environment) for name in ("x", "y")]
    assert [one.wait(60) for one in made] == [0, 0]
    assert sorted(one.stem for one in (folder / "memory/handoffs").iterdir()) == [f"handoff-{number:03d}" for number in range(1, 9)]


# -- git -----------------------------------------------------------------------------------


@needs_git
def test_what_git_says(repository: Path, open_kb: Open) -> None:
    kb = open_kb(repository)
    (repository / "code.py").write_text("two\n")
    (repository / "größe new.py").write_text("new\n")
    state = kb.handoff_create("a", "b").handoff.git_state
    assert isinstance(state, dict)
    commit = git(repository, "rev-parse", "HEAD")[:12]
    assert state == {"branch": "main", "last_commit": commit, "subject": "First words", "dirty_files": ["code.py", "größe new.py"]}
    assert kb.handoff_show("1").git_state == state
    ledger = kb.ledger_set("a", task="T").ledger.as_mapping
    assert ledger["state"] == {"files_modified": [], "uncommitted_changes": True, "last_git_commit": commit}


@needs_git
def test_the_memories_themselves_are_no_changes(repository: Path, open_kb: Open) -> None:
    kb = open_kb(repository)
    for _ in range(2):
        assert kb.ledger_set("a", task="T").ledger.as_mapping["state"]["uncommitted_changes"] is False
    assert kb.handoff_create("a", "b").action == "created"
    assert kb.handoff_create("a", "b").action == "known"


@needs_git
def test_a_new_repository_a_rename_and_a_worktree(tmp_path: Path, repository: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert read_git_state(fresh, {}) is None
    git(fresh, "init", "-q")
    state = read_git_state(fresh, {})
    assert state
    assert (state.branch, state.commit, state.subject) == ("main", None, None)
    git(repository, "mv", "code.py", "renamed.py")
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    moved, detached = read_git_state(repository, {}, ("memory",)), read_git_state(tmp_path / "tree", {})
    assert moved
    assert detached
    assert moved.dirty_files == ("renamed.py",)
    assert (detached.branch, detached.commit, detached.dirty_count) == (None, moved.commit, 0)


def test_without_git(tmp_path: Path) -> None:
    assert read_git_state(tmp_path, {"PATH": str(tmp_path)}) is None
    assert read_git_state(tmp_path / "nowhere", {}) is None


def test_many_files_are_counted() -> None:
    state = parse_status("# branch.oid (initial)\0" + "".join(f"? f{number:04d}\0" for number in range(250)))
    assert (len(state.dirty_files), state.dirty_count, state.commit) == (100, 250, None)


# -- the command ---------------------------------------------------------------------------


def test_the_commands(folder: Path, run: Run, tmp_path: Path) -> None:
    vault = ("--vault", folder)
    assert run(*vault, "ledger", "list").stderr.strip() == "No agent has a ledger yet."
    assert run(*vault, "handoff", "latest", "--json").stdout.strip() == "{}"
    set_ = json.loads(run(*vault, "ledger", "set", "eng", "--task", "T", "--completed", "S", "--file", "a", "--uncommitted", "--json").stdout)
    assert (set_["agent_id"], set_["tasks_completed"], set_["state"]["uncommitted_changes"], set_["action"]) == ("eng", 1, True, "created")
    shown = run(*vault, "ledger", "show", "eng", "--json").stdout
    (tmp_path / "told.json").write_text(shown.replace('"T"', '"U"'))
    assert run(*vault, "ledger", "set", "--json-file", tmp_path / "told.json").returncode == 0
    assert "U" in run(*vault, "ledger", "show", "eng").stdout
    (tmp_path / "told.json").write_text("[1]")
    assert run(*vault, "ledger", "set", "eng", "--json-file", tmp_path / "told.json").returncode == 4
    assert run(*vault, "ledger", "set").returncode == 2
    assert run(*vault, "ledger", "show", "nobody").returncode == 4
    made = json.loads(
        run(*vault, "handoff", "create", "--from", "a", "--to", "b", "--done", "X.", "--known-issue", "Y.", "--no-git", "--json").stdout
    )
    assert (made["id"], made["context"]["what_was_done"], made["context"]["git_state"]) == ("handoff-001", "X.", None)
    assert "X." in run(*vault, "handoff", "show", "1").stdout
    assert json.loads(run(*vault, "handoff", "list", "--json").stdout)["handoffs"][0]["to_agent"] == "b"
    assert "would create" in run(*vault, "handoff", "create", "--from", "a", "--to", "c", "--dry-run").stderr
    assert run(*vault, "handoff", "create", "--from", "a").returncode == 2
