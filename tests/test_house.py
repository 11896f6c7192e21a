"""The house keeps its shape: layers, sizes, public names, and what starting loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run

import memory_kb

HEAVY = (
    *("yaml", "numpy", "frontmatter", "hashlib", "tempfile", "asyncio", "logging", "openai", "google", "watchdog"),
    *("markdown_it", "http", "tokenizers", "onnxruntime", "concurrent"),
)
#: What a search without options, an unchanged index and a hook do without, too.
SLOW_TO_LOAD = ("click", "dataclasses", "inspect", "yaml", "memory_kb.reports", "memory_kb.index.note_chunks")


#: What no class that a frequent command loads needs to be.
UNUSED = {"dataclasses"}
#: The named tuples that were loaded and whose annotations had to be parsed from text; Python prepares its parser for that.
PARSED_TUPLES = """[
    f"{one.__module__}.{one.__name__}"
    for module in list(sys.modules.values())
    for one in vars(module).values()
    if isinstance(one, type) and one.__module__.startswith("memory_kb") and hasattr(one, "_fields")
    and "ForwardRef" in str(one.__annotations__)
]"""


def _run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env={"PYTHONPATH": str(REPOSITORY)},
    )


def test_rooms_import_only_what_they_may() -> None:
    done = _run_python(
        "-c", "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_names_can_be_imported() -> None:
    for name in memory_kb.__all__:
        assert getattr(memory_kb, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = memory_kb.nothing


@pytest.mark.parametrize(
    ("calls", "left_out"),
    [
        (
            [
                ("auto", "search", "flaky"),
                ("none", "search", "flaky"),
                ("openai", "search", "flaky", "--mode", "text"),
                ("openai", "search", '"flaky tests"'),
                ("openai", "search", "--file", "a.py"),
            ],
            HEAVY,
        ),
        (
            [
                ("none", "search", "flaky"),
                ("none", "search", "flaky", "tests", "--limit", "3", "--json"),
                ("none", "index"),
            ],
            (*HEAVY, *SLOW_TO_LOAD),
        ),
        ([("none", "search", "--help"), ("none", "links", "--help")], (*HEAVY, "memory_kb.kb")),
        (
            [("none", "--help"), ("none", "learn", "--help")],
            ("memory_kb.vault", "memory_kb.markdown", "memory_kb.index"),
        ),
        ([("none", "list")], ("memory_kb.git", "memory_kb.web_queries")),
        ([("none", "status")], ("subprocess", "unicodedata")),
        ([("none", "index")], ("json",)),
    ],
    ids=[
        "a search loads nothing heavy",
        "a plain command loads no parser",
        "help loads no vault",
        "the words of options load no room",
        "a list loads no git",
        "a status starts nothing",
        "an index without changes loads no JSON",
    ],
)
def test_what_is_not_needed_is_not_loaded(
    calls: list[tuple[str, ...]], left_out: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    """Starting fast is a feature."""
    (tmp_path / "note.md").write_text("---\ntitle: One\n---\nflaky tests\n", encoding="utf-8")
    os.utime(tmp_path / "note.md", (1_700_000_000, 1_700_000_000))  # saved long before it is indexed: no doubt about it
    assert run("--vault", tmp_path, "index", "--no-embed").returncode == 0
    code = (
        f"import os, sys; os.environ.update(MEMORY_KB_MODELS={str(tmp_path)!r}, HOME={str(tmp_path)!r})\n"
        "from memory_kb.cli import run\n"
        f"for provider, *words in {calls!r}:\n"
        "    os.environ['MEMORY_KB_EMBEDDINGS_PROVIDER'] = provider\n"
        f"    code = run(['--vault', {str(tmp_path)!r}, '--home', {str(tmp_path / 'home')!r}, *words])\n"
        f"    print('said', code, *(name for name in {left_out!r} if name in sys.modules))"
    )
    done = _run_python("-c", code)
    said = [line for line in done.stdout.splitlines() if line.startswith("said")]
    assert said == ["said 0"] * len(calls), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("none", ("index",)),
        ("none", ("search", "flaky")),
        ("auto", ("index",)),
        ("auto", ("search", "flaky")),
        ("none", ("hook", "prompt")),
        ("none", ("hook", "session-start")),
    ],
    ids=["index", "search", "index that may embed", "search by meaning", "prompt", "session-start"],
)
def test_a_frequent_command_loads_only_what_it_uses(
    provider: str, words: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "note.md").write_text("---\nid: one\nkind: rule\n---\nflaky quokka tests\n", encoding="utf-8")
    os.utime(tmp_path / "note.md", (1_700_000_000, 1_700_000_000))
    assert run("--vault", tmp_path, "index", "--no-embed").returncode == 0
    payload = json.dumps({"session_id": "s1", "cwd": str(tmp_path), "prompt": "why are the quokka tests flaky?"})
    code = (
        f"import io, os, sys; os.environ.update(MEMORY_KB_EMBEDDINGS_PROVIDER={provider!r}, HOME={str(tmp_path)!r})\n"
        f"sys.stdin = io.TextIOWrapper(io.BytesIO({payload.encode()!r}))\n"
        f"sys.argv[1:] = [*{words!r}, '--vault', {str(tmp_path)!r}, '--home', {str(tmp_path / 'home')!r}]\n"
        f"os._exit = lambda code: print('\\nsaid', code, {UNUSED!r} & {{*sys.modules}}, {PARSED_TUPLES})\n"
        "from memory_kb.cli import main\n"
        "main()"
    )
    assert _run_python("-c", code).stdout.splitlines()[-1] == "said 0 set() []"


@pytest.mark.parametrize(
    ("event", "left_out"),
    [("prompt", (*HEAVY, *SLOW_TO_LOAD)), ("session-start", (*HEAVY, "memory_kb.store.writer"))],
    ids=["a prompt loads no parser", "the start of a session loads no writer"],
)
def test_a_hook_that_says_something_loads_nothing_heavy(
    event: str, left_out: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "memory" / "rules").mkdir(parents=True)
    (tmp_path / "memory" / "rules" / "one.md").write_text(
        "---\nid: r1\nkind: rule\n---\nFlaky quokka tests of the gateway need Redis.\n", encoding="utf-8"
    )
    os.utime(tmp_path / "memory" / "rules" / "one.md", (1_700_000_000, 1_700_000_000))
    (tmp_path / "memory" / "CONTINUITY.md").write_text("The quokka tests of the gateway are flaky.\n", encoding="utf-8")
    assert run("--vault", tmp_path, "index", "--no-embed").returncode == 0
    told = json.dumps(
        {"session_id": "s1", "cwd": str(tmp_path), "prompt": "why are the quokka tests of the gateway flaky?"}
    )
    code = (
        f"import io, os, sys; os.environ.update(MEMORY_KB_EMBEDDINGS_PROVIDER='none', HOME={str(tmp_path)!r})\n"
        f"sys.stdin = io.TextIOWrapper(io.BytesIO({told.encode()!r}))\n"
        "from memory_kb.cli.hook import HookArguments, answer_hook\n"
        f"answer_hook(HookArguments({event!r}, vault={str(tmp_path)!r}, home={str(tmp_path / 'home')!r}))\n"
        f"print([name for name in {left_out!r} if name in sys.modules])"
    )
    done = _run_python("-c", code)
    assert "Redis" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("[]"), done.stdout + done.stderr
