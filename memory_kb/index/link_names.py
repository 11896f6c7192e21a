"""The names by which links may call an entry, and the entry that a link leads to."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from memory_kb.index.sqlite import SqliteIndex
from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.links import find_links, is_attachment
from memory_kb.model import EVERYTHING, SCOPES, StoredEntry
from memory_kb.terms import name_key
from memory_kb.text import read_words

#: The day that a heading may begin with.
DAY_PREFIX = lazy_regex(r"^\[\d{4}-\d{2}-\d{2}\]\s*")
#: A wikilink in frontmatter as JSON; without quotes YAML reads one as a list in a list.
_IN_FIELDS = lazy_regex(r'\[\[("?)([^\[\]|#"]++)[^\[\]"]*+\1\]\]')


def read_metadata(entry: StoredEntry) -> dict[str, Any]:
    """Return an entry's frontmatter."""
    return json.loads(entry.metadata) if entry.metadata else {}


def named(index: SqliteIndex, wanted: Collection[tuple[str, str]]) -> dict[str, StoredEntry]:
    """Return the part of `name_entries` of all entries for some links, given as pairs of file and target."""
    return name_entries(entries_named(index, wanted))


def entries_named(
    index: SqliteIndex, wanted: Collection[tuple[str, str]], ids: Collection[str] = ()
) -> list[StoredEntry]:
    """Return all entries that some links may mean, or that have one of some ids, and others of their files."""
    keys = [(target.strip(), link_keys(target, source)) for source, target in wanted]
    stems = {posixpath.basename(key).removesuffix(".md") for _, pair in keys for key in pair}
    files = {path for path in index.file_hashes() if stem_of(path) in stems}
    files.update(index.files_with_ids({key for _, pair in keys for key in pair}.union(ids)))
    entries = index.entries_of(files)
    names = name_entries(entries)
    # Titles and aliases are asked for only where there is no file and no id.
    titles = {target for target, pair in keys if names.keys().isdisjoint(pair)}
    if not all(map(has_words, titles)):
        return list(index.entries(EVERYTHING))
    found = index.files_saying(titles, "title")
    return index.entries_of(files.union(found)) if found else entries


def has_words(text: str) -> bool:
    """Return whether a full-text search finds a text.

    Example:
        >>> has_words("Tea 2"), has_words("??")
        (True, False)
    """
    return any(sign.isalnum() for sign in text)


def find_targets(text: str) -> tuple[str, ...]:
    """Return the notes that the links of a text name, each once."""
    return tuple(dict.fromkeys(link.target for link in find_links(text) if not link.is_attachment))


def targets_in_fields(entry: StoredEntry) -> tuple[str, ...]:
    """Return the notes that the frontmatter of an entry names in wikilinks, as in `up: "[[Tea]]"`."""
    if not entry.metadata or "[[" not in entry.metadata:
        return ()
    found = (one[2].strip() for one in _IN_FIELDS.finditer(entry.metadata))
    return tuple(dict.fromkeys(target for target in found if target and not is_attachment(target)))


def links_of(entry: StoredEntry, text: str) -> Iterator[tuple[str, str]]:
    """Yield the `(relation, target)` pairs of an entry: its typed links, then the links of its other fields and its text."""
    yield from typed_links(entry)
    for target in dict.fromkeys((*targets_in_fields(entry), *find_targets(text))):
        yield "mentions", target


def typed_links(entry: StoredEntry) -> Iterator[tuple[str, str]]:
    """Yield the `(relation, target)` pairs that an entry lists in its field `links`."""
    listed = read_metadata(entry).get("links") if entry.metadata and '"links"' in entry.metadata else None
    for link in listed if isinstance(listed, list) else ():
        if isinstance(link, dict) and link.get("to") is not None:
            yield str(link.get("relation") or "related_to"), str(link["to"])


