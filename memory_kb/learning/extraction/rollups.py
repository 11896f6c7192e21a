"""What a rollup reads: the learnings of the level below, never the sessions themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memory_kb.learning.extraction.conversation import Passage, Shown, clean
from memory_kb.learning.extraction.scopes import Pass, Scope
from memory_kb.learning.memories import Memory
from memory_kb.model import Location
from memory_kb.text import shorten

#: Fewer learnings than this have nothing in common.
FEWEST = 2
_MOST, _CHARS, _TOTAL = 60, 600, 10_000
#: What a session, its files or a person's preferences are, is no learning to roll up.
_KINDS = ("policy", "preference", "architecture", "decision", "fact", "rule", "pitfall")
#: Words that name a folder and no project in particular.
_COMMON = frozenset(
    {
        "project",
        "memory",
        "vault",
        "notes",
        "docs",
        "work",
        "code",
        "repo",
        "main",
        "test",
        "tests",
        "home",
        "data",
        "default",
    }
)


def choose_sources(scope: Scope, place: Location, memories: Iterable[Memory]) -> tuple[Memory, ...]:
    """Return the learnings that a rollup reads, in the order in which they count: the weightiest first.

    `place` is where its own learnings go. The level below is the same task for the team, the tasks
    of the job for the session, all jobs for the project, the project for everything.
    """
    fitting = [
        one
        for one in memories
        if one.place.scope == scope.sources
        and place.job in (None, one.place.job)
        and (scope.name != "team" or one.place.task == place.task)
        and one.is_live
        and not one.is_superseded
        and one.kind in _KINDS
        and one.place.learning_type != "proxy"
        and (one.is_ours or one.is_in_people_file or one.place.learning_type == "institutional")
        and one.word("extraction_scope") != scope.name
    ]
    fitting.sort(key=lambda one: (-one.importance, -one.reinforcement_count, one.path, one.line))
    kept: list[Memory] = []
    room = _TOTAL
    for one in fitting[:_MOST]:
        room -= len(_text_of(one)) + 40
        if room < 0:
            break
        kept.append(one)
    return tuple(kept)


def show_sources(sources: Sequence[Memory]) -> Shown:
    """Return learnings as what a model is shown, numbered from 1."""
    return Shown(tuple(Passage(number, one.kind, _text_of(one)) for number, one in enumerate(sources, 1)), len(sources))


def _text_of(memory: Memory) -> str:
    text = clean(memory.text)
    titled = text if memory.title and memory.title in text[:300] else f"{memory.title}\n{text}"
    return shorten(titled, _CHARS)


class Known(NamedTuple):
    """What is known already; `memory` is the entry that says it, None where it is a line of people's text."""

    text: str
    memory: Memory | None = None


def find_known(step: Pass, place: Location, memories: Iterable[Memory]) -> tuple[Known, ...]:
    """Return what is at a place already, waits for approval or was turned down, the newest first.

    For a norm that is also what people wrote into `institutional.md`.
    """
    there = [
        one
        for one in memories
        if one.place[:3] == place[:3]
        and one.text.strip()
        and ((one.kind == step.kind and one.is_ours) or (step.is_norm and one.place.learning_type == "institutional"))
    ]
    there.sort(key=lambda one: (one.created_at or "", one.path), reverse=True)
    return tuple(known for one in there for known in _known_of(one))


def _known_of(memory: Memory) -> list[Known]:
    if memory.place.learning_type != "institutional":
        return [Known(f"{memory.title}\n{strip_form(memory.text)}", memory)]
    return [Known(text) for line in memory.text.splitlines() if (text := line.lstrip("#*-> ").strip())]


def strip_form(text: str) -> str:
    """Return the body of an extracted learning without its heading and labels.

    Example:
        >>> strip_form("## [2026-01-02] Use UTC\\n\\n**Signal:** Said so.\\n**Implication:** Use it.")
        'Said so.\\nUse it.'
    """
    lines = (
        line.partition(":** ")[2] if line.startswith("**") else line
        for line in text.splitlines()
        if not line.startswith("## [")
    )
    return "\n".join(line for line in lines if line.strip())


def names_of(project: str, sources: Iterable[Memory]) -> tuple[str, ...]:
    """Return the names that a learning for all projects may not mention.

    Words that could be about anything are left out.

    Example:
        >>> names_of("billing-api", ())
        ('billing-api',)
    """
    names = (project, *(name for one in sources for name in (one.place.job, one.place.task) if name))
    return tuple(dict.fromkeys(name for name in names if len(name) >= 4 and name.casefold() not in _COMMON))
