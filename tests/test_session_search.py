"""The index of sessions follows the files, whatever happens to either, and finds what was said."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, clean_environment
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_kb import KnowledgeBase
from memory_kb.injected_text import mark_as_own
from memory_kb.mcp.tools import Caller, memory_recall
from memory_kb.store.session_events import Event, format_event

Open = Callable[..., KnowledgeBase]

SAID = [
    Event(
        role="user", content="The flaky tests need Redis to be running.", agent="coder", ts="2026-03-01T10:00:00.000Z"
    ),
    Event(
        role="assistant",
        content="I will mark the flaky test and wait for redis.",
        agent="reviewer",
        ts="2026-03-02T10:00:00.000Z",
    ),
    Event(
        type="tool_call",
        tool="Bash",
        args={"command": "pytest -k edge-case"},
        agent="coder",
        ts="2026-03-03T10:00:00.000Z",
    ),
    Event(
        type="tool_result",
        tool="Bash",
        ok=False,
        error="ImportError: foo.bar",
        content="1 failed",
        agent="coder",
        ts="2026-03-04T10:00:00.000Z",
    ),
    Event(type="event", event="deployed", content="検索機能を本番に出した", ts="2026-03-05T10:00:00.000Z"),
]


def database(kb: KnowledgeBase) -> Path:
    return kb.vault.machine / ".sessions.db"


def remove_database(kb: KnowledgeBase) -> None:
    for file in kb.vault.machine.glob(".sessions.db*"):
        file.unlink()


def log_of(kb: KnowledgeBase, session: str) -> Path:
    return kb.vault.machine / "sessions" / f"{session}.jsonl"


@pytest.fixture
def kb(open_kb: Open, folder: Path) -> KnowledgeBase:
    made = open_kb(folder)
    made.sessions.start("s", job="api", task="login")
    made.sessions.append(SAID, session="s")
    made.sessions.append(
        [Event(content="Redis is somebody else's business", ts="2026-04-01T00:00:00Z")], session="other"
    )
    return made


def seqs(kb: KnowledgeBase, query: str = "", **how: object) -> list[tuple[str, int]]:
    return [(hit.session, hit.seq) for hit in kb.sessions.search(query, events=True, **how).hits]  # type: ignore[arg-type]


QUERIES = [
    ("flaky AND running", [("s", 2)]),  # and
    ("running OR mark", [("s", 2), ("s", 3)]),  # or
    ("flaky NOT mark", [("s", 2)]),  # not
    ('"flaky tests need"', [("s", 2)]),  # phrase
    ("busi* OR importe*", [("other", 1), ("s", 5)]),  # prefix
    ("content:running", [("s", 2)]),  # column
    ("tool:bash AND edge", [("s", 4)]),  # tool column
    ("marking waits", [("s", 3)]),  # stems
    ("edge-case", [("s", 4)]),  # hyphen
    ("foo.bar", [("s", 5)]),  # dot
    ("ImportError:", [("s", 5)]),  # colon
    ('"flaky tests', [("s", 2), ("s", 3)]),  # open quote
    ("(running", [("s", 2)]),  # open bracket
    ("edge-case NOTHERE", [("s", 4)]),  # one of the words
    ("検索", [("s", 6)]),  # two signs
    ("機能を本番", [("s", 6)]),  # five signs
    ("検", [("s", 6)]),  # one sign
    ("検索 AND deployed", []),  # signs and a word that is not there
]


def test_the_query_language(kb: KnowledgeBase) -> None:
    for query, expected in QUERIES:
        assert sorted(seqs(kb, query)) == expected, query


def test_a_phrase_in_two_scripts_finds_its_short_words_too(kb: KnowledgeBase) -> None:
    kb.sessions.append([Event(content="機能 עם من में")], session="mixed")
    for word in ("עם", "من", "में"):
        assert [session for session, _ in seqs(kb, f'"機能 {word}"')] == ["mixed"], word


@given(st.text(max_size=30) | st.text(alphabet='"*:^()-+{}ANDORT ab.,検', max_size=20))
def test_no_query_fails(kb: KnowledgeBase, query: str) -> None:
    result = kb.sessions.search(query.encode("utf-8", "replace").decode())
    assert result.hits or result.degraded or query.strip()


def test_a_query_without_words_says_so(kb: KnowledgeBase) -> None:
    assert kb.sessions.search("---").hits == ()
    assert kb.sessions.search("---").degraded


FILTER_RESULTS: list[tuple[dict[str, Any], list[int]]] = [
    ({"agent": "coder"}, [2]),
    ({"job": "api"}, [2, 3]),
    ({"task": "login", "agent": "reviewer"}, [3]),
    ({"job": "web"}, []),
    ({"type": ["message"]}, [2, 3]),
    ({"type": "tool_call"}, []),
    ({"since": "2026-03-02"}, [3]),
    ({"until": "2026-03-01"}, [2]),
    ({"since": "2026-03-01T10:00:01Z", "until": "2026-03-02T10:00:00Z"}, []),
    ({"session": "s"}, [2, 3]),
    ({"session": "s", "limit": 1}, [2]),
    ({"limit": 0}, []),
]


def test_filters(kb: KnowledgeBase) -> None:
    for how, expected in FILTER_RESULTS:
        assert sorted(seq for session, seq in seqs(kb, "flaky", **how)) == expected, how


def test_a_hit_says_where_it_is_and_what_fits(kb: KnowledgeBase) -> None:
    hit = kb.sessions.search("running").hits[0]
    assert (hit.rank, hit.burst_id, hit.session, hit.job, hit.task, hit.agent, hit.role, hit.type) == (
        1, "s", "s", "api", "login", "coder", "user", "message",
    )  # fmt: skip
    assert hit.content_snippet == "The flaky tests need Redis to be >>>running<<<."
    assert hit.score > 0
    with log_of(kb, "s").open("rb") as file:
        file.seek(hit.offset)
        assert json.loads(file.readline())["seq"] == hit.seq
    assert kb.sessions.search("本番").hits[0].content_snippet == "検索機能を>>>本番<<<に出した"


def test_a_long_text_is_elided_around_what_fits(kb: KnowledgeBase) -> None:
    kb.sessions.append([Event(content="word " * 500 + "the quokka sleeps " + "word " * 500)], session="s")
    snippet = kb.sessions.search("quokka").hits[0].content_snippet
    assert ">>>quokka<<<" in snippet
    assert snippet.startswith("...")
    assert snippet.endswith("...")
    assert len(snippet) < 200


def test_without_a_query_the_newest_come_first(kb: KnowledgeBase) -> None:
    assert seqs(kb, type="message") == [("other", 1), ("s", 3), ("s", 2)]
    assert seqs(kb, type="deployed") == [("s", 6)]


def test_what_memory_kb_said_itself_is_found_only_when_asked_for(kb: KnowledgeBase) -> None:
    kb.sessions.append(
        [Event(content=mark_as_own("Prefer wombats.")), Event(content=f"Do it. {mark_as_own('Prefer wombats.')}")],
        session="own",
    )
    assert seqs(kb, "wombats") == []
    assert seqs(kb, "do AND it", session="own") == [("own", 2)]
    assert seqs(kb, "wombats", with_injected=True) == [("own", 1)]


def test_an_append_is_found_and_only_it_is_read(kb: KnowledgeBase) -> None:
    assert seqs(kb, "numbat") == []
    before = _rowids(kb)
    kb.sessions.append([Event(content="a numbat")], session="s")
    assert seqs(kb, "numbat") == [("s", 7)]
    assert _rowids(kb)[: len(before)] == before


def _rowids(kb: KnowledgeBase) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(database(kb))) as connection:
        return connection.execute("SELECT id, session FROM events ORDER BY id").fetchall()


def test_a_torn_line_is_found_once_it_is_whole(kb: KnowledgeBase) -> None:
    line = format_event(Event(content="a numbat", seq=7, session="s"))
    with log_of(kb, "s").open("ab") as file:
        file.write(line[:20])
        file.flush()
        assert seqs(kb, "numbat") == []
        file.write(line[20:-1])
        file.flush()
        assert seqs(kb, "numbat") == [("s", 7)]
    kb.sessions.append([Event(content="another numbat")], session="s")
    assert sorted(seqs(kb, "numbat")) == [("s", 7), ("s", 8)]


def test_a_replaced_truncated_or_deleted_file_is_read_anew(kb: KnowledgeBase) -> None:
    assert seqs(kb, "flaky", limit=9)
    whole = log_of(kb, "s").read_bytes()
    lines = whole.splitlines(keepends=True)
    log_of(kb, "s").write_bytes(b"".join(lines[:2]))
    assert seqs(kb, "flaky") == [("s", 2)]
    log_of(kb, "s").write_bytes(whole.replace(b"flaky", b"shaky") + lines[-1])
    assert seqs(kb, "flaky") == []
    assert len(seqs(kb, "shaky")) == 2
    log_of(kb, "s").unlink()
    assert seqs(kb, "shaky") == []
    assert seqs(kb, "redis") == [("other", 1)]
    with closing(sqlite3.connect(database(kb), isolation_level=None)) as connection:
        connection.execute("INSERT INTO events_fts (events_fts, rank) VALUES ('integrity-check', 1)")


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["append", "tear", "cut", "replace", "delete", "look"]), max_size=8))
def test_any_history_gives_the_index_of_the_files(open_kb: Open, folder: Path, steps: list[str]) -> None:
    kb = open_kb(folder)
    file = log_of(kb, "h")
    file.unlink(missing_ok=True)
    for number, step in enumerate(steps):
        if step == "append":
            kb.sessions.append([Event(content=f"quokka {number}"), Event(content="wombat")], session="h")
        elif step == "tear" and file.exists():
            with file.open("ab") as out:
                out.write(b'{"content": "quok')
        elif step == "cut" and file.exists():
            os.truncate(file, file.stat().st_size * 2 // 3)
        elif step == "replace" and file.exists():
            file.write_bytes(format_event(Event(content=f"a new quokka {number}")) * (number + 1))
        elif step == "delete":
            file.unlink(missing_ok=True)
        elif step == "look":
            kb.sessions.search("quokka")
    looked = kb.sessions.search("quokka OR wombat", limit=100, events=True).hits
    remove_database(kb)
    assert kb.sessions.search("quokka OR wombat", limit=100, events=True).hits == looked
    assert len(looked) == sum(
        "quokka" in (event.content or "") or "wombat" in (event.content or "") for event in _replay(kb, "h")
    )


def _replay(kb: KnowledgeBase, session: str) -> list[Event]:
    return list(kb.sessions.replay(session)) if log_of(kb, session).exists() else []


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100, None], ids=["emptied", "overwritten", "holes"])
def test_a_damaged_database_is_made_again(damage: bytes | None, kb: KnowledgeBase) -> None:
    expected = seqs(kb, "flaky")
    if damage is None:
        content = bytearray(database(kb).read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        damage = bytes(content)
    remove_database(kb)
    database(kb).write_bytes(damage)
    result = kb.sessions.search("flaky", events=True)
    assert [(hit.session, hit.seq) for hit in result.hits] == expected
    assert bool(result.degraded) is bool(damage)
    assert kb.sessions.search("flaky", events=True).degraded == ()


def test_somebody_elses_database_is_kept(kb: KnowledgeBase) -> None:
    with closing(sqlite3.connect(database(kb))) as connection:
        connection.execute("CREATE TABLE precious (x)")
        connection.commit()
    assert seqs(kb, "flaky")
    with closing(sqlite3.connect(database(kb).with_name(".sessions.db.broken"))) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]


def test_another_version_is_made_again(kb: KnowledgeBase) -> None:
    expected = seqs(kb, "flaky")
    with closing(sqlite3.connect(database(kb))) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute("DELETE FROM events")
        connection.commit()
    assert seqs(kb, "flaky") == expected


@pytest.mark.slow
def test_searching_while_others_write_and_search(folder: Path, home: Path, open_kb: Open) -> None:
    code = (
        "import sys; from memory_kb import KnowledgeBase; from memory_kb.store.session_events import Event\n"
        "with KnowledgeBase.open(*sys.argv[1:3]) as kb:\n"
        "    for n in range(12):\n"
        "        kb.sessions.append([Event(content=f'quokka {sys.argv[3]} {k}') for k in range(10)], session='shared')\n"
        "        result = kb.sessions.search('quokka', limit=1000, events=True)\n"
        "        assert not result.degraded, result.degraded\n"
        "        own = [hit for hit in result.hits if f' {sys.argv[3]} ' in hit.content_snippet]\n"
        "        assert len(own) == 10 * (n + 1), (len(own), n)\n"
    )
    command = [sys.executable, "-c", code, str(folder), str(home)]
    running = [subprocess.Popen([*command, f"w{n}"], env=clean_environment(home)) for n in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    hits = open_kb(folder).sessions.search("quokka", limit=1000, events=True).hits
    assert sorted(hit.seq for hit in hits) == list(range(1, 361))


def test_a_locked_database_still_answers(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seqs(kb, "flaky")
    kb.sessions.append([Event(content="more flaky")], session="s")
    monkeypatch.setattr("memory_kb.index.session_index.BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(database(kb), isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        result = kb.sessions.search("flaky", events=True)
    assert len(result.hits) == 2
    assert "newest events may be missing" in result.degraded[0]


def test_search_on_the_command_line(run: Run, kb: KnowledgeBase) -> None:
    done = run("--vault", kb.vault.folder, "session", "search", "running", "--json")
    (hit,) = json.loads(done.stdout)["hits"]
    assert (hit["burst_id"], hit["seq"], hit["content_snippet"]) == (
        "s",
        2,
        "The flaky tests need Redis to be >>>running<<<.",
    )
    shown = run("--vault", kb.vault.folder, "session", "search", "fail*", "--agent", "coder")
    assert shown.stdout.splitlines() == [
        " 1. s:5  2026-03-04 10:00  tool_result Bash, coder, api, login",
        "    1 >>>failed<<< ImportError: foo.bar",
    ]
    nothing = run("--vault", kb.vault.folder, "session", "search", "nothinglikethis")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "No event fits.\n")


def test_a_session_is_one_hit_and_plain_words_are_alternatives(kb: KnowledgeBase) -> None:
    result = kb.sessions.search("how did the flaky redis tests in production go?")
    assert [(hit.session, hit.rank) for hit in result.hits] == [("s", 1), ("other", 2)]
    assert result.degraded == ()
    assert ">>>" in result.hits[0].content_snippet
    assert {hit.session for hit in kb.sessions.search("flaky", session="s").hits} == {"s"}
    assert len(kb.sessions.search("flaky", session="s").hits) == 2


def test_sessions_by_their_outcome(kb: KnowledgeBase, run: Run, folder: Path) -> None:
    kb.sessions.end("s", outcome="success", only_close=True)
    assert [hit.session for hit in kb.sessions.search("redis", outcome="success").hits] == ["s"]
    assert kb.sessions.search("redis", outcome="failure").hits == ()
    assert {hit.session for hit in kb.sessions.search("redis").hits} == {"s", "other"}
    done = run("--vault", folder, "session", "search", "redis", "--outcome", "success")
    assert "s:" in done.stdout
    assert "other" not in done.stdout
    assert run("--vault", folder, "session", "search", "redis", "--outcome", "good").returncode == 2


def test_past_sessions_from_the_everyday_search(kb: KnowledgeBase, run: Run, folder: Path) -> None:
    kb.sessions.end("s", outcome="success", only_close=True)
    query = ("--vault", folder, "search", "the redis timeout", "--kind", "session", "--json")
    assert {hit["session"] for hit in json.loads(run(*query).stdout)["hits"]} == {"s", "other"}
    assert [hit["session"] for hit in json.loads(run(*query, "--outcome", "success").stdout)["hits"]] == ["s"]
    assert [hit["session"] for hit in json.loads(run(*query, "--agent", "coder").stdout)["hits"]] == ["s"]
    assert [hit["session"] for hit in json.loads(run(*query, "--since", "2026-03-31").stdout)["hits"]] == ["other"]
    assert run("--vault", folder, "search", "x", "--outcome", "success").returncode == 2
    assert run("--vault", folder, "search", "x", "--kind", "session", "--kind", "fact").returncode == 2


def test_past_sessions_by_mcp(kb: KnowledgeBase) -> None:
    answer = memory_recall(
        kb, {"query": "the redis timeout", "kind": ["session"], "agent": "coder"}, Caller("coder", "s1")
    )
    assert answer.count("- s ") == 1
    assert "other" not in answer
