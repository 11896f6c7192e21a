"""What an editor offers to do at a place: to the entry there, and about what is amiss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lsprotocol.types import CodeAction, CodeActionKind, Diagnostic, DiagnosticSeverity, TextEdit, WorkspaceEdit

from memory_kb.entry import Entry
from memory_kb.learning.remarks import Remark, choices_near
from memory_kb.lsp.pages import Page
from memory_kb.model import Location
from memory_kb.notes.fieldlist import FIELDS
from memory_kb.notes.fields import read_words
from memory_kb.text import short_id
from memory_kb.words import LIVE_STATUSES

SOURCE = "memory-kb"
_WEIGHTS = {
    "error": DiagnosticSeverity.Error,
    "warning": DiagnosticSeverity.Warning,
    "hint": DiagnosticSeverity.Information,
}
_CHOICES = {name: field.choices for name, field in FIELDS.items() if field.form == "choice"}
_UP = {"task": "its job", "job": "the project", "project": "the home"}


def to_diagnostic(page: Page, remark: Remark) -> Diagnostic:
    """Return a remark as an editor shows it."""
    return Diagnostic(
        range=page.ruler.range(remark.span),
        message=remark.message,
        severity=_WEIGHTS[remark.weight],
        code=remark.code,
        source=SOURCE,
        data={"about": remark.about},
    )


def offer_actions(page: Page, offset: int, place: Location, said: Sequence[Diagnostic]) -> Iterator[CodeAction]:
    """Yield what can be done at a place; what it changes is worked out when one is chosen.

    Args:
        page: the note.
        offset: the place in its text.
        place: the scope of the note.
        said: what was said of that place.
    """
    entry = page.entry_at(offset)
    mine = [one for one in said if one.source == SOURCE]
    for one in mine:
        yield from _corrections(page, one)
    if entry is None or entry.metadata.keys().isdisjoint(("id", "kind", "type")):
        return
    for one in mine:
        if one.code == "twin" and entry.status in LIVE_STATUSES and _about(one):
            yield _action(
                f"Merge with {short_id(_about(one))}", CodeActionKind.QuickFix, page, entry, "merge", _about(one), one
            )
    if entry.status == "proposed" or (entry.status in LIVE_STATUSES and read_words(entry.metadata.get("flags"))):
        yield _action("Approve this entry", CodeActionKind.Refactor, page, entry, "approve")
    if entry.status in LIVE_STATUSES:
        if place.scope in _UP:
            yield _action(f"Promote this entry to {_UP[place.scope]}", CodeActionKind.Refactor, page, entry, "promote")
        yield _action("Retire this entry", CodeActionKind.Refactor, page, entry, "retire")


def _action(
    title: str,
    kind: CodeActionKind,
    page: Page,
    entry: Entry,
    action: str,
    other: str = "",
    about: Diagnostic | None = None,
) -> CodeAction:
    data: Mapping[str, Any] = {"action": action, "path": page.path, "id": entry.id, "other": other}
    return CodeAction(title=title, kind=kind, data=data, diagnostics=[about] if about else None)


def _corrections(page: Page, said: Diagnostic) -> Iterator[CodeAction]:
    """Yield the words that a field may have had in mind."""
    field = _about(said)
    if said.code != "field" or field not in _CHOICES:
        return
    start, end = page.ruler.offset(said.range.start), page.ruler.offset(said.range.end)
    for number, word in enumerate(choices_near(page.text[start:end], _CHOICES, field)):
        edit = WorkspaceEdit(changes={page.uri: [TextEdit(said.range, word)]})
        yield CodeAction(
            title=f"Change to {word}",
            kind=CodeActionKind.QuickFix,
            edit=edit,
            diagnostics=[said],
            is_preferred=number == 0,
        )


def _about(said: Diagnostic) -> str:
    data: Any = said.data
    about = data.get("about") if isinstance(data, dict) else getattr(data, "about", None)
    return about if isinstance(about, str) else ""
