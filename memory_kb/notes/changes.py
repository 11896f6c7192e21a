"""Writing files: complete or not at all, and never over somebody else's writing."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_kb.errors import ChangedOnDisk, UnreadableInput
from memory_kb.notes.plans import NoteText

#: From this many files on, several are forced to the disk at a time.
_MANY, _AT_ONCE = 4, 8
#: The permissions that a new file may have: it is read and written, never run.
PLAIN_MODE = 0o666


@dataclass(frozen=True, slots=True)
class FileEdit:
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
        return NoteText(path, file.read_bytes())
    except OSError as exc:
        raise UnreadableInput(f"{path} cannot be read: {exc.strerror}") from exc


def read_if_there(path: str, file: Path) -> bytes | None:
    """Return a file's bytes, or None where there is no file.

    Raises:
        UnreadableInput: there is something that cannot be read.
    """
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise UnreadableInput(f"{path} cannot be read: {exc.strerror}") from exc


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
    """An edit whose new bytes stand in a file with a temporary name.

    After `flush` they are on the disk, and all that a full disk or a locked folder can prevent has
    happened. After that, `commit` puts them in place; `discard` throws them away at any time. The
    lock of the scope's root must be held.

    Raises:
        ChangedOnDisk: the file is not what the edit was made for.
        UnreadableInput: the folder or file may not be written to.
    """

    def __init__(self, edit: FileEdit) -> None:
        self.edit = edit
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
            return _write_beside(edit.file, edit.after or b"")
        try:
            self._mode = self._target.stat().st_mode & 0o7777
        except FileNotFoundError as exc:
            raise ChangedOnDisk(edit.path) from exc
        if edit.after is not None:
            return _write_beside(self._target, edit.after)
        if not os.access(self._target.parent, os.W_OK):
            raise PermissionError(13, "Permission denied")
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
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)
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
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)
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
        else:
            os.replace(self._temporary, self._target)
            self._temporary = None


def discard(staged: Collection[Staged]) -> None:
    """Leave no trace of those edits that were not committed."""
    for one in staged:
        one.discard()
    for one in staged:
        one.prune()


def apply(edit: FileEdit) -> None:
    """Carry out one edit, complete or not at all.

    Raises:
        ChangedOnDisk: the file is not what the edit was made for.
        UnreadableInput: the folder or file may not be written to.
    """
    staged = Staged(edit)
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


def _write_beside(file: Path, data: bytes) -> str:
    """Write a temporary file in the same folder.

    Its name is hidden from the walk.
    """
    descriptor, name = tempfile.mkstemp(prefix=".memory-kb-", suffix=".tmp", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
    except BaseException:
        os.unlink(name)
        raise
    return name


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
