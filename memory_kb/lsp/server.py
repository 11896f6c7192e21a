"""The language server: route the requests of an editor, and send the answers."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from memory_kb import __version__
from memory_kb.editing.editor_actions import RenamedEntry
from memory_kb.errors import MemoryKBError
from memory_kb.kb import KnowledgeBase
from memory_kb.lsp.actions import (
    SOURCE,
    describe_state,
    make_workspace_edit,
    offer_actions,
    offer_new_note,
    read_data,
    to_diagnostic,
)
from memory_kb.lsp.completion import MOST, Known, Spot, complete_at, find_spot
from memory_kb.lsp.open_notes import Page, Subject, find_named, find_subject, find_yaml, list_foldings, list_symbols
from memory_kb.lsp.workspace import Workspace
from memory_kb.markdown.headings import sections_by_heading
from memory_kb.model import Span
from memory_kb.store.render_changes import Composition
from memory_kb.vault import place_of_path
from memory_kb.workers import make_say

_say = make_say("lsp")
#: Seconds of quiet after which a note is examined, and between two looks at the vault.
_PAUSE_SECONDS, _LOOK_SECONDS = 0.25, 1.5
#: So much of a section is shown.
_MOST_SECTION = 4_000
_OPERATIONS = {lsp.ResourceOperationKind.Create, lsp.ResourceOperationKind.Rename, lsp.ResourceOperationKind.Delete}
#: What an editor asks about before it renames files.
_FILES = lsp.FileOperationRegistrationOptions(
    [
        lsp.FileOperationFilter(lsp.FileOperationPattern("**/*.md", lsp.FileOperationPatternKind.File), "file"),
        lsp.FileOperationFilter(lsp.FileOperationPattern("**", lsp.FileOperationPatternKind.Folder), "file"),
    ]
)


class _PlaceParams(Protocol):
    """A question about a place in a note."""

    text_document: lsp.TextDocumentIdentifier
    position: lsp.Position


class NoteServer(LanguageServer):
    """A language server with the open notes of an editor."""

    #: Set before it starts.
    notes: Workspace

    def __init__(self) -> None:
        super().__init__("memory-kb", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: asyncio.Task[None] | None = None

    def report_server_error(self, error: Exception, source: type[PyglsError | JsonRpcException]) -> None:
        """Show a person what went wrong; in a sentence, where a message of the editor cannot be read."""
        if source is JsonRpcException:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition(";")[0]
            error = ValueError(f"a message of the editor cannot be read: {reason}")
            _say(str(error))
        super().report_server_error(error, source)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine beside the answers to the editor."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def begin(self) -> None:
        """Find the vault, read the notes that were opened meanwhile, and keep them up to date from now on."""
        if not await self.notes.open():
            self.notes.ready.set()
            return
        for document in list(self.workspace.text_documents.values()):
            self.notes.put(document.uri, document.source, document.version)
        self.notes.ready.set()
        while True:
            try:
                if await self.notes.has_changed():
                    self.examine_soon()
            except Exception as exc:  # noqa: BLE001 - whatever it is, the next look may find it fixed
                _say(f"the vault cannot be looked at: {exc}")
            await asyncio.sleep(_LOOK_SECONDS)

    def examine_soon(self) -> None:
        """Examine the open notes when nothing has been typed for a moment."""
        if self._waiting:
            self._waiting.cancel()
        self._waiting = self.start(self._examine())

    async def _examine(self) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        for page in list(self.notes.pages.values()):
            try:
                remarks = await self.notes.ask(lambda kb, page=page: kb.examine(page.path, page.text))  # type: ignore[misc]
            except MemoryKBError as exc:
                _say(str(exc))
                return
            if self.notes.pages.get(page.uri) is page:
                self.publish(page.uri, [to_diagnostic(page, one) for one in remarks], page.version)

    def publish(self, uri: str, shown: Sequence[lsp.Diagnostic], version: int | None = None) -> None:
        said = lsp.PublishDiagnosticsParams(uri=uri, diagnostics=list(shown), version=version)
        self.text_document_publish_diagnostics(said)

    async def page(self, document: lsp.TextDocumentIdentifier) -> Page | None:
        """Return an open note, once the vault is found."""
        await self.notes.ready.wait()
        return self.notes.pages.get(document.uri)

    async def place(self, asked: _PlaceParams) -> tuple[Page, int] | None:
        page = await self.page(asked.text_document)
        return (page, page.ruler.offset(asked.position)) if page else None

    async def subject(self, asked: _PlaceParams) -> tuple[Page, Subject] | None:
        found = await self.place(asked)
        if found is None:
            return None
        named = await self.notes.follow(found[0], list(filter(None, [find_named(*found)])))
        subject = find_subject(*found, next(iter(named.values()), None), self.notes.read)
        return (found[0], subject) if subject else None

    @property
    def can_operate(self) -> bool:
        """Whether the editor can make and delete files as part of an edit."""
        workspace = self.client_capabilities.workspace
        edit = workspace.workspace_edit if workspace else None
        return bool(edit and edit.document_changes and set(edit.resource_operations or ()) >= _OPERATIONS)

    async def renamed(self, asked: _PlaceParams) -> tuple[Page, Subject] | None:
        """Return the note that is asked about and what can be renamed there."""
        named = await self.subject(asked)
        return named if named and named[1].way not in ("", "block") else None

    async def propose(self, work: Callable[[KnowledgeBase], Composition]) -> lsp.WorkspaceEdit | None:
        """Return a proposal as an edit, or show the person why there is none."""
        try:
            made = await self.notes.ask(work)
        except MemoryKBError as exc:
            self.show_error(str(exc))
            return None
        if made.conflicts:
            self.show_error(made.conflicts[0].message)
            return None
        edit = make_workspace_edit(made, self.notes.place_of, self.notes.encoding, has_operations=self.can_operate)
        if edit is None:
            self.show_error("this editor cannot make or delete files as part of an edit; use the command line")
        return edit

    def show_error(self, message: str) -> None:
        self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"memory-kb: {message}"))


server = NoteServer()


@server.feature(lsp.INITIALIZED)
def _initialized(ls: NoteServer, _: lsp.InitializedParams) -> None:
    encoding = ls.workspace.position_encoding
    ls.notes.encoding = str(getattr(encoding, "value", encoding) or "utf-16")
    root = to_fs_path(ls.workspace.root_uri or "")
    if root and ls.notes.named.vault is None and os.path.isdir(root):
        os.chdir(root)  # as if the command were called in the folder that the editor has open
    ls.start(ls.begin())


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def _did_open(ls: NoteServer, params: lsp.DidOpenTextDocumentParams) -> None:
    document = params.text_document
    if ls.notes.put(document.uri, document.text, document.version):
        ls.examine_soon()


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
def _did_change(ls: NoteServer, params: lsp.DidChangeTextDocumentParams) -> None:
    uri, version = params.text_document.uri, params.text_document.version
    if uri in ls.notes.pages and ls.notes.put(uri, ls.workspace.get_text_document(uri).source, version):
        ls.examine_soon()


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def _did_close(ls: NoteServer, params: lsp.DidCloseTextDocumentParams) -> None:
    if ls.notes.pages.pop(params.text_document.uri, None):
        ls.publish(params.text_document.uri, [])


@server.feature(
    lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["[", "(", "!", "/", "#", ":", " ", ","])
)
async def _completion(ls: NoteServer, params: lsp.CompletionParams) -> lsp.CompletionList | None:
    found = await ls.place(params)
    if found is None or ls.notes.vault is None:
        return None
    page, spot = found[0], find_spot(found[0].text, found[1])
    typed = params.context.trigger_character if params.context else None
    if typed in (":", " ", ",") and spot.kind not in ("name", "value"):
        return None
    return complete_at(page, spot, await _learn_about(ls.notes, page, spot), ls.notes.vault.today())


async def _learn_about(notes: Workspace, page: Page, spot: Spot) -> Known:
    """Return what the vault has for a place where something is written."""
    if spot.asks in ("names", "tags"):
        word = spot.word.rpartition("/")[2].removesuffix(".md") if spot.kind == "path" else spot.word
        return Known(await notes.look_up(lambda kb: kb.suggest(word, MOST, of_tags=spot.asks == "tags")) or ())
    if spot.asks == "text" and spot.target:
        entry = (await notes.follow(page, [spot.target])).get(spot.target)
        return Known(text=notes.read(entry.path) if entry else "")
    return Known(text=page.text)


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
async def _hover(ls: NoteServer, params: lsp.HoverParams) -> lsp.Hover | None:
    found, named = await ls.place(params), await ls.subject(params)
    if found is None or named is None:
        return None
    (page, offset), subject = found, named[1]
    is_in_block = any(block.start - 4 <= offset <= block.end for block in find_yaml(page.text))
    if subject.is_own and subject.way in ("", "section") and not is_in_block:
        return None
    link = page.link_at(offset)
    if link and subject.section:
        text = ls.notes.read(subject.path)
        section = sections_by_heading(text).get(subject.section, subject.section)
        return _make_hover(page, text[section.start : section.end].strip()[:_MOST_SECTION], link.whole)
    notes, drafts = ls.notes, ls.notes.drafts()
    try:
        use = await notes.ask(lambda kb: kb.entry_use(subject.path, subject.entry_id, drafts))
    except MemoryKBError:  # it is gone
        return None
    return _make_hover(page, describe_state(use, with_text=not subject.is_own), subject.span)


def _make_hover(page: Page, markdown: str, span: Span) -> lsp.Hover:
    markup = lsp.MarkupContent(lsp.MarkupKind.Markdown, markdown)
    return lsp.Hover(markup, page.ruler.range(span) if span.start < span.end else None)


@server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
async def _definition(ls: NoteServer, params: lsp.DefinitionParams) -> lsp.Location | None:
    named = await ls.subject(params)
    return ls.notes.locate(named[1]) if named else None


@server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
async def _references(ls: NoteServer, params: lsp.ReferenceParams) -> list[lsp.Location] | None:
    named = await ls.subject(params)
    if named is None:
        return None
    return await ls.notes.list_mentions(named[1], with_own=params.context.include_declaration)


@server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
async def _document_symbols(ls: NoteServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol] | None:
    page = await ls.page(params.text_document)
    return list_symbols(page) if page else None


@server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
async def _foldings(ls: NoteServer, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange] | None:
    page = await ls.page(params.text_document)
    return list_foldings(page) if page else None


@server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_LINK)
async def _document_links(ls: NoteServer, params: lsp.DocumentLinkParams) -> list[lsp.DocumentLink] | None:
    page = await ls.page(params.text_document)
    return await ls.notes.list_links(page) if page and ls.notes.vault else None


@server.feature(lsp.WORKSPACE_SYMBOL)
async def _workspace_symbols(ls: NoteServer, params: lsp.WorkspaceSymbolParams) -> list[lsp.SymbolInformation]:
    await ls.notes.ready.wait()
    return await ls.notes.find_symbols(params.query) if ls.notes.vault else []


@server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
async def _prepare_rename(ls: NoteServer, params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
    named = await ls.renamed(params)
    if named is None:
        return None
    page, subject = named
    return lsp.PrepareRenamePlaceholder(page.ruler.range(subject.span), ls.notes.name_of(page, subject))


@server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
async def _rename(ls: NoteServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    named = await ls.renamed(params)
    if named is None:
        return None
    drafts, subject = ls.notes.drafts(), named[1]
    line = ls.notes.read(subject.path).count("\n", 0, subject.section.start) if subject.section else 0
    entry = RenamedEntry(subject.path, subject.entry_id, subject.way, line)
    return await ls.propose(lambda kb: kb.propose_renaming(entry, params.new_name, drafts))


@server.feature(lsp.WORKSPACE_WILL_RENAME_FILES, _FILES)
async def _will_rename_files(ls: NoteServer, params: lsp.RenameFilesParams) -> lsp.WorkspaceEdit | None:
    await ls.notes.ready.wait()
    moves = ls.notes.find_moves((one.old_uri, one.new_uri) for one in params.files)
    drafts = ls.notes.drafts()
    # The editor moves the files itself.
    return await ls.propose(lambda kb: kb.propose_moving(moves, drafts)._replace(moves=())) if moves else None


_ACTIONS = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.Refactor]


@server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(_ACTIONS, resolve_provider=True))
async def _code_actions(ls: NoteServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
    page, notes, said = await ls.page(params.text_document), ls.notes, params.context.diagnostics
    if page is None or notes.vault is None:
        return None
    place = place_of_path(page.path, is_memory=notes.vault.memory is not None)
    offered = list(offer_actions(page, page.ruler.offset(params.range.start), place, said))
    if ls.can_operate:
        missing = [one for one in said if one.source == SOURCE and one.code == "link"]
        places = [(params.range, None), *((one.range, one) for one in missing)]
        paths = {await notes.path_of_missing(page, page.ruler.offset(place.start)): about for place, about in places}
        offered += [offer_new_note(path, notes.place_of(path), about) for path, about in paths.items() if path]
    return offered


@server.feature(lsp.CODE_ACTION_RESOLVE)
async def _resolve(ls: NoteServer, action: lsp.CodeAction) -> lsp.CodeAction:
    """Work out what a chosen action changes."""
    if action.edit is None:
        verb, path, entry, other = (read_data(action, name) for name in ("action", "path", "id", "other"))
        drafts = ls.notes.drafts()
        action.edit = await ls.propose(lambda kb: kb.propose(verb, path, entry, drafts, other))
    return action


def serve_lsp(vault: str | None, home: str | None) -> int:
    """Serve one editor until it ends; return the exit code."""
    server.notes = Workspace(vault, home, _say)
    # What cannot be read is reported in a sentence, without a traceback.
    logging.getLogger("pygls.server").addFilter(lambda record: not record.exc_info)
    # The server closes its output when it ends, and nothing else may ever write to it.
    stdout = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        server.start_io(stdout=stdout)
    finally:
        server.notes.close()
    return 0
