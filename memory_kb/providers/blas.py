"""How many cores one matrix product of numpy uses. This module loads numpy.

OpenBLAS shares every product out among all cores, and waits for the last of them. Where the work
is shared out in larger parts already, or another program keeps a core busy, one is better.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

_AFFIXES = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))


class OneCore:
    """Keeps products on the core they are called from, as long as any thread is inside."""

    def __init__(self, get: Callable[[], int], set_: Callable[[int], object]) -> None:
        self._get, self._set = get, set_
        self._lock = threading.Lock()
        self._inside = self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self._get()
                self._set(1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._set(self._before)


@functools.cache
def find_limit() -> AbstractContextManager[None] | None:
    """Return what keeps products on one core, None if that cannot be arranged."""
    if np.show_config(mode="dicts")["Build Dependencies"]["blas"].get("name") == "accelerate":
        return contextlib.nullcontext()  # Apple's may be called from all cores at once as it is.
    package = Path(np.__file__).parent
    for file in (*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(str(file))
            for before, behind in _AFFIXES:
                get, set_ = (
                    getattr(library, f"{before}openblas_{verb}_num_threads{behind}", None) for verb in ("get", "set")
                )
                if get and set_:
                    return OneCore(get, set_)
    return None


def count_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
