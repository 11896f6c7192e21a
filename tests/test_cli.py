"""The command line as a stranger meets it: real processes, exit codes, streams."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run, clean_environment, write_files

from memory_kb.cli.app import _VERBS

NOTES = {
    "guide/retries.md": "# Retries\n\nRetry the handshake before asserting that the stream is flaky.\n",
    "guide/backup.md": "---\ntitle: Backups\ntags: [ops]\n---\nThe nightly backup runs at two.\n",
    "ünïcode.md": "Grüße aus der Küche.\n",
}


@pytest.fixture
def notes(vault: Callable[[Files], Path]) -> Path:
    """A plain folder of three notes."""
    return vault(NOTES)


def test_first_search_indexes_and_answers(run: Run, notes: Path) -> None:
    done = run("--vault", notes, "search", "flaky handshake")
    assert done.returncode == 0
    assert "guide/retries.md:1-3" in done.stdout
    assert done.stderr == ""


def test_search_json_has_the_promised_form(run: Run, notes: Path) -> None:
    answer = json.loads(run("search", "backup", "--vault", notes, "--json").stdout)
    assert sorted(answer) == ["degraded", "freshness", "hits", "mode", "query"]
    assert answer["query"] == "backup"
    assert answer["mode"] == "text"
    assert answer["degraded"] == []
    assert answer["freshness"] == {"generation": 1, "pending": 0}
    hit = answer["hits"][0]
    names = ["rank", "id", "title", "kind", "type", "scope", "status", "path", "line", "end_line", "score", "parts", "text"]
    assert list(hit) == names
    assert sorted(hit["parts"]) == ["bm25", "prominence", "relevance", "scope", "vector"]
    assert (hit["rank"], hit["title"], hit["path"], hit["line"], hit["end_line"]) == (1, "Backups", "guide/backup.md", 5, 5)
    assert hit["text"] == "The nightly backup runs at two."


def test_index_json_has_the_promised_form(run: Run, notes: Path) -> None:
    (notes / "broken.md").write_text("---\ntitle: [\n---\ntext\n", encoding="utf-8")
    report = json.loads(run("--vault", notes, "index", "--json").stdout)
    assert {name: report[name] for name in ("added", "changed", "removed", "unchanged", "embedded")} == {
        "added": 4,
        "changed": 0,
        "removed": 0,
        "unchanged": 0,
        "embedded": 0,
    }
    assert [(problem["path"], problem["line"]) for problem in report["problems"]] == [("broken.md", 3)]
    assert isinstance(report["seconds"], float)


def test_learn_json_has_the_promised_form(run: Run, notes: Path) -> None:
    first = json.loads(run("--vault", notes, "learn", "Water the plants on Friday.", "--json").stdout)
    again = json.loads(run("--vault", notes, "learn", "Water the plants on Friday.", "--json").stdout)
    assert sorted(first) == ["action", "id", "path"]
    assert (first["action"], again["action"]) == ("created", "reinforced")
    assert first["id"] == again["id"]
    assert first["path"] == f"learnings/water-the-plants-on-friday-{first['id'][:8]}.md"


@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_has_help_with_an_example(run: Run, verb: str) -> None:
    done = run(verb, "--help")
    assert done.returncode == 0
    assert f"memory-kb {verb}" in done.stdout.split("\n", 1)[1]


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


def test_init_makes_a_vault_once(run: Run, tmp_path: Path) -> None:
    first = run("init", tmp_path / "p")
    memory = tmp_path / "p" / "memory"
    assert first.returncode == 0
    assert (memory / ".memory-kb" / ".gitignore").read_text(encoding="utf-8").endswith("*\n")
    (memory / "MEMORY.md").write_text("mine", encoding="utf-8")
    again = run("init", tmp_path / "p")
    assert again.returncode == 0
    assert (memory / "MEMORY.md").read_text(encoding="utf-8") == "mine"
    assert "nothing was changed" in again.stderr


@pytest.mark.parametrize("words", [("--vault", "p", "init"), ("init", "--vault", "p"), ("init", "p")])
def test_init_makes_the_vault_where_it_is_named(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert run(*words, cwd=tmp_path).returncode == 0
    assert (tmp_path / "p/memory/MEMORY.md").exists()
    assert not (tmp_path / "memory").exists()
    twice = run("init", "q", "--vault", "p", cwd=tmp_path)
    assert (twice.returncode, (tmp_path / "q").exists()) == (2, False)
    assert "named twice" in twice.stderr


def test_a_vault_is_found_from_inside(run: Run, tmp_path: Path) -> None:
    run("init", tmp_path / "p")
    inside = tmp_path / "p" / "src" / "deep"
    inside.mkdir(parents=True)
    learned = json.loads(run("learn", "The build needs Node 20.", "--json", cwd=inside).stdout)
    assert learned["path"].startswith("memory/learnings/the-build-needs-node-20-")
    assert "Node 20" in run("search", "node", cwd=inside).stdout


def test_show_takes_ids_prefixes_and_places(run: Run, vault: Callable[[Files], Path]) -> None:
    folder = vault({"a.md": "---\nid: alpha-1\n---\nFirst.\n\n---\nid: alpha-2\n---\nSecond.\n"})
    assert run("--vault", folder, "show", "alpha-2").stdout == "---\nid: alpha-2\n---\nSecond.\n"
    assert run("--vault", folder, "show", "a.md:9").stdout == "---\nid: alpha-2\n---\nSecond.\n"
    ambiguous = run("--vault", folder, "show", "alpha")
    assert ambiguous.returncode == 2
    assert "alpha-1, alpha-2" in ambiguous.stderr


def test_forget_and_delete(run: Run, notes: Path) -> None:
    learned = json.loads(run("--vault", notes, "learn", "The printer is called Gutenberg.", "--json").stdout)
    file = notes / learned["path"]
    assert run("--vault", notes, "forget", learned["id"][:6]).returncode == 0
    assert "status: retired" in file.read_text(encoding="utf-8")
    assert "Nothing found" in run("--vault", notes, "search", "printer Gutenberg").stderr
    assert "Gutenberg" in run("--vault", notes, "search", "Gutenberg", "--status", "retired").stdout
    refused = run("--vault", notes, "learn", "The printer is called Gutenberg.")
    assert refused.returncode == 6
    assert "forgotten before" in refused.stderr
    assert run("--vault", notes, "forget", learned["id"], "--delete").returncode == 0
    assert "Gutenberg" not in file.read_text(encoding="utf-8")
    assert run("--vault", notes, "learn", "the PRINTER is called   gutenberg.").returncode == 6
    assert run("--vault", notes, "learn", "The printer is called Gutenberg.", "--force").returncode == 0


def test_learn_reads_stdin(run: Run, notes: Path) -> None:
    assert run("--vault", notes, "learn", "-", stdin="From a pipe: ünï.\n").returncode == 0
    assert "From a pipe" in run("--vault", notes, "search", "pipe").stdout


def test_list_stats_links_status(run: Run, vault: Callable[[Files], Path]) -> None:
    folder = vault(
        {
            "a.md": "---\nid: a\nkind: rule\nlinks: [{to: b, relation: elaborates}]\n---\nSee [[Backups]] and [[nowhere]].\n",
            "b.md": "---\nid: b\ntitle: Backups\nstatus: retired\n---\nNightly.\n",
        }
    )
    listed = json.loads(run("--vault", folder, "list", "--json").stdout)["entries"]
    assert [(entry["id"], entry["kind"]) for entry in listed] == [("a", "rule")]
    links = json.loads(run("--vault", folder, "links", "a", "--json").stdout)
    assert [(end["relation"], end["target"], end["id"]) for end in links["outgoing"]] == [
        ("elaborates", "b", "b"),
        ("mentions", "Backups", "b"),
        ("mentions", "nowhere", None),
    ]
    incoming = json.loads(run("--vault", folder, "links", "b", "--json").stdout)["incoming"]
    assert {(end["relation"], end["id"]) for end in incoming} == {("elaborates", "a"), ("mentions", "a")}
    stats = json.loads(run("--vault", folder, "stats", "--json").stdout)
    assert (stats["files"], stats["entries"], stats["kinds"]) == (2, 2, {"rule": 1, "fact": 1})
    (folder / "c.md").write_text("new", encoding="utf-8")
    status = json.loads(run("--vault", folder, "status", "--json").stdout)
    assert (status["added"], status["changed"], status["removed"], status["pending"]) == (["c.md"], [], [], 1)


def test_lint_and_doctor_exit_with_findings(run: Run, vault: Callable[[Files], Path]) -> None:
    folder = vault(
        {
            "memory/MEMORY.md": "# Memory\n",
            "memory/rules/a.md": "---\nid: twice\nkind: rule\nimportance: 7\nlinks: [{to: gone, relation: related_to}]\n---\nText.\n",
            "memory/rules/b.md": "---\nid: twice\nkind: rule\n---\npassword: hunter2hunter2\n",
            "memory/rules/c.md": "---\nid: [\n---\nText.\n",
        }
    )
    lint = run("--vault", folder, "lint")
    assert lint.returncode == 7
    for said in (
        "memory/rules/a.md:4: importance 7 is outside 0 to 1",
        "memory/rules/a.md:7: the related_to link to 'gone' leads to no entry",
        "memory/rules/b.md:5: the id twice is also used at memory/rules/a.md:7",
        "memory/rules/b.md:5: the text contains what looks like a password or key",
        "memory/rules/c.md:3: the frontmatter is not valid YAML",
    ):
        assert said in lint.stdout
    assert "hunter2" not in lint.stdout + lint.stderr
    assert run("--vault", folder, "lint", "memory/MEMORY.md").returncode == 0
    doctor = run("--vault", folder, "doctor", "--json")
    assert doctor.returncode == 7
    assert len(json.loads(doctor.stdout)["problems"]) == 5


def test_doctor_repairs_a_drifted_index(run: Run, notes: Path) -> None:
    import sqlite3

    run("--vault", notes, "index")
    with sqlite3.connect(notes / ".memory-kb" / ".memory.db") as connection:
        connection.execute("UPDATE chunks SET content = 'tampered' WHERE source = 'guide/backup.md'")
    connection.close()
    sick = run("--vault", notes, "doctor")
    assert sick.returncode == 7
    assert "indexed differently from what it says" in sick.stdout
    assert run("--vault", notes, "doctor", "--fix").returncode == 0
    assert run("--vault", notes, "doctor").returncode == 0


def test_reading_writes_only_the_machine_folder(run: Run, notes: Path) -> None:
    before = {file: file.read_bytes() for file in notes.rglob("*") if file.is_file()}
    for verb in (["search", "backup"], ["list"], ["stats"], ["status"], ["lint"], ["doctor", "--fix"], ["index", "--rebuild"]):
        run("--vault", notes, *verb)
    after = {file: file.read_bytes() for file in notes.rglob("*") if file.is_file() and ".memory-kb" not in file.parts}
    assert after == before


def test_shared_options_work_before_and_after_the_verb(run: Run, notes: Path) -> None:
    before = run("--vault", notes, "--json", "search", "backup").stdout
    after = run("search", "backup", "--json", "--vault", notes).stdout
    assert json.loads(before)["hits"] == json.loads(after)["hits"]


def test_aliases(run: Run, notes: Path) -> None:
    for verb in ("recall", "retrieve"):
        assert "Backups" in run("--vault", notes, verb, "backup").stdout
    for verb in ("add", "remember"):
        assert run("--vault", notes, verb, f"Something to {verb}.").stdout.startswith("created ")


def test_output_can_be_cut_by_head(notes: Path, home: Path) -> None:
    write_files(notes, {f"many/{number}.md": f"backup number {number}\n" * 50 for number in range(300)})
    command = f"'{sys.executable}' -m memory_kb --vault '{notes}' search backup -k 300 --json | head -c 10; echo \" ${{PIPESTATUS[0]}}\""
    done = subprocess.run(["bash", "-c", command], capture_output=True, encoding="utf-8", env=clean_environment(home), timeout=60, check=False)
    assert done.stdout == '{"query":  0\n'
    assert done.stderr == ""


def test_colour_only_on_a_terminal(run: Run, notes: Path, home: Path) -> None:
    assert "\x1b[" not in run("--vault", notes, "search", "backup").stdout
    assert "\x1b[1m" in _on_terminal(["--vault", str(notes), "search", "backup"], clean_environment(home) | {"TERM": "xterm"})
    assert "\x1b[1m" not in _on_terminal(["--vault", str(notes), "search", "backup"], clean_environment(home) | {"TERM": "xterm", "NO_COLOR": "1"})


def _on_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    main, side = pty.openpty()
    done = subprocess.run([sys.executable, "-m", "memory_kb", *arguments], stdout=side, stderr=side, env=environment, timeout=60, check=False)
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


def test_control_characters_of_a_note_do_not_reach_the_terminal(run: Run, vault: Callable[[Files], Path]) -> None:
    folder = vault({"evil.md": "# Title \x1b]0;owned\x07\n\nbackup \x1b[2J wiped\n"})
    done = run("--vault", folder, "search", "backup")
    assert "\x1b" not in done.stdout
    assert "\\x1b" in done.stdout


def test_ctrl_c_ends_with_130(notes: Path, home: Path) -> None:
    write_files(notes, {f"many/{number}.md": f"# Note {number}\n\n" + "some words to index. " * 400 for number in range(3_000)})
    process = subprocess.Popen(
        [sys.executable, "-m", "memory_kb", "--vault", str(notes), "index"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=clean_environment(home),
    )
    database = notes / ".memory-kb" / ".memory.db-wal"
    while process.poll() is None and not (database.exists() and database.stat().st_size > 1_000_000):
        pass
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors


def test_completion_scripts(run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_MEMORY_KB_COMPLETE" in run("completion", shell).stdout


def test_a_broken_configuration_is_named_with_its_line(run: Run, tmp_path: Path) -> None:
    run("init", tmp_path)
    (tmp_path / "memory" / "config.yaml").write_text("ranking:\n  half_life_days: [\n", encoding="utf-8")
    done = run("search", "x", cwd=tmp_path)
    assert done.returncode == 3
    assert "config.yaml:3" in done.stderr


def test_a_first_line_for_head_is_enough(notes: Path, home: Path) -> None:
    write_files(notes, {f"many/{number}.md": f"note {number}" for number in range(3_000)})
    command = f"'{sys.executable}' -m memory_kb --vault '{notes}' list | head -1; echo \"${{PIPESTATUS[0]}}\""
    done = subprocess.run(["bash", "-c", command], capture_output=True, encoding="utf-8", env=clean_environment(home), timeout=60, check=False)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", ">/dev/full"], ids=["no stdout", "no stderr", "neither", "disk full"])
def test_streams_that_are_closed_or_full_give_no_traceback(notes: Path, home: Path, redirection: str) -> None:
    for verb in ("search backup", "search backup --json", "show nothing --json"):
        command = f"'{sys.executable}' -m memory_kb --vault '{notes}' {verb} {redirection}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, encoding="utf-8", env=clean_environment(home), timeout=60, check=False)
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr
        if redirection == "2>&-" and "show" not in verb:
            assert "Backups" in done.stdout


@pytest.mark.parametrize("name", ["~nosuchuser/notes", "a" * 5_000, ""], ids=["no such user", "too long", "empty"])
def test_a_vault_that_cannot_be_is_an_error_of_its_own(run: Run, name: str) -> None:
    done = run("--vault", name, "search", "x")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


def test_a_home_that_cannot_be_written_is_named(run: Run, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run("--vault", notes, "--home", tmp_path / "file", "learn", "Something.", "--scope", "global")
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


def test_reading_a_folder_named_memory_does_not_turn_its_parent_into_a_vault(run: Run, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "plain", {"a/top.md": "zebra above", "memory/inner.md": "zebra below"})
    for vault in (folder, folder / "memory", folder):
        found = json.loads(run("--vault", vault, "search", "zebra", "--json").stdout)["hits"]
    assert len(found) == 2


def test_lint_of_nothing_is_an_error(run: Run, notes: Path) -> None:
    assert run("--vault", notes, "lint", "nosuchfolder").returncode == 4
    assert run("--vault", notes, "lint", notes / "guide").returncode == 0


def test_a_slip_of_the_pen_is_recognised(run: Run, notes: Path) -> None:
    assert "Did you mean 'search'?" in run("--vault", notes, "serch", "x").stderr
    assert "memory-kb search -- foo -bar" in run("--vault", notes, "search", "foo", "-bar").stderr


def test_the_bare_command_is_its_help(run: Run) -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: memory-kb")


def test_an_answer_says_when_a_file_was_cut(run: Run, notes: Path) -> None:
    (notes / "large.md").write_text("zebra crossing\n" * 1_000, encoding="utf-8")
    answer = json.loads(run("--vault", notes, "search", "zebra", "--json", env={"MEMORY_KB_INDEX_MAX_FILE_BYTES": "2000"}).stdout)
    assert answer["hits"]
    assert "1 file too large to be indexed whole" in answer["degraded"][0]
