"""The verb rename, and what an editor is proposed: renames, moves, and actions on an entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.editing.examination import Drafts, read_draft
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
from memory_kb.index.editor_catalog import Catalog
from memory_kb.index.link_names import entries_named, stem_of
from memory_kb.index.listing import find_linking_files, report_links
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning.citations import assess
from memory_kb.learning.compaction import archive_path, merge_entries, rank_for_merging
from memory_kb.learning.lifecycle import copy_for_wider_scope
from memory_kb.learning.memories import Memories
from memory_kb.learning.review import Review
from memory_kb.markdown.headings import find_anchor
from memory_kb.markdown.links import find_links
from memory_kb.markdown.splice import find_entry, read_entries, refuse_broken, yaml_span
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, Span
from memory_kb.reports import RunReport
from memory_kb.search.scoring import decay, prominence
from memory_kb.store.changes import Change, plan_fields
from memory_kb.store.file_edits import NoteText, read_if_there
from memory_kb.store.logs import OutcomeLog, RetrievalLog
from memory_kb.store.project_files import project_files
from memory_kb.store.render_changes import Composition, compose, paths_of
from memory_kb.store.writer import Writer
from memory_kb.terms import name_key
from memory_kb.text import encode, note_name
from memory_kb.vault import GLOBAL_PREFIX, Vault

#: Of more entries than this, all notes are read for links to them: to ask the index for each takes longer.
_MOST_ASKED = 100
#: Files that the format names.
_FIXED_NAMES = ("memory.md", "institutional.md", "proxy.md")


class EntryUse(NamedTuple):
    """An entry with the factors of its prominence, how it was used, whether its claims hold, and its links out and in.

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
    links: tuple[int, int]


class RenamedEntry(NamedTuple):
    """An entry by one of its names, or a heading of its file.

    `way` is `id`, `title`, `file` or `section` (whose heading is on `line`, counted from 0).
    """

    path: str
    id: str
    way: str
    line: int = 0


class Mention(NamedTuple):
    """A place of a note that links to an entry or a section."""

    path: str
    span: Span


