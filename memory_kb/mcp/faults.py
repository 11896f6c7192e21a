"""Errors as a model should read them: one sentence, what to do, and no name of a place on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memory_kb.context.framing import as_line
from memory_kb.errors import (
    AmbiguousId,
    Forgotten,
    InvalidSettings,
    MemoryKBError,
    UnknownEntry,
    UnknownRun,
    VaultBusy,
    VaultNotFound,
)

_MAX = 600
_OPTION = re.compile(r"--([a-z][a-z-]*)")
#: What to do about an error, where a model has other means than a person at a terminal.
_HINTS: dict[type[MemoryKBError], str] = {
    UnknownEntry: "memory_recall with a query finds entries and their ids; an id may be cut to a unique beginning",
    AmbiguousId: "give more characters of the id",
    Forgotten: "somebody took it away on purpose: leave it, or ask the person",
    UnknownRun: "leave out the run to take back the last one",
    VaultBusy: "try again in a moment",
}
_UNOPENED = "the vault of this server cannot be opened"


def explain(error: BaseException, places: Iterable[tuple[str, str]] = ()) -> str:
    """Return an error as a sentence with what to do about it.

    Args:
        error: what was raised.
        places: folders of this machine and what to call them instead, the longest first.

    Example:
        >>> explain(VaultBusy("/home/ann/v/lock", 60), [("/home/ann/v", "the vault")])
        'another memory-kb process has held the vault/lock for 60 s; try again in a moment'
        >>> explain(ZeroDivisionError("x"))
        'memory-kb failed by a mistake of its own (ZeroDivisionError); nothing is lost, and the server wrote down the details. Go on without it.'
    """
    if isinstance(error, VaultNotFound | InvalidSettings) and not places:
        return f"{_UNOPENED} ({error.code}); the person who set it up finds the reason in the server's log, or with `memory-kb status`"
    if isinstance(error, MemoryKBError):
        hint = _HINTS.get(type(error)) or _translate(error.hint or "")
        return as_line(_hide(f"{error}{f'; {hint}' if hint else ''}", places), _MAX)
    if isinstance(error, OSError):
        return f"the system refuses: {error.strerror or type(error).__name__}; try again, or ask the person to look at the vault"
    if type(error).__name__ == "OperationalError":
        return f"the index does not answer ({as_line(str(error), 100)}); try again in a moment"
    name = type(error).__name__
    return f"memory-kb failed by a mistake of its own ({name}); nothing is lost, and the server wrote down the details. Go on without it."


def _translate(hint: str) -> str:
    """Return a hint for the command line as one for a tool, or nothing."""
    if hint.startswith("try: "):
        return ""
    return _OPTION.sub(lambda found: found[1].replace("-", "_"), hint)


def _hide(text: str, places: Iterable[tuple[str, str]]) -> str:
    for folder, name in places:
        text = text.replace(folder, name)
    return text
