"""Import a source, and report what was added, already stored or skipped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.importers import FORMATS, bullets, chat_exports, notes
from memory_kb.importers.chat_exports import ExportedChat, found_of
from memory_kb.importers.notes import NotePiece, came_from, read_mem0
from memory_kb.importers.sources import detect, read_elements, read_texts
from memory_kb.learning.capture import read_statements, read_user_messages
from memory_kb.learning.ingest import Ingested, Learning
from memory_kb.learning.text_comparison import fingerprint
from memory_kb.model import Location
from memory_kb.reports import RunReport
from memory_kb.sessions.importing import Labels, TranscriptImport
from memory_kb.store.session_log import SessionFiles
from memory_kb.text import readable_name

if TYPE_CHECKING:
    from memory_kb.learning.memories import Memories
    from memory_kb.vault import Vault


#: A request to remember something belongs to its conversation here, so that the time decides nothing.
_NO_TIME = datetime.min.replace(tzinfo=UTC)
_CHANGED = "its text and the source's differ by now; it stays as it is"
_CHATS = ("claude-export", "chatgpt-export")


@dataclass(frozen=True, slots=True)
class ImportedPiece:
    """What was decided about a piece of a source: `action` and `message` are those of `Ingested`."""

    what: str
    origin: str
    line: int
    action: str
    kind: str = ""
    id: str = ""
    path: str = ""
    message: str = ""


class LeftOut(NamedTuple):
    """How many of a thing were skipped for one reason, and the place of the first."""

    what: str
    why: str
    number: int
    first: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import brought in: every piece that became something or was refused, and the rest by reason."""

    format: str
    source: str
    pieces: tuple[ImportedPiece, ...]
    left_out: tuple[LeftOut, ...]
    run: RunReport
    sessions: int = 0
    events: int = 0

    def count(self) -> dict[tuple[str, str], int]:
        """Return how many of each thing became what."""
        return dict(Counter((one.what, one.action) for one in self.pieces))


#: Counts of what is left out, by reason: a million messages take little memory.
LeftOutByReason = dict[tuple[str, str], LeftOut]


class Imports:
    """The verb import."""

    def __init__(self, vault: Vault, memories: Memories) -> None:
        self._vault = vault
        self._memories = memories

    def import_(
        self,
        source: str | os.PathLike[str],
        *,
        format: str = "auto",
        as_sessions: bool = False,
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        dry_run: bool = False,
    ) -> ImportReport:
        """Bring in what another tool keeps; nothing of it is changed, and twice changes nothing.

        The source is a file, a folder, or the ZIP archive of a data export; `auto` looks which format it has. With
        `as_sessions` the conversations of an export become session logs, whole, instead of entries of what people
        state in them.

        Raises:
            UnreadableInput: the source cannot be read.
            UsageError: its format is not known, or the call makes no sense.
            VaultBusy: another process has been writing for a minute.
        """
        file = Path(source).expanduser()
        place = self._vault.place_for(scope, job, task)
        if format not in ("auto", *FORMATS):
            raise UsageError(f"unknown format {format!r}", f"it may be {', '.join(FORMATS)}")
        self._refuse_own(file)
        kind = detect(file) if format == "auto" else format
        if as_sessions and kind not in _CHATS:
            raise UsageError(f"{kind} holds no conversations", "only the exports of Claude and ChatGPT become sessions")
        if as_sessions:
            return self._import_sessions(file, kind, place, dry_run=dry_run)
        return self._import_entries(file, kind, place, dry_run=dry_run)

    def _refuse_own(self, source: Path) -> None:
        """Refuse to import what does not exist, or is in this vault already."""
        if not source.exists():
            raise UnreadableInput(f"{source} does not exist", "name a file or folder to import")
        real = Path(os.path.realpath(source))
        own = self._vault.memory or self._vault.folder
        if any(real.is_relative_to(folder) for folder in (own, self._vault.home)):
            raise UsageError(f"{source} is part of this vault already", "name something outside of it")

    def _import_entries(self, source: Path, kind: str, place: Location, *, dry_run: bool) -> ImportReport:
        left_out, found = LeftOutByReason(), list[tuple[NotePiece, Learning]]()
        at = "" if place == Location() else f"@{place.scope}/{place.job or ''}/{place.task or ''}"
        for piece, learning in _read_entries(source, kind, place, at):
            if learning is None:
                _count_left_out(left_out, piece)
            else:
                found.append((piece, learning))
        plan, run = self._memories.ingest("import", [learning for _, learning in found], dry_run=dry_run)
        stored = self._memories.all() if any(one.action == "known" for one in plan.results) else ()
        texts = {memory.id: memory.text for memory in stored if memory.is_live}
        reported = tuple(
            _report_piece(piece, one, texts.get(one.id)) for (piece, _), one in zip(found, plan.results, strict=True)
        )
        return ImportReport(kind, readable_name(source.name), reported, tuple(left_out.values()), run)

    def _import_sessions(self, source: Path, kind: str, place: Location, *, dry_run: bool) -> ImportReport:
        labels, left_out = Labels(job=place.job, task=place.task), LeftOutByReason()
        transcripts = TranscriptImport(SessionFiles(self._vault.machine), labels, self._vault.clock())
        sessions = events = 0
        for talk in _conversations(source, kind):
            if isinstance(talk, NotePiece):
                _count_left_out(left_out, talk)
            elif dry_run:
                sessions, events = sessions + 1, events + len(talk.events)
            else:
                for done in transcripts.add_events(found_of(talk), source, kind):
                    sessions += done.added > 0
                    events += done.added
        run, name = RunReport(None, "import"), readable_name(source.name)
        return ImportReport(kind, name, (), tuple(left_out.values()), run, sessions, events)


