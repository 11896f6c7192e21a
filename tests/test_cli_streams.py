"""The command line where something is in its way: wrong calls, places that cannot be used, streams that end, and what is meant for no terminal."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import calling
import pytest
from conftest import Files, Run, clean_environment, write_files
from forking import command

from memory_kb import cli

notes = calling.notes


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["search"], 2, "nothing to search for"),
        (["search", "x", "--kind", "poem"], 2, "'poem' is not one of"),
        (["search", "x", "--since", "soon"], 2, "not a date"),
        (["search", "x", "--task", "t"], 2, "without its job"),
        (["frobnicate"], 2, "No such command"),
        (["learn", "  "], 2, "no text to learn"),
        (["learn", "the key is AKIAABCDEFGHIJKLMNOP"], 2, "AWS access key"),
        (["show", "nothing-like-it"], 4, "no entry 'nothing-like-it'"),
        (["forget", "nothing-like-it"], 4, "no entry"),
        (["--vault", "/does/not/exist", "search", "x"], 3, "does not exist"),
        (["--vault", "n" * 300, "search", "x"], 3, f"the vault cannot be opened: {'n' * 80}: File name too long"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_calls_say_what_is_wrong(run: Run, notes: Path, arguments: list[str], code: int, said: str) -> None:
    spoken = run("--vault", notes, *arguments)
    assert (spoken.returncode, spoken.stdout) == (code, "")
    assert said in spoken.stderr
    assert "Traceback" not in spoken.stderr
    as_json = run("--vault", notes, *arguments, "--json")
    assert as_json.returncode == code
    error = json.loads(as_json.stdout)
    assert sorted(error) == ["code", "error", "hint"]
    assert said in error["error"]


def test_no_vault_anywhere_says_how_to_make_one(run: Run, tmp_path: Path) -> None:
    done = run("search", "x", cwd=tmp_path)
    assert done.returncode == 3
    assert "memory-kb init" in done.stderr


def test_output_can_be_cut_by_head(notes: Path, home: Path, run: Run) -> None:
    write_files(notes, {f"many/{number}.md": f"backup number {number}\n" * 50 for number in range(300)})
    assert run("--vault", notes, "index").returncode == 0  # which may take long, and then is told
    command = f"'{sys.executable}' -m memory_kb --vault '{notes}' search backup -k 300 --json | head -c 10; echo \" ${{PIPESTATUS[0]}}\""
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        encoding="utf-8",
        env=clean_environment(home),
        timeout=60,
        check=False,
    )
    assert done.stdout == '{"query":  0\n'
    assert done.stderr == ""


def test_colour_only_on_a_terminal(run: Run, notes: Path, home: Path) -> None:
    assert "\x1b[" not in run("--vault", notes, "search", "backup").stdout
    assert "\x1b[1m" in _on_terminal(
        ["--vault", str(notes), "search", "backup"], clean_environment(home) | {"TERM": "xterm"}
    )
    assert "\x1b[1m" not in _on_terminal(
        ["--vault", str(notes), "search", "backup"], clean_environment(home) | {"TERM": "xterm", "NO_COLOR": "1"}
    )


def _on_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    main, side = pty.openpty()
    done = subprocess.run(
        command(*arguments),
        stdout=side,
        stderr=side,
        env=environment,
        timeout=60,
        check=False,
    )
    os.close(side)
    assert done.returncode == 0
    seen = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    return seen.decode()


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "backup"],
        ["list"],
        ["show", "evil"],
        ["links", "other"],
        ["why-not", "zzz", "nothing\x1b[2J"],
        ["rules", "list"],
        ["forget", "evil"],
        ["forget", "evil", "--dry-run"],
        ["session", "start", "s\x1b[2J\n1"],
    ],
    ids=" ".join,
)
def test_control_characters_of_a_note_do_not_reach_the_terminal(
    run: Run, vault: Callable[[Files], Path], arguments: list[str]
) -> None:
    name = "a\x1b]0;owned\x07\nb.md"
    evil = '---\nid: evil\ntitle: "Title \\e]0;owned\\a"\nkind: rule\n---\nbackup \x1b[2J wiped\n'
    folder = vault({name: evil, "other.md": f"---\nid: other\n---\nbackup [[evil]] [x]({quote(name)})\n"})
    done = run("--vault", folder, *arguments)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b" in done.stdout + done.stderr


def test_the_report_of_a_bug_cannot_drive_the_terminal(
    notes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a title \x1b]0;owned\x07")

    monkeypatch.setattr("memory_kb.index.listing.Listing.stats", fail)
    assert cli.run(["--vault", str(notes), "stats"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said and "\\x1b]0;owned" in said
    assert "\x1b" not in said


def test_json_quotes_control_characters_by_their_numbers(run: Run, vault: Callable[[Files], Path]) -> None:
    text = "backup \x7f\x9b2J wiped \u202eback"
    done = run("--vault", vault({"evil.md": f"{text}\n"}), "search", "backup", "--json")
    assert "\\u009b2J wiped \\u202e" in done.stdout
    assert json.loads(done.stdout)["hits"][0]["text"] == text


def test_a_note_cannot_use_the_colours_of_the_terminal(vault: Callable[[Files], Path], home: Path) -> None:
    folder = vault({"evil.md": "# Title \x1b[31mred\n\nbackup\n"})
    shown = _on_terminal(["--vault", str(folder), "search", "backup"], clean_environment(home) | {"TERM": "xterm"})
    assert "\x1b[1m" in shown
    assert "\\x1b[31mred" in shown
    assert "\x1b[31m" not in shown


def test_a_broken_configuration_is_named_with_its_line(run: Run, tmp_path: Path) -> None:
    run("init", tmp_path)
    (tmp_path / "memory" / "config.yaml").write_text("ranking:\n  half_life_days: [\n", encoding="utf-8")
    done = run("search", "x", cwd=tmp_path)
    assert done.returncode == 3
    assert "config.yaml:3" in done.stderr


def test_a_first_line_for_head_is_enough(notes: Path, home: Path) -> None:
    write_files(notes, {f"many/{number}.md": f"note {number}" for number in range(3_000)})
    line = f'{shlex.join(command("--vault", notes, "list"))} | head -1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        encoding="utf-8",
        env=clean_environment(home),
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "redirection", [">&-", "2>&-", ">&- 2>&-", ">/dev/full"], ids=["no stdout", "no stderr", "neither", "disk full"]
)
def test_streams_that_are_closed_or_full_give_no_traceback(notes: Path, home: Path, redirection: str) -> None:
    for verb in ("search backup", "show nothing --json"):
        command = f"'{sys.executable}' -m memory_kb --vault '{notes}' {verb} {redirection}"
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            encoding="utf-8",
            env=clean_environment(home),
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr
        if redirection == "2>&-" and "show" not in verb:
            assert "Backups" in done.stdout


def test_a_closed_input_is_an_empty_one(notes: Path, home: Path) -> None:
    for verb, code in (("uninstall codex", 0), ("learn -", 2)):
        command = f"'{sys.executable}' -m memory_kb --vault '{notes}' {verb} <&-"
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            encoding="utf-8",
            env=clean_environment(home),
            timeout=60,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


@pytest.mark.parametrize("name", ["~nosuchuser/notes", "a" * 5_000, ""], ids=["no such user", "too long", "empty"])
def test_a_vault_that_cannot_be_is_an_error_of_its_own(run: Run, name: str) -> None:
    done = run("--vault", name, "search", "x")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


def test_a_home_that_cannot_be_written_is_named(run: Run, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run("--vault", notes, "--home", tmp_path / "file" / "home", "learn", "Something.", "--scope", "global")
    assert done.returncode == 3
    assert "cannot be written" in done.stderr


def test_a_file_name_that_is_not_utf8_can_be_shown_and_forgotten(run: Run, notes: Path) -> None:
    file = os.fsencode(notes) + b"/n\xfe.md"
    with open(file, "wb") as stream:
        stream.write(b"The zebra crosses.\n")
    hit = json.loads(run("--vault", notes, "search", "zebra", "--json").stdout)["hits"][0]
    assert hit["path"] == "n\\xfe.md"
    assert run("--vault", notes, "show", hit["id"]).stdout == "The zebra crosses.\n"
    assert run("--vault", notes, "forget", "n\\xfe.md:1").returncode == 0
    with open(file, "rb") as stream:
        assert b"status: retired" in stream.read()


def test_lint_of_nothing_is_an_error(run: Run, notes: Path) -> None:
    assert run("--vault", notes, "lint", "nosuchfolder").returncode == 4
    assert run("--vault", notes, "lint", notes / "guide").returncode == 0


def test_a_slip_of_the_pen_is_recognised(run: Run, notes: Path) -> None:
    assert "Did you mean 'search'?" in run("--vault", notes, "serch", "x").stderr
    assert "memory-kb search -- foo -bar" in run("--vault", notes, "search", "foo", "-bar").stderr
