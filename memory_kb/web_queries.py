"""What the web page alone shows of a vault: the link graph, recent changes, the past of an entry."""

from __future__ import annotations

import heapq
import posixpath
from collections import Counter
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import GitFailed, NoRepository
from memory_kb.git.history import Version
from memory_kb.index.doctor import LintPass, cross_check, read_last
from memory_kb.index.link_map import LinkMap, find_node, read_map, take_around, take_busiest
from memory_kb.index.lint_cache import LINT_CACHE, LintCache
from memory_kb.index.listing import Listing, find_entry_by_name, view
from memory_kb.model import KINDS, SCOPES, STATUSES, Filters
from memory_kb.providers.spending import SpendLog
from memory_kb.reports import EntryView
from memory_kb.store.logs import MaintenanceLog
from memory_kb.store.session_events import normal_time
from memory_kb.store.undo import Undo, undone_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_kb.git.service import Git
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.vault import Vault


#: From so many files on, what holds them all against each other is done in the background.
MANY_FILES = 1_000
#: Commits that a page looks through, and lines that it shows of one difference.
_MOST_COMMITS, _MOST_LINES = 100, 200
_NOTES, _FOLDERS, _TAGS = 10, 30, 20


class ChangedNote(NamedTuple):
    """The first entry of a note, and the local time at which its file was written last."""

    view: EntryView
    time: str


class FilterValues(NamedTuple):
    """The words that the entries of a vault have for filters, and whether some have tags and days."""

    kinds: tuple[str, ...]
    scopes: tuple[str, ...]
    statuses: tuple[str, ...]
    has_tags: bool
    has_days: bool


class Recent(NamedTuple):
    """The notes that changed last, and the folders and tags with the most entries, each with their number.

    `total` counts all entries. A folder's number includes the folders below it; one that holds every entry is left out.
    """

    notes: tuple[ChangedNote, ...]
    folders: tuple[tuple[str, int], ...]
    tags: tuple[tuple[str, int], ...]
    total: int


def _find_recent(index: SqliteIndex) -> Recent:
    """Return what changed last, of the entries that a list shows without filters."""
    times = {one.path: one.mtime_ns for one in index.known_files()}
    sources: set[str] = set()
    within, folders, tags = Counter[str](), Counter[str](), Counter[str]()
    for source, listed in index.tag_lists(Filters()):
        sources.add(source)
        within[posixpath.dirname(source)] += 1
        tags.update({tag for tag in listed.split(",") if tag})
    total = within.total()
    for folder, number in within.items():
        path = PurePosixPath(folder)
        folders.update({str(one): number for one in (path, *path.parents) if one.name})
    notes = heapq.nlargest(_NOTES, sorted(sources), key=lambda path: times.get(path, 0))
    first = {entry.path: entry for entry in reversed(index.entries_of(notes, Filters()))}
    chosen = [(name, number) for name, number in folders.most_common() if number < total][:_FOLDERS]
    return Recent(
        tuple(ChangedNote(view(first[path]), _write_time(times.get(path, 0))) for path in notes),
        tuple(sorted(chosen)),
        tuple(sorted(tags.items(), key=lambda one: (-one[1], one[0]))[:_TAGS]),
        total,
    )


def _write_time(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9).astimezone().strftime("%Y-%m-%d %H:%M") if nanoseconds else ""


class PastStep(NamedTuple):
    """One change of an entry: by a run of ours, or in a commit, with its difference to the one before.

    `undone_by` names the run that reverted it.
    """

    time: str
    run: str | None = None
    verb: str = ""
    action: str = ""
    to: str | None = None
    reason: str = ""
    undone_by: str | None = None
    version: Version | None = None
    diff: str = ""


def _difference(before: str, after: str) -> str:
    from difflib import unified_diff

    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    left_out = len(lines) - _MOST_LINES
    return "\n".join(lines if left_out <= 0 else [*lines[:_MOST_LINES], f"@@ {left_out} more lines @@"])


class Upkeep(NamedTuple):
    """What language models cost, and when which part of the maintenance was last done; dollars."""

    spent_today: float
    daily_spend: float
    provider: str
    last: tuple[tuple[str, datetime], ...]


