"""The logs of a vault beside its journal: what was shown, outcomes, what was extracted, maintenance."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.credentials import redact
from memory_kb.store.json_lines import append_lines, json_needle, read_objects, read_raw_lines, replace_lines

if TYPE_CHECKING:
    from memory_kb.vault import Vault


#: Longer queries are cut; the log is for counting, not for reading again.
_MAX_QUERY = 500
#: How much further is looked for credentials, so that none is cut in halves.
_EDGE = 1_000
#: The end of the log of retrievals that is looked through for what a session was shown, in bytes.
_MAX_LOOK = 8_000_000
_RETRIEVAL_TEXTS = ("ts", "session", "agent", "task", "verb", "query", "subagent")
#: The verb with which a session begins anew: what was shown before is gone.
START = "start"


class Retrieval(NamedTuple):
    """Some entries that were shown at a moment; what is not known is None.

    Attributes:
        verb: `search`, `context`, or another that showed them.
        task: what they were shown for; hooks name none, as nobody knows yet what it will be called.
        injected: whether they were put before an agent unasked.
        subagent: the subagent of the session that was shown them; its context is not that of the session.
    """

    ts: str
    verb: str
    ids: tuple[str, ...]
    query: str | None = None
    session: str | None = None
    agent: str | None = None
    task: str | None = None
    injected: bool = False
    subagent: str | None = None

    @property
    def is_hooked(self) -> bool:
        """Whether a hook showed them, so that they belong to the session and to no task by name."""
        return self.injected and self.task is None and self.session is not None


class Credit(NamedTuple):
    """Entries that are counted for a session, or for a day outside any.

    Attributes:
        key: the session, or `day:2026-03-01`.
        counts: what `reinforcement_count` each of them gets by it.
        is_done: False before the notes are written, True after.
    """

    key: str
    counts: Mapping[str, int]
    is_done: bool


class RetrievalLog:
    """The retrievals of one vault, and what of them is folded into the notes."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "retrievals.jsonl"

    def append(self, retrieval: Retrieval) -> None:
        """Record what was shown, if that can be written: no reading verb fails for it.

        Texts are cut; private parts and credentials are taken out of them.
        """
        line: dict[str, Any] = {}
        for name, value in retrieval._asdict().items():
            if isinstance(value, str) and value:
                line[name] = redact(value[: _MAX_QUERY + _EDGE]).text[:_MAX_QUERY]
            elif value is not None and value is not False:
                line[name] = value
        with contextlib.suppress(OSError):
            append_lines(self.file, [line])

    def credit(self, ts: str, counted: Iterable[Credit]) -> None:
        """Record what is about to be counted, or is counted."""
        lines = [{"ts": ts, "credit": one.key, "counts": dict(one.counts), "done": one.is_done} for one in counted]
        append_lines(self.file, lines)

    def read(self, session: str | None = None) -> Iterator[Retrieval]:
        """Yield the retrievals, oldest first: those of a session, or all."""
        for line in read_objects(self.file, json_needle(session) if session else b'"ids"'):
            is_wanted = not session or line.get("session") == session
            if is_wanted and isinstance(line.get("ids"), list) and isinstance(line.get("verb"), str):
                texts = {name: str(line[name]) for name in _RETRIEVAL_TEXTS if line.get(name) is not None}
                ids = tuple(map(str, line["ids"]))
                yield Retrieval(**{"ts": "", **texts}, ids=ids, injected=line.get("injected") is True)

    def shown_in(self, session: str, subagent: str | None = None) -> frozenset[str]:
        """Return the entries that were put before an agent in a session since its context was last empty.

        Those of a subagent are its own. Only the end of the log is looked through.
        """
        shown = set[str]()
        with contextlib.suppress(OSError):
            start = max(0, self.file.stat().st_size - _MAX_LOOK)
            for line in read_objects(self.file, json_needle(session), start=start):
                is_here = line.get("session") == session and line.get("subagent") == subagent
                if is_here and line.get("injected") is True:
                    if line.get("verb") == START:
                        shown.clear()
                    shown.update(map(str, line.get("ids") or ()))
        return frozenset(shown)

    def credits(self, session: str | None = None) -> Iterator[Credit]:
        """Yield what was counted, oldest first: for a session, or for all."""
        for line in read_objects(self.file, json_needle(session) if session else b'"credit"'):
            key, counts = line.get("credit"), line.get("counts")
            if (not session or key == session) and isinstance(key, str) and isinstance(counts, dict):
                good = {name: count for name, count in counts.items() if type(count) is int}
                yield Credit(key, good, line.get("done") is True)

    def trim(self, before: str) -> int:
        """Drop the lines from before a moment; return how many.

        Whoever calls this holds the vault's lock. A search that writes in the same instant may lose its line.
        """
        lines = list(read_raw_lines(self.file))
        kept = [raw for raw, line in lines if str(line.get("ts", "")) >= before]
        if len(kept) < len(lines):
            replace_lines(self.file, kept)
        return len(lines) - len(kept)


