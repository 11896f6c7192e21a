"""Check the notes, the index and the configuration for problems."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import posixpath
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import MemoryKBError, UnreadableInput
from memory_kb.index.link_map import Edge, Node
from memory_kb.index.link_names import (
    find_rival,
    group_stems,
    name_entries,
    resolve,
    targets_in_fields,
    typed_links,
)
from memory_kb.index.lint_cache import LINT_CACHE, FileFindings, LinkInText, LintCache
from memory_kb.index.note_chunks import decode_note, explain_unreadable
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.sync import compare_with_disk, find_hidden_changes
from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.document import find_line, parse_document
from memory_kb.markdown.headings import find_anchor
from memory_kb.model import EVERYTHING, Entry, Problem, StoredEntry
from memory_kb.store.file_edits import read_note_text
from memory_kb.store.saved_queries import names_entry, queries_path, read_queries
from memory_kb.store.walk import walk
from memory_kb.text import readable_name
from memory_kb.vault import Vault, place_of_path


def check_queries(vault: Vault, index: SqliteIndex) -> Iterator[Problem]:
    """Yield the problems of the saved queries, among them expected entries that do not exist."""
    read = read_queries(vault)
    yield from read.problems
    if not read.queries:
        return
    entries = [(entry.id, entry.path) for entry in index.entries(EVERYTHING)]
    whole = {name for entry in entries for name in entry}
    for query in read.queries:
        for wanted in query.expect:
            if wanted not in whole and not any(names_entry(wanted, *entry) for entry in entries):
                message = f"{query.question!r} expects {wanted!r}, and no entry is called that"
                yield Problem(queries_path(vault), query.line, message)


#: How links of site generators begin: `@/a.md`, `@site/a.md`.
_SITE_LINK = lazy_regex(r"@\w*/")
#: A temporary file this old belongs to no running write; seconds.
_LEFTOVER_AGE = 3_600


def lint(vault: Vault, index: SqliteIndex, paths: Sequence[str], further: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return what should be fixed: fields, blocks, ids, links, secrets, saved queries, unreadable files, and `further`."""
    # Elsewhere a file of that name may be anything.
    queries = check_queries(vault, index) if vault.memory else ()
    checked = cross_check(vault, index, LintCache(vault.machine / LINT_CACHE))
    problems = [*index.problems(), *_find_unreadable(vault, index), *checked, *queries, *further]
    chosen = [_chosen(vault, path) for path in paths]
    kept = (
        problem
        for problem in problems
        if not chosen or any(problem.path == path or problem.path.startswith(path + "/") for path in chosen)
    )
    found = tuple(sorted(set(kept)))
    if not chosen:
        keep_last(vault, index, "lint", found)
    return found


#: The most findings that are kept for the web page.
_FIRST = 300


class LintPass(NamedTuple):
    """The last findings of `lint` or `doctor`: state of the index, time, number, and the first of them."""

    generation: int
    moment: str
    total: int
    first: tuple[Problem, ...]


def keep_last(vault: Vault, index: SqliteIndex, verb: str, found: Sequence[Problem]) -> None:
    """Store the findings of `lint` or `doctor` for the web page."""
    moment = vault.clock().isoformat(timespec="seconds")
    first = sorted(found, key=lambda one: one.is_unknown_word)[:_FIRST]
    LintCache(vault.machine / LINT_CACHE).keep(**{verb: LintPass(index.generation, moment, len(found), tuple(first))})


def read_last(vault: Vault, verb: str) -> LintPass | None:
    """Return the findings of the last `lint` or `doctor`."""
    kept = LintCache(vault.machine / LINT_CACHE).read(verb)
    return LintPass._make([*kept[:-1], tuple(map(Problem._make, kept[-1]))]) if kept else None


def _find_unreadable(vault: Vault, index: SqliteIndex) -> list[Problem]:
    """Return the files and folders that cannot be read, also those that were indexed before and look unchanged."""
    problems: list[Problem] = []
    indexed = index.file_hashes()
    for file in walk(vault, problems):
        is_doubtful = file.path not in indexed or not os.access(file.os_path, os.R_OK)
        if is_doubtful and (reason := explain_unreadable(file)):
            problems.append(Problem(file.path, 1, reason))
    return problems


