"""Writing entries: learning and forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import Forgotten, UsageError
from memory_kb.filters import make_place
from memory_kb.verbs.reading import Reading

if TYPE_CHECKING:
    from memory_kb.reports import EntryView, Learned


class Learning(Reading):
    """The verbs learn and forget."""

    def learn(
        self,
        text: str,
        *,
        kind: str = "fact",
        title: str | None = None,
        tags: Sequence[str] = (),
        priority: str | None = None,
        applies_to: Sequence[str] = (),
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        source: str | None = None,
        force: bool = False,
    ) -> Learned:
        """Store a learning, or reinforce the entry that already says it.

        A new one becomes a file of its own.

        Raises:
            SecretRefused: the text holds what looks like a credential.
            Forgotten: the same text was forgotten before, and `force` is not set.
            UsageError: the call makes no sense.
        """
        import uuid

        from memory_kb.learning import remember
        from memory_kb.learning.twins import find_twin
        from memory_kb.notes import changes
        from memory_kb.reports import Learned

        draft = remember.check_draft(remember.Draft(text, kind, title, tuple(tags), priority, tuple(applies_to), source))
        place = make_place(scope, job, task)
        if place.job and not self.vault.memory:
            raise UsageError(f"{self.vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has")
        now = self._clock()
        with self._writing(place.scope):
            twin = self._reading(lambda index: find_twin(index, draft, place)) if not force else None
            if twin and twin.is_forgotten:
                raise Forgotten(twin.entry.entry_id, twin.entry.source)
            if twin:
                path, entry_id = twin.entry.source, twin.entry.entry_id
                note = changes.read_note_text(path, self.vault.resolve(path))
                changes.apply(remember.plan_reinforcement(note, entry_id, now))
            else:
                entry_id = str(uuid.uuid4())
                folder = self.vault.scope_folder(place.scope, place.job, place.task)
                file, data = remember.plan_entry(draft, entry_id, folder, now)
                path = self.vault.show(file)
                changes.apply(changes.Change(path, file, None, data))
        self._keeper.refresh()
        return Learned(entry_id, path, "reinforced" if twin else "created")

    def forget(self, wanted: str, *, delete: bool = False) -> EntryView:
        """Retire an entry, leaving a tombstone.

        `delete` takes its text out of the file too.

        Raises:
            UnknownEntry: there is none.
            ChangedOnDisk: somebody else wrote to the file meanwhile.
        """
        from memory_kb.learning import remember
        from memory_kb.notes import changes

        view = self.show(wanted)
        with self._writing(view.scope):
            note = changes.read_note_text(view.path, self.vault.resolve(view.path))
            change = remember.plan_erasure(note, view.id, self._clock()) if delete else remember.plan_retirement(note, view.id)
            changes.apply(change)
        self._keeper.refresh()
        return view
