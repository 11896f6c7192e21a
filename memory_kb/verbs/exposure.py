"""Who was shown an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_kb.errors import UnknownEntry

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.freshness.exposure import Exposure
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.verbs.rules import Rules


class Exposures:
    """The verb exposure."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore, rules: Rules) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._rules = rules

    def exposure(self, wanted: str) -> Exposure:
        """Return which sessions, agents and tasks were shown an entry, and what became of them.

        An entry that is there no more is found by its whole id, as long as the log remembers it.

        Raises:
            UnknownEntry: neither the notes nor the log know it.
            AmbiguousId: there are several.
        """
        from memory_kb.learning.freshness.exposure import trace_exposure
        from memory_kb.notes.outcomes import OutcomeLog
        from memory_kb.notes.retrievals import RetrievalLog
        from memory_kb.notes.sessionends import read_outcome
        from memory_kb.notes.sessionlog import SessionFiles
        from memory_kb.notes.undoing import undone_by

        logs = self._vault.machine / "log"
        retrievals = list(RetrievalLog(logs).read())
        try:
            entry_id = self._rules.find(wanted).id
        except UnknownEntry:
            if not any(wanted in one.ids for one in retrievals):
                raise
            entry_id = wanted
        files = SessionFiles(self._vault.machine)
        sessions = {one.session for one in retrievals if one.session and entry_id in one.ids}
        ends = {
            one: outcome for one in sessions.intersection(files.ids()) if (outcome := read_outcome(files.path(one)))
        }
        outcomes = list(OutcomeLog(logs).read_all())
        undone = frozenset(undone_by(self._writer.journal.undoings())) if outcomes else frozenset[str]()
        return trace_exposure(entry_id, retrievals, outcomes, self._store.all(), ends, undone)
