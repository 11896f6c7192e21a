"""Telling the server that `install` writes from one that somebody wrote by hand under the same name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_PROGRAM = re.compile(r"(?:.*[/\\])?(?:memory-kb|mkb)(?:\.exe|\.cmd)?", re.IGNORECASE)
_FIXED = {"type": ("stdio", "local"), "enabled": (True,)}


def has_all(found: object, wanted: Mapping[str, Any]) -> bool:
    """Tell whether a server has all that ours has, and perhaps more.

    Example:
        >>> has_all({"command": "kb", "enabled": False}, {"command": "kb"}), has_all({"command": "x"}, {"command": "kb"})
        (True, False)
    """
    return isinstance(found, Mapping) and all(name in found and found[name] == value for name, value in wanted.items())


def runs_us(found: object) -> bool:
    """Tell whether a server is memory-kb's, however it is called.

    Example:
        >>> runs_us({"command": "/opt/bin/memory-kb", "args": ["mcp", "--profile", "full"]}), runs_us({"command": "/opt/x"})
        (True, False)
    """
    return _after_program(_words(found)) is not None


def is_written_by_us(found: object) -> bool:
    """Tell whether a server is one that `install` could have written, in this version or another, for some vault.

    Example:
        >>> is_written_by_us({"command": "memory-kb", "args": ["mcp", "--vault", "/notes"]})
        True
        >>> is_written_by_us({"command": "memory-kb", "args": ["mcp"], "env": {"A": "b"}})
        False
        >>> is_written_by_us({"command": ["python", "-m", "memory_kb", "mcp"], "type": "local", "enabled": True})
        True
    """
    if not isinstance(found, Mapping) or any(
        found[name] not in _FIXED.get(name, ()) for name in found if name not in ("command", "args")
    ):
        return False
    rest = _after_program(_words(found))
    return rest is not None and rest[:1] == ["mcp"] and (rest[1:] == [] or (len(rest) == 3 and rest[1] == "--vault"))


def _words(found: object) -> list[str]:
    """Return the command line of a server."""
    if not isinstance(found, Mapping):
        return []
    command, args = found.get("command"), found.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    return words if all(isinstance(word, str) for word in words) else []


def _after_program(words: Sequence[str]) -> list[str] | None:
    """Return what memory-kb is called with, or None where it is another program."""
    if words and _PROGRAM.fullmatch(words[0]):
        return list(words[1:])
    return list(words[3:]) if list(words[1:3]) == ["-m", "memory_kb"] else None
