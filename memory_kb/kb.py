"""KnowledgeBase: the one way in.

It wires the rooms together and holds no rules of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from memory_kb.errors import Forgotten, InvalidSettings, UsageError, VaultNotFound
from memory_kb.filters import FilterWords, make_filters, make_place
from memory_kb.index.keeper import LONG_PATIENCE, IndexKeeper, count_files
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.locks import hold_lock
from memory_kb.model import Freshness, Problem, SearchResult
from memory_kb.notes.machine import choose_machine, prepare_machine
from memory_kb.notes.vault import MACHINE, Vault, find_vault
from memory_kb.settings import LoadedSettings, load_settings

if TYPE_CHECKING:
    from memory_kb.index.indexer import Progress
    from memory_kb.model import SyncReport
    from memory_kb.reports import EntryView, Findings, Learned, LinkReport, Stats, Status
    from memory_kb.retrieval.retriever import Request

_T = TypeVar("_T")


class KnowledgeBase:
    """A vault, open for reading and learning.

    Example:
        with KnowledgeBase.open("~/notes") as kb:
            for hit in kb.search("flaky tests", limit=5).hits:
                print(hit.score, hit.path, hit.title)
    """

    def __init__(self, vault: Vault, loaded: LoadedSettings, machine: Path, clock: Callable[[], datetime]) -> None:
        self.vault = vault
        self.settings = loaded.settings
        self.warnings = loaded.warnings
        self.machine = machine
        self._clock = clock
        self._keeper = IndexKeeper(vault, machine, loaded.settings)

    @classmethod
    def open(
        cls,
        vault: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> KnowledgeBase:
        """Open the vault at a folder, or the one the surroundings tell.

        Without a folder, `MEMORY_KB_VAULT` or the working folder tells.

        Args:
            vault: any folder of Markdown files, or one that holds `memory/`.
            home: the global home; `MEMORY_KB_HOME`, else `~/.memory`, when not given.
            environ: the environment to read settings from.
            clock: what time it is; must return aware times. `MEMORY_KB_NOW` fixes it from outside.

        Raises:
            VaultNotFound: there is no such folder.
            InvalidSettings: a configuration file cannot be used.
        """
        variables = os.environ if environ is None else environ
        found = find_vault(vault, home, environ=variables, cwd=_working_folder())
        vault_file = found.memory / "config.yaml" if found.memory else found.machine / "config.yaml"
        loaded = load_settings(found.home / "config.yaml", vault_file, variables)
        machine = choose_machine(found, loaded.settings.index.path, variables)
        return cls(found, loaded, machine, clock or _read_clock(variables))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the index; it is opened again when it is used again."""
        self._keeper.close()

    def sync(self, *, rebuild: bool = False, progress: Progress | None = None, on_wait: Callable[[], None] | None = None) -> SyncReport:
        """Bring the index to what the files say.

        `rebuild` starts from nothing but keeps vectors.

        Raises:
            VaultBusy: another process has been indexing for a minute.
        """
        return self._keeper.sync(rebuild=rebuild, progress=progress, on_wait=on_wait)

    # -- reading ---------------------------------------------------------------------------

    def search(
        self,
        query: str = "",
        *,
        limit: int = 10,
        mode: str = "auto",
        max_chars: int = 0,
        explain: bool = False,
        sync: bool = True,
        progress: Progress | None = None,
        **filters: Unpack[FilterWords],
    ) -> SearchResult:
        """Return what the vault knows about a query, best first.

        Args:
            query: words in any language; `"exact phrases"` and `-excluded` words are honoured.
            limit: the most hits to return; the first ones are the same for every limit.
            mode: `auto` or `text`; other modes answer in text and say so.
            max_chars: stop before the hits' texts get longer than this together; 0 for no budget.
            explain: say how each score came about.
            sync: look for changed files first.
            progress: called with the number of files done, should the index have to be built.
            filters: `kind`, `type`, `learning_type`, `scope`, `tag` and `status` keep entries with
                one of these words, `file` those whose `applies_to` covers the path (the query may
                then be empty), `since` those dated on or after a day; with `job` and `task` their
                siblings are hidden.

        Raises:
            UsageError: a filter is not a word of the format.
        """
        from memory_kb.retrieval.retriever import Request

        request = Request(query, make_filters(**filters), max(0, limit), max_chars, explain)
        return self._keeper.use(lambda index: self._search(index, request, mode, sync=sync, progress=progress))

    def _search(self, index: SqliteIndex, request: Request, mode: str, *, sync: bool, progress: Progress | None) -> SearchResult:
        from memory_kb.retrieval.retriever import retrieve

        pending, degraded = self._keeper.refresh(progress) if sync else (None, ())
        if not sync and index.generation == 0:
            degraded = ("this vault was never indexed; run the search without --no-sync, or `memory-kb index`",)
        if mode in ("vector", "hybrid"):
            degraded += (f"{mode} search needs an embedding provider, and none is configured; this is a text search",)
        with index.snapshot():
            hits, notes = retrieve(index, request, self.settings.ranking, self._clock().date())
            cut = index.count_cut()
            freshness = Freshness(index.generation, pending)
        if cut:
            degraded += (f"{count_files(cut)} too large to be indexed whole; `memory-kb lint` says which",)
        if request.filters.job and not self.vault.scope_folder("job", request.filters.job).is_dir():
            degraded += (f"there is no job {request.filters.job!r}",)
        return SearchResult(request.text, "text", hits, (*self._keeper.take_notices(), *degraded, *notes), freshness)

    def show(self, wanted: str) -> EntryView:
        """Return an entry with its source text.

        It is named by its id, a unique beginning of one, or `path.md:LINE`.

        Raises:
            UnknownEntry: there is none.
            AmbiguousId: there are several.
        """
        from memory_kb.index import inventory

        return self._reading(lambda index: inventory.show(self.vault, index, wanted))

    def list(self, **filters: Unpack[FilterWords]) -> tuple[EntryView, ...]:
        """Return the entries that pass the filters, in path order.

        The filters are those of `search`.
        """
        from memory_kb.index import inventory

        chosen = make_filters(**filters)
        return self._reading(lambda index: inventory.list_entries(index, chosen))

    def links(self, wanted: str) -> LinkReport:
        """Return what an entry links to and what links to it.

        Links are typed relations and `[[wikilinks]]`.
        """
        from memory_kb.index import inventory

        return self._reading(lambda index: inventory.links(self.vault, index, wanted))

    def stats(self) -> Stats:
        """Return how much the vault holds, by kind, type, status and scope."""
        from memory_kb.index import inventory

        return self._reading(inventory.stats)

    def status(self) -> Status:
        """Compare disk and index as they are, without changing either."""
        from memory_kb.index import inventory

        return self._keeper.use(lambda index: inventory.status(self.vault, index, self.settings))

    def _reading(self, work: Callable[[SqliteIndex], _T]) -> _T:
        """Read from the index after looking for changed files."""

        def read(index: SqliteIndex) -> _T:
            self._keeper.refresh()
            with index.snapshot():
                return work(index)

        return self._keeper.use(read)

    # -- learning --------------------------------------------------------------------------

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

    @contextmanager
    def _writing(self, scope: str) -> Iterator[None]:
        """Hold the lock of the scope root that is about to be written."""
        try:
            machine = prepare_machine(self.vault.home / MACHINE) if scope == "global" else self.machine
        except OSError as exc:
            raise VaultNotFound(
                f"the home {self.vault.home} cannot be written: {exc.strerror}", "name another with --home or MEMORY_KB_HOME"
            ) from exc
        with hold_lock(machine / "lock", LONG_PATIENCE):
            yield

    # -- findings --------------------------------------------------------------------------

    def doctor(self, *, fix: bool = False) -> Findings:
        """Examine notes and index.

        `fix` brings the index to what the files say and sweeps up after killed writes.
        """
        from memory_kb.index import doctor
        from memory_kb.reports import Findings

        problems = self._keeper.use(lambda index: tuple(doctor.check_index(self.vault, index, self.settings)))
        repaired: list[str] = []
        if fix:
            if problems:
                self.sync(rebuild=True)
                repaired += [f"{problem}: the index was rebuilt" for problem in problems]
                problems = ()
            repaired += [f"{file}: left by a write that was killed, deleted" for file in doctor.sweep_leftovers(self.vault)]
        return Findings((*problems, *self.lint()), tuple(repaired))

    def lint(self, paths: Sequence[str] = ()) -> tuple[Problem, ...]:
        """Return what should be mended in the notes.

        With `paths`, only those at or below one of them are examined.
        """
        from memory_kb.index import doctor

        return self._reading(lambda index: doctor.lint(self.vault, index, self.settings, paths))


def _working_folder() -> Path:
    """Return the working folder, or the root where it was deleted under us."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)


def _read_clock(environ: Mapping[str, str]) -> Callable[[], datetime]:
    """Return the clock, stopped where `MEMORY_KB_NOW` says so.

    A stopped clock makes answers repeatable.
    """
    fixed = environ.get("MEMORY_KB_NOW")
    if not fixed:
        return lambda: datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(fixed)
    except ValueError as exc:
        raise InvalidSettings(f"MEMORY_KB_NOW is {fixed!r}", "write a moment as 2026-03-01T12:00:00Z") from exc
    return lambda: moment if moment.tzinfo else moment.replace(tzinfo=UTC)