def log_shown(
    vault: "Vault",
    verb: str,
    ids: Iterable[str],
    *,
    query: str | None = None,
    session: str | None = None,
    agent: str | None = None,
    task: str | None = None,
    injected: bool = False,
    subagent: str | None = None,
) -> None:
    """Log which entries were shown, so that the end of the session can credit those that were used.

    That a session begins anew is logged where it is shown nothing, too.
    """
    shown = tuple(dict.fromkeys(ids))
    if shown or verb == START:
        session, now = session or vault.session, format_time(vault.clock())
        one = Retrieval(now, verb, shown, query, session, agent, task, injected, subagent)
        RetrievalLog(vault.machine / "log").append(one)


_OUTCOME_TEXTS = ("ts", "session", "agent", "task", "outcome", "run")


class Mark(NamedTuple):
    """What an entry gets: `success`, `failure` or `mixed`, and how many of these it has then."""

    credit: str
    total: int


class Outcome(NamedTuple):
    """How a task went, and what that meant for the entries that were shown.

    It is written before the notes are, with `is_done` False, and again after.

    Attributes:
        marks: entry -> its credit.
        run: the run that wrote the notes; None where there was nothing to write.
        used: the entries that were named as used, of any kind.
    """

    ts: str
    agent: str
    task: str
    outcome: str
    marks: Mapping[str, Mark]
    session: str | None = None
    run: str | None = None
    is_done: bool = False
    used: tuple[str, ...] = ()


class OutcomeLog:
    """The outcomes of one vault; the vault's lock must be held to write to it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "outcomes.jsonl"

    def append(self, outcome: Outcome) -> None:
        """Record an outcome, forced to the disk."""
        texts = {name: getattr(outcome, name) for name in _OUTCOME_TEXTS}
        line: dict[str, Any] = {name: text and redact(text).text for name, text in texts.items()}
        line |= {"done": outcome.is_done, "entries": {name: mark._asdict() for name, mark in outcome.marks.items()}}
        if outcome.used:
            line["used"] = list(outcome.used)
        append_lines(self.file, [line], force=True)

    def read_about(self, task: str, session: str | None) -> Iterator[Outcome]:
        """Yield the outcomes that may be about a task or a session, oldest first: those that name it, or no session."""
        named = (json_needle(one) for one in (task, session) if one is not None)
        return self.read_all(*named, b'"session": null')

    def read_all(self, *marks: bytes) -> Iterator[Outcome]:
        """Yield the outcomes whose line holds one of some marks, all without any, oldest first."""
        for line in read_objects(self.file, *marks):
            entries, used = line.get("entries"), line.get("used")
            texts = {name: line[name] for name in _OUTCOME_TEXTS if isinstance(line.get(name), str)}
            if "agent" in texts and "task" in texts and isinstance(entries, dict):
                yield Outcome(
                    **{"ts": "", "outcome": "", **texts},
                    marks={name: mark for name, value in entries.items() if (mark := _read_mark(value))},
                    is_done=line.get("done") is True,
                    used=tuple(map(str, used)) if isinstance(used, list) else (),
                )


def _read_mark(value: object) -> Mark | None:
    if not isinstance(value, dict) or not isinstance(value.get("credit"), str):
        return None
    total = value.get("total")
    return Mark(value["credit"], total if type(total) is int else 0)


class ExtractionLog:
    """The questions that were answered in one vault, by the hash of what was asked."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "extractions.jsonl"

    def done(self) -> frozenset[str]:
        """Return the inputs that were dealt with; an incomplete line has none."""
        return frozenset(str(line["input"]) for line in read_objects(self.file) if "input" in line)

    def add(self, inputs: Iterable[str], session: str, now: datetime) -> None:
        """Record that some inputs of a session were dealt with, if that can be written."""
        if lines := [{"ts": format_time(now), "session": session, "input": one} for one in inputs]:
            with contextlib.suppress(OSError):
                append_lines(self.file, lines)


class MaintenanceLog:
    """The days of maintenance of one vault, on this machine."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "maintenance.jsonl"

    def last(self) -> dict[str, datetime]:
        """Return when each step was done last; a line that cannot be read counts for nothing."""
        found: dict[str, datetime] = {}
        for line in read_objects(self._file):
            try:
                moment = datetime.fromisoformat(str(line["ts"]))
                found[str(line["step"])] = max(moment, found.get(str(line["step"]), moment))
            except (KeyError, ValueError, TypeError):
                continue
        return found

    def done(self, step: str, now: datetime) -> None:
        """Record that a step is done."""
        append_lines(self._file, [{"ts": now.isoformat(timespec="seconds"), "step": step}])


def format_time(moment: datetime) -> str:
    """Return a moment as events have it; one without a zone is in UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
