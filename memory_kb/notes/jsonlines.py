"""Logs of one JSON object a line, only ever appended to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

#: A longer line is none of ours.
_MAX_LINE = 16_000_000


def append(path: Path, lines: Sequence[Mapping[str, Any]], *, force: bool = False) -> None:
    """Write some objects at the end of a file with one write, making the file where there is none.

    A line that a killed writer left unfinished is closed first. With `force` they are on the disk
    when this returns.

    Raises:
        OSError: they cannot be written.
    """
    data = b"".join(json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n" for line in lines)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0), 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        if size and (stream.seek(size - 1), stream.read(1))[1] != b"\n":
            data = b"\n" + data
        while data:
            data = data[stream.write(data) :]
        if force:
            os.fsync(stream.fileno())


def parse(line: bytes) -> Mapping[str, Any] | None:
    """Return the object on a line, or None where there is none.

    Example:
        >>> parse(b'{"a": 1}'), parse(b'{"a": '), parse(b"7")
        ({'a': 1}, None, None)
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file in order; what nobody can read is passed over."""
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return
    with stream:
        while line := stream.readline(_MAX_LINE):
            found = parse(line)
            if found is not None:
                yield found
