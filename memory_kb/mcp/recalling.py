"""What `memory_recall` does with its words: entries that are named, a search, or a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory_kb.context.framing import as_line
from memory_kb.errors import MemoryKBError, UsageError
from memory_kb.kb import KnowledgeBase
from memory_kb.mcp import answers
from memory_kb.mcp.answers import Answer
from memory_kb.model import SearchResult
from memory_kb.text import CHARS_PER_TOKEN, count_tokens
from memory_kb.words import KIND_ALIASES, KINDS, SCOPE_ALIASES, SCOPES, TYPES

#: Hits and characters of a recall that names neither (S1-27).
LIMIT, MAX_LIMIT, MAX_CHARS = 8, 100, 8_000
_LAYERS = tuple(dict.fromkeys(kind.layer for kind in KINDS.values()))
#: The most entries of one call by their ids.
_MOST_NAMED = 50


def split_scope(word: str | None) -> tuple[str | None, str | None]:
    """Return the level that a scope names, or the glob of files (C-12).

    Example:
        >>> split_scope("global"), split_scope("src/api/**"), split_scope("all")
        (('global', None), (None, 'src/api/**'), (None, None))
    """
    level = (word or "").strip().lower()
    if level in ("", "all"):
        return None, None
    return (level, None) if level in (*SCOPES, *SCOPE_ALIASES) else (None, (word or "").strip())


def sort_words(kinds: Sequence[str], types: Sequence[str], layers: Sequence[str]) -> dict[str, list[str]]:
    """Return the kinds and types that are wanted; a kind that stands as a type is one, and a layer is its kinds (S1-21).

    Raises:
        UsageError: there is no such layer, or nothing of the kind is in it.

    Example:
        >>> sort_words([], ["policy"], []), sort_words(["corrective"], [], ["all"]), sort_words([], [], ["episodic", "procedural"])
        ({'kind': ['policy']}, {'type': ['corrective']}, {'kind': ['skill', 'episode']})
        >>> sort_words(["workflow", "rule"], [], ["procedural"])
        {'kind': ['skill']}
    """
    wanted = [word.strip().lower() for word in (*kinds, *types)]
    named = [KIND_ALIASES.get(word, word) for word in wanted if word != "all" and word not in TYPES]
    chosen = [layer for word in layers if (layer := word.strip().lower())]
    unknown = [layer for layer in chosen if layer not in (*_LAYERS, "all")]
    if unknown:
        raise UsageError(f"unknown layer {unknown[0][:40]!r}", f"it may be all, {', '.join(_LAYERS)}")
    if chosen and "all" not in chosen:
        within = [name for name, kind in KINDS.items() if kind.layer in chosen]
        fitting = [name for name in named if name in within or name not in KINDS] if named else within
        if not fitting:
            raise UsageError(
                f"nothing of kind {', '.join(named)} is in layer {', '.join(chosen)}", f"there are {', '.join(within)}"
            )
        named = fitting
    found = {"kind": named, "type": [word for word in wanted if word in TYPES]}
    return {name: words for name, words in found.items() if words}


def recall(kb: KnowledgeBase, given: Mapping[str, Any]) -> Answer:
    """Return what is asked for: entries by their ids, the hits of a query, or a list.

    Raises:
        UsageError: there is nothing to go by, or a word is not one of the format's.
        UnknownEntry: no entry is called so.
    """
    named = [name.strip() for name in (*given.get("id", "").split("\n"), *given.get("ids", ())) if name.strip()]
    if named:
        return _show(kb, list(dict.fromkeys(named)), given)
    if [word.strip().lower() for word in given.get("kind", ())] == ["session"]:
        return recall_sessions(kb, given)
    level, glob = split_scope(given.get("scope"))
    filters: dict[str, Any] = {name: given[name] for name in ("job", "task") if given.get(name)}
    filters |= sort_words(given.get("kind", ()), given.get("type", ()), given.get("layer", ()))
    file = given.get("file") or glob
    filters |= {"scope": level} if level else {}
    filters |= {"file": file} if file else {}
    query = given.get("query", "").strip()
    limit = min(MAX_LIMIT, max(1, given.get("limit", LIMIT)))
    tokens = max(0, given.get("max_tokens", 0))
    if query or file:
        most = given.get("max_chars", 0) or int(tokens * CHARS_PER_TOKEN)
        result = kb.search(query, limit=limit, max_chars=most if most > 0 else MAX_CHARS, **filters)
        return _fit(result, query or str(file), tokens)
    if not filters:
        raise UsageError("there is nothing to look for", "give a query in words, an id, or a file")
    return answers.tell_list(kb.list(**filters), limit)


def recall_sessions(kb: KnowledgeBase, given: Mapping[str, Any]) -> Answer:
    """Return past sessions that fit a query, each with its best event."""
    filters: dict[str, Any] = {
        name: given.get(name) for name in ("session", "agent", "since", "until", "outcome", "job", "task")
    }
    found = kb.sessions.search(given.get("query", ""), limit=max(1, min(MAX_LIMIT, given.get("limit", 10))), **filters)
    names = ("session", "seq", "ts", "type", "role", "tool", "ok")
    data = {"hits": [{name: getattr(hit, name) for name in names} for hit in found.hits], "degraded": found.degraded}
    lines = "\n".join(
        f"- {hit.session} {hit.seq} {hit.ts[:10]} ({hit.role or hit.event or hit.type}): {as_line(hit.content_snippet)}"
        for hit in found.hits
    )
    if not found.hits:
        return Answer("No session fits.", data)
    return answers.quote(f"{len(found.hits)} past session{'' if len(found.hits) == 1 else 's'}.", [lines], data)


def _fit(result: SearchResult, asked: str, tokens: int) -> Answer:
    """Return the hits that fit into a budget with all that stands around them, the first in any case."""
    count = len(result.hits)
    answer = answers.tell_search(result, asked)
    while tokens and count > 1 and count_tokens(answer.text) > tokens:
        count -= 1
        answer = answers.tell_search(replace(result, hits=result.hits[:count]), asked)
    return answer


def _show(kb: KnowledgeBase, named: Sequence[str], given: Mapping[str, Any]) -> Answer:
    """Return entries whole, as far as they fit; what cannot be found is told beside the others."""
    most = max(0, given.get("max_chars", 0)) or int(max(0, given.get("max_tokens", 0)) * CHARS_PER_TOKEN)
    if len(named) == 1:
        return answers.tell_entry(kb.show(named[0]), most)
    views, missing = [], list[str]()
    for name in named[:_MOST_NAMED]:
        try:
            views.append(kb.show(name))
        except MemoryKBError as exc:
            if not views and name == named[-1]:
                raise
            missing.append(str(exc))
    return answers.tell_entries(views, missing, most)
