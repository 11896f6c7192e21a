"""Write files atomically, and never over a concurrent change."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ChangedOnDisk, UnreadableInput
from memory_kb.plainfiles import read_file
from memory_kb.text import decode, hash_of

if TYPE_CHECKING:
    from memory_kb.vault import Vault

_CHECK = "it has to be a file, and one that you may read"
#: From this many files on, several are forced to the disk at a time.
_MANY, _AT_ONCE = 4, 8
#: The permissions that a new file may have: it is read and written, never run.
PLAIN_MODE = 0o666
#: The folder of temporary files beside a note, where those of the machine folder cannot be renamed; git ignores it.
SCRATCH = ".memory-kb.tmp"


class FileEdit(NamedTuple):
    """A file's bytes before and after.

    Attributes:
        before: None makes a new file.
        after: None removes it.
        mode: of the file that is made, or was removed; the user's own when not given.
        prune: how many folders around the file are there for it alone; they go with it if empty.
    """

    path: str
    file: Path
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    prune: int = 0

    @property
    def reverse(self) -> FileEdit:
        """The edit that takes this one back."""
        return FileEdit(self.path, self.file, self.after, self.before, self.mode, self.prune)


def read_note_text(path: str, file: Path) -> NoteText:
    """Read a file for changing it.

    Raises:
        UnreadableInput: it is not there, or not to be read.
    """
    try:
        return NoteText(path, read_file(file))
    except OSError as exc:
        raise UnreadableInput(f"{path} cannot be read: {exc.strerror}", _CHECK) from exc


def read_if_there(path: str, file: Path) -> bytes | None:
    """Return a file's bytes, or None where there is no file.

    Raises:
        UnreadableInput: there is something that cannot be read.
    """
    try:
        return read_file(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise UnreadableInput(f"{path} cannot be read: {exc.strerror}", _CHECK) from exc


def mode_of(file: Path) -> int | None:
    """Return a file's permissions, or None where there is no file."""
    try:
        return file.stat().st_mode & 0o7777
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


class Staged:
    """An edit whose new bytes are in a file with a temporary name.

    One that cannot be renamed without losing its other names or its owner is written in place:
    `is_in_place` is true then, and a kill in the middle of that write leaves the file half-written.
    After `flush` they are on the disk, and all that a full disk or a locked folder can prevent has
    happened. After that, `commit` puts them in place; `discard` throws them away at any time. The
    lock of the scope's root must be held.

    Raises:
        ChangedOnDisk: the file is not what the edit was made for.
        UnreadableInput: the folder or file may not be written to.
    """

    def __init__(self, edit: FileEdit, scratch: Path | None = None) -> None:
        self.edit, self._scratch = edit, scratch
        self.is_in_place = False
        self._is_discarded = False
        self._mode = 0o600
        self._missing = count_missing(edit.file) if edit.before is None else 0
        self._target = edit.file if edit.before is None else Path(os.path.realpath(edit.file))
        try:
            with _explained(edit.path):
                self._temporary = self._prepare()
        except BaseException:
            prune_folders(edit.file, self._missing)
            raise

    def _prepare(self) -> str | None:
        edit = self.edit
        if edit.before is None:
            edit.file.parent.mkdir(parents=True, exist_ok=True)
            self._mode = PLAIN_MODE & (~_umask() if edit.mode is None else edit.mode)
            return _write_temporary(edit.file, edit.after or b"", self._scratch, is_new=True)
        try:
            held = self._target.stat()
        except FileNotFoundError as exc:
            raise ChangedOnDisk(edit.path) from exc
        self._mode = held.st_mode & 0o7777
        if edit.after is not None:
            temporary = _write_temporary(self._target, edit.after, self._scratch)
            self.is_in_place = held.st_nlink > 1 or not _copy_attributes(self._target, held, temporary)
            if self.is_in_place:
                try:
                    _check_writable(self._target)
                except OSError:
                    _remove_temporary(temporary)
                    raise
            return temporary
        _check_writable(self._target.parent)
        return None

    def flush(self) -> None:
        """Force the new bytes to the disk.

        Raises:
            UnreadableInput: that cannot be done.
        """
        if self._temporary is None:
            return
        with _explained(self.edit.path):
            descriptor = os.open(self._temporary, os.O_RDWR | getattr(os, "O_BINARY", 0))
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.chmod(self._temporary, self._mode)

    def commit(self) -> None:
        """Put the new bytes in place; `sync_folders` makes that survive a power cut."""
        with _explained(self.edit.path):
            if self.edit.before is None:
                self._create()
            else:
                self._replace()
        if self.edit.after is None:
            prune_folders(self._target, self.edit.prune)

    def discard(self) -> None:
        """Delete the temporary file of an edit that was not committed."""
        if self._temporary is not None:
            _remove_temporary(self._temporary)
            self._temporary = None
            self._is_discarded = True

    def prune(self) -> None:
        """Remove the folders that were made for an edit that was discarded."""
        if self._is_discarded:
            prune_folders(self.edit.file, self._missing)

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
        _remove_temporary(self._temporary)
        self._temporary = None

    def _replace(self) -> None:
        try:
            found = self._target.read_bytes()
        except FileNotFoundError as exc:
            raise ChangedOnDisk(self.edit.path) from exc
        if found != self.edit.before:
            raise ChangedOnDisk(self.edit.path)
        if self._temporary is None:
            self._target.unlink()
            return
        if self.is_in_place:
            self._write_in_place()
        else:
            os.replace(self._temporary, self._target)
        _remove_temporary(self._temporary)
        self._temporary = None

    def _write_in_place(self) -> None:
        try:
            _write_in_place(self._target, self.edit.after or b"")
        except OSError:
            with contextlib.suppress(OSError):
                _write_in_place(self._target, self.edit.before or b"")
            raise


