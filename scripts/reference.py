"""The reference that follows from the code: tables for the manual, and the whole help of every command.

python scripts/reference.py commands    print the help of every command and subcommand
python scripts/reference.py python      print the table of the Python API
"""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections.abc import Iterator
from functools import cached_property

import click

from memory_kb import KnowledgeBase
from memory_kb.cli.app import cli
from memory_kb.services import Services

#: Services that other services use, and that callers have no need of.
_INNER = frozenset({"index", "writer", "memories", "models", "searching", "listing", "entries", "indexing", "watching"})


def python_table() -> str:
    """Return a table of every public verb: how it is called, and the first sentence about it."""
    with tempfile.TemporaryDirectory() as folder, KnowledgeBase.open(folder, folder, environ={"HOME": folder}) as kb:
        rows = [*_methods(kb), *_families(kb)]
    return "\n".join(["| call | what it does |", "|---|---|", *rows])


def _methods(kb: KnowledgeBase) -> Iterator[str]:
    own = [name for name, found in vars(KnowledgeBase).items() if not isinstance(found, property)]
    own += [name for name, found in vars(Services).items() if not isinstance(found, cached_property)]
    for name in own:
        if not name.startswith("_"):
            yield _row(f"kb.{name}", getattr(kb, name))


def _families(kb: KnowledgeBase) -> Iterator[str]:
    flat = {getattr(kb, name) for name, found in vars(KnowledgeBase).items() if isinstance(found, cached_property)}
    for family, found in sorted(vars(Services).items()):
        if isinstance(found, cached_property) and not family.startswith("_") and family not in _INNER:
            service = getattr(kb, family)
            for name, method in inspect.getmembers(service, inspect.ismethod):
                if not name.startswith("_") and method not in flat:
                    yield _row(f"kb.{family}.{name}", method)


def _row(call: str, method: object) -> str:
    first = (inspect.getdoc(method) or "").partition("\n")[0].replace("|", "\\|")
    return f"| `{call}` | {first} |"


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Context, click.Command]]:
    yield context, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            inner_context = inner.make_context(name, [], parent=context, resilient_parsing=True, terminal_width=100)
            yield from _commands(inner, inner_context)


def _all_commands() -> list[tuple[click.Context, click.Command]]:
    return list(_commands(cli, cli.make_context("memory-kb", [], resilient_parsing=True)))[1:]


def command_table() -> str:
    """Return a table of every command and subcommand: how it is called, and the first sentence of its help."""
    rows = [
        f"| `{context.command_path}` | {command.get_short_help_str(limit=10_000)} |"
        for context, command in _all_commands()
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def command_help() -> str:
    """Return the help of every command and subcommand, as Markdown."""
    return "\n".join(
        f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
        for context, command in _all_commands()
    )


if __name__ == "__main__":
    pages = {"commands": command_help, "python": python_table}
    if len(sys.argv) != 2 or sys.argv[1] not in pages:
        sys.exit(f"usage: scripts/reference.py {'|'.join(pages)}")
    print(pages[sys.argv[1]]())
