"""The verb rename, and what an editor is proposed: renames, moves, and actions on an entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import quote

from memory_kb.editing.examination import Drafts, Examination
from memory_kb.editing.renaming import (
    HeadingRenaming,
    Moving,
    Renaming,
    check_name,
    heading_at,
    path_in,
    plan_heading_renaming,
    plan_moving,
    plan_renaming,
    shown_title,
    title_heading,
    way_of,
)
from memory_kb.errors import CannotSplice, UnknownEntry, UsageError
from memory_kb.index.editor_catalog import Catalog, read_unsaved
from memory_kb.index.link_names import stem_of
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning.citations import assess
from memory_kb.learning.compaction import archive_path, merge_entries, rank_for_merging
from memory_kb.learning.lifecycle import copy_for_wider_scope
from memory_kb.learning.memories import Memories
from memory_kb.learning.review import Review
from memory_kb.markdown.links import is_attachment
from memory_kb.markdown.splice import find_entry
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING
from memory_kb.reports import RunReport
from memory_kb.search.scoring import decay, prominence
from memory_kb.store.changes import Change, plan_fields
from memory_kb.store.file_edits import NoteText, read_if_there
from memory_kb.store.logs import OutcomeLog, RetrievalLog
from memory_kb.store.project_files import Attachments, project_files
from memory_kb.store.render_changes import Composition, compose, paths_of
from memory_kb.store.writer import Writer
from memory_kb.terms import name_key
from memory_kb.text import encode, note_name
from memory_kb.vault import GLOBAL_PREFIX, Vault

#: Files that the format names.
_FIXED_NAMES = ("memory.md", "institutional.md", "proxy.md")


class EntryUse(NamedTuple):
    """An entry with the factors of its prominence, how it was used, and whether its claims hold.

    `prominence` is `importance * decay * (1 + reinforcement_count)`; a hit's score is its relevance
    times that times `scope_weight`.
    """

    memory: Memory
    age_days: float | None
    decay: float
    prominence: float
    scope_weight: float
    shown: int
    last_shown: str | None
    outcomes: tuple[tuple[str, int], ...]
    claims: str | None


class RenamedEntry(NamedTuple):
    """An entry by one of its names, or a heading of its file.

    `way` is `id`, `title`, `file`, `alias` (called `old`) or `section` (whose heading is on `line`, counted from 0).
    """

    path: str
    id: str
    way: str
    old: str = ""
    line: int = 0


@dataclass(frozen=True)
class EditorActions:
    """The verb rename, and what the language server asks."""

    _vault: Vault
    _index: VaultIndex
    _writer: Writer
    _memories: Memories
    _examination: Examination
    _review: Review

    def entry_use(self, path: str, entry_id: str, drafts: Drafts | None = None) -> EntryUse:
        """Return how prominent an entry is, how often it was shown, and with what outcomes."""
        memory, ranking = self._at(path, entry_id, drafts or {}), self._vault.settings.ranking
        today = self._vault.today()
        age = max(0, (today - memory.seen).days) if memory.seen else 0
        logs = self._vault.machine / "log"
        showings = [one.ts for one in RetrievalLog(logs).read() if memory.id in one.ids]
        done = (one.marks for one in OutcomeLog(logs).read_all() if one.is_done)
        credits = Counter(marks[memory.id].credit for marks in done if memory.id in marks)
        return EntryUse(
            memory,
            age_days=age if memory.seen else None,
            decay=decay(age, ranking.half_life_days, ranking.decay_floor),
            prominence=prominence(memory.importance, age, memory.reinforcement_count, memory.status, ranking),
            scope_weight=ranking.scope.of(memory.place.scope),
            shown=len(showings),
            last_shown=showings[-1] if showings else None,
            outcomes=tuple(credits.items()),
            claims=assess(memory, project_files(self._vault, 5.0), today).verdict if memory.has_claim else None,
        )

    def rename(
        self,
        wanted: str,
        new: str,
        *,
        title: bool = False,
        file: bool = False,
        folder: bool = False,
        dry_run: bool = False,
    ) -> RunReport:
        """Call an entry otherwise, and rewrite every link that uses the old name; all or nothing.

        `new` is its id; with `title` what it is titled by (its title, its first heading, or its file), with `file` the
        name of its file, with `folder` the folder that its file moves to, "" for the top of the vault.
        """
        if title + file + folder > 1:
            raise UsageError("one thing is renamed at a time", "name one of --title, --file and --folder")
        found, way = self._memories.find(wanted), "file" if file else "title" if title else "id"

        def plan() -> Sequence[Change]:
            if folder:
                return self._plan_moving(found.path, new)
            return self._plan_renaming(RenamedEntry(found.path, found.id, way), new, {})

        if dry_run:
            return self._writer.run("rename", plan(), dry_run=True)
        with self._writer.lock():
            return self._writer.run("rename", plan())

    def _plan_moving(self, path: str, folder: str) -> Sequence[Change]:
        name = path.rpartition("/")[2]
        if path.startswith(GLOBAL_PREFIX) or name.lower() in _FIXED_NAMES:
            raise UsageError(f"{path} is where the format expects it", "move it by hand, or move other notes")
        to = path_in(folder, name, self._vault)
        if to == path:
            return ()
        if self._writer.writable(to).exists():
            raise UsageError(f"{to} is there already", "rename one of them first: --file")
        return self._plan_moves({path: to}, {})

    def _plan_moves(self, moves: Mapping[str, str], drafts: Drafts) -> Sequence[Change]:
        catalog = self._examination.catalog()
        staying = {stem for stem, paths in catalog.stems.items() if not moves.keys() >= set(paths)}

        attachments = Attachments(self._vault)
        moved = {path.rpartition("/")[2].casefold() for path in moves if is_attachment(path)}
        names = {word for name in moved for word in (name, quote(name).casefold())}

        def mentions(path: str) -> bool:
            text = self._examination.draft_note(path, drafts).text.casefold()
            return any(name in text for name in names)

        moving = Moving(
            moves,
            catalog.resolve_file,
            lambda path: stem_of(path) not in staying if path in moves.values() else catalog.is_alone(path),
            attachments.find,
            lambda path: {path} >= {moves.get(one, one) for one in attachments.named(path.rpartition("/")[2])},
        )
        paths = dict.fromkeys([*catalog.files_around(moves), *drafts])
        if names:
            paths |= dict.fromkeys(path for path in sorted({one.path for one in catalog.entries}) if mentions(path))
        return plan_moving(moving, self._notes(paths, drafts))

    def propose_renaming(self, named: RenamedEntry, new: str, drafts: Drafts) -> Composition:
        """Return what renaming an entry would make of the files, with the drafts in their places."""
        return self._composed(self._plan_renaming(named, new, drafts), drafts)

    def propose_moving(self, moves: Mapping[str, str], drafts: Drafts) -> Composition:
        """Return what moving files, given by their old and new paths, would make of the links to them and in them."""
        return self._composed(self._plan_moves(moves, drafts), drafts)

    def _plan_heading(self, path: str, line: int, new: str, drafts: Drafts) -> Sequence[Change]:
        text, catalog = self._examination.draft_note(path, drafts).text, self._examination.catalog()
        heading = heading_at(text, line)
        if heading is None:
            raise UsageError(f"line {line + 1} of {path} is no heading any more")
        renaming = HeadingRenaming(path, text, heading, check_name(new, "heading"), catalog.resolve_file)
        return plan_heading_renaming(renaming, self._notes([*catalog.files_around([path]), *drafts], drafts))

    def _plan_renaming(self, named: RenamedEntry, new: str, drafts: Drafts) -> Sequence[Change]:
        path, entry_id = named.path, named.id
        if named.way == "section":
            return self._plan_heading(path, named.line, new, drafts)
        note = self._examination.draft_note(path, drafts)
        entry = find_entry(note.text, path, entry_id)
        way = way_of(entry, note.text, named.way)
        if way == "id" and not entry.has_own_id:
            raise UsageError(f"{path} has no id of its own", "rename its title: --title")
        if way == "file" and path.rpartition("/")[2].lower() in _FIXED_NAMES:
            raise UsageError(f"{path} is called so by the format", "give it a title")
        catalog, stem = self._examination.catalog(), note_name(path)
        names = {"id": entry.id, "title": entry.title or "", "file": stem, "alias": named.old}
        old = names.get(way) or shown_title(self._at(path, entry_id, drafts).title)
        name = check_name(new, way)
        if name == old:
            return ()
        taken = catalog.resolve(name)
        if taken and (taken.path, taken.id) != (path, entry_id):
            raise UsageError(f"{name!r} is what {taken.path}:{taken.line} is called already", "choose another name")
        if way == "file":
            return self._plan_moves({path: f"{path[: path.rfind('/') + 1]}{name}.md"}, drafts)

        def leads_to(target: str, source: str) -> bool:
            found = catalog.resolve(target, source)
            return (found.path, found.id) == (path, entry_id) if found else "/" not in target

        kept = catalog.kept_names(path, entry_id, way)
        renaming = Renaming(path, entry_id, way, old, name, leads_to, lambda target: name_key(target) in kept)
        if way == "heading":
            heading = title_heading(note.text, entry)
            day, found, rest = heading.words.rpartition(shown_title(heading.words).strip() or heading.words)
            if not found:
                raise CannotSplice(f"the heading of {entry_id} in {path} cannot be found")
            title = HeadingRenaming(path, note.text, heading, f"{day}{name}{rest}", catalog.resolve_file)
            renaming = renaming._replace(change_heading=title.rewrite)
        return plan_renaming(renaming, self._notes([path, *self._linking(catalog, renaming), *drafts], drafts))

    def _notes(self, paths: Iterable[str], drafts: Drafts) -> list[NoteText]:
        return [self._examination.draft_note(path, drafts) for path in dict.fromkeys(paths)]

    def _linking(self, catalog: Catalog, renaming: Renaming) -> list[str]:
        """Return the files with links to an entry, those by lists of ids among them."""
        entry = catalog.entry(renaming.path, renaming.entry_id)
        links = list(catalog.incoming(entry)) if entry else []
        found = {one.entry.path for one in links if renaming.leads_to(one.target, one.entry.path)}
        if renaming.way == "id":
            quoted = f'"{renaming.old}"'
            found |= {one.path for one in catalog.entries if one.metadata and quoted in one.metadata}
        return sorted(found)

    def propose(self, action: str, path: str, entry_id: str, drafts: Drafts, other: str = "") -> Composition:
        """Return the files as they would be if an entry were retired, approved, promoted or merged.

        Files with a draft are taken as the draft is.
        """
        memory = self._at(path, entry_id, drafts)
        if action == "retire":
            retired = plan_fields(memory, {"status": "retired"}, "Forgotten on request.")
            plan: Sequence[Change] = [retired] if retired else []
        elif action == "approve":
            approval = self._review.approval()

            def read(path: str) -> NoteText | None:
                return self._examination.draft_note(path, drafts) if path in drafts else approval.read(path)

            plan = replace(approval, read=read).plan([memory])
        elif action == "promote":
            plan = self._plan_promoting(memory)
        elif action == "merge":
            plan = self._plan_merging(memory, other, drafts)
        else:
            raise UsageError(f"unknown action {action!r}", "it may be retire, approve, promote or merge")
        return self._composed(plan, drafts)

    def _plan_promoting(self, memory: Memory) -> Sequence[Change]:
        learning = copy_for_wider_scope(memory, self._vault.clock())
        if learning is None:
            said = f"{memory.id} cannot be promoted from {memory.place.scope}"
            raise UsageError(said, "only live entries rise, and the home is the top")
        plan = self._memories.plan_ingest([learning])
        if not plan.changes:
            (result,) = plan.results
            raise UsageError(f"not promoted: {result.message or f'{result.id} is there already'}")
        return plan.changes

    def _plan_merging(self, memory: Memory, other: str, drafts: Drafts) -> Sequence[Change]:
        found = self._examination.catalog().ids.get(other, ())
        if not found or (other, found[0].path) == (memory.id, memory.path):
            raise UnknownEntry(other)
        primary, *others = rank_for_merging([memory, self._at(found[0].path, other, drafts)])
        today = self._vault.today()

        def archive(one: Memory) -> str:
            return archive_path(one, self._vault.folder_of(one.place), today)

        def body_of(one: Memory) -> str:
            text = self._examination.draft_note(one.path, drafts).text
            body = find_entry(text, one.path, one.id).body
            return text[body.start : body.end]

        return merge_entries(primary, others, archive, body_of, "A person merged them.")

    def _at(self, path: str, entry_id: str, drafts: Drafts) -> Memory:
        """Return an entry as it is in a draft, else in the index."""
        if path in drafts:
            memories = read_unsaved(path, drafts[path], is_memory=self._vault.memory is not None)
        else:
            memories = self._index.read(lambda index: list(index.memories(EVERYTHING, path)))
        found = next((one for one in memories if one.id == entry_id), None)
        if found is None:
            raise UnknownEntry(entry_id)
        return found

    def _composed(self, plan: Sequence[Change], drafts: Drafts) -> Composition:
        # Whole files that only move are last in a plan; an editor moves them itself.
        edits = [change for change in plan if change.entry_id or not change.to]
        moves = tuple((change.path, change.to) for change in plan if change.to and not change.entry_id)
        files = {
            path: encode(drafts[path]) if path in drafts else read_if_there(path, self._vault.resolve(path))
            for path in paths_of(edits)
        }
        return compose(edits, files)._replace(moves=moves)
