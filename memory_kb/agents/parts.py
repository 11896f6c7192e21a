"""Our parts of an agent's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a JSON object at a path; a default is left alone where there is one, and stays."""

    path: tuple[str, ...]
    value: Any
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a JSON list at a path, known again by the `memory-kb hook` in its command."""

    path: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Table:
    """A TOML table."""

    path: tuple[str, str]
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """Our marked lines in a Markdown file."""

    word: str
    lines: str


Part = Member | Item | Table | Block


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file of an agent, and our parts of it.

    Attributes:
        names: its name from the project's or the user's folder; where the first is not there and
            another is, that one. `$NAME/` at the front is a variable with its default in
            `Agent.homes`.
        parts: in the order in which they are put in.
    """

    names: tuple[str, ...]
    parts: tuple[Part, ...]
