"""The verbs of sessions: append, list, replay, search, import and end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.store.session_events import SESSION_OUTCOMES, Event, EventFilter
from memory_kb.store.session_log import (
    SessionFiles,
    check_id,
    complete_end,
    find_id,
    parse_moment,
    prepare,
)

if TYPE_CHECKING:
    from memory_kb.index.session_index import SessionIndex, SessionList
    from memory_kb.reports import SessionImported, SessionSearch, SessionWritten, StepReport
    from memory_kb.sessions.maintenance import EndedSession, PartResult
    from memory_kb.vault import Vault


class Sessions:
    """The verbs session start, append, end, replay, search, list and import."""

    def __init__(self, vault: Vault, finish: Callable[[EndedSession], tuple[StepReport, ...]]) -> None:
        self._vault = vault
        self._finish = finish

    @property
    def files(self) -> SessionFiles:
        return SessionFiles(self._vault.machine)

    def start(
        self,
        session: str | None = None,
        *,
        job: str | None = None,
        task: str | None = None,
        agent: str | None = None,
        cwd: str | None = None,
    ) -> SessionWritten:
        """Begin or resume a session.

        Events that are appended without a job, task or agent of their own get those of the start.
        """
        from memory_kb.reports import SessionWritten

        session = check_id(session) if session else self.files.claim_new(self._vault.clock())
        start = Event(type="event", event="start", job=job, task=task, agent=agent, args={"cwd": cwd} if cwd else None)
        with self.files.writing(session) as writer:
            action = "started" if writer.is_empty else "resumed"
            start = start if writer.is_empty else start._replace(event="resume")
            done = prepare(start, self._vault.clock(), writer.first)
            writer.append(done.event)
        return SessionWritten(session, self._show_session(session), action, 1, writer.seq, done.redacted)

    def append(self, events: Iterable[Event], *, session: str | None = None) -> SessionWritten:
        """Append events, each with a write of its own, as they come; credentials are taken out before.

        Without `session` the events say theirs, else `MEMORY_KB_SESSION` does, else one is begun.
        """
        from memory_kb.reports import SessionShare, SessionWritten

        default = session or self._vault.environ.get("MEMORY_KB_SESSION") or None
        last, redacted = Event(), set[str]()
        shares: dict[str, SessionShare] = {}
        for event in events:
            chosen = check_id(session or event.session or default or self.files.claim_new(self._vault.clock()))
            default = default or chosen
            with self.files.writing(chosen) as writer:
                done = prepare(event, self._vault.clock(), writer.first)
                last = writer.append(done.event)
            redacted.update(done.redacted)
            written = shares[chosen].written if chosen in shares else 0
            shares[chosen] = SessionShare(chosen, written + 1, last.seq)
        shown, count = last.session or default or "", sum(share.written for share in shares.values())
        return SessionWritten(
            shown,
            self._show_session(shown),
            "appended" if count else "unchanged",
            count,
            last.seq,
            tuple(sorted(redacted)),
            shares=tuple(shares.values()),
        )

    def end(
        self,
        session: str,
        *,
        outcome: str | None = None,
        summary: str | None = None,
        only_close: bool = False,
        dry_run: bool = False,
        on_wait: Callable[[], None] | None = None,
    ) -> SessionWritten:
        """End a session: write its end once, then do what follows a session.

        The last word counts: a later call with another outcome or summary corrects the end and
        the episode; what was credited stays. What is done already is not done again.
        `only_close` leaves the five steps for another time. Of two that end a session at once,
        the second waits for the first; `on_wait` is called when that takes a while.

        With `dry_run` nothing is written and no model is asked: every step says what it would
        do to the notes as they are now, without what the steps before it would have made.
        """
        if outcome is not None and outcome not in SESSION_OUTCOMES:
            raise UsageError(f"unknown outcome {outcome!r}", f"it may be {', '.join(SESSION_OUTCOMES)}")
        session = find_id(session, self.files.ids())
        stated = Event(type="event", event="end", content=summary, args={"outcome": outcome} if outcome else None)
        with nullcontext() if dry_run else self.files.ending(session, on_wait):
            return self._end(session, stated, only_close=only_close, dry_run=dry_run)

    def _end(self, session: str, stated: Event, *, only_close: bool, dry_run: bool) -> SessionWritten:
        """Write what was `stated` as the end of a session, if that is new, and do what follows."""
        from memory_kb.reports import SessionWritten
        from memory_kb.sessions.maintenance import EndedSession, run_step

        with self.files.writing(session) as writer:
            done = prepare(stated, self._vault.clock(), writer.first)
            logged = writer.last if writer.last and writer.last.event == "end" else None
            new = complete_end(logged, done.event)
            end = new._replace(session=session, seq=writer.seq + 1) if new else logged
            if new and not dry_run:
                writer.append(new)
            start, seq = writer.first, writer.seq
        if not only_close:
            coming = end if new and dry_run else None
            steps = self._finish(EndedSession(session, start, end, dry_run=dry_run, unwritten_end=coming))
        else:
            steps = () if dry_run else (run_step("index", [("", lambda: self.index_part(session))]),)
        action = "ended" if new else "unchanged"
        redacted = done.redacted if new else ()
        written = int(new is not None and not dry_run)
        return SessionWritten(session, self._show_session(session), action, written, seq, redacted, steps)

    def index_part(self, session: str) -> PartResult:
        """Index the new events of a session, as a part of a step."""
        from memory_kb.sessions.maintenance import PartResult

        with self._open_index() as index:
            events = index.sync(session)
        return PartResult(f"{events:,} events indexed" if events else "")

    def replay(
        self, session: str, wanted: EventFilter | None = None, *, on_problem: Callable[[int, str], None] | None = None
    ) -> Iterator[Event]:
        """Yield the events of a session, which a unique beginning of its id names, in the order of their writing.

        `on_problem` is called with the number of a line that is no event, and why.
        """
        found = find_id(session, self.files.ids())
        events = self.files.read(found, on_problem)
        return (event for event in events if wanted is None or wanted.has(event))

    def search(
        self,
        query: str = "",
        *,
        limit: int = 10,
        type: Sequence[str] = (),
        agent: str | None = None,
        job: str | None = None,
        task: str | None = None,
        session: str | None = None,
        since: str | None = None,
        until: str | None = None,
        outcome: str | None = None,
        events: bool = False,
        with_injected: bool = False,
    ) -> SessionSearch:
        """Return the past sessions that fit a query, best first, each with its best event."""
        from memory_kb.reports import SessionSearch

        if outcome is not None and outcome not in SESSION_OUTCOMES:
            raise UsageError(f"unknown outcome {outcome!r}", f"it may be {', '.join(SESSION_OUTCOMES)}")
        types = (type,) if isinstance(type, str) else tuple(type)
        session = find_id(session, self.files.ids()) if session else None
        begin, end = since and parse_moment(since), until and parse_moment(until, is_end=True)
        wanted = EventFilter(types, agent, job, task, session, begin or None, end or None)
        is_of_one = events or session is not None
        with self._open_index() as index:
            index.sync()
            hits = index.search(
                query, wanted, max(0, limit), with_injected=with_injected, outcome=outcome, every_event=is_of_one
            )
        return SessionSearch(query, hits, tuple(index.notices))

    def list(
        self, *, only_open: bool = False, agent: str | None = None, job: str | None = None, limit: int | None = None
    ) -> SessionList:
        """Return the sessions there are, the one with the newest event first.

        A session is open until its end is written, and again when events came after that.
        With `agent` or `job` only those with events of theirs are listed.
        """
        from memory_kb.index.session_index import SessionList

        with self._open_index() as index:
            index.sync()
            found = index.seen(only_open=only_open, agent=agent, job=job)
        return SessionList(found[: None if limit is None else max(0, limit)], len(found), tuple(index.notices))

    def import_(
        self,
        source: str | os.PathLike[str],
        *,
        format: str | None = None,
        session: str | None = None,
        job: str | None = None,
        task: str | None = None,
        agent: str | None = None,
        any_project: bool = False,
    ) -> tuple[SessionImported, ...]:
        """Import the transcript of another tool; what is stored already is not written again."""
        from memory_kb.sessions.importing import Labels, TranscriptImport

        made = TranscriptImport(self.files, Labels(session, job, task, agent), self._vault.clock())
        if Path(source).is_dir() and format is None:
            return made.add_folder(Path(source), None if any_project else self._vault.folder)
        try:
            return made.add_file(Path(source), format)
        except OSError as exc:
            if exc.filename is None or Path(str(exc.filename)) != Path(source):
                raise
            hint = "name a transcript, or a folder of them"
            raise UnreadableInput(f"{source} cannot be read: {exc.strerror}", hint) from exc

    def _open_index(self) -> AbstractContextManager[SessionIndex]:
        from memory_kb.index.session_index import SessionIndex

        return closing(SessionIndex(self._vault.machine, self._vault.seal))

    def _show_session(self, session: str) -> str:
        return str(self.files.path(session)) if session else ""
