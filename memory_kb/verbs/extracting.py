"""Learning from a session that is over: extract, and the checkpoints it looks back at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import UsageError
from memory_kb.filters import make_place
from memory_kb.model import Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_kb.learning.extraction.checkpoints import Checkpoints
    from memory_kb.learning.extraction.conversation import Conversation
    from memory_kb.learning.extraction.extract import Documents, Finished
    from memory_kb.learning.extraction.scopereports import ExtractionReport
    from memory_kb.notes.plans import Change, NoteText
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.reports import RunReport
    from memory_kb.verbs.consulting import Consultation
    from memory_kb.verbs.lifecycle import Stages
    from memory_kb.verbs.sessions import Sessions

#: Characters of a document that a session is held against.
_DOCUMENT_CHARS = 6_000


class Extraction:
    """The verbs extract, premortem and assume."""

    def __init__(
        self, vault: Vault, writer: Writer, consultation: Consultation, stages: Stages, sessions: Sessions
    ) -> None:
        self._vault = vault
        self._writer = writer
        self._consultation = consultation
        self._stages = stages
        self._sessions = sessions

    def extract(
        self, session: str, *, scopes: Sequence[str] | None = None, again: bool = False, dry_run: bool = False
    ) -> ExtractionReport:
        """Learn from a session that is over, scope by scope.

        A language model reads what was said and done; each scope is asked for by itself, and what
        goes wrong in one is told and leaves the others alone. Without a model nothing is extracted.
        What was dealt with before is not asked again.

        Args:
            session: its id, or a unique beginning of it.
            scopes: their names; all ten when not given.
            again: ask again what was asked before, and keep what was taken back or deleted since.
            dry_run: ask nothing and write nothing; tell what it would cost.

        Raises:
            UnreadableInput: there is no such session, or a note cannot be written.
            UsageError: there is no scope of a name.
            VaultBusy: another process has been writing for a minute.
        """
        from memory_kb.learning.extraction.scopes import choose_scopes

        chosen = choose_scopes((scopes,) if isinstance(scopes, str) else scopes)
        return self._consultation.extract(self._finished(session), chosen, again=again, dry_run=dry_run)

    def premortem(
        self,
        text: str,
        *,
        title: str | None = None,
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Write down, before the work begins, the plan and what may go wrong with it.

        It is written anew when the plan changes.

        Raises:
            UsageError: there is no text, or no such place.
            SecretRefused: it holds what looks like a credential.
        """
        from memory_kb.learning.extraction import checkpoints

        place = self._scope_of(job, task)
        plan, name = checkpoints.check_plan(text, title)
        framed = checkpoints.frame_plan(plan, name, place, self._vault.clock())
        return self._write_beside(
            "premortem",
            place,
            checkpoints.PREMORTEM,
            lambda held, path: checkpoints.plan_premortem(held, path, framed),
            dry_run=dry_run,
        )

    def assume(
        self,
        milestone: str,
        *,
        complexity: str = "",
        approach: str = "",
        preferences: str = "",
        scope_note: str = "",
        recommendation: str = "continue",
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> RunReport:
        """Write down what is assumed when a milestone is reached.

        Args:
            milestone: its name.
            complexity: how hard the work is taken to be.
            approach: whether the approach is taken to be viable.
            preferences: what the person is taken to want.
            scope_note: what is taken to belong to the work.
            recommendation: continue, notify or escalate.
            job: the job it is about; `task` likewise.
            dry_run: show what would be written.

        Raises:
            UsageError: nothing is assumed, or a word is none of ours.
            SecretRefused: it holds what looks like a credential.
        """
        from memory_kb.learning.extraction import checkpoints
        from memory_kb.text import printable

        place = self._scope_of(job, task)
        texts = (
            " ".join(printable(text).split())
            for text in (milestone, complexity, approach, preferences, scope_note, recommendation)
        )
        name, *rest = texts
        checked = checkpoints.check_checkpoint(checkpoints.Checkpoint(name, self._vault.timestamp(), *rest))
        return self._write_beside(
            "assume",
            place,
            checkpoints.ASSUMPTIONS,
            lambda held, path: checkpoints.plan_checkpoint(held, path, checked),
            dry_run=dry_run,
        )

    def assumptions(self, *, job: str | None = None, task: str | None = None) -> Checkpoints:
        """Return what was assumed at the milestones so far.

        Raises:
            UsageError: there is no such place.
        """
        from memory_kb.learning.extraction.checkpoints import ASSUMPTIONS, parse_checkpoints

        return parse_checkpoints(self._text_beside(self._scope_of(job, task), ASSUMPTIONS))

    def _scope_of(self, job: str | None, task: str | None) -> Location:
        place = make_place("project", job, task)
        if place.job and not self._vault.memory:
            raise UsageError(
                f"{self._vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has"
            )
        return place

    def _write_beside(
        self,
        verb: str,
        place: Location,
        name: str,
        plan: Callable[[NoteText | None, str], Change | None],
        *,
        dry_run: bool,
    ) -> RunReport:
        """Write a file of a scope that is no note; one that changes meanwhile is planned anew."""
        from memory_kb.notes.changes import read_if_there
        from memory_kb.notes.plans import NoteText

        def make(path: str) -> tuple[Change, ...]:
            data = read_if_there(path, self._vault.resolve(path))
            change = plan(None if data is None else NoteText(path, data), path)
            return (change,) if change else ()

        return self._writer.run(verb, make(f"{self._vault.folder_of(place)}{name}"), replan=make, dry_run=dry_run)

    def _text_beside(self, place: Location, name: str) -> str:
        from memory_kb.notes.changes import read_if_there

        path = f"{self._vault.folder_of(place)}{name}"
        data = read_if_there(path, self._vault.resolve(path))
        return data.decode("utf-8", "replace") if data else ""

    def _finished(self, session: str) -> Finished:
        """Return a session as it is to be learned from."""
        from memory_kb.learning.extraction.conversation import read_conversation
        from memory_kb.learning.extraction.extract import Finished
        from memory_kb.learning.logs.sessions import find_id

        found = find_id(session, self._sessions.files.ids())
        conversation = read_conversation(self._sessions.replay(found))
        place = self._place_of(conversation)
        return Finished(
            found,
            place,
            conversation,
            self._stages.show(place.job),
            self._vault.folder.name,
            self._documents(place),
        )

    def _place_of(self, conversation: Conversation) -> Location:
        """Return where a session worked; names that cannot be those of folders count for none."""
        if not self._vault.memory:
            return Location()
        try:
            return make_place("project", conversation.job, conversation.task if conversation.job else None)
        except UsageError:
            return Location()

    def _documents(self, place: Location) -> Documents:
        from memory_kb.learning.extraction.checkpoints import (
            ASSUMPTIONS,
            PREMORTEM,
            parse_checkpoints,
            show_checkpoints,
        )
        from memory_kb.learning.extraction.conversation import clean
        from memory_kb.learning.extraction.extract import Documents
        from memory_kb.notes.changes import read_if_there
        from memory_kb.notes.eventtext import cut

        around = dict.fromkeys(((place.job, place.task), (place.job, None), (None, None)))
        intents = (self._text_beside(make_place("project", job, task), "INTENT.md").strip() for job, task in around)
        intent = next(filter(None, intents), "")
        if not intent and (data := read_if_there("INTENT.md", self._vault.resolve("INTENT.md"))):
            intent = data.decode("utf-8", "replace")
        assumed = show_checkpoints(parse_checkpoints(self._text_beside(place, ASSUMPTIONS)))
        return Documents(
            *(cut(clean(text), _DOCUMENT_CHARS) for text in (intent, self._text_beside(place, PREMORTEM), assumed))
        )