def name_entries(entries: Sequence[StoredEntry]) -> dict[str, StoredEntry]:
    """Return the entries by each name that a link may use, in lower case.

    That is its id, its file's path or the end of it, its title, or an alias; where two entries are called
    the same, this is the order in which they win. Of two files with the same name the one with the shorter path wins.
    A path behind a slash is the whole path and nothing else.
    """
    by_scope = sorted(entries, key=lambda entry: -SCOPES.index(entry.scope))
    return dict(reversed(list(_list_names(entries)))) | {entry.id.casefold(): entry for entry in by_scope}


def _list_names(entries: Sequence[StoredEntry]) -> Iterator[tuple[str, StoredEntry]]:
    """Yield the names other than ids, each with its entry, in the order in which they win."""
    files = [(entry, file_names(entry.path)) for entry in entries]
    for entry, (whole, *_) in files:
        yield from ((name, entry) for name in (whole, f"{whole}.md", f"/{whole}", f"/{whole}.md"))
    for entry, (_, *ends) in sorted(files, key=lambda one: (one[0].path.count("/"), len(one[0].path))):
        yield from ((name, entry) for end in ends for name in (end, f"{end}.md"))
    for entry in entries:
        yield from ((name_key(name), entry) for name in (entry.title, DAY_PREFIX.sub("", entry.title)))
    for entry in entries:
        yield from ((name_key(alias), entry) for alias in aliases_of(entry))


_T = TypeVar("_T")


def resolve(names: Mapping[str, _T], target: str, source: str = "") -> _T | None:
    """Return the target of a link in a file: a file in its own folder, else by the names of `name_entries`.

    Example:
        >>> names = {"/b/tea": 1, "tea": 2, "/a/milk.md": 3}
        >>> [resolve(names, *link) for link in (("Tea", "b/x.md"), ("Tea", "a/x.md"), ("../a/milk.md", "b/x.md"), ("milk", "x.md"))]
        [1, 2, 3, None]
    """
    path, name = link_keys(target, source)
    found = names.get(path)
    return names.get(name) if found is None else found


def link_keys(target: str, source: str) -> tuple[str, str]:
    """Return the two names by which the target of a link in a file is looked up: its path, then its text."""
    name = name_key(target.strip())
    folder = name_key(posixpath.dirname(source))
    return posixpath.normpath(posixpath.join("/", folder, name)), name


def find_rival(files: Mapping[str, Sequence[str]], target: str, source: str, found: StoredEntry) -> str | None:
    """Return a file that a link may mean as well as the one it leads to: called the same, and no deeper."""
    stem = name_key(target).removesuffix(".md")
    if "/" in stem or len(files.get(stem, ())) <= 1 or stem != stem_of(found.path) or found.id.casefold() == stem:
        return None
    if name_key(posixpath.dirname(found.path)) == name_key(posixpath.dirname(source)):
        return None
    depth = found.path.count("/")
    return next((path for path in files[stem] if path != found.path and path.count("/") == depth), None)


def file_names(path: str) -> tuple[str, ...]:
    """Return the names of a file for links, in lower case: its path, and every end of it down to the file name.

    Example:
        >>> file_names("Notes/sub/Tea.md")
        ('notes/sub/tea', 'sub/tea', 'tea')
    """
    bare = name_key(path).removesuffix(".md")
    return (bare, *(bare[place + 1 :] for place, sign in enumerate(bare) if sign == "/"))


def stem_of(path: str) -> str:
    """Return the name of a file alone, in lower case."""
    return name_key(posixpath.basename(path)).removesuffix(".md")


def group_stems(entries: Iterable[StoredEntry]) -> dict[str, list[str]]:
    """Return the paths of files by the name they are called by."""
    found: dict[str, list[str]] = {}
    for path in dict.fromkeys(entry.path for entry in entries):
        found.setdefault(stem_of(path), []).append(path)
    return found


def aliases_of(entry: StoredEntry) -> tuple[str, ...]:
    """Return the further names of an entry, as Obsidian has them."""
    if not entry.metadata or '"alias' not in entry.metadata:
        return ()
    metadata = read_metadata(entry)
    return read_words(metadata.get("aliases", metadata.get("alias")))
