"""The command line as a stranger meets it: what its verbs answer, in words and as JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import calling
import pytest
from conftest import Files, Run, write_files

from memory_kb.cli.app import _VERBS, call
from memory_kb.cli.output import Options

notes = calling.notes


def test_first_search_indexes_and_answers(run: Run, notes: Path) -> None:
    done = run("--vault", notes, "search", "flaky handshake")
    assert done.returncode == 0
    assert "guide/retries.md:1-3" in done.stdout
    assert done.stderr == ""


def test_a_note_that_is_a_title_alone_is_printed(run: Run, notes: Path) -> None:
    write_files(notes, {"empty.md": "---\ntitle: Billing policy\n---\n"})
    done = run("--vault", notes, "search", "billing")
    assert done.returncode == 0, done.stderr
    assert "Billing policy" in done.stdout


def test_the_lines_that_are_shown_say_what_was_asked(run: Run, notes: Path) -> None:
    lines = [f"- Item {number} of the list of things to buy." for number in range(8)]
    lines[6] = "- Oolong tea, half a pound."
    write_files(notes, {"list.md": "# Groceries\n\n" + "\n".join(lines) + "\n"})
    shown = [line.strip() for line in run("--vault", notes, "search", "oolong").stdout.splitlines()[2:]]
    assert shown == ["…", *lines[4:8]]
    assert run("--vault", notes, "search", "groceries", "-k", "1").stdout.splitlines()[2].strip() == lines[0]


def test_init_among_notes_says_how_they_are_found_again(run: Run, tmp_path: Path) -> None:
    folder = write_files(
        tmp_path / "n",
        {"README.md": "Notes.\n", "teas/green.md": "Green tea.\n", ".obsidian/a.md": "", "node_modules/b.md": ""},
    )
    said = run("init", folder).stderr
    assert (
        "1 Markdown file beside memory/ is outside of this vault. A folder of notes needs no init: remove what was made"
        in said
    )
    assert "No results" in run("--vault", folder, "search", "green").stderr
    (folder / "memory/config.yaml").unlink()
    again = run("init", folder)
    assert "made" in again.stdout and "remove" not in again.stderr  # there may be memories by now
    shutil.rmtree(folder / "memory")
    assert "teas/green.md" in run("--vault", folder, "search", "green").stdout


def test_search_json_has_the_promised_form(run: Run, notes: Path) -> None:
    answer = json.loads(run("search", "backup", "--vault", notes, "--json").stdout)
    assert sorted(answer) == ["degraded", "freshness", "hits", "mode", "query"]
    assert answer["query"] == "backup"
    assert answer["mode"] == "text"
    assert answer["degraded"] == []
    assert answer["freshness"] == {"generation": 1, "pending": 0}
    hit = answer["hits"][0]
    names = [
        "rank",
        "id",
        "title",
        "kind",
        "type",
        "scope",
        "status",
        "path",
        "line",
        "end_line",
        "score",
        "parts",
        "text",
    ]
    assert list(hit) == names
    assert sorted(hit["parts"]) == ["bm25", "prominence", "prominence_factor", "relevance", "scope", "vector"]
    assert (hit["rank"], hit["title"], hit["path"], hit["line"], hit["end_line"]) == (
        1,
        "Backups",
        "guide/backup.md",
        5,
        5,
    )
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
    assert [(problem["path"], problem["line"]) for problem in report["problems"]] == [("broken.md", 2)]
    assert isinstance(report["seconds"], float)


def test_learn_json_has_the_promised_form(run: Run, notes: Path) -> None:
    first = json.loads(run("--vault", notes, "learn", "Water the plants on Friday.", "--json").stdout)
    again = json.loads(run("--vault", notes, "learn", "Water the plants on Friday.", "--json").stdout)
    assert sorted(first) == ["action", "id", "path"]
    assert (first["action"], again["action"]) == ("created", "reinforced")
    assert first["id"] == again["id"]
    assert first["path"] == f"learnings/water-the-plants-on-friday-{first['id'][:8]}.md"


def test_every_verb_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in _VERBS:
        assert call([verb, "--help"], Options()) == 0
        assert f"memory-kb {verb}" in capsys.readouterr().out.split("\n", 1)[1]


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


def test_init_inside_a_vault_says_so(run: Run, tmp_path: Path) -> None:
    run("init", tmp_path / "p")
    deep = tmp_path / "p/src/deep"
    deep.mkdir(parents=True)
    nested = run("init", cwd=deep)
    assert (nested.returncode, (deep / "memory/MEMORY.md").exists()) == (0, True)
    assert f"This vault is inside the vault {tmp_path / 'p'}, whose notes are not searched" in nested.stderr
    assert "inside" not in run("init", cwd=deep).stderr + run("init", tmp_path / "other").stderr
    (tmp_path / "p/memory/learnings").mkdir()
    for where in ("p/memory", "p/memory/learnings"):
        refused = run("init", cwd=tmp_path / where)
        assert (refused.returncode, (tmp_path / where / "memory").exists()) == (2, False)
        assert f"it is among the notes of the vault {tmp_path / 'p'}" in refused.stderr


@pytest.mark.parametrize("file", ["p/memory", "p"])
def test_init_names_a_file_that_is_in_its_way(run: Run, tmp_path: Path, file: str) -> None:
    write_files(tmp_path, {file: "mine"})
    refused = run("init", tmp_path / "p")
    assert (refused.returncode, (tmp_path / file).read_text(encoding="utf-8")) == (3, "mine")
    assert refused.stderr.splitlines() == [
        f"memory-kb: no vault can be made in {tmp_path / 'p'}: {tmp_path / file} is a file",
        "  rename that file, or choose another folder",
    ]


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
    nothing = run("--vault", notes, "search", "printer Gutenberg").stderr
    assert "No results" in nothing and "says much" not in nothing
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
        "memory/rules/a.md:5: the related_to link to 'gone' leads to no entry",
        "memory/rules/b.md:2: the id twice is also used at memory/rules/a.md:7",
        "memory/rules/b.md:5: the text contains what looks like a password or key",
        "memory/rules/c.md:2: the frontmatter is not valid YAML",
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
    assert "the full-text index does not agree with the chunks" in sick.stdout
    assert run("--vault", notes, "doctor", "--fix").returncode == 0
    assert run("--vault", notes, "doctor").returncode == 0


def test_reading_writes_only_the_machine_folder(run: Run, notes: Path) -> None:
    before = {file: file.read_bytes() for file in notes.rglob("*") if file.is_file()}
    for verb in (
        ["search", "backup"],
        ["list"],
        ["stats"],
        ["status"],
        ["lint"],
        ["doctor", "--fix"],
        ["index", "--rebuild"],
    ):
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


def test_completion_scripts(run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_MEMORY_KB_COMPLETE" in run("completion", shell).stdout


def test_reading_a_folder_named_memory_does_not_turn_its_parent_into_a_vault(run: Run, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "plain", {"a/top.md": "zebra above", "memory/inner.md": "zebra below"})
    for vault in (folder, folder / "memory", folder):
        found = json.loads(run("--vault", vault, "search", "zebra", "--json").stdout)["hits"]
    assert len(found) == 2


def test_the_bare_command_is_its_help(run: Run) -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: memory-kb")


def test_an_answer_says_when_a_file_was_cut(run: Run, notes: Path) -> None:
    (notes / "large.md").write_text("zebra crossing\n" * 1_000, encoding="utf-8")

    def degraded(word: str) -> list[str]:
        answer = json.loads(
            run("--vault", notes, "search", word, "--json", env={"MEMORY_KB_INDEX_MAX_FILE_BYTES": "2000"}).stdout
        )
        assert bool(answer["hits"]) == (word == "zebra")
        return list(answer["degraded"])

    told = ["large.md is 15.0 kB, over index.max_file_bytes; only its first 2.0 kB are indexed"]
    assert degraded("zebra") == told
    assert degraded("nowhere")[: len(told)] == told
