"""memory-kb: memories for agents and people, in Markdown, with a disposable index."""

from __future__ import annotations

#: Type checkers take it for true. It is not imported, so that a command can set up its memory before it loads more.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from memory_kb.errors import MemoryKBError
    from memory_kb.kb import KnowledgeBase
    from memory_kb.model import Freshness, Hit, Parts, Problem, SearchResult, SyncReport
    from memory_kb.reports import (
        ChangeView,
        Conflict,
        EntryView,
        Findings,
        Learned,
        LinkReport,
        Reference,
        Retired,
        RunReport,
        RunView,
        Stats,
        Status,
        WatchReport,
    )

__version__ = "0.2.0"
__all__ = [
    "ChangeView",
    "Conflict",
    "EntryView",
    "Findings",
    "Freshness",
    "Hit",
    "KnowledgeBase",
    "Learned",
    "LinkReport",
    "MemoryKBError",
    "Parts",
    "Problem",
    "Reference",
    "Retired",
    "RunReport",
    "RunView",
    "SearchResult",
    "Stats",
    "Status",
    "SyncReport",
    "WatchReport",
    "__version__",
]

_HOMES = ("memory_kb.kb", "memory_kb.model", "memory_kb.reports", "memory_kb.errors")


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that starting costs only what is needed."""
    if name in __all__:
        import importlib

        for home in _HOMES:
            module = importlib.import_module(home)
            if name in vars(module):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
