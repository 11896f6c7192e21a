"""Processes that are killed at one of their steps, for the tests of what is left behind."""

from __future__ import annotations

import os
from collections.abc import Callable

#: The system calls that a run changes the disk by.
CALLS = ("replace", "link", "unlink", "fsync", "open", "truncate", "mkdir", "rmdir", "chmod")
KILLED = 77


def kill_at(step: int, work: Callable[[], object]) -> bool:
    """Do something in a process that dies just before its n-th system call of those above; tell whether it died."""
    child = os.fork()
    if not child:
        count = 0

        def dying(call: Callable[..., object]) -> Callable[..., object]:
            def counted(*given: object, **named: object) -> object:
                nonlocal count
                count += 1
                if count == step:
                    os._exit(KILLED)
                return call(*given, **named)

            return counted

        for name in CALLS:
            setattr(os, name, dying(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED
