"""A vault: its roots, scopes, settings, clock and locks."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import UsageError, VaultBusy, VaultNotFound
from memory_kb.lazy_regex import lazy_regex
from memory_kb.model import Location, make_place
from memory_kb.regular_files import DATABASE, MACHINE, open_regular
from memory_kb.settings import Settings
from memory_kb.text import moment_text

GLOBAL_PREFIX = "~global/"
#: `~/MEMORY.md`, which belongs to the default home without lying in it.
HOME_NOTE = "~global/~/MEMORY.md"

#: A file in the machine folder of a plain folder of notes.
PLAIN_MARK = "plain-folder"
_DAY = lazy_regex(r"\d{4}-\d\d-\d\d")
_MARKERS = ("config.yaml", "MEMORY.md", "learnings", "rules", "skills", "episodes", "jobs")
#: Notes of a vault that are beside `memory/`.
TOP_NOTES = ("MEMORY.md", "institutional.md")
_STATUS_FOLDERS = {"archive": "archived", "review": "proposed"}


class Root(NamedTuple):
    """A folder whose Markdown files are notes; `prefix` goes before their paths in all output."""

    prefix: str
    folder: Path
    top_notes: tuple[Path, ...] = ()


class Vault(NamedTuple):
    """A project's vault and the global home that is searched with it, its settings and its clock.

    Attributes:
        folder: what `--vault` names; paths in output are relative to it.
        memory: `folder/memory`, or None for a plain folder of notes.
        home: the global home, which need not exist.
        machine: the folder of what belongs to this machine alone.
        home_note: `~/MEMORY.md`, where the home is the default one.
        seal: the key that signs the runs and the index that this machine made.
        cited: the folder of the files that notes cite; None for `folder`.
        named: the folder and the home as the caller named them, to open the vault again.
        allows_secrets: whether a person wants what looks like a credential to be stored.
        trusts_watcher: whether reads compare no files while a watcher keeps the index up to date.
    """

    folder: Path
    memory: Path | None
    home: Path
    machine: Path
    home_note: Path | None = None
    seal: bytes = b""
    settings: Settings = Settings()
    warnings: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}
    clock: Callable[[], datetime] = partial(datetime.now, UTC)
    cited: Path | None = None
    named: tuple[str, str | None] = ("", None)
    allows_secrets: bool = False
    trusts_watcher: bool = False

    def __repr__(self) -> str:
        # Not the environment, which may hold keys.
        return f"Vault({str(self.folder)!r})"

    @property
    def config_file(self) -> Path:
        """The configuration file of the vault itself, which need not exist."""
        return (self.memory or self.folder / MACHINE) / "config.yaml"

    @property
    def project(self) -> Path:
        """The folder of the files that notes cite; a vault of the past cites those of today."""
        return self.cited or self.folder

    @property
    def session(self) -> str | None:
        """The session that the caller is in, if the environment names it."""
        return self.environ.get("MEMORY_KB_SESSION") or None

    def today(self) -> date:
        """Return the present day in UTC."""
        return self.clock().astimezone(UTC).date()

    def timestamp(self) -> str:
        """Return the present moment as logs store it."""
        return moment_text(self.clock())

    def folder_of(self, place: Location) -> str:
        """Return the folder of a scope as a path in output, with a slash at its end."""
        return self.show(self.scope_folder(place.scope, place.job, place.task) / "x").removesuffix("x")

    def place_for(self, scope: str, job: str | None, task: str | None) -> Location:
        """Return where a new entry goes."""
        place = make_place(scope, job, task)
        if place.job and not self.memory:
            raise UsageError(
                f"{self.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has"
            )
        return place

    @property
    def roots(self) -> tuple[Root, ...]:
        """The project's notes and the global ones, unless both are one folder."""
        top = tuple(self.folder / name for name in TOP_NOTES) if self.memory else ()
        project = Root("memory/", self.memory, top) if self.memory else Root("", self.folder)
        if self.home in (self.folder, self.memory):
            return (project,)
        is_apart = self.home_note is not None and self.home_note.parent != self.folder
        return project, Root(GLOBAL_PREFIX, self.home, (self.home_note,) if self.home_note and is_apart else ())

    def split(self, path: str) -> tuple[Path, str]:
        """Return the root that a path in output is below, and the path from there."""
        if path.startswith(GLOBAL_PREFIX):
            return self.home, path.removeprefix(GLOBAL_PREFIX)
        return self.folder, path

    def resolve(self, path: str) -> Path:
        """Return the file that a path in output stands for."""
        if path == HOME_NOTE and self.home_note:
            return self.home_note
        root, inner = self.split(path)
        file = root / inner
        if "\\x" in inner and not file.exists():
            # A name that is not UTF-8, which output spells with its bytes in hexadecimal.
            raw = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), inner.encode())
            return root / os.fsdecode(raw)
        return file

    def scope_folder(self, scope: str, job: str | None = None, task: str | None = None) -> Path:
        """Return the folder that holds the entries of a scope."""
        if scope == "global":
            return self.home
        base = self.memory or self.folder
        base = base if job is None else base / "jobs" / job
        return base if task is None else base / "tasks" / task

    def show(self, file: Path) -> str:
        """Return the path in output of a file of this vault."""
        roots = [root for root in (self.folder, self.home) if file.is_relative_to(root)]
        deepest = max(roots, key=lambda root: len(root.parts))
        return ("" if deepest == self.folder else GLOBAL_PREFIX) + file.relative_to(deepest).as_posix()


