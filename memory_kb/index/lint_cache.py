"""Cache what `lint` and `doctor` find: in each file by the hash of its content, and in all of them together."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.credentials import describe_secret, locate_secrets
from memory_kb.markdown.links import find_links, find_percent_comments, is_within
from memory_kb.model import StoredEntry
from memory_kb.regular_files import make_folder, open_for_reading, replace_file
from memory_kb.text import load_json

#: Its folder in the machine folder.
LINT_CACHE = "lint"
#: Grows with every change of what is found, so that findings of an older version are not used.
_VERSION = 11
#: From `_MANY` files on, further processes help; they get `_BATCH` files at a time, in rounds of `_ROUND` batches each.
_MANY, _BATCH, _ROUND = 1_000, 64, 8
_CONFLICT = re.compile(r"^<{7} \S.*$(?=[\s\S]*?^={7}$[\s\S]*?^>{7} \S)", re.MULTILINE)


class LinkInText(NamedTuple):
    """A link of a text: what it names, the heading or `^block` within that, how it is written, and its line."""

    target: str
    anchor: str
    is_wikilink: bool
    line: int

    @property
    def kind(self) -> str:
        """Its name in messages."""
        return "wikilink" if self.is_wikilink else "link"


class FileFindings(NamedTuple):
    """The findings in one file that depend on no other: lines and messages, and the links of each entry, each once."""

    problems: Sequence[tuple[int, str]] = ()
    links: Mapping[str, Sequence[LinkInText]] = {}


#: Returns the entries of some files with their texts, those of a file together.
Fetch = Callable[[Sequence[str]], Iterable[tuple[StoredEntry, str]]]


def examine_texts(texts: Iterable[tuple[StoredEntry, str]]) -> FileFindings:
    """Return the findings in one file from the texts of its entries."""
    problems: list[tuple[int, str]] = []
    links: dict[str, list[LinkInText]] = {}
    for entry, body in texts:
        # One that spans title and text is said at the text.
        secrets = {one.line: one for one in reversed(list(locate_secrets(f"{entry.title}\n{body}")))}
        if 2 in secrets:
            secrets.pop(1, None)
        problems += [(entry.line + max(0, number - 2), describe_secret(one)) for number, one in secrets.items()]
        problems += _conflicts(body, entry.line)
        if found := list(_links(body, entry.line)):
            links.setdefault(entry.id, []).extend(found)
    return FileFindings(problems, links)


def _conflicts(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Yield line and message of each unresolved merge conflict; an example in a code block is none."""
    for found in _CONFLICT.finditer(text) if "<<<<<<<" in text else ():
        if text.count("```", 0, found.start()) % 2 == 0:
            message = "a conflict of a merge is not settled here; agents are shown both sides"
            yield line + text.count("\n", 0, found.start()), message


def _links(text: str, line: int) -> Iterator[LinkInText]:
    """Yield the links of a text, each once. What is commented out may name a heading that is yet to be written."""
    seen: set[tuple[str, str]] = set()
    place, comments = 0, find_percent_comments(text)
    for link in find_links(text):
        anchor = "" if is_within(link.span.start, comments) else link.anchor
        if (link.target, anchor) in seen or link.is_attachment:
            continue
        seen.add((link.target, anchor))
        line += text.count("\n", place, link.whole.start)
        place = link.whole.start
        yield LinkInText(link.target, anchor, link.is_wikilink, line)


class LintCache:
    """What `lint` and `doctor` found, as JSON in a folder that anyone may delete; without a folder, in memory.

    Under names it keeps `facts`, the findings in each file alone; `findings` and `map`, what `lint` found in all files
    together and the links between entries; and `lint` and `doctor`, the last pass of each.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._held: dict[str, Any] = {}
        self._folder = folder
        try:
            if folder:
                make_folder(folder)
        except OSError:
            self._folder = None

    @property
    def has_folder(self) -> bool:
        """Whether the findings are stored for the next process."""
        return self._folder is not None

    def of_files(self, hashes: Mapping[str, str], fetch: Fetch) -> dict[str, FileFindings]:
        """Return the findings in files, given by the hashes of their content, examining those that are not kept."""
        kept = self.read("facts") or {}
        found = {path: _unpack(kept[path][1]) for path in hashes if path in kept and kept[path][0] == hashes[path]}
        unknown = [path for path in hashes if path not in found]
        new = dict.fromkeys(unknown, FileFindings())
        for some in _examine_all(unknown, fetch):
            new |= some
        if new or kept.keys() - hashes.keys():
            self.keep(facts={path: (hashes[path], facts) for path, facts in (found | new).items()})
        return found | new

    def read(self, name: str) -> Any:
        """Return what was kept under a name, None if there is nothing."""
        if self._folder and name not in self._held:
            file = self._folder / f"{name}.json"
            with contextlib.suppress(OSError, ValueError, TypeError), open_for_reading(file) as stream:
                version, value = load_json(stream.read())
                self._held[name] = value if version == _VERSION else None
        return self._held.get(name)

    def keep(self, **values: object) -> None:
        """Store values of JSON, each under its name, in this order; the first that cannot be stored is the last."""
        self._held |= values
        # A full disk costs no finding.
        with contextlib.suppress(OSError):
            for name, value in values.items():
                if self._folder:
                    replace_file(self._folder / f"{name}.json", json.dumps([_VERSION, value]).encode())


def _examine_all(paths: Sequence[str], fetch: Fetch) -> Iterator[dict[str, FileFindings]]:
    """Yield the findings in some files after the other; of many, all processors examine some."""
    batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    processes = os.cpu_count() or 1
    # A fork of a process with threads may wait for ever for a lock that one of them held.
    is_parallel = sys.platform == "linux" and processes > 1 and threading.active_count() == 1
    done = 0
    if is_parallel and len(paths) >= _MANY:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        # Without room for processes this one does it all.
        with (
            contextlib.suppress(BrokenProcessPool, OSError),
            ProcessPoolExecutor(processes, get_context("fork"), _end_with_parent) as pool,
        ):
            # Some batches at a time, so that not all texts are in memory.
            for start in range(0, len(batches), _ROUND * processes):
                texts = [list(fetch(batch)) for batch in batches[start : start + _ROUND * processes]]
                for found in pool.map(_examine_batch, texts):
                    yield found
                    done += 1
    yield from (_examine_batch(fetch(batch)) for batch in batches[done:])


def _end_with_parent() -> None:
    """End this process when its parent is gone."""
    from multiprocessing import parent_process

    def wait() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _examine_batch(batch: Iterable[tuple[StoredEntry, str]]) -> dict[str, FileFindings]:
    by_file = itertools.groupby(batch, key=lambda one: one[0].path)
    return {path: examine_texts(texts) for path, texts in by_file}


def _unpack(facts: Sequence[Any]) -> FileFindings:
    problems, links = facts
    return FileFindings(problems, {entry_id: [LinkInText(*one) for one in found] for entry_id, found in links.items()})
