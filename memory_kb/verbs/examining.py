"""What is amiss in a note that somebody writes, and what its links may lead to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import MemoryKBError
from memory_kb.notes.projectfiles import project_files

if TYPE_CHECKING:
    from memory_kb.index.catalog import Catalog
    from memory_kb.index.keeper import VaultIndex
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.learning.memories import Memory
    from memory_kb.learning.remarks import Ground, Remark
    from memory_kb.notes.plans import NoteText
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.ports import StoredEntry

#: Texts that stand in an editor and perhaps nowhere else, by their paths in output.
Drafts = Mapping[str, str]


class Examination:
    """Looking at notes as they stand in an editor, saved or not."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer

    _catalog: Catalog | None = None

    def catalog(self, drafts: Drafts | None = None) -> Catalog:
        """Return all entries with their names and links, as they are now; drafts take the place of their files."""
        from memory_kb.index.catalog import make_catalog
        from memory_kb.index.unsaved import lay_over, tell_unsaved

        def read(index: SqliteIndex) -> Catalog:
            if self._catalog is None or self._catalog.generation != index.generation:
                self._catalog = make_catalog(index)
            return self._catalog

        saved, is_memory = self._index.read(read), self._vault.memory is not None
        notes = {path: text for path, text in (drafts or {}).items() if self.is_note(path)}
        return lay_over(saved, {path: tell_unsaved(path, text, is_memory=is_memory) for path, text in notes.items()})

    def is_note(self, path: str) -> bool:
        """Tell whether a Markdown file of the vault's folders is a note, going by its path."""
        from memory_kb.notes.walk import would_take

        return would_take(path, self._vault.settings.ignore, is_memory=self._vault.memory is not None)

    def examine(self, path: str, text: str, drafts: Drafts | None = None) -> tuple[Remark, ...]:
        """Return what is to be mended in a note that may not be saved yet, each at its place.

        The rules are those of `lint`, and that nothing is said twice. What links lead to may not
        be saved either.
        """
        from memory_kb.index.unsaved import read_unsaved
        from memory_kb.learning.memories import make_memory
        from memory_kb.learning.remarks import remark
        from memory_kb.notes.entries import parse_document
        from memory_kb.notes.vault import default_status

        is_memory = self._vault.memory is not None
        memories = list(map(make_memory, read_unsaved(path, text, is_memory=is_memory)))
        document = parse_document(text, path, default_status(path, is_memory=is_memory))
        return tuple(remark(text, document, memories, self._remark_ground(path, memories, drafts or {})))

    def _remark_ground(self, path: str, memories: Sequence[Memory], drafts: Drafts) -> Ground:
        from memory_kb.learning.freshness.claims import assess, complain
        from memory_kb.learning.remarks import Ground, Known
        from memory_kb.learning.remember import Draft
        from memory_kb.learning.twins import find_twin

        catalog, today = self.catalog(drafts), self._vault.today()
        own = {memory.id.casefold() for memory in memories} | {memory.title.casefold() for memory in memories}
        ids = Counter((memory.id, memory.place) for memory in memories)

        def others(memory: Memory) -> list[str]:
            there = [
                one
                for one in catalog.ids.get(memory.id, ())
                if one.source != path and self._place_of_entry(one) == memory.place[:3]
            ]
            return [f"{one.source}:{one.line}" for one in there] or [f"{path}:{memory.line}"] * (
                ids[memory.id, memory.place] > 1
            )

        def twin(memory: Memory) -> tuple[Known, bool] | None:
            draft = Draft(memory.text, memory.kind)
            found = self._index.read(lambda index: find_twin(index, draft, memory.place, memory.id))
            if found is None:
                return None
            return Known(
                found.entry.entry_id, found.entry.title, f"{found.entry.source}:{found.entry.line}"
            ), found.is_forgotten

        def claims(memory: Memory) -> list[str]:
            if memory.metadata.keys().isdisjoint(("cites", "valid_until")):
                return []
            return list(complain(memory, assess(memory, project_files(self._vault, 5.0), today)))

        def lacks(target: str, anchor: str) -> str | None:
            from memory_kb.notes.anchors import find_anchor, say_missing

            found = catalog.resolve(target)
            text = self._text_or_none(found.source, drafts) if found and catalog.is_alone(found.source) else None
            return say_missing(target, anchor) if text is not None and find_anchor(text, anchor) is None else None

        return Ground(
            lacks=lacks,
            leads=lambda name: name.strip().casefold() in own or catalog.resolve(name) is not None,
            others=others,
            twin=twin,
            claims=claims,
            rule_tokens=self._vault.settings.context.rule_tokens,
            checks_wikilinks=self._vault.memory is not None,
        )

    def _place_of_entry(self, entry: StoredEntry) -> tuple[str, str | None, str | None]:
        from memory_kb.notes.vault import locate

        return locate(entry.source, is_memory=self._vault.memory is not None)[:3]

    def draft_note(self, path: str, drafts: Drafts) -> NoteText:
        from memory_kb.notes.plans import NoteText, encode

        return NoteText(path, encode(drafts[path])) if path in drafts else self._writer.read(path)

    def _text_or_none(self, path: str, drafts: Drafts) -> str | None:
        try:
            return self.draft_note(path, drafts).text
        except (MemoryKBError, OSError):
            return None
