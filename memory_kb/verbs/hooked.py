"""A vault with no more verbs than a hook needs: agents wait for it, and every module costs them time."""

from __future__ import annotations

from memory_kb.verbs.contexts import Contexts
from memory_kb.verbs.hooking import Hooking
from memory_kb.verbs.sessions import Sessions


class HookedVault(Hooking, Sessions, Contexts):
    """A vault as agents meet it at their hooks; `KnowledgeBase` has the same verb."""
