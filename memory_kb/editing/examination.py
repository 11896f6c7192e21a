"""Look at notes as they are in an editor, saved or not."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from memory_kb.errors import MemoryKBError
from memory_kb.index.catalog import Catalog, FoundHeading, find_headings, make_catalog, make_part, read_unsaved
from memory_kb.index.doctor import is_file
from memory_kb.index.link_names import KeptTargets, find_rival, find_targets, say_rival
from memory_kb.index.remarks import Ground, Remark, remark
from memory_kb.learning.citations import assess, complain
from memory_kb.learning.duplicates import FORGOTTEN, find_duplicate
from memory_kb.learning.render_entry import Draft
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.scanner import find_anchor, say_missing
from memory_kb.store.attachments import Attachments
from memory_kb.store.files import NoteText
from memory_kb.store.project_files import project_files
from memory_kb.text import encode
from memory_kb.vault import Vault, default_status, locate

if TYPE_CHECKING:
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.model import Memory, StoredEntry
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
        """Return headings of the saved notes that hold all of some words, the shortest first; titles of entries are none."""
        return self._index.read(lambda index: find_headings(index, words, limit))

    def examine(self, path: str, text: str) -> tuple[Remark, ...]:
        """Return what is to be fixed in a note that may not be saved yet, each at its place.

        The rules are those of `lint`, and that nothing is said twice. Other notes count as they are saved.
        """
        is_memory = self._vault.memory is not None
        memories = read_unsaved(path, text, is_memory=is_memory)
        document = parse_document(text, path, default_status(path, is_memory=is_memory))
        wanted = {(path, target) for one in memories for target in find_targets(one.text)}
        wanted |= {(path, link.to) for one in memories for link in one.links}
        ids = {memory.id for memory in memories}
        # All entries of a large vault would fill the memory of the page.
        part = self._index.read(lambda index: make_part(index, wanted, ids))
        ground = self._remark_ground(path, memories, part, {path: text})
        return tuple(remark(text, document, memories, ground))

    def _remark_ground(self, path: str, memories: Sequence[Memory], catalog: Catalog, drafts: Drafts) -> Ground:
        own = {name.casefold() for memory in memories for name in (memory.id, memory.title)}
        attachments = Attachments(self._vault)

        def unclear(target: str) -> str | None:
            found = catalog.resolve(target, path)
            rival = find_rival(catalog.stems, target, path, found) if found else None
            return say_rival(target, found, rival) if found and rival else None

        def lacks(target: str, anchor: str, kind: str) -> str | None:
            found = catalog.resolve(target, path)
            text = self._text_or_none(found.path, drafts) if found else None
            return say_missing(target, anchor, kind) if text is not None and find_anchor(text, anchor) is None else None

        def lacks_file(name: str) -> bool:
            is_there = any(is_file(self._vault, source, name) for source in (path, ""))
            return not is_there and not attachments.named(posixpath.basename(name))

        return Ground(
            lacks=lacks,
            lacks_file=lacks_file,
            unclear=unclear,
            is_file=lambda target: is_file(self._vault, path, target),
            leads=lambda name: name.strip().casefold() in own or catalog.resolve(name, path) is not None,
            others=lambda memory: self._find_others(memory, memories, catalog),
            twin=self._find_twin,
            claims=self._find_claims,
            rule_tokens=self._vault.settings.context.rule_tokens,
            checks_wikilinks=self._vault.memory is not None,
        )

    def _find_others(self, memory: Memory, memories: Sequence[Memory], catalog: Catalog) -> list[str]:
        """Return where other entries of the same scope have an entry's id: in other files, else in its own."""
        found = [one for one in catalog.ids.get(memory.id, ()) if one.path != memory.path]
        is_memory = self._vault.memory is not None
        places = [
            f"{one.path}:{one.line}" for one in found if locate(one.path, is_memory=is_memory)[:3] == memory.place[:3]
        ]
        is_twice = sum((one.id, one.place) == (memory.id, memory.place) for one in memories) > 1
        return places or ([f"{memory.path}:{memory.line}"] if is_twice else [])

    def _find_twin(self, memory: Memory) -> tuple[StoredEntry, bool] | None:
        draft = Draft(memory.text, memory.kind)
        found = self._index.read(lambda index: find_duplicate(index, draft, memory.place, memory.id))
        return (found, found.status in FORGOTTEN) if found else None

    def _find_claims(self, memory: Memory) -> list[str]:
        if memory.metadata.keys().isdisjoint(("cites", "valid_until")):
            return []
        return list(complain(memory, assess(memory, project_files(self._vault, 5.0), self._vault.today())))

    def draft_note(self, path: str, drafts: Drafts) -> NoteText:
        return NoteText(path, encode(drafts[path])) if path in drafts else self._writer.read(path)

    def _text_or_none(self, path: str, drafts: Drafts) -> str | None:
        try:
            return self.draft_note(path, drafts).text
        except (MemoryKBError, OSError):
            return None
