"""What plans make of files, as edits that an editor shows, applies and takes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from lsprotocol.types import (
    CreateFile,
    CreateFileOptions,
    DeleteFile,
    OptionalVersionedTextDocumentIdentifier,
    Position,
    Range,
    TextDocumentEdit,
    TextEdit,
    WorkspaceEdit,
)

from memory_kb.entry import Span
from memory_kb.lsp.positions import Ruler
from memory_kb.notes.composing import Composition, FileOutcome
from memory_kb.notes.plans import decode

#: Longer files are compared at their two ends alone.
_MANY_LINES = 5_000


class Place(NamedTuple):
    """How an editor knows a file: its address, and its version where it is open."""

    uri: str
    version: int | None = None


PlaceOf = Callable[[str], Place]


def make_workspace_edit(
    made: Composition, place_of: PlaceOf, encoding: str, *, has_operations: bool
) -> WorkspaceEdit | None:
    """Return a composition as an edit; None where the editor cannot make or delete files and it needs that."""
    changes: list[TextDocumentEdit | CreateFile | DeleteFile] = []
    for file in made.files:
        place = place_of(file.path)
        if file.before is not None and file.after is not None:
            changes.append(_edit(place, text_edits(_text(file.before), _text(file.after), encoding)))
        elif not has_operations:
            return None
        else:
            changes += _operations(file, place)
    # What is made comes before what is deleted, so that nothing is ever nowhere.
    changes.sort(key=lambda one: isinstance(one, DeleteFile))
    return WorkspaceEdit(document_changes=changes)


def _operations(file: FileOutcome, place: Place) -> Iterator[TextDocumentEdit | CreateFile | DeleteFile]:
    if file.after is None:
        yield DeleteFile(uri=place.uri)
    else:
        yield CreateFile(uri=place.uri, options=CreateFileOptions(overwrite=False, ignore_if_exists=False))
        start = Position(0, 0)
        yield _edit(Place(place.uri), [TextEdit(Range(start, start), _text(file.after))])


def _edit(place: Place, edits: Sequence[TextEdit]) -> TextDocumentEdit:
    return TextDocumentEdit(OptionalVersionedTextDocumentIdentifier(uri=place.uri, version=place.version), list(edits))


def _text(data: bytes) -> str:
    """Return a file's text as editors have it: without the mark some begin with."""
    return decode(data).removeprefix("\ufeff").encode("utf-8", "replace").decode()


def text_edits(before: str, after: str, encoding: str = "utf-16") -> list[TextEdit]:
    """Return the edits that turn a text into another, line by line, each as small as its line allows.

    Example:
        >>> [(edit.range, edit.new_text) for edit in text_edits("a\\nid: x\\nb\\n", "a\\nid: yz\\nb\\nc\\n")]
        [(1:4-1:5, 'yz'), (3:0-3:0, 'c\\n')]
    """
    ruler = Ruler(before, encoding)
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    return [
        TextEdit(ruler.range(Span(starts[i] + head, starts[j] - tail)), text[head : len(text) - tail])
        for i, j, text in _differences(old, new)
        for head, tail in [_shared(before[starts[i] : starts[j]], text)]
    ]


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the lines that are replaced, and by what."""
    if max(len(old), len(new)) <= _MANY_LINES:
        for word, i, j, m, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if word != "equal":
                yield i, j, "".join(new[m:n])
        return
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head < len(old) - tail or head < len(new) - tail:
        yield head, len(old) - tail, "".join(new[head : len(new) - tail])


def _shared(old: str, new: str) -> tuple[int, int]:
    """Return how many characters two texts share at their beginning and, beyond that, at their end."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while head and (old[:head].endswith("\r") or "\ud800" <= old[head - 1] <= "\udfff"):
        head -= 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    while tail and old[len(old) - tail :].startswith("\n") and old[: len(old) - tail].endswith("\r"):
        tail -= 1
    return head, tail
