"""Show, list, links and stats; places of entries in files."""

from __future__ import annotations

import functools
import heapq
import itertools
import json
import os
import posixpath
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack
from urllib.parse import quote

from memory_kb.errors import AmbiguousId, MemoryKBError, UnknownEntry, UnreadableInput
from memory_kb.globs import Ignore
from memory_kb.index.rows import RawNote, decode, read_note
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.sync import has_same_bytes, survey
from memory_kb.markdown import scanner
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.fields import read_words
from memory_kb.markdown.links import find_links
from memory_kb.model import EVERYTHING, SCOPES, Entry, FileStat, Filters, FilterWords, StoredEntry, StoredMemory
from memory_kb.reports import EntryView, LinkReport, Reference, Stats, Status, VectorCount
from memory_kb.settings import Settings
from memory_kb.store.files import read_note_text
from memory_kb.store.walk import walk
from memory_kb.text import CHARS_PER_TOKEN, encode, hash_of, printable
from memory_kb.vault import Vault, default_status, locate

if TYPE_CHECKING:
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.vault import Vault


_PLACE = re.compile(r"(.+\.md)(?::(\d+))?$", re.IGNORECASE)
_DAY = re.compile(r"^\[\d{4}-\d{2}-\d{2}\]\s*")


def view(entry: StoredEntry, text: str | None = None) -> EntryView:
    """Return a stored entry as it is shown."""
    return EntryView(
        id=entry.entry_id,
        title=entry.title,
        kind=entry.kind,
        type=entry.type,
        scope=entry.scope,
        status=entry.status,
        path=entry.source,
        line=entry.line,
        end_line=entry.end_line,
        tags=tuple(entry.tags.split(",")) if entry.tags else (),
        dated=entry.dated,
        metadata=read_metadata(entry),
        text=text,
    )


def read_metadata(entry: StoredEntry) -> dict[str, Any]:
    """Return an entry's frontmatter."""
    return json.loads(entry.metadata) if entry.metadata else {}


def list_entries(index: SqliteIndex, filters: Filters) -> tuple[EntryView, ...]:
    """Return the entries that pass the filters, in path order."""
    return tuple(view(entry) for entry in index.entries(filters))


def find(vault: Vault, index: SqliteIndex, wanted: str) -> StoredEntry:
    """Return the entry that an id, its unique beginning, `path.md:LINE`, a title, an alias or a file's name stands for.

    Of the same id at several scopes the most specific one is meant.

    Raises:
        UnknownEntry: there is none.
        AmbiguousId: there are several.
    """
    wanted = printable(wanted)
    place = _PLACE.match(wanted)
    inside = index.entries_in(place[1]) if place else []
    if place and inside:
        return _find_at(vault, inside, int(place[2] or 1))
    found = index.entries_with_id(wanted) if wanted else []
    exact = [entry for entry in found if entry.entry_id == wanted]
    found = exact or found
    if not found:
        found = _find_named(index, wanted)
        if not found:
            raise UnknownEntry(wanted)
        if len(found) > 1:
            raise AmbiguousId(wanted, [f"{entry.source}:{entry.line}" for entry in found])
        return found[0]
    best = min(SCOPES.index(entry.scope) for entry in found)
    found = (
        [entry for entry in found if SCOPES.index(entry.scope) == best]
        if len({entry.entry_id for entry in found}) == 1
        else found
    )
    if len(found) > 1:
        raise AmbiguousId(wanted, [f"{entry.source}:{entry.line}" if exact else entry.entry_id for entry in found])
    return found[0]


def _find_named(index: SqliteIndex, wanted: str) -> list[StoredEntry]:
    """Return the entries of a title, else of an alias, else the first entry of every file of a name."""
    name = wanted.strip().casefold()
    entries = [] if not name else list(index.entries(EVERYTHING))
    titled = [one for one in entries if name in (one.title.casefold(), _DAY.sub("", one.title).casefold())]
    called = titled or [
        one
        for one in entries
        if one.metadata and '"alias' in one.metadata and name in map(str.casefold, aliases_of(one))
    ]
    files: dict[str, StoredEntry] = {}
    for one in () if called else entries:
        if name.removesuffix(".md") in file_names(one.source):
            files.setdefault(one.source, one)
    return called or list(files.values())


