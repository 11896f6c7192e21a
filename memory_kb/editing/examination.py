"""Look at notes as they are in an editor, saved or not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from memory_kb.editing.draft_check import DraftCheck
from memory_kb.index.editor_catalog import Catalog, FoundHeading, find_headings, make_catalog
from memory_kb.index.link_names import KeptTargets
from memory_kb.index.note_findings import Remark
from memory_kb.store.files import NoteText
from memory_kb.text import encode
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.store.writer import Writer


#: Texts that are in an editor and perhaps nowhere else, by their paths in output.
Drafts = Mapping[str, str]


class Examination:
    """Looking at notes as they are in an editor, saved or not."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer

    _catalog: Catalog | None = None

    @cached_property
    def _targets(self) -> KeptTargets:
        return KeptTargets()

    def catalog(self) -> Catalog:
        """Return all entries with their names and links, as they are now in the files."""

        def read(index: SqliteIndex) -> Catalog:
            if self._catalog is None or self._catalog.generation != index.generation:
                self._catalog = make_catalog(index, self._targets)
            return self._catalog

        return self._index.read(read)

    def find_headings(self, words: str, limit: int) -> tuple[FoundHeading, ...]:
        """Return headings of saved notes that hold all of some words, the shortest first, without titles of entries."""
        return self._index.read(lambda index: find_headings(index, words, limit))

    def examine(self, path: str, text: str) -> tuple[Remark, ...]:
        """Return what is to be fixed in a note that may not be saved yet, each at its place.

        The rules are those of `lint`, and that nothing is said twice. Other notes count as they are saved.
        """
        return tuple(DraftCheck(self._vault, self._index, self._writer, path, text).find_remarks())

    def draft_note(self, path: str, drafts: Drafts) -> NoteText:
        """Return a note as it is in an editor; as it is saved where no editor has it."""
        return NoteText(path, encode(drafts[path])) if path in drafts else self._writer.read(path)
