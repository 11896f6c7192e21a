"""Which entries the runs of a vault have made: what is gone since was taken away by a person and does not come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_kb.notes import jsonlines
from memory_kb.plainfiles import read_plain

#: Bytes by which is seen that the log only grew since it was read.
_SAMPLE = 256


@dataclass(frozen=True, slots=True)
class Creations:
    """The entries that runs have made, by the time of the run; empty where the log forgot it.

    Attributes:
        size: how far the log was read.
        last: the bytes before that, by which is seen whether it only grew.
    """

    times: Mapping[str, str] = field(default_factory=dict)
    inode: int = 0
    size: int = 0
    last: bytes = b""

    def since(self, moment: str) -> frozenset[str]:
        """Return those of a day or moment and later ones."""
        return frozenset(entry_id for entry_id, time in self.times.items() if time >= moment)


def read_creations(file: Path, known: Creations | None = None) -> Creations:
    """Return what the runs of a log of decisions made, reading on where `known` ends."""
    try:
        state = file.stat()
    except FileNotFoundError:
        return Creations()
    known = known or Creations()
    if known.inode != state.st_ino or known.size > state.st_size or known.last != _bytes_before(file, known.size):
        known = Creations()
    elif known.size == state.st_size:
        return known
    times = dict(known.times)
    for line in jsonlines.read(file, b'"create"', b'"made"', start=known.size, until="splices"):
        times.update((entry_id, str(line.get("time") or "")) for entry_id in made_by(line))
    last = _bytes_before(file, state.st_size)
    # Where somebody is writing the last line, all is read again the next time.
    return Creations(times, state.st_ino, state.st_size, last) if last.endswith(b"\n") else Creations(times)


def _bytes_before(file: Path, place: int) -> bytes:
    with read_plain(file) as stream:
        stream.seek(max(0, place - _SAMPLE))
        return stream.read(min(place, _SAMPLE))


def made_by(line: Mapping[str, Any]) -> Sequence[str]:
    """Return the ids of the entries that a line of the log tells were made.

    Example:
        >>> made_by({"action": "create", "id": "a"}), made_by({"made": ["b", "c"]}), made_by({"action": "move", "id": "a"})
        (['a'], ['b', 'c'], [])
    """
    if isinstance(line.get("made"), list):
        return [str(entry_id) for entry_id in line["made"]]
    return [line["id"]] if line.get("action") == "create" and line.get("id") else []