def explain_unread(vault: Vault, settings: Settings, index: SqliteIndex, wanted: str) -> str | None:
    """Return why a file that is there was not indexed; None for anything that was, or is no file."""
    path = wanted if index.entries_in(wanted) else wanted.rpartition(":")[0] or wanted
    if index.entries_in(path) or index.entries_with_id(wanted):
        return None
    file = vault.resolve(path)
    if not os.path.lexists(file) or file.is_dir():
        return None
    said = [str(problem) for problem in survey(vault, index, settings).problems if problem.path == path]
    if said:
        return said[0]
    if file.suffix.lower() != ".md":
        return f"{path} is no Markdown file; only names that end in .md are read"
    if any(part.startswith(".") for part in path.split("/")):
        return f"{path} is hidden; files and folders whose name starts with a dot are not read"
    if Ignore(settings.ignore).covers(path) or any(
        Ignore(settings.ignore).covers(str(parent)) for parent in PurePosixPath(path).parents
    ):
        return f"{path} is left out by the setting ignore: {', '.join(settings.ignore)}"
    return f"{path} is no note of this vault; `memory-kb status` shows where it looks"


def _find_at(vault: Vault, inside: list[StoredEntry], line: int) -> StoredEntry:
    """Return the entry of a file that a line belongs to.

    Frontmatter lines belong to their entry.
    """
    source = inside[0].source
    text, _ = decode(read_note_text(source, vault.resolve(source)).data)
    starts = [entry.line for entry in parse_document(text, source).entries]
    return inside[max(0, min(bisect_right(starts, line), len(inside)) - 1)]


def show(vault: Vault, index: SqliteIndex, wanted: str) -> EntryView:
    """Return an entry with its text as it is in its file.

    The frontmatter is included.
    """
    entry = find(vault, index, wanted)
    note = read_note_text(entry.source, vault.resolve(entry.source))
    text, _ = decode(note.data)
    for parsed in parse_document(text, entry.source).entries:
        if parsed.id == entry.entry_id:
            source = text[parsed.span.start : parsed.span.end]
            last = parsed.line + source.rstrip().count("\n")
            if parsed.line <= entry.line <= last + 1:
                return view(entry._replace(line=parsed.line, end_line=last), source)
    raise UnknownEntry(wanted)


def links(vault: Vault, index: SqliteIndex, wanted: str) -> LinkReport:
    """Return the links of an entry in both directions."""
    entry = find(vault, index, wanted)
    called = name_entries([entry])
    # To parse all texts takes a minute in a large vault.
    ends = {posixpath.basename(name).removesuffix(".md") for name in called}
    words = {word for end in ends for word in (end, quote(end).casefold())}
    outgoing: tuple[tuple[str, str], ...] = ()
    found: list[tuple[StoredEntry, str, str]] = []
    for other, text in entries_with_texts(index):
        if (other.source, other.line, other.entry_id) == (entry.source, entry.line, entry.entry_id):
            outgoing = tuple(links_of(other, text))
        elif _holds(f"{text}\n{other.metadata}".casefold(), words):
            found += (
                (other, relation, target)
                for relation, target in links_of(other, text)
                if not called.keys().isdisjoint(link_keys(target, other.source))
            )
    names = named(
        index,
        [*((entry.source, target) for _, target in outgoing), *((one.source, target) for one, _, target in found)],
    )
    leads = ((relation, target, resolve(names, target, entry.source)) for relation, target in outgoing)
    return LinkReport(
        view(entry),
        tuple(Reference(relation, target, view(one) if one else None) for relation, target, one in leads),
        tuple(
            Reference(relation, target, view(other))
            for other, relation, target in found
            if resolve(names, target, other.source) == entry
        ),
    )


