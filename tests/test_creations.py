"""Which entries runs have made is known from the log, also after it was trimmed."""

from __future__ import annotations

import json
from pathlib import Path

from memory_kb.store.journal import Journal


def line(entry_id: str, time: str = "2026-01-01T00:00:00Z", action: str = "create") -> str:
    return json.dumps({"run": "r", "time": time, "action": action, "id": entry_id}) + "\n"


def test_without_a_log_nothing_was_made(tmp_path: Path) -> None:
    assert Journal(tmp_path, b"").creations() == {}


def test_what_was_made_is_known_with_its_time(tmp_path: Path) -> None:
    (tmp_path / "decisions.jsonl").write_text(line("a") + line("x", action="fields") + line("c")[:30])
    assert Journal(tmp_path, b"").creations() == {"a": "2026-01-01T00:00:00Z"}


def test_what_the_log_forgot_is_known_by_its_list(tmp_path: Path) -> None:
    (tmp_path / "decisions.jsonl").write_text(json.dumps({"made": ["o", "p"]}) + "\n" + line("a"))
    assert Journal(tmp_path, b"").creations() == {"o": "", "p": "", "a": "2026-01-01T00:00:00Z"}