class LastLook(NamedTuple):
    """What the last examination found, None before the first; the state of the index, and whether it has many files."""

    look: LintPass | None
    generation: int
    is_large: bool

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed since."""
        return self.look is not None and self.look.generation == self.generation


class WebQueries:
    """What the web page alone asks of a vault."""

    def __init__(self, vault: Vault, index: VaultIndex, git: Git, listing: Listing, undo: Undo) -> None:
        self._vault = vault
        self._index = index
        self._git = git
        self._listing = listing
        self._undo = undo

    def recent(self) -> Recent:
        """Return the notes that changed last, and the folders and tags with the most entries."""
        return self._index.read(_find_recent)

    def filter_values(self) -> FilterValues:
        """Return what the filters of a vault can choose."""
        tally = self._index.read(lambda index: index.tally())
        kinds, scopes, statuses = (
            tuple(word for word in words if word in used)
            for words, used in (
                (KINDS, {row.kind for row in tally}),
                (SCOPES, {row.scope for row in tally}),
                (STATUSES, {row.status for row in tally}),
            )
        )
        has_tags, has_days = any(row.has_tags for row in tally), any(row.has_days for row in tally)
        return FilterValues(kinds, scopes, statuses, has_tags, has_days)

    def link_map(self) -> LinkMap:
        """Return all entries and the links between them."""
        return self._index.read(lambda index: self._read_links(index, may_be_old=False))

    def links_around(self, wanted: str, path: str, steps: int, limit: int) -> LinkMap:
        """Return what can be reached from an entry in some steps along links, whichever way they point.

        Of a large vault it is the map of the last `lint`. `path` is the file of the entry, where several have the id.
        Of more entries than the limit those with more links are taken first.
        """

        def read(index: SqliteIndex) -> LinkMap:
            links = self._read_links(index)
            center = find_node(links, wanted, path)
            if center is None:
                entry = find_entry_by_name(self._vault, index, wanted)
                center = find_node(links, entry.id, entry.path)
            return LinkMap((), ()) if center is None else take_around(links, center, steps, limit)

        return self._index.read(read)

    def busiest_links(self, limit: int, kinds: Sequence[str], scopes: Sequence[str], folder: str) -> LinkMap:
        """Return where most links meet, of all entries or of some kinds, scopes and a folder; see `links_around`."""
        links = self._index.read(self._read_links)
        wanted = {
            node.key
            for node in links.nodes
            if node.path.startswith(folder)
            and (not kinds or node.kind in kinds)
            and (not scopes or node.scope in scopes)
        }
        return take_busiest(links.part(wanted), limit)

    def _read_links(self, index: SqliteIndex, *, may_be_old: bool = True) -> LinkMap:
        cache = LintCache(self._vault.machine / LINT_CACHE)
        if not (may_be_old and index.has_more_files(MANY_FILES) and cache.has_folder):
            cross_check(self._vault, index, cache)
        return read_map(cache)

    def last_look(self, verb: str) -> LastLook:
        """Return what the last `lint` or `doctor` found."""
        return self._index.read(
            lambda index: LastLook(read_last(self._vault, verb), index.generation, index.has_more_files(MANY_FILES))
        )

    def past_of(self, wanted: str) -> tuple[PastStep, ...]:
        """Return the runs and commits that changed an entry or its whole file in one list, newest first."""
        entry = self._listing.show(wanted)
        runs = self._undo.done_runs()
        undone = undone_by(runs)
        steps = [
            PastStep(run.time, run.id, run.verb, one.action, one.to, one.reason, undone.get(run.id))
            for run in reversed(runs)
            for one in run.made
            if one.entry_id == entry.id or (one.entry_id is None and entry.path in (one.path, one.to))
        ]
        with suppress(NoRepository, GitFailed):
            versions = self._git.history(wanted, most=_MOST_COMMITS)
            texts = [*(version.text or "" for version in versions), ""]
            steps += [
                PastStep(version.time, version=version, diff=_difference(before, text))
                for version, text, before in zip(versions, texts, texts[1:], strict=False)
            ]
        return tuple(sorted(steps, key=lambda one: normal_time(one.time), reverse=True))

    def upkeep(self) -> Upkeep:
        """Return what was spent today on language models, and when each step of the maintenance was last done."""
        llm, logs = self._vault.settings.llm, self._vault.machine / "log"
        spent = SpendLog(logs / "spend.jsonl", llm.daily_spend, self._vault.clock).spent_today()
        last = sorted(MaintenanceLog(logs).last().items(), key=lambda one: one[1], reverse=True)
        return Upkeep(spent, llm.daily_spend, llm.provider, tuple(last))
