"""Mark, find and remove text that memory-kb added to a person's words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memory_kb.lazy_regex import lazy_regex

BEGIN, END = "<!-- memory-kb:begin -->", "<!-- memory-kb:end -->"
_COMMAND = lazy_regex(r"(?:^|[;&|(]\s*|\s)(?:\S*/)?(?:memory-kb|mkb|python\S* -m memory_kb)(?=\s|$)")
_OWN_TOOLS = lazy_regex(
    r"memory[-_]kb|^memory_(?:learn|recall|context|episode|procedure|outcome|stats|consolidate)$", re.IGNORECASE
)
# Blocks with an end of their own, then headings whose block goes on to the end of the text.
_BLOCKS = lazy_regex(
    r"<!--\s*memory-kb:(?:begin|start)\b[^>]*-->.*?(?:<!--\s*memory-kb:end\s*-->|\Z)"
    r"|<memory-kb\b[^>]*>.*?(?:</memory-kb>|\Z)"
    r"|^--- (?:Institutional Memory|Retrieved Memory) ---$.*?(?:^--- end ---$|\Z)"
    r"|^## Historical Learnings \(from previous sessions\).*\Z"
    r"|^## Relevant Guidelines\s+The following rules are based on past experience with similar tasks:.*\Z"
    r"|^## Patterns to Avoid\s+These patterns have caused problems in similar past work:.*\Z",
    re.DOTALL | re.MULTILINE,
)
_SIGNS = ("memory-kb", "Memory ---", "## Historical Learnings", "## Relevant Guidelines", "## Patterns to Avoid")


def mark_as_own(text: str) -> str:
    """Mark a text as ours before it is given to an agent.

    Example:
        >>> remove_injected("before " + mark_as_own("Use tabs.") + " after")
        'before  after'
    """
    return f"{BEGIN}\n{text}\n{END}"


def remove_injected(text: str) -> str:
    """Return what is left of a text without what memory-kb put there."""
    if not any(sign in text for sign in _SIGNS):
        return text
    return _BLOCKS.sub("", text)


def classify_own_text(text: str) -> str | None:
    """Return whether a text is ours: `whole`, `part`, or None.

    Example:
        >>> classify_own_text(mark_as_own("Use tabs.")), classify_own_text("Fix it. " + mark_as_own("Use tabs.")), classify_own_text("Fix it.")
        ('whole', 'part', None)
    """
    left = remove_injected(text)
    return None if left == text else "part" if left.strip() else "whole"


def is_own_call(tool: str | None, args: Mapping[str, object] | None) -> bool:
    """Return whether a tool call asks memory-kb, so that its result is our own text.

    Example:
        >>> is_own_call("mcp__memory-kb__memory_recall", None), is_own_call("Bash", {"command": "cd x && mkb search tabs"})
        (True, True)
        >>> is_own_call("Bash", {"command": "pytest tests/test_mkb.py"})
        False
    """
    if tool and _OWN_TOOLS.search(tool):
        return True
    command = (args or {}).get("command", (args or {}).get("cmd"))
    words = " ".join(map(str, command)) if isinstance(command, list) else command
    return isinstance(words, str) and _COMMAND.search(words[:2000]) is not None
