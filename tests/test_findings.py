"""What a session teaches is found by its events alone, once, in a form that can be kept."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import NOW, REPOSITORY
from observing import learned, session

from memory_kb.credentials import find_secret
from memory_kb.learning.observation.findings import MOST, find_learnings
from memory_kb.learning.remember import check_draft, render
from memory_kb.model import Location
from memory_kb.notes.entries import parse_document
from memory_kb.notes.events import Event, parse_event
from memory_kb.verbs.keeping import Keeping

TRANSCRIPTS = sorted((REPOSITORY / "tests" / "data" / "transcripts").glob("*.jsonl"))
BY_NAME = pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)


def events_of(file: Any) -> list[Event]:
    return [parse_event(line) for line in file.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """What `scripts/eval findings` measures."""
    loader = importlib.machinery.SourceFileLoader("eval_of_findings", str(REPOSITORY / "scripts" / "eval"))
    spec = importlib.util.spec_from_loader("eval_of_findings", loader)
    assert spec
    module: ModuleType = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    found: dict[str, Any] = module.measure_findings(REPOSITORY / "tests" / "data" / "transcripts")
    return found


def test_the_sessions_are_many_and_half_of_them_hold_nothing() -> None:
    labels = [json.loads(file.with_suffix(".expected.json").read_text(encoding="utf-8")) for file in TRANSCRIPTS]
    assert len(labels) >= 46
    assert sum(not one["expected"] for one in labels) * 2 >= len(labels)
    assert all(40 <= len(events_of(file)) <= 300 for file in TRANSCRIPTS)
    assert sum(file.stem.startswith("held-") for file in TRANSCRIPTS) == 4


def test_what_is_found_is_right_and_little_is_missed(report: dict[str, Any]) -> None:
    row = report["groups"]["tuned"]
    assert row["precision"] >= 0.92, report["sessions"]
    assert row["recall"] >= 0.9, report["sessions"]
    assert row["silent"] >= row["with nothing"] - 3


def test_sessions_that_nobody_looked_at_are_read_as_well(report: dict[str, Any]) -> None:
    row = report["groups"]["untouched"]
    assert row["precision"] >= 0.9, report["sessions"]
    assert row["recall"] >= 0.8, report["sessions"]
    assert row["silent"] == row["with nothing"]


@BY_NAME
def test_every_learning_is_one_that_can_be_kept(file: Any) -> None:
    """Short, titled, tagged, without a secret, and one entry when it is written."""
    for offer in find_learnings(events_of(file), Location(), phase="implementation"):
        draft = check_draft(offer.draft)
        fields = dict(draft.fields)
        assert len(draft.text) <= 600
        assert draft.title
        assert len(draft.title) <= 80
        assert len(draft.tags) <= 5
        assert fields["phase"] == "implementation"
        assert fields["source_events"]
        assert len(str(fields["session_task"])) <= 200
        assert find_secret(draft.text) is None
        document = parse_document(render(draft, offer.entry_id, NOW), "a.md")
        assert (len(document.entries), document.problems) == (1, ())


@BY_NAME
def test_a_session_is_read_the_same_every_time(file: Any) -> None:
    """Once from a list, once from a stream that cannot be read twice."""
    events = events_of(file)
    once, again = list(find_learnings(events, Location())), list(find_learnings(iter(events), Location()))
    assert once == again
    assert len({offer.entry_id for offer in once}) == len(once)


def test_what_is_found_is_taken_in_once(folder: Path, home: Path) -> None:
    """Through the intake of a real vault: all of it is created, and a second time nothing changes."""
    keeping = Keeping.open(folder, home, environ={"HOME": str(home.parent)}, clock=lambda: NOW)
    offers = [offer for file in TRANSCRIPTS for offer in find_learnings(events_of(file), Location())]
    taken = keeping._take_in("extract", offers)[0].taken
    assert {one.action for one in taken} <= {"created", "known"}
    assert sum(one.action == "created" for one in taken) >= 0.9 * len(offers)
    before = {path: path.read_bytes() for path in folder.rglob("*.md")}
    assert {one.action for one in keeping._take_in("extract", offers)[0].taken} == {"known"}
    assert {path: path.read_bytes() for path in folder.rglob("*.md")} == before
    assert any("proxy-tasks" in path.parts for path in before)


@BY_NAME
def test_numbers_names_and_commands_are_those_of_the_session(file: Any) -> None:
    """Every command in a learning was run, letter for letter, and every file was there."""
    raw = "\n".join(
        json.dumps(json.loads(line), ensure_ascii=False) for line in file.read_text(encoding="utf-8").splitlines()
    ).replace('\\"', '"')
    for offer in find_learnings(events_of(file), Location()):
        recovery = next((line for line in offer.draft.text.splitlines() if line.startswith("**Recovery:**")), "")
        for quoted in recovery.split("`")[1::2]:
            assert quoted.rstrip("…").replace("'", '"')[:60] in raw.replace("'", '"')


def test_a_corrective_learning_has_its_type_and_the_phase() -> None:
    """D-8: the original called everything procedural, and the phase unknown."""
    steps = (
        ("U", "Please run the tests."),
        ("-", "npm test", 'npm error Missing script: "test"'),
        ("+", "npm run test:unit"),
    )
    (offer,) = learned(*steps, phase="planning")
    fields = dict(offer.draft.fields)
    wanted = {
        "type": "corrective",
        "domain": "task",
        "importance": 0.8,
        "phase": "planning",
        "extraction_scope": "corrective",
        "session_task": "Please run the tests.",
    }
    assert {name: fields[name] for name in wanted} == wanted
    assert (offer.key, offer.origin, offer.draft.source, fields["source_events"]) == (
        "s/corrective/3",
        "s",
        "extracted",
        ["3", "5"],
    )
    assert {"npm"} <= set(offer.draft.tags)


def test_a_place_is_kept() -> None:
    place = Location("task", "api", "t1")
    steps = (("-", "npm test", 'npm error Missing script: "test"'), ("+", "npm run test:unit"))
    assert [offer.place for offer in find_learnings(session(*steps), place)] == [place]


def test_findings_come_while_the_session_is_read() -> None:
    """An endless session gives what it has."""

    def endless() -> Iterator[Event]:
        yield from session(("U", "Never push to main, please."))
        while True:
            yield from session(("+", "ls"))

    assert next(find_learnings(endless(), Location())).draft.kind == "preference"


def test_a_session_teaches_only_so_much() -> None:
    steps = [
        step
        for number in range(3 * MOST)
        for step in (
            ("-", f"make x{number}", f"error: TOKEN_{number}_X is not set"),
            ("+", f"TOKEN_{number}_X=1 make x{number}"),
        )
    ]
    assert len(learned(*steps)) == MOST


def test_memory_does_not_grow_with_the_session() -> None:
    def long_session(count: int) -> Iterator[Event]:
        for number in range(count):
            yield Event(
                seq=number,
                session="s",
                type="tool_call",
                tool="Bash",
                call_id=str(number),
                args={"command": f"make target-{number}"},
            )
            if number % 3:
                output = "Exit code 2\n" + f"compiling {number}\n" * 100 + "error: it broke"
                yield Event(seq=number, session="s", type="tool_result", call_id=str(number), ok=False, content=output)

    def peak(count: int) -> int:
        tracemalloc.start()
        assert list(find_learnings(long_session(count), Location())) == []
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(400)
    assert peak(1_200) < peak(400) + 300_000


@pytest.mark.parametrize(
    "event",
    [
        Event(),
        Event(type="tool_result", ok=False, content=None),
        Event(type="tool_result", ok=False, call_id="never called", content="connection refused"),
        Event(type="tool_call", tool=None, args=None),
        Event(type="tool_call", tool="Bash", args={"command": None}),
        Event(type="tool_call", tool="Bash", args={"command": ["bash", "-lc"]}),
        Event(type="tool_call", tool="Bash", args={"command": "echo 'unclosed"}),
        Event(type="tool_call", tool="Bash", args={"command": "&& || ; |"}),
        Event(type="tool_call", tool="apply_patch", args={"value": "*** Begin Patch\n*** Update File: \n"}),
        Event(type="tool_call", tool="Edit", args={"file_path": 7, "new_string": ["x"]}),
        Event(role="user", content="\ud800\x00 never push to main \u2028 because"),
        Event(role="assistant", content="```\nno end because we decided"),
        Event(type="event", event="start", args={"cwd": 3}),
    ],
    ids=range(13),
)
def test_odd_events_do_no_harm(event: Event) -> None:
    around = session(("-", "npm test", 'npm error Missing script: "test"'), ("+", "npm run test:unit"))
    found = list(find_learnings([event, *around, event], Location()))
    assert any("npm run test:unit" in offer.draft.text for offer in found)


@pytest.mark.parametrize(
    "text", ["no, ", "we ", "`", "a/", "never ", "E   ", "KEY_A ", "because ", "npm error ", "- ", "f(", "\t"]
)
def test_long_texts_are_read_in_time_that_grows_with_them(text: str) -> None:
    """A text of one word over and over is what makes expressions run away."""
    long = (text * 100_000)[:100_000]
    steps = [
        ("-", "pytest", long),
        ("U", long[:1_990]),
        ("A", long[:19_000]),
        ("A", long),
        ("U", long),
        ("+", long[:1_990]),
        ("+", "pytest | tail", long),
    ]
    assert len(learned(*steps)) <= 1
