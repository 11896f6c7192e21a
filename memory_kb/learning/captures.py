"""The verb capture: keep what people state with an explicit marker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from memory_kb.errors import UsageError
from memory_kb.store.events import Event

if TYPE_CHECKING:
    from memory_kb.learning.capture import Captured, CaptureReport, UserMessage
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.ingest import Taken
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


class Captures:
    """The verb capture."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store

    def capture(
        self,
        messages: str | Iterable[str | Event] | None = None,
        *,
        job: str | None = None,
        task: str | None = None,
        session: str | None = None,
        dry_run: bool = False,
    ) -> CaptureReport:
        """Keep what people state with an explicit marker, such as "from now on" or "we use X, not Y".

        A statement that is stored already is reinforced, once for each session; one that was
        forgotten stays away; one that says otherwise than an older one supersedes it. The same
        events may be given any number of times.

        Args:
            messages: texts that a person wrote, or events, of which only the messages of people are
                looked at; when not given, the events that the log of the session holds.
            job: keep it with this job; `task` likewise. By default it holds for the project.
            session: where the messages come from, for those that do not say so themselves.
            dry_run: write nothing; the report's run says what would be written.

        Raises:
            UsageError: the call makes no sense.
            UnreadableInput: there is no such session, or a file cannot be written.
            VaultBusy: another process has been writing for a minute.
        """
        from memory_kb.learning.capture import CaptureReport, offer_statements, read_messages
        from memory_kb.store.session_log import check_id

        place = self._vault.place_for("project", job, task)
        events = self._logged(session) if messages is None else _events_of(messages)
        origin = check_id(session) if session and messages is not None else None
        user_messages = tuple(read_messages(events))
        offers = offer_statements(
            user_messages,
            self._vault.clock(),
            place,
            origin,
            propose=self._vault.settings.learning.capture == "propose",
        )
        with nullcontext() if dry_run else self._writer.lock(place.scope):
            intake, run = self._store.take_in("capture", offers, dry_run=dry_run)
        return CaptureReport(_report(user_messages, intake.taken), run)

    def _logged(self, session: str | None) -> Iterable[Event]:
        from memory_kb.store.session_log import SessionFiles, find_id

        if not session:
            raise UsageError(
                "there is no message to look at", 'try: memory-kb capture "Always use UTC for timestamps."'
            )
        files = SessionFiles(self._vault.machine)
        return files.read(find_id(session, files.ids()), only=lambda line: b'"type":"tool_' not in line)


def _events_of(messages: str | Iterable[str | Event]) -> Iterable[Event]:
    given = (messages,) if isinstance(messages, str) else messages
    return (Event(role="user", content=one) if isinstance(one, str) else one for one in given)


def _report(user_messages: Sequence[UserMessage], taken: Sequence[Taken]) -> tuple[Captured, ...]:
    """Return what became of every message; what was taken in is in the order of the statements."""
    from memory_kb.learning.capture import Captured

    captured, rest = [], iter(taken)
    for event, statements, reason in user_messages:
        seq = event.seq or None
        if not statements:
            captured.append(Captured("passed", reason, session=event.session or None, seq=seq))
        for one in statements:
            done = next(rest)
            captured.append(
                Captured(
                    done.action,
                    done.message or done.offer.reason,
                    one.marker,
                    one.kind,
                    one.text,
                    done.offer.draft.source,
                    done.id or None,
                    done.path or None,
                    done.offer.origin,
                    seq,
                )
            )
    return tuple(captured)
