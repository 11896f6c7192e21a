"""Search the memories that agents keep by themselves, beside the vault and never stored in it.

The few files are read at each search, into an index in memory; none is copied or written.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_kb.errors import UnknownEntry, UnreadableInput
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.model import HOST, Chunk, FileStat, Hit
from memory_kb.search.pipeline import Search, retrieve
from memory_kb.search.query import Request
from memory_kb.stop_words import stop_words
from memory_kb.store.agent_memory_files import KINDS_OF_TYPES, AgentMemoryFile, find_agent_memory_files, without_ours
from memory_kb.terms import word_tokens
from memory_kb.text import hash_of
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.reports import EntryView

_MAX_BYTES = 200_000


class AgentMemory:
    """What agents remember of a project, as it is on the disk now."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._seen: tuple[tuple[str, int, int], ...] = ()
        self._index: SqliteIndex | None = None
        self._files: dict[str, AgentMemoryFile] = {}

    def close(self) -> None:
        """Free the index."""
        if self._index:
            self._index.close()
            self._index = None

    def search(self, request: Request, *, only_ungiven: bool = False) -> tuple[Hit, ...]:
        """Return hits in agents' own memories, best first; `only_ungiven` omits what an agent gives its model."""
        index = self._open() if not request.filters.scopes or HOST in request.filters.scopes else None
        if index is None:
            return ()
        wanted = request._replace(filters=request.filters._replace(scopes=(), job=None, task=None), max_chars=0)
        hits, _ = retrieve(index, Search(wanted, self._vault.settings.ranking, self._vault.today()))
        return tuple(hit._replace(scope=HOST) for hit in hits if not (only_ungiven and self._files[hit.path].is_given))

    def show(self, wanted: str) -> EntryView | None:
        """Return the entry, with its lines, that an id or a unique prefix, `path.md:LINE` or a title names, or None."""
        index = self._open()
        if index is None:
            return None
        from dataclasses import replace

        from memory_kb.index.listing import find_entry_by_name, view

        path, _, line = wanted.rpartition(":")
        try:
            if path in self._files and line.isdecimal():
                inside = index.entries_of([path])
                entry = next((one for one in inside if one.line <= int(line) <= one.end_line), None)
            else:
                entry = find_entry_by_name(self._vault, index, wanted)
            if entry is None:
                return None
            lines = self._files[entry.path].file.read_text(encoding="utf-8", errors="replace").splitlines()
        except (UnknownEntry, UnreadableInput, OSError):
            return None
        return replace(view(entry, "\n".join(lines[entry.line - 1 : entry.end_line])), scope=HOST)

    def _open(self) -> SqliteIndex | None:
        """Return an index of the files that are there, made again where they have changed; None without any file."""
        stats: dict[str, FileStat] = {}
        files = {one.shown: one for one in find_agent_memory_files(self._vault)}
        for shown, one in files.items():
            with contextlib.suppress(OSError):
                stats[shown] = FileStat.of(shown, str(one.file), one.file.stat())
        if not stats:
            return None
        seen = tuple((stat.path, stat.mtime_ns, stat.size) for stat in stats.values())
        if seen != self._seen or self._index is None:
            self._seen, self._files = seen, files
            self._index = self._index or SqliteIndex(self._vault.settings.index.tokenizer)
            self._fill(self._index, stats.values())
        return self._index

    def _fill(self, index: SqliteIndex, stats: Iterable[FileStat]) -> None:
        from memory_kb.index.note_chunks import read_note, read_raw

        with index.write(rebuild=True) as writer:
            for stat in stats:
                with contextlib.suppress(OSError):
                    raw = read_raw(stat, _MAX_BYTES)
                    digest = hash_of(raw.data)
                    raw = raw._replace(data=without_ours(raw.data, Path(stat.os_path)))
                    note = read_note(raw, is_memory=False)
                    writer.put(stat, digest, (), [_with_host_fields(chunk) for chunk in note.chunks], is_known=False)


def is_on(vault: Vault) -> bool:
    """Return whether agents' own memories are searched: not in the past, and not where the person switched it off."""
    return vault.settings.host and vault.cited is None


def _with_host_fields(chunk: Chunk) -> Chunk:
    """Return a chunk with the name, the kind and the files that its agent's frontmatter gives it."""
    known: Mapping[str, Any] = json.loads(chunk.metadata) if chunk.metadata else {}
    inner = known.get("metadata")
    word = known.get("type", inner.get("type") if isinstance(inner, dict) else None)
    paths = known.get("paths")
    listed = paths if isinstance(paths, list) else str(paths).split(",") if paths else []
    return chunk._replace(
        kind=KINDS_OF_TYPES.get(str(word), chunk.kind),
        title=str(known["name"]) if known.get("name") else chunk.title,
        is_titled=1 if known.get("name") else chunk.is_titled,
        applies_to="\n".join(str(one).strip() for one in listed) or chunk.applies_to,
    )


def bears_on(query: str, hit: Hit, floor: float) -> bool:
    """Return whether a hit says at least two of the words of a query, and enough of them."""
    words = word_tokens(query) - stop_words(query.split())
    return len(words & word_tokens(f"{hit.title} {hit.text}")) >= 2 and _share_of_words(words, hit) >= floor


def merge_hits(query: str, ours: Sequence[Hit], theirs: Sequence[Hit], limit: int, max_chars: int) -> tuple[Hit, ...]:
    """Return the hits of the vault and of agents' memories in one order.

    Scores of two indexes are relative to the best of each. An agent's count by how many of the query's words its best hit
    says, beside what the vault's best says.
    """
    if not theirs:
        return tuple(ours)
    words = word_tokens(query) - stop_words(query.split())
    best = max((_share_of_words(words, hit) for hit in ours), default=0.0)
    factor = max(_share_of_words(words, hit) for hit in theirs) / best if best else 1.0
    lead = ours[0].score / theirs[0].score if ours and theirs[0].score else 1.0
    weighed = [*ours, *(hit._replace(score=float(f"{hit.score * lead * factor:.6g}")) for hit in theirs)]
    ordered = sorted(weighed, key=lambda hit: (-hit.score, hit.scope == HOST))[:limit]
    spent, kept = 0, list[Hit]()
    for rank, hit in enumerate(ordered, 1):
        spent += len(hit.text)
        if 0 < max_chars < spent:
            break
        kept.append(hit._replace(rank=rank))
    return tuple(kept)


def _share_of_words(words: frozenset[str] | set[str], hit: Hit) -> float:
    return len(words & word_tokens(f"{hit.title} {hit.text}")) / len(words) if words else 1.0
