"""Expressions are compiled when they are asked, and all of them can be."""

import subprocess
import sys

WATCH = """
import re
compiled, compile_now = [], re.compile
re.compile = lambda source, flags=0: compiled.append(str(source)) or compile_now(source, flags)
"""


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def test_loading_what_reads_sentences_compiles_almost_nothing() -> None:
    loads = "import memory_kb.learning.speech.capture, memory_kb.learning.observation.findings\n"
    loaded = run(WATCH + loads + "print(sum(map(len, compiled)))")
    asked = run(
        WATCH
        + loads
        + "memory_kb.learning.speech.capture.read_message('Look at the login test, please.')\nprint(sum(map(len, compiled)))"
    )
    assert int(loaded) < 30_000 < int(asked) / 3


def test_every_expression_can_be_compiled() -> None:
    program = """
import importlib, pkgutil, re
import memory_kb.expressions, memory_kb.learning
memory_kb.expressions.lazy_compile = re.compile
names = [found.name for found in pkgutil.walk_packages(memory_kb.learning.__path__, "memory_kb.learning.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
    assert int(run(program)) > 50
