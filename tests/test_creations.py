"""What runs have made is known however the log grows, shrinks or is written anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_kb.store.journal import Creations, read_creations


def line(entry_id: str, time: str = "2026-01-01T00:00:00Z", action: str = "create") -> str:
    return json.dumps({"run": "r", "time": time, "action": action, "id": entry_id}) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "decisions.jsonl"
    file.write_text(line("a") + line("x", action="fields"))
    return file


def test_without_a_log_nothing_was_made(tmp_path: Path) -> None:
    assert read_creations(tmp_path / "decisions.jsonl") == Creations()


def test_what_is_there_is_read_once(log: Path) -> None:
    known = read_creations(log)
    assert dict(known.times) == {"a": "2026-01-01T00:00:00Z"}
    assert read_creations(log, known) is known


def test_of_a_log_that_grew_only_the_rest_is_read(log: Path) -> None:
    known = read_creations(log)
    known = Creations({**known.times, "b": "kept"}, known.inode, known.size, known.last)
    with log.open("a") as stream:
        stream.write(line("c", "2026-02-01T00:00:00Z"))
    more = read_creations(log, known)
    assert list(more.times) == ["a", "b", "c"]
    assert more.since("2026-01-15") == {"b", "c"}


@pytest.mark.parametrize(
    "text", [line("d"), line("d") * 20, line("dd") + line("ee") + line("ff")], ids=["shorter", "longer", "other"]
)
def test_a_log_that_is_another_is_read_anew(log: Path, text: str) -> None:
    known = read_creations(log)
    log.write_text(text)
    assert "a" not in read_creations(log, known).times
    log.unlink()
    assert read_creations(log, known) == Creations()


def test_a_line_that_is_being_written_is_read_when_it_is_whole(log: Path) -> None:
    with log.open("a") as stream:
        stream.write(line("c")[:30])
    known = read_creations(log)
    assert "c" not in known.times
    with log.open("a") as stream:
        stream.write(line("c")[30:])
    assert set(read_creations(log, known).times) == {"a", "c"}


def test_what_the_log_forgot_is_known_by_its_list(log: Path) -> None:
    log.write_text(json.dumps({"made": ["o", "p"]}) + "\n" + line("a"))
    known = read_creations(log)
    assert set(known.times) == {"o", "p", "a"}
    assert known.since("2025") == {"a"}
