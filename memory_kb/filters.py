"""Words from callers, checked, as filters and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from memory_kb.errors import UsageError
from memory_kb.model import Filters, Location
from memory_kb.words import KIND_ALIASES, KINDS, LEARNING_TYPES, SCOPE_ALIASES, SCOPES, STATUSES, TYPES


def make_filters(
    *,
    kind: Sequence[str] = (),
    type: Sequence[str] = (),
    learning_type: Sequence[str] = (),
    scope: Sequence[str] = (),
    tag: Sequence[str] = (),
    status: Sequence[str] = (),
    file: str | None = None,
    job: str | None = None,
    task: str | None = None,
    since: date | None = None,
) -> Filters:
    """Return filters; aliases of kinds and scopes resolve, and a word from nowhere is an error.

    Raises:
        UsageError: a word is not one of the format's, or a task is named without its job.

    Example:
        >>> make_filters(kind=["workflow"], scope="team").kinds
        ('skill',)
    """
    if task and not job:
        raise UsageError("a task is named without its job", "add --job")
    return Filters(
        kinds=_words("kind", kind, KINDS, KIND_ALIASES),
        types=_words("type", type, TYPES),
        learning_types=_words("learning type", learning_type, LEARNING_TYPES),
        scopes=_words("scope", scope, SCOPES, SCOPE_ALIASES),
        tags=tuple(map(_printable, _listed(tag))),
        statuses=_words("status", status, STATUSES),
        file=_printable(file).replace("\\", "/").removeprefix("./") if file else None,
        job=_printable(job) if job else None,
        task=_printable(task) if task else None,
        since=since,
    )


def _printable(word: str) -> str:
    """Return a word that can be stored: bytes from the shell that are no UTF-8 fit nothing."""
    return word.encode("utf-8", "replace").decode()


def _listed(words: Sequence[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _words(name: str, words: Sequence[str], known: Sequence[str] | Mapping[str, object], aliases: Mapping[str, str] | None = None) -> tuple[str, ...]:
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
        if name is not None and (not name.isprintable() or not name.strip() or name.startswith(".") or "/" in name or "\\" in name):
            raise UsageError(f"{name!r} is not a name for a job or task", "use letters, digits and dashes")
    if task and not job:
        raise UsageError("a task is named without its job", "add --job")
    if scope == "global" and not job:
        return Location("global")
    if scope == "project" or (scope == "job" and job) or (scope == "task" and task):
        return Location("task" if task else "job" if job else "project", job, task)
    raise UsageError(f"scope {scope!r} does not go with {'a job' if job else 'no job'}", "learn at global or project scope, or name --job and --task")
