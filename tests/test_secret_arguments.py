"""No argument that is stored may hold a credential: texts, titles, tags, jobs, names of agents, sessions and files."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from conftest import Run, clean_environment, write_files
from forking import command
from mcp_client import ask, stdio
from repositories import Clone

from memory_kb import KnowledgeBase
from memory_kb.errors import MemoryKBError, SecretRefused

# Put together here, so that no file holds anything that looks real.
KEY = "ghp_" + "aB3dE6gH9j" * 4
Open = Callable[..., KnowledgeBase]
Verb = Callable[[KnowledgeBase], object]

REFUSED: dict[str, Verb] = {
    "text": lambda kb: kb.learn(f"Use {KEY}."),
    "title": lambda kb: kb.learn("Use the key.", title=f"The key {KEY}"),
    "tag": lambda kb: kb.learn("Use the key.", tags=["ci", KEY]),
    "file pattern": lambda kb: kb.learn("Use the key.", applies_to=[f"src/{KEY}/*.py"]),
    "job": lambda kb: kb.learn("Use the key.", job=KEY),
    "task": lambda kb: kb.learn("Use the key.", job="api", task=KEY),
    "session": lambda kb: kb.sessions.start(KEY),
    "episode's event": lambda kb: kb.episode(f"Deployed with {KEY}."),
    "episode's agent": lambda kb: kb.episode("Deployed.", agent=KEY),
    "episode's tag": lambda kb: kb.episode("Deployed.", tags=[KEY]),
    "ledger's agent": lambda kb: kb.ledgers.set(KEY, goal="Ship it."),
    "ledger's task": lambda kb: kb.ledgers.set("coder", task=f"Rotate {KEY}."),
    "procedure's name": lambda kb: kb.procedure(f"Rotate {KEY}", ["Open the page."]),
    "procedure's step": lambda kb: kb.procedure("Rotate the key", [f"Enter {KEY}."]),
    "premortem's title": lambda kb: kb.premortem("It may fail.", title=KEY),
    "assumption": lambda kb: kb.assume("planned", approach=f"Use {KEY}."),
    "milestone": lambda kb: kb.assume(KEY, approach="Use the key."),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_an_argument_with_a_credential_is_refused(folder: Path, open_kb: Open, call: Verb) -> None:
    with pytest.raises(MemoryKBError, match="GitHub token"):
        call(open_kb(folder))
    assert found_in(folder) == []


def test_a_new_name_with_a_credential_is_refused(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    learned = kb.learn("Use the key.", title="The key")
    for how in ({"title": True}, {"file": True}, {}):
        with pytest.raises(MemoryKBError):
            kb.rename(learned.id, f"key {KEY}" if how else KEY, **how)
    assert found_in(folder) == []


def test_what_is_logged_is_cleaned_in_every_field(folder: Path, run: Run) -> None:
    run("session", "start", "s1", "--vault", folder, "--job", KEY, "--task", KEY, "--agent", KEY)
    event = {
        "type": "tool_call",
        "role": KEY,
        "tool": KEY,
        "call_id": KEY,
        "args": {KEY: [KEY]},
        "content": KEY,
        "mood": {KEY: KEY},
    }
    run("session", "append", "s1", "--vault", folder, stdin=json.dumps(event))
    run("context", "Rotate the key", "--vault", folder, "--agent", KEY, "--label", KEY, "--file", KEY)
    run("outcome", KEY, "Rotate the key", "success", "--vault", folder)
    run("search", f"what is {KEY}", "--vault", folder)
    run("session", "end", "s1", "--vault", folder, "--outcome", "success", "--summary", f"Used {KEY}.")
    assert (folder / "memory/.memory-kb/sessions/s1.jsonl").exists()
    assert found_in(folder) == []


def test_a_note_that_holds_one_already_can_still_be_moved_and_retired(folder: Path, open_kb: Open) -> None:
    write_files(folder, {"memory/learnings/old.md": f"---\nid: old\n---\nThe key is {KEY}.\n"})
    kb = open_kb(folder)
    assert kb.rename("old", "older").changes
    assert kb.forget("older").run


def test_the_refusal_says_what_and_where(folder: Path, open_kb: Open) -> None:
    with pytest.raises(SecretRefused) as caught:
        open_kb(folder).learn(f"Deploys need a key.\nIt is {KEY}.")
    assert "line 2: It is ghp_aB3d…" in str(caught.value)
    assert KEY not in str(caught.value)


def test_only_a_person_at_a_terminal_may_override(folder: Path, home: Path, run: Run) -> None:
    told = run("learn", f"The sample is {KEY}.", "--allow-secret", "--vault", folder)
    assert told.returncode == 2
    assert "on a terminal only" in told.stderr
    assert found_in(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("learn", f"The sample is {KEY}."),
        ("episode", f"Deployed with {KEY}."),
        ("handoff", "create", "--from", "coder", "--to", "tester", "--done", f"Tried {KEY}."),
        ("ledger", "set", "coder", "--goal", f"Parse {KEY}."),
        ("skills", "create", "Parse", "--step", f"Enter {KEY}."),
        ("procedure", "Parse", f"Enter {KEY}."),
        ("premortem", f"It may not parse {KEY}."),
        ("assume", "planned", "--approach", f"Parse {KEY}."),
        ("rename", "known", f"The sample {KEY}", "--title"),
        ("review", "edit", "waits", f"The sample is {KEY}."),
    ],
    ids=lambda words: words[0],
)
def test_a_person_at_a_terminal_may_override(folder: Path, home: Path, words: tuple[str, ...]) -> None:
    write_files(
        folder,
        {
            "memory/learnings/known.md": "---\nid: known\ntitle: The sample\n---\nIt is parsed.\n",
            "memory/review/waits.md": "---\nid: waits\ntype: fact\nstatus: proposed\n---\nIt is parsed.\n",
        },
    )
    refused = on_terminal(home, *words, "--vault", str(folder))
    assert "--allow-secret" in refused
    assert found_in(folder) == []
    on_terminal(home, *words, "--allow-secret", "--vault", str(folder))
    assert [path for path in found_in(folder) if ".memory-kb" not in path]


def on_terminal(home: Path, *words: str) -> str:
    """Return what a command prints on a terminal."""
    main, other = pty.openpty()
    subprocess.run(command(*words), stdin=other, stdout=other, stderr=other, env=clean_environment(home), check=False)
    os.close(other)
    printed = b""
    # A terminal returns what is waiting, at times a line at a time, and an error at the end.
    with contextlib.suppress(OSError):
        while part := os.read(main, 65536):
            printed += part
    os.close(main)
    return printed.decode()


def test_no_tool_of_a_model_takes_the_override(folder: Path, home: Path) -> None:
    async def try_all() -> None:
        async with stdio(folder, home, "--profile", "full") as client:
            assert not [
                tool.name for tool in (await client.list_tools()).tools if "secret" in json.dumps(tool.input_schema)
            ]
            told = await ask(client, "memory_learn", text=f"Use {KEY}.", allow_secret=True)
            assert told.is_error
            told = await ask(client, "memory_learn", text="Use the key.", title=KEY)
            assert told.is_error

    anyio.run(try_all)
    assert found_in(folder) == []


def test_the_hook_scans_the_first_commit(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "new"
    write_files(folder, {"memory/config.yaml": "", "memory/learnings/till.md": f"The till opens with {KEY}.\n"})
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    clone = Clone(folder, home)
    hook = folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).parent.parent / "docs/git/pre-commit", hook)
    clone.git("add", "-A")
    told = clone.git("commit", "-q", "-m", "first", may_fail=True)
    assert not clone.git("rev-parse", "--verify", "-q", "HEAD", may_fail=True).strip(), told
    (folder / "memory/learnings/till.md").write_text("The till opens with the key of the safe.\n")
    clone.git("add", "-A")
    clone.git("commit", "-q", "-m", "first")


def found_in(folder: Path) -> list[str]:
    """Return the files below a folder whose bytes or path hold the key."""
    key = KEY.encode()
    return [
        str(file.relative_to(folder))
        for file in sorted(folder.rglob("*"))
        if KEY in str(file.relative_to(folder)) or (file.is_file() and key.lower() in file.read_bytes().lower())
    ]
