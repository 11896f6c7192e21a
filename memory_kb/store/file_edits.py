"""Read note files, and replace them whole: a crash or a full disk leaves each file as it was or as it should be."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ChangedOnDisk, UnreadableInput
from memory_kb.regular_files import read_file
from memory_kb.text import decode, hash_of

if TYPE_CHECKING:
    from memory_kb.vault import Vault

_CHECK = "it has to be a file, and one that you may read"
#: From this many files on, several are forced to the disk at a time.
_MANY, _AT_ONCE = 4, 8
#: The permissions that a new file may have: it is read and written, never run.
PLAIN_MODE = 0o666
#: How temporary files are called: hidden, so that nothing takes them for notes.
_PREFIX, _SUFFIX = ".memory-kb-", ".tmp"


class NoteText(NamedTuple):
    """A file as it is to be changed; undecodable bytes are kept as surrogates, line ends as they are."""

    path: str
    data: bytes

    @property
    def text(self) -> str:
        """The bytes as text that encodes back to them."""
        return decode(self.data)

    @property
    def hash(self) -> str:
        """The hash of the bytes, the same that the index keeps."""
        return hash_of(self.data)


def read_if_there(path: str, file: Path) -> bytes | None:
    """Return a file's bytes, or None where there is no file."""
    try:
        return read_file(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise UnreadableInput(f"{path} cannot be read: {exc.strerror}", _CHECK) from exc


def find_note(vault: Vault, path: str) -> NoteText | None:
    """Return a file of a vault as it is, None where there is none."""
    data = read_if_there(path, vault.resolve(path))
    return None if data is None else NoteText(path, data)


def read_note_text(vault: Vault, path: str) -> NoteText:
    """Return a file of a vault as it is, which has to be there."""
    note = find_note(vault, path)
    if note is None:
        raise UnreadableInput(f"{path} cannot be read: {os.strerror(errno.ENOENT)}", _CHECK)
    return note


class FileEdit(NamedTuple):
    """A file's bytes before and after, with its path as it is in output.

    Attributes:
        before: None makes a new file.
        after: None removes it.
        mode: of the file that is made, or was removed; the user's own when not given.
        prune: how many folders around the file are there for it alone; they go with it if empty.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    prune: int = 0

    @property
    def reverse(self) -> FileEdit:
        """The edit that reverts this one."""
        return self._replace(before=self.after, after=self.before)

    def revertible(self, file: Path) -> FileEdit:
        """Return the edit with what is needed to revert it: the mode of its file, or the folders made for a new one."""
        return self._replace(prune=count_missing(file)) if self.before is None else self._replace(mode=mode_of(file))


class Staged:
    """An edit whose new bytes are in a file with a temporary name.

    After `flush` they are on the disk, and all that a full disk or a locked folder can prevent has
    happened. After that, `commit` puts them in place; `discard` deletes them at any time. The
    lock of the scope's root must be held. Other names of the file (hard links) keep the old bytes.
    """

    def __init__(self, edit: FileEdit, file: Path, scratch: Path | None = None) -> None:
        self.edit, self.file = edit, file
        self._temporary: str | None = None
        self._mode = 0o600
        self._missing = count_missing(file) if edit.before is None else 0
        self._target = file if edit.before is None else Path(os.path.realpath(file))
        try:
            with _explained(edit.path):
                self._prepare(scratch)
        except BaseException:
            self.discard()
            raise

    def _prepare(self, scratch: Path | None) -> None:
        edit, target = self.edit, self._target
        if edit.before is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            mode = edit.mode
            if mode is None:
                mask = os.umask(0)
                os.umask(mask)
                mode = ~mask
            self._mode = PLAIN_MODE & mode
            self._temporary = _write_temporary(target, edit.after or b"", scratch, is_new=True)
            return
        try:
            held = target.stat()
        except FileNotFoundError as exc:
            raise ChangedOnDisk(edit.path) from exc
        if hasattr(os, "geteuid") and held.st_uid != os.geteuid():
            _check_writable(target)
        if edit.after is None:
            _check_writable(target.parent)
        else:
            self._temporary = _write_temporary(target, edit.after, scratch)
            self._mode = _copy_attributes(target, held, self._temporary)

    def flush(self) -> None:
        """Force the new bytes to the disk."""
        if self._temporary is None:
            return
        with _explained(self.edit.path), open(self._temporary, "r+b") as stream:
            os.fsync(stream.fileno())
            os.chmod(self._temporary, self._mode)

    def commit(self) -> None:
        """Put the new bytes in place; `sync_folders` makes that survive a power cut."""
        with _explained(self.edit.path):
            if self.edit.before is None:
                self._create()
            else:
                self._replace()
        self._remove_temporary()
        self._missing = 0
        if self.edit.after is None:
            prune_folders(self._target, self.edit.prune)

    def discard(self) -> None:
        """Leave no trace of an edit that was not committed."""
        self._remove_temporary()
        prune_folders(self.file, self._missing)

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = None

    def _create(self) -> None:
        assert self._temporary is not None
        try:
            # A link fails where the name is taken; a rename would replace what is there.
            os.link(self._temporary, self._target)
        except FileExistsError as exc:
            raise ChangedOnDisk(self.edit.path) from exc
        except OSError:  # a file system without hard links
            if os.path.lexists(self._target):
                raise ChangedOnDisk(self.edit.path) from None
            os.replace(self._temporary, self._target)

    def _replace(self) -> None:
        try:
            found = self._target.read_bytes()
        except FileNotFoundError as exc:
            raise ChangedOnDisk(self.edit.path) from exc
        if found != self.edit.before:
            raise ChangedOnDisk(self.edit.path)
        if self._temporary is None:
            self._target.unlink()
        else:
            os.replace(self._temporary, self._target)


@contextlib.contextmanager
def stage(edits: Iterable[tuple[FileEdit, Path]], scratch: Path | None = None) -> Iterator[Sequence[Staged]]:
    """Stage and flush the edits of some files, and leave no trace of those that were not committed.

    Temporary files are made in `scratch` where that can be.
    """
    staged: list[Staged] = []
    try:
        staged.extend(Staged(edit, file, scratch) for edit, file in edits)
        if len(staged) < _MANY:
            for one in staged:
                one.flush()
        else:
            from concurrent.futures import ThreadPoolExecutor

            # A disk takes some at a time together.
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(Staged.flush, staged))
        yield staged
    finally:
        for one in reversed(staged):
            one.discard()


def apply(edit: FileEdit, file: Path, scratch: Path | None = None) -> None:
    """Carry out one edit, complete or not at all."""
    with stage([(edit, file)], scratch) as (one,):
        one.commit()
        sync_folders([file])


def sync_folders(files: Iterable[Path]) -> None:
    """Make the renames of files survive a power cut, where the system can."""
    for folder in {Path(os.path.realpath(file)).parent for file in files}:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def sweep_scratch(scratch: Path, parents: Iterable[Path]) -> None:
    """Delete the temporary files of writes that were killed; the lock of the vault is held."""
    for folder in {scratch, *parents}:
        with contextlib.suppress(OSError):
            if folder != scratch and _is_same_place(scratch, folder, is_new=True):
                continue
            for name in () if folder.is_symlink() else os.listdir(folder):
                if name.endswith(_SUFFIX) and (folder == scratch or name.startswith(_PREFIX)):
                    os.unlink(folder / name)


def mode_of(file: Path) -> int | None:
    """Return a file's permissions, or None where there is no file."""
    try:
        return stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return None


def count_missing(file: Path) -> int:
    """Return how many of the folders around a file are not there yet."""
    return next(number for number, folder in enumerate(file.parents) if os.path.lexists(folder))


def prune_folders(file: Path, levels: int) -> None:
    """Remove the innermost folders around a file, as many as are empty up to a number."""
    for folder in list(file.parents)[:levels]:
        try:
            folder.rmdir()
        except OSError:
            return


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        reason = f"{path} cannot be written: {exc.strerror}"
        raise UnreadableInput(reason, "check the space on the disk, the name and who owns the folder") from exc


def _check_writable(path: Path) -> None:
    """Raise the error that writing to a file or folder would, before anything is written."""
    if os.access(path, os.W_OK):
        return
    is_read_only = hasattr(os, "statvfs") and os.statvfs(path).f_flag & os.ST_RDONLY
    code = errno.EROFS if is_read_only else errno.EACCES
    raise OSError(code, os.strerror(code))


def _write_temporary(file: Path, data: bytes, scratch: Path | None, *, is_new: bool = False) -> str:
    """Write a temporary file in the scratch folder, or beside the file where it could not be renamed from there."""
    import tempfile

    parent = file.parent
    _check_writable(parent)
    place = scratch if scratch and _is_same_place(scratch, parent, is_new=is_new) else parent
    descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=place)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        if is_new and parent.stat().st_mode & stat.S_ISGID and hasattr(os, "chown"):
            os.chown(name, -1, parent.stat().st_gid)
    except BaseException:
        os.unlink(name)
        raise
    return name


def _is_same_place(scratch: Path, parent: Path, *, is_new: bool) -> bool:
    """Return whether a file made in one folder can be renamed to another and is there as if it had been made there."""
    scratch.mkdir(exist_ok=True)
    if scratch.is_symlink() or scratch.stat().st_dev != parent.stat().st_dev:
        return False
    return not is_new or "system.posix_acl_default" not in _attributes_of(parent)


def _attributes_of(file: Path) -> list[str]:
    if not hasattr(os, "listxattr"):
        return []
    try:
        return os.listxattr(file)
    except OSError:
        return []


def _copy_attributes(file: Path, held: os.stat_result, temporary: str) -> int:
    """Give a temporary file the owner, group and attributes of the one it replaces, as far as can be; return its mode.

    Another group than before may do no more than everybody may.
    """
    mode = stat.S_IMODE(held.st_mode)
    if hasattr(os, "chown"):
        for owner, group in ((held.st_uid, -1), (-1, held.st_gid)):
            with contextlib.suppress(OSError):
                os.chown(temporary, owner, group)
        if os.stat(temporary).st_gid != held.st_gid:
            mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    for name in _attributes_of(file):
        with contextlib.suppress(OSError):
            os.setxattr(temporary, name, os.getxattr(file, name))
    return mode
