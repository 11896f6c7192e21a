"""Index the notes that differ from the index in memory, for callers that cannot wait for an update."""

from __future__ import annotations

import contextlib
import heapq

from memory_kb.index.rows import read_file
from memory_kb.index.schema import MEMORY
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.sync import Difference, Verdict, differences, has_same_bytes, put_note
from memory_kb.model import Region
from memory_kb.settings import Settings
from memory_kb.store.walk import Reach
from memory_kb.vault import Vault

#: So many files are read at most, the newest first.
_MOST_FILES = 300


class Unindexed:
    """The notes in some regions that differ from an index, in an index of their own in memory.

    Attributes:
        index: what the newest of them say.
        outdated: the paths of which the other index says something else, or which are gone.
        is_whole: whether all of them were read, not the newest alone.
    """

    def __init__(self, vault: Vault, index: SqliteIndex, settings: Settings) -> None:
        self._vault, self._settings, self._other = vault, settings, index
        self.index = SqliteIndex(MEMORY, settings.index.tokenizer)
        self.outdated: set[str] = set()
        self.is_whole = True

    def close(self) -> None:
        """Give the memory back."""
        self.index.close()

    def read(self, regions: tuple[Region, ...] | None) -> bool:
        """Read what differs in some regions, None for everywhere; return whether anything does."""
        reach = Reach(regions)
        found = [one for one in differences(self._vault, self._other, self._settings, [], reach) if self._differs(one)]
        self.outdated.update(one.path for one in found)
        files = [one.file for one in found if one.file]
        self.is_whole = self.is_whole and len(files) <= _MOST_FILES
        with self.index.write() as writer:
            for file in heapq.nlargest(_MOST_FILES, files, key=lambda file: file.mtime_ns):
                with contextlib.suppress(OSError):
                    put_note(writer, self._vault, read_file(file, self._settings.index.max_file_bytes))
        return bool(found)

    def _differs(self, difference: Difference) -> bool:
        verdict, file, known = difference
        if difference.path in self.outdated:
            return False
        return verdict is not Verdict.DOUBTFUL or not has_same_bytes(file, known, self._settings)
