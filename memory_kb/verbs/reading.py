"""Reading entries as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from memory_kb.errors import UnknownEntry, UnreadableInput
from memory_kb.filters import FilterWords

if TYPE_CHECKING:
    from memory_kb.index.keeper import VaultIndex
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.notes.vault import Vault
    from memory_kb.reports import EntryView, LinkReport, Stats, Status


class Reading:
    """The verbs show, list, links, stats and status."""

    def __init__(self, vault: Vault, index: VaultIndex) -> None:
        self._vault = vault
        self._index = index

    def show(self, wanted: str) -> EntryView:
        """Return an entry with its source text.

        It is named by its id, a unique beginning of one, or `path.md:LINE`.

        Raises:
            UnknownEntry: there is none.
            UnreadableInput: it names a file that is there and was not indexed; it says why.
            AmbiguousId: there are several.
        """
        from memory_kb.index import inventory

        def show(index: SqliteIndex) -> EntryView:
            try:
                return inventory.show(self._vault, index, wanted)
            except UnknownEntry:
                unread = inventory.explain_unread(self._vault, self._vault.settings, index, wanted)
                if unread:
                    raise UnreadableInput(unread) from None
                raise

        return self._index.read(show)

    def list(self, **filters: Unpack[FilterWords]) -> tuple[EntryView, ...]:
        """Return the entries that pass the filters, in path order.

        The filters are those of `search`.
        """
        from memory_kb.index import inventory

        chosen = self._index.filters(**filters)
        return self._index.read(lambda index: inventory.list_entries(index, chosen))

    def links(self, wanted: str) -> LinkReport:
        """Return what an entry links to and what links to it.

        Links are typed relations and `[[wikilinks]]`.
        """
        from memory_kb.index import inventory

        return self._index.read(lambda index: inventory.links(self._vault, index, wanted))

    def stats(self) -> Stats:
        """Return how much the vault holds, by kind, type, status and scope."""
        from memory_kb.index import inventory

        return self._index.read(inventory.stats)

    def status(self, *, check: bool = False) -> Status:
        """Compare disk and index as they are, without changing either; with `check` every file is read."""
        from memory_kb.index import inventory

        return self._index.use(lambda index: inventory.status(self._vault, index, self._vault.settings, check=check))