def count_day_folders(path: str) -> int:
    """Return how many folders around a file were made for the episodes of a day, and are of no use without them.

    Example:
        >>> [count_day_folders(path) for path in ("memory/jobs/a/episodes/2026-03-24/x.md", "memory/episodes/2026-03-24/x.md", "rules/x.md")]
        [2, 1, 0]
    """
    *outer, kind, day, _ = ("", "", *path.split("/"))
    if kind != "episodes" or not _DAY.fullmatch(day):
        return 0
    return 2 if "jobs" in outer else 1


def is_memory_folder(folder: Path) -> bool:
    """Return whether a folder has the inside of a vault.

    A machine folder counts, unless it says that it belongs to a plain folder of notes: reading
    `notes/memory` by itself must not change what `notes` is.
    """
    if not folder.is_dir():
        return False
    has_machine = (folder / MACHINE).is_dir() and not (folder / MACHINE / PLAIN_MARK).exists()
    return has_machine or any((folder / marker).exists() for marker in _MARKERS)


def find_vault(
    folder: str | os.PathLike[str] | None,
    home: str | os.PathLike[str] | None,
    *,
    environ: Mapping[str, str],
    cwd: Path,
) -> Vault:
    """Locate the vault: the folder named, else `MEMORY_KB_VAULT`, else the nearest one around `cwd`."""
    if folder is not None and not os.fspath(folder):
        raise VaultNotFound("the name of the vault is empty", "is a variable unset?")
    named = folder or environ.get("MEMORY_KB_VAULT")
    try:
        place = _named_folder(Path(named).expanduser()) if named else _enclosing_folder(cwd)
    except (OSError, RuntimeError, ValueError) as exc:
        what = str(getattr(exc, "filename", None) or named)[-80:]
        reason = getattr(exc, "strerror", None) or exc
        hint = "check the name and the permissions, or name another with --vault"
        raise VaultNotFound(f"the vault cannot be opened: {what}: {reason}", hint) from exc
    memory = place / "memory"
    is_memory = is_memory_folder(memory)
    named_home = home or environ.get("MEMORY_KB_HOME")
    default_home = Path(environ.get("HOME") or "~").expanduser() / ".memory"
    home_folder = Path(named_home).expanduser().absolute() if named_home else default_home
    if os.path.isfile(home_folder):
        raise VaultNotFound(
            f"the home {home_folder} is not a folder", "name a folder; one that does not exist is empty"
        )
    return Vault(
        folder=place,
        memory=memory if is_memory else None,
        home=Path(os.path.realpath(home_folder)),
        machine=(memory if is_memory else place) / MACHINE,
        home_note=None if named_home else default_home.parent / "MEMORY.md",
    )


def _named_folder(folder: Path) -> Path:
    place = Path(os.path.realpath(folder))
    if not place.is_dir():
        if place.exists():
            raise VaultNotFound(
                f"the vault {folder} is not a folder", f"name the folder it is in: --vault {folder.parent}"
            )
        raise VaultNotFound(f"the vault {folder} does not exist", f"`memory-kb init {folder}` makes a new one")
    return place.parent if _is_inside(place) else place


def _is_inside(place: Path) -> bool:
    """Return whether a folder is the `memory/` of a vault, and not the folder that holds it."""
    has_marker = any((place / marker).exists() for marker in _MARKERS)
    return place.name == "memory" and has_marker and not is_memory_folder(place / "memory")


def _enclosing_folder(cwd: Path) -> Path:
    for folder, _ in vaults_around(cwd):
        return Path(os.path.realpath(folder))
    raise VaultNotFound(
        f"there is no vault in {cwd} or any folder above it",
        "`memory-kb init` makes one here; `--vault DIR` names one elsewhere, any folder of Markdown files will do",
    )


