"""Find what a session used of what it was shown: by the words of its work, and by what its agents said of entries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from memory_kb.injected_text import is_own_call, remove_injected
from memory_kb.memory import Memory
from memory_kb.session_facts import Trace
from memory_kb.store.session_events import Event, strings_of
from memory_kb.store.session_log import SessionFiles
from memory_kb.terms import has_cjk, needs_cutting, word_tokens

#: The shortest word that says something, and the share of such words of an entry that occur where it was used.
_LONG, _USED = 4, 1 / 3
_WORD = re.compile(r"[^\W_]+")
_MARK = re.compile(r"\[memory-kb:\s*(helpful|harmful)\s+([^\[\]\n]{1,500}?)\s*\]", re.IGNORECASE)
_CREDIT_OF = {"helpful": "success", "harmful": "failure"}
#: What a mark begins with, in lower case.
_BEGINS = "[memory-kb:"


def words_of_work(events: Iterable[Event]) -> frozenset[str]:
    """Return the longer words of what agents said and did in a session; calls of memory-kb itself do not count."""
    found: set[str] = set()
    for event in events:
        if event.injected == "whole" or is_own_call(event.tool, event.args):
            continue
        if event.type == "message" and event.role == "assistant":
            found.update(_long_words(remove_injected(event.content or "")))
        elif event.type == "tool_call" and event.args:
            found.update(_long_words(" ".join(strings_of(event.args))))
    return frozenset(found)


def changed_files(traces: Iterable[Trace]) -> bool:
    """Return whether a session changed a file or committed."""
    return any(trace.changed or trace.commits for trace in traces)


def keep_used(
    shown: Iterable[str], memories: Iterable[Memory], work: frozenset[str], named: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the entries that a session used of what it was shown.

    Those are the ones in `named`, and those of whose longer words a third occur in what the session did.
    """
    texts = {memory.id: memory.text for memory in memories}

    def is_used(entry_id: str) -> bool:
        words = _long_words(texts.get(entry_id, ""))
        return entry_id in named or (bool(words) and len(words & work) >= _USED * len(words))

    return tuple(filter(is_used, shown))


def _long_words(text: str) -> frozenset[str]:
    """Return the longer words of a text, and of scripts without spaces the terms that these are cut into.

    Example:
        >>> sorted(_long_words("Run user_name twice")), sorted(_long_words("部署 user_name"))
        (['name', 'twice', 'user'], ['name', 'user', '部署'])
    """
    if not needs_cutting(text):
        return frozenset(word for word in _WORD.findall(text.casefold()) if len(word) >= _LONG)
    return frozenset(
        term for term in word_tokens(text.replace("_", " ")) if len(term) >= (2 if has_cjk(term) else _LONG)
    )


def parse_marks(text: str) -> dict[str, str]:
    """Return what a text says of entries; the last word on each counts.

    Example:
        >>> parse_marks("[memory-kb: helpful b-1, b-2] then // [memory-kb: Harmful b-2] - it broke the build")
        {'b-1': 'success', 'b-2': 'failure'}
    """
    marks: dict[str, str] = {}
    for found in _MARK.finditer(text):
        marks |= dict.fromkeys(filter(None, re.split(r"[,\s]+", found[2])), _CREDIT_OF[found[1].lower()])
    return marks


def find_marks(events: Iterable[Event]) -> dict[str, str]:
    """Return what was said of entries in a session: in messages and in what tools were called with.

    Results of tools are left out, since a file may hold the marks of another task.
    """
    marks: dict[str, str] = {}
    for event in events:
        if event.type not in ("message", "tool_call") or event.injected == "whole":
            continue
        for text in (event.content or "", *(strings_of(event.args) if event.args else ())):
            if _BEGINS in text.lower():
                marks |= parse_marks(remove_injected(text))
    return marks


def read_marks(files: SessionFiles, sessions: Iterable[str], shown: Sequence[str]) -> dict[str, str]:
    """Return what the agents of some sessions said of what was shown; ids may be cut where that is unique."""
    marks: dict[str, str] = {}
    for name in set(files.ids()).intersection(sessions):
        marks |= find_marks(files.read(name, only=lambda line: _BEGINS.encode() in line.lower()))
    resolved: dict[str, str] = {}
    for name, credit in marks.items():
        fitting = [name] if name in shown else [one for one in shown if one.startswith(name)]
        if len(fitting) == 1:
            resolved[fitting[0]] = credit
    return resolved
