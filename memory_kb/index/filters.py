"""Filters as SQL conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memory_kb.model import SEARCHED_STATUSES, WORKING_KINDS, Filters

#: The kinds that have an index of their own, as it names them.
_FEW_KINDS = frozenset({"architecture", "policy", "preference", "skill"})
_FEW_STATUSES = frozenset({"retired", "rejected", "proposed"})


def as_array(values: Iterable[object]) -> str:
    """Return values as `json_each` takes them."""
    import json

    return json.dumps(list(values))


class Dialect:
    """How an engine writes a value by its name, and that something is one of the values of a list, which it packs.

    Without functions of ours in its SQL, tags and files are left to whoever reads the rows.
    """

    def __init__(
        self, mark: str, within: str, pack: Callable[[Iterable[object]], object], *, has_functions: bool
    ) -> None:
        self.mark, self.within, self.pack, self.has_functions = mark, within, pack, has_functions


SQLITE = Dialect(":{}", "IN (SELECT value FROM json_each(:{}))", as_array, has_functions=True)


def is_narrow(filters: Filters) -> bool:
    """Return whether filters let through only what is little in most vaults.

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


def where(filters: Filters, table: str, dialect: Dialect = SQLITE) -> tuple[str, dict[str, object]]:
    """Return a condition with named values for some filters.

    It holds for the chunks that the filters let through.

    Without a word on status, kind or learning type, what a search does not see is left out:
    retired, rejected and proposed entries, handoffs and ledgers, and `proxy.md`.

    Example:
        >>> condition, values = where(Filters(kinds=("rule",)), "c")
        >>> condition.split(" AND ")[:2], values
        (["c.kind <> 'fact'", 'c.kind IN (SELECT value FROM json_each(:kinds))'], {'kinds': '["rule"]'})
    """
    conditions: list[str] = []
    values: dict[str, object] = {}

    def within(column: str, name: str, allowed: Sequence[str]) -> None:
        conditions.append(f"{table}.{column} {dialect.within.format(name)}")
        values[name] = dialect.pack(allowed)

    # Said again in the words of a partial index, so that SQLite knows that it may be used.
    if filters.kinds and "fact" not in filters.kinds:
        conditions.append(f"{table}.kind <> 'fact'")
    if _has_few_statuses(filters):
        conditions.append(f"{table}.status IN ({_quoted(_FEW_STATUSES)})")
    if _has_few_types(filters):
        conditions.append(f"{table}.learning_type <> 'task'")
    if filters.kinds:
        within("kind", "kinds", filters.kinds)
    else:
        conditions.append(f"{table}.kind NOT IN ({_quoted(WORKING_KINDS)})")
    if filters.statuses:
        within("status", "statuses", filters.statuses)
    else:
        conditions.append(f"{table}.status IN ({_quoted(SEARCHED_STATUSES)})")
    if filters.learning_types:
        within("learning_type", "learning_types", filters.learning_types)
    else:
        end = f"substr('/' || {table}.source, length({table}.source) - {len('proxy.md') - 1})"
        conditions.append(f"NOT ({table}.learning_type = 'proxy' AND {end} = '/proxy.md')")
    if filters.types:
        within("type", "types", filters.types)
    if filters.scopes:
        within("scope", "scopes", filters.scopes)
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


def visible(filters: Filters, table: str, dialect: Dialect = SQLITE) -> tuple[str, dict[str, object]]:
    """Return the condition that hides sibling jobs and tasks. Without a job everything is visible."""
    if not filters.job:
        return "true", {}
    job, task = map(dialect.mark.format, ("job", "task"))
    same_task = f"({table}.task IS NULL OR {table}.task = {task})" if filters.task else f"{table}.task IS NULL"
    return f"({table}.job IS NULL OR ({table}.job = {job} AND {same_task}))", {"job": filters.job, "task": filters.task}


def _quoted(words: frozenset[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))
