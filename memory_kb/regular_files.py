"""Open files of the machine folder, never through a link, and never waiting for a pipe; list the files of folders."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

#: The folder of what belongs to this machine alone, in a vault.
MACHINE = ".memory-kb"
#: The index in there, the index of sessions, and the endings of what SQLite keeps beside each.
DATABASE, SESSIONS_DATABASE = ".memory.db", ".sessions.db"
SIDE_FILES = ("", "-wal", "-shm", "-journal")
_ALWAYS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def open_regular(path: Path | str, flags: int, mode: int = 0o600) -> int:
    """Open a file and return its descriptor; a link, a pipe or a device in its place is an error.

    Raises:
        OSError: it cannot be opened, or is no plain file; the error names it.
    """
    try:
        descriptor = os.open(path, flags & ~os.O_TRUNC | _ALWAYS, mode)
    except OSError as exc:
        if exc.errno in (errno.ELOOP, errno.ENXIO, errno.EMLINK):
            raise _not_regular(path) from exc
        raise
    try:
        _check_regular(descriptor, path)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(descriptor: int, path: Path | str) -> None:
    is_link = not hasattr(os, "O_NOFOLLOW") and os.path.islink(path)
    if is_link or not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise _not_regular(path)


def open_for_reading(path: Path | str) -> IO[bytes]:
    """Open a file for reading bytes."""
    return os.fdopen(open_regular(path, os.O_RDONLY), "rb")


def read_file(path: Path | str, limit: int = -1) -> bytes:
    """Return the first bytes of a file, which may be a link; a pipe or a device is an error instead of a wait."""
    # A pipe that is opened this way returns at once.
    with open(os.open(path, os.O_RDONLY | _ALWAYS & ~getattr(os, "O_NOFOLLOW", 0)), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe, a folder or a device, not a file", str(path))
        return stream.read(limit)


def read_text(path: Path | str, limit: int) -> str:
    """Return the beginning of a plain file as text, "" where there is none."""
    try:
        with open_for_reading(path) as stream:
            return stream.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def open_for_appending(path: Path | str) -> IO[bytes]:
    """Open a file for writing bytes at its end, making it where there is none."""
    return os.fdopen(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")


def replace_file(file: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file that replaces anything of its name, a link too, and is on the disk when this returns."""
    # What a killed process leaves in that of a machine folder, the next run deletes.
    part = make_folder(file.parent / "tmp") / f"{file.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        # A stream writes on, or fails, where a full disk takes but a part.
        with os.fdopen(create_regular(part, mode), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def create_regular(file: Path, mode: int) -> int:
    """Create a file that is not there yet, and return its descriptor."""
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)


def make_folder(path: Path) -> Path:
    """Make a folder, with those around it up to a machine folder; a link in its place is an error.

    What is around a machine folder is a person's, and may have been moved away just now.
    """
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError:
        if path.name == MACHINE:
            raise
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
    if path.is_symlink():
        raise _not_regular(path)
    return path


def visible_files(folder: Path, left_out: Collection[str] = ()) -> Iterator[Path]:
    """Yield the files of a folder at any depth, in order, without those of hidden folders and of some others."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in left_out)
        yield from (Path(place, name) for name in sorted(names))


def _not_regular(path: Path | str) -> OSError:
    return OSError(errno.ELOOP, "it is a link, a pipe or a device, not a plain file", str(path))
