"""Writing notes: a change applied only to the bytes it was planned against."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from memory_kb.errors import ChangedOnDisk, UnreadableInput


@dataclass(frozen=True, slots=True)
class Change:
    """A file's bytes before and after.

    `before` None makes a new file, `after` None removes it.
    """

    path: str
    file: Path
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class NoteText:
    """A file as it is to be changed.

    Undecodable bytes are kept as surrogates, line ends as they are.
    """

    path: str
    file: Path
    data: bytes

    @property
    def text(self) -> str:
        """The bytes as text that encodes back to them."""
        return self.data.decode("utf-8", "surrogateescape")

    def to(self, text: str) -> Change:
        """Plan to replace the text."""
        return Change(self.path, self.file, self.data, text.encode("utf-8", "surrogateescape"))


def read_note_text(path: str, file: Path) -> NoteText:
    """Read a file for changing it.

    Raises:
        UnreadableInput: it is not there, or not to be read.
    """
    try:
        return NoteText(path, file, file.read_bytes())
    except OSError as exc:
        raise UnreadableInput(f"{path} cannot be read: {exc.strerror}") from exc


def apply(change: Change) -> None:
    """Carry out a change, complete or not at all.

    It never goes over somebody else's writing. Call it under the lock of the scope's root.

    Raises:
        ChangedOnDisk: the file is not what the change was planned against.
        UnreadableInput: the folder or file may not be written to.
    """
    try:
        if change.before is None:
            _create(change)
        else:
            _replace(change)
    except OSError as exc:
        raise UnreadableInput(f"{change.path} cannot be written: {exc.strerror}", "check the name and who owns the folder") from exc
    _sync_folder(change.file.parent)


def _create(change: Change) -> None:
    change.file.parent.mkdir(parents=True, exist_ok=True)
    temporary = _write_beside(change.file, change.after or b"")
    try:
        # A link fails where the name is taken; a rename would replace what is there.
        os.link(temporary, change.file)
    except FileExistsError as exc:
        raise ChangedOnDisk(change.path) from exc
    except OSError:  # a file system without hard links
        if change.file.exists():
            raise ChangedOnDisk(change.path) from None
        os.replace(temporary, change.file)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _replace(change: Change) -> None:
    target = Path(os.path.realpath(change.file))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError as exc:
        raise ChangedOnDisk(change.path) from exc
    temporary = _write_beside(target, change.after or b"") if change.after is not None else None
    try:
        if target.read_bytes() != change.before:
            raise ChangedOnDisk(change.path)
        if temporary is None:
            target.unlink()
            return
        os.chmod(temporary, mode & 0o7777)
        os.replace(temporary, target)
        temporary = None
    finally:
        if temporary is not None:
            os.unlink(temporary)


def _write_beside(file: Path, data: bytes) -> str:
    """Write a temporary file in the same folder, forced to the disk.

    Its name is hidden from the walk.
    """
    descriptor, name = tempfile.mkstemp(prefix=".memory-kb-", suffix=".tmp", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())
    except BaseException:
        os.unlink(name)
        raise
    return name


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
