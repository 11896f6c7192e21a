"""Redact, append and read the events of sessions."""

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO, Any, NamedTuple

from memory_kb.credentials import find_secret, redact
from memory_kb.errors import SecretRefused, UnreadableInput, UsageError
from memory_kb.injected_text import classify_own_text, is_own_call
from memory_kb.lazy_regex import lazy_regex
from memory_kb.private_text import cut_private
from memory_kb.regular_files import create_regular, make_folder, open_for_reading, open_regular
from memory_kb.store.json_lines import append_bytes
from memory_kb.store.logs import format_time
from memory_kb.store.session_events import (
    MAX_EVENT_TEXT,
    MAX_LINE,
    Event,
    NoEvent,
    cut,
    format_event,
    missing,
    parse_event,
)
from memory_kb.text import DEVICES, hash_of
from memory_kb.vault import hold_lock

#: Seconds a writer waits for the others of its session; each holds the lock for a millisecond.
PATIENCE = 30.0
#: Seconds that the end of a session waits for another end of it.
END_PATIENCE = 60.0
_SUFFIX = ".jsonl"
_TAIL = 65_536
#: The end of a session is in its last events.
_END_TAIL = 262_144


class LogLine(NamedTuple):
    """A line as it is in a file; `text` is None where it is too long to be ours."""

    offset: int
    end: int
    text: bytes | None

    def parse(self) -> Event | None:
        """Return the event on the line, or None for an empty one."""
        if self.text is None:
            raise NoEvent(f"longer than {MAX_LINE:,} bytes")
        return parse_event(self.text) if self.text.strip() else None


