"""Keeping what people say in passing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from memory_kb.errors import UsageError
from memory_kb.filters import make_place
from memory_kb.notes.events import Event
from memory_kb.verbs.keeping import Keeping

if TYPE_CHECKING:
    from memory_kb.learning.intake import Taken
    from memory_kb.learning.speech.capture import Captured, CaptureReport, Heard


class Capturing(Keeping):
    """The verb capture."""

    def capture(
        self,
        messages: str | Iterable[str | Event] | None = None,
        *,
        job: str | None = None,
        task: str | None = None,
        session: str | None = None,
        dry_run: bool = False,
    ) -> CaptureReport:
        """Keep the preferences, corrections and constraints that people state in their messages.

        Each message gives at most one entry. One that is there already is reinforced, once for
        each session; one that was forgotten stays away. The same events may be given any number of
        times.

        Args:
            messages: texts that a person wrote, or events, of which only the messages of people are
                looked at; when not given, the events that the log of the session holds.
            job: keep it with this job; `task` likewise. By default it holds for the project.
            session: where the messages come from, for those that do not say so themselves.
            dry_run: write nothing; the report's run tells what would be.

        Raises:
            UsageError: the call makes no sense.
            UnreadableInput: there is no such session, or a file cannot be written.
            VaultBusy: another process has been writing for a minute.
        """
        from memory_kb.learning.logs.sessions import check_id
        from memory_kb.learning.speech.capture import CaptureReport, hear, offer_captures

        place = make_place("project", job, task)
        if place.job and not self.vault.memory:
            raise UsageError(
                f"{self.vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has"
            )
        events = self._logged(session) if messages is None else _events_of(messages)
        origin = check_id(session) if session and messages is not None else None
        heard = tuple(hear(events))
        with nullcontext() if dry_run else self._writing(place.scope):
            intake, run = self._take_in("capture", offer_captures(heard, self._clock(), place, origin), dry_run=dry_run)
        return CaptureReport(_tell(heard, intake.taken), run)

    def _logged(self, session: str | None) -> Iterable[Event]:
        from memory_kb.learning.logs.sessions import find_id
        from memory_kb.notes.sessionlog import SessionFiles

        if not session:
            raise UsageError(
                "there is no message to look at", 'try: memory-kb capture "Always use UTC for timestamps."'
            )
        files = SessionFiles(self.machine)
        return files.read(find_id(session, files.ids()))


def _events_of(messages: str | Iterable[str | Event]) -> Iterable[Event]:
    given = (messages,) if isinstance(messages, str) else messages
    return (Event(role="user", content=one) if isinstance(one, str) else one for one in given)


def _tell(heard: Sequence[Heard], taken: Sequence[Taken]) -> tuple[Captured, ...]:
    """Return what became of every message; what was taken in stands in the order of those kept."""
    from memory_kb.learning.speech.capture import Captured

    told, rest = [], iter(taken)
    for event, (found, reason), _ in heard:
        known = {"session": event.session, "seq": event.seq or None}
        if found is None:
            told.append(Captured("passed", reason, **known))  # type: ignore[arg-type]
            continue
        done = next(rest)
        source = found.draft.source
        told.append(
            Captured(
                done.action,
                done.message or reason,
                found.pattern,
                found.kind,
                found.text,
                found.span,
                source,
                done.id or None,
                done.path or None,
                done.offer.origin,
                event.seq or None,
            )
        )
    return tuple(told)
