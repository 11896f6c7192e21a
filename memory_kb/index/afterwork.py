"""Work that follows the batches of a watcher, in a thread of its own so that it delays none."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence

from memory_kb.errors import MemoryKBError

#: Some work after a batch. It must not share an open index with the watcher; it should end soon
#: after the event is set, and is begun again later. It returns what a person should know.
Step = Callable[[threading.Event], Iterable[str]]

#: Seconds that a step is given to end.
_END_SECONDS = 0.3


class Afterwork:
    """A thread that takes steps whenever it is asked to, once for any number of requests."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._stop = threading.Event()
        self._asked = threading.Semaphore(0)
        self._sentences: list[str] = []
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Have all steps taken, beginning with those that wait."""
        if not self._steps:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="memory-kb afterwork", daemon=True)
            self._thread.start()
        self._asked.release()

    def take_sentences(self) -> tuple[str, ...]:
        """Return what the steps had to say since the last call."""
        sentences = tuple(self._sentences)
        del self._sentences[: len(sentences)]
        return sentences

    def close(self) -> None:
        """Tell the step that is being taken to end, and wait a little for it."""
        self._stop.set()
        self._asked.release()
        if self._thread:
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            while self._asked.acquire(blocking=False):
                pass
            for step in self._steps:
                if self._stop.is_set():
                    return
                try:
                    self._sentences += step(self._stop)
                except (MemoryKBError, OSError, sqlite3.Error) as exc:
                    self._sentences.append(str(exc))
