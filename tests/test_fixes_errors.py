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


@pytest.mark.parametrize(("line", "is_of_the_change"), [("FAILED tests/a.py::b - assert", True), ("Failed to connect to target", False)])
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
