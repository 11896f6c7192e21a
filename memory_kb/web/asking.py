"""What an address asks for, read and bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import NamedTuple, Protocol
from urllib.parse import urlencode

from memory_kb.errors import UsageError
from memory_kb.filters import FilterWords
from memory_kb.text import printable

PAGE_SIZE = 50
_MAX_QUERY, _MAX_WORD, _MAX_WORDS = 4_000, 300, 40
#: More pages than any vault has.
_MAX_PAGE = 100_000
_LISTS = ("kind", "scope", "status")


class Parameters(Protocol):
    """The parameters of an address, several of which may have one name."""

    def getlist(self, key: str) -> list[str]:
        """Return all values of a name."""


class Asked(NamedTuple):
    """A search or a list as the address asks for it.

    `since` is a day as written; `page` counts from 1.
    """

    query: str = ""
    kind: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    tag: str = ""
    since: str = ""
    order: str = "newest"
    page: int = 1

    @property
    def filters(self) -> FilterWords:
        """The filters in the words of the verbs.

        Raises:
            UsageError: the day is none.
        """
        words: FilterWords = {"kind": self.kind, "scope": self.scope, "status": self.status}
        if self.tag:
            words["tag"] = [one for one in (part.strip().removeprefix("#") for part in self.tag.split(",")) if one]
        if self.since:
            words["since"] = read_day(self.since)
        return words

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the query narrows the answer."""
        return bool(self.kind or self.scope or self.status or self.tag or self.since)

    def address(self, path: str, **other: object) -> str:
        """Return the address of this search at a path, some of it exchanged.

        Example:
            >>> Asked("a b", ("rule",), page=3).address("/browse", page=4)
            '/browse?q=a+b&kind=rule&page=4'
        """
        pairs: list[tuple[str, object]] = [("q", self.query)]
        pairs += [(name, word) for name in _LISTS for word in getattr(self, name)]
        pairs += [
            ("tag", self.tag),
            ("since", self.since),
            ("order", self.order if self.order != "newest" else ""),
            ("page", self.page),
        ]
        kept = [(name, other.get(name, value)) for name, value in pairs]
        kept = [(name, value) for name, value in kept if value and (name, value) != ("page", 1)]
        return f"{path}?{urlencode(kept)}" if kept else path


def read_asked(parameters: Parameters) -> Asked:
    """Return what the parameters of an address ask for.

    Example:
        >>> from starlette.datastructures import QueryParams
        >>> read_asked(QueryParams("q=flaky&kind=rule&kind=&page=two")).kind
        ('rule',)
    """
    page = one(parameters, "page")
    return Asked(
        query=one(parameters, "q", _MAX_QUERY),
        kind=_several(parameters.getlist("kind")),
        scope=_several(parameters.getlist("scope")),
        status=_several(parameters.getlist("status")),
        tag=one(parameters, "tag").strip(),
        since=one(parameters, "since").strip(),
        order=one(parameters, "order") or "newest",
        page=min(_MAX_PAGE, max(1, int(page))) if page.isascii() and page.isdecimal() else 1,
    )


def one(parameters: Parameters, name: str, longest: int = _MAX_WORD) -> str:
    """Return the last value of a name, or nothing, as text that can be printed."""
    found = parameters.getlist(name)
    return printable(found[-1][:longest]).replace("\0", "") if found else ""


def read_day(text: str) -> date:
    """Return a day.

    Raises:
        UsageError: it is none.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is no day", "write it as 2026-03-01") from None


def _several(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(printable(word[:_MAX_WORD]) for word in words if word))[:_MAX_WORDS]


class Fields:
    """The fields of a form, read like the parameters of an address."""

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        self._values = values

    def getlist(self, key: str) -> list[str]:
        """Return all values of a name."""
        return self._values.get(key, [])
