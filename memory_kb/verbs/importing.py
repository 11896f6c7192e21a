"""Write a transcript into sessions, every record once."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.learning.logs.sessions import check_id, prepare
from memory_kb.learning.logs.transcripts import FORMATS, MAX_RECORD, Found, reader_of, sniff
from memory_kb.model import Problem
from memory_kb.notes.events import Event
from memory_kb.notes.sessionlog import SessionFiles, SessionWriter, read_lines
from memory_kb.reports import SessionImported

_SHOWN_PROBLEMS = 20
#: What a conversation in Markdown may be called; of other files it would mean nothing that they hold no turns.
_PROSE = (".md", ".markdown", ".txt")


class Labels(NamedTuple):
    """What the caller knows of a transcript."""

    session: str | None = None
    job: str | None = None
    task: str | None = None
    agent: str | None = None


class _Target:
    """A session that is written to, with what it holds of earlier imports."""

    def __init__(self, files: SessionFiles, session: str, stack: ExitStack) -> None:
        self.session = session
        self.writer: SessionWriter = stack.enter_context(files.writing(session))
        self.counts: Counter[str] = Counter()
        self.redacted: set[str] = set()
        events = () if self.writer.is_empty else files.read(session)
        self._known = {_key(event.origin) for event in events if event.origin}
        self._has_start = not self.writer.is_empty
        self._start = _key("start") in self._known

    def write(self, event: Event, labels: Labels, now: datetime) -> None:
        """Append an event unless its origin is there already."""
        key = _key(event.origin or "")
        if key in self._known or (event.origin == "start" and self._has_start):
            # A transcript may begin several times; that is one event of ours.
            self.counts["known"] += event.origin != "start" or self._start
            self._start = self._start and event.origin != "start"
            return
        own = replace(event, job=labels.job, task=labels.task, agent=labels.agent or event.agent)
        done = prepare(own, now, self.writer.first)
        self.writer.append(done.event)
        self._known.add(key)
        self.redacted.update(done.redacted)
        self.counts["added"] += 1
        self.counts["injected"] += done.event.injected is not None


def import_all(files: SessionFiles, folder: Path, labels: Labels, now: datetime) -> tuple[SessionImported, ...]:
    """Bring every transcript below a folder in; a file that is none becomes a problem."""
    made: list[SessionImported] = []
    for source in sorted(folder.rglob("*.jsonl")):
        try:
            made += import_transcript(files, source, None, labels, now)
        except (UnreadableInput, OSError) as exc:
            made.append(SessionImported("", str(source), "", problems=(Problem(str(source), 1, str(exc)),)))
    return tuple(made)


def import_transcript(
    files: SessionFiles, source: Path, kind: str | None, labels: Labels, now: datetime
) -> tuple[SessionImported, ...]:
    """Bring a transcript in; return what became of it, for every session it holds.

    Raises:
        UnreadableInput: it is no transcript.
        UsageError: the format is not known.
        OSError: it cannot be read.
    """
    if kind is not None and kind not in FORMATS:
        raise UsageError(f"unknown format {kind!r}", f"it may be {', '.join(FORMATS)}")
    is_named = kind is not None or source.suffix.lower() in _PROSE
    kind = kind or sniff(line.text for line in read_lines(source, limit=MAX_RECORD))
    if kind is None:
        raise UnreadableInput(
            f"{source} is no transcript that is known", f"name its format with --format: {', '.join(FORMATS)}"
        )
    found = reader_of(kind)(line.text for line in read_lines(source, limit=MAX_RECORD))
    made = import_found(files, found, source, kind, labels, now)
    if not any(one.added or one.known or one.ignored for one in made):
        raise UnreadableInput(
            f"{source} is no transcript that is known{_first_problem(made) if is_named else ''}",
            f"name its format with --format: {', '.join(FORMATS)}",
        )
    return made


def _first_problem(made: Iterable[SessionImported]) -> str:
    found = [problem for one in made for problem in one.problems]
    return f": line {found[0].line}: {found[0].message}" if found else ""


def import_found(
    files: SessionFiles, events: Iterable[Found], source: Path, kind: str, labels: Labels, now: datetime
) -> tuple[SessionImported, ...]:
    """Bring the events of a transcript in that somebody reads; return what became of it, for every session."""
    fallback = labels.session or _session_name(source.stem)
    targets: dict[str, _Target] = {}
    ignored, problems = 0, list[Problem]()
    with ExitStack() as stack:
        for found in events:
            if found.event is None:
                ignored += found.problem is None
                if found.problem and len(problems) < _SHOWN_PROBLEMS:
                    problems.append(Problem(str(source), found.line, found.problem))
                continue
            session = labels.session or _of(found, fallback)
            if session not in targets:
                targets[session] = _Target(files, check_id(session), stack)
            targets[session].write(found.event, labels, now)
    return _report(targets, source, kind, (ignored, tuple(problems)), fallback)


def _report(
    targets: dict[str, _Target], source: Path, kind: str, rest: tuple[int, tuple[Problem, ...]], fallback: str
) -> tuple[SessionImported, ...]:
    """Return the reports; what belongs to no session counts with the first."""
    if not targets:
        return (SessionImported(fallback, str(source), kind, ignored=rest[0], problems=rest[1]),)
    made = []
    for number, target in enumerate(targets.values()):
        counts = {name: target.counts[name] for name in ("added", "known", "injected")}
        ignored, problems = rest if number == 0 else (0, ())
        made.append(
            SessionImported(
                target.session,
                str(source),
                kind,
                ignored=ignored,
                problems=problems,
                redacted=tuple(sorted(target.redacted)),
                **counts,
            )
        )
    return tuple(made)


def _of(found: Found, fallback: str) -> str:
    return _session_name(found.session) if found.session else fallback


def _session_name(name: str) -> str:
    """Return a session id for a name of somebody else's.

    Example:
        >>> _session_name("0b1c-42"), _session_name("../../etc/passwd")[:11]
        ('0b1c-42', 'etc-passwd-')
    """
    try:
        return check_id(name)
    except UsageError:
        words = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60]
        return f"{words or 'session'}-{_digest(name)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def _key(origin: str | None) -> int:
    """Return an origin as small as it stays telling: a transcript may have a million."""
    return int.from_bytes(hashlib.blake2b((origin or "").encode("utf-8", "replace"), digest_size=8).digest(), "big")
