"""Coming from elsewhere: the notes, memories and conversations of other tools."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.filters import make_place
from memory_kb.model import Location
from memory_kb.text import readable_name

if TYPE_CHECKING:
    from memory_kb.index.keeper import VaultIndex
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.imports.conversations import Conversation
    from memory_kb.learning.imports.offering import ImportReport, Tally
    from memory_kb.learning.imports.pieces import Piece
    from memory_kb.learning.intake import Intake, Offer
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.reports import RunReport

_CHATS = ("claude-export", "chatgpt-export")
_BROKEN = "element"


class Imports:
    """The verb import."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, store: EntryStore) -> None:
        self._vault = vault
        self._index = index
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
            dry_run: write nothing; the report's run tells what would be.

        Raises:
            UnreadableInput: the source cannot be read.
            UsageError: its format is not known, or the call makes no sense.
            VaultBusy: another process has been writing for a minute.
        """
        from memory_kb.learning.imports.pieces import FORMATS
        from memory_kb.verbs.importsources import detect

        file = Path(source).expanduser()
        place = make_place(scope, job, task)
        if place.job and not self._vault.memory:
            raise UsageError(
                f"{self._vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has"
            )
        if format not in ("auto", *FORMATS):
            raise UsageError(f"unknown format {format!r}", f"it may be {', '.join(FORMATS)}")
        self._refuse_own(file)
        kind = detect(file) if format == "auto" else format
        if as_sessions and kind not in _CHATS:
            raise UsageError(f"{kind} holds no conversations", "only the exports of Claude and ChatGPT become sessions")
        if as_sessions:
            return self._import_sessions(file, kind, place, dry_run=dry_run)
        with nullcontext() if dry_run else self._writer.lock(place.scope):
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
            raise UsageError(f"{source} is part of this vault already", "name what lies outside of it")

    def _import_entries(self, source: Path, kind: str, place: Location, *, dry_run: bool) -> ImportReport:
        from memory_kb.learning.imports.offering import ImportReport, Tally, offer_pieces, offer_statements, tell

        pieces: list[Piece] = []
        passed = Tally()
        if kind in _CHATS:
            offers = [
                offer
                for talk in _conversations(source, kind, passed)
                for offer in offer_statements(talk, place, kind, passed)
            ]
            whats = ["statement"] * len(offers)
        else:
            for piece in self._read_pieces(source, kind):
                passed.add(piece)
                pieces += [piece] if piece.draft else []
            offers = offer_pieces(pieces, place)
            whats = [piece.what for piece in pieces]
        intake, run = self._take_in_linked(offers, dry_run=dry_run)
        return ImportReport(kind, readable_name(source.name), tell(pieces, intake, whats), passed.left_out, run)

    def _take_in_linked(self, offers: Sequence[Offer], *, dry_run: bool) -> tuple[Intake, RunReport]:
        """Take offers in whose links lead to each other, or to what is there instead."""
        from memory_kb.learning.imports.offering import mark_changed, redirect_links
        from memory_kb.learning.intake import plan_intake

        if not self._vault.memory:
            offers = [offer if offer.place.scope == "global" else replace(offer, place=Location()) for offer in offers]
        if not dry_run:
            self._writer.recover()

        def plan(some: Sequence[Offer]) -> Intake:
            return self._index.read(
                lambda index: plan_intake(some, index, self._vault.folder_of, self._vault.clock(), self._store.was_made)
            )

        intake = plan(offers)
        redirected = redirect_links(offers, intake)
        intake = plan(redirected) if redirected else intake
        if any(one.action == "known" for one in intake.taken):
            intake = mark_changed(intake, {memory.id: memory.text for memory in self._store.all() if memory.is_live})
        return intake, self._writer.run("import", intake.changes, dry_run=dry_run)

    def _read_pieces(self, source: Path, kind: str) -> Iterator[Piece]:
        from memory_kb.learning.imports import agents_md, basic_memory, daily_logs, obsidian
        from memory_kb.verbs.importsources import read_texts

        if kind == "mem0":
            yield from _read_memories(source)
            return
        problems: list[Piece] = []
        files = read_texts(source, kind, problems)
        if kind == "basic-memory":
            yield from basic_memory.read(list(files))
        elif kind == "obsidian":
            yield from obsidian.read(list(files))
        else:
            for file in files:
                yield from agents_md.read(file) if kind == "agents-md" else daily_logs.read(file)
        yield from problems

    def _import_sessions(self, source: Path, kind: str, place: Location, *, dry_run: bool) -> ImportReport:
        from memory_kb.learning.imports.conversations import found_of
        from memory_kb.learning.imports.offering import ImportReport, Tally
        from memory_kb.notes.sessionlog import SessionFiles
        from memory_kb.reports import RunReport
        from memory_kb.verbs.importing import Labels, import_found

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


def _read_memories(source: Path) -> Iterator[Piece]:
    from memory_kb.learning.imports import mem0
    from memory_kb.learning.imports.pieces import left_out
    from memory_kb.notes.jsonarrays import iterate
    from memory_kb.verbs.importsources import json_pieces

    with json_pieces(source) as pieces:
        for one in iterate(pieces, ("results", "memories")):
            yield (
                left_out(_BROKEN, readable_name(source.name), one.number, one.wrong)
                if one.wrong
                else mem0.read(one.value, readable_name(source.name), one.number)
            )


def _conversations(source: Path, kind: str, passed: Tally) -> Iterator[Conversation]:
    """Yield the conversations of an export one by one; what is none is told in `passed`."""
    from memory_kb.learning.imports import conversations
    from memory_kb.learning.imports.pieces import left_out
    from memory_kb.notes.jsonarrays import iterate
    from memory_kb.verbs.importsources import json_pieces

    with json_pieces(source) as pieces:
        for one in iterate(pieces):
            if one.wrong:
                passed.add(left_out(_BROKEN, readable_name(source.name), one.number, one.wrong))
            elif conversations.kind_of(one.value) != kind:
                passed.add(
                    left_out(_BROKEN, readable_name(source.name), one.number, f"it is no conversation of a {kind}")
                )
            elif talk := conversations.read(one.value):
                yield talk
            else:
                passed.add(left_out("conversation", readable_name(source.name), one.number, "nothing is said in it"))
