"""What the scripts that measure share."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path


def copy_notes(source: Path, target: Path) -> None:
    """Copy the Markdown of a folder, and a vault's configuration; nothing hidden, no links."""

    def ignore(folder: str, names: list[str]) -> list[str]:
        places = {name: Path(folder, name) for name in names}
        is_kept = {
            name: place.is_dir() or place.suffix.lower() == ".md" or name == "config.yaml"
            for name, place in places.items()
        }
        return [name for name, place in places.items() if name[0] == "." or place.is_symlink() or not is_kept[name]]

    shutil.copytree(source, target, ignore=ignore)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies; 0 of none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0
