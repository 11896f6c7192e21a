"""The documentation is executed: what the README and the manual show is what happens."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import REPOSITORY, clean_environment
from forking import command

from memory_kb.markdown.fields import frontmatter_schema

_CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
_RANDOM = re.compile(r"\b[0-9a-f]{8}((?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?\b")
_SECONDS = re.compile(r" +\d+\.\d\d s\b")
_NOW = {"MEMORY_KB_NOW": "2026-11-21T12:00:00+00:00"}
_ENVIRONMENT = _NOW | {"MEMORY_KB_VAULT": "sample_vault/project", "MEMORY_KB_HOME": "sample_vault/global"}


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A folder that holds a copy of the sample vault."""
    shutil.copytree(REPOSITORY / "sample_vault", tmp_path / "sample_vault", ignore=shutil.ignore_patterns(".memory-kb"))
    return tmp_path


def _execute(line: str, folder: Path, environment: Mapping[str, str] = _ENVIRONMENT) -> str:
    words = shlex.split(line)
    assert words[0] == "memory-kb"
    done = subprocess.run(
        command(*words[1:]),
        cwd=folder,
        env=clean_environment(folder / "home") | dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return done.stdout


def _play(block: str, folder: Path) -> str:
    """Run the commands of a transcript and return it as it really is."""
    return "".join(
        f"{line}\n{_execute(line[2:], folder, _NOW)}" for line in block.splitlines() if line.startswith("$ ")
    )


def _without_ids(text: str) -> str:
    return _SECONDS.sub(" 0.00 s", _RANDOM.sub(lambda found: "xxxxxxxx-xxxx" if found[1] else "xxxxxxxx", text))


@pytest.mark.slow
def test_readme_transcripts_are_what_happens(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    readme = REPOSITORY / "README.md"
    text = readme.read_text(encoding="utf-8")
    renewed = text
    for block in _CONSOLE.findall(text):
        real = _play(block, folder)
        if _without_ids(real) != _without_ids(block):
            renewed = renewed.replace(block, real)
    if os.environ.get("MEMORY_KB_RENEW"):
        readme.write_text(renewed, encoding="utf-8")
    else:
        assert renewed == text


def test_the_sample_vault_has_nothing_to_mend(sample: Path) -> None:
    assert _execute("memory-kb lint", sample) == "Nothing to fix.\n"


def test_the_schema_of_the_frontmatter_is_current() -> None:
    page = REPOSITORY / "docs" / "frontmatter.schema.json"
    text = json.dumps(frontmatter_schema(), indent=2) + "\n"
    if os.environ.get("MEMORY_KB_RENEW"):
        page.write_text(text, encoding="utf-8")
    else:
        assert page.read_text(encoding="utf-8") == text, "run scripts/docs"


def test_generated_pages_are_current() -> None:
    pages = sorted(page for page in (REPOSITORY / "docs").glob("*.md") if "[[[cog" in page.read_text(encoding="utf-8"))
    assert {"commands.md", "python-api.md", "schema.md", "settings.md"} <= {page.name for page in pages}
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "--diff", *pages],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"run scripts/docs\n{done.stdout}{done.stderr}"


def test_links_in_the_documentation_lead_somewhere() -> None:
    for page in (*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_architecture_names_modules_that_exist_and_lists_two_rooms_whole() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms: dict[str, set[str]] = {}
    for file in (REPOSITORY / "memory_kb").rglob("*.py"):
        rooms.setdefault(file.parent.name, set()).add(file.stem)
    named = set(re.findall(r"(?<![\w/])([a-z_]+)/([a-z_]+)(?!\w|/|\.\w|\.md)", page))
    assert {(room, name) for room, name in named if room in rooms and name not in rooms[room]} == set()
    for room in ("learning", "index"):
        table = page.partition(f"The room `{room}`, file by file:")[2].partition("|---|---|")[2].partition("\n\n")[0]
        listed = {name for row in table.splitlines() for name in re.findall(r"`([a-z_]+)\*?`", row[: row.find("|", 1)])}
        left_out = {name for name in rooms[room] - listed if not name.startswith(("__", "postgres"))}
        assert (listed - rooms[room], left_out) == (set(), set())
