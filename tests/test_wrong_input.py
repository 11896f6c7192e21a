"""What a newcomer gets wrong: one sentence, what to do next, an exit code, and no traceback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run

CASES = {
    "a misspelt verb": (["serach", "x"], 2, "No such command 'serach'. Did you mean 'search'?"),
    "a misspelt option": (["search", "x", "--limt", "3"], 2, "No such option '--limt'."),
    "no vault": (["--vault", "nowhere", "search", "x"], 3, "the vault nowhere does not exist"),
    "a file for a vault": (["--vault", "v/note.md", "search", "x"], 3, "name the folder it is in: --vault v"),
    "a file for a home": (["--vault", "v", "--home", "v/note.md", "list"], 3, "v/note.md is not a folder"),
    "an empty name": (["--vault", "", "list"], 3, "the name of the vault is empty"),
    "no value": (["--vault", "v", "learn", "x", "--tag"], 2, "Option '--tag' requires an argument."),
    "no shell": (["completion"], 2, "Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish"),
    "no such skills": (["--vault", "v", "skills", "import", "nope"], 4, "name a file, or a folder of skills"),
    "a folder for a file": (["--vault", "v", "export", "agents-md", "--file", "x"], 4, "x cannot be read: Is a"),
    "no query": (["--vault", "v", "search", " "], 2, "there is nothing to search for"),
    "no text": (["--vault", "v", "learn"], 2, "there is no text to learn"),
    "no such entry": (["--vault", "v", "show", "nope"], 4, "no entry 'nope'"),
    "no such run": (["--vault", "v", "undo", "nope"], 2, "no run 'nope'"),
    "no such session": (["--vault", "v", "commit", "--session", "x"], 2, "the end of 'session x' wrote nothing"),
    "no such transcript": (["--vault", "v", "session", "import", "nope"], 4, "name a transcript, or a folder of them"),
    "no such agent": (["--vault", "v", "uninstall", "emacs"], 2, "memory-kb knows no agent 'emacs'"),
    "a file elsewhere": (["--vault", "v", "lint", "/etc/passwd"], 4, "there is no /etc/passwd in the vault"),
    "a file above": (["--vault", "v", "lint", "../other.md"], 4, "there is no ../other.md in the vault"),
    "no such revision": (["--vault", "v", "ci"], 2, "try: memory-kb ci main..HEAD"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "v").mkdir()
    (tmp_path / "x").mkdir()
    (tmp_path / "v/note.md").write_text("Numbats eat termites.\n")
    (tmp_path / "other.md").write_text("Not of this vault.\n")
    return tmp_path


@pytest.mark.parametrize(("words", "code", "said"), CASES.values(), ids=list(CASES))
def test_a_mistake_gets_a_sentence_and_a_hint(run: Run, place: Path, words: list[str], code: int, said: str) -> None:
    done = run(*words, cwd=place)
    assert done.returncode == code
    assert said in done.stderr
    sentence, hint = done.stderr.splitlines()
    assert sentence.startswith("memory-kb: ")
    assert hint.startswith("  ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"ranking: [\n", "config.yaml:2: the file is not valid YAML"),
        (b"ranking:\n  half_life_days: long\n", "ranking.half_life_days takes a number, not 'long'"),
        (b"ranking:\n  half_life_days: -1\n", "ranking.half_life_days is out of range: -1"),
        (b"ranking: 3\n", "ranking takes a group of settings, not 3"),
        (b"watch:\n  poll: perhaps\n", "watch.poll takes true or false, not 'perhaps'"),
        (b"embeddings:\n  provider: opnai\n", "embeddings.provider is 'opnai'"),
        (b"ignore: [caf\xe9]\n", "config.yaml cannot be read: it is not UTF-8"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(run: Run, folder: Path, text: bytes, said: str) -> None:
    (folder / "memory/config.yaml").write_bytes(text)
    done = run("--vault", folder, "search", "x")
    assert (done.returncode, said in done.stderr, len(done.stderr.splitlines())) == (3, True, 2)


def test_without_git_it_says_so(run: Run, folder: Path) -> None:
    done = run("--vault", folder, "git", "install", env={"PATH": "/nowhere"})
    assert done.returncode == 3
    assert "git cannot be run" in done.stderr
    assert "Errno" not in done.stderr
    assert "is it installed" in done.stderr


def test_nothing_to_export_is_said(run: Run, folder: Path, tmp_path: Path) -> None:
    done = run("--vault", folder, "export", "agents-md", "--file", tmp_path / "AGENTS.md")
    assert "There are no policies or rules yet." in done.stderr
    assert not (tmp_path / "AGENTS.md").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_named_without_an_error_number(run: Run, place: Path) -> None:
    os.mkfifo(place / "v/pipe.md")
    done = run("--vault", place / "v", "session", "import", place / "v")
    assert done.returncode == 4
    assert "pipe.md:1: it is a link, a pipe or a device, not a plain file" in done.stderr
    assert "Errno" not in done.stderr
