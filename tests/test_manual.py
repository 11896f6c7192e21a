"""The manual is executed: whoever types what a page says sees what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from conftest import REPOSITORY
from manual import agrees, play, read_steps, renewed

PAGES = [page for page in sorted((REPOSITORY / "docs").glob("*.md")) if read_steps(page.read_text(encoding="utf-8"))]


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("sh") and shutil.which("git")), reason="needs a shell and git")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_says_is_what_happens(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    steps = read_steps(text)
    real = renewed(text, steps, play(steps, tmp_path, text))
    if os.environ.get("MEMORY_KB_RENEW"):
        page.write_text(real, encoding="utf-8")
    else:
        assert real == text, "run scripts/docs"


def test_a_transcript_that_is_not_what_happens_is_noticed(tmp_path: Path) -> None:
    page = "```console\n$ echo one 3f9a0c12\none 69712e00\n$ echo two \\\n> three\ntwo\n```\n\n```text\nno output of anything\n```\n"
    steps = read_steps(page)
    outputs = play(steps, tmp_path, page)
    assert renewed(page, steps, outputs) == page.replace("69712e00", "3f9a0c12").replace(
        "three\ntwo\n", "three\ntwo three\n"
    )
    assert renewed(page, steps, [outputs[0], "two\n"]) == page


def test_files_programs_and_folders_go_from_block_to_block(tmp_path: Path) -> None:
    page = (
        "```sh\nmkdir a\ncd a\n```\nWrite `x/y.md`:\n```markdown x/y.md\n$HOME\n```\n```sh unexecuted\nexit 1\n```\n"
        '```python\nprint(open("x/y.md").read())\n```\n\n```text\n$HO...\n\n```\n```console\n$ pwd\n/home/ana/a\n```\n'
    )
    steps = read_steps(page)
    assert renewed(page, steps, play(steps, tmp_path, page)) == page


def test_commands_without_a_transcript_must_succeed(tmp_path: Path) -> None:
    page = "```sh\ntrue\nfalse\n```\n```sh\ntrue\n```\n"
    with pytest.raises(AssertionError, match="the page stops at"):
        play(read_steps(page), tmp_path, page)


@pytest.mark.parametrize(
    ("said", "real", "same"),
    [
        pytest.param("a 3f9a0c12\n", "a 69712e00\n", True, id="ids differ"),
        pytest.param("in  0.12 s\n", "in 10.07 s\n", True, id="seconds differ"),
        pytest.param("a ... d\n", "a b c d\n", True, id="dots stand for anything"),
        pytest.param("a ...\n", "a b\nc\n", False, id="but for no line"),
        pytest.param("3 hits\n", "4 hits\n", False, id="numbers do not differ"),
        pytest.param("decade\n", "facade\n", False, id="words are no ids"),
    ],
)
def test_what_may_differ(said: str, real: str, same: bool) -> None:
    assert agrees(said, real) is same


def test_extras_that_the_documentation_names_exist() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for page in [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]:
        for names in re.findall(r"(?:memory-kb|\.)\[([\w,]+)\]", page.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= set(extras), f"{page.name}: {names}"


@pytest.mark.parametrize(("source", "code"), [("git+file:///a b", 0), ("", 1)])
def test_the_sample_workflow_installs_what_a_variable_names(source: str, code: int, tmp_path: Path) -> None:
    flow = yaml.safe_load((REPOSITORY / "docs/git/memories.yml").read_text(encoding="utf-8"))
    install = next(step for step in flow["jobs"]["memories"]["steps"] if step.get("name") == "Install memory-kb")
    assert install["env"] == {"SOURCE": "${{ vars.MEMORY_KB_SOURCE }}"}
    (tmp_path / "pip").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n', encoding="utf-8")
    (tmp_path / "pip").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", install["run"]],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SOURCE": source},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert min(done.returncode, 1) == code
    assert (done.stdout, "MEMORY_KB_SOURCE" in done.stderr) == ("" if code else f"<install><{source}>", bool(code))


def test_the_messages_in_the_troubleshooting_table_exist() -> None:
    page = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
    code = "\n".join(file.read_text(encoding="utf-8") for file in (REPOSITORY / "memory_kb").rglob("*.py"))
    messages = re.findall(r"^\| `([^`]+)` \|", page[page.index("## Troubleshooting") :], re.MULTILINE)
    assert len(messages) > 15
    assert [part for message in messages for part in message.split("...") if part.strip() not in code] == []


def test_links_to_headings_lead_to_one() -> None:
    for page in (*(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "README.md"):
        shown = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))  # a link in code leads nowhere
        for target, heading in re.findall(r"\]\(([^):]*)#([^)]+)\)", shown):
            assert heading in _anchors(page.parent / target if target else page), f"{page.name}: {target}#{heading}"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
