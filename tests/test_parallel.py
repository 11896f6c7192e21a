"""The processes that the tests run in: what they report is what the run says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, write_files

FILES = {
    "test_good.py": "def test_good(): pass\n",
    "test_bad.py": "def test_bad():\n    print('said')\n    assert 1 == 2\n",
    "test_dies.py": "import os\n\ndef test_dies(): os._exit(0)\n",
}


def run_tests(folder: Path, *files: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "parallel", "-p", "no:cacheprovider", "--workers", "2"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")}
    write_files(folder, FILES)
    done = subprocess.run(
        [*command, *files], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_each_test_is_reported_once_with_what_it_printed(tmp_path: Path) -> None:
    code, output = run_tests(tmp_path, "test_good.py", "test_bad.py")
    assert code == 1
    assert "1 failed, 1 passed" in output
    assert output.count("said") == 2, output  # in the test and under what it printed


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_worker_that_dies_ends_the_run_with_the_name_of_its_test(tmp_path: Path) -> None:
    code, output = run_tests(tmp_path, "test_good.py", "test_dies.py")
    assert code == 1
    assert "a worker died in test_dies.py::test_dies" in output