def _chosen(vault: Vault, path: str) -> str:
    """Return a path to lint, which may be relative to the vault or to the current folder, as it is in output."""
    given, path = path, readable_name(path).removeprefix("./").rstrip("/")
    if not os.path.isabs(path) and ".." not in Path(path).parts and vault.resolve(path).exists():
        return path
    here = Path(os.path.realpath(given))
    if here.exists() and any(here.is_relative_to(root) for root in (vault.folder, vault.home)):
        return readable_name(vault.show(here))
    raise UnreadableInput(f"there is no {path} in the vault", "name a file or folder as `memory-kb list` shows it")


def cross_check(vault: Vault, index: SqliteIndex, cache: LintCache) -> Sequence[Problem]:
    """Return duplicate ids, links that lead nowhere, secrets, and unresolved merge conflicts.

    While no file has changed, the cached result of the last time is returned.
    """
    hashes = index.file_hashes()
    state = hashlib.sha256(json.dumps([vault.memory is None, sorted(hashes.items())]).encode()).hexdigest()
    kept = cache.read("findings")
    if kept and kept["state"] == state:
        probes = kept["probes"].items()
        if all(os.path.lexists(vault.resolve(path)) == was_there for path, was_there in probes):
            return list(map(Problem._make, kept["problems"]))

    by_file = cache.of_files(hashes, index.entries_with_texts)
    check = NoteCheck(vault, list(index.entries(EVERYTHING)), by_file, lambda path: _read_text(vault, path))
    problems = [
        *check.find_duplicate_ids(),
        *(Problem(path, line, message) for path, found in by_file.items() for line, message in found.problems),
        *check.find_dead_links(with_unwritten=vault.memory is not None),
    ]
    # Whoever finds the findings finds the map.
    cache.keep(
        map=[check.nodes(), list(check.edges)],
        findings={"state": state, "problems": problems, "probes": check.probes},
    )
    return problems


class NoteCheck:
    """A check of some files, which have findings of their own, against all entries that they may name."""

    def __init__(
        self,
        vault: Vault,
        entries: Sequence[StoredEntry],
        by_file: Mapping[str, FileFindings],
        read: Callable[[str], str],
    ) -> None:
        self._vault, self._entries, self._by_file, self._read = vault, entries, by_file, read
        self._names, self._stems = name_entries(entries), group_stems(entries)
        self._keys = {(entry.path, entry.line): key for key, entry in enumerate(entries)}
        #: By the file and the name of a part, what to say of the links to it if the file has no such part.
        self._parts: dict[str, dict[str, list[Problem]]] = {}
        # What is asked comes file by file.
        self._parse = functools.lru_cache(maxsize=2)(self._parse_file)
        #: The paths that are no notes and were looked for, and whether they were there.
        self.probes: dict[str, bool] = {}
        #: The links whose two ends exist, each once.
        self.edges: dict[Edge, None] = {}

    def nodes(self) -> list[Node]:
        """Return all entries."""
        return [
            Node(key, one.id, one.title, one.kind, one.scope, one.status, one.path, one.line)
            for key, one in enumerate(self._entries)
        ]

    def find_dead_links(self, *, with_unwritten: bool) -> Iterator[Problem]:
        """Yield a problem for every link that leads nowhere or may mean several files, and collect those that lead.

        In a plain folder a wikilink to nothing is no problem: it may be a note that is yet to be written.
        """
        for key, entry in enumerate(self._entries):
            if not (own := self._by_file.get(entry.path)):
                continue
            for relation, target in typed_links(entry):
                if self._follow(key, relation, target) is None:
                    line = self._line_of(entry, target)
                    yield Problem(entry.path, line, f"the {relation} link to {target!r} leads to no entry")
            for target in targets_in_fields(entry):
                self._follow(key, "mentions", target)
            yield from self._check_links(key, own.links.get(entry.id, ()), with_unwritten=with_unwritten)
        for path, parts in self._parts.items():
            text = self._read(path)
            yield from (one for part, said in parts.items() if find_anchor(text, part) is None for one in said)

    def find_duplicate_ids(self) -> Iterator[Problem]:
        """Yield a problem for every repetition of an id within one scope; other scopes may override it."""
        first: dict[tuple[str, str, str], StoredEntry] = {}
        for entry in self._entries:
            if entry.metadata is None or '"id"' not in entry.metadata:
                continue
            where = place_of_path(entry.path, is_memory=True)
            key = (entry.id, entry.scope, f"{where.job}/{where.task}" if entry.scope in ("job", "task") else "")
            earlier = first.setdefault(key, entry)
            if earlier is not entry:
                place = f"{earlier.path}:{earlier.line}"
                message = f"the id {entry.id} is also used at {place}; both are kept, give one a new id"
                yield Problem(entry.path, self._line_of(entry, "\nid:"), message)

    def _follow(self, key: int, relation: str, target: str) -> StoredEntry | None:
        found = resolve(self._names, target, self._entries[key].path)
        other = self._keys[found.path, found.line] if found else key
        if other != key:
            self.edges[Edge(key, other, relation)] = None
        return found

    def _check_links(self, key: int, links: Sequence[LinkInText], *, with_unwritten: bool) -> Iterator[Problem]:
        """Yield a problem for every link of a text that leads nowhere, to several files or to a missing part."""
        said: set[str] = set()
        entry = self._entries[key]
        for link in links:
            target = link.target
            found = self._follow(key, "mentions", target)
            if found is None:
                is_dead = (
                    with_unwritten if link.is_wikilink else not is_file(self._vault, entry.path, target, self.probes)
                )
                if is_dead and target not in said:
                    said.add(target)
                    what = "entry" if link.is_wikilink else "file"
                    yield Problem(entry.path, link.line, f"the {link.kind} to {target!r} leads to no {what}")
            elif rival := find_rival(self._stems, target, entry.path, found):
                if target not in said:
                    said.add(target)
                    several = f"{rival} as well as {found.path}, which it leads to"
                    yield Problem(entry.path, link.line, f"the link to {target!r} may mean {several}; write the path")
            elif anchor := link.anchor:
                part = f"block {anchor}" if anchor.startswith("^") else f"heading {anchor!r}"
                message = f"the {link.kind} to '{target}#{anchor}' leads to a note without the {part}"
                problem = Problem(entry.path, link.line, message)
                self._parts.setdefault(found.path, {}).setdefault(anchor, []).append(problem)

    def _line_of(self, entry: StoredEntry, words: str) -> int:
        """Return the line in the file of some words in the frontmatter of an entry, else of the entry's first line."""
        text, entries = self._parse(entry.path)
        found = [one for one in entries if one.id == entry.id and one.line <= entry.line]
        return find_line(text, found[-1], words) if found else entry.line

    def _parse_file(self, path: str) -> tuple[str, tuple[Entry, ...]]:
        text = self._read(path)
        return text, parse_document(text, path).entries


