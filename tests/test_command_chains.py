"""A line of several commands is cut where the shell does, and the one that failed is told by what was written."""

from __future__ import annotations

import pytest

from memory_kb.learning.observation.chains import find_culprit, output_of, read_chain
from memory_kb.learning.observation.failures import read_failure

CULPRITS = [
    ("git add -A && git commit -qm x && git push", " ! [rejected] main -> main (fetch first)", 2),
    ("git add -A && git commit -qm x && git push", "nothing to commit, working tree clean", 1),
    ("python3 -m pip install --user setuptools && npm ci", "error: externally-managed-environment", 0),
    ("open -a Docker && sleep 20 && make itest", "Unable to find application named 'Docker'", 0),
    (
        "xcode-select --install; npm ci",
        "xcode-select: error: already installed\nnpm error ModuleNotFoundError: No module named 'distutils'",
        1,
    ),
    ("npm run build && ./deploy.sh", "> web@1.0.0 build\nbuilt in 3s\nError: the session has expired", 1),
    ("npm run build && npm test", "> web@1.0.0 build\nerror TS2304: Cannot find name 'x'.", 0),
    ("docker build -t a . && docker push a && ssh box run", "exec /a: exec format error", 2),
    ("docker build -t a . && docker push a", "denied: requested access to the resource is denied", 1),
    ("docker build -t a . && docker push a", "ERROR: failed to solve: process did not complete", 0),
    ("poetry run pytest -q && poetry run mypy .", "E   KeyError: 'x'\n1 failed in 0.1s", 0),
    ("poetry run pytest -q && poetry run mypy .", "3 passed\na.py:3: error: Incompatible types [arg-type]", 1),
    ("cd nowhere && make", "bash: line 1: cd: nowhere: No such file or directory", 0),
    ("make lint || make fix", "make: *** [fix] Error 1", 1),
    ("terraform fmt -check && terraform plan -out p", "Error: something else", 1),
    ("true; false", "", 1),
]


@pytest.mark.parametrize(("line", "output", "place"), CULPRITS)
def test_the_command_that_failed_is_told_by_the_output(line: str, output: str, place: int) -> None:
    assert find_culprit(read_chain(line), output) == place


def test_what_another_command_of_the_line_wrote_is_left_out() -> None:
    line, output = CULPRITS[4][:2]
    assert output_of(read_chain(line), 1, output) == "npm error ModuleNotFoundError: No module named 'distutils'"


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ('grep -rn "a\\|b" src | head', ['grep -rn "a\\|b" src']),
        ("echo $(a; b) && c", ["echo $(a; b)", "c"]),
        ("(cd web && npm test)", ["cd web", "npm test"]),
        ("a 2>&1 | tee x; b &> y & c", ["a 2>&1", "b &> y", "c"]),
        ("| a", []),
        ("", []),
    ],
)
def test_a_line_is_cut_where_the_shell_does(line: str, texts: list[str]) -> None:
    assert [link.first for link in read_chain(line)] == texts


@pytest.mark.parametrize(
    ("message", "quoted"),
    [
        (
            "Cannot connect at unix:///Users/kim/.colima/docker.sock",
            "Cannot connect at unix://$HOME/.colima/docker.sock",
        ),
        ("cannot read /home/mira/shop/a.toml", "cannot read ~/shop/a.toml"),
    ],
)
def test_a_home_is_not_named(message: str, quoted: str) -> None:
    failure = read_failure(message)
    assert failure
    assert failure.message == quoted
