"""Filters as SQL conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from memory_kb.model import SEARCHED_STATUSES, WORKING_KINDS, Filters

#: The kinds that have an index of their own, as it names them.
_FEW_KINDS = frozenset({"architecture", "policy", "preference", "skill"})
_FEW_STATUSES = frozenset({"retired", "rejected", "proposed"})
#: The filters that list the values a column may have.
_LISTED = {"kind": "kinds", "status": "statuses", "learning_type": "learning_types", "type": "types", "scope": "scopes"}


def as_array(values: Iterable[object]) -> str:
    """Return values as `json_each` takes them."""
    import json

    return json.dumps(list(values))


class SqlDialect:
    """How an engine writes a value by its name, and that something is one of the values of a list, which it packs.

    Without functions of ours in its SQL, tags and files are left to whoever reads the rows.
    """

    def __init__(
        self, mark: str, within: str, pack: Callable[[Iterable[object]], object], *, has_functions: bool
    ) -> None:
        self.mark, self.within, self.pack, self.has_functions = mark, within, pack, has_functions


SQLITE = SqlDialect(":{}", "IN (SELECT value FROM json_each(:{}))", as_array, has_functions=True)


def is_narrow(filters: Filters) -> bool:
    """Return whether filters let through only few entries in most vaults.

    Example:
        >>> is_narrow(Filters(kinds=("skill",))), is_narrow(Filters(kinds=("skill", "rule"))), is_narrow(Filters(learning_types=("proxy",)))
        (True, False, True)
        >>> is_narrow(Filters(statuses=("retired",)))
        True
    """
    return _has_few_kinds(filters) or _has_few_types(filters) or _has_few_statuses(filters)


def _has_few_kinds(filters: Filters) -> bool:
    return bool(filters.kinds) and _FEW_KINDS.issuperset(filters.kinds)


def _has_few_statuses(filters: Filters) -> bool:
    return bool(filters.statuses) and _FEW_STATUSES.issuperset(filters.statuses)


def _has_few_types(filters: Filters) -> bool:
    return bool(filters.learning_types) and "task" not in filters.learning_types


def where(filters: Filters, table: str, dialect: SqlDialect = SQLITE) -> tuple[str, dict[str, object]]:
    """Return a condition with named values for some filters.

    It holds for the chunks that the filters let through.

    Without a word on status, kind or learning type, what a search does not see is left out:
    retired, rejected and proposed entries, handoffs and ledgers, and `proxy.md`.

    Example:
        >>> condition, values = where(Filters(kinds=("rule",)), "c")
        >>> "c.kind IN (SELECT value FROM json_each(:kinds))" in condition, values
        (True, {'kinds': '["rule"]'})
    """
    conditions = [condition.format(table) for condition in (*_few(filters), *_unseen(filters))]
    values: dict[str, object] = {}
    for column, name in _LISTED.items():
        if allowed := getattr(filters, name):
            conditions.append(f"{table}.{column} {dialect.within.format(name)}")
            values[name] = dialect.pack(allowed)
    if filters.since:
        conditions.append(f"{table}.dated >= {dialect.mark.format('since')}")
        values["since"] = filters.since.isoformat()
    if filters.tags and dialect.has_functions:
        conditions.append(f"has_tag({table}.tags || ',' || {table}.text_tags, :tags)")
        values["tags"] = ",".join(tag.replace(",", " ") for tag in filters.tags)
    if filters.job:
        shown, named = visible(filters, table, dialect)
        conditions.append(shown)
        values |= named
    if filters.file is not None:
        conditions.append(f"{table}.applies_to <> ''")
        if dialect.has_functions:
            conditions.append(f"fits_file({table}.applies_to, :file)")
            values["file"] = filters.file
    return " AND ".join(conditions), values


def _few(filters: Filters) -> Iterator[str]:
    """Yield the words of the partial indexes that may be used, so that SQLite knows it."""
    if filters.kinds and "fact" not in filters.kinds:
        yield "{0}.kind <> 'fact'"
    if _has_few_statuses(filters):
        yield f"{{0}}.status IN ({_quoted(_FEW_STATUSES)})"
    if _has_few_types(filters):
        yield "{0}.learning_type <> 'task'"


def _unseen(filters: Filters) -> Iterator[str]:
    """Yield the conditions that exclude what a search leaves out unless it is asked for."""
    if not filters.kinds:
        yield f"{{0}}.kind NOT IN ({_quoted(WORKING_KINDS)})"
    if not filters.statuses:
        yield f"{{0}}.status IN ({_quoted(SEARCHED_STATUSES)})"
    if not filters.learning_types:
        end = f"substr('/' || {{0}}.source, length({{0}}.source) - {len('proxy.md') - 1})"
        yield f"NOT ({{0}}.learning_type = 'proxy' AND {end} = '/proxy.md')"


def visible(filters: Filters, table: str, dialect: SqlDialect = SQLITE) -> tuple[str, dict[str, object]]:
    """Return the condition that hides sibling jobs and tasks. Without a job everything is visible."""
    if not filters.job:
        return "true", {}
    job, task = map(dialect.mark.format, ("job", "task"))
    same_task = f"({table}.task IS NULL OR {table}.task = {task})" if filters.task else f"{table}.task IS NULL"
    return f"({table}.job IS NULL OR ({table}.job = {job} AND {same_task}))", {"job": filters.job, "task": filters.task}


def _quoted(words: frozenset[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))
