"""Recognise the formats of transcripts, and import them as sessions, every record once."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.learning.user_text import split_message
from memory_kb.model import Problem
from memory_kb.regular_files import MACHINE
from memory_kb.reports import SessionImported
from memory_kb.sessions import TRANSCRIPT_FORMATS, json_transcripts, markdown_chats
from memory_kb.sessions.transcripts import MAX_RECORD, LineResult, RawLine, Reader, records_of
from memory_kb.store.session_events import Event
from memory_kb.store.session_log import SessionFiles, SessionWriter, check_id, prepare, read_lines, session_name
from memory_kb.store.worktrees import find_siblings
from memory_kb.text import hash_of

_SHOWN_PROBLEMS = 20
#: What a conversation in Markdown may be called; of other files it would mean nothing that they hold no turns.
_PROSE = (".md", ".markdown", ".txt")
_FOLDERS_LEFT = frozenset({".git", "node_modules", "__pycache__", ".venv", "venv"})
#: Records in which a transcript says where it worked.
_START_WITHIN = 1_000
#: When a conversation began, as the name of its file says it.
_BEGAN = re.compile(r"\d{4}-\d\d-\d\d[T _-]\d\d[-_:.]?\d\d")

#: Lines of a transcript by which its format is recognised.
_SNIFFED_LINES = 50
#: A JSON object, perhaps after a line or two that a program printed.
_JSON_START = re.compile(r"(?:[^{\n]*\n){0,3}\s*\{\s*(?:\"|\n)")
_CODEX_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
READERS: Mapping[str, Reader] = {
    "claude-code": json_transcripts.read_claude_code,
    "codex": json_transcripts.read_codex,
    "gemini-cli": json_transcripts.read_gemini,
    "opencode": json_transcripts.read_opencode,
    "cursor": markdown_chats.read_cursor,
    "specstory": markdown_chats.read_specstory,
    "aider": markdown_chats.read_aider,
    "markdown": markdown_chats.read_chat,
}


class Labels(NamedTuple):
    """What the caller knows of a transcript."""

    session: str | None = None
    job: str | None = None
    task: str | None = None
    agent: str | None = None


class _Target:
    """A session that an import writes to, with the events that it already has."""

    def __init__(self, files: SessionFiles, session: str, stack: ExitStack) -> None:
        self.session = session
        self.writer: SessionWriter = stack.enter_context(files.writing(session))
        self.counts: Counter[str] = Counter()
        self.redacted: set[str] = set()
        self._known: set[int] = set()
        #: What a hook logged, or another kind of transcript: how often, by what it says.
        self._logged: dict[str, Counter[int]] = {}
        self._logged_calls: set[str] = set()
        self._has_start = not self.writer.is_empty
        for event in files.read(session) if self._has_start else ():
            if event.origin:
                self._known.add(_digest(event.origin))
            if said := _content_of(event):
                self._logged.setdefault(_transcript_kind(event), Counter())[_digest(said)] += 1

    def write(self, event: Event, labels: Labels, now: datetime) -> None:
        """Append an event unless its origin is there already, or a hook logged it."""
        key = _digest(event.origin or "")
        if event.origin == "start" and self._has_start:
            # A transcript may begin several times, and a session may have been begun here: it has one start.
            self.counts["known"] += key in self._known
            self._known.discard(key)
            return
        own = event._replace(job=labels.job, task=labels.task, agent=labels.agent or event.agent)
        done = None if key in self._known else prepare(own, now, self.writer.first)
        if done is None or self._is_logged(done.event):
            self.counts["known"] += 1
            return
        self.writer.append(done.event)
        self._known.add(key)
        self._has_start = True
        self.redacted.update(done.redacted)
        self.counts["added"] += 1
        self.counts["injected"] += done.event.injected is not None

    def report(self, source: Path, kind: str) -> SessionImported:
        """Return what was written."""
        added, known, injected = (self.counts[name] for name in ("added", "known", "injected"))
        done = SessionImported(self.session, str(source), kind, added, known, injected=injected)
        return done._replace(redacted=tuple(sorted(self.redacted)))

    def _is_logged(self, event: Event) -> bool:
        """Return whether a hook or another transcript logged an event; each logged event matches one."""
        if event.type == "tool_result" and event.call_id in self._logged_calls:
            return True
        key = _digest(_content_of(event) or "")
        same = (one for source, one in self._logged.items() if source != _transcript_kind(event) and one[key])
        counts = next(same, None)
        if counts is None:
            return False
        counts[key] -= 1
        if event.type == "tool_call" and event.call_id:
            self._logged_calls.add(event.call_id)
        return True


def _transcript_kind(event: Event) -> str:
    """Return the kind of transcript that an event was imported from, or "" for one that was logged as it happened."""
    return (event.origin or "").partition(":")[0]


def _content_of(event: Event) -> str | None:
    """Return what an event says, in a form that a hook and a transcript have in common."""
    if event.type in ("tool_call", "tool_result") and event.call_id:
        return f"{event.type} {event.call_id}"
    if event.type == "tool_call":
        return f"{event.tool} {json.dumps(event.args, sort_keys=True, default=str)}"
    if event.type == "message" and event.content:
        said = split_message(event.content).sent if event.role == "user" else event.content
        return f"{event.role} {' '.join(said.split())}"
    return None


class TranscriptImport:
    """The import of transcripts into the sessions of a vault."""

    def __init__(self, files: SessionFiles, labels: Labels, now: datetime) -> None:
        self._files, self._labels, self._now = files, labels, now

    def add_folder(self, folder: Path, project: Path | None = None) -> tuple[SessionImported, ...]:
        """Bring every transcript below a folder in; with a project, only sessions that worked there."""
        made: list[SessionImported] = []
        for source in _find_transcripts(folder):
            try:
                made += self._add_found(source, project)
            except (UnreadableInput, OSError) as exc:
                reason = getattr(exc, "strerror", None) or str(exc)
                made.append(SessionImported("", str(source), "", problems=(Problem(str(source), 1, reason),)))
        return tuple(made)

    def _add_found(self, source: Path, project: Path | None) -> tuple[SessionImported, ...]:
        kind = sniff(_lines(source))
        if source.suffix != ".jsonl" and kind in (None, "markdown"):
            return ()
        if kind and project:
            where = _session_folder(source, kind)
            if not (where and _is_within(where, project)):
                return (SessionImported("", str(source), kind, elsewhere=where or "an unknown folder"),)
        return self.add_file(source, kind)

    def add_file(self, source: Path, kind: str | None = None) -> tuple[SessionImported, ...]:
        """Import a transcript; return one result for each session that it holds."""
        if kind is not None and kind not in TRANSCRIPT_FORMATS:
            raise UsageError(f"unknown format {kind!r}", f"it may be {', '.join(TRANSCRIPT_FORMATS)}")
        found = kind or sniff(_lines(source))
        why = ": there are no turns such as `## User` and `## Assistant`" if source.suffix.lower() in _PROSE else ""
        if found:
            made = self.add_events(READERS[found](_lines(source)), source, found)
            if any(one.added or one.known or one.ignored for one in made):
                return made
            problem = next((problem for one in made for problem in one.problems), None)
            why = f": line {problem.line}: {problem.message}" if problem and kind else ""
        hint = f"name its format with --format: {', '.join(TRANSCRIPT_FORMATS)}"
        raise UnreadableInput(f"{source} is no transcript that is known{why}", hint)

    def add_events(self, events: Iterable[LineResult], source: Path, kind: str) -> tuple[SessionImported, ...]:
        """Import the events that a reader yields; return one result for each session."""
        named, fallback = self._labels.session, session_name(source.stem)
        targets, names = dict[str, _Target](), dict[str | None, str]()
        ignored, problems = 0, list[Problem]()
        with ExitStack() as stack:
            for found in events:
                if found.event is None:
                    ignored += found.problem is None
                    if found.problem and len(problems) < _SHOWN_PROBLEMS:
                        problems.append(Problem(str(source), found.line, found.problem))
                    continue
                if found.session not in names:
                    names[found.session] = named or self._name_session(found, source)
                session = names[found.session]
                if session not in targets:
                    targets[session] = _Target(self._files, check_id(session), stack)
                targets[session].write(found.event, self._labels, self._now)
        done = [target.report(source, kind) for target in targets.values()]
        # What belongs to no session counts with the first.
        first, *others = done or [SessionImported(named or fallback, str(source), kind)]
        return (first._replace(ignored=ignored, problems=tuple(problems)), *others)

    def _name_session(self, found: LineResult, source: Path) -> str:
        """Return the id of a session; one that is named after its first turn gets the moment of its beginning as well.

        The moment in the name of the file counts first: it stays when another version of a program writes other text.
        """
        name = session_name(found.session or source.stem)
        ts = found.event.ts if found.event else ""
        began = _BEGAN.match(source.stem)
        moment = "" if found.is_named else re.sub(r"\D", "", began[0] if began else ts)[:12]
        return f"{name}-{moment}" if moment else name


def _find_transcripts(folder: Path) -> Iterator[Path]:
    """Yield the files that may hold transcripts at any depth, in order; hidden folders are looked into."""
    for place, folders, names in os.walk(folder):
        # Machine folders have logs of ours, those that were set aside too.
        folders[:] = sorted(name for name in folders if name not in _FOLDERS_LEFT and not name.startswith(MACHINE))
        yield from (Path(place, name) for name in sorted(names) if name.endswith((".jsonl", ".json", ".md")))


def _lines(source: Path) -> Iterator[RawLine]:
    return (line.text for line in read_lines(source, limit=MAX_RECORD))


def _session_folder(source: Path, kind: str) -> str | None:
    """Return the folder that the first session of a transcript worked in, or None where nothing says so.

    Gemini CLI writes a checksum of the folder; SpecStory and aider write into the folder itself.
    """
    if kind == "specstory" and ".specstory" in source.parts:
        return str(Path(*source.parts[: source.parts.index(".specstory")]))
    if kind == "aider":
        return str(source.parent)
    for found in islice(READERS[kind](_lines(source)), _START_WITHIN):
        args = found.event.args or {} if found.event and found.event.event == "start" else {}
        folder = args.get("cwd") or args.get("project_hash")
        if isinstance(folder, str):
            return folder
    return None


def _is_within(folder: str, project: Path) -> bool:
    """Return whether a folder, or the one that a checksum is of, is in a project or another working tree of it."""
    trees = [project, *find_siblings(project)]
    roots = [os.path.realpath(tree) for tree in trees]
    if folder in {hash_of(str(one).encode()) for one in (*trees, *roots)}:
        return True
    return any(Path(os.path.realpath(folder)).is_relative_to(root) for root in roots)


def _digest(text: str) -> int:
    """Return a small hash of a text as the log writes it: a transcript may have a million of them."""
    return hash(text.encode("utf-8", "replace"))


def sniff(lines: Iterable[RawLine]) -> str | None:
    """Return the format of a transcript, or None for a text of no known shape.

    Example:
        >>> sniff([b'{"type": "user", "sessionId": "s", "message": {}}']), sniff([b"## User", b"hi", b"## Claude", b"hello"])
        ('claude-code', 'markdown')
        >>> sniff([b"a:hover {", b"  cursor: pointer;", b"}"])
    """
    rest = iter(lines)
    head = list(islice(rest, _SNIFFED_LINES))
    records = [record for _, record in records_of(head) if isinstance(record, dict)]
    if kind := next(filter(None, map(_kind_of, records)), None):
        return kind
    text = "\n".join((line or b"").decode("utf-8", "replace").rstrip("\r\n") for line in head)
    if _JSON_START.match(text):
        return _kind_of_document(text)
    return markdown_chats.sniff_markdown(text, chain(head, rest))


def _kind_of(record: Mapping[str, Any]) -> str | None:
    kind, message = record.get("type"), isinstance(record.get("message"), dict)
    if isinstance(record.get("payload"), dict) and kind in _CODEX_TYPES:
        return "codex"
    if "sessionId" in record and "projectHash" in record:
        return "gemini-cli"
    if isinstance(record.get("info"), dict) and isinstance(record.get("messages"), list):
        return "opencode"
    if message and kind is None and record.get("role") in ("user", "assistant"):
        return "cursor"
    if message or not record.keys().isdisjoint(("sessionId", "leafUuid")):
        return "claude-code"
    is_old_codex = record.get("record_type") or ("id" in record and "timestamp" in record and kind is None)
    return "codex" if is_old_codex else None


def _kind_of_document(text: str) -> str | None:
    """Return the format of a JSON object that is written on several lines, by its first fields."""
    if '"sessionId"' in text and '"projectHash"' in text:
        return "gemini-cli"
    is_opencode = re.search(r'"info"\s*:\s*\{', text) and re.search(r'"(?:projectID|directory|slug)"\s*:', text)
    return "opencode" if is_opencode else None
