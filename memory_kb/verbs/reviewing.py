"""What waits for a person's judgment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import UsageError
from memory_kb.filters import EVERYTHING, FilterWords

if TYPE_CHECKING:
    from typing import Unpack

    from memory_kb.index.keeper import VaultIndex
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.memories import Memory
    from memory_kb.learning.rules.inversion import ScanReport
    from memory_kb.learning.rules.review import Ground, ReviewItem, ReviewView
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.reports import RunReport
    from memory_kb.verbs.rules import Rules


class Review:
    """The verbs review list, show, scan, approve, edit, reject and snooze."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, store: EntryStore, rules: Rules) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._store = store
        self._rules = rules

    def list(self, *, session: str | None = None, **filters: Unpack[FilterWords]) -> tuple[ReviewItem, ...]:
        """Return what waits for a judgment: proposals, the newest first, then live entries with flags.

        What was put off is left out until its day. The filters are those of `search`; `session` leaves
        what comes from one, named by its id or the beginning of it.
        """
        from memory_kb.learning.rules.review import find_waiting

        chosen = self._index.filters(**filters)
        everything = EVERYTHING if not chosen.job else EVERYTHING._replace(job=chosen.job, task=chosen.task)
        wanted = chosen._replace(
            kinds=chosen.kinds or everything.kinds,
            statuses=chosen.statuses or everything.statuses,
            learning_types=chosen.learning_types or everything.learning_types,
        )
        return find_waiting(self._store.all(wanted), self._vault.today(), session)

    def show(self, wanted: str) -> ReviewView:
        """Return an entry of the queue with its text, and with what approving it would write.

        Raises:
            UnknownEntry: there is none.
            UsageError: it is over, and cannot be approved.
        """
        from memory_kb.learning.rules.review import ReviewView, make_item
        from memory_kb.notes.sheets import find_entry

        found = self._rules.find(wanted)
        text = self._writer.read(found.path).text
        entry = find_entry(text, found.path, found.id)
        return ReviewView(
            make_item(found, self._vault.today()),
            text[entry.span.start : entry.span.end],
            self.approve(found.id, dry_run=True),
        )

    def scan(self, *, dry_run: bool = False) -> ScanReport:
        """Propose a warning in the place of every rule that failed too often.

        The proposals lie in `review/` until somebody approves or rejects them.
        """
        from memory_kb.learning.intake import plan_intake
        from memory_kb.learning.rules.inversion import ScanReport, plan_scan
        from memory_kb.learning.rules.playbook import RULE_KINDS

        with self._store.planning(dry_run=dry_run):
            scan = plan_scan(self._store.all(EVERYTHING._replace(kinds=RULE_KINDS)))
            intake = self._index.read(
                lambda index: plan_intake(
                    scan.offers, index, self._vault.folder_of, self._vault.clock(), self._store.was_made
                )
            )
            run = self._writer.run("review scan", [*intake.changes, *scan.changes], dry_run=dry_run)
        refused = tuple(f"{one.offer.reason} {one.message}" for one in intake.taken if one.action == "refused")
        return ScanReport(tuple(one.id for one in intake.taken if one.action == "created"), refused, run)

    def approve(self, *wanted: str, dry_run: bool = False) -> RunReport:
        """Approve entries: a proposal is put in use, a flag is taken away.

        Approving twice changes nothing more.

        Raises:
            UnknownEntry: there is no such entry.
            UsageError: one of them is retired or archived, or none is named.
            CannotSplice: an entry cannot be added to `institutional.md`.
        """
        from memory_kb.learning.rules.review import plan_approval

        with self._store.planning(dry_run=dry_run):
            found = self._find_all(wanted)
            return self._writer.run("review approve", plan_approval(found, self.ground()), dry_run=dry_run)

    def reject(self, *wanted: str, reason: str | None = None, dry_run: bool = False) -> RunReport:
        """Reject entries: they stay where they are, and keep the same text from coming back.

        Raises:
            UnknownEntry: there is no such entry.
            UsageError: one of them does not wait for review, or none is named.
        """
        from memory_kb.learning.rules.review import plan_rejection

        with self._store.planning(dry_run=dry_run):
            found = self._find_all(wanted)
            return self._writer.run("review reject", plan_rejection(found, reason, self.ground()), dry_run=dry_run)

    def edit(self, wanted: str, text: str, *, dry_run: bool = False) -> RunReport:
        """Put another text in the place of what a proposal says; it goes on waiting.

        Raises:
            UnknownEntry: there is no such entry.
            UsageError: it does not wait for review, or there is no text.
            SecretRefused: the text holds what looks like a credential.
            CannotSplice: its frontmatter cannot be read.
        """
        from memory_kb.learning.rules.review import plan_edit

        with self._store.planning(dry_run=dry_run):
            found = self._rules.find(wanted)
            change = plan_edit(found, self._writer.read(found.path), text)
            return self._writer.run("review edit", [change] if change else [], dry_run=dry_run)

    def snooze(self, *wanted: str, days: int = 14, dry_run: bool = False) -> RunReport:
        """Leave entries out of the queue for some days.

        Raises:
            UnknownEntry: there is no such entry.
            UsageError: one of them does not wait for review, or none is named.
        """
        from memory_kb.learning.rules.review import plan_snooze

        with self._store.planning(dry_run=dry_run):
            plan = plan_snooze(self._find_all(wanted), self._vault.today(), days)
            return self._writer.run("review snooze", plan, dry_run=dry_run)

    def _find_all(self, wanted: Sequence[str]) -> tuple[Memory, ...]:
        """Return entries that are named, each once."""
        if not wanted:
            raise UsageError("no entry is named", "`memory-kb review list` shows what waits")
        found = {(memory.path, memory.id): memory for memory in map(self._rules.find, wanted)}
        return tuple(found.values())

    def ground(self) -> Ground:
        from memory_kb.learning.rules.review import Ground
        from memory_kb.notes.changes import read_if_there
        from memory_kb.notes.plans import NoteText

        def read(path: str) -> NoteText | None:
            data = read_if_there(path, self._vault.resolve(path))
            return None if data is None else NoteText(path, data)

        return Ground(self._store.all(), self._vault.folder_of, read, self._vault.today())
