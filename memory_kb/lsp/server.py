"""The language server: route the requests of an editor, and send the answers."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from memory_kb import __version__
from memory_kb.editing.drafting import RenamedEntry
from memory_kb.errors import MemoryKBError
from memory_kb.index.lint import Remark
from memory_kb.kb import KnowledgeBase
from memory_kb.lsp.actions import (
    SOURCE,
    describe_state,
    make_workspace_edit,
    offer_actions,
    offer_new_note,
    to_diagnostic,
)
from memory_kb.lsp.completion import complete
from memory_kb.lsp.places import (
    Page,
    Subject,
    find_subject,
    list_foldings,
    list_symbols,
)
from memory_kb.lsp.spots import blocks, find_spot
from memory_kb.lsp.workspace import Workspace
from memory_kb.markdown.scanner import find_section
from memory_kb.store.render_changes import Composition
from memory_kb.vault import locate

#: Seconds of quiet after which a note is examined, and between two looks at the vault.
_PAUSE_SECONDS, _LOOK_SECONDS = 0.25, 1.5
#: Seconds after which a person sees that the first read takes long.
_SLOW_SECONDS = 2.0
#: So much of a section is shown.
_MOST_SECTION = 4_000
_OPERATIONS = {
    lsp.ResourceOperationKind.Create,
    lsp.ResourceOperationKind.Rename,
    lsp.ResourceOperationKind.Delete,
}
#: What an editor asks about before it renames files.
_FILES = lsp.FileOperationRegistrationOptions(
    [
        lsp.FileOperationFilter(lsp.FileOperationPattern("**/*", lsp.FileOperationPatternKind.File), "file"),
        lsp.FileOperationFilter(lsp.FileOperationPattern("**", lsp.FileOperationPatternKind.Folder), "file"),
    ]
)


class _Asked(Protocol):
    """A question about a place in a note."""

    text_document: lsp.TextDocumentIdentifier
    position: lsp.Position


class NoteServer(LanguageServer):
    """A language server with the open notes of an editor."""

    def __init__(self, vault: str | None, home: str | None) -> None:
        super().__init__("memory-kb", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.notes = Workspace(vault, home, _say)
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
        """Do something beside the answers."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def begin(self) -> None:
        """Find the vault, take in what was opened meanwhile, and keep the notes current from now on."""
        if not await self.notes.open():
            self.notes.ready.set()
            return
        for document in list(self.workspace.text_documents.values()):
            self.notes.put(document.uri, document.source, document.version)
        self.start(self._notify_when_slow())
        while True:
            try:
                if await self.notes.renew():
                    self.examine_soon()
            except Exception as exc:  # noqa: BLE001 - whatever it is, the next look may find it fixed
                _say(f"the vault cannot be looked at: {exc}")
            # Whatever became of the first look: nobody is kept waiting for the second.
            self.notes.ready.set()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _notify_when_slow(self) -> None:
        """Show a person that the first look at the vault takes its time."""
        await asyncio.sleep(_SLOW_SECONDS)
        if not self.notes.ready.is_set():
            said = "memory-kb reads the notes for the first time; answers come when that is done"
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, said))

    def examine_soon(self) -> None:
        """Examine the open notes when nothing has been typed for a moment."""
        if self._waiting:
            self._waiting.cancel()
        self._waiting = self.start(self._examine())

    async def _examine(self) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        for page in list(self.notes.pages.values()):
            try:
                remarks = await self.notes.ask(partial(_look, page=page))
            except MemoryKBError as exc:
                _say(str(exc))
                return
            if self.notes.pages.get(page.uri) is page:
                self._publish(page.uri, [to_diagnostic(page, one) for one in remarks], page.version)

    def _publish(self, uri: str, shown: Sequence[lsp.Diagnostic], version: int | None = None) -> None:
        said = lsp.PublishDiagnosticsParams(uri=uri, diagnostics=list(shown), version=version)
        self.text_document_publish_diagnostics(said)

    def forget(self, uri: str) -> None:
        """Undo what was said of a note that is closed."""
        if self.notes.pages.pop(uri, None):
            self._publish(uri, [])

    async def page(self, document: lsp.TextDocumentIdentifier) -> Page | None:
        """Return an open note, once the vault was looked through."""
        await self.notes.ready.wait()
        return self.notes.pages.get(document.uri)

    async def place(self, asked: _Asked) -> tuple[Page, int] | None:
        """Return the note and the character that are asked about."""
        page = await self.page(asked.text_document)
        return (page, page.ruler.offset(asked.position)) if page else None

    async def subject(self, asked: _Asked) -> tuple[Page, Subject] | None:
        """Return the note and the entry that are asked about."""
        found = await self.place(asked)
        subject = find_subject(*found, self.notes.catalog, self.notes.read) if found else None
        return (found[0], subject) if found and subject else None

    @property
    def can_operate(self) -> bool:
        """Whether the editor can make and delete files as part of an edit."""
        workspace = self.client_capabilities.workspace
        edit = workspace.workspace_edit if workspace else None
        return bool(edit and edit.document_changes and set(edit.resource_operations or ()) >= _OPERATIONS)

    @property
    def can_resolve(self) -> bool:
        """Whether the editor asks for the edit of an action when it is chosen."""
        document = self.client_capabilities.text_document
        action = document.code_action if document else None
        return bool(action and action.resolve_support and "edit" in action.resolve_support.properties)

    async def renamed(self, asked: _Asked) -> tuple[Page, Subject] | None:
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
        """Show a person a sentence."""
        self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"memory-kb: {message}"))

    async def resolve(self, action: lsp.CodeAction) -> lsp.CodeAction:
        """Work out what a chosen action changes."""
        data: Any = action.data
        names = ("action", "path", "id", "other")
        verb, path, entry, other = (data[name] if isinstance(data, dict) else getattr(data, name, "") for name in names)
        drafts = self.notes.drafts()
        action.edit = await self.propose(lambda kb: kb.propose(verb, path, entry, drafts, other))
        return action


