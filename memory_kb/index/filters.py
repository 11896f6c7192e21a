"""Filters as SQL conditions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from memory_kb.globs import fits_any
from memory_kb.model import NOWHERE, SEARCHED_STATUSES, WORKING_KINDS, Filters
from memory_kb.text import fits_tag

#: The kinds that have an index of their own, as it names them.
_FEW_KINDS = frozenset({"architecture", "policy", "preference", "skill"})
_FEW_STATUSES = frozenset({"retired", "rejected", "proposed"})
#: Follows whatever begins with a text, after it.
LAST = "\U0010ffff"
#: The filters that list the values a column may have.
_LISTED = {"kind": "kinds", "status": "statuses", "learning_type": "learning_types", "type": "types", "scope": "scopes"}


def as_array(values: Iterable[object]) -> str:
    """Return values as `json_each` takes them."""
    import json

    return json.dumps(list(values))


class SqlDialect(NamedTuple):
    """How an engine writes what all engines ask in the same way, for a chunk `c`."""

    #: A value by its name.
    mark: str
    #: That something is one of the values of a named list, which `pack` packs.
    within: str
    pack: Callable[[Iterable[object]], object]
    #: The expressions for values of a row that are no plain columns.
    written: Mapping[str, str]
    #: Conditions: that a chunk is searched, that no other vault has its id, that it is in the file `source`.
    here: str
    is_alone: str
    in_file: str
    #: What distinguishes the files of chunks.
    file: str
    #: Whether the SQL may call `has_tag` and `fits_file`; else whoever reads the rows checks tags and files.
    has_functions: bool

    def columns(self, fields: Iterable[str], **written: str) -> str:
        """Return the expressions for the values of a row, given by their names; some may be given, too."""
        expressions = {**self.written, **written}
        return ", ".join(expressions.get(field, f"c.{field}") for field in fields)


def is_narrow(filters: Filters) -> bool:
    """Return whether filters let through only few entries in most vaults.

    Example:
        >>> is_narrow(Filters(kinds=("skill",))), is_narrow(Filters(kinds=("skill", "rule"))), is_narrow(Filters(statuses=("retired",)))
        (True, False, True)
    """
    has_few_kinds = bool(filters.kinds) and _FEW_KINDS.issuperset(filters.kinds)
    return has_few_kinds or _has_few_types(filters) or _has_few_statuses(filters)


def _has_few_statuses(filters: Filters) -> bool:
    return bool(filters.statuses) and _FEW_STATUSES.issuperset(filters.statuses)


def _has_few_types(filters: Filters) -> bool:
    return bool(filters.learning_types) and "task" not in filters.learning_types


def where(filters: Filters, dialect: SqlDialect) -> tuple[str, dict[str, object]]:
    """Return a condition with named values for the chunks `c` that the filters let through.

    Without a word on status, kind or learning type, what a search does not see is left out:
    retired, rejected and proposed entries, handoffs and ledgers, and `proxy.md`.
    """
    conditions = [*_few(filters), *_unseen(filters)]
    values: dict[str, object] = {}
    for column, name in _LISTED.items():
        if allowed := getattr(filters, name):
            conditions.append(f"c.{column} {dialect.within.format(name)}")
            values[name] = dialect.pack(allowed)
    if filters.since:
        conditions.append(f"c.dated >= {dialect.mark.format('since')}")
        values["since"] = filters.since.isoformat()
    if filters.tags and dialect.has_functions:
        conditions.append("has_tag(c.tags || ',' || c.text_tags, :tags)")
        values["tags"] = join_tags(filters)
    if filters.job:
        shown, named = visible(filters, dialect)
        conditions.append(shown)
        values |= named
    if filters.file is not None:
        conditions.append("c.applies_to <> ''")
        if dialect.has_functions:
            conditions.append("fits_file(c.applies_to, :file)")
            values["file"] = filters.file
    return " AND ".join(conditions), values


def _few(filters: Filters) -> Iterator[str]:
    """Yield the words of the partial indexes that may be used, so that SQLite knows it."""
    if filters.kinds and "fact" not in filters.kinds:
        yield "c.kind <> 'fact'"
    if _has_few_statuses(filters):
        yield f"c.status IN ({_quoted(_FEW_STATUSES)})"
    if _has_few_types(filters):
        yield "c.learning_type <> 'task'"


def _unseen(filters: Filters) -> Iterator[str]:
    """Yield the conditions that exclude what a search leaves out unless it is asked for."""
    if not filters.kinds:
        yield f"c.kind NOT IN ({_quoted(WORKING_KINDS)})"
    if not filters.statuses:
        yield f"c.status IN ({_quoted(SEARCHED_STATUSES)})"
    if not filters.learning_types:
        end = f"substr('/' || c.source, length(c.source) - {len('proxy.md') - 1})"
        yield f"NOT (c.learning_type = 'proxy' AND {end} = '/proxy.md')"


def join_tags(filters: Filters) -> str:
    """Return the tags that are wanted, as `has_tag` takes them."""
    return ",".join(tag.replace(",", " ") for tag in filters.tags)


def visible(filters: Filters, dialect: SqlDialect) -> tuple[str, dict[str, object]]:
    """Return the condition that hides sibling jobs and tasks. Without a job everything is visible."""
    if not filters.job:
        return "true", {}
    job, task = map(dialect.mark.format, ("job", "task"))
    same_task = f"(c.task IS NULL OR c.task = {task})" if filters.task else "c.task IS NULL"
    return f"(c.job IS NULL OR (c.job = {job} AND {same_task}))", {"job": filters.job, "task": filters.task}


def has_tag(tags: str, wanted: str) -> bool:
    """Return whether one of some tags is one of those wanted, or below it; both are separated by commas."""
    return len(tags) > 1 and fits_tag(tags.split(","), tuple(wanted.split(",")))


def fits_file(applies_to: str, file: str) -> bool:
    """Return whether one of some globs, one a line, covers a file."""
    return bool(applies_to) and file != NOWHERE and fits_any(file, applies_to.split("\n"))


def _quoted(words: frozenset[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))
