"""An open vault: what all verbs share."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, TypeVar, Unpack

from memory_kb.errors import InvalidSettings, VaultNotFound
from memory_kb.index.keeper import LONG_PATIENCE, IndexKeeper
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.locks import hold_lock
from memory_kb.notes.machine import Machine, choose_machine, prepare_machine
from memory_kb.notes.vault import MACHINE, Vault, find_vault
from memory_kb.settings import LoadedSettings, Settings, load_settings

if TYPE_CHECKING:
    from memory_kb.filters import FilterWords
    from memory_kb.index.semantics import Semantics
    from memory_kb.model import Filters, Location
    from memory_kb.ports import Llm
    from memory_kb.reports import WrittenRun

_T = TypeVar("_T")


class Shown(TypedDict, total=False):
    """Who was shown some entries, and why."""

    query: str | None
    session: str | None
    agent: str | None
    task: str | None
    injected: bool


class OpenVault:
    """A vault with its settings, its index, its embedding models, and the clock."""

    def __init__(
        self,
        vault: Vault,
        loaded: LoadedSettings,
        machine: Machine,
        clock: Callable[[], datetime],
        environ: Mapping[str, str],
        project: Path | None = None,
    ) -> None:
        self.vault = vault
        self.settings = loaded.settings
        self.warnings = (*loaded.warnings, *machine.notices)
        self.machine = machine.folder
        self.seal = machine.seal
        self._clock = clock
        self._environ = environ
        self._keeper = IndexKeeper(vault, machine.folder, loaded.settings, machine.seal)
        self._asked_for: tuple[str, str | None] = (str(vault.folder), None)
        self._held: set[tuple[int, str]] = set()
        #: Told of every run as soon as it has written, whatever becomes of its report.
        self.on_written: Callable[[WrittenRun], object] | None = None
        #: Where the files are that notes cite; a vault of the past cites those of today.
        self._project_folder = project or vault.folder

    @functools.cached_property
    def _semantics(self) -> Semantics:
        """The embedding models of this vault and their vectors."""
        return make_semantics(self.settings, self._environ, self.machine)

    @functools.cached_property
    def _llm(self) -> Llm | None:
        """The language model that somebody asked for, or None.

        Raises:
            ProviderFailed: it lacks its key.
        """
        from memory_kb.providers.choosing import choose_llm
        from memory_kb.providers.spending import SpendLog

        chosen = self.settings.llm
        log = SpendLog(self.machine / "log" / "spend.jsonl", chosen.daily_spend, runs=chosen.daily_runs)
        return choose_llm(chosen, self._environ, log)

    @classmethod
    def open(
        cls,
        vault: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> Self:
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
        opened = cls(found, loaded, machine, clock or _read_clock(variables), variables)
        named = vault or variables.get("MEMORY_KB_VAULT") or found.folder
        opened._asked_for = (os.path.abspath(os.path.expanduser(named)), os.fspath(home) if home else None)
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close index and models; they are opened again when they are used again."""
        self._keeper.close()
        if "_semantics" in self.__dict__:
            self._semantics.close()

    @property
    def generation(self) -> int:
        """The number of the index's state; it grows with every change, and is 0 before the first."""
        return self._keeper.use(lambda index: index.generation)

    @property
    def _may_embed(self) -> bool:
        return self.settings.embeddings.provider != "none"

    @property
    def _session(self) -> str | None:
        """The session that whoever called us is in, if the environment tells."""
        return self._environ.get("MEMORY_KB_SESSION") or None

    def _filters(self, **words: Unpack[FilterWords]) -> Filters:
        """Return filters from the words of a caller, the file among them as a path within the project.

        Raises:
            UsageError: a word is not one of the format's, or a task is named without its job.
        """
        from memory_kb.filters import make_filters
        from memory_kb.model import NOWHERE

        chosen = make_filters(**words)
        return chosen if chosen.file is None else chosen._replace(file=self._place_file(chosen.file) or NOWHERE)

    def _place_file(self, file: str) -> str | None:
        """Return a file's path relative to the project, None for one outside."""
        from memory_kb.notes.projectpaths import locate

        return locate(file, self._project_folder, _working_folder())

    def _log_retrieval(self, verb: str, ids: Iterable[str], **about: Unpack[Shown]) -> None:
        """Write down which entries were shown, so that the session's end can count them (S3-49)."""
        from memory_kb.notes.events import format_time
        from memory_kb.notes.retrievals import Retrieval, RetrievalLog

        shown = tuple(dict.fromkeys(ids))
        if shown:
            about["session"] = about.get("session") or self._session
            RetrievalLog(self.machine / "log").append(Retrieval(format_time(self._clock()), verb, shown, **about))

    def _reading(self, work: Callable[[SqliteIndex], _T], around: Location | None = None) -> _T:
        """Read from the index after looking for changed files: at all of them, or those of a scope and the wider ones."""

        def read(index: SqliteIndex) -> _T:
            self._keeper.refresh(regions=self.vault.regions_of(around) if around else None)
            with index.snapshot():
                return work(index)

        return self._keeper.use(read)

    def _prepare_home(self) -> Path:
        """Return the machine folder of the home, made and checked.

        Raises:
            OSError: it cannot be written to.
        """
        prepared = prepare_machine(self.vault.home / MACHINE, self._environ, [self.vault.home])
        self.warnings += prepared.notices
        return prepared.folder

    @contextmanager
    def _writing(self, *scopes: str, patience: float = LONG_PATIENCE) -> Iterator[None]:
        """Hold the locks of what is about to be written, those that are not held already.

        The vault's own is always among them and always the first, the home's is the last: its
        log tells of every run, and two runs cannot wait for each other.
        """
        try:
            machines = [self.machine, *([self._prepare_home()] if "global" in scopes else [])]
        except OSError as exc:
            raise VaultNotFound(
                f"the home {self.vault.home} cannot be written: {exc.strerror}",
                "name another with --home or MEMORY_KB_HOME",
            ) from exc
        with ExitStack() as stack:
            for lock in dict.fromkeys(os.path.join(os.path.realpath(machine), "lock") for machine in machines):
                mine = (threading.get_ident(), lock)
                if mine not in self._held:
                    stack.enter_context(hold_lock(Path(lock), patience))
                    self._held.add(mine)
                    stack.callback(self._held.remove, mine)
            yield


def make_semantics(settings: Settings, environ: Mapping[str, str], machine: Path) -> Semantics:
    """Return the embedding models that the settings ask for, with their vectors in a machine folder."""
    from memory_kb.index.semantics import Semantics
    from memory_kb.providers import choosing

    chosen = settings.embeddings
    return Semantics(
        lambda: choosing.choose_embedder(chosen, environ),
        lambda space: choosing.choose_embedder_for(space, chosen, environ),
        machine,
    )


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
