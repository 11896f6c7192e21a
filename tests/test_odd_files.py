"""Sync: files that are odd or unreadable, settings that change, and hands that meddle with the index."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from conftest import Files, Run, clean_environment, write_files
from support import PEAK, RICH, assert_equals_rebuild, found, query

from memory_kb import KnowledgeBase
from memory_kb.model import FileStat

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
Row = tuple[object, ...]

ENTRY = "---\nid: e1\nkind: pitfall\ntags: [network]\napplies_to: ['src/**']\ncreated_at: '2026-03-01'\n---\nNever retry a payment.\n"


# -- problems -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"one\ntwo \xff\n", 2, "not valid UTF-8"),
        ("zebra\n".encode("utf-16"), 1, "is UTF-16"),
        (b"one\n\nthree\x00\n", 3, "NUL bytes"),
        (b"---\nid: x\n  bad: indent\n---\ntext\n", 3, "not valid YAML"),
        (b"---\nid: x\nimportance: 7\n---\ntext\n", 3, "outside 0 to 1"),
        (b"---\nid: x\nkind: novel\n---\ntext\n", 3, "not a known word"),
        (b"---\nid: x\ntext without end\n", 1, "never closed"),
    ],
    ids=["bytes", "utf-16", "nul", "yaml", "number", "word", "unclosed"],
)
def test_a_problem_is_reported_again_while_its_file_stays_as_it_is(
    vault: Vault, open_kb: Open, content: bytes, line: int, message: str
) -> None:
    folder = vault({"memory/learnings/a.md": content, "memory/learnings/b.md": "fine\n"})
    kb = open_kb(folder)
    first, second = kb.sync(), kb.sync()
    kb.close()
    third = open_kb(folder).sync()
    assert {(problem.path, problem.line) for problem in first.problems} == {("memory/learnings/a.md", line)}
    assert any(message in problem.message for problem in first.problems)
    assert first.problems == second.problems == third.problems == open_kb(folder).status().problems
    assert (second.unchanged, third.unchanged) == (2, 2)
    (folder / "memory/learnings/a.md").write_text("mended\n")
    assert kb.sync().problems == ()


def test_nul_and_invalid_bytes_stay_searchable_text(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/learnings/a.md": b"zebra\x00camel \xff\xc3( llama\n"}))
    for word in ("llama", "zebra", "camel"):
        assert found(kb, word) == ["memory/learnings/a.md"], word


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the file system takes only valid names")
def test_a_file_whose_name_is_not_utf_8_is_indexed_under_a_readable_one(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/b.md": "camel\n"})
    with open(os.fsencode(folder / "memory/learnings") + b"/caf\xe9.md", "wb") as stream:
        stream.write(b"zebra\n")
    kb = open_kb(folder)
    assert found(kb, "zebra") == ["memory/learnings/caf\\xe9.md"]
    assert "name is not valid UTF-8" in kb.sync().problems[0].message
    assert kb.sync().is_empty


@pytest.mark.skipif(sys.platform == "win32", reason="its file systems know no such times")
@pytest.mark.parametrize("year", [1601, 1901, 2261, 2300, 2400])
def test_a_file_of_any_year_is_indexed_once(vault: Vault, open_kb: Open, year: int) -> None:
    folder = vault({"memory/learnings/a.md": "zebra\n", "memory/learnings/b.md": "camel\n"})
    moment = (date(year, 1, 2) - date(1970, 1, 1)).days * 86_400
    os.utime(folder / "memory/learnings/a.md", (moment, moment))
    kb = open_kb(folder)
    assert found(kb, "zebra camel") == ["memory/learnings/a.md", "memory/learnings/b.md"]
    assert (kb.sync().unchanged, kb.status().pending) == (2, 0)


def test_an_inode_of_64_bits_fits_the_index() -> None:
    class Found(NamedTuple):
        st_size: int = 5
        st_mtime_ns: int = 7
        st_ino: int = 2**64 - 2

    assert FileStat.of("a.md", "/a.md", cast("os.stat_result", Found())) == FileStat("a.md", "/a.md", 5, 7, -2)


@pytest.mark.parametrize(
    "content", ["é" * 1_000, "長" * 1_000, "ab\n" * 700], ids=["two bytes", "three bytes", "lines"]
)
@pytest.mark.parametrize("limit", [1_000, 1_001])
def test_a_large_file_is_indexed_up_to_the_limit_and_says_only_that(
    vault: Vault, open_kb: Open, content: str, limit: int
) -> None:
    kb = open_kb(
        vault({"memory/learnings/a.md": content, "memory/config.yaml": f"index: {{max_file_bytes: {limit}}}\n"})
    )
    report = kb.sync()
    assert ["only its first" in problem.message for problem in report.problems] == [True]
    texts = "".join(str(text) for (text,) in query(kb, "SELECT content FROM chunks ORDER BY position")).replace(
        "\n", ""
    )
    assert content.replace("\n", "").startswith(texts)
    assert len(texts.encode()) > 600


def test_a_large_file_without_an_id_is_shown_whole(vault: Vault, open_kb: Open) -> None:
    content = "zebra\n" * 500
    kb = open_kb(vault({"memory/learnings/a.md": content, "memory/config.yaml": "index: {max_file_bytes: 1000}\n"}))
    (entry,) = kb.list()
    assert kb.show(entry.id).text == kb.show("memory/learnings/a.md").text == content


def test_one_line_behind_frontmatter_is_indexed_up_to_the_limit_too(vault: Vault, open_kb: Open) -> None:
    line = "zebra " * 300_000
    kb = open_kb(
        vault({"memory/a.md": f"---\nid: a\n---\n{line}\n", "memory/config.yaml": "index: {max_file_bytes: 1000000}\n"})
    )
    assert [problem.message for problem in kb.sync().problems] == [
        "is 1.8 MB, over index.max_file_bytes; only its first 1.0 MB are indexed"
    ]
    assert [hit.id for hit in kb.search("zebra", limit=1).hits] == ["a"]


@pytest.mark.slow
def test_fifty_megabytes_in_one_file_stay_within_bounded_memory(vault: Vault, home: Path) -> None:
    folder = vault({"memory/learnings/small.md": "camel\n"})
    with (folder / "memory/learnings/huge.md").open("wb") as stream:
        for number in range(50):
            stream.write(f"zebra{number} of the herd\n".encode() * (1_000_000 // 20))
    script = (
        f"{PEAK}import sys\n"
        "from memory_kb import KnowledgeBase\n"
        "with KnowledgeBase.open(sys.argv[1]) as kb:\n"
        "    kb.search('camel', sync=False)\n"
        "    before = peak()\n"
        "    report = kb.sync()\n"
        "    hits = kb.search('zebra0').hits\n"
        "    print(peak() - before, len(hits), report.problems[0])\n"
    )
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        env=clean_environment(home),
        check=True,
    )
    grown, hits, problem = done.stdout.split(maxsplit=2)
    megabytes = int(grown) / (1_000_000 if sys.platform == "darwin" else 1_000)
    assert megabytes < 150
    assert int(hits) > 0
    assert problem.startswith("memory/learnings/huge.md:1: is ")
    assert "MB, over index.max_file_bytes" in problem


# -- settings and outside interference ------------------------------------------------------


def test_another_file_limit_rebuilds(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": "camel\n" * 100 + "zebra\n"})
    assert found(open_kb(folder), "zebra") == ["memory/learnings/a.md"]
    (folder / "memory/config.yaml").write_text("index:\n  max_file_bytes: 60\n")
    kb = open_kb(folder)
    report = kb.sync()
    assert any("settings changed" in notice for notice in report.notices)
    assert found(kb, "zebra") == []


def test_another_tokenizer_rebuilds_and_says_so(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": "The tests are flaky.\n"})
    assert found(open_kb(folder), "test") == ["memory/learnings/a.md"]
    (folder / "memory/config.yaml").write_text("index:\n  tokenizer: unicode61 remove_diacritics 2\n")
    kb = open_kb(folder)
    result = kb.search("test")
    assert result.hits == ()
    assert any("settings changed" in reason for reason in result.degraded)
    again = kb.search("tests")
    assert ([hit.path for hit in again.hits], again.degraded) == (["memory/learnings/a.md"], ())


@pytest.mark.parametrize(
    "statement", ["VACUUM", "UPDATE chunks SET rowid = rowid + 1000"], ids=["vacuum", "new rowids"]
)
def test_rows_renumbered_from_outside_change_no_answer(
    vault: Vault, open_kb: Open, tmp_path: Path, statement: str
) -> None:
    long = "\n\n".join(f"## Part {part}\n\n" + f"alpha beta{part} gamma. " * 30 for part in range(5))
    kb = open_kb(vault({f"memory/learnings/{name}.md": long for name in "abc"}))
    before = kb.search("beta3", limit=20).hits
    keys = query(kb, "SELECT rowid FROM chunks ORDER BY rowid")
    with closing(sqlite3.connect(kb.vault.machine / ".memory.db", isolation_level=None)) as connection:
        connection.execute(statement)
    was_renumbered = query(kb, "SELECT rowid FROM chunks ORDER BY rowid") != keys
    result = kb.search("beta3", limit=20)
    assert result.hits == before
    assert any("renumbered" in reason for reason in result.degraded) == was_renumbered
    assert_equals_rebuild(kb, tmp_path / "fresh", ("alpha", "beta3"))


def put_vector(kb: KnowledgeBase) -> None:
    with closing(sqlite3.connect(kb.vault.machine / ".memory.db")) as connection, connection:
        connection.execute("INSERT INTO embedding_cache VALUES ('h', 'p', 'm', 3, x'00', '2026-01-01')")


def test_cached_vectors_survive_every_rebuild(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": ENTRY})
    kb = open_kb(folder)
    kb.sync()
    put_vector(kb)
    kb.sync(rebuild=True)
    kb.close()
    (folder / "memory/config.yaml").write_text("index:\n  tokenizer: porter ascii\n")
    kb = open_kb(folder)
    kb.sync()
    kb.close()
    with closing(sqlite3.connect(kb.vault.machine / ".memory.db")) as connection:
        connection.execute("PRAGMA user_version = 77")
    kb = open_kb(folder)
    kb.sync()
    assert query(kb, "SELECT hash, model FROM embedding_cache") == [("h", "m")]


def test_deleting_the_index_changes_no_answer(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": ENTRY, "memory/rules/a.md": RICH})
    kb = open_kb(folder)
    before = kb.search("retry payment platypus").hits
    kb.close()
    shutil.rmtree(kb.vault.machine)
    assert open_kb(folder).search("retry payment platypus").hits == before


def test_the_configured_index_path_keeps_the_vault_clean(vault: Vault, home: Path, tmp_path: Path) -> None:
    folder = vault({"notes/a.md": "zebra\n"})
    with KnowledgeBase.open(
        folder, home, environ={"HOME": str(tmp_path), "MEMORY_KB_INDEX_PATH": str(tmp_path / "indexes")}
    ) as kb:
        assert found(kb, "zebra") == ["notes/a.md"]
    assert [file.name for file in folder.iterdir()] == ["notes"]
    assert not home.exists()


def test_a_vault_that_cannot_be_written_is_indexed_in_the_cache_folder() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "vault").mkdir()
        (place / "vault/a.md").write_text("zebra\n")
        (place / "cache").mkdir()
        (place / "cache").chmod(0o777)
        (place / "vault").chmod(0o555)
        user = 65534 if hasattr(os, "geteuid") and os.geteuid() == 0 else None
        env = clean_environment(place / "home") | {"XDG_CACHE_HOME": str(place / "cache")}

        def run_as_user(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "memory_kb", "--vault", str(place / "vault"), *arguments]
            return subprocess.run(
                command,
                capture_output=True,
                text=True,
                env=env,
                check=False,
                cwd="/",
                timeout=60,
                user=user,
                group=user,
            )

        try:
            is_reachable = run_as_user("--version").returncode == 0
        except PermissionError:
            is_reachable = False
        if not is_reachable:
            pytest.skip("nobody but the superuser can run this interpreter")
        done = run_as_user("search", "zebra")
        (place / "vault").chmod(0o755)
        assert (done.returncode, done.stderr) == (0, "")
        assert "a.md" in done.stdout
        assert [file.name for file in (place / "vault").iterdir()] == ["a.md"]
        assert list((place / "cache").glob("memory-kb/*/.memory.db"))


def test_many_changes_are_one_generation(vault: Vault, open_kb: Open) -> None:
    folder = vault({f"memory/learnings/{number}.md": f"note {number}\n" for number in range(500)})
    kb = open_kb(folder)
    generation = kb.search("note").freshness.generation
    for number in range(0, 500, 2):
        (folder / f"memory/learnings/{number}.md").write_text(f"changed note {number}\n")
    report = kb.sync()
    assert (report.changed, report.unchanged) == (250, 250)
    assert kb.search("note", sync=False).freshness.generation == generation + 1
    assert kb.sync().is_empty


def test_a_conflict_that_nobody_settled_is_a_finding(
    vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase]
) -> None:
    conflict = "<<<<<<< ours\nUse tabs.\n=======\nUse spaces.\n>>>>>>> theirs\n"
    kb = open_kb(
        vault(
            {
                "memory/config.yaml": "",
                "memory/a.md": f"# Style\n\nText.\n\n{conflict}",
                "memory/b.md": f"An example:\n\n```\n{conflict}```\n",
            }
        )
    )
    assert [(problem.path, problem.line) for problem in kb.lint()] == [("memory/a.md", 5)]


def test_an_edit_that_kept_size_and_time_is_found(folder: Path, run: Run) -> None:
    write_files(folder, {"memory/learnings/a.md": "Alpha walrus sleeps.\n", "memory/learnings/b.md": "Beta.\n"})
    note = folder / "memory/learnings/a.md"
    os.utime(note, ns=(10**18, 10**18))
    run("index", "--vault", folder)
    with note.open("r+b") as stream:
        stream.write(b"Gamma")
    os.utime(note, ns=(10**18, 10**18))
    told = run("status", "--check", "--vault", folder).stdout
    assert "0 new, 1 changed, 0 gone" in told
    found = run("doctor", "--vault", folder)
    assert found.returncode == 7
    assert "memory/learnings/a.md:1: is indexed differently from what it says" in found.stdout
    run("index", "--rebuild", "--vault", folder)
    assert "none" in run("status", "--check", "--vault", folder).stdout


NOTE = "---\nid: n1\ntitle: Node\n---\nThe build needs Node 22.\n"


def give_up_rights() -> None:
    """Let root, too, read only what permissions allow, in this process and those that it starts."""
    import ctypes

    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.skipif(sys.platform != "linux", reason="permissions are another matter elsewhere")
def test_a_note_without_permission_is_named_though_it_is_indexed(folder: Path, home: Path, run: Run) -> None:
    write_files(folder, {"memory/rules/a.md": NOTE, "memory/jobs/j/learnings/b.md": NOTE.replace("n1", "n2")})
    assert run("--vault", folder, "index").returncode == 0
    (folder / "memory/rules/a.md").chmod(0)
    (folder / "memory/jobs/j/learnings").chmod(0)
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder)]
    how: Any = {"capture_output": True, "text": True, "env": clean_environment(home), "preexec_fn": give_up_rights}
    try:
        found = [subprocess.run([*command, verb], check=False, **how) for verb in ("lint", "doctor")]
    finally:
        (folder / "memory/jobs/j/learnings").chmod(0o755)
    for done in found:
        assert done.returncode == 7, done.stderr
        assert "memory/rules/a.md:1: cannot be read: Permission denied" in done.stdout
        assert "memory/jobs/j/learnings/:1: cannot be listed: Permission denied" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")
def test_links_to_nothing_circles_and_pipes_are_named(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    write_files(folder, {"memory/rules/a.md": NOTE})
    kb = open_kb(folder)
    (folder / "memory/rules/lost.md").symlink_to("nowhere")
    (folder / "memory/rules/circle.md").symlink_to("circle.md")
    os.mkfifo(folder / "memory/rules/pipe.md")
    for problems in (kb.lint(), kb.doctor().problems):
        told = {problem.path: problem.message for problem in problems}
        assert "a symbolic link to nothing" in told["memory/rules/lost.md"]
        assert "a symbolic link to nothing" in told["memory/rules/circle.md"]
        assert "not a regular file" in told["memory/rules/pipe.md"]
    # A note that became a pipe since it was indexed makes nobody wait.
    kb.sync()
    (folder / "memory/rules/a.md").unlink()
    os.mkfifo(folder / "memory/rules/a.md")
    assert "not a regular file" in {one.path: one.message for one in kb.lint()}["memory/rules/a.md"]
