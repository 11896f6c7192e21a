"""When a page has a large vault examined in the background, and how its workers end."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from memory_kb.web import site
from memory_kb.workers import NamedVault, Workers

if TYPE_CHECKING:
    import pytest

#: Seconds since the moment before, whether something changed since the last look, and whether one is begun.
MOMENTS = [(0, False, True), (59, True, False), (2, True, True), (599, False, False), (2, False, True)]


def test_a_look_is_begun_when_something_changed_or_the_last_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(site, "time", SimpleNamespace(monotonic=lambda: now))
    looks = site.BackgroundLooks(NamedVault.absolute(str(tmp_path), str(tmp_path / "home")))
    try:
        for seconds, is_due, is_begun in MOMENTS:
            now += seconds
            assert looks.begin("status", is_due=is_due) is is_begun
            while looks.begin("status", is_due=False):
                time.sleep(0.05)
    finally:
        looks.end()


def test_workers_may_be_closed_twice(tmp_path: Path) -> None:
    workers = Workers(NamedVault(str(tmp_path), str(tmp_path / "home"), {"HOME": str(tmp_path)}), lambda _: None)
    assert workers.reading.submit(lambda kb: kb.vault.folder).result() == tmp_path
    workers.close()
    workers.close()
