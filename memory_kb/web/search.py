"""The pages search and browse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.index.listing import Browsed, resolve
from memory_kb.kb import KnowledgeBase
from memory_kb.model import KINDS, SCOPES, STATUSES, Hit, SearchResult
from memory_kb.web.charts import entry_address
from memory_kb.web.highlight import Stretch, excerpt, mark
from memory_kb.web.site import PAGE_SIZE, PageQuery, Site, one, read_asked, see_other

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

#: Hits while somebody types, on the page itself, and when more are asked for.
_TYPING, _LIMIT, _MORE = 10, 20, 100
_NEWEST = 8
_HEADING = re.compile(r"^#{1,6} +", re.MULTILINE)
_CHOICES: dict[str, Any] = {"kinds": tuple(KINDS), "scopes": SCOPES, "statuses": STATUSES}


class ShownHit(NamedTuple):
    """A hit with the stretch of its text that shows why."""

    hit: Hit
    title: tuple[Stretch, ...]
    excerpt: tuple[Stretch, ...]


class SearchPage(NamedTuple):
    """What a search gave, ready to be drawn."""

    found: tuple[ShownHit, ...]
    result: SearchResult


async def show_search(desk: Site, request: Request) -> Response:
    """The page that one begins with; with a question, what answers it, in all ways that there are."""
    asked = read_asked(request.query_params)
    answer = (
        await desk.read(lambda kb: _search(kb, asked, _read_limit(request), is_typing=False))
        if asked.query.strip()
        else None
    )
    newest = None if answer else await _find_newest(desk, asked)
    return desk.page(request, "search.html", asked=asked, answer=answer, newest=newest, **_CHOICES)


async def show_results(desk: Site, request: Request) -> Response:
    """The part of that page that changes while somebody types: words alone, no model is asked."""
    asked = read_asked(request.query_params)
    if "hx-request" not in request.headers:
        return see_other(asked.address("/"))
    if not asked.query.strip():
        newest = await _find_newest(desk, asked)
        return desk.page(
            request,
            "results.html",
            asked=asked,
            answer=None,
            newest=newest,
            headers={"hx-replace-url": asked.address("/")},
        )
    answer = await desk.read(lambda kb: _search(kb, asked, _TYPING, is_typing=True))
    return desk.page(
        request, "results.html", asked=asked, answer=answer, newest=None, headers={"hx-replace-url": asked.address("/")}
    )


async def show_browse(desk: Site, request: Request) -> Response:
    """Entries a page at a time."""
    asked = read_asked(request.query_params)
    offset = (asked.page - 1) * PAGE_SIZE
    browsed = await desk.read(lambda kb: kb.browse(order=asked.order, offset=offset, limit=PAGE_SIZE, **asked.filters))
    return desk.page(
        request,
        "browse.html",
        asked=asked,
        browsed=browsed,
        pages=-(-browsed.total // PAGE_SIZE),
        first=offset + 1,
        **_CHOICES,
    )


async def go(desk: Site, request: Request) -> Response:
    """Follow a link by the name that it gives its target."""
    name = one(request.query_params, "to")
    links = await desk.keep("names", lambda kb: kb.link_map())
    key = resolve(links.names, name, one(request.query_params, "from", 1_000))
    if key is None:
        return see_other(PageQuery(query=name).address("/"))
    node = links.nodes[key]
    return see_other(entry_address(node.id, node.path, node.line))


async def _find_newest(desk: Site, asked: PageQuery) -> Browsed:
    def look(kb: KnowledgeBase) -> Browsed:
        return kb.browse(limit=_NEWEST, **asked.filters)

    return await (desk.read(look) if asked.is_filtered else desk.keep("newest", look, is_quick=True))


def _search(kb: KnowledgeBase, asked: PageQuery, limit: int, *, is_typing: bool) -> SearchPage:
    result = kb.search(
        asked.query,
        limit=limit,
        mode="text" if is_typing else "auto",
        explain=True,
        is_typing=is_typing,
        **asked.filters,
    )
    found = (
        ShownHit(hit, mark(hit.title, asked.query), excerpt(_without_title(hit), asked.query)) for hit in result.hits
    )
    return SearchPage(tuple(found), result)


def _read_limit(request: Request) -> int:
    return _MORE if one(request.query_params, "more") else _LIMIT


def _without_title(hit: Hit) -> str:
    """Return the text of a hit without the heading that is its title, and without the signs of others."""
    first, _, rest = hit.text.partition("\n")
    text = rest if rest.strip() and first.lstrip("# ").strip() == hit.title.strip() else hit.text
    return _HEADING.sub("", text)
