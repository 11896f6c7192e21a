"""Read and write files of JSON objects, one a line, and skip torn lines."""

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

from memory_kb.regular_files import make_folder, open_for_reading, open_regular, replace_file
from memory_kb.text import load_json


def append_lines(path: Path, lines: Sequence[Mapping[str, Any]], *, force: bool = False) -> None:
    """Write some objects at the end of a file with one write, making file and folder where there are none.

    With `force` they are on the disk when this returns.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        descriptor = open_regular(path, flags)
    except FileNotFoundError:
        make_folder(path.parent)
        descriptor = open_regular(path, flags)
    with _named(path), os.fdopen(descriptor, "r+b", buffering=0) as stream:
        append_bytes(stream, b"".join(map(dump_line, lines)))
        if force:
            os.fsync(stream.fileno())


def append_bytes(stream: FileIO, data: bytes) -> None:
    """Write lines at the end of an open file; a line that a killed writer left unfinished is closed first."""
    size = stream.seek(0, os.SEEK_END)
    if size and (stream.seek(size - 1), stream.read(1))[1] != b"\n":
        data = b"\n" + data
    while data:
        data = data[stream.write(data) :]


def dump_line(line: Mapping[str, Any]) -> bytes:
    """Return an object as a line."""
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def parse_line(line: bytes) -> Mapping[str, Any] | None:
    """Return the object on a line, or None where there is none."""
    try:
        found = load_json(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def json_needle(text: str) -> bytes:
    """Return how a text is in the lines that hold it.

    Example:
        >>> json_needle("s1") in dump_line({"session": "s1"}), json_needle("s1") in dump_line({"session": "s10"})
        (True, False)
    """
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")


def read_objects(path: Path, *marks: bytes, start: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file in order, from a byte on; what cannot be read is skipped.

    With `marks`, lines without any of them are not parsed.
    """
    return (found for _, found in read_raw_lines(path, *marks, start=start))


def read_raw_lines(path: Path, *marks: bytes, start: int = 0) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """Yield the objects of a file as `read` does, each behind its line."""
    try:
        stream = open_for_reading(path)
    except FileNotFoundError:
        return
    with stream:
        stream.seek(start)
        is_marked = re.compile(b"|".join(map(re.escape, marks))).search
        for line in filter(is_marked, stream):
            found = parse_line(line)
            if found is not None:
                yield line, found


def replace_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Replace a file by one with these lines, which is on the disk when this returns."""
    with _named(path):
        replace_file(path, b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines))


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the name of the file to errors that lack it, as that of a full disk."""
    try:
        yield
    except OSError as exc:
        raise OSError(exc.errno, exc.strerror, os.fspath(path)) from exc
