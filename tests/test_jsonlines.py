"""Logs of one object a line: what is read of a file, whatever stands in it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.store import json_lines

LINES = st.one_of(
    st.dictionaries(
        st.sampled_from(["a", "b", "id"]), st.sampled_from(["s1", "s10", "ü", "x y", 7, None]), max_size=3
    ).map(json.dumps),
    st.sampled_from(["", "{", "7", "[]", '{"a": "s1"', "\r", "no json", '{"a":\r"s1"}', '{"a": "s1"}\r']),
)


def read_plainly(data: bytes, marks: list[bytes]) -> list[tuple[bytes, object]]:
    """Return the objects of all lines that hold a mark, line by line."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    held = ((line, json_lines.parse_line(line)) for line in lines if not marks or any(mark in line for mark in marks))
    return [(line, found) for line, found in held if found is not None]


@given(
    st.lists(LINES),
    st.booleans(),
    st.lists(st.sampled_from([b'"s1"', b"s1", b'"id"', b"\xc3", b"none of them"]), max_size=3),
)
def test_any_file_is_read_as_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ends: bool, marks: list[bytes]
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    data = ("\n".join(lines) + "\n" * ends).encode()
    file.write_bytes(data)
    assert list(json_lines.read_raw_lines(file, *marks)) == read_plainly(data, marks)


def test_a_line_that_is_none_of_ours_hides_no_other(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(b'{"a": 1}\n' + b"x" * 20_000_000 + b'\n{"a": 2}\n')
    assert [line["a"] for line in json_lines.read_objects(file)] == [1, 2]


def test_reading_begins_where_it_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    json_lines.append_lines(file, [{"id": "one"}, {"id": "two"}])
    start = len(json_lines.dump_line({"id": "one"}))
    assert list(json_lines.read_objects(file, b'"id"', start=start)) == [{"id": "two"}]


def test_a_full_disk_leaves_a_log_as_it_was_and_is_reported_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "log.jsonl"
    json_lines.append_lines(file, [{"a": 1}])

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    writes: list[Callable[[], None]] = [
        lambda: json_lines.replace_lines(file, [b"{}"]),
        lambda: json_lines.append_lines(file, [], force=True),
    ]
    for write in writes:
        with pytest.raises(OSError, match="No space left") as raised:
            write()
        assert raised.value.filename == str(file)
        assert [(one, one.read_bytes()) for one in tmp_path.rglob("*") if one.is_file()] == [(file, b'{"a": 1}\n')]
