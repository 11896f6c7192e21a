"""KnowledgeBase: the one way in.

It wires the rooms together and holds no rules of its own.
"""

from __future__ import annotations

from memory_kb.verbs.indexing import Indexing
from memory_kb.verbs.learning import Learning
from memory_kb.verbs.lifecycle import Lifecycle
from memory_kb.verbs.searching import Searching
from memory_kb.verbs.sessions import Sessions
from memory_kb.verbs.undoing import Undoing
from memory_kb.verbs.watching import Watching


class KnowledgeBase(Searching, Learning, Undoing, Indexing, Watching, Sessions, Lifecycle):
    """A vault, open for reading and learning.

    Example:
        with KnowledgeBase.open("~/notes") as kb:
            for hit in kb.search("flaky tests", limit=5).hits:
                print(hit.score, hit.path, hit.title)
    """
