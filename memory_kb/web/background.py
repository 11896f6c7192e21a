"""Run examinations of a large vault in processes of their own, so that no page waits and their memory is returned."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

from memory_kb.serving.workers import Address
from memory_kb.vault import give_way

#: Seconds after which a look is as good as none: not all that is examined is in the index.
_OLD_SECONDS = 600.0
#: Seconds between two looks, however much changes.
_PAUSE_SECONDS = 60.0


class BackgroundLooks:
    """The processes of `lint` and `doctor`, one at a time of each; what they find is stored in the machine folder."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._going: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: dict[str, float] = {}
        self._lock = threading.Lock()

    def begin(self, verb: str, *, is_due: bool) -> bool:
        """Begin a look that is due, or that was long ago; return whether one is going on."""
        with self._lock:
            process = self._going.get(verb)
            if process and process.poll() is None:
                return True
            if process:
                self._ended[verb] = time.monotonic()
                del self._going[verb]
            since = time.monotonic() - self._ended.get(verb, -_OLD_SECONDS)
            if since < (_PAUSE_SECONDS if is_due else _OLD_SECONDS):
                return False
            self._going[verb] = self._start(verb)
            return True

    def end(self) -> None:
        """Stop what is going on."""
        with self._lock:
            for process in self._going.values():
                if process.poll() is None:
                    _kill(process)
                    process.wait()
            self._going.clear()

    def _start(self, verb: str) -> subprocess.Popen[bytes]:
        places = (("--vault", self._address.vault), ("--home", self._address.home))
        chosen = [word for name, place in places if place for word in (name, place)]
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-P", "-m", "memory_kb", verb, *chosen],
            env=self._address.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        give_way(process.pid)
        return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process with those that it began."""
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
