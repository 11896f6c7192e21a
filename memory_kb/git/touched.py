"""Find the notes that a change between two revisions can affect."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from memory_kb.git.repository import SETTINGS, Blob, Repository, choose
from memory_kb.index.catalog import read_unsaved
from memory_kb.index.link_names import file_names, link_keys, links_of, name_entries
from memory_kb.index.rows import decode
from memory_kb.learning.contradictions import may_be_weighed
from memory_kb.markdown.scanner import find_headings, normal_heading
from memory_kb.model import StoredMemory
from memory_kb.similarity import CONTRADICTION_FROM, word_set
from memory_kb.store.plan import make_memory
from memory_kb.store.queries import QUERIES, parse_queries
from memory_kb.text import jaccard
from memory_kb.vault import Vault

_BLOCK_ID = re.compile(r"\^[\w-]+[ \t]*\r?$", re.MULTILINE)
#: What the frontmatter of every entry has that can contradict another.
_WEIGHED = ("kind", "type", "pinned")


@dataclass
class _File:
    """One side of a changed note: what links may call it, what it links to, and the parts that links may name."""

    names: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)
    weighed: list[frozenset[str]] = field(default_factory=list)


@dataclass(frozen=True)
class Touched:
    """The notes that a change can make a difference to.

    Attributes:
        changed: the notes that differ themselves.
        around: they, and those that their findings depend on or that depend on them.
    """

    changed: frozenset[str]
    around: frozenset[str]


def find_touched(repository: Repository, vault: Vault, old: str, new: str) -> Touched | None:
    """Return the notes to examine so that every new finding is found, or None where that may be any.

    A finding depends on its own file, on the files that its links may mean, on entries of the same id, and on entries
    that say much the same. Files that git holds unchanged are read only where `git grep` finds one of these names.

    Args:
        repository: where the revisions are.
        vault: the vault as it is now, which says what is a note.
        old: the commit or tree before.
        new: the one after.
    """
    prefix, is_memory = repository.prefix(vault.folder), vault.memory is not None
    differing = repository.differing(old, new, prefix)
    inside = "memory/" if is_memory else ""
    if any(blob.path == f"{inside}{SETTINGS}" for side in differing for blob in side):
        return None
    for side in (old, new):
        data = repository.blob(side, f"{prefix}{inside}{QUERIES}") or b""
        asked = parse_queries(data.decode("utf-8", "replace"), QUERIES)
        if asked.queries or asked.problems:
            return None
    sides = [list(choose(side, is_memory=is_memory)) for side in differing]
    read = functools.partial(read_unsaved, is_memory=is_memory)
    before, after = (
        {path: _look(path, text, read(path, text)) for path, text in _read(repository, side)} for side in sides
    )
    changed = frozenset(before) | frozenset(after)
    moved, ids, targets, weighed = set[str](), set[str](), set[str](), list[frozenset[str]]()
    for path in changed:
        one, other = before.get(path) or _File(), after.get(path) or _File()
        moved |= one.names ^ other.names if one.anchors == other.anchors else one.names | other.names
        ids |= one.ids | other.ids
        targets |= one.targets | other.targets
        weighed += [*one.weighed, *other.weighed]
    blobs = {blob.path: blob for blob in choose(repository.files(new, prefix), is_memory=is_memory)}
    rest = {path: blob for path, blob in blobs.items() if path not in changed}

    def holding(words: Iterable[str]) -> Iterator[tuple[str, str]]:
        found = (path.removeprefix(prefix) for path in repository.holding([*words], new, prefix))
        return _read(repository, [rest[path] for path in found if path in rest])

    around = set(changed)
    wanted = targets | ids
    spelled = _spellings(wanted | moved) | {quote(one) for one in _spellings(moved)}
    named: dict[str, Collection[str]] = {}
    while spelled:
        further = set[str]()
        for path, text in holding(spelled):
            found = read(path, text)
            named[path] = name_entries([one.entry for one in found]).keys()
            links = {key for keys in _targets(path, found) if not moved.isdisjoint(keys) for key in keys}
            if links:
                around.add(path)
            further |= links - wanted
        wanted |= further
        spelled = _spellings(further) - spelled
    around |= {path for path, names in named.items() if not wanted.isdisjoint(names)}
    around |= {path for path in rest if _answers(path, wanted)}
    for path, text in holding(_WEIGHED) if weighed else ():
        if _may_say_alike(text, weighed) and any(
            jaccard(one, other) >= CONTRADICTION_FROM for one in _weighed(read(path, text)) for other in weighed
        ):
            around.add(path)
    return Touched(changed, frozenset(around))


def _read(repository: Repository, blobs: Sequence[Blob]) -> Iterator[tuple[str, str]]:
    return ((blob.path, decode(data)[0]) for blob, data in repository.read(blobs))


def _look(path: str, text: str, found: Sequence[StoredMemory]) -> _File:
    return _File(
        set(name_entries([one.entry for one in found])),
        {one.entry.entry_id.casefold() for one in found},
        {key for keys in _targets(path, found) for key in keys},
        {normal_heading(one.words) for one in find_headings(text)} | set(_BLOCK_ID.findall(text)),
        list(_weighed(found)),
    )


def _targets(path: str, found: Iterable[StoredMemory]) -> Iterator[tuple[str, ...]]:
    """Yield for every link of a file the names by which what it leads to is looked up."""
    for one in found:
        for _, target in links_of(one.entry, one.text):
            yield link_keys(target, path)


def _weighed(found: Iterable[StoredMemory]) -> Iterator[frozenset[str]]:
    memories = map(make_memory, found)
    return (word_set(one.text) for one in memories if may_be_weighed(one))


def _may_say_alike(text: str, weighed: Sequence[frozenset[str]]) -> bool:
    words = word_set(text)
    return any(len(words & one) >= CONTRADICTION_FROM * len(one) for one in weighed)


def _answers(path: str, wanted: Collection[str]) -> bool:
    """Return whether a link may call a file one of these names, or leads to a folder it is in."""
    whole, *ends = file_names(path)
    names = (whole, f"/{whole}", *ends)
    return any(name in wanted or f"{name}.md" in wanted for name in names) or any(
        f"/{whole[:place]}" in wanted for place, sign in enumerate(whole) if sign == "/"
    )


def _spellings(names: Iterable[str]) -> set[str]:
    """Return how names may be written; git's grep knows upper and lower case of ASCII alone, and of a path its end is enough.

    Example:
        >>> sorted(_spellings(["/notes/tea time.md", "é b"]))
        ['tea time', 'É b', 'é b']
    """
    words = {name.removesuffix(".md").rstrip("/").rpartition("/")[2] for name in names} - {"", ".", ".."}
    return words | {"".join(sign if sign.isascii() else sign.upper() for sign in word) for word in words}
