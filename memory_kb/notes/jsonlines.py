"""Logs of one JSON object a line, only ever appended to."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from memory_kb.plainfiles import open_plain, read_plain

#: A longer line is none of ours.
_MAX_LINE = 16_000_000
#: Bytes that are read at a time.
_BLOCK = 1 << 20


def append(path: Path, lines: Sequence[Mapping[str, Any]], *, force: bool = False) -> None:
    """Write some objects at the end of a file with one write, making the file where there is none.

    A line that a killed writer left unfinished is closed first. With `force` they are on the disk
    when this returns.

    Raises:
        OSError: they cannot be written.
    """
    data = b"".join(map(dump, lines))
    descriptor = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        if size and (stream.seek(size - 1), stream.read(1))[1] != b"\n":
            data = b"\n" + data
        while data:
            data = data[stream.write(data) :]
        if force:
            os.fsync(stream.fileno())


def dump(line: Mapping[str, Any]) -> bytes:
    r"""Return an object as a line.

    Example:
        >>> dump({"a": "ü"}).decode()
        '{"a": "ü"}\n'
    """
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


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


def _parse_beginning(line: bytes, until: str) -> Mapping[str, Any] | None:
    """Return what an object on a whole line holds before a key; within texts a quote is written otherwise.

    Example:
        >>> _parse_beginning(dump({"id": 'a, "much": ', "much": "x" * 9}), "much")
        {'id': 'a, "much": '}
        >>> _parse_beginning(b'{"id": "a", "much": "xx', "much") is None
        True
    """
    beginning, key, _ = line.partition(f', "{until}": '.encode())
    return parse(beginning + b"}" if key and line.endswith(b"}\n") else line)


def mark_of(text: str) -> bytes:
    """Return how a text stands in the lines that hold it.

    Example:
        >>> mark_of("s1") in dump({"session": "s1"}), mark_of("s1") in dump({"session": "s10"})
        (True, False)
    """
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")


def read(path: Path, *marks: bytes, start: int = 0, until: str | None = None) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file in order, from a byte on; what nobody can read is passed over.

    With `marks`, lines in which none of them stands are not looked into. With `until`, only what was
    written before the key of that name is.
    """
    return (found for _, found in read_raw(path, *marks, start=start, until=until))


def read_raw(
    path: Path, *marks: bytes, start: int = 0, until: str | None = None
) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """Yield the objects of a file as `read` does, each behind its line."""
    try:
        stream = read_plain(path)
    except FileNotFoundError:
        return
    with stream:
        stream.seek(start)
        for block in _blocks(stream):
            for line in _marked(block, marks) if marks else io.BytesIO(block):
                found = parse(line) if until is None else _parse_beginning(line, until)
                if found is not None:
                    yield line, found


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield what a file holds, many whole lines at a time; the middle of a line that is none of ours is left out."""
    rest = b""
    while data := stream.read(_BLOCK):
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end]
            rest = data[end:]
        elif len(rest) <= _MAX_LINE:
            rest += data
    if rest:
        yield rest


def _marked(block: bytes, marks: Sequence[bytes]) -> Iterator[bytes]:
    r"""Yield the lines that hold one of the marks, without a look at each of the others.

    Example:
        >>> list(_marked(b"a1\nb2\na3 b\n", [b"3", b"a"]))
        [b'a1\n', b'a3 b\n']
    """
    places = {mark: block.find(mark) for mark in marks}
    while found := [place for place in places.values() if place >= 0]:
        first = min(found)
        start, end = block.rfind(b"\n", 0, first) + 1, block.find(b"\n", first) + 1 or len(block)
        yield block[start:end]
        for mark, place in places.items():
            if 0 <= place < end:
                places[mark] = block.find(mark, end)


def replace(path: Path, lines: Iterable[bytes]) -> None:
    """Put a file with these lines in the place of another, on the disk when this returns.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    part = path.with_name(f"{path.name}.tmp")
    descriptor = open_plain(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(descriptor, "wb") as stream:
        stream.writelines(line if line.endswith(b"\n") else line + b"\n" for line in lines)
        stream.flush()
        os.fsync(descriptor)
    os.replace(part, path)
