"""Being told of changes by the system, where it can do that."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from memory_kb.index.marks import Marks
from memory_kb.index.mounts import remote_kind
from memory_kb.model import Region
from memory_kb.notes.vault import GLOBAL_PREFIX, MACHINE, Vault


class Unwatchable(Exception):
    """The system cannot tell of changes here; the message says why."""


class Signals(Protocol):
    """A source of marks."""

    def enter(self, path: str, location: str) -> None:
        """Watch a folder that is about to be listed, unless it is watched already."""

    def failure(self) -> str | None:
        """Return why no more signals will come, or None."""

    def has_lost_events(self) -> bool:
        """Tell whether more happened than was told, so that all has to be looked at and watched anew."""

    def close(self) -> None:
        """End all watching and the threads that do it."""


class Neighbours(NamedTuple):
    """Names to be heard of in a folder which itself is not one of notes.

    They put a region in doubt, or if there is none, everything that is watched.
    """

    folder: Path
    names: frozenset[str]
    region: Region | None


#: Names in a root which mean that the watch itself may have to change.
UPHEAVALS = (MACHINE, "config.yaml")


def neighbours(vault: Vault) -> Iterator[Neighbours]:
    """Yield what is to be heard of beside the roots: notes, and a root that comes into being."""
    for root in vault.roots:
        if root.top_notes:
            is_global = root.prefix == GLOBAL_PREFIX
            region = (
                Region(GLOBAL_PREFIX, str(root.folder), is_deep=True) if is_global else Region("", str(vault.folder))
            )
            yield Neighbours(root.top_notes[0].parent, frozenset(note.name for note in root.top_notes), region)
        if not root.folder.exists() and root.folder.parent.is_dir():
            yield Neighbours(root.folder.parent, frozenset({root.folder.name}), None)


def open_signals(vault: Vault, marks: Marks) -> Signals:
    """Return signals for all folders of notes.

    Raises:
        Unwatchable: there can be none.
    """
    for root in vault.roots:
        kind = remote_kind(root.folder)
        if kind:
            raise Unwatchable(f"{root.folder} is on {kind}, which does not announce changes")
    try:
        if sys.platform == "linux":
            from memory_kb.index.inotify import InotifySignals

            return InotifySignals(vault, marks)
        from memory_kb.index.observing import ObserverSignals

        return ObserverSignals(vault, marks)
    except OSError as exc:
        raise Unwatchable(f"file events are not available ({exc.strerror or exc})") from exc
    except (ImportError, RuntimeError) as exc:
        raise Unwatchable(f"file events are not available ({exc})") from exc


def readable(name: str | bytes) -> str:
    """Return a name as the walk spells it.

    Example:
        >>> readable("a.md"), readable(b"caf\\xe9.md")
        ('a.md', 'caf\\\\xe9.md')
    """
    raw = os.fsencode(name)
    return raw.decode("utf-8", "backslashreplace")