class SessionFiles:
    """The session files of a vault. Ids are trusted here; `check_id` checks one that comes from outside."""

    def __init__(self, machine: Path) -> None:
        self.folder = machine / "sessions"

    def path(self, session: str) -> Path:
        """Return where a session is, or would be."""
        return self.folder / f"{session}{_SUFFIX}"

    def ids(self) -> list[str]:
        """Return the sessions there are, in order of their names; a folder that cannot be read is no empty one."""
        try:
            with os.scandir(self.folder) as entries:
                found = [one.name for one in entries if one.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX))

    def claim_new(self, now: datetime) -> str:
        """Make the empty file of a session that begins now; return its id, as in `burst_20260321T120000_001`."""
        make_folder(self.folder)
        stamp = format_time(now)[:19].replace("-", "").replace(":", "")
        for number in itertools.count(1):
            session = f"burst_{stamp}_{number:03}"
            with contextlib.suppress(FileExistsError):
                os.close(create_regular(self.path(session), 0o600))
                break
        return session

    @contextlib.contextmanager
    def writing(self, session: str) -> "Iterator[SessionWriter]":
        """Hold the lock of a session to append to it."""
        with hold_lock(make_folder(self.folder / ".locks") / session, PATIENCE):
            descriptor = open_regular(self.path(session), os.O_RDWR | os.O_CREAT | os.O_APPEND)
            with os.fdopen(descriptor, "r+b", buffering=0) as stream:
                yield SessionWriter(stream, session)

    def ending(
        self, session: str, on_wait: Callable[[], None] | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Hold the lock for ending a session and running what follows."""
        return hold_lock(make_folder(self.folder / ".ending") / session, END_PATIENCE, on_wait)

    def hook_mark(self, session: str) -> Path:
        """Return the file that exists from when an agent's hooks began a session until it is ended."""
        return self.folder / ".hooked" / session

    def hooked(self) -> list[str]:
        """Return the sessions that agents' hooks began and nobody has ended, in order of their names."""
        with contextlib.suppress(OSError):
            return sorted(os.listdir(self.hook_mark("")))
        return []

    def recent(self, session: str, size: int) -> Iterator[Event]:
        """Yield the events in the last bytes of a session, passing over lines that hold none."""
        file = self.path(session)
        lines = read_lines(file, max(0, file.stat().st_size - size))
        return filter(None, (_parsed(line.text) for line in lines))

    def outcome(self, session: str) -> str | None:
        """Return the outcome that the end of a session names, or None where it names none or goes on."""
        ends: list[Event] = []
        with contextlib.suppress(OSError):
            ends = [event for event in self.recent(session, _END_TAIL) if event.event == "end"]
        return outcome_of(ends[-1]) if ends else None

    def read(
        self,
        session: str,
        on_problem: Callable[[int, str], None] | None = None,
        *,
        only: Callable[[bytes], bool] | None = None,
    ) -> Iterator[Event]:
        """Yield the events of a session in the order of the file, of the lines that `only` lets pass.

        `on_problem` is called with the number of a line that is no event, and why.
        """
        for number, line in enumerate(read_lines(self.path(session)), 1):
            if only and line.text and not only(line.text):
                continue
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

    def __init__(self, stream: FileIO, session: str) -> None:
        self._stream, self._session = stream, session
        reader = BufferedReader(stream)
        self.first = _parsed(reader.read(_TAIL).partition(b"\n")[0])
        self.last = _find_last(reader)
        reader.detach()
        self.seq = self.last.seq if self.last else 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written."""
        return self.last is None

    def append(self, event: Event) -> Event:
        """Write an event as the next line, with one write; when the disk is full, nothing of the line stays.

        Raises:
            OSError: it cannot be written; the error names the session.
        """
        self.seq += 1
        numbered = event._replace(session=self._session, seq=self.seq)
        size = self._stream.seek(0, os.SEEK_END)
        try:
            append_bytes(self._stream, format_event(numbered))
        except OSError as exc:
            self._stream.truncate(size)
            raise OSError(exc.errno, exc.strerror, f"the log of session {self._session}") from exc
        self.first = self.first or numbered
        self.last = numbered
        return numbered


def _find_last(stream: IO[bytes]) -> Event | None:
    """Return the last event that has a number, from the end of a file or else from all of it."""
    size = stream.seek(0, os.SEEK_END)
    for start in (max(0, size - _TAIL), 0):
        stream.seek(start)
        lines = stream.read().split(b"\n")
        events = map(_parsed, reversed(lines[1:] if start else lines))
        if last := next((event for event in events if event and event.seq), None):
            return last
    return None


def _parsed(line: bytes | None) -> Event | None:
    try:
        return parse_event(line) if line and line.strip() else None
    except NoEvent:
        return None


def read_lines(path: Path, offset: int = 0, limit: int = MAX_LINE) -> Iterator[LogLine]:
    """Yield the lines of a file from an offset, never holding more than one of them.

    A last line without its end is given too: `end` is then the end of the file.
    """
    with open_for_reading(path) as file:
        file.seek(offset)
        while text := file.readline(limit + 1):
            end = offset + len(text)
            is_long = len(text) > limit and not text.endswith(b"\n")
            while is_long and (rest := file.readline(limit)):
                end += len(rest)
                if rest.endswith(b"\n"):
                    break
            yield LogLine(offset, end, None if is_long else text)
            offset = end


def outcome_of(end: Event) -> str | None:
    """Return the outcome that the end of a session names, or None."""
    outcome = (end.args or {}).get("outcome")
    return outcome if isinstance(outcome, str) else None


#: Longer than any credential.
_EDGE = 5_000
#: The short texts of an event; most writers take them from an argument.
_LABELS = ("role", "stream", "event", "tool", "call_id", "origin", "job", "task", "agent")
_ID = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def check_id(session: str) -> str:
    """Return a session id that may become the name of a file."""
    if found := find_secret(session):
        raise SecretRefused(found, "the session's name")
    if not _ID.fullmatch(session) or DEVICES.match(session) or session.endswith("."):
        raise UsageError(
            f"{session[:80]!r} is not a session id", "use letters, digits, dots, dashes and underscores, at most 128"
        )
    return session


def session_name(name: str) -> str:
    """Return a session id for a name of somebody else's, the name itself where it can be one.

    Example:
        >>> session_name("0b1c-42"), session_name("../../etc/passwd")[:11]
        ('0b1c-42', 'etc-passwd-')
    """
    try:
        return check_id(name)
    except UsageError as exc:
        words = "" if isinstance(exc, SecretRefused) else re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60]
        return f"{words or 'session'}-{hash_of(name.encode('utf-8', 'replace'))[:8]}"


def find_id(wanted: str, known: list[str]) -> str:
    """Return the session that an id or its unique beginning names."""
    if wanted in known:
        return wanted
    fitting = [one for one in known if wanted and one.startswith(wanted)]
    if len(fitting) > 1:
        raise UnreadableInput(
            f"{wanted!r} fits {len(fitting):,} sessions: {', '.join(fitting[-3:])} …", "give more characters"
        )
    if not fitting:
        raise UnreadableInput(f"no session {wanted[:80]!r}", "`memory-kb session list` shows those there are")
    return fitting[0]


class Prepared(NamedTuple):
    """An event as it is to be written, and the credentials that were taken out of it."""

    event: Event
    redacted: tuple[str, ...]


def prepare(draft: Event, now: datetime, start: Event | None = None) -> Prepared:
    """Return an event ready to be written.

    It gets the time where it has none, and job, task and agent of the session's start; credentials
    go, and memory-kb's own text is marked.

    Example:
        >>> from datetime import UTC
        >>> done = prepare(Event(content="use AKIAABCDEFGHIJKLMNOP"), datetime(2026, 1, 1, tzinfo=UTC), Event(event="start", job="api"))
        >>> done.event.content, done.event.job, done.redacted
        ('use [redacted: an AWS access key]', 'api', ('an AWS access key',))
    """
    found: set[str] = set()
    content, error = (text and _clean_text(text, found) for text in (draft.content, draft.error))
    begun = start if start and start.event == "start" else Event()
    labels: dict[str, Any] = {name: text for name in _LABELS if (text := getattr(draft, name))}
    together = "\n".join(labels.values())
    # Nearly never: so all of them are looked at at once.
    if len(together) > MAX_EVENT_TEXT or redact(together).text != together:
        labels = {name: _clean_text(text, found) for name, text in labels.items()}
    is_own_answer = draft.type == "tool_result" and is_own_call(draft.tool, draft.args)
    event = draft._replace(
        **{"job": begun.job, "task": begun.task, "agent": begun.agent} | labels,
        ts=draft.ts or format_time(now),
        content=content,
        error=error,
        args=None if draft.args is None else _clean_value("", draft.args, found),
        extra=_clean_value("", draft.extra, found) if draft.extra else {},
        injected=draft.injected or ("whole" if is_own_answer else classify_own_text(content or "")),
    )
    return Prepared(event, tuple(sorted(found)))


def complete_end(last: Event | None, new: Event) -> Event | None:
    """Return the end of a session to write; None where the last one says the same.

    The last word on outcome and summary counts; what it does not speak of stays.

    Example:
        >>> last = Event(event="end", args={"outcome": "success"}, content="Done.")
        >>> event = complete_end(last, Event(event="end", args={"outcome": "failure"}))
        >>> event.args, event.content
        ({'outcome': 'failure'}, 'Done.')
        >>> complete_end(last, Event(event="end")) is None
        True
    """
    if last is None:
        return new
    args = {**(last.args or {}), **(new.args or {})}
    content = last.content if new.content is None else new.content
    return None if (args, content) == (last.args or {}, last.content) else new._replace(args=args, content=content)


def _clean_text(text: str, found: set[str], name: str = "") -> str:
    """Return a text without private parts and credentials, cut; the name of its field may reveal one."""
    text = cut_private(text)
    if len(text) > MAX_EVENT_TEXT + _EDGE:
        return _clean_long(text, found)
    done = redact(text)
    if name and not done.found and len(text) < 1000:
        named = redact(f"{name}={text}")
        if named.found and named.text.startswith(f"{name}="):
            done = named._replace(text=named.text[len(name) + 1 :])
    found.update(done.found)
    return cut(done.text, MAX_EVENT_TEXT)


def _clean_long(text: str, found: set[str]) -> str:
    """Return head and tail of a long text; more is looked through, so that no half of a credential is left."""
    limit, tail = MAX_EVENT_TEXT, MAX_EVENT_TEXT // 4
    first, last = redact(text[: limit - tail + _EDGE]), redact(text[-tail - _EDGE :])
    found.update((*first.found, *last.found))
    head = first.text[: min(limit - tail, max(0, len(first.text) - _EDGE))]
    return f"{head}{missing(len(text) - limit)}{last.text[_EDGE:][-tail:]}"


def _clean_value(name: str, value: Any, found: set[str], depth: int = 0) -> Any:
    if isinstance(value, str):
        return _clean_text(value, found, name)
    if depth > 40:
        return None
    if isinstance(value, Mapping):
        return {
            _clean_text(str(key), found): _clean_value(str(key), item, found, depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_clean_value(name, item, found, depth + 1) for item in value]
    return value


def parse_moment(text: str, *, is_end: bool = False) -> str:
    """Return a day or a moment as events have it; for the end of a span, a day is over after it.

    Example:
        >>> parse_moment("2026-03-01"), parse_moment("2026-03-01", is_end=True), parse_moment("2026-03-01T12:30:00Z")
        ('2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z', '2026-03-01T12:30:00.000Z')
    """
    try:
        if len(text) == 10:
            return format_time(datetime.combine(date.fromisoformat(text) + timedelta(days=is_end), time.min))
        return format_time(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as exc:
        raise UsageError(f"{text!r} is not a day or a moment", "write 2026-03-01 or 2026-03-01T12:00:00Z") from exc
