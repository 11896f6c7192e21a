"""The house keeps its shape: layers, sizes, public names, and what starting loads."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run

import memory_kb
from memory_kb import KnowledgeBase

HEAVY = (
    *("yaml", "numpy", "frontmatter", "hashlib", "tempfile", "asyncio", "logging", "openai", "google", "watchdog"),
    *("markdown_it", "http", "tokenizers", "onnxruntime", "concurrent"),
)


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
    ("query", "provider"),
    [
        (["flaky"], "auto"),
        (["flaky"], "none"),
        (["flaky", "--mode", "text"], "openai"),
        (['"flaky tests"'], "openai"),
        (["--file", "a.py"], "openai"),
    ],
)
def test_a_search_loads_nothing_heavy(query: list[str], provider: str, run: Run, tmp_path: Path) -> None:
    """Starting fast is a feature: what a search of an indexed vault does not need is not loaded."""
    (tmp_path / "note.md").write_text("---\ntitle: One\n---\nflaky tests\n", encoding="utf-8")
    assert run("--vault", tmp_path, "index", "--no-embed").returncode == 0
    code = (
        f"import os, sys; os.environ.update(MEMORY_KB_EMBEDDINGS_PROVIDER={provider!r}, MEMORY_KB_MODELS={str(tmp_path)!r}, HOME={str(tmp_path)!r})\n"
        "import memory_kb.cli.app as app\n"
        f"code = app.run(['--vault', {str(tmp_path)!r}, '--home', {str(tmp_path / 'home')!r}, 'search', *{query!r}])\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = _run_python("-c", code)
    assert done.stdout.splitlines()[-1] == "0 []", done.stdout + done.stderr


def test_no_two_mixins_of_the_knowledge_base_use_one_name() -> None:
    """They share one object, so a private name of one must not be that of another; overriding says so by calling super."""
    owners: dict[str, list[type]] = {}
    for base in KnowledgeBase.__mro__[:-1]:
        for name in vars(base):
            if not name.startswith("__"):
                owners.setdefault(name, []).append(base)
    shared = {name: bases for name, bases in owners.items() if len(bases) > 1}
    meant = {name for name, bases in shared.items() if f"super().{name}(" in inspect.getsource(bases[0])}
    assert {name: [base.__name__ for base in bases] for name, bases in shared.items() if name not in meant} == {}