def _look(kb: KnowledgeBase, page: Page) -> Sequence[Remark]:
    return kb.examine(page.path, page.text)


def _say(message: str) -> None:
    sys.stderr.write(f"memory-kb lsp: {message}\n")
    sys.stderr.flush()


def make_server(vault: str | None, home: str | None) -> NoteServer:
    """Return a server with everything that it answers."""
    server = NoteServer(vault, home)
    notes = server.notes
    _keep_notes(server)

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["[", "(", "!", "/", "#", ":", " ", ","])
    )
    async def completion(params: lsp.CompletionParams) -> lsp.CompletionList | None:
        found = await server.place(params)
        if found is None or notes.vault is None:
            return None
        typed = params.context.trigger_character if params.context else None
        if typed in (":", " ", ",") and find_spot(found[0].text, found[1]).kind not in ("name", "value"):
            return None
        return complete(*found, notes.catalog, notes.read, notes.vault.today())

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        found, named = await server.place(params), await server.subject(params)
        if found is None:
            return None
        page, offset = found
        is_text = named and named[1].is_own and named[1].way in ("", "section")
        if named is None or (is_text and not _is_in_block(page, offset)):
            return None
        subject, drafts = named[1], notes.drafts()
        link = page.link_at(offset)
        if link and subject.section:
            text = notes.read(subject.path)
            section = find_section(text, subject.section)
            shown = text[section.start : section.end].strip()[:_MOST_SECTION]
            return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, shown), page.ruler.range(link.whole))
        try:
            use = await notes.ask(lambda kb: kb.entry_use(subject.path, subject.entry_id, drafts))
        except MemoryKBError:
            return None
        entry = notes.catalog.entry(subject.path, subject.entry_id)
        links = (0, 0)
        if entry:
            outgoing = notes.catalog.links.get((entry.source, entry.line), ())
            links = (len(outgoing), len(notes.catalog.incoming(entry)))
        markup = lsp.MarkupContent(lsp.MarkupKind.Markdown, describe_state(use, links, with_text=not subject.is_own))
        return lsp.Hover(markup, page.ruler.range(subject.span) if subject.span.start < subject.span.end else None)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        named = await server.subject(params)
        return notes.locate(named[1]) if named else None

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def references(params: lsp.ReferenceParams) -> list[lsp.Location] | None:
        named = await server.subject(params)
        if named is None:
            return None
        return await asyncio.to_thread(notes.list_mentions, named[1], with_own=params.context.include_declaration)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def document_symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol] | None:
        page = await server.page(params.text_document)
        return list_symbols(page) if page else None

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    async def foldings(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange] | None:
        page = await server.page(params.text_document)
        return list_foldings(page) if page else None

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_LINK)
    async def document_links(params: lsp.DocumentLinkParams) -> list[lsp.DocumentLink] | None:
        page = await server.page(params.text_document)
        return notes.list_links(page) if page and notes.vault else None

    @server.feature(lsp.WORKSPACE_SYMBOL)
    async def workspace_symbols(params: lsp.WorkspaceSymbolParams) -> list[lsp.SymbolInformation]:
        await notes.ready.wait()
        return await notes.find_symbols(params.query) if notes.vault else []

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare_rename(params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
        named = await server.renamed(params)
        if named is None:
            return None
        page, subject = named
        return lsp.PrepareRenamePlaceholder(page.ruler.range(subject.span), notes.name_of(page, subject))

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        named = await server.renamed(params)
        if named is None:
            return None
        page, subject = named
        drafts, old = notes.drafts(), page.text[subject.span.start : subject.span.end]
        line = notes.read(subject.path).count("\n", 0, subject.section.start) if subject.section else 0
        entry = RenamedEntry(subject.path, subject.entry_id, subject.way, old, line)
        return await server.propose(lambda kb: kb.propose_renaming(entry, params.new_name, drafts))

    @server.feature(lsp.WORKSPACE_WILL_RENAME_FILES, _FILES)
    async def will_rename_files(params: lsp.RenameFilesParams) -> lsp.WorkspaceEdit | None:
        await notes.ready.wait()
        moves = notes.find_moves((one.old_uri, one.new_uri) for one in params.files)
        drafts = notes.drafts()
        # The editor moves the files itself.
        return await server.propose(lambda kb: kb.propose_moving(moves, drafts)._replace(moves=())) if moves else None

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(
            code_action_kinds=[lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.Refactor], resolve_provider=True
        ),
    )
    async def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
        page = await server.page(params.text_document)
        if page is None or notes.vault is None:
            return None
        place = locate(page.path, is_memory=notes.vault.memory is not None)
        offered = list(offer_actions(page, page.ruler.offset(params.range.start), place, params.context.diagnostics))
        said = [one for one in params.context.diagnostics if one.source == SOURCE and one.code == "link"]
        places = [(params.range, None), *((one.range, one) for one in said)]
        missing = {notes.path_of_missing(page, page.ruler.offset(place.start)): about for place, about in places}
        if server.can_operate:
            offered += [offer_new_note(path, notes.place_of(path), about) for path, about in missing.items() if path]
        return offered if server.can_resolve else [one if one.edit else await server.resolve(one) for one in offered]

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def resolve(action: lsp.CodeAction) -> lsp.CodeAction:
        return action if action.edit else await server.resolve(action)

    return server


def _keep_notes(server: NoteServer) -> None:
    """Register the notifications of an editor about its notes."""
    notes = server.notes

    @server.feature(lsp.INITIALIZED)
    async def initialized(_: lsp.InitializedParams) -> None:
        notes.encoding = str(
            getattr(server.workspace.position_encoding, "value", server.workspace.position_encoding) or "utf-16"
        )
        _enter(to_fs_path(server.workspace.root_uri or ""), notes)
        server.start(server.begin())

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        if notes.put(document.uri, document.text, document.version):
            server.examine_soon()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in notes.pages and notes.put(
            uri, server.workspace.get_text_document(uri).source, params.text_document.version
        ):
            server.examine_soon()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)


def _enter(root: str | None, notes: Workspace) -> None:
    """Change to the folder that an editor has open, as if the command were called there."""
    if root and notes.address.vault is None and os.path.isdir(root):
        os.chdir(root)


def _is_in_block(page: Page, offset: int) -> bool:
    return any(block.start - 4 <= offset <= block.end for block in blocks(page.text))


def serve(vault: str | None, home: str | None) -> int:
    """Serve one editor until it ends; return the exit code."""
    server = make_server(vault, home)
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