def _holds(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def entries_with_texts(index: SqliteIndex) -> Iterator[tuple[StoredEntry, str]]:
    """Yield all entries in path order, each with its text where that may hold a link."""
    texts = index.linking_contents()
    source, held = next(texts, ("", {}))
    for entry in index.entries(EVERYTHING):
        while held and source < entry.source:
            source, held = next(texts, ("", {}))
        yield entry, held.get(entry.entry_id, "") if source == entry.source else ""


def named(index: SqliteIndex, wanted: Iterable[tuple[str, str]]) -> dict[str, StoredEntry]:
    """Return what `name_entries` of all entries has for some links, given as the file and what is written there."""
    keys = frozenset(key for source, target in wanted for key in link_keys(target, source))
    stems = frozenset(posixpath.basename(key).removesuffix(".md") for key in keys)

    def may_be_meant(entry: StoredEntry) -> bool:
        title = entry.title.casefold()
        return (
            stem_of(entry.source) in stems
            or entry.entry_id.casefold() in keys
            or title in keys
            or _DAY.sub("", title) in keys
            or bool(
                entry.metadata
                and '"alias' in entry.metadata
                and keys.intersection(map(str.casefold, aliases_of(entry)))
            )
        )

    return name_entries(list(filter(may_be_meant, index.entries(EVERYTHING))))


def links_of(entry: StoredEntry, text: str) -> Iterator[tuple[str, str]]:
    """Yield the `(relation, target)` pairs of an entry.

    Its typed links come first, then the links of its text.
    """
    listed = read_metadata(entry).get("links")
    for link in listed if isinstance(listed, list) else ():
        if isinstance(link, dict) and link.get("to") is not None:
            yield str(link.get("relation") or "related_to"), str(link["to"])
    for target in dict.fromkeys(link.target for link in find_links(text) if not link.is_attachment):
        yield "mentions", target


def name_entries(entries: Sequence[StoredEntry]) -> dict[str, StoredEntry]:
    """Return what a link may call each entry, in lower case.

    That is its id, its file's path or the end of it, its title, or an alias; where two entries are called
    the same, this is the order in which they win. Of two files with the same name the one with the shorter path wins.
    A path behind a slash is the whole path and nothing else.
    """
    names: dict[str, StoredEntry] = {}
    paths = [(entry, file_names(entry.source)) for entry in entries]
    for entry, (whole, *_) in paths:
        for name in (whole, f"/{whole}"):
            names.setdefault(name, entry)
            names.setdefault(f"{name}.md", entry)
    for entry, (_, *ends) in sorted(paths, key=lambda one: _depth(one[0].source)):
        for name in ends:
            names.setdefault(name, entry)
            names.setdefault(f"{name}.md", entry)
    for entry in entries:
        for name in (entry.title, _DAY.sub("", entry.title)):
            names.setdefault(name.casefold(), entry)
    for entry in entries:
        if entry.metadata and '"alias' in entry.metadata:
            for alias in aliases_of(entry):
                names.setdefault(alias.casefold(), entry)
    by_scope = sorted(entries, key=lambda entry: -SCOPES.index(entry.scope))
    return names | {entry.entry_id.casefold(): entry for entry in by_scope}


def _depth(path: str) -> tuple[int, int]:
    return path.count("/"), len(path)


_T = TypeVar("_T")


def resolve(names: Mapping[str, _T], target: str, source: str = "") -> _T | None:
    """Return what a link in a file leads to: a file in its own folder, else by the names of `name_entries`.

    Example:
        >>> names = {"/b/tea": 1, "tea": 2, "/a/milk.md": 3}
        >>> [resolve(names, *link) for link in (("Tea", "b/x.md"), ("Tea", "a/x.md"), ("../a/milk.md", "b/x.md"), ("milk", "x.md"))]
        [1, 2, 3, None]
    """
    path, name = link_keys(target, source)
    found = names.get(path)
    return names.get(name) if found is None else found


def link_keys(target: str, source: str) -> tuple[str, str]:
    """Return by which names what a link in a file leads to is looked up: its path, then what it says."""
    name = target.strip().casefold()
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(source).casefold(), name)), name


def find_rivals(files: Mapping[str, Sequence[str]], target: str, source: str, found: StoredEntry) -> tuple[str, ...]:
    """Return the files that a link may mean as well as the one it leads to: called the same, and no deeper.

    Args:
        files: the paths of all files, by `stem_of`.
        target: what the link says.
        source: the file it is written in.
        found: what it leads to.
    """
    stem, folder = stem_of(found.source), posixpath.dirname(found.source)
    if target.casefold().removesuffix(".md") != stem or found.entry_id.casefold() == stem:
        return ()
    if folder.casefold() == posixpath.dirname(source).casefold():
        return ()
    return tuple(path for path in files[stem] if path != found.source and path.count("/") == found.source.count("/"))


def say_rivals(target: str, found: StoredEntry, rivals: Sequence[str]) -> str:
    """Return what is said of a link that may mean several files."""
    return f"the link to {target!r} may mean {rivals[0]} as well as {found.source}, which it leads to; write the path"


def file_names(path: str) -> tuple[str, ...]:
    """Return what a link may call a file, in lower case: its path, and every end of it down to the name alone.

    Example:
        >>> file_names("Notes/sub/Tea.md")
        ('notes/sub/tea', 'sub/tea', 'tea')
    """
    bare = path.casefold().removesuffix(".md")
    return (bare, *(bare[place + 1 :] for place, sign in enumerate(bare) if sign == "/"))


def stem_of(path: str) -> str:
    """Return the name of a file alone, in lower case."""
    return file_names(path)[-1]


