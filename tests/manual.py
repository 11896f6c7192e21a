"""A page of the manual as what it tells a reader to type: played in a shell, from top to bottom.

What a block is, its first line tells:

- ```` ```console ```` is a transcript: `$ ` begins a command, what follows is its output.
- ```` ```sh ```` are commands that must succeed; ```` ```sh unexecuted ```` is not played, because it needs a network.
- ```` ```yaml memory/queries.yaml ```` (or any other language) is a file to write.
- ```` ```python ```` is a program that must succeed; a ```` ```text ```` block right behind it is its output.

All blocks of a page share one shell, whose home is an empty folder, with a copy of the sample vault where the page
speaks of it. Ids, commits, seconds and dates may differ; `...` within a line stands for any text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from conftest import REPOSITORY

_BLOCK = re.compile(r"^```(\w+)(?:[ ]+([^\n]+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_RANDOM = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{7,12}\b")
_SECONDS = re.compile(r" +\d+\.\d+ (s|ms)\b")
_MARK = "\x1e"
_GIT_CONFIG = "[user]\n\tname = Ana\n\temail = ana@example.org\n[init]\n\tdefaultBranch = master\n[advice]\n\tdetachedHead = false\n"
#: What a reader sees in place of the temporary folder.
HOME = "/home/ana"


@dataclass(frozen=True, slots=True)
class Step:
    """Something that a page has its reader do.

    Attributes:
        code: what the shell is given for it.
        output: what the page says is printed; None where it says nothing.
        start: where the output stands in the page,
        end: and where it ends.
    """

    code: str
    output: str | None
    start: int = 0
    end: int = 0


def read_steps(page: str) -> list[Step]:
    """Return what a page has its reader do, in its order."""
    steps: list[Step] = []
    blocks = list(_BLOCK.finditer(page))
    for block, following in pairwise([*blocks, None]):
        assert block is not None
        language, info, text = block[1], block[2], block[3]
        if language == "console":
            steps += _read_transcript(text, block.start(3))
        elif language == "sh" and info is None:
            steps.append(Step(f"set -e\n{text}set +e\n", None))
        elif language == "python":
            code = f"python - <<'END OF PROGRAM'\n{text}END OF PROGRAM\n"
            if following and following[1] == "text" and not page[block.end() : following.start()].strip():
                steps.append(Step(code, following[3], following.start(3), following.end(3)))
            else:
                steps.append(Step(f"set -e\n{code}set +e\n", None))
        elif info and ("/" in info or "." in info):
            assert f"`{info}`" in page[: block.start()], f"the text does not say that the block is {info}"
            name = re.sub("^~/", "$HOME/", info)
            steps.append(
                Step(f'mkdir -p "$(dirname "{name}")"\ncat > "{name}" <<\'END OF FILE\'\n{text}END OF FILE\n', None)
            )
    return steps


def _read_transcript(text: str, start: int) -> list[Step]:
    steps: list[Step] = []
    for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE):
        if part.startswith("$ "):
            lines = part.splitlines(keepends=True)
            count = 1
            while lines[count - 1].endswith("\\\n"):
                count += 1
            code = "".join([lines[0][2:], *(line.removeprefix("> ") for line in lines[1:count])])
            steps.append(Step(code, "".join(lines[count:]), start + len("".join(lines[:count])), start + len(part)))
        start += len(part)
    return steps


def play(steps: list[Step], folder: Path, page: str) -> list[str]:
    """Do the steps in a shell and return what each printed, errors included."""
    home, bin_folder = folder / "ana", folder / "bin"
    home.mkdir()
    bin_folder.mkdir()
    (home / ".gitconfig").write_text(_GIT_CONFIG, encoding="utf-8")
    for name, arguments in (("memory-kb", "-m memory_kb "), ("python", "")):
        shim = bin_folder / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n', encoding="utf-8")
        shim.chmod(0o755)
    if "sample_vault" in page:
        shutil.copytree(REPOSITORY / "sample_vault", home / "sample_vault", ignore=shutil.ignore_patterns(".memory-kb"))
    if "docs/git/" in page:
        shutil.copytree(REPOSITORY / "docs" / "git", home / "memory-kb" / "docs" / "git")
    script = folder / "page.sh"
    script.write_text(
        "".join(f"printf '{_MARK}'\n{step.code}" for step in steps) + f"printf '{_MARK}'\n", encoding="utf-8"
    )
    done = subprocess.run(
        ["sh", script],
        cwd=home,
        env=_environment(home, bin_folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    outputs = done.stdout.replace(str(home), HOME).replace(str(folder), "/usr/local").split(_MARK)[1:]
    assert len(outputs) > len(steps), f"the page stops at\n{steps[len(outputs) - 1].code}\n{outputs[-1]}"
    return outputs[:-1]


def _environment(home: Path, bin_folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{bin_folder}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONIOENCODING": "utf-8",
        "MEMORY_KB_NOW": "2026-11-21T12:00:00+00:00",
        "GIT_AUTHOR_DATE": "2026-11-21T12:00:00+00:00",
        "GIT_COMMITTER_DATE": "2026-11-21T12:00:00+00:00",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
    }


def renewed(page: str, steps: list[Step], outputs: list[str]) -> str:
    """Return a page as it is, or with all outputs of this time where one is not what it says.

    All of them, so that an id is the same wherever it stands.
    """
    if all(step.output is None or agrees(step.output, real) for step, real in zip(steps, outputs, strict=True)):
        return page
    for step, real in reversed(list(zip(steps, outputs, strict=True))):
        if step.output is not None:
            page = page[: step.start] + _with_ellipses(step.output, _closed(real)) + page[step.end :]
    return page


def agrees(said: str, real: str) -> bool:
    """Tell whether an output is what a page says, but for what differs each time."""
    said_lines, real_lines = said.splitlines(), _closed(real).splitlines()
    return len(said_lines) == len(real_lines) and all(map(_line_agrees, said_lines, real_lines))


def _line_agrees(said: str, real: str) -> bool:
    pattern = ".*".join(map(re.escape, _without_chance(said).split("...")))
    return re.fullmatch(pattern, _without_chance(real)) is not None


def _without_chance(text: str) -> str:
    return _SECONDS.sub(r" 0 \1", _RANDOM.sub("xxxxxxxx", text)).rstrip()


def _closed(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _with_ellipses(said: str, real: str) -> str:
    kept = [line for line in said.splitlines() if "..." in line and line.strip(" .")]
    return "".join(
        f"{next((line for line in kept if _line_agrees(line, found)), found)}\n" for found in real.splitlines()
    )
