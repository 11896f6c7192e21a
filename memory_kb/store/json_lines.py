"""Read and write files of JSON objects, one a line, and skip torn lines; read arrays up to where they break."""

import contextlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.regular_files import make_folder, open_for_reading, open_regular
from memory_kb.text import json_decoder, load_json

_BLANKS = lazy_regex(r"[ \t\r\n]*")


def append_lines(path: Path, lines: Sequence[Mapping[str, Any]], *, force: bool = False) -> None:
    """Write some objects at the end of a file with one write, making file and folder where there are none.

    A line that a killed writer left unfinished is closed first. With `force` they are on the disk when this returns.
    """
    data = b"".join(map(dump_line, lines))
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        descriptor = open_regular(path, flags)
    except FileNotFoundError:
        make_folder(path.parent)
        descriptor = open_regular(path, flags)
    with _named(path), os.fdopen(descriptor, "r+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        if size and (stream.seek(size - 1), stream.read(1))[1] != b"\n":
            data = b"\n" + data
        while data:
            data = data[stream.write(data) :]
        if force:
            os.fsync(stream.fileno())


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
    part = path.with_name(f"{path.name}.tmp")
    try:
        with _named(path), os.fdopen(open_regular(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
            stream.writelines(line if line.endswith(b"\n") else line + b"\n" for line in lines)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the name of the file to errors that lack it, as that of a full disk."""
    try:
        yield
    except OSError as exc:
        raise OSError(exc.errno, exc.strerror, os.fspath(path)) from exc


class Element(NamedTuple):
    """An element of an array, counted from 1; or `wrong`, after which nothing more is read."""

    number: int
    value: Any = None
    wrong: str | None = None


def iterate_array(text: str, keys: tuple[str, ...] = ()) -> Iterator[Element]:
    """Yield the elements of an array.

    Of an object, any of `keys` may hold the array; without them the object itself is the one element.

    Example:
        >>> [one.value for one in iterate_array('{"count": 1, "results": [7, 8]}', ("results",))]
        [7, 8]
        >>> list(iterate_array("[1, oops]"))[-1].wrong
        'not valid JSON after element 1 (line 1)'
    """
    at, number = _skip(text, int(text.startswith("\ufeff"))), 1
    try:
        if text.startswith("{", at):
            whole, _ = json_decoder().raw_decode(text, at)
            found = next((whole[key] for key in keys if isinstance(whole.get(key), list)), [whole])
            yield from itertools.starmap(Element, enumerate(found, 1))
        elif not text.startswith("[", at):
            yield Element(0, wrong="not a JSON array" if at < len(text) else "it is empty")
        else:
            at = _skip(text, at + 1)
            while not text.startswith("]", at):
                value, at = json_decoder().raw_decode(text, at)
                yield Element(number, value)
                number, at = number + 1, _skip(text, at)
                if text.startswith(",", at):
                    at = _skip(text, at + 1)
                elif not text.startswith("]", at):
                    yield _broken(text, at, number)
                    return
    except (ValueError, RecursionError):
        yield _broken(text, at, number)


def _skip(text: str, at: int) -> int:
    """Return the next place in a text without a blank."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _broken(text: str, at: int, number: int) -> Element:
    behind = f" after element {number - 1}" if number > 1 else ""
    return Element(number, wrong=f"not valid JSON{behind} (line {text.count(chr(10), 0, at) + 1})")
