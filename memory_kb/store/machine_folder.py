"""Prepare the machine folder of a vault: made, checked, set aside where another machine made it."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import VaultNotFound
from memory_kb.machine_seal import SealKey, load_seal_key
from memory_kb.regular_files import DATABASE, MACHINE, SIDE_FILES, make_folder, open_for_reading, replace_file
from memory_kb.text import first_free, pluralize
from memory_kb.vault import PLAIN_MARK, Vault, hold_lock

_GITIGNORE = "# Derived or local to this machine: safe to delete, not to commit.\n*\n"
#: How a machine folder is called that was not made here.
ASIDE = f"{MACHINE}.foreign"
_LOCK_SECONDS = 10.0
_PLAIN_TEXT = b"The notes beside this folder are a plain folder, not the inside of a vault.\n"
#: What a machine folder of a plain folder of notes holds that a person wrote, or that says what it is.
_KEPT = ("config.yaml", PLAIN_MARK)


class MachineFolder(NamedTuple):
    """A machine folder that may be used, its seal, and sentences about one that was not made here."""

    folder: Path
    seal: bytes
    notices: tuple[str, ...] = ()


def prepare_machine(folder: Path, key: SealKey, *, is_shipped: bool = True) -> MachineFolder:
    """Make a machine folder that git ignores, or check the existing one.

    `is_shipped` says that what was not made here may have come with the notes.
    """
    if not os.path.lexists(folder):
        make_folder(folder)
    seal, is_current = key.verify(folder)
    notices: tuple[str, ...] = ()
    if seal is None:
        seal, notices = _sign(folder, key, is_shipped=is_shipped)
    elif not is_current:
        with contextlib.suppress(OSError):
            key.mark(folder)
    notices += tuple(_set_links_aside(folder))
    ignore = folder / ".gitignore"
    if not ignore.exists():
        replace_file(ignore, _GITIGNORE.encode(), 0o644)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "not writable", str(folder))
    return MachineFolder(folder, seal, notices)


def _sign(folder: Path, key: SealKey, *, is_shipped: bool) -> tuple[bytes, tuple[str, ...]]:
    """Sign a folder without our signature; what came with a clone, an archive or a copy is set aside first."""
    with contextlib.ExitStack() as stack:
        if key.folder:
            stack.enter_context(hold_lock(key.folder / "lock", _LOCK_SECONDS))
        seal, _ = key.verify(folder)
        if seal:  # another process was faster
            return seal, ()
        if is_shipped and not _is_new(folder):
            what = f"it is kept as {_set_aside(folder).name}, and a new one is made"
            sentence = f"{folder} was not made on this machine for this place: {what}"
            return key.mark(folder), (f"{sentence}; `memory-kb doctor --adopt` shows what it holds",)
        return key.mark(folder), ()


def _is_new(folder: Path) -> bool:
    """Return whether a machine folder holds nothing yet but what a person wrote, or what a killed process left."""
    if not stat.S_ISDIR(os.lstat(folder).st_mode) or (folder / "tmp").is_symlink():
        return False
    return set(os.listdir(folder)) <= {".gitignore", "tmp", *_KEPT}


def _set_aside(folder: Path) -> Path:
    """Give a machine folder another name that git ignores, and make an empty one in its place; return the name."""
    aside = folder.with_name(first_free(ASIDE, lambda name: os.path.lexists(folder.with_name(name))))
    os.rename(folder, aside)
    folder.mkdir()
    if not aside.is_symlink() and aside.is_dir():
        replace_file(aside / ".gitignore", _GITIGNORE.encode(), 0o644)
        for name in _KEPT:
            with contextlib.suppress(OSError), open_for_reading(aside / name) as stream:
                replace_file(folder / name, stream.read(1_000_000), 0o644)
    return aside


def _set_links_aside(folder: Path) -> Iterator[str]:
    """Rename links, pipes and the like in a machine folder of ours: they would lead what is written elsewhere."""
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        is_plain = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
        if not is_plain and not entry.name.endswith(".foreign"):
            os.replace(entry.path, f"{entry.path}.foreign")
            yield f"{entry.path} is no plain file: it is kept as {entry.name}.foreign, and not used"


def adopt(folder: Path, *, dry_run: bool) -> tuple[str, ...]:
    """Take sessions and vectors of what was set aside beside a machine folder; say what it holds and what was taken.

    Unfinished runs and everything else stay where they are. Sessions that are there already are not replaced, links not
    followed.
    """
    lines = []
    for aside in sorted(folder.parent.glob(f"{ASIDE}*")):
        if aside.is_symlink() or not aside.is_dir():
            lines.append(f"{aside.name}: is no folder, nothing is taken of it")
            continue
        kinds = [f"{entry.name}{'/' if entry.is_dir(follow_symlinks=False) else ''}" for entry in os.scandir(aside)]
        lines.append(f"{aside.name} holds {', '.join(sorted(kinds)) or 'nothing'}")
        lines += _adopt_sessions(aside / "sessions", folder / "sessions", dry_run=dry_run)
        lines += _adopt_vectors(aside, folder, dry_run=dry_run)
    return tuple(lines)


def _adopt_sessions(source: Path, target: Path, *, dry_run: bool) -> Iterator[str]:
    if source.is_symlink() or not source.is_dir():
        return
    found = [file for file in sorted(source.glob("*.jsonl")) if file.is_file() and not file.is_symlink()]
    new = [file for file in found if not os.path.lexists(target / file.name)]
    for file in () if dry_run else new:
        make_folder(target)
        with open_for_reading(file) as stream:
            replace_file(target / file.name, stream.read())
    word = "can be taken over" if dry_run else "taken over"
    yield f"{pluralize(len(new), 'session')} {word}, {len(found) - len(new)} are here already"


def _adopt_vectors(aside: Path, folder: Path, *, dry_run: bool) -> Iterator[str]:
    """Put a foreign index where the next rebuild takes its vectors from, and nothing else."""
    if not (aside / DATABASE).is_file() or (aside / DATABASE).is_symlink():
        return
    for side in () if dry_run else SIDE_FILES:
        with contextlib.suppress(FileNotFoundError), open_for_reading(aside / f"{DATABASE}{side}") as stream:
            replace_file(folder / f"{DATABASE}.broken{side}", stream.read())
        (folder / f"{DATABASE}{side}").unlink(missing_ok=True)
    yield f"the vectors of its index {'can be' if dry_run else 'are'} taken over by the next `index`"


def choose_machine(vault: Vault, configured: str | None, environ: Mapping[str, str]) -> MachineFolder:
    """Return a machine folder that can be written.

    That is the vault's own, the configured one, or one in the user's cache. `configured` is `index.path`, a folder for
    the machine folders of all vaults. Where nothing at all can be written, a temporary folder makes one command work.
    """
    wanted, key = vault.machine, load_seal_key(environ, tuple(_keep_out(vault)))
    if configured:
        folder = Path(configured).expanduser() / _name_of(wanted)
        try:
            return prepare_machine(folder, key, is_shipped=False)
        except OSError as exc:
            reason = f"no folder for the index: {folder} cannot be made ({exc.strerror})"
            raise VaultNotFound(reason, "set index.path in your own configuration") from exc
    try:
        is_new = not wanted.exists()
        machine = prepare_machine(wanted, key)
        if is_new and vault.memory is None:
            replace_file(wanted / PLAIN_MARK, _PLAIN_TEXT, 0o644)
        return machine
    except OSError as exc:
        if not wanted.parent.is_dir():
            raise VaultNotFound(f"the vault's folder {wanted.parent} is gone") from exc
    try:
        return prepare_machine(_cache_folder(environ) / _name_of(wanted), key, is_shipped=False)
    except (OSError, RuntimeError):
        import tempfile

        return prepare_machine(Path(tempfile.mkdtemp(prefix="memory-kb-")), key, is_shipped=False)


def _keep_out(vault: Vault) -> Iterator[Path]:
    """Yield the folders that the secret must not be kept in; a vault may be all of a person's home."""
    yield vault.home
    if vault.memory:
        yield vault.memory
    if not Path(os.path.realpath(os.path.expanduser("~"))).is_relative_to(vault.folder):
        yield vault.folder


def _name_of(machine: Path) -> str:
    """Return a folder name for a vault elsewhere: its own name, made unique by its place."""
    vault = machine.parent.parent if machine.parent.name == "memory" else machine.parent
    import hashlib

    digest = hashlib.sha256(os.fsencode(machine), usedforsecurity=False).hexdigest()[:12]
    return f"{vault.name or 'root'}-{digest}"


def _cache_folder(environ: Mapping[str, str]) -> Path:
    if "XDG_CACHE_HOME" in environ:
        return Path(environ["XDG_CACHE_HOME"]) / "memory-kb"
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA", "~")).expanduser() / "memory-kb"
    return Path("~/Library/Caches" if sys.platform == "darwin" else "~/.cache").expanduser() / "memory-kb"


def find_command(path: str | None) -> tuple[str, ...]:
    """Return the words that start this memory-kb from anywhere."""
    import shutil

    beside = Path(sys.executable).with_name("memory-kb.exe" if os.name == "nt" else "memory-kb")
    found = shutil.which("memory-kb", path=path) or (str(beside) if beside.exists() else None)
    return (found,) if found else (sys.executable, "-P", "-m", "memory_kb")
