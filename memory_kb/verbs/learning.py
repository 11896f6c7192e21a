"""Writing entries: learning and forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING

from memory_kb.errors import CannotSplice, ChangedOnDisk, Forgotten, UsageError
from memory_kb.filters import make_place
from memory_kb.model import Region

if TYPE_CHECKING:
    from memory_kb.index.keeper import VaultIndex
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.learning.remember import Draft
    from memory_kb.learning.twins import Twin
    from memory_kb.model import Location
    from memory_kb.notes.plans import Change
    from memory_kb.notes.splice import Value
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.reports import Learned, Retired, RunReport
    from memory_kb.verbs.reading import Reading


#: What is longer is no learning, but a document.
MAX_TEXT = 1_000_000
#: In a vault of so many files all are looked at for one that says the same; in a larger one those of its folders.
_FEW_FILES = 5_000


def check_text(text: str) -> None:
    """Keep what is no learning from becoming one.

    Raises:
        UsageError: it is too long, or no text.
    """
    if len(text) > MAX_TEXT:
        raise UsageError(
            f"the text is longer than {MAX_TEXT:,} characters",
            "put it into the vault as a file, and learn what matters of it",
        )
    if "\0" in text:
        raise UsageError("the text contains NUL bytes; is it a text?", "take them out, or save it as UTF-8 first")


class Entries:
    """The verbs learn and forget."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, reading: Reading) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._reading = reading

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
        propose: bool = False,
        confidence: float | None = None,
        force: bool = False,
        allow_secret: bool = False,
        dry_run: bool = False,
    ) -> Learned:
        """Store a learning, or reinforce the entry that already says it.

        A new one becomes a file of its own. A policy, preference, rule, pitfall or skill from the source
        `external_unverified` waits in `review/` until a person approves it, as does anything with `propose`. A new rule is trusted
        with `confidence`, or by its source. With `dry_run` nothing is written, and the report's run tells what would be.

        `allow_secret` is for what only looks like a credential; a program that acts for a model must not set it.

        Raises:
            SecretRefused: the text, or any other argument, holds what looks like a credential.
            Forgotten: the same text was forgotten before, and `force` is not set.
            ChangedOnDisk: somebody else wrote to the file meanwhile.
            UsageError: the call makes no sense.
        """
        import uuid

        from memory_kb.learning import remember
        from memory_kb.reports import Learned

        check_text(text)
        given: dict[str, Value] = {"status": "proposed"} if propose else {}
        given |= {} if confidence is None else {"confidence": confidence}
        draft = remember.check_draft(
            remember.Draft(text, kind, title, tuple(tags), priority, tuple(applies_to), source, tuple(given.items())),
            allow_secret=allow_secret,
        )
        place = make_place(scope, job, task)
        if place.job and not self._vault.memory:
            raise UsageError(
                f"{self._vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has"
            )
        now = self._vault.clock()
        with nullcontext() if dry_run else self._writer.lock(place.scope):
            twin = self._find_twin(draft, place) if not force else None
            if twin and twin.is_forgotten:
                raise Forgotten(twin.entry.entry_id, twin.entry.source)
            if twin:
                entry_id = twin.entry.entry_id
                plan = remember.plan_reinforcement(self._writer.read(twin.entry.source), entry_id, now, draft.source)
            else:
                entry_id = str(uuid.uuid4())
                folder = self._vault.scope_folder(place.scope, place.job, place.task)
                path = self._vault.show(folder / remember.name_file(draft, entry_id, now))
                plan = remember.plan_entry(draft, entry_id, path, now)
            run = self._run_one("learn", plan, dry_run=dry_run, allow_secret=allow_secret)
        is_waiting = twin.entry.status == "proposed" if twin else draft.is_proposal
        return Learned(entry_id, plan.path, "reinforced" if twin else "created", run, is_waiting)

    def _find_twin(self, draft: Draft, place: Location) -> Twin | None:
        """Return the entry that says already what is about to be learned.

        Nobody is waited for: notes that the index does not hold as they are are read by themselves.
        """
        from memory_kb.index.unindexed import Unindexed
        from memory_kb.learning.twins import find_twin

        def find(index: SqliteIndex) -> Twin | None:
            with closing(Unindexed(self._vault, index, self._vault.settings)) as newer, index.snapshot():
                is_small = index.count_files() <= _FEW_FILES
                newer.read(self._vault.regions_of(place) if is_small else self._learned_regions(place))
                while True:
                    found = (
                        find_twin(newer.index, draft, place),
                        find_twin(index, draft, place, outdated=newer.outdated),
                    )
                    twin = min(filter(None, found), key=lambda twin: twin.is_forgotten, default=None)
                    if twin is None or not newer.read((self._region_of(twin.entry.source),)):
                        return twin

        return self._index.use_as_it_is(find)

    def _region_of(self, path: str) -> Region:
        return Region(path, str(self._vault.resolve(path)))

    def _learned_regions(self, place: Location) -> tuple[Region, ...]:
        """Return the folders into which learnings of a scope and of the wider ones are written."""
        from memory_kb.words import KINDS

        names = {"review", *(kind.folder for kind in KINDS.values())}
        scopes = {(place.job, place.task), (place.job, None), (None, None)}
        homes = [self._vault.scope_folder("project", *scope) for scope in scopes] + [self._vault.home]
        folders = dict.fromkeys(home / name for home in homes for name in sorted(names))
        return tuple(Region(f"{self._vault.show(folder)}/", str(folder), is_deep=True) for folder in folders)

    def forget(self, wanted: str, *, delete: bool = False, dry_run: bool = False) -> Retired:
        """Retire an entry, leaving a tombstone.

        `delete` takes its text out of the file too. With `dry_run` nothing is written, and the
        report's run tells what would be.

        Raises:
            UnknownEntry: there is none.
            ChangedOnDisk: somebody else wrote to the file meanwhile.
        """
        from memory_kb.learning import remember
        from memory_kb.reports import Retired

        view = self._reading.show(wanted)
        with nullcontext() if dry_run else self._writer.lock(view.scope):
            note = self._writer.read(view.path)
            plan = (
                remember.plan_erasure(note, view.id, self._vault.clock())
                if delete
                else remember.plan_retirement(note, view.id)
            )
            run = self._run_one("forget", plan, dry_run=dry_run)
        return Retired(**{field.name: getattr(view, field.name) for field in fields(view)}, run=run)

    def _run_one(self, verb: str, change: Change, *, dry_run: bool, allow_secret: bool = False) -> RunReport:
        """Carry out a plan of one change, which has nothing to go on with when it fails."""
        run = self._writer.run(verb, [change], dry_run=dry_run, allow_secret=allow_secret)
        if run.conflicts:
            if run.conflicts[0].code == "changed":
                raise ChangedOnDisk(change.path)
            raise CannotSplice(run.conflicts[0].message)
        return run
