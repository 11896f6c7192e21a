"""memory-kb: memories for agents and people, kept as Markdown, found through a disposable index."""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_PLACES = {
    "memory_kb.entry": ("Link",),
    "memory_kb.errors": ("MemoryKBError",),
    "memory_kb.kb": ("KnowledgeBase",),
    "memory_kb.model": ("Freshness", "Hit", "Parts", "Problem", "SearchResult"),
    "memory_kb.reports": ("EntryView", "Findings", "Learned", "LinkReport", "Reference", "Stats", "Status", "SyncReport"),
}
_HOMES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [  # noqa: PLE0604 - names that load on first use
    *sorted(_HOMES),
    "__version__",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that starting costs only what is needed."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