def _read_text(vault: Vault, path: str) -> str:
    """Return the text of a file, empty if it cannot be read."""
    try:
        return decode_note(read_note_text(vault, path).data)[0]
    except (MemoryKBError, OSError):
        return ""


def is_file(vault: Vault, source: str, target: str, probes: dict[str, bool] | None = None) -> bool:
    """Return whether a relative link leads to a file that is no note of ours, or out of the vault.

    The paths that are looked for are added to `probes`, each with whether it is there.
    """
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target.lstrip("/")))
    if path.startswith("..") or _SITE_LINK.match(target):
        return True
    is_there = os.path.lexists(vault.resolve(path))
    if probes is not None:
        probes[path] = is_there
    return is_there


def check_index(vault: Vault, index: SqliteIndex) -> Iterator[Problem]:
    """Yield a problem for every difference between the index and the files, and for every fault of the index itself.

    All files are read, so that a change behind the same size and time is found.
    """
    yield from (Problem(index.path.name, 1, message) for message in index.check())
    added, changed, removed, _ = compare_with_disk(vault, index)
    hidden = find_hidden_changes(vault, index, {*added, *changed, *removed})
    for message, paths in (
        ("is not indexed yet", added),
        ("changed since it was indexed", changed),
        ("is indexed but gone from the disk", removed),
        ("is indexed differently from what it says", hidden),
    ):
        yield from (Problem(path, 1, message) for path in paths)


def sweep_leftovers(vault: Vault) -> Iterator[Path]:
    """Delete the temporary files that a killed write left behind; yield each."""
    for root in vault.roots:
        for folder, folders, files in os.walk(root.folder):
            folders[:] = [name for name in folders if name != ".git"]
            for name in files:
                file = Path(folder, name)
                is_ours = name.startswith(".memory-kb-") and name.endswith(".tmp")
                if is_ours and time.time() - file.lstat().st_mtime > _LEFTOVER_AGE:
                    file.unlink()
                    yield file
