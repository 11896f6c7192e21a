"""Import a source, and report what was added, already stored or skipped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.importers import bullets, conversations, notes
from memory_kb.importers.conversations import ExportedChat, found_of
from memory_kb.importers.notes import FORMATS, NotePiece, dated_fields, left_out, read_mem0
from memory_kb.importers.sources import detect, read_json, read_texts
from memory_kb.learning.captures import offer_statements, read_messages
from memory_kb.learning.ingest import Intake, Offer, Taken, id_of
from memory_kb.learning.new_entry import fingerprint
from memory_kb.markdown.splice import Value
from memory_kb.model import Location
from memory_kb.reports import RunReport
from memory_kb.sessions.importing import Labels, import_found
from memory_kb.store.json_arrays import iterate
from memory_kb.store.session_log import SessionFiles
from memory_kb.text import readable_name

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


#: A request to remember something belongs to its conversation here, so that the time decides nothing.
_NO_TIME = datetime.min.replace(tzinfo=UTC)
_CHANGED = "its text and the source's differ by now; it stays as it is"


@dataclass(frozen=True, slots=True)
class ImportedPiece:
    """What became of a piece of a source.

    `action` is `created`, `reinforced`, `known`, `forgotten` or `refused`, as the intake says, or
    `left out`; `message` says why.
    """

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
    """What an import brought in.

    Attributes:
        format: the format of the source, as given or found out.
        pieces: what became of every piece that became something, or was refused.
        left_out: the rest, by reason.
        sessions: how many sessions were written, and `events` how many events.
    """

    format: str
    source: str
    pieces: tuple[ImportedPiece, ...]
    left_out: tuple[LeftOut, ...]
    run: RunReport
    sessions: int = 0
    events: int = 0

    def count(self) -> dict[tuple[str, str], int]:
        """Return how many of each thing became what."""
        counts: dict[tuple[str, str], int] = {}
        for one in self.pieces:
            counts[one.what, one.action] = counts.get((one.what, one.action), 0) + 1
        return counts


class Tally:
    """A count of what is left out; a million messages take no more room than a few reasons."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], LeftOut] = {}

    def add(self, piece: NotePiece) -> None:
        """Count a piece, unless it becomes something."""
        if piece.draft is None:
            key = (piece.what, piece.why)
            held = self._found.get(key) or LeftOut(piece.what, piece.why, 0, f"{piece.origin}:{piece.line}")
            self._found[key] = held._replace(number=held.number + 1)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What was counted, by reason."""
        return tuple(self._found.values())


def offer_pieces(pieces: Iterable[NotePiece], place: Location) -> list[Offer]:
    """Return the pieces that become entries as offers, each known again by its key.

    An entry that is there and says the same is reinforced once for each source. What is imported
    to another place is another entry.
    """
    offers = []
    pieces = list(pieces)
    moved = {id_of(one.key): id_of(_keyed(one.key, one.place or place)) for one in pieces if one.draft}
    for piece in pieces:
        if piece.draft is None:
            continue
        fields = dict(piece.draft.fields)
        named = str(fields.get("imported_from") or piece.origin)
        draft = (
            piece.draft
            if "imported_from" in fields
            else replace(piece.draft, fields=(*piece.draft.fields, ("imported_from", named)))
        )
        reason = f"Imported from {piece.origin}, line {piece.line}."
        offer = Offer(
            draft, piece.place or place, _keyed(piece.key, piece.place or place), reason, named, "imported_from"
        )
        offers.append(_redirected(offer, moved))
    return offers


def _keyed(key: str, place: Location) -> str:
    return key if place == Location() else f"{key}@{place.scope}/{place.job or ''}/{place.task or ''}"


def offer_conversation(talk: ExportedChat, place: Location, format: str, passed: Tally) -> list[Offer]:
    """Return what people state in a conversation; messages that state nothing are counted in `passed`.

    Most messages of most conversations hold no marker.
    """
    offers: list[Offer] = []
    numbered = (event._replace(session=talk.session, seq=number) for number, event in enumerate(talk.events, 1))
    named = f"{format}: {talk.title}" if talk.title else f"{format}: {talk.session}"
    for message in read_messages(numbered):
        event = message.event
        if not message.statements:
            passed.add(NotePiece("message", talk.session, event.seq, why=message.refusal or "states nothing"))
        for number, made in enumerate(offer_statements([message], _NO_TIME, place, talk.session)):
            fields: list[tuple[str, Value]] = [*made.draft.fields, *dated_fields(event.ts), ("imported_from", named)]
            key = _keyed(f"import/{talk.session}/{event.origin}{f'/{number}' if number else ''}", place)
            offers.append(replace(made, draft=replace(made.draft, fields=tuple(fields)), key=key))
    return offers


def _redirected(offer: Offer, there: Mapping[str, str]) -> Offer:
    links = dict(offer.draft.fields).get("links")
    if not isinstance(links, list) or not any(isinstance(link, dict) and link["to"] in there for link in links):
        return offer
    led = [{**link, "to": there.get(link["to"], link["to"])} for link in links if isinstance(link, dict)]
    kept = [link for link in led if link["to"] != offer.entry_id]
    fields = [
        (name, kept if name == "links" else value) for name, value in offer.draft.fields if name != "links" or kept
    ]
    return replace(offer, draft=replace(offer.draft, fields=tuple(fields)))


def report_pieces(pieces: Iterable[NotePiece], intake: Intake, texts: Mapping[str, str]) -> tuple[ImportedPiece, ...]:
    """Return what became of the pieces that were offered, in their order.

    A known entry stays as it is; where its text, one of `texts` by ids, is not what its source says, the message says so.
    """

    def report(piece: NotePiece, one: Taken) -> ImportedPiece:
        draft, text = one.offer.draft, texts.get(one.id)
        is_own = one.action == "known" and one.id == one.offer.entry_id and text is not None
        message = _CHANGED if is_own and fingerprint(text or "") != fingerprint(draft.text) else one.message
        return ImportedPiece(piece.what, piece.origin, piece.line, one.action, draft.kind, one.id, one.path, message)

    return tuple(map(report, pieces, intake.taken))


_CHATS = ("claude-export", "chatgpt-export")
_BROKEN = "element"


class Imports:
    """The verb import."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store

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

        Args:
            source: a file, a folder, or the ZIP archive of a data export.
            format: `basic-memory`, `obsidian`, `daily-logs`, `claude-export`, `chatgpt-export`,
                `mem0`, `agents-md`, or `auto`, which looks.
            as_sessions: write the conversations of an export into session logs, whole, instead of
                keeping what people state in them.
            scope: where the entries go; `job` and `task` likewise.
            dry_run: write nothing; the report's run says what would be written.

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
        with self._writer.lock(place.scope, dry_run=dry_run):
            return self._import_entries(file, kind, place, dry_run=dry_run)

    def _refuse_own(self, source: Path) -> None:
        """Refuse to import what is in this vault already.

        Raises:
            UnreadableInput: it does not exist.
            UsageError: it is.
        """
        if not source.exists():
            raise UnreadableInput(f"{source} does not exist", "name a file or folder to import")
        real = Path(os.path.realpath(source))
        own = self._vault.memory or self._vault.folder
        if any(real.is_relative_to(folder) for folder in (own, self._vault.home)):
            raise UsageError(f"{source} is part of this vault already", "name something outside of it")

    def _import_entries(self, source: Path, kind: str, place: Location, *, dry_run: bool) -> ImportReport:
        pieces: list[NotePiece] = []
        passed = Tally()
        if kind in _CHATS:
            talks = _conversations(source, kind, passed)
            offers = [offer for talk in talks for offer in offer_conversation(talk, place, kind, passed)]
            for one in offers:
                line = int(str(dict(one.draft.fields).get("session_seq", 0)))
                pieces.append(NotePiece("statement", one.origin or "", line))
        else:
            for piece in self._read_pieces(source, kind):
                passed.add(piece)
                pieces += [piece] if piece.draft else []
            offers = offer_pieces(pieces, place)
        intake, run = self._store.take_in("import", offers, dry_run=dry_run)
        known = self._store.all() if any(one.action == "known" for one in intake.taken) else ()
        reported = report_pieces(pieces, intake, {memory.id: memory.text for memory in known if memory.is_live})
        return ImportReport(kind, readable_name(source.name), reported, passed.left_out, run)

    def _read_pieces(self, source: Path, kind: str) -> Iterator[NotePiece]:
        if kind == "mem0":
            yield from _read_memories(source)
            return
        problems: list[NotePiece] = []
        files = read_texts(source, kind, problems)
        if kind == "basic-memory":
            yield from notes.read_basic_memory(list(files))
        elif kind == "obsidian":
            yield from notes.read_obsidian(list(files))
        else:
            for file in files:
                yield from bullets.read_agents_md(file) if kind == "agents-md" else bullets.read_daily_log(file)
        yield from problems

    def _import_sessions(self, source: Path, kind: str, place: Location, *, dry_run: bool) -> ImportReport:
        files, labels = SessionFiles(self._vault.machine), Labels(job=place.job, task=place.task)
        passed = Tally()
        sessions = events = 0
        for talk in _conversations(source, kind, passed):
            if dry_run:
                sessions, events = sessions + 1, events + len(talk.events)
                continue
            for done in import_found(files, found_of(talk), source, kind, labels, self._vault.clock()):
                sessions += done.added > 0
                events += done.added
        return ImportReport(
            kind, readable_name(source.name), (), passed.left_out, RunReport(None, "import"), sessions, events
        )


def _read_memories(source: Path) -> Iterator[NotePiece]:
    for one in iterate(read_json(source), ("results", "memories")):
        yield (
            left_out(_BROKEN, readable_name(source.name), one.number, one.wrong)
            if one.wrong
            else read_mem0(one.value, readable_name(source.name), one.number)
        )


def _conversations(source: Path, kind: str, passed: Tally) -> Iterator[ExportedChat]:
    """Yield the conversations of an export one by one; what is none is reported in `passed`."""
    for one in iterate(read_json(source)):
        if one.wrong:
            passed.add(left_out(_BROKEN, readable_name(source.name), one.number, one.wrong))
        elif conversations.kind_of(one.value) != kind:
            passed.add(left_out(_BROKEN, readable_name(source.name), one.number, f"it is no conversation of a {kind}"))
        elif talk := conversations.read(one.value):
            yield talk
        else:
            passed.add(left_out("conversation", readable_name(source.name), one.number, "nothing is said in it"))
