"""The verbs learn, supersede and forget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from memory_kb.errors import CannotSplice, ChangedOnDisk, Forgotten, UsageError
from memory_kb.learning.render_entry import Draft, check_draft, name_file, plan_entry, plan_erasure, without_empty
from memory_kb.learning.similar_entries import FORGOTTEN, find_duplicate, find_near_entries
from memory_kb.markdown.splice import Value, find_entry
from memory_kb.memory import Memory
from memory_kb.model import UNVERIFIED, Link, Location, StoredEntry
from memory_kb.reports import Learned, Near, Retired, RunReport
from memory_kb.store.changes import Change, plan_fields, plan_replaced, set_fields, with_links

if TYPE_CHECKING:
    from memory_kb.index.listing import Listing
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.memories import Memories
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

#: What is longer is no learning, but a document.
MAX_LEARNING = 1_000_000


def check_text(text: str) -> None:
    """Refuse what is too long for a learning, or no text."""
    if len(text) > MAX_LEARNING:
        raise UsageError(
            f"the text is longer than {MAX_LEARNING:,} characters",
            "put it into the vault as a file, and learn what matters of it",
        )
    if "\0" in text:
        raise UsageError("the text contains NUL bytes; is it a text?", "take them out, or save it as UTF-8 first")


@dataclass(frozen=True)
class EntryVerbs:
    """The verbs learn, supersede and forget."""

    _vault: Vault
    _index: VaultIndex
    _writer: Writer
    _get_listing: Callable[[], Listing]
    _get_memories: Callable[[], Memories]

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
        supersedes: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> Learned:
        """Store a learning, or reinforce the entry that already says it.

        A new one becomes a file of its own. A policy, preference, rule, pitfall or skill from the source
        `external_unverified` waits in `review/` until a person approves it, as does anything with `propose`. A new rule
        is trusted with `confidence`, or by its source. The entry that it `supersedes` is linked to it and weighs half.

        Raises:
            SecretRefused: the text, or any other argument, holds what looks like a credential.
            Forgotten: the same text was forgotten before, and `force` is not set.
        """
        check_text(text)
        old = None if supersedes is None else self._get_memories().find(supersedes)
        given: dict[str, Value | None] = {
            "status": "proposed" if propose else None,
            "confidence": confidence,
            "links": [{"to": old.id, "relation": "supersedes"}] if old else None,
        }
        draft = Draft(text, kind, title, tuple(tags), priority, tuple(applies_to), source, without_empty(given))
        draft = check_draft(draft, allow_secret=self._vault.allows_secrets)
        return self._store(draft, self._vault.place_for(scope, job, task), old, force=force, dry_run=dry_run)

    def _store(self, draft: Draft, place: Location, old: Memory | None, *, force: bool, dry_run: bool) -> Learned:
        with self._writer.lock(place.scope, *([old.place.scope] if old else ()), dry_run=dry_run):
            twin, is_left = (None, False) if force else self._find_duplicate(draft, place)
            plan = self._plan_sighting(twin, draft, old) if twin else self._plan_new(draft, place)
            entry_id, near = plan.entry_id or "", () if twin else self._find_near(draft, place, old)
            replaced = plan_replaced(old, entry_id, f"{entry_id} takes its place.") if old else None
            run = self._run_one("learn", plan, replaced, dry_run=dry_run)
        is_waiting = twin.status == "proposed" if twin else draft.is_proposal
        action = "reinforced" if twin else "created"
        return Learned(entry_id, plan.path, action, run, is_waiting, near, needs_background_update=is_left)

    def _plan_new(self, draft: Draft, place: Location) -> Change:
        import uuid

        entry_id, now = str(uuid.uuid4()), self._vault.clock()
        folder = self._vault.scope_folder(place.scope, place.job, place.task)
        return plan_entry(draft, entry_id, self._vault.show(folder / name_file(draft, entry_id, now)), now)

    def _plan_sighting(self, twin: StoredEntry, draft: Draft, old: Memory | None) -> Change:
        """Plan to count one more sighting of an entry; what came from outside is verified by a better source."""
        if old:
            known = "it is that entry" if twin.id == old.id else f"{twin.id} says that"
            raise UsageError(f"there is nothing new to learn: {known}", "memory-kb supersede OLD NEW links two entries")
        if twin.status in FORGOTTEN:
            raise Forgotten(twin.id, twin.path)
        note = self._writer.read(twin.path)
        entry = find_entry(note.text, note.path, twin.id)
        today = self._vault.today().isoformat()
        values: dict[str, Value] = {"reinforcement_count": entry.reinforcement_count + 1, "last_reinforced": today}
        if draft.source not in (None, UNVERIFIED) and entry.metadata.get("source") == UNVERIFIED:
            values["source"] = draft.source
        return set_fields(note, twin.id, values, "The same was learned again.")

    def _find_near(self, draft: Draft, place: Location, old: Memory | None) -> tuple[Near, ...]:
        return self._index.use_as_it_is(lambda index: find_near_entries(index, draft, place, old.id if old else None))

    def supersede(self, old: str, new: str, *, dry_run: bool = False) -> RunReport:
        """Let an entry replace an older one, which then weighs half in a search; neither text changes."""
        replaced, newer = self._get_memories().find(old), self._get_memories().find(new)
        if (replaced.path, replaced.id) == (newer.path, newer.id):
            raise UsageError(f"{replaced.id} cannot supersede itself", "name two entries")
        if Link(newer.id, "supersedes") in replaced.links:
            raise UsageError(
                f"{replaced.id} supersedes {newer.id} already",
                "take that link out of both entries, or undo what wrote it",
            )
        links = list(with_links(newer, Link(replaced.id, "supersedes")))
        plan = [
            plan_replaced(replaced, newer.id, f"{newer.id} takes its place."),
            plan_fields(newer, {"links": links}, f"It takes the place of {replaced.id}."),
        ]
        with self._writer.lock(replaced.place.scope, newer.place.scope, dry_run=dry_run):
            return self._writer.run("supersede", plan, dry_run=dry_run)

    def _find_duplicate(self, draft: Draft, place: Location) -> tuple[StoredEntry | None, bool]:
        """Return the entry that says already what is about to be learned, and whether some notes were left out.

        Nobody waits for the index: notes that are newer than it are read by themselves, the newest of too many.
        """
        from memory_kb.index.sync import UnindexedNotes

        def find(index: SqliteIndex) -> tuple[StoredEntry | None, bool]:
            newer, regions = UnindexedNotes(self._vault, index), self._index.unconfirmed_regions(index)
            with closing(newer.index), index.snapshot():
                newer.read(regions)
                is_left = not newer.is_whole
                while True:
                    found = (
                        find_duplicate(newer.index, draft, place),
                        find_duplicate(index, draft, place, outdated=newer.outdated),
                    )
                    twin = min(filter(None, found), key=lambda twin: twin.status in FORGOTTEN, default=None)
                    if twin is None or not newer.read((twin.path,)):
                        return twin, is_left

        return self._index.use_as_it_is(find)

    def forget(self, wanted: str, *, delete: bool = False, purge: bool = False, dry_run: bool = False) -> Retired:
        """Retire an entry, leaving a tombstone.

        `delete` takes its text out of the file too, `purge` also out of other notes, the journal, the sessions, all
        logs, caches and databases: that cannot be undone.
        """
        view, purged = self._get_listing().show(wanted), None
        if purge:
            from memory_kb.learning.purge import purge as purge_entry

            scopes = ("project", "global") if self._vault.home.is_dir() else ("project",)
            with self._writer.lock(*scopes, dry_run=dry_run):
                run, purged = purge_entry(view, self._vault, self._writer, self._index, dry_run=dry_run)
        else:
            with self._writer.lock(view.scope, dry_run=dry_run):
                note = self._writer.read(view.path)
                # A note without frontmatter gets a block of its own.
                own: dict[str, Value] = {} if find_entry(note.text, note.path, view.id).has_own_id else {"id": view.id}
                plan = set_fields(note, view.id, own | {"status": "retired"}, "Forgotten on request.")
                if delete:
                    plan = plan_erasure(note, view.id, self._vault.clock())
                run = self._run_one("forget", plan, dry_run=dry_run)
        kept = {field.name: getattr(view, field.name) for field in fields(view)}
        return Retired(**kept, run=run, purged=purged)

    def _run_one(self, verb: str, change: Change, more: Change | None = None, *, dry_run: bool) -> RunReport:
        """Run a change, and perhaps one that follows from it; raise the reason if it cannot be made."""
        run = self._writer.run(verb, [change, more], dry_run=dry_run)
        if run.conflicts:
            if run.conflicts[0].code == "changed":
                raise ChangedOnDisk(change.path)
            raise CannotSplice(run.conflicts[0].message)
        return run
