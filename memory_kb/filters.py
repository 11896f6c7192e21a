"""Words from callers, checked, as filters and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TypedDict, Unpack

from memory_kb.errors import UsageError
from memory_kb.model import Filters, Location
from memory_kb.text import printable
from memory_kb.words import KIND_ALIASES, KINDS, LEARNING_TYPES, SCOPE_ALIASES, SCOPES, STATUSES, TYPES

#: Filters that leave everything in.
EVERYTHING = Filters(kinds=tuple(KINDS), statuses=STATUSES, learning_types=LEARNING_TYPES)


class FilterWords(TypedDict, total=False):
    """The filters of search and list, in the words of the caller.

    Each list may also be one word. `file` is the path of a file of the project, `since` the first
    day, and `job` and `task` say whose siblings are hidden.
    """

    kind: Sequence[str]
    type: Sequence[str]
    learning_type: Sequence[str]
    scope: Sequence[str]
    tag: Sequence[str]
    status: Sequence[str]
    file: str | None
    job: str | None
    task: str | None
    since: date | None


def make_filters(**words: Unpack[FilterWords]) -> Filters:
    """Return filters from the words of a caller.

    Aliases of kinds and scopes resolve, and a word from nowhere is an error.

    Raises:
        UsageError: a word is not one of the format's, or a task is named without its job.

    Example:
        >>> make_filters(kind=["workflow"], scope="team").kinds
        ('skill',)
    """
    file, job, task = (
        printable(word) if word else None for word in (words.get("file"), words.get("job"), words.get("task"))
    )
    if task and not job:
        raise UsageError("a task is named without its job", "add --job")
    return Filters(
        kinds=_words("kind", words.get("kind", ()), KINDS, KIND_ALIASES),
        types=_words("type", words.get("type", ()), TYPES),
        learning_types=_words("learning type", words.get("learning_type", ()), LEARNING_TYPES),
        scopes=_words("scope", words.get("scope", ()), SCOPES, SCOPE_ALIASES),
        tags=tuple(map(printable, _listed(words.get("tag", ())))),
        statuses=_words("status", words.get("status", ()), STATUSES),
        file=file or None,
        job=job,
        task=task,
        since=words.get("since"),
    )


def _listed(words: Sequence[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _words(
    name: str,
    words: Sequence[str],
    known: Sequence[str] | Mapping[str, object],
    aliases: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    found = tuple((aliases or {}).get(word.lower(), word.lower()) for word in _listed(words))
    for word in found:
        if word not in known:
            raise UsageError(f"unknown {name} {word!r}", f"it may be {', '.join(known)}")
    return found


def make_place(scope: str, job: str | None, task: str | None) -> Location:
    """Return where a new entry goes.

    Raises:
        UsageError: the words contradict each other.

    Example:
        >>> make_place("project", "api", None)
        Location(scope='job', job='api', task=None, learning_type='task')
    """
    scope = SCOPE_ALIASES.get(scope, scope)
    for name in (job, task):
        if name is not None and (
            not name.isprintable() or not name.strip() or name.startswith(".") or "/" in name or "\\" in name
        ):
            raise UsageError(f"{name!r} is not a name for a job or task", "use letters, digits and dashes")
    if task and not job:
        raise UsageError("a task is named without its job", "add --job")
    if scope == "global" and not job:
        return Location("global")
    if scope == "project" or (scope == "job" and job) or (scope == "task" and task):
        return Location("task" if task else "job" if job else "project", job, task)
    raise UsageError(
        f"scope {scope!r} does not go with {'a job' if job else 'no job'}",
        "learn at global or project scope, or name --job and --task",
    )
