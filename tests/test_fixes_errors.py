"""The telling line of an output is the error, not what was only warned of, and it says of what sort it is."""

from __future__ import annotations

import pytest

from memory_kb.learning.observation.failures import read_failure

NO_SUDO = 'fatal: [web1]: FAILED! => {"msg": "Missing sudo password"}'


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (f"[WARNING]: Collection community.general does not support Ansible version 2.15.1\n{NO_SUDO}", NO_SUDO),
        ("npm warn EBADENGINE Unsupported engine\nnpm error Unable to authenticate", "Unable to authenticate"),
        ("pkg: warning: libfoo is not installed\nError: cannot open the ledger", "Error: cannot open the ledger"),
        ("warning: libfoo is not installed\nmake: *** [all] Error 1", "warning: libfoo is not installed"),
        ("DeprecationWarning: punycode\nError: cannot open the ledger", "Error: cannot open the ledger"),
        ("Warnings are errors: invalid width", "Warnings are errors: invalid width"),
    ],
)
def test_a_warning_is_not_the_error_where_there_is_one(output: str, message: str) -> None:
    failure = read_failure(output)
    assert failure
    assert failure.message == message


@pytest.mark.parametrize(
    ("line", "is_of_the_change"), [("FAILED tests/a.py::b - assert", True), ("Failed to connect to target", False)]
)
def test_only_what_a_test_says_is_a_failed_test(line: str, is_of_the_change: bool) -> None:
    failure = read_failure(f"error: it went wrong\n{line}")
    assert failure
    assert (failure.sort == "change") == is_of_the_change


@pytest.mark.parametrize(
    ("line", "sort"),
    [
        ("FATAL ERROR: required program JLinkExe not found; install it", "missing program"),
        ("Error: executable 'dot' could not be found", "missing program"),
        ("Error: the program ended early, no output found", "other"),
    ],
)
def test_a_program_that_there_is_not_is_about_the_set_up(line: str, sort: str) -> None:
    failure = read_failure(line)
    assert failure
    assert failure.sort == sort


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            "11:02:40  Encountered an error:\nParsing Error\n  Unknown profile 'kitchen'",
            "error: Unknown profile 'kitchen'",
        ),
        (
            "CMake Error at cmake/Find.cmake:12 (find_package):\n  Could not find zlib\n  in any folder.\n\nnext",
            "Could not find zlib in any folder.",
        ),
        ("    raise NotReady(\nE   kit.NotReady: Could not find the ledger", "kit.NotReady: Could not find the ledger"),
        (
            "-- KIT_ROOT not set, looking for it\nerror: no kit was found, cannot go on",
            "error: no kit was found, cannot go on",
        ),
        (
            "3/8 Test #3: window ......***Failed  0.02 sec\nkit.xcb: could not open a window",
            "kit.xcb: could not open a window",
        ),
        ("2031-02-03 11:02:40 cannot open the ledger", "cannot open the ledger"),
    ],
)
def test_the_error_is_what_says_what_is_wrong(output: str, message: str) -> None:
    failure = read_failure(output)
    assert failure
    assert failure.message == message


@pytest.mark.parametrize(
    ("line", "sort"), [("sh: 1: pylot: not found", "missing program"), ("the answer: not found", "other")]
)
def test_only_a_shell_misses_a_program(line: str, sort: str) -> None:
    failure = read_failure(line)
    assert failure
    assert failure.sort == sort


def test_what_a_tool_says_it_does_is_no_advice() -> None:
    does, told = (
        read_failure(f"{line}\nerror: no answer")
        for line in ("   Running `loader run --chip a1`", "try running `loader run --chip a1`")
    )
    assert does and not does.hints and not does.advice
    assert told and told.advice == ("loader run --chip a1",)
