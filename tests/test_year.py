"""A year simulated: nothing is lost, nothing grows without bound, only what is meant changes.

The whole year of 200 sessions and 2,000 entries runs with MEMORY_KB_YEAR=200.
"""

from __future__ import annotations

import os

import pytest
from year import Year, entries_of

pytestmark = pytest.mark.slow

SESSIONS = int(os.environ.get("MEMORY_KB_YEAR", "20"))


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Year:
    """A year that has happened, checked after each of its sessions."""
    folder = tmp_path_factory.mktemp("year")
    (folder / "vault/memory").mkdir(parents=True)
    (folder / "vault/memory/config.yaml").write_text("")
    year = Year(folder / "vault", folder / "home", SESSIONS, 10 * SESSIONS)
    for number in range(SESSIONS):
        with year.open(number) as kb:
            before = entries_of(year.folder)
            known = {run.run for run in kb.runs()}
            written = year.live(kb, number)
            assert [step.message for step in written.steps if step.outcome == "failed"] == []
            touched = {path for run in kb.runs() if run.run not in known for path in run.files}
        after = entries_of(year.folder)
        changed = {place for place in before.keys() | after.keys() if before.get(place) != after.get(place)}
        assert {path for path, _ in changed} <= touched
    return year


def test_no_entry_is_lost(year: Year) -> None:
    there = {entry_id for _, entry_id in entries_of(year.folder)}
    assert year.learned <= there


def test_what_is_live_does_not_grow_without_bound(year: Year) -> None:
    with year.open(SESSIONS) as kb:
        counts = kb.stats().statuses
    assert counts.get("active", 0) + counts.get("compacted", 0) < 1.6 * len(year.learned)


def test_a_stale_fact_does_not_outrank_its_successor(year: Year) -> None:
    with year.open(SESSIONS) as kb:
        for service, port in year.ports.items():
            hits = kb.search(f"which port does the {service} service listen on", limit=50).hits
            told = [hit.text for hit in hits if f"The {service} service listens on port" in hit.text]
            assert f"port {port}" in told[0]


def test_ending_every_session_again_changes_nothing(year: Year) -> None:
    before = entries_of(year.folder)
    with year.open(SESSIONS - 1) as kb:
        for number in range(max(0, SESSIONS - 3), SESSIONS):
            written = kb.sessions.end(year.name(number))
            assert [step for step in written.steps if step.runs] == []
    assert entries_of(year.folder) == before