def vaults_around(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the vaults around a folder, the nearest first, and whether it is among the notes of each.

    The first may be that of the folder itself.
    """
    for place in (folder, *folder.parents):
        if _is_inside(place):
            yield place.parent, True
        elif is_memory_folder(place / "memory") or (place / MACHINE).is_dir():
            yield place, False


def place_of_path(path: str, *, is_memory: bool) -> Location:
    """Return the scope and learning type of a file from its path alone.

    Example:
        >>> place_of_path("memory/jobs/api/tasks/t1/learnings/a.md", is_memory=True)
        Location(scope='task', job='api', task='t1', learning_type='task')
        >>> place_of_path("~global/institutional.md", is_memory=True).learning_type
        'institutional'
        >>> place_of_path("memory/jobs/api/x.md", is_memory=False).scope
        'project'
    """
    is_global = path.startswith(GLOBAL_PREFIX)
    if not is_memory and not is_global:
        return Location()
    parts = path.split("/")
    learning_type = "task"
    if parts[-1] == "institutional.md":
        learning_type = "institutional"
    elif parts[-1] == "proxy.md" or "proxy-tasks" in parts[:-1]:
        learning_type = "proxy"
    if is_global:
        return Location("global", learning_type=learning_type)
    if parts[:2] != ["memory", "jobs"] or len(parts) < 4:
        return Location("project", learning_type=learning_type)
    if parts[3] == "tasks" and len(parts) > 5:
        return Location("task", parts[2], parts[4], learning_type)
    return Location("job", parts[2], learning_type=learning_type)


def default_status(path: str, *, is_memory: bool) -> str:
    """Return the status of an entry that names none: its folder's, else active.

    Example:
        >>> default_status("memory/review/a.md", is_memory=True), default_status("archive/a.md", is_memory=False)
        ('proposed', 'active')
    """
    if not is_memory and not path.startswith(GLOBAL_PREFIX):
        return "active"
    return next((_STATUS_FOLDERS[part] for part in path.split("/")[:-1] if part in _STATUS_FOLDERS), "active")


def identify_vault(vault: Vault) -> object:
    """Return what differs once something else, or nothing, is in the place of a vault, its index or its configuration."""
    # The folder as it was named may be a link.
    roots = [root.folder for root in vault.roots]
    folders: list[str | Path] = [vault.named[0], *roots, vault.machine, vault.machine / DATABASE]
    # One in `memory/` makes a plain folder a vault.
    files = [vault.home / "config.yaml", vault.config_file, vault.folder / "memory" / "config.yaml"]
    return [_state(folder)[:2] for folder in folders], [_state(file) for file in files]


def _state(place: Path | str) -> tuple[int, ...]:
    try:
        state = os.stat(place)
    except OSError:
        return ()
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def working_folder() -> Path:
    """Return the working folder, or the root where it was deleted under us."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)


#: Most holders are done in a few milliseconds; those that are not are asked less and less often.
_FIRST_POLL_SECONDS, _POLL_SECONDS = 0.001, 0.02
#: A wait shorter than this is not worth a word.
_SILENT_SECONDS = 1.0
#: How much less of a busy processor is left to what nobody waits for, as in `nice`.
_NICENESS = 10


def _try_lock(descriptor: int, *, is_shared: bool) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _unlock(descriptor: int) -> None:
    """Release a lock at once: a program that another thread is starting has the file open until it runs."""
    if os.name != "nt":
        import fcntl

        with contextlib.suppress(OSError):  # closing the file releases it, too
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def lower_priority(process: int = 0) -> None:
    """Let everything else go first, in a process that nobody waits for: in this one, if none is named.

    Not for one thread of several: the others would wait for it whenever it holds the interpreter.
    """
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, process, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, process)))


@contextlib.contextmanager
def hold_lock(
    path: Path, wait: float, on_wait: Callable[[], None] | None = None, *, is_shared: bool = False
) -> Iterator[None]:
    """Hold the lock file at `path`, waiting up to `wait` seconds for another process; `is_shared` lets others share it.

    Raises:
        VaultBusy: somebody else held it all that time.
    """
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        started = time.monotonic()
        has_reported, pause = False, _FIRST_POLL_SECONDS
        while not _try_lock(descriptor, is_shared=is_shared):
            waited = time.monotonic() - started
            if on_wait and not has_reported and min(waited, wait) > _SILENT_SECONDS:
                on_wait()
                has_reported = True
            if waited >= wait:
                raise VaultBusy(str(path), wait)
            time.sleep(pause)
            pause = min(_POLL_SECONDS, 1.5 * pause)
        yield
    finally:
        _unlock(descriptor)
        os.close(descriptor)
