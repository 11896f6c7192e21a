"""memory-kb: memories for agents and people, kept as Markdown, found through a disposable index."""

from memory_kb.errors import MemoryKBError
from memory_kb.kb import KnowledgeBase
from memory_kb.model import (
    EntryView,
    Findings,
    Freshness,
    Hit,
    Learned,
    Link,
    LinkReport,
    Parts,
    Problem,
    Reference,
    SearchResult,
    Stats,
    Status,
    SyncReport,
)

__version__ = "0.1.0"
__all__ = [
    "EntryView",
    "Findings",
    "Freshness",
    "Hit",
    "KnowledgeBase",
    "Learned",
    "Link",
    "LinkReport",
    "MemoryKBError",
    "Parts",
    "Problem",
    "Reference",
    "SearchResult",
    "Stats",
    "Status",
    "SyncReport",
    "__version__",
]
