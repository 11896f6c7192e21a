"""KnowledgeBase: the one way in.

It wires the rooms together and holds no rules of its own. A mixin stands before those it builds on.
"""

from __future__ import annotations

from memory_kb.verbs.authoring import Authoring
from memory_kb.verbs.browsing import Browsing
from memory_kb.verbs.contexts import Contexts
from memory_kb.verbs.editing import Editing
from memory_kb.verbs.ending import Ending
from memory_kb.verbs.evaluating import Evaluating
from memory_kb.verbs.exposure import Exposures
from memory_kb.verbs.hooking import Hooking
from memory_kb.verbs.imports import Imports
from memory_kb.verbs.installing import Installing
from memory_kb.verbs.learning import Learning
from memory_kb.verbs.skillmoving import SkillMoving
from memory_kb.verbs.undoing import Undoing
from memory_kb.verbs.watching import Watching


class KnowledgeBase(
    Authoring,
    Browsing,
    Editing,
    Hooking,
    Ending,
    Evaluating,
    Contexts,
    Imports,
    Installing,
    Exposures,
    SkillMoving,
    Learning,
    Undoing,
    Watching,
):
    """A vault, open for reading and learning.

    Example:
        with KnowledgeBase.open("~/notes") as kb:
            for hit in kb.search("flaky tests", limit=5).hits:
                print(hit.score, hit.path, hit.title)
    """
