"""The parameters of an address or a form, and the search or list that they ask for."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.datastructures import ImmutableMultiDict

from memory_kb.errors import UsageError
from memory_kb.model import FilterWords
from memory_kb.text import printable

PAGE_SIZE = 50
#: The longest text of a form, in characters.
LONGEST_FORM = 1_000_000
MAX_WORD = 300
_MAX_QUERY = 4_000
#: More pages than any vault has.
_MAX_PAGE = 100_000

#: The parameters of an address or the fields of a form, several of which may have one name.
Parameters = ImmutableMultiDict[str, str]


class PageQuery(NamedTuple):
    """A search or a list as the address asks for it.

    `since` is a day as written; `page` counts from 1; `folder` narrows a list alone.
    """

    query: str = ""
    kind: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    tag: str = ""
    since: str = ""
    folder: str = ""
    order: str = "newest"
    page: int = 1

    @property
    def filters(self) -> FilterWords:
        """The filters in the words of the verbs."""
        words: FilterWords = {"kind": self.kind, "scope": self.scope, "status": self.status}
        if self.tag:
            words["tag"] = [one for one in (part.strip().removeprefix("#") for part in self.tag.split(",")) if one]
        if self.since:
            try:
                words["since"] = date.fromisoformat(self.since)
            except ValueError:
                raise UsageError(f"{self.since[:40]!r} is no day", "write it as 2026-03-01") from None
        return words

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the query narrows the answer."""
        return bool(self.kind or self.scope or self.status or self.tag or self.since)

    def address(self, path: str, **other: Any) -> str:
        """Return the address of this search at a path, some of it exchanged.

        Example:
            >>> PageQuery("a b", ("rule",), page=3).address("/browse", page=4)
            '/browse?q=a+b&kind=rule&page=4'
        """
        names, asked = {"query": "q"}, self._replace(**other)
        pairs = [(names.get(name, name), getattr(asked, name)) for name in self._fields]
        kept = [pair for pair, usual in zip(pairs, PageQuery(), strict=True) if pair[1] != usual]
        return f"{path}?{urlencode(kept, doseq=True)}" if kept else path


def read_page_query(parameters: Parameters) -> PageQuery:
    """Return the query that the parameters of an address describe.

    Example:
        >>> from starlette.datastructures import QueryParams
        >>> read_page_query(QueryParams("q=flaky&kind=rule&kind=&page=two")).kind
        ('rule',)
    """
    page = param(parameters, "page")
    return PageQuery(
        query=param(parameters, "q", _MAX_QUERY),
        kind=_param_list(parameters, "kind"),
        scope=_param_list(parameters, "scope"),
        status=_param_list(parameters, "status"),
        tag=param(parameters, "tag").strip(),
        since=param(parameters, "since").strip(),
        folder=param(parameters, "folder", 1_000),
        order=param(parameters, "order") or "newest",
        page=min(_MAX_PAGE, max(1, int(page))) if page.isascii() and page.isdecimal() else 1,
    )


def param(parameters: Parameters, name: str, longest: int = MAX_WORD) -> str:
    """Return the last value of a name, or nothing, as text that can be printed."""
    return printable(parameters.get(name, "")[:longest]).replace("\0", "")


def _param_list(parameters: Parameters, name: str) -> tuple[str, ...]:
    return tuple(printable(word[:MAX_WORD]) for word in parameters.getlist(name) if word)
