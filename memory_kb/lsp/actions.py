"""Build hovers, diagnostics, code actions and edits for an editor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from lsprotocol import types as lsp

from memory_kb.editing.editor_actions import EntryUse
from memory_kb.editing.examination import Remark
from memory_kb.lsp.open_notes import Page, Ruler
from memory_kb.model import LIVE_STATUSES, Entry, Location, Span
from memory_kb.store.file_edits import FileEdit
from memory_kb.store.render_changes import Composition
from memory_kb.text import decode, note_name, read_words, short_id, shorten

SOURCE = "memory-kb"
_WEIGHTS = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "hint": lsp.DiagnosticSeverity.Information,
}
_UP = {"task": "its job", "job": "the project", "project": "the home"}


def to_diagnostic(page: Page, remark: Remark) -> lsp.Diagnostic:
    """Return a remark as an editor shows it."""
    return lsp.Diagnostic(
        range=page.ruler.range(remark.span),
        message=remark.message,
        severity=_WEIGHTS[remark.weight],
        code=remark.code,
        source=SOURCE,
        data={"about": remark.about},
    )


def offer_actions(page: Page, offset: int, place: Location, said: Sequence[lsp.Diagnostic]) -> Iterator[lsp.CodeAction]:
    """Yield what can be done at a place; what it changes is worked out when one is chosen."""
    entry = page.entry_at(offset)
    mine = [one for one in said if one.source == SOURCE]
    if entry is None or entry.metadata.keys().isdisjoint(("id", "kind", "type")):
        return
    for one in mine:
        if one.code == "twin" and entry.status in LIVE_STATUSES and (other := read_data(one, "about")):
            yield _action(f"Merge with {short_id(other)}", page, entry, "merge", one)
    if entry.status == "proposed" or (entry.status in LIVE_STATUSES and read_words(entry.metadata.get("flags"))):
        yield _action("Approve this entry", page, entry, "approve")
    if entry.status in LIVE_STATUSES:
        if place.scope in _UP:
            yield _action(f"Promote this entry to {_UP[place.scope]}", page, entry, "promote")
        yield _action("Retire this entry", page, entry, "retire")


def _action(title: str, page: Page, entry: Entry, action: str, about: lsp.Diagnostic | None = None) -> lsp.CodeAction:
    kind, other = (
        (lsp.CodeActionKind.QuickFix, read_data(about, "about")) if about else (lsp.CodeActionKind.Refactor, "")
    )
    data: Mapping[str, Any] = {"action": action, "path": page.path, "id": entry.id, "other": other}
    return lsp.CodeAction(title=title, kind=kind, data=data, diagnostics=[about] if about else None)


def offer_new_note(path: str, place: EditorFile, said: lsp.Diagnostic | None) -> lsp.CodeAction:
    """Return the action that makes a missing note, with its name as its heading; the editor writes the file."""
    made = FileEdit(path, None, f"# {note_name(path)}\n".encode())
    return lsp.CodeAction(
        title=f"Create this note: {path}",
        kind=lsp.CodeActionKind.QuickFix,
        edit=lsp.WorkspaceEdit(document_changes=list(_changes(made, place))),
        diagnostics=[said] if said else None,
        is_preferred=True,
    )


def read_data(held: lsp.Diagnostic | lsp.CodeAction, name: str) -> str:
    """Return what we put into the data of a message, as it comes back from an editor."""
    data: Any = held.data
    value = data.get(name) if isinstance(data, dict) else getattr(data, name, None)
    return value if isinstance(value, str) else ""


#: In longer files lines that occur often are not compared.
_MANY_LINES = 5_000


_Change = lsp.TextDocumentEdit | lsp.CreateFile | lsp.RenameFile | lsp.DeleteFile
#: How an editor knows a file: its address, and its version where it is open.
EditorFile = lsp.OptionalVersionedTextDocumentIdentifier


def make_workspace_edit(
    made: Composition, place_of: Callable[[str], EditorFile], encoding: str, *, has_operations: bool
) -> lsp.WorkspaceEdit | None:
    """Return a composition as an edit; None where the editor cannot make or delete files and it needs that."""
    changes = [change for file in made.files for change in _changes(file, place_of(file.path), encoding)]
    changes += [lsp.RenameFile(old_uri=place_of(old).uri, new_uri=place_of(new).uri) for old, new in made.moves]
    if not has_operations and not all(isinstance(one, lsp.TextDocumentEdit) for one in changes):
        return None
    # What is made comes before what is deleted, so that nothing is ever nowhere.
    return lsp.WorkspaceEdit(document_changes=sorted(changes, key=lambda one: isinstance(one, lsp.DeleteFile)))


def _changes(file: FileEdit, place: EditorFile, encoding: str = "utf-16") -> Iterator[_Change]:
    if file.after is None:
        yield lsp.DeleteFile(uri=place.uri)
        return
    if file.before is None:
        yield lsp.CreateFile(uri=place.uri, options=lsp.CreateFileOptions(overwrite=False, ignore_if_exists=False))
        place = EditorFile(place.uri)
    yield lsp.TextDocumentEdit(place, [*text_edits(_text(file.before or b""), _text(file.after), encoding)])


def _text(data: bytes) -> str:
    """Return a file's text as editors have it: without a byte order mark."""
    return decode(data).removeprefix("\ufeff").encode("utf-8", "replace").decode()


