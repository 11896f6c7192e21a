"""Processes that are killed at one of their steps, for the tests of what is left behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

#: The system calls that a run changes the disk by.
CALLS = ("replace", "link", "unlink", "fsync", "open", "truncate", "ftruncate", "mkdir", "rmdir", "chmod", "write")
KILLED = 77


def kill_at(step: int, work: Callable[[], object], calls: Sequence[str] = CALLS) -> bool:
    """Do something in a process that dies just before its n-th system call of those; return whether it died.

    It dies in the middle of writing, not before it.
    """
    child, write = os.fork(), os.write
    if not child:
        count = 0

        def dying(call: Callable[..., object]) -> Callable[..., object]:
            def counted(*given: object, **named: object) -> object:
                nonlocal count
                count += 1
                if count == step:
                    if call is write:
                        write(given[0], given[1][: len(given[1]) // 2])  # type: ignore[arg-type, index]
                    os._exit(KILLED)
                return call(*given, **named)

            return counted

        for name in calls:
            setattr(os, name, dying(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED
