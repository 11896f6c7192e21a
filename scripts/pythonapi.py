"""The table of verbs in docs/python-api.md, made from the services and their docstrings."""

from __future__ import annotations

import functools
import inspect
import tempfile
from collections.abc import Iterator

from memory_kb import KnowledgeBase

#: Services that other services use, and that callers have no need of.
_INNER = frozenset({"index", "writer", "store", "models", "searching", "reading", "entries", "indexing", "watching"})


def describe() -> str:
    """Return a table of every public verb: how it is called, and the first sentence about it."""
    with tempfile.TemporaryDirectory() as folder, KnowledgeBase.open(folder, folder, environ={"HOME": folder}) as kb:
        rows = [*_methods(kb), *_families(kb)]
    return "\n".join(["| call | what it does |", "|---|---|", *rows])


def _methods(kb: KnowledgeBase) -> Iterator[str]:
    for name, found in vars(KnowledgeBase).items():
        if not name.startswith("_") and not isinstance(found, property | functools.cached_property):
            yield _row(f"kb.{name}", getattr(kb, name))


def _families(kb: KnowledgeBase) -> Iterator[str]:
    flat = {getattr(kb, name) for name, found in vars(KnowledgeBase).items() if hasattr(found, "find")}
    for family, found in vars(KnowledgeBase).items():
        if isinstance(found, functools.cached_property) and family not in _INNER:
            service = getattr(kb, family)
            for name, method in inspect.getmembers(service, inspect.ismethod):
                if not name.startswith("_") and method not in flat:
                    yield _row(f"kb.{family}.{name}", method)


def _row(call: str, method: object) -> str:
    first = (inspect.getdoc(method) or "").partition("\n")[0].replace("|", "\\|")
    return f"| `{call}` | {first} |"


if __name__ == "__main__":
    print(describe())