def _count_left_out(counts: LeftOutByReason, piece: NotePiece) -> None:
    held = counts.get((piece.what, piece.why)) or LeftOut(piece.what, piece.why, 0, f"{piece.origin}:{piece.line}")
    counts[piece.what, piece.why] = held._replace(number=held.number + 1)


def _read_entries(source: Path, kind: str, place: Location, at: str) -> Iterator[tuple[NotePiece, Learning | None]]:
    """Yield what a source holds, and the entry that each becomes, whose key ends with `at`; None for what is left out."""
    if kind in _CHATS:
        for talk in _conversations(source, kind):
            if isinstance(talk, NotePiece):
                yield talk, None
            else:
                yield from _read_conversation(talk, place, at, kind)
        return
    for piece in _read_pieces(source, kind, at):
        if piece.draft is None:
            yield piece, None
        else:
            named = str(piece.draft.fields["imported_from"])
            reason = f"Imported from {piece.origin}, line {piece.line}."
            yield piece, Learning(piece.draft, place, f"{piece.key}{at}", reason, named, "imported_from")


def _read_pieces(source: Path, kind: str, at: str) -> Iterator[NotePiece]:
    """Yield what a source of notes holds."""
    if kind == "mem0":
        name = readable_name(source.name)
        for number, one in enumerate(read_elements(source), 1):
            yield read_mem0(one, name, number)
        return
    problems: list[NotePiece] = []
    files = read_texts(source, kind, problems)
    if kind == "basic-memory":
        yield from notes.read_basic_memory(list(files), at)
    elif kind == "obsidian":
        yield from notes.read_obsidian(list(files), at)
    else:
        for file in files:
            yield from bullets.read_agents_md(file) if kind == "agents-md" else bullets.read_daily_log(file)
    yield from problems


def _conversations(source: Path, kind: str) -> Iterator[ExportedChat | NotePiece]:
    """Yield the conversations of an export one by one; what is none is a piece that says why."""
    name = readable_name(source.name)
    for number, one in enumerate(read_elements(source), 1):
        if chat_exports.kind_of(one) != kind:
            yield NotePiece("element", name, number, why=f"it is no conversation of a {kind}")
        else:
            nothing = NotePiece("conversation", name, number, why="nothing is said in it")
            yield chat_exports.read_export(one) or nothing


def _read_conversation(
    talk: ExportedChat, place: Location, at: str, format: str
) -> Iterator[tuple[NotePiece, Learning | None]]:
    numbered = (event._replace(session=talk.session, seq=number) for number, event in enumerate(talk.events, 1))
    for message in read_user_messages(numbered):
        event = message.event
        if not message.statements:
            yield NotePiece("message", talk.session, event.seq, why=message.refusal or "states nothing"), None
        for number, made in enumerate(read_statements([message], _NO_TIME, place, talk.session)):
            origin = came_from(f"{format}: {talk.title or talk.session}", event.ts)
            draft = replace(made.draft, fields={**made.draft.fields, **origin})
            key = f"import/{talk.session}/{event.origin}{f'/{number}' if number else ''}{at}"
            yield NotePiece("statement", talk.session, event.seq), replace(made, draft=draft, key=key)


def _report_piece(piece: NotePiece, one: Ingested, text: str | None) -> ImportedPiece:
    """Return what was decided about a piece; a known entry stays as it is even if its source has changed."""
    draft = one.learning.draft
    is_own = one.action == "known" and one.id == one.learning.entry_id and text is not None
    message = _CHANGED if is_own and fingerprint(text or "") != fingerprint(draft.text) else one.message
    return ImportedPiece(piece.what, piece.origin, piece.line, one.action, draft.kind, one.id, one.path, message)