@dataclass(frozen=True)
class EditorActions:
    """The verb rename, and what the language server asks."""

    _vault: Vault
    _index: VaultIndex
    _writer: Writer
    _memories: Memories
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
            links=self._index.read(lambda index: _count_links(index, path, entry_id)),
        )

    def find_mentions(
        self, path: str, entry_id: str, drafts: Drafts, section: Span | None = None
    ) -> tuple[Mention, ...]:
        """Return where notes link to an entry, or to a section of its file; texts in `drafts` count as they are."""
        notes = self._notes([*self._find_linking([path]), *drafts], drafts)
        links = {note.path: list(find_links(note.text, with_own=True)) for note in notes}
        blocks = {note.path: read_entries(note.text, note.path) for note in notes}
        wanted = {(source, link.target) for source, found in links.items() for link in found if link.target}
        wanted |= {(source, link.to) for source, found in blocks.items() for one in found for link in one.links}
        # All entries of a large vault would take longer than all else.
        catalog = self._index.read(lambda index: Catalog(entries_named(index, wanted, [entry_id])))
        entry = next((one for one in catalog.entries if (one.path, one.id) == (path, entry_id)), None)
        target = self._note(path, drafts).text

        def is_meant(name: str, source: str, anchor: str = "") -> bool:
            if section is None:
                return bool(name) and entry is not None and catalog.resolve(name, source) == entry
            leads_here = path == (catalog.resolve_file(name, source) if name else source)
            return bool(anchor) and leads_here and find_anchor(target, anchor) == section

        def mentions(note: NoteText) -> Iterator[Span]:
            for link in links[note.path]:
                if is_meant(link.target, note.path, link.anchor):
                    yield link.whole
            for one in blocks[note.path]:
                for name in dict.fromkeys(link.to for link in one.links if is_meant(link.to, note.path)):
                    place = note.text.find(name, yaml_span(note.text, one).start, one.body.start)
                    if place >= 0:
                        yield Span(place, place + len(name))

        return tuple(Mention(note.path, span) for note in notes for span in mentions(note))

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
        return self._plan_moves({path: to}, {}, self._catalog())

    def _plan_moves(self, moves: Mapping[str, str], drafts: Drafts, catalog: Catalog) -> Sequence[Change]:
        moving = Moving(
            moves,
            catalog.resolve_file,
            is_file=lambda path: not path.startswith("..") and self._vault.resolve(path).is_file(),
        )
        moved = [path for path in catalog.files if moving.path_after(path) != path]
        stems = Counter(stem_of(moving.path_after(path)) for path in catalog.files)
        moving = moving._replace(is_alone=lambda path: stems[stem_of(path)] <= 1)
        return plan_moving(moving, self._notes([*self._find_linking(moved), *drafts], drafts))

    def propose_renaming(self, named: RenamedEntry, new: str, drafts: Drafts) -> Composition:
        """Return what renaming an entry would make of the files, with the drafts in their places."""
        return self._composed(self._plan_renaming(named, new, drafts), drafts)

    def propose_moving(self, moves: Mapping[str, str], drafts: Drafts) -> Composition:
        """Return what moving notes, or folders with `/` at their ends, would make of the links to them and in them."""
        return self._composed(self._plan_moves(moves, drafts, self._catalog()), drafts)

    def _plan_heading(self, path: str, line: int, new: str, drafts: Drafts) -> Sequence[Change]:
        text, catalog = self._note(path, drafts).text, self._catalog()
        heading = heading_at(text, line)
        if heading is None:
            raise UsageError(f"line {line + 1} of {path} is no heading any more")
        renaming = HeadingRenaming(path, text, heading, check_name(new, "heading"), catalog.resolve_file)
        return plan_heading_renaming(renaming, self._notes([*self._find_linking([path]), *drafts], drafts))

    def _plan_renaming(self, named: RenamedEntry, new: str, drafts: Drafts) -> Sequence[Change]:
        path, entry_id = named.path, named.id
        if named.way == "section":
            return self._plan_heading(path, named.line, new, drafts)
        note = self._note(path, drafts)
        entry = find_entry(note.text, path, entry_id)
        way = way_of(entry, note.text, named.way)
        if way != "file":
            refuse_broken(entry, path)
        if way == "id" and not entry.has_own_id:
            raise UsageError(f"{path} has no id of its own", "rename its title: --title")
        if way == "file" and path.rpartition("/")[2].lower() in _FIXED_NAMES:
            raise UsageError(f"{path} is called so by the format", "give it a title")
        catalog = self._catalog()
        names = {"id": entry.id, "title": entry.title or "", "file": note_name(path)}
        old = names.get(way) or shown_title(self._at(path, entry_id, drafts).title)
        name = check_name(new, way)
        if name == old:
            return ()
        taken = catalog.resolve(name)
        if taken and (taken.path, taken.id) != (path, entry_id):
            raise UsageError(f"{name!r} is what {taken.path}:{taken.line} is called already", "choose another name")
        if way == "file":
            return self._plan_moves({path: f"{path[: path.rfind('/') + 1]}{name}.md"}, drafts, catalog)

        def leads_to(target: str, source: str) -> bool:
            found = catalog.resolve(target, source)
            return (found.path, found.id) == (path, entry_id) if found else "/" not in target

        stored = next((one for one in catalog.entries if (one.path, one.id) == (path, entry_id)), None)
        kept = catalog.names_of_file(stored) if stored else frozenset[str]()
        renaming = Renaming(path, entry_id, way, old, name, leads_to, lambda target: name_key(target) in kept)
        if way == "heading":
            heading = title_heading(note.text, entry)
            day, found, rest = heading.words.rpartition(shown_title(heading.words).strip() or heading.words)
            if not found:
                raise CannotSplice(f"the heading of {entry_id} in {path} cannot be found")
            title = HeadingRenaming(path, note.text, heading, f"{day}{name}{rest}", catalog.resolve_file)
            renaming = renaming._replace(change_heading=title.rewrite)
        listing = self._index.read(lambda index: index.files_with_metadata([f'"{old}"'])) if way == "id" else []
        return plan_renaming(renaming, self._notes([*self._find_linking([path]), *listing, *drafts], drafts))

    def _catalog(self) -> Catalog:
        return self._index.read(lambda index: Catalog(list(index.entries(EVERYTHING))))

    def _note(self, path: str, drafts: Drafts) -> NoteText:
        """Return a note as it is in an editor, or as it is saved if no editor has it open."""
        return NoteText(path, encode(drafts[path])) if path in drafts else self._writer.read(path)

    def _notes(self, paths: Iterable[str], drafts: Drafts) -> list[NoteText]:
        return [self._note(path, drafts) for path in dict.fromkeys(paths)]

    def _find_linking(self, paths: Iterable[str]) -> list[str]:
        """Return some files, and those that may link to them."""

        def find(index: SqliteIndex) -> set[str]:
            entries = index.entries_of(paths)
            if len(entries) > _MOST_ASKED:
                return set(index.file_hashes())
            return {path for entry in entries for path in find_linking_files(index, entry)}

        return sorted(self._index.read(find).union(paths))

    def propose(self, action: str, path: str, entry_id: str, drafts: Drafts, other: str = "") -> Composition:
        """Return the files as they would be if an entry were retired, approved, promoted or merged.

        Files with a draft are taken as the draft is.
        """
        memory = self._at(path, entry_id, drafts)
        if action == "retire":
            retired = plan_fields(memory, {"status": "retired"}, "Forgotten on request.")
            plan: Sequence[Change] = [retired] if retired else []
        elif action == "approve":
            plan = self._review.plan_approval([memory])
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
        found = self._memories.find(other)
        if (found.id, found.path) == (memory.id, memory.path):
            raise UnknownEntry(other)
        primary, *others = rank_for_merging([memory, self._at(found.path, found.id, drafts)])
        today = self._vault.today()

        def archive(one: Memory) -> str:
            return archive_path(one, self._vault.folder_of(one.place), today)

        def body_of(one: Memory) -> str:
            text = self._note(one.path, drafts).text
            body = find_entry(text, one.path, one.id).body
            return text[body.start : body.end]

        return merge_entries(primary, others, archive, body_of, "A person merged them.")

    def _at(self, path: str, entry_id: str, drafts: Drafts) -> Memory:
        """Return an entry as it is in a draft, else in the index."""
        if path in drafts:
            note = read_draft(path, drafts[path], is_memory=self._vault.memory is not None)
            memories = [one.memory for one in note.entries]
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


def _count_links(index: SqliteIndex, path: str, entry_id: str) -> tuple[int, int]:
    """Return how many links lead from a saved entry and to it."""
    for entry in index.entries_of([path]):
        if entry.id == entry_id:
            report = report_links(index, entry)
            return len(report.outgoing), len(report.incoming)
    return 0, 0
