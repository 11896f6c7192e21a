"""The files of sessions: one line an event, only ever appended to (S0-1 to S0-4)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from memory_kb.locks import hold_lock
from memory_kb.notes.events import MAX_LINE, Event, NoEvent, format_event, parse_event
from memory_kb.plainfiles import make_folder, open_plain, read_plain

#: Seconds a writer waits for the others of its session; each holds the lock for a millisecond.
PATIENCE = 30.0
#: Seconds that the end of a session waits for another end of it.
END_PATIENCE = 60.0
#: The folder of the signs that agents' hooks began a session and nobody ended it.
HOOKED = ".hooked"
_SUFFIX = ".jsonl"
_TAIL = 65_536


class Line(NamedTuple):
    """A line as it stands in a file; `text` is None where it is too long to be ours."""

    offset: int
    end: int
    text: bytes | None

    def parse(self) -> Event | None:
        """Return the event on the line, or None for an empty one.

        Raises:
            NoEvent: it holds something else.
        """
        if self.text is None:
            raise NoEvent(f"longer than {MAX_LINE:,} bytes")
        return parse_event(self.text) if self.text.strip() else None


class SessionFiles:
    """The sessions of a vault.

    Ids are trusted here: `memory_kb.learning.logs.sessions.check_id` is for whatever comes from outside.
    """

    def __init__(self, machine: Path) -> None:
        self.folder = machine / "sessions"

    def path(self, session: str) -> Path:
        """Return where a session is, or would be."""
        return self.folder / f"{session}{_SUFFIX}"

    def ids(self) -> list[str]:
        """Return the sessions there are, in order of their names."""
        try:
            return sorted(
                entry.name.removesuffix(_SUFFIX)
                for entry in os.scandir(self.folder)
                if entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False)
            )
        except FileNotFoundError:
            return []

    def claim(self, session: str) -> bool:
        """Make the empty file of a new session, unless there is one already."""
        make_folder(self.folder)
        try:
            os.close(os.open(self.path(session), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True

    @contextlib.contextmanager
    def writing(self, session: str) -> Iterator[SessionWriter]:
        """Hold the lock of a session to append to it.

        Raises:
            VaultBusy: somebody else held it for half a minute.
        """
        locks = self.folder / ".locks"
        make_folder(locks)
        with hold_lock(locks / session, PATIENCE):
            descriptor = open_plain(self.path(session), os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                yield SessionWriter(descriptor, session)
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def ending(self, session: str, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
        """Be the only one that ends a session and does what follows.

        Raises:
            VaultBusy: another process has been ending it for a minute.
        """
        locks = self.folder / ".ending"
        make_folder(locks)
        with hold_lock(locks / session, END_PATIENCE, on_wait):
            yield

    def recent(self, session: str, size: int) -> Iterator[Event]:
        """Yield the events in the last bytes of a session, passing over lines that hold none."""
        file = self.path(session)
        start = max(0, file.stat().st_size - size)
        for line in read_lines(file, start):
            with contextlib.suppress(NoEvent):
                event = line.parse()
                if event:
                    yield event

    def read(self, session: str, on_problem: Callable[[int, str], None] | None = None) -> Iterator[Event]:
        """Yield the events of a session in the order of the file.

        Args:
            session: its id.
            on_problem: told the number of a line that is no event, and why.

        Raises:
            FileNotFoundError: there is no such session.
        """
        for number, line in enumerate(read_lines(self.path(session)), 1):
            try:
                event = line.parse()
            except NoEvent as exc:
                if on_problem:
                    on_problem(number, str(exc))
                continue
            if event:
                yield event


class SessionWriter:
    """An open session whose lock is held."""

    def __init__(self, descriptor: int, session: str) -> None:
        self._descriptor = descriptor
        self._session = session
        self._size = os.fstat(descriptor).st_size
        self._is_torn = self._size > 0 and self._read_at(self._size - 1, 1) != b"\n"
        self.first = self._first()
        self.last = self._last()
        self.seq = self.last.seq if self.last else 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written."""
        return self._size == 0

    def append(self, event: Event) -> Event:
        """Write an event as the next line, with one write.

        A line that a killed writer left unfinished is closed first, by the same write. When the
        disk is full, nothing of the line stays.

        Raises:
            OSError: it cannot be written; the error names the session.
        """
        self.seq += 1
        numbered = replace(event, session=self._session, seq=self.seq)
        line = (b"\n" if self._is_torn else b"") + format_event(numbered)
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as exc:
            if written:
                os.ftruncate(self._descriptor, self._size)
            raise OSError(exc.errno, exc.strerror, f"the log of session {self._session}") from exc
        self._size += len(line)
        self._is_torn = False
        self.first = self.first or numbered
        self.last = numbered
        return numbered

    def _first(self) -> Event | None:
        head = self._read_at(0, min(self._size, _TAIL)).partition(b"\n")[0]
        return _parsed(head)

    def _last(self) -> Event | None:
        """Return the last event that has a number, looking back as far as needed."""
        length = _TAIL
        while self._size:
            start = max(0, self._size - length)
            lines = self._read_at(start, self._size - start).split(b"\n")
            for line in reversed(lines[1:] if start else lines):
                event = _parsed(line)
                if event and event.seq:
                    return event
            if start == 0 or length > 2 * MAX_LINE:
                return None
            length *= 8
        return None

    def _read_at(self, offset: int, size: int) -> bytes:
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        pieces = []
        while size > 0 and (piece := os.read(self._descriptor, size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _parsed(line: bytes) -> Event | None:
    try:
        return parse_event(line) if line.strip() else None
    except NoEvent:
        return None


def read_lines(path: Path, offset: int = 0, limit: int = MAX_LINE) -> Iterator[Line]:
    """Yield the lines of a file from an offset, never holding more than one of them.

    A last line without its end is given too: `end` is then the end of the file.
    """
    with read_plain(path) as file:
        file.seek(offset)
        while text := file.readline(limit + 1):
            end = offset + len(text)
            is_long = len(text) > limit and not text.endswith(b"\n")
            while is_long and (rest := file.readline(limit)):
                end += len(rest)
                if rest.endswith(b"\n"):
                    break
            yield Line(offset, end, None if is_long else text)
            offset = end
