"""The examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import linecache

import pytest
from conftest import REPOSITORY

_PACKAGE = REPOSITORY / "memory_kb"
#: Each room, and the modules beside them.
ROOMS = ["", *sorted(folder.parent.name for folder in _PACKAGE.glob("*/__init__.py"))]


@pytest.mark.parametrize("room", ROOMS)
def test_examples_are_true(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The debugger that doctest prepares for each example looks at every file that was loaded.
    monkeypatch.setattr(linecache, "checkcache", lambda _=None: None)
    wrong = [name for name in _with_examples(room) if _failures(name)]
    assert wrong == []


def _with_examples(room: str) -> list[str]:
    files = [file for file in sorted((_PACKAGE / room).glob("*.py")) if ">>> " in file.read_text(encoding="utf-8")]
    return [".".join(file.relative_to(REPOSITORY).with_suffix("").parts) for file in files]


def _failures(module: str) -> int:
    return doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS).failed


def test_the_module_of_services_can_be_looked_into() -> None:
    assert doctest.DocTestFinder().find(importlib.import_module("memory_kb.services"))