def discard(staged: Collection[Staged]) -> None:
    """Leave no trace of those edits that were not committed."""
    for one in staged:
        one.discard()
    for one in staged:
        one.prune()


def apply(edit: FileEdit, scratch: Path | None = None) -> None:
    """Carry out one edit, complete or not at all; its temporary file is made in `scratch` where that can be.

    Raises:
        ChangedOnDisk: the file is not what the edit was made for.
        UnreadableInput: the folder or file may not be written to.
    """
    staged = Staged(edit, scratch)
    try:
        staged.flush()
        staged.commit()
        sync_folders([edit])
    finally:
        discard([staged])


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        reason = f"{path} cannot be written: {exc.strerror}"
        raise UnreadableInput(reason, "check the space on the disk, the name and who owns the folder") from exc


def flush_all(staged: Sequence[Staged]) -> None:
    """Force the bytes of many edits to the disk, some at a time: a disk takes them together.

    Raises:
        UnreadableInput: one of them cannot be; all were tried.
    """
    if len(staged) < _MANY:
        for one in staged:
            one.flush()
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(one.flush) for one in staged]:
            done.result()


def _check_writable(path: Path) -> None:
    """Raise the error that writing to a file or folder would, before anything is written.

    Raises:
        OSError: it is on a disk that is read-only, or may not be written to.
    """
    if os.access(path, os.W_OK):
        return
    is_read_only = hasattr(os, "statvfs") and os.statvfs(path).f_flag & os.ST_RDONLY
    code = errno.EROFS if is_read_only else errno.EACCES
    raise OSError(code, os.strerror(code))


def _write_temporary(file: Path, data: bytes, scratch: Path | None, *, is_new: bool = False) -> str:
    """Write a temporary file where a rename can put it in place, and where git ignores it."""
    parent = file.parent
    _check_writable(parent)
    if scratch is None or not _is_same_place(scratch, parent, is_new=is_new):
        scratch = parent / SCRATCH
        scratch.mkdir(exist_ok=True)
        if scratch.is_symlink():
            raise NotADirectoryError(20, "it is a link", str(scratch))
        ignore = scratch / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=".memory-kb-", suffix=".tmp", dir=scratch)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        if is_new and parent.stat().st_mode & stat.S_ISGID and hasattr(os, "chown"):
            os.chown(name, -1, parent.stat().st_gid)
    except BaseException:
        _remove_temporary(name)
        raise
    return name


def _is_same_place(scratch: Path, parent: Path, *, is_new: bool) -> bool:
    """Return whether a file made in one folder can be renamed to another and is there as if it had been made there."""
    scratch.mkdir(exist_ok=True)
    if scratch.is_symlink() or scratch.stat().st_dev != parent.stat().st_dev:
        return False
    return not is_new or "system.posix_acl_default" not in _attributes_of(parent)


def _remove_temporary(name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name)
    folder = os.path.dirname(name)
    if os.path.basename(folder) == SCRATCH:
        with contextlib.suppress(OSError):
            if os.listdir(folder) == [".gitignore"]:
                os.unlink(os.path.join(folder, ".gitignore"))
                os.rmdir(folder)


def sweep_scratch(scratch: Path, parents: Iterable[Path]) -> None:
    """Delete the temporary files of writes that were killed; the lock of the vault is held."""
    for folder in {scratch, *(parent / SCRATCH for parent in parents)}:
        with contextlib.suppress(OSError):
            if not folder.is_symlink():
                for name in os.listdir(folder):
                    if name.endswith(".tmp"):
                        _remove_temporary(os.path.join(folder, name))


def _attributes_of(file: Path) -> list[str]:
    if not hasattr(os, "listxattr"):
        return []
    try:
        return os.listxattr(file)
    except OSError:
        return []


def _copy_attributes(file: Path, held: os.stat_result, temporary: str) -> bool:
    """Give a temporary file the owner, group and extended attributes of the one it replaces; return whether it has them."""
    made = os.stat(temporary)
    try:
        if (made.st_uid, made.st_gid) != (held.st_uid, held.st_gid) and hasattr(os, "chown"):
            os.chown(temporary, held.st_uid, held.st_gid)
        for name in _attributes_of(file):
            value = os.getxattr(file, name)
            if name.startswith(("security.", "trusted.")):
                with contextlib.suppress(OSError):
                    os.setxattr(temporary, name, value)
            else:
                os.setxattr(temporary, name, value)
    except OSError:
        return False
    return True


def _write_in_place(file: Path, data: bytes) -> None:
    """Write over a file that has several names, or an owner that a new one cannot be given."""
    flags = os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(file, flags)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.ftruncate(descriptor, len(data))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folders(edits: Iterable[FileEdit]) -> None:
    """Make renames survive a power cut, where the system can."""
    for folder in {Path(os.path.realpath(edit.file)).parent for edit in edits}:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


class NoteText(NamedTuple):
    """A file as it is to be changed.

    Undecodable bytes are kept as surrogates, line ends as they are.
    """

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


def find_note(vault: Vault, path: str) -> NoteText | None:
    """Return a file of a vault as it is, None where there is none.

    Raises:
        UnreadableInput: there is something that cannot be read.
    """
    data = read_if_there(path, vault.resolve(path))
    return None if data is None else NoteText(path, data)
