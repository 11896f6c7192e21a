"""Sessions are logged whole: whoever writes at once, is killed, or hands over nonsense."""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Run, clean_environment
from forking import command
from hypothesis import given
from hypothesis import strategies as st
from support import PEAK
from watching import PATIENCE, eventually

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.injected_text import mark_as_own
from memory_kb.store.session_events import (
    EVENT_TYPES,
    MAX_EVENT_TEXT,
    MAX_LINE,
    STREAMS,
    Event,
    EventFilter,
    format_event,
    parse_event,
)

Open = Callable[..., KnowledgeBase]
TOKEN = "ghp_" + "aB3dE6gH9j" * 4


def log_of(kb: KnowledgeBase, session: str) -> Path:
    return kb.vault.machine / "sessions" / f"{session}.jsonl"


def is_longer(file: Path, size: int) -> bool:
    return file.exists() and file.stat().st_size > size


def replay(kb: KnowledgeBase, session: str) -> list[Event]:
    return list(kb.sessions.replay(session))


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_an_event_is_a_line_with_the_fields_of_the_seed(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    kb.sessions.start("s", job="api", task="login", agent="coder")
    kb.sessions.append([Event(role="user", content="hi", stream="intent")], session="s")
    assert lines_of(log_of(kb, "s"))[1] == {
        "ts": "2026-11-21T12:00:00.000Z", "seq": 2, "session": "s", "job": "api", "task": "login", "agent": "coder",
        "stream": "intent", "type": "message", "role": "user", "content": "hi",
    }  # fmt: skip


def test_an_event_keeps_its_own_time_agent_and_unknown_fields(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    kb.sessions.start("s", agent="coder")
    kb.sessions.append(
        [
            parse_event(
                '{"ts": "2026-01-02T03:04:05+02:00", "agent": "reviewer", "content": "x", "mood": {"deep": [1]}}'
            )
        ],
        session="s",
    )
    event = replay(kb, "s")[1]
    assert (event.ts, event.agent, dict(event.extra)) == (
        "2026-01-02T01:04:05.000Z",
        "reviewer",
        {"mood": {"deep": [1]}},
    )


def test_ids_are_made_where_there_is_none(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    assert [kb.sessions.start().session for _ in range(2)] == ["burst_20261121T120000_001", "burst_20261121T120000_002"]
    assert kb.sessions.append([Event(content="x"), Event(content="y")]).session == "burst_20261121T120000_003"
    assert [event.content for event in replay(kb, "burst_20261121T120000_003")] == ["x", "y"]


@pytest.mark.parametrize(
    "wrong", ["../x", "a/b", "a\\b", "", ".hidden", "nul", "COM1.log", "a" * 129, "a b", "a\n", "ä", "a.", "-x"]
)
def test_an_id_cannot_leave_the_folder(wrong: str, open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    if wrong:
        with pytest.raises(UsageError):
            kb.sessions.start(wrong)
        with pytest.raises(UsageError):
            kb.sessions.append([Event(content="x", session=wrong)])
    with pytest.raises(UnreadableInput):
        list(kb.sessions.replay(wrong))
    with pytest.raises(UnreadableInput):
        kb.sessions.end(wrong)


def test_a_session_is_taken_up_again(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    assert kb.sessions.start("s").action == "started"
    assert kb.sessions.start("s").action == "resumed"
    assert [event.event for event in replay(kb, "s")] == ["start", "resume"]


def test_ending_twice_writes_once(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    kb.sessions.start("session-one")
    assert kb.sessions.end("session", outcome="success", summary="done").action == "ended"
    assert kb.sessions.end("session-one").action == "unchanged"
    assert [(event.event, event.args, event.content) for event in replay(kb, "session")][1:] == [
        ("end", {"outcome": "success"}, "done")
    ]
    with pytest.raises(UsageError, match="unknown outcome"):
        kb.sessions.end("session-one", outcome="splendid")


def test_replay_filters_by_type_and_agent(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    events = [
        Event(content="a", agent="one"),
        Event(type="tool_call", tool="Bash", agent="one"),
        Event(type="tool_call", tool="Edit", agent="two"),
    ]
    kb.sessions.append(events, session="s")
    assert [event.tool for event in kb.sessions.replay("s", EventFilter(("tool_call",)))] == ["Bash", "Edit"]
    assert [event.tool for event in kb.sessions.replay("s", EventFilter(("tool_call",), "two"))] == ["Edit"]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
OWN_FIELDS = set(Event._fields) - {"extra"}
EVENTS = st.builds(
    lambda **fields: Event(**fields),  # noqa: PLW0108 - of a named tuple it would fill in every field
    type=st.sampled_from(EVENT_TYPES),
    stream=st.none() | st.sampled_from(STREAMS),
    content=st.none() | st.text(),
    error=st.none() | st.text(max_size=20),
    ok=st.none() | st.booleans(),
    args=st.none() | st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=3),
    extra=st.dictionaries(
        st.text(min_size=1, max_size=8).filter(lambda name: name not in OWN_FIELDS), JSON_VALUES, max_size=2
    ),
)


@given(EVENTS)
def test_an_event_comes_back_as_it_was_written(event: Event) -> None:
    line = format_event(event)
    assert line.count(b"\n") == 1
    assert parse_event(line) == event


@given(
    st.binary(max_size=200)
    | JSON_VALUES.map(lambda value: json.dumps(value).encode())
    | st.just(b"[" * 100_000)
    | st.just(b"1" * 5000)
)
def test_no_line_makes_reading_fail_otherwise_than_told(line: bytes) -> None:
    try:
        event = parse_event(line)
    except ValueError as exc:
        assert str(exc) == "not a JSON object"
    else:
        assert event.type in EVENT_TYPES
        assert parse_event(format_event(event)) == event


@given(st.lists(st.text(max_size=60), min_size=1, max_size=4), st.integers(0, 300), st.data())
def test_a_torn_line_costs_itself_alone(
    open_kb: Open, folder: Path, texts: list[str], cut: int, data: st.DataObject
) -> None:
    """Wherever a killed writer stopped, what was whole stays, and the next event is whole."""
    kb = open_kb(folder)
    file = log_of(kb, "torn")
    file.unlink(missing_ok=True)
    kb.sessions.append([Event(content=text) for text in texts], session="torn")
    whole = file.read_bytes()
    torn = whole[: data.draw(st.integers(0, len(whole)))]
    file.write_bytes(torn)
    kept = [event.content for event in replay(kb, "torn")]
    assert kept == texts[: len(kept)]
    assert len(kept) >= torn.count(b"\n")
    kb.sessions.append([Event(content="after")], session="torn")
    assert file.read_bytes().startswith(torn)
    after = replay(kb, "torn")
    assert [event.content for event in after] == [*kept, "after"]
    assert [event.seq for event in after] == list(range(1, len(kept) + 2))


def test_a_torn_line_is_reported_not_raised(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    kb.sessions.append([Event(content="a")], session="s")
    with log_of(kb, "s").open("ab") as file:
        file.write(b'{"type": "mess')
    kb.sessions.append([Event(content="b")], session="s")
    problems: list[tuple[int, str]] = []
    assert [
        event.content for event in kb.sessions.replay("s", on_problem=lambda *problem: problems.append(problem))
    ] == ["a", "b"]
    assert problems == [(2, "not a JSON object")]


def _start_writer(folder: Path, home: Path, session: str, name: str, count: int) -> subprocess.Popen[bytes]:
    code = (
        "import sys; from memory_kb import KnowledgeBase; from memory_kb.store.session_events import Event\n"
        "folder, home, session, name, count = sys.argv[1:]\n"
        "with KnowledgeBase.open(folder, home) as kb:\n"
        "    kb.sessions.append((Event(content=f'{name} {n} ' + 'x' * 3000) for n in range(int(count))), session=session)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(home), session, name, str(count)], env=clean_environment(home)
    )


@pytest.mark.slow
def test_many_writers_at_once_lose_nothing(open_kb: Open, folder: Path, home: Path) -> None:
    writers = [_start_writer(folder, home, "busy", f"w{n}", 40) for n in range(6)]
    assert [writer.wait(60) for writer in writers] == [0] * 6
    events = replay(open_kb(folder), "busy")
    assert [event.seq for event in events] == list(range(1, 241))
    for n in range(6):
        own = [event.content or "" for event in events if (event.content or "").startswith(f"w{n} ")]
        assert [text.split()[1] for text in own] == [str(k) for k in range(40)]


@pytest.mark.slow
def test_killed_writers_leave_whole_events(open_kb: Open, folder: Path, home: Path) -> None:
    kb = open_kb(folder)
    for round_ in range(2):
        writers = [_start_writer(folder, home, "killed", f"w{n}", 100_000) for n in range(2)]
        size = log_of(kb, "killed").stat().st_size if round_ else 0
        eventually(functools.partial(is_longer, log_of(kb, "killed"), size + 200_000))
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
    written = kb.sessions.append([Event(content="after")], session="killed")
    events = replay(kb, "killed")
    assert [event.seq for event in events] == list(range(1, written.seq + 1))
    assert all(event.content == "after" or (event.content or "").endswith("x" * 3000) for event in events)


def test_credentials_are_not_written(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    key = (
        "-----BEGIN RSA "
        "PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn\n" * 5 + "-----END RSA " + "PRIVATE KEY-----"
    )
    events = [
        Event(content=f"push with {TOKEN} now"),
        Event(
            type="tool_call", tool="Bash", args={"env": {"DB_PASSWORD": "hunter2hunter"}, "list": [f"Bearer {TOKEN}x1"]}
        ),
        Event(type="tool_result", ok=False, error=f"denied for {TOKEN}", content=f"before\n{key}\nafter"),
        parse_event(json.dumps({"content": "x", "note": TOKEN})),
    ]
    written = kb.sessions.append(events, session="s")
    text = log_of(kb, "s").read_text(encoding="utf-8")
    assert TOKEN not in text
    assert "hunter2hunter" not in text
    assert "MIIEow" not in text
    assert set(written.redacted) == {"a GitHub token", "a password or key", "a private key"}
    assert replay(kb, "s")[0].content == "push with [redacted: a GitHub token] now"
    assert replay(kb, "s")[2].content == "before\n[redacted: a private key]\nafter"


def test_no_half_of_a_credential_is_left_at_an_edge(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    for start in (MAX_EVENT_TEXT * 3 // 4 - 20, MAX_EVENT_TEXT * 3 // 4 + 4_980):
        kb.sessions.append([Event(content="." * start + " " + TOKEN + " " + "." * 3 * MAX_EVENT_TEXT)], session="s")
    assert "aB3dE6gH9j" not in log_of(kb, "s").read_text(encoding="utf-8")


def test_what_memory_kb_said_itself_is_marked(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    events = [
        Event(content=mark_as_own("Use tabs.")),
        Event(content="Fix it.\n" + mark_as_own("Use tabs.")),
        Event(content="## Historical Learnings (from previous sessions)\n\nBackground.\n\n### a.md\nUse tabs."),
        Event(type="tool_result", tool="mcp__memory-kb__memory_recall", content="Use tabs."),
        Event(content="Our guide has a chapter ## Relevant Guidelines."),
    ]
    kb.sessions.append(events, session="s")
    assert [event.injected for event in replay(kb, "s")] == ["whole", "part", "whole", "whole", None]


@pytest.mark.slow
def test_long_texts_are_cut_and_say_so(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    events = [
        Event(content="a" * 5_000_000 + "z"),
        Event(args={"text": "\x00" * 900_000, "list": ["b" * 90_000] * 50}),
        Event(extra={"blob": "c" * 9_000_000, "more": ["d" * 150_000] * 100}),
        Event(args={"numbers": list(range(900_000))}),
        Event(args={"file_path": "a.py", "content": "e" * 260_000}),
    ]
    kb.sessions.append(events, session="s")
    assert max(map(len, log_of(kb, "s").read_bytes().splitlines())) < MAX_LINE
    first, *rest = replay(kb, "s")
    assert len(rest) == 4
    assert len(first.content or "") < MAX_EVENT_TEXT + 100
    assert "4,800,001 characters" in (first.content or "")
    assert (rest[-1].args or {})["file_path"] == "a.py"
    assert "60,000 characters" in (rest[-1].args or {})["content"]


@pytest.mark.slow
def test_a_large_session_needs_little_memory(folder: Path, home: Path) -> None:
    """150 MB with a hole of a line in it: read, appended to and indexed in one small process."""
    KnowledgeBase.open(folder, environ=clean_environment(home)).close()
    file = folder / "memory/.memory-kb/sessions/big.jsonl"
    file.parent.mkdir()
    line = format_event(Event(content="lorem ipsum dolor " * 3000, ts="2026-01-01T00:00:00.000Z", seq=1))
    with file.open("wb") as out:
        out.write(format_event(Event(content="a quokka")))
        out.seek(100_000_000)
        out.write(b"\n" + line * 900)
    assert file.stat().st_size > 145_000_000
    code = (
        f"{PEAK}import sys; from memory_kb import KnowledgeBase; from memory_kb.store.session_events import Event\n"
        "with KnowledgeBase.open(*sys.argv[1:]) as kb:\n"
        "    before = peak()\n"
        "    kb.sessions.append([Event(content='a numbat')], session='big')\n"
        "    count = sum(1 for _ in kb.sessions.replay('big'))\n"
        "    replayed = peak()\n"
        "    hits = len(kb.sessions.search('numbat OR quokka', events=True).hits)\n"
        "    indexed = peak()\n"
        "print(count, hits, (replayed - before) // 1024, (indexed - before) // 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), str(home)],
        capture_output=True,
        text=True,
        env=clean_environment(home),
        check=True,
        timeout=120,
    )
    count, hits, replayed, indexed = map(int, done.stdout.split())
    assert (count, hits) == (902, 2)
    assert replayed < 40
    assert indexed < 120


def test_a_full_disk_leaves_no_half_line(open_kb: Open, folder: Path) -> None:
    kb = open_kb(folder)
    kb.sessions.append([Event(content="a")], session="s")
    size = log_of(kb, "s").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
        with pytest.raises(OSError, match="too large: 'the log of session s'"):
            kb.sessions.append([Event(content="b" * 1000)], session="s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert log_of(kb, "s").stat().st_size == size


# The command line.


def test_a_session_from_start_to_end(run: Run, folder: Path) -> None:
    started = run("--vault", folder, "session", "start", "--agent", "coder", env={"MEMORY_KB_NOW": NOW.isoformat()})
    assert started.stdout == "burst_20261121T120000_001\n"
    session = started.stdout.strip()
    for arguments in (
        ["Always use UTC.", "--role", "user"],
        ["--tool", "Bash", "--args", '{"command": "pytest"}'],
        ["--tool", "Bash", "--failed", "--error", "2 failed"],
    ):
        assert run("--vault", folder, "session", "append", session, *arguments).returncode == 0
    assert run("--vault", folder, "session", "end", "burst", "--outcome", "failure").returncode == 0
    done = run("--vault", folder, "session", "replay", session, "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(event["type"], event.get("event"), event.get("tool"), event["agent"]) for event in events] == [
        ("event", "start", None, "coder"),
        ("message", None, None, "coder"),
        ("tool_call", None, "Bash", "coder"),
        ("tool_result", None, "Bash", "coder"),
        ("event", "end", None, "coder"),
    ]
    assert events[2]["args"] == {"command": "pytest"}
    shown = run("--vault", folder, "session", "replay", session, "--type", "message").stdout
    assert shown.count("\n") == 1
    assert "user  Always use UTC." in shown


def test_append_reads_json_lines(run: Run, folder: Path) -> None:
    lines = f'{{"role": "user", "content": "one {TOKEN}"}}\n\nnot json\n{{"type": "deployed", "session": "other"}}\n'
    done = run("--vault", folder, "session", "append", "s", "--agent", "ci", "--json", stdin=lines)
    answer = json.loads(done.stdout)
    assert (answer["session"], answer["written"], answer["seq"], answer["redacted"]) == ("s", 2, 2, ["a GitHub token"])
    assert answer["problems"] == [{"path": "stdin", "line": 3, "message": "not a JSON object; not written"}]
    replayed = [
        json.loads(line) for line in run("--vault", folder, "session", "replay", "s", "--json").stdout.splitlines()
    ]
    assert [(event["type"], event.get("event"), event["agent"], event["session"]) for event in replayed] == [
        ("message", None, "ci", "s"),
        ("event", "deployed", "ci", "s"),
    ]


def test_append_finds_its_session_by_itself(run: Run, folder: Path) -> None:
    run(
        "--vault",
        folder,
        "session",
        "append",
        stdin='{"content": "a", "session": "one"}\n{"content": "b", "session": "two"}\n',
    )
    run("--vault", folder, "session", "append", stdin='{"content": "c"}\n', env={"MEMORY_KB_SESSION": "two"})
    assert [
        len(run("--vault", folder, "session", "replay", name, "--json").stdout.splitlines()) for name in ("one", "two")
    ] == [1, 2]


def test_append_is_written_while_stdin_is_open(folder: Path, home: Path) -> None:
    append = command("--vault", folder, "session", "append", "live")
    with subprocess.Popen(
        append, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment(home)
    ) as process:
        assert process.stdin
        process.stdin.write(b'{"content": "first"}\n')
        process.stdin.flush()
        file = folder / "memory/.memory-kb/sessions/live.jsonl"
        eventually(lambda: file.exists() and file.stat().st_size)
        assert lines_of(file)[0]["content"] == "first"
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("arguments", "stdin", "code"),
    [
        (["append", "s"], "nonsense\n", 4),
        (["append", "../s"], '{"content": "x"}\n', 2),
        (["append", "s", "--tool", "Bash", "--args", "{"], None, 2),
        (["replay", "nobody"], None, 4),
        (["end", "nobody"], None, 4),
        (["search", "x", "--session", "nobody"], None, 4),
        (["import", "nothing.jsonl"], None, 4),
    ],
)
def test_errors_are_one_sentence(arguments: list[str], stdin: str | None, code: int, run: Run, folder: Path) -> None:
    done = run("--vault", folder, "session", *arguments, stdin=stdin or "")
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("memory-kb: ")
    assert "Traceback" not in done.stderr
