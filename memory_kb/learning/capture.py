"""The verb capture: keep what people state with an explicit marker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from memory_kb.errors import UsageError
from memory_kb.learning.ingest import Ingested, Learning
from memory_kb.learning.markers import Statement, find_credential, find_statements
from memory_kb.learning.memories import Memories
from memory_kb.learning.render_entry import Draft, without_empty
from memory_kb.model import Location
from memory_kb.reports import RunReport
from memory_kb.store.session_events import Event
from memory_kb.store.session_log import SessionFiles, check_id, find_id
from memory_kb.text import shorten
from memory_kb.vault import Vault

_TITLE = 80


class UserMessage(NamedTuple):
    """A message of a person with its statements; `refusal` is why none was read."""

    event: Event
    statements: tuple[Statement, ...]
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class CapturedStatement:
    """What was decided about one statement, recognised by its marker, or that a message was not read.

    `action` is `created`, `reinforced`, `known`, `forgotten` or `refused`; `passed` where the message holds a
    credential.
    """

    action: str
    reason: str
    marker: str | None = None
    kind: str | None = None
    text: str | None = None
    source: str | None = None
    id: str | None = None
    path: str | None = None
    session: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """What was decided about the statements of people in `count` messages, and the run that wrote it."""

    messages: tuple[CapturedStatement, ...]
    count: int
    run: RunReport

    @property
    def kept(self) -> tuple[CapturedStatement, ...]:
        """Those that state something, whether or not it was kept."""
        return tuple(one for one in self.messages if one.action != "passed")


def read_user_messages(events: Iterable[Event]) -> Iterator[UserMessage]:
    """Yield the messages of people in a session with their statements, except those that repeat the agent.

    Example:
        >>> events = [Event(role="user", content="Never push to master."), Event(role="assistant", content="I never push.")]
        >>> [(message.event.role, message.statements[0].kind) for message in read_user_messages(events)]
        [('user', 'policy')]
    """
    answers: dict[str, str] = {}
    for event in events:
        if event.type != "message" or not event.content or event.injected == "whole":
            continue
        if event.role == "assistant":
            answers[event.session] = event.content
        elif event.role == "user":
            refusal = find_credential(event.content)
            answer = answers.get(event.session, "")
            own = tuple(one for one in find_statements(event.content) if one.text[1:] not in answer)
            yield UserMessage(event, own, refusal)


def read_statements(
    messages: Iterable[UserMessage],
    now: datetime,
    place: Location | None = None,
    session: str | None = None,
    *,
    propose: bool = False,
) -> list[Learning]:
    """Return what was stated as learnings, in the order in which it was said.

    The same sentence of the same event is the same learning, however often it is read; what belongs to no session is
    new every time. `session` is where messages come from that do not name it; with `propose` everything waits for a
    person.
    """
    learnings = []
    for event, statements, _ in messages:
        origin = event.session or session
        key, where = _name_message(event, origin, now)
        for number, one in enumerate(statements):
            is_proposal = propose or one.is_proposal
            source = {"session_id": origin, "session_seq": (origin and event.seq) or None}
            fields = without_empty(source | {"status": "proposed" if is_proposal else None})
            title = shorten(one.text.rstrip(".!。 "), _TITLE)
            learnings.append(
                Learning(
                    Draft(one.text, one.kind, title, priority="high", source="user_explicit", fields=fields),
                    place or Location(),
                    f"capture/{origin or ''}/{key}{f'/{number}' if number else ''}",
                    f"Stated with “{one.marker}”{where}.",
                    origin,
                    said=event.ts or None,
                    replaces=not is_proposal,
                )
            )
    return learnings


def _name_message(event: Event, session: str | None, now: datetime) -> tuple[str, str]:
    if session and event.seq:
        return f"{event.seq}", f" in session {session}, event {event.seq}"
    digest = blake2b((event.content or "").encode("utf-8", "replace"), digest_size=12).hexdigest()
    return (digest, f" in session {session}") if session else (f"{digest}/{event.ts or now.isoformat()}", "")


@dataclass(frozen=True)
class Captures:
    """The verb capture."""

    _vault: Vault
    _memories: Memories

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

        A statement that is stored already is reinforced, once for each session; one that was forgotten stays away; one
        that says otherwise than an older one supersedes it. The same events may be given any number of times.

        Args:
            messages: texts that a person wrote, or events, of which only the messages of people are
                looked at; when not given, the events that the log of the session holds.
            session: where the messages come from, for those that do not say so themselves.
        """
        place = self._vault.place_for("project", job, task)
        given = (messages,) if isinstance(messages, str) else messages or ()
        named = (Event(role="user", content=one) if isinstance(one, str) else one for one in given)
        events = self._logged_events(session) if messages is None else named
        origin = check_id(session) if session and messages is not None else None
        read, is_proposing = tuple(read_user_messages(events)), self._vault.settings.learning.capture == "propose"
        learnings = read_statements(read, self._vault.clock(), place, origin, propose=is_proposing)
        plan, run = self._memories.ingest("capture", learnings, dry_run=dry_run)
        return CaptureReport(tuple(_report_statements(read, plan.results)), len(read), run)

    def _logged_events(self, session: str | None) -> Iterable[Event]:
        if not session:
            raise UsageError(
                "there is no message to look at", 'try: memory-kb capture "Always use UTC for timestamps."'
            )
        files = SessionFiles(self._vault.machine)
        return files.read(find_id(session, files.ids()), only=lambda line: b'"type":"tool_' not in line)


def _report_statements(messages: Sequence[UserMessage], taken: Sequence[Ingested]) -> Iterator[CapturedStatement]:
    """Yield the decision about each statement, and the messages that were not read; `taken` is in the same order."""
    rest = iter(taken)
    for event, statements, refusal in messages:
        seq = event.seq or None
        if refusal:
            yield CapturedStatement("passed", refusal, session=event.session or None, seq=seq)
        for one, done in zip(statements, rest, strict=False):
            yield CapturedStatement(
                done.action,
                done.message or done.learning.reason,
                one.marker,
                one.kind,
                one.text,
                done.learning.draft.source,
                done.id or None,
                done.path or None,
                done.learning.origin,
                seq,
            )
