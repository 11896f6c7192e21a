"""Locks between processes that the operating system releases when their holder dies."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memory_kb.errors import VaultBusy
from memory_kb.plainfiles import open_plain

#: Most holders are done in a few milliseconds; those that are not are asked less and less often.
_FIRST_POLL_SECONDS, _POLL_SECONDS = 0.001, 0.02
#: A wait shorter than this is not worth a word.
_SILENT_SECONDS = 1.0


def _try_lock(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def hold_lock(path: Path, wait: float, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock file at `path`, waiting up to `wait` seconds for another process.

    Raises:
        VaultBusy: somebody else held it all that time.
    """
    descriptor = open_plain(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        started = time.monotonic()
        told, pause = False, _FIRST_POLL_SECONDS
        while not _try_lock(descriptor):
            waited = time.monotonic() - started
            if waited >= wait:
                raise VaultBusy(str(path), wait)
            if on_wait and not told and waited > _SILENT_SECONDS:
                on_wait()
                told = True
            time.sleep(pause)
            pause = min(_POLL_SECONDS, 1.5 * pause)
        yield
    finally:
        os.close(descriptor)
