"""The pages that search and list entries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from memory_kb.kb import KnowledgeBase
from memory_kb.model import PER_ENTRY, Hit, SearchResult
from memory_kb.web.charts import entry_address
from memory_kb.web.highlight import Stretch, mark, render_passage
from memory_kb.web.site import PAGE_SIZE, PageQuery, Site, one, read_query, see_other

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

#: Hits while somebody types, on the page itself, and when more are asked for.
_TYPING, _LIMIT, _MORE = 10, 20, 100
_NEWEST = 8


class ShownHit(NamedTuple):
    """A hit with its text as HTML; only what is in this vault has a page."""

    hit: Hit
    title: tuple[Stretch, ...]
    passage: Markup
    is_here: bool = True

    @property
    def address(self) -> str:
        """The place of the passage on the page of its entry."""
        hit = self.hit
        return f"{entry_address(hit.id, hit.path, hit.line)}&lines={hit.line}-{hit.end_line}#passage"


class SearchPage(NamedTuple):
    """What a search gave, ready to be drawn."""

    found: tuple[ShownHit, ...]
    result: SearchResult

    @property
    def notes(self) -> list[list[ShownHit]]:
        """The hits of each note together, in the order of the best of them."""
        groups: dict[tuple[str | None, str, str], list[ShownHit]] = {}
        for found in self.found:
            groups.setdefault((found.hit.vault, found.hit.path, found.hit.title), []).append(found)
        return list(groups.values())


async def show_search(site: Site, request: Request) -> Response:
    """The page that one begins with; with a question, what answers it, in all ways that there are."""
    asked = read_query(request.query_params)
    limit = _MORE if one(request.query_params, "more") else _LIMIT
    work = partial(_search, asked=asked, limit=limit, vaults=site.info.vaults)
    answer = await site.read(work) if asked.query.strip() else None
    home = {} if answer else await _find_home(site, asked)
    return site.page(request, "search.html", asked=asked, answer=answer, choices=await site.choices(), **home)


async def show_results(site: Site, request: Request) -> Response:
    """The part of that page that changes while somebody types: words alone, no model is asked."""
    asked = read_query(request.query_params)
    if "hx-request" not in request.headers:
        return see_other(asked.address("/"))
    work = partial(_search, asked=asked, limit=_TYPING, vaults=site.info.vaults, is_typing=True)
    answer = await site.read(work) if asked.query.strip() else None
    home = {} if answer else await _find_home(site, asked)
    headers, choices = {"hx-replace-url": asked.address("/")}, await site.choices()
    return site.page(request, "results.html", headers=headers, asked=asked, answer=answer, choices=choices, **home)


async def show_browse(site: Site, request: Request) -> Response:
    """Entries a page at a time."""
    asked = read_query(request.query_params)
    offset = (asked.page - 1) * PAGE_SIZE
    browsed = await site.read(
        lambda kb: kb.browse(order=asked.order, offset=offset, limit=PAGE_SIZE, folder=asked.folder, **asked.filters)
    )
    pages, choices = -(-browsed.total // PAGE_SIZE), await site.choices()
    return site.page(
        request, "browse.html", asked=asked, browsed=browsed, pages=pages, first=offset + 1, choices=choices
    )


async def go(site: Site, request: Request) -> Response:
    """Follow a link by the name that it gives its target."""
    name = one(request.query_params, "to")
    source = one(request.query_params, "from", 1_000)
    found = (await site.read(lambda kb: kb.follow(source, [name]))).get(name)
    if found is None:
        return see_other(PageQuery(query=name).address("/"))
    return see_other(entry_address(found.id, found.path, found.line))


async def _find_home(site: Site, asked: PageQuery) -> dict[str, Any]:
    """Return what is shown while nothing is searched: with filters the newest entries, else what changed last."""
    if asked.is_filtered:
        newest = await site.read(lambda kb: kb.browse(limit=_NEWEST, **asked.filters))
        return {"newest": newest, "recent": None}
    return {"newest": None, "recent": await site.recent()}


def _search(
    kb: KnowledgeBase, asked: PageQuery, limit: int, vaults: tuple[str, ...], *, is_typing: bool = False
) -> SearchPage:
    result = kb.search(
        asked.query,
        limit=limit,
        mode="text" if is_typing else "auto",
        explain=True,
        is_typing=is_typing,
        per_entry=PER_ENTRY,
        vaults=vaults,
        **asked.filters,
    )
    own = kb.index.team.name if vaults else None
    found = (
        ShownHit(
            hit,
            mark(hit.title, asked.query),
            Markup(render_passage(_without_title(hit), asked.query, hit.path)),  # noqa: S704 - the renderer escapes
            hit.vault in (None, own),
        )
        for hit in result.hits
    )
    return SearchPage(tuple(found), result)


def _without_title(hit: Hit) -> str:
    """Return the text of a hit without the heading that is its title."""
    first, _, rest = hit.text.partition("\n")
    return rest if rest.strip() and first.lstrip("# ").strip() == hit.title.strip() else hit.text
