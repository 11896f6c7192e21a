"""Run examinations of a large vault in processes of their own, so that no page waits and their memory is returned."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

from memory_kb.serving.workers import Address
from memory_kb.vault import lower_priority

#: Seconds between two looks, however much changes; and after which one is old, since code that is cited, pictures and
#: rights change beside the index.
_PAUSE_SECONDS, _OLD_SECONDS = 60.0, 600.0


class BackgroundLooks:
    """The processes of `lint` and `doctor`, one at a time of each; what they find is stored in the machine folder."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._going: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: dict[str, float] = {}
        self._lock = threading.Lock()

    def begin(self, verb: str, *, is_due: bool) -> bool:
        """Begin an examination that is due, or whose last result is old; return whether one is running."""
        with self._lock:
            now = time.monotonic()
            if verb in self._going and self._going[verb].poll() is None:
                return True
            if now - self._begun.get(verb, now - _OLD_SECONDS) < (_PAUSE_SECONDS if is_due else _OLD_SECONDS):
                return False
            self._begun[verb], self._going[verb] = now, self._start(verb)
            return True

    def end(self) -> None:
        """Stop the examinations that are running."""
        with self._lock:
            for process in self._going.values():
                process.kill()
                process.wait()

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
        lower_priority(process.pid)
        return process
