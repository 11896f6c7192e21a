"""Answers of language models that were paid for, kept beside the index."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

#: Answers kept; the oldest go first.
_MOST = 1_000


class Memo:
    """A folder of short lists by what was asked. Losing it costs money and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def recall(self, asked: str) -> tuple[str, ...] | None:
        """Return what was answered before, or None."""
        try:
            answer = json.loads(self._file(asked).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return tuple(map(str, answer)) if isinstance(answer, list) and answer else None

    def keep(self, asked: str, answer: tuple[str, ...]) -> None:
        """Keep an answer, if that can be written."""
        file = self._file(asked)
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            part = file.with_name(f"{file.name}.{os.getpid()}")
            part.write_text(json.dumps(answer, ensure_ascii=False), encoding="utf-8")
            part.replace(file)
            kept = sorted(self._folder.iterdir(), key=lambda old: old.stat().st_mtime)
            for old in kept[:-_MOST]:
                old.unlink(missing_ok=True)

    def _file(self, asked: str) -> Path:
        return (
            self._folder / f"{hashlib.sha256(asked.encode(errors='replace'), usedforsecurity=False).hexdigest()}.json"
        )