def group_stems(entries: Iterable[StoredEntry]) -> dict[str, list[str]]:
    """Return the paths of files by the name they are called by."""
    found: dict[str, list[str]] = {}
    for path in dict.fromkeys(entry.source for entry in entries):
        found.setdefault(stem_of(path), []).append(path)
    return found


def aliases_of(entry: StoredEntry) -> tuple[str, ...]:
    """Return the further names of an entry, as Obsidian has them."""
    metadata = read_metadata(entry)
    return read_words(metadata.get("aliases", metadata.get("alias")))


def stats(index: SqliteIndex) -> Stats:
    """Count what the vault holds."""
    entries = list(index.entries(EVERYTHING))
    chunks, characters = index.measure()
    return Stats(
        files=index.count_files(),
        entries=len(entries),
        chunks=chunks,
        tokens=-(-characters // CHARS_PER_TOKEN),
        kinds=_tally(entry.kind for entry in entries),
        types=_tally(entry.type for entry in entries),
        statuses=_tally(entry.status for entry in entries),
        scopes=_tally(entry.scope for entry in entries),
    )


def _tally(words: Iterator[str]) -> dict[str, int]:
    return dict(Counter(words).most_common())


def status(vault: Vault, index: SqliteIndex, settings: Settings, *, check: bool = False) -> Status:
    """Hold the index against the disk, file by file; with `check` by their bytes, else by size and time."""
    changes = survey(vault, index, settings)
    hidden = _hidden_changes(vault, index, settings, {*changes.added, *changes.changed}) if check else ()
    indexed_at = index.read_meta("indexed_at")
    return Status(
        vault=str(vault.folder),
        home=str(vault.home),
        index=str(index.path),
        generation=index.generation,
        indexed_at=datetime.fromisoformat(indexed_at) if indexed_at else None,
        files=changes.files,
        added=changes.added,
        changed=tuple(sorted((*changes.changed, *hidden))),
        removed=changes.removed,
        problems=changes.problems,
        vectors=tuple(_count_vectors(index)),
    )


def _hidden_changes(vault: Vault, index: SqliteIndex, settings: Settings, seen: set[str]) -> Iterator[str]:
    """Yield the files whose bytes changed though size and time are as they were."""
    known = {one.path: one for is_global in (False, True) for one in index.known_files(is_global=is_global)}
    for file in walk(vault, settings.ignore, []):
        if file.path not in seen and not has_same_bytes(file, known.get(file.path), settings):
            yield file.path


def _count_vectors(index: SqliteIndex) -> Iterator[VectorCount]:
    for vector_file in index.vectors.vector_files():
        missing = index.vectors.count_missing(vector_file)
        yield VectorCount(*vector_file.space, index.measure()[0] - missing, missing)


#: So many of an entry's neighbours are taken into a map for its sake.
_BESIDE = 12

ORDERS = ("newest", "oldest", "title", "path")


class Browsed(NamedTuple):
    """Some of the entries that pass a filter, and how many there are in all."""

    entries: tuple[EntryView, ...]
    total: int


class Node(NamedTuple):
    """An entry among others: enough to name and colour it. `key` is its place in the map."""

    key: int
    id: str
    title: str
    kind: str
    scope: str
    status: str
    path: str
    line: int


class Edge(NamedTuple):
    """A link from one entry to another, by their keys."""

    source: int
    target: int
    relation: str


class LinkMap(NamedTuple):
    """Entries, the links between them, and how many more there are than these."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0


def browse(index: SqliteIndex, filters: Filters, order: str, offset: int, limit: int, folder: str = "") -> Browsed:
    """Return entries in one of `ORDERS`, from a place on; of a folder and those below it, where one is named."""
    inside = f"{folder.strip('/')}/" if folder.strip("/") else ""
    found = [entry for entry in index.entries(filters) if entry.source.startswith(inside)]
    if order == "title":
        found.sort(key=lambda one: one.title.casefold())
    elif order == "oldest":
        found.sort(key=lambda one: (one.dated is None, one.dated or ""))
    elif order == "newest":
        found.sort(key=lambda one: one.dated or "", reverse=True)
    return Browsed(tuple(map(view, found[offset : offset + limit])), len(found))


def map_links(index: SqliteIndex) -> LinkMap:
    """Return all entries and all links whose two ends are there."""
    entries = list(index.entries(EVERYTHING))
    keys = {(entry.source, entry.line): key for key, entry in enumerate(entries)}
    names = name_entries(entries)
    edges: dict[Edge, None] = {}
    for key, (entry, text) in enumerate(entries_with_texts(index)):
        if not text and not (entry.metadata and '"links"' in entry.metadata):
            continue
        for relation, target in links_of(entry, text):
            found = resolve(names, target, entry.source)
            other = keys[found.source, found.line] if found else key
            if other != key:
                edges[Edge(key, other, relation)] = None
    nodes = (
        Node(key, one.entry_id, one.title, one.kind, one.scope, one.status, one.source, one.line)
        for key, one in enumerate(entries)
    )
    return LinkMap(tuple(nodes), tuple(edges))


def take_around(links: LinkMap, center: int, steps: int, limit: int) -> LinkMap:
    """Return what can be reached from an entry in some steps along links, whichever way they point.

    What is nearer comes first; where there is not room for all, those with more links do.

    Example:
        >>> nodes = tuple(Node(key, str(key), "", "fact", "project", "active", "a.md", 1) for key in range(4))
        >>> links = LinkMap(nodes, (Edge(0, 1, "mentions"), Edge(1, 2, "mentions"), Edge(2, 3, "mentions")))
        >>> [node.id for node in take_around(links, 0, 2, 10).nodes], take_around(links, 0, 3, 2).left_out
        (['0', '1', '2'], 2)
    """
    near: Mapping[int, set[int]] = _neighbours(links.edges)
    kept, ring = {center: None}, {center}
    reached = {center}
    for _ in range(steps):
        ring = {other for key in ring for other in near.get(key, ())} - reached
        reached |= ring
        for key in sorted(ring, key=lambda one: (-len(near.get(one, ())), one)):
            if len(kept) < limit:
                kept[key] = None
    return _keep(links, kept, len(reached) - len(kept))


def take_busiest(links: LinkMap, limit: int, wanted: Collection[int] | None = None) -> LinkMap:
    """Return a part of the map that hangs together, where most links meet; of all entries or of those wanted.

    It grows from the entry with the most links, always by the one with the most links beside it, and
    of each entry's neighbours only so many come in on its account, so that no single hub fills it.
    Entries without any link are left out.

    Example:
        >>> nodes = tuple(Node(key, str(key), "", "fact", "project", "active", "a.md", 1) for key in range(4))
        >>> links = LinkMap(nodes, (Edge(0, 1, "mentions"), Edge(1, 2, "mentions")))
        >>> [node.id for node in take_busiest(links, 2).nodes]
        ['0', '1']
    """
    edges = (
        links.edges
        if wanted is None
        else tuple(edge for edge in links.edges if edge.source in wanted and edge.target in wanted)
    )
    count = Counter(key for edge in edges for key in (edge.source, edge.target))
    kept = frozenset(itertools.islice(_grow(_neighbours(edges), count), limit))
    # The last ones may have come without those that they are linked to.
    linked = [
        key for edge in edges if edge.source in kept and edge.target in kept for key in (edge.source, edge.target)
    ]
    found = _keep(links, linked, 0)
    return found._replace(left_out=len(count) - len(found.nodes))


def _grow(near: Mapping[int, set[int]], count: Mapping[int, int]) -> Iterator[int]:
    """Yield entries in the order in which a map of them grows; when one part is done, the next begins."""
    by_links = sorted(count, key=lambda key: (-count[key], key))
    taken: set[int] = set()
    for first in by_links:
        edge = [(-count[first], first)]
        while edge:
            _, key = heapq.heappop(edge)
            if key in taken:
                continue
            taken.add(key)
            yield key
            beside = heapq.nsmallest(_BESIDE, near[key] - taken, key=lambda other: (-count[other], other))
            for other in beside:
                heapq.heappush(edge, (-count[other], other))


def _neighbours(edges: Iterable[Edge]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for edge in edges:
        found[edge.source].add(edge.target)
        found[edge.target].add(edge.source)
    return found


def _keep(links: LinkMap, keys: Iterable[int], left_out: int) -> LinkMap:
    kept = dict.fromkeys(keys)
    edges = tuple(edge for edge in links.edges if edge.source in kept and edge.target in kept)
    return LinkMap(tuple(links.nodes[key] for key in sorted(kept)), edges, max(0, left_out))


class Places:
    """Where in their files entries say what they say; without an answer it is where an entry's text begins."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        # What is asked comes file by file.
        self._read = functools.lru_cache(maxsize=2)(self._read_file)

    def of_field(self, entry: StoredEntry, value: str, field: str = "") -> int:
        """Return the line of a value in an entry's frontmatter, behind a field if one is named."""
        text, found = self._find(entry)
        if found is None:
            return entry.line
        named = rf"^[ \t]*[\"']?{re.escape(field)}[\"']?[ \t]*:[^\n]*?" if field else ""
        place = re.compile(rf"{named}(?<![\w-]){re.escape(value)}(?![\w-])", re.MULTILINE).search(
            text, found.span.start, found.body.start
        )
        return text.count("\n", 0, place.end()) + 1 if place else entry.line

    def _find(self, entry: StoredEntry) -> tuple[str, Entry | None]:
        text, entries = self._read(entry.source)
        found = None
        for one in entries:
            if one.id == entry.entry_id and one.line <= entry.line:
                found = one
        return text, found

    def _read_file(self, path: str) -> tuple[str, tuple[Entry, ...]]:
        try:
            text, _ = decode(read_note_text(path, self._vault.resolve(path)).data)
        except (MemoryKBError, OSError):
            return "", ()
        return text, parse_document(text, path).entries


#: What cannot stand in a link.
UNFIT = frozenset("[]|#^\\\n")


class Called(NamedTuple):
    """An entry by one of its names: as it is shown, and all that finds it by that, in lower case."""

    label: str
    found_by: str
    entry: StoredEntry


@dataclass(frozen=True)
class Catalog:
    """The entries of a vault and the links between them.

    Attributes:
        generation: the state of the index that it tells of.
        names: what a link may call an entry, in lower case.
        links: the relations and targets of each entry that has any, by path and first line.
    """

    generation: int
    entries: tuple[StoredEntry, ...]
    names: Mapping[str, StoredEntry]
    links: Mapping[tuple[str, int], tuple[tuple[str, str], ...]]

    def resolve(self, target: str, source: str = "") -> StoredEntry | None:
        """Return the entry that a link in a file leads to."""
        return resolve(self.names, target, source)

    def kept_names(self, path: str, entry_id: str, way: str) -> frozenset[str]:
        """Return what leads to an entry still when its `id`, `title`, `heading`, `file` or `alias` is changed, in lower case.

        These are the names of its file, which every reader of notes knows, and its aliases.
        """
        if way == "file":
            return frozenset()
        entry = self.entry(path, entry_id)
        aliases = [alias.casefold() for alias in aliases_of(entry)] if entry and way != "alias" else []
        files = file_names(path)
        return frozenset(
            name
            for name in (*files, *(f"{one}.md" for one in files), *aliases)
            if self.names.get(name) in (None, entry)
        )

    def entry(self, path: str, entry_id: str) -> StoredEntry | None:
        """Return the entry of a file with an id."""
        return next((entry for entry in self.ids.get(entry_id, ()) if entry.source == path), None)

    def way_of(self, entry: StoredEntry, target: str) -> str:
        """Return by which of its names a link leads to an entry: `id`, `file`, `title` or `alias`."""
        name = target.strip().casefold()
        if name == entry.entry_id.casefold():
            return "id"
        if posixpath.basename(name).removesuffix(".md") == stem_of(entry.source):
            return "file"
        return "alias" if name in map(str.casefold, aliases_of(entry)) and name != entry.title.casefold() else "title"

    def incoming(self, entry: StoredEntry) -> tuple[tuple[StoredEntry, str, str], ...]:
        """Return the entries that link to one, each with the relation and the name it uses."""
        found = self._incoming.get((entry.source, entry.line), ())
        return tuple(one for one in found if one[0] != entry)

    @cached_property
    def _incoming(self) -> Mapping[tuple[str, int], list[tuple[StoredEntry, str, str]]]:
        found: dict[tuple[str, int], list[tuple[StoredEntry, str, str]]] = defaultdict(list)
        for other in self.entries:
            for relation, target in self.links.get((other.source, other.line), ()):
                entry = self.resolve(target, other.source)
                if entry is not None:
                    found[entry.source, entry.line].append((other, relation, target))
        return found

    def told(self, path: str) -> tuple[tuple[StoredEntry, tuple[tuple[str, str], ...]], ...]:
        """Return the entries of a file with their links."""
        return tuple((entry, self.links.get((path, entry.line), ())) for entry in self._by_path.get(path, ()))

    @cached_property
    def _by_path(self) -> Mapping[str, list[StoredEntry]]:
        found: dict[str, list[StoredEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.source, []).append(entry)
        return found

    @cached_property
    def tags(self) -> Mapping[str, int]:
        """How often each tag is used."""
        held = (f"{entry.tags},{entry.text_tags}" for entry in self.entries if entry.tags or entry.text_tags)
        return Counter(tag for tags in held for tag in dict.fromkeys(tags.split(",")) if tag)

    @cached_property
    def ids(self) -> Mapping[str, tuple[StoredEntry, ...]]:
        """The entries of each id."""
        found: dict[str, list[StoredEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.entry_id, []).append(entry)
        return {entry_id: tuple(entries) for entry_id, entries in found.items()}

    @cached_property
    def searchable(self) -> tuple[Called, ...]:
        """Every entry by every name that a person may look for, for completion."""
        return tuple(called for entry in self.entries for called in _names_of(entry))

    @cached_property
    def stems(self) -> Mapping[str, Sequence[str]]:
        """The paths of the files of each name."""
        return group_stems(self.entries)

    def is_alone(self, path: str) -> bool:
        """Return whether no other file is called like this one."""
        return len(self.stems.get(stem_of(path), ())) <= 1

    def link_name(self, entry: StoredEntry) -> str:
        """Return the name by which most readers of notes follow a link to an entry.

        That is its file's name where no other file is called so, else its path, and its id where
        that is its own; what is below another entry of its file has only an id and a title.
        """
        stem, path = _stem(entry.source), entry.source.removesuffix(".md")
        own = read_metadata(entry).get("id") is not None
        names = [stem] if self.is_alone(entry.source) else []
        names += [entry.entry_id] if own else []
        names += [path] if not path.startswith("~") else []
        names += [entry.title]
        fitting = (name for name in names if name and not UNFIT & set(name) and self.resolve(name) == entry)
        return next(fitting, entry.entry_id)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _names_of(entry: StoredEntry) -> Iterator[Called]:
    """Yield an entry by its title, its aliases and its file.

    A name that was made from the title and the id, as `learn` names files, tells a person nothing
    that the title does not.
    """
    stem = _stem(entry.source)
    is_made = stem.endswith(entry.entry_id[:8])
    more = f"\n{stem}" if is_made else ""
    yield Called(entry.title, f"{entry.title}\n{entry.entry_id}{more}".casefold(), entry)
    labels = [
        *([] if is_made else [stem]),
        *(aliases_of(entry) if entry.metadata and '"alias' in entry.metadata else ()),
    ]
    for label in dict.fromkeys(labels):
        if label and label != entry.title:
            yield Called(label, label.casefold(), entry)


def find_names(catalog: Catalog, word: str, most: int) -> list[Called]:
    """Return the entries by those of their names that go with a word, those that begin with it first."""
    wanted = word.casefold().strip()
    if not wanted:
        return heapq.nlargest(most, catalog.searchable, key=lambda called: called.entry.dated or "")
    parts = wanted.split()
    found = (
        (
            0 if names.startswith(wanted) or f"\n{wanted}" in names else 1 if f" {wanted}" in names else 2,
            len(names),
            number,
            called,
        )
        for number, called in enumerate(catalog.searchable)
        for names in [f"{called.found_by}\n{called.entry.source.casefold()}" if "/" in wanted else called.found_by]
        if all(part in names for part in parts)
    )
    return [called for *_, called in heapq.nsmallest(most, found, key=lambda one: one[:3])]


#: So many headings with the words are looked at.
_MOST_HEADINGS = 2_000


class FoundHeading(NamedTuple):
    """A heading of a note, and where it is."""

    words: str
    path: str
    line: int


def find_headings(index: SqliteIndex, words: str, limit: int) -> tuple[FoundHeading, ...]:
    """Return headings that hold all of some words, the shortest first; those that only repeat a title are left out."""
    wanted = words.casefold().split()
    if not wanted:
        return ()
    found = (
        FoundHeading(heading.words, source, line + content.count("\n", 0, heading.span.start))
        for source, title, line, content in index.sections_with(wanted)
        for heading in scanner.find_headings(content)
        if heading.words != title and holds_all(heading.words, wanted)
    )
    return tuple(heapq.nsmallest(limit, itertools.islice(found, _MOST_HEADINGS), key=lambda one: len(one.words)))


def holds_all(text: str, words: Iterable[str]) -> bool:
    """Return whether a text holds all of some words, which are in lower case."""
    return all(word in text.casefold() for word in words)


EMPTY = Catalog(-1, (), {}, {})


def make_catalog(index: SqliteIndex) -> Catalog:
    """Return what the index holds."""
    entries, links = [], {}
    for entry, text in entries_with_texts(index):
        entries.append(entry)
        if (text or (entry.metadata and '"links"' in entry.metadata)) and (found := tuple(links_of(entry, text))):
            links[entry.source, entry.line] = found
    return Catalog(index.generation, tuple(entries), name_entries(entries), links)


def read_unsaved(path: str, text: str, *, is_memory: bool) -> list[StoredMemory]:
    """Return the entries of a text with all they say, planned against the text as its bytes are.

    Example:
        >>> [(one.entry.entry_id, one.text) for one in read_unsaved("a.md", "---\\nid: x\\n---\\nOne.\\n", is_memory=False)]
        [('x', 'One.')]
    """
    data, place = encode(text), locate(path, is_memory=is_memory)
    status = default_status(path, is_memory=is_memory)
    chunks = read_note(RawNote(FileStat(path, path, len(data), 0, 0), data, is_cut=False), place, status).chunks
    firsts = [chunk for chunk in chunks if chunk.part == 0]
    bodies = [text[entry.body.start : entry.body.end].strip() for entry in parse_document(text, path, status).entries]
    return [
        StoredMemory(
            StoredEntry._make(getattr(chunk, name) for name in _COLUMNS),
            hash_of(data),
            chunk.job,
            chunk.task,
            chunk.learning_type,
            body,
        )
        for chunk, body in zip(firsts, bodies, strict=False)
    ]


#: The entries of a text as a catalog has them, each with the relations and targets of its links.
Told = tuple[tuple[StoredEntry, tuple[tuple[str, str], ...]], ...]


def tell_unsaved(path: str, text: str, *, is_memory: bool) -> Told:
    """Return what a text adds to a catalog.

    Example:
        >>> [(entry.title, links) for entry, links in tell_unsaved("a.md", "# Tea\\n\\nAs [[b]].\\n", is_memory=False)]
        [('Tea', (('mentions', 'b'),))]
    """
    return tuple(
        (one.entry, tuple(links_of(one.entry, one.text))) for one in read_unsaved(path, text, is_memory=is_memory)
    )


def lay_over(catalog: Catalog, drafts: Mapping[str, Told]) -> Catalog:
    """Return a catalog in which some files hold what they hold in an editor, whether they are saved or not."""
    new = {path: told for path, told in drafts.items() if told != catalog.told(path)}
    if not new:
        return catalog
    entries = [entry for entry in catalog.entries if entry.source not in new]
    entries += [entry for told in new.values() for entry, _ in told]
    entries.sort(key=lambda entry: entry.source)
    links = {place: held for place, held in catalog.links.items() if place[0] not in new}
    links |= {(entry.source, entry.line): held for told in new.values() for entry, held in told if held}
    return replace(catalog, entries=tuple(entries), names=name_entries(entries), links=links)


_COLUMNS = (
    "entry_id",
    "title",
    "kind",
    "type",
    "scope",
    "status",
    "source",
    "line",
    "end_line",
    "tags",
    "dated",
    "metadata",
    "text_tags",
    "fault",
    "is_superseded",
)


class Reading:
    """The verbs show, list, links, stats and status."""

    def __init__(self, vault: Vault, index: VaultIndex) -> None:
        self._vault = vault
        self._index = index

    def show(self, wanted: str) -> EntryView:
        """Return an entry with its source text.

        It is named by its id, a unique beginning of one, `path.md:LINE`, its title, an alias or its file's name.

        Raises:
            UnknownEntry: there is none.
            UnreadableInput: it names a file that is there and was not indexed; it says why.
            AmbiguousId: there are several.
        """

        def read(index: SqliteIndex) -> EntryView:
            try:
                return show(self._vault, index, wanted)
            except UnknownEntry:
                unread = explain_unread(self._vault, self._vault.settings, index, wanted)
                if unread:
                    raise UnreadableInput(unread) from None
                raise

        return self._index.read(read)

    def list(self, **filters: Unpack[FilterWords]) -> tuple[EntryView, ...]:
        """Return the entries that pass the filters, in path order.

        The filters are those of `search`.
        """
        chosen = self._index.filters(**filters)
        return self._index.read(lambda index: list_entries(index, chosen))

    def links(self, wanted: str) -> LinkReport:
        """Return what an entry links to and what links to it.

        Links are typed relations, `[[wikilinks]]` and relative Markdown links.
        """
        return self._index.read(lambda index: links(self._vault, index, wanted))

    def stats(self) -> Stats:
        """Return how much the vault holds, by kind, type, status and scope."""
        return self._index.read(stats)

    def status(self, *, check: bool = False) -> Status:
        """Compare disk and index as they are, without changing either; with `check` every file is read."""
        found = self._index.use(lambda index: status(self._vault, index, self._vault.settings, check=check))
        if not self._vault.settings.index.url:
            return found
        return replace(found, team=self._index.team.describe())
