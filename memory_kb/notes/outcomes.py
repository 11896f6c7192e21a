"""The log of outcomes: which entries were credited for which task of which agent (S0-49).

It belongs to this machine, beside the log of what was shown. Losing both together costs the
credit that was not given yet and doubles none: without the other log nobody knows what an agent
was shown, and an outcome of an unknown task does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.credentials import redact
from memory_kb.notes import jsonlines
from memory_kb.plainfiles import make_folder

_NAME = "outcomes.jsonl"


class Mark(NamedTuple):
    """What an entry gets: `success`, `failure` or `mixed`, how many of these it has then, and what that added to its confidence."""

    credit: str
    total: int
    added: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task went, and what that meant for the entries that were shown.

    It is written before the notes are, with `is_done` False, and again after.

    Attributes:
        marks: entry -> its credit.
        run: the run that wrote the notes; None where there was nothing to write.
    """

    ts: str
    agent: str
    task: str
    outcome: str
    marks: Mapping[str, Mark]
    session: str | None = None
    run: str | None = None
    is_done: bool = False


class OutcomeLog:
    """The outcomes of one vault; whoever writes to it holds the vault's lock."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / _NAME

    def append(self, outcome: Outcome) -> None:
        """Write an outcome down, forced to the disk.

        Raises:
            OSError: it cannot be written.
        """
        line: dict[str, Any] = {
            name: getattr(outcome, name) for name in ("ts", "session", "agent", "task", "outcome", "run")
        }
        line = {name: text and redact(text).text for name, text in line.items()}
        line |= {"done": outcome.is_done, "entries": {name: mark._asdict() for name, mark in outcome.marks.items()}}
        make_folder(self.file.parent)
        jsonlines.append(self.file, [line], force=True)

    def read(self, agent: str, task: str) -> Iterator[Outcome]:
        """Yield the outcomes of a task of an agent, oldest first; what nobody can read is passed over."""
        return (one for one in self._read(jsonlines.mark_of(task)) if (one.agent, one.task) == (agent, task))

    def read_all(self) -> Iterator[Outcome]:
        """Yield all outcomes, oldest first."""
        return self._read()

    def read_about(self, task: str, session: str | None) -> Iterator[Outcome]:
        """Yield the outcomes that may be about a task or a session, oldest first: those that name it, or no session."""
        named = (jsonlines.mark_of(one) for one in (task, session) if one is not None)
        return self._read(*named, b'"session": null')

    def _read(self, *words: bytes) -> Iterator[Outcome]:
        for line in jsonlines.read(self.file, *words):
            entries, agent, task = line.get("entries"), line.get("agent"), line.get("task")
            if not isinstance(agent, str) or not isinstance(task, str) or not isinstance(entries, dict):
                continue
            marks = {name: mark for name, value in entries.items() if (mark := _read_mark(value))}
            session, run = (
                value if isinstance(value, str) else None for value in (line.get("session"), line.get("run"))
            )
            yield Outcome(
                str(line.get("ts")),
                agent,
                task,
                str(line.get("outcome")),
                marks,
                session,
                run,
                is_done=line.get("done") is True,
            )


def _read_mark(value: object) -> Mark | None:
    if not isinstance(value, dict) or not isinstance(value.get("credit"), str):
        return None
    total, added = value.get("total"), value.get("added")
    return Mark(value["credit"], total if type(total) is int else 0, added if type(added) in (int, float) else None)