def text_edits(before: str, after: str, encoding: str = "utf-16") -> list[lsp.TextEdit]:
    """Return the edits that turn a text into another, line by line.

    Example:
        >>> [(edit.range, edit.new_text) for edit in text_edits("a\\nid: x\\nb\\n", "a\\nid: yz\\nb\\nc\\n")]
        [(1:0-2:0, 'id: yz\\n'), (3:0-3:0, 'c\\n')]
    """
    ruler, old, new = Ruler(before, encoding), before.splitlines(keepends=True), after.splitlines(keepends=True)
    parts = SequenceMatcher(None, old, new, autojunk=max(len(old), len(new)) > _MANY_LINES).get_opcodes()
    starts = [0, *itertools.accumulate(map(len, old))]
    return [
        lsp.TextEdit(ruler.range(Span(starts[i], starts[j])), "".join(new[m:n]))
        for word, i, j, m, n in parts
        if word != "equal"
    ]


_MOST_TEXT = 400
_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>"})


def describe_state(use: EntryUse, *, with_text: bool) -> str:
    """Return the state of an entry, as Markdown."""
    memory, count, shown = use.memory, use.memory.reinforcement_count, "never shown yet"
    if use.shown:
        marks = ", ".join(f"{count} {word}" for word, count in use.outcomes)
        last = f", last on {use.last_shown[:10]}" if use.last_shown else ""
        shown = f"shown {use.shown}×{last}; outcomes: {marks or 'none yet'}"
    times = f"{1 + count} (reinforced {count}×); scope × {use.scope_weight:g}"
    age = "undated" if use.age_days is None else f"{use.age_days:.0f} days old"
    lines = [
        f"**{memory.title.translate(_SIGNS)}**",
        f"{memory.kind} · {memory.place.scope} · {memory.status} · `{memory.id}`",
        f"prominence {use.prominence:.4g} = importance {memory.importance:g} × decay {use.decay:.4g} ({age}) × {times}",
        shown,
        f"links: {use.links[0]} out, {use.links[1]} in",
    ]
    if use.claims:
        lines.append(f"claims: {use.claims if use.claims in ('fresh', 'moved') else f'**{use.claims}**'}")
    lines += [f"tags: {', '.join(memory.tags).translate(_SIGNS)}"] if memory.tags else []
    text = shorten(memory.text, _MOST_TEXT).translate(_SIGNS) if with_text else ""
    return "  \n".join(lines) + (f"\n\n---\n\n{text}" if text else "")
