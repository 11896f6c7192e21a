"""The vault and the open notes of one editor, and queries about them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import posixpath
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeVar

from lsprotocol import types as lsp
from pygls.uris import to_fs_path

from memory_kb.editing.renaming import check_name
from memory_kb.errors import MemoryKBError, UsageError, explain_failure
from memory_kb.kb import KnowledgeBase
from memory_kb.lsp.actions import EditorFile
from memory_kb.lsp.open_notes import Page, Subject
from memory_kb.markdown.headings import heading_words_span
from memory_kb.regular_files import read_file
from memory_kb.reports import EntryView
from memory_kb.store.safe_paths import explain_unsafe
from memory_kb.text import note_name
from memory_kb.vault import GLOBAL_PREFIX, Vault
from memory_kb.workers import NamedVault, VaultWatcher, Worker

_T = TypeVar("_T")
#: Seconds that work of ours gets to end when the editor goes.
_GRACE_SECONDS = 1.0
#: Larger files are not read for a place in them.
_MAX_TEXT = 5_000_000
_MOST_FOUND = 100


class Workspace:
    """What one editor works on.

    All that needs the knowledge base is done in a thread of its own, one thing after the other.
    """

    def __init__(self, vault: str | None, home: str | None, say: Callable[[str], None]) -> None:
        self.named = NamedVault(vault, home, dict(os.environ))
        self.vault: Vault | None = None
        #: Set when it is known whether there is a vault.
        self.ready = asyncio.Event()
        self._generation = -1
        self.pages: dict[str, Page] = {}
        self.encoding = "utf-16"
        self._worker = Worker(self.named, "memory-kb lsp", trust_watcher=True)
        self.ask = self._worker.ask
        self._watcher = VaultWatcher(self.named, say)
        self._say = say

    async def open(self) -> bool:
        """Find the vault; return whether there is one."""
        if self.vault is None:
            try:
                self.vault = await self.ask(lambda kb: kb.vault)
            except MemoryKBError as exc:
                self._say(explain_failure(exc))
                return False
            self._watcher.begin()
        return True

    async def has_changed(self) -> bool:
        """Return whether the vault has changed since the last call."""
        before, self._generation = (
            self._generation,
            await self.ask(lambda kb: kb.index.read(lambda one: one.generation)),
        )
        return before != self._generation

    def close(self) -> None:
        self._watcher.end(0.0)
        self._worker.close(_GRACE_SECONDS)

    def put(self, uri: str, text: str, version: int | None) -> Page | None:
        """Store a note as the editor has it, and return it; None for what is no note of the vault."""
        path = self.path_of(uri)
        if path is None:
            return None
        self.pages[uri] = Page(uri, path, text, version, self.encoding)
        return self.pages[uri]

    def path_of(self, uri: str) -> str | None:
        """Return the path in output of a note, or None for what is none."""
        named = to_fs_path(uri)
        file = Path(os.path.realpath(named or ""))
        if not named or self.vault is None or file.suffix.lower() != ".md":
            return None
        for root in self.vault.roots:
            inside = file.is_relative_to(root.folder) and not any(
                part.startswith(".") for part in file.relative_to(root.folder).parts
            )
            if inside or file in root.top_notes:
                return self.vault.show(file)
        return None

    def place_of(self, path: str) -> EditorFile:
        page = self.open_page(path)
        if page:
            return EditorFile(page.uri, page.version)
        assert self.vault
        return EditorFile(self.vault.resolve(path).as_uri())

    def open_page(self, path: str) -> Page | None:
        return next((page for page in self.pages.values() if page.path == path), None)

    def page(self, path: str) -> Page | None:
        """Return a note as it is open, else as it is on the disk; None where it cannot be read."""
        assert self.vault
        opened = self.open_page(path)
        if opened:
            return opened
        file = self.vault.resolve(path)
        try:
            text = read_file(file, _MAX_TEXT).decode("utf-8", "replace").removeprefix("\ufeff")
        except OSError:
            return None
        return Page(file.as_uri(), path, text, None, self.encoding)

    def read(self, path: str) -> str:
        """Return the text of a note, "" for one that cannot be read."""
        page = self.page(path)
        return page.text if page else ""

    def drafts(self) -> dict[str, str]:
        return {page.path: page.text for page in self.pages.values()}

    def name_of(self, page: Page, subject: Subject) -> str:
        """Return what is renamed of a subject: the words of its heading, else the name that is on the page."""
        text, span = page.text, subject.span
        if subject.way == "section" and subject.section:
            text = self.read(subject.path)
            span = heading_words_span(text, subject.section)
        return text[span.start : span.end]

    def locate(self, subject: Subject) -> lsp.Location | None:
        """Return where an entry is, or the section that is meant of its file."""
        page = self.page(subject.path)
        if page is None:
            return None
        return lsp.Location(page.uri, page.ruler.range(subject.section or page.place_of(subject.entry_id)))

    async def look_up(self, work: Callable[[KnowledgeBase], _T]) -> _T | None:
        """Return what the vault says, None where it cannot be asked now."""
        try:
            return await self.ask(work) if self.vault else None
        except MemoryKBError:
            return None

    async def follow(self, page: Page, targets: Collection[str]) -> dict[str, EntryView]:
        """Return the entries that links of a page lead to, by their targets."""
        found = await self.look_up(lambda kb: kb.follow(page.path, targets)) if targets else None
        return found or {}

    async def list_mentions(self, subject: Subject, *, with_own: bool) -> list[lsp.Location]:
        """Return where notes link to an entry or a section, open ones as they are in the editor."""
        if subject.way not in ("section", "block"):
            subject = subject._replace(section=None)
        drafts, own = self.drafts(), self.locate(subject) if with_own else None
        found = [own] if own else []
        mentions = await self.look_up(
            lambda kb: kb.find_mentions(subject.path, subject.entry_id, drafts, subject.section)
        )
        pages = {path: self.page(path) for path in {one.path for one in mentions or ()}}
        found += [
            lsp.Location(page.uri, page.ruler.range(one.span)) for one in mentions or () if (page := pages[one.path])
        ]
        return found

    def find_moves(self, renames: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return the old and new paths of the notes and folders among files that are renamed."""
        moves: dict[str, str] = {}
        for old, new in renames:
            path, to = self.path_of(old), self.path_of(new)
            folder, into = self._folder_of(old), self._folder_of(new)
            if path and to:
                moves[path] = to
            elif path is None and folder and into and self.vault and self.vault.resolve(folder).is_dir():
                moves[folder] = into
        return moves

    def _folder_of(self, uri: str) -> str | None:
        """Return a folder of the vault by its address as paths of notes begin in it."""
        inside = self.path_of(f"{uri.rstrip('/')}/x.md")
        return inside.removesuffix("x.md") if inside else None

    async def list_links(self, page: Page) -> list[lsp.DocumentLink]:
        """Return the links of a page that lead to a note, each with its file."""
        entries = await self.follow(page, {link.target for link in page.links if link.target})
        found = ((link, entries.get(link.target)) for link in page.links)
        return [
            lsp.DocumentLink(page.ruler.range(link.whole), self.place_of(one.path).uri) for link, one in found if one
        ]

    async def path_of_missing(self, page: Page, offset: int) -> str | None:
        """Return where the note that a link names and that is not there would be; None where none can be.

        That is below the folder of the page, or below the top for a path that begins with a slash.
        """
        link = page.link_at(offset)
        if link is None or self.vault is None or link.is_attachment or not link.target:
            return None
        return None if await self.follow(page, [link.target]) else self._free_path(page, link.target)

    def _free_path(self, page: Page, target: str) -> str | None:
        """Return the path of a note that a link from a page would name, if it can be made."""
        assert self.vault
        root = GLOBAL_PREFIX if page.path.startswith(GLOBAL_PREFIX) else ""
        folder = "" if target.startswith("/") else posixpath.dirname(page.path.removeprefix(root))
        path = root + posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
        path = path if path.lower().endswith(".md") else f"{path}.md"
        with contextlib.suppress(UsageError):
            check_name(note_name(path), "file")
            if explain_unsafe(self.vault, path) is None and not os.path.lexists(self.vault.resolve(path)):
                return path
        return None

    async def find_symbols(self, query: str) -> list[lsp.SymbolInformation]:
        """Return the entries whose title or id goes with a query, then the headings that hold its words."""

        def symbol(name: str, path: str, line: int) -> lsp.SymbolInformation:
            start = lsp.Position(max(0, line - 1), 0)
            place = lsp.Location(self.place_of(path).uri, lsp.Range(start, start))
            return lsp.SymbolInformation(place, name, lsp.SymbolKind.String, container_name=path)

        named = await self.look_up(lambda kb: kb.suggest(query, _MOST_FOUND)) or ()
        headings = await self.look_up(lambda kb: kb.find_headings(query, _MOST_FOUND)) or ()
        entries = dict.fromkeys((one.entry.title, one.entry.path, one.entry.line) for one in named if one.entry)
        return [symbol(*one) for one in entries] + [symbol(one.words, one.path, one.line) for one in headings]
