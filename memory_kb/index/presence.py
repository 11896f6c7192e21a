"""Whether vault, index and configuration are still the ones that were opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from memory_kb.errors import VaultNotFound
from memory_kb.notes.vault import Vault


class Presence:
    """A memory of what was opened.

    A glance costs a few system calls; only when it shows something new is it looked at closely.

    Args:
        asked: the path that the vault was asked for by, which may be a link.
        find: tells what the vault is now.
    """

    def __init__(self, vault: Vault, machine: Path, asked: str, find: Callable[[], Vault]) -> None:
        self._vault, self._find = vault, find
        roots = [root.folder for root in vault.roots]
        self._folders = [asked, *map(str, (vault.folder, *roots, machine, machine / ".memory.db"))]
        self._files = [str(vault.home / "config.yaml"), str((vault.memory or vault.machine) / "config.yaml")]
        # What makes a plain folder a vault comes into being in there.
        self._hints = [] if vault.memory else [str(vault.folder / "memory")]
        self._known, self._seen = self._look_closely(), self._glance()

    def is_over(self) -> bool:
        """Tell whether something else, or nothing, stands in the place of what was opened."""
        seen = self._glance()
        if seen == self._seen:
            return False
        try:
            is_other = self._find() != self._vault or self._look_closely() != self._known
        except VaultNotFound:
            return True
        self._seen = seen
        return is_other

    def _look_closely(self) -> object:
        return _states(self._folders, _identity), _states(self._files, _state)

    def _glance(self) -> object:
        return self._look_closely(), _states(self._hints, _state)


def _states(
    places: Iterable[str], describe: Callable[[os.stat_result], tuple[int, ...]]
) -> tuple[tuple[int, ...] | None, ...]:
    found: list[tuple[int, ...] | None] = []
    for place in places:
        try:
            found.append(describe(os.stat(place)))
        except OSError:
            found.append(None)
    return tuple(found)


def _identity(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino


def _state(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
