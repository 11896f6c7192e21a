"""CONTINUITY.md: what an agent is doing right now, with what it should remember for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_kb.errors import CannotSplice, UsageError
from memory_kb.filters import EVERYTHING, make_filters, make_place
from memory_kb.notes.retrievals import log_shown
from memory_kb.words import KINDS, LIVE_STATUSES, WORKING_KINDS

if TYPE_CHECKING:
    from datetime import date

    from memory_kb.index.keeper import VaultIndex
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.notes.continuity import ContinuityReport, ContinuityView, Reminder
    from memory_kb.notes.plans import Change, NoteText
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.verbs.searching import Searching

#: What one section holds at most (S2-31), and the characters of a file that stand for the task.
_LINES, _OWN_WORDS = 5, 600
#: Passages for each line: a long entry may be found by several, and some are left out.
_PASSAGES = 4


class Continuity:
    """The verbs continuity show and continuity refresh."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, searching: Searching) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._searching = searching

    def show(self, job: str | None = None) -> ContinuityView:
        """Return CONTINUITY.md of the project, or of one of its jobs.

        Raises:
            UnreadableInput: it cannot be read.
        """
        from memory_kb.notes.continuity import ContinuityView, find_damage

        path, note = self.read(job)
        damage = find_damage(note.text) if note else None
        text = note.data.decode("utf-8", "replace") if note else None
        return ContinuityView(path, text, f"{path}:{damage.line}: {damage.message}" if damage else None)

    def refresh(
        self, task: str | None = None, *, job: str | None = None, only_if_there: bool = False, dry_run: bool = False
    ) -> ContinuityReport:
        """Bring the two sections of CONTINUITY.md up to date: what fits the task, and what to avoid.

        Without a task the file's own first words tell what it is. All else in the file stays byte
        for byte.

        Args:
            task: what is being done.
            job: the job whose file it is; the project's when not given.
            only_if_there: do nothing where there is no such file, or nothing in it to go by.
            dry_run: write nothing; the run tells what would be.

        Raises:
            UsageError: nothing tells what to look for.
            CannotSplice: the marks in the file are damaged.
        """
        from memory_kb.notes.continuity import ContinuityReport, own_words, plan_continuity
        from memory_kb.reports import RunReport

        path, note = self.read(job)
        words = (task or "").strip() or (own_words(note.data.decode("utf-8", "replace"), _OWN_WORDS) if note else "")
        if only_if_there and (note is None or not words):
            return ContinuityReport(path, (), (), RunReport(None, "continuity"))
        if not words:
            raise UsageError(
                f"nothing tells what is being done, {path} least of all",
                'say it: memory-kb continuity refresh --task "fix the upload test"',
            )
        relevant, unsure = self._remind([kind for kind in KINDS if kind not in (*WORKING_KINDS, "pitfall")], words, job)
        avoid, _ = self._remind(["pitfall"], words, job)

        def plan(_: str) -> list[Change]:
            change = plan_continuity(path, self.read(job)[1], relevant, avoid)
            return [change] if change else []

        planned = plan(path)
        run = (
            self._writer.run("continuity", planned, replan=plan, dry_run=dry_run)
            if planned
            else RunReport(None, "continuity")
        )
        if run.conflicts and run.conflicts[0].code != "changed":
            raise CannotSplice(run.conflicts[0].message)
        if not (dry_run or only_if_there):
            log_shown(self._vault, "continuity", (one.id for one in (*relevant, *avoid)), query=words, injected=True)
        return ContinuityReport(path, tuple(one.id for one in relevant), tuple(one.id for one in avoid), run, unsure)

    def read(self, job: str | None) -> tuple[str, NoteText | None]:
        """Return the path of CONTINUITY.md, and the file where there is one."""
        from memory_kb.notes.changes import read_if_there
        from memory_kb.notes.continuity import CONTINUITY
        from memory_kb.notes.plans import NoteText

        place = make_place("project", job, None)
        if place.job and not self._vault.memory:
            raise UsageError(
                f"{self._vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has"
            )
        path = f"{self._vault.folder_of(place)}{CONTINUITY}"
        data = read_if_there(path, self._vault.resolve(path))
        return path, None if data is None else NoteText(path, data)

    def _remind(self, kinds: list[str], words: str, job: str | None) -> tuple[tuple[Reminder, ...], tuple[str, ...]]:
        """Return the live entries of some kinds that fit some words best, in a line each."""
        from memory_kb.retrieval.finding import Request

        request = Request(words, make_filters(kind=kinds, status=sorted(LIVE_STATUSES), job=job), _LINES * _PASSAGES)

        def remind(index: SqliteIndex) -> tuple[tuple[Reminder, ...], tuple[str, ...]]:
            result = self._searching.answer(index, request, sync=True, progress=None)
            found = dict.fromkeys((hit.id, hit.path) for hit in result.hits if not hit.path.endswith("CONTINUITY.md"))
            reminders = (_make_reminder(index, *named, self._vault.clock().date()) for named in found)
            return tuple(one for one in reminders if one)[:_LINES], result.degraded

        return self._index.use(remind)


def _make_reminder(index: SqliteIndex, entry_id: str, path: str, today: date) -> Reminder | None:
    """Return an entry in a line; None for one that is not to be given: replaced, doubted or unverified."""
    from memory_kb.learning.memories import make_memory
    from memory_kb.learning.rules.doubting import is_doubted
    from memory_kb.notes.continuity import Reminder

    entry = next((one for one in map(make_memory, index.memories(EVERYTHING, path)) if one.id == entry_id), None)
    if entry is None or entry.is_superseded or entry.is_unverified or is_doubted(entry, today):
        return None
    described = entry.word("description") if entry.kind == "skill" else None
    named = f"{entry.title}: {described}" if described and entry.title != entry.id else described
    return Reminder(entry.id, entry.kind, named or entry.title)
