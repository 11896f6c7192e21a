"""The sessions there are, by their events."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memory_kb.notes.events import NoEvent
from memory_kb.notes.sessionlog import SessionFiles, read_lines

#: An event that comes after the end opens the session again.
_STATEMENT = """
WITH seen AS (
    SELECT m.session, count(e.id) AS events, min(e.id) AS first, max(e.id) AS last
    FROM file_meta m LEFT JOIN events e ON e.session = m.session GROUP BY m.session
)
SELECT s.session, {agent}, {job}, {task}, f.ts, l.ts, s.events, CASE WHEN l.event IS 'end' THEN 'ended' ELSE 'open' END, l.offset
FROM seen s LEFT JOIN events f ON f.id = s.first LEFT JOIN events l ON l.id = s.last
WHERE (:agent IS NULL OR EXISTS (SELECT 1 FROM events e WHERE e.session = s.session AND e.agent = :agent))
  AND (:job IS NULL OR EXISTS (SELECT 1 FROM events e WHERE e.session = s.session AND e.job = :job))
  AND (NOT :only_open OR l.event IS NOT 'end')
ORDER BY l.ts DESC, s.session DESC
"""
_FIRST = "(SELECT e.{0} FROM events e WHERE e.session = s.session AND e.{0} IS NOT NULL ORDER BY e.id LIMIT 1)"


@dataclass(frozen=True, slots=True)
class SessionSeen:
    """A session as a list shows it.

    Attributes:
        agent: who works in it, the first that its events name; job and task likewise.
        started: the moment of its first event; None where there is none yet.
        last: the moment of its last event.
        events: how many there are.
        state: `open`, or `ended` where nothing came after its end.
        outcome: how it went, where its end says so.
    """

    session: str
    agent: str | None
    job: str | None
    task: str | None
    started: str | None
    last: str | None
    events: int
    state: str
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class SessionList:
    """Sessions, the one with the newest event first, how many fit in all, and how far that can be trusted."""

    sessions: tuple[SessionSeen, ...]
    total: int
    degraded: tuple[str, ...] = ()


def list_sessions(
    connection: sqlite3.Connection,
    files: SessionFiles,
    *,
    only_open: bool = False,
    agent: str | None = None,
    job: str | None = None,
) -> tuple[SessionSeen, ...]:
    """Return the sessions that fit, the one with the newest event first; those without any come last."""
    statement = _STATEMENT.format(**{name: _FIRST.format(name) for name in ("agent", "job", "task")})
    rows = connection.execute(statement, {"only_open": only_open, "agent": agent, "job": job})
    return tuple(_seen(row, files) for row in rows)


def _seen(row: Sequence[Any], files: SessionFiles) -> SessionSeen:
    *fields, offset = row
    one = SessionSeen(*fields)
    return one if one.state == "open" else replace(one, outcome=_outcome(files.path(one.session), offset))


def _outcome(file: Path, offset: int) -> str | None:
    """Return the outcome that the end of a session names; its arguments stand in the session's file alone."""
    try:
        event = next(line.parse() for line in read_lines(file, offset))
    except (OSError, NoEvent, StopIteration):
        return None
    outcome = (event.args or {}).get("outcome") if event else None
    return outcome if isinstance(outcome, str) else None
