"""The pages that search and list entries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from memory_kb.context.highlight import Stretch, mark
from memory_kb.kb import KnowledgeBase
from memory_kb.model import PER_ENTRY, Hit, SearchResult
from memory_kb.web.charts import entry_address
from memory_kb.web.passage_html import render_passage
from memory_kb.web.render import without_title
from memory_kb.web.site import PAGE_SIZE, PageQuery, Site, param, read_query, see_other

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


async def show_search(site: Site, request: Request) -> Response:
    """The page that one begins with; with a question, what answers it, in all ways that there are."""
    limit = _MORE if param(request.query_params, "more") else _LIMIT
    return await _draw_search(site, request, "search.html", limit=limit)


async def show_results(site: Site, request: Request) -> Response:
    """The part of that page that changes while somebody types: words alone, no model is asked."""
    address = read_query(request.query_params).address("/")
    if "hx-request" not in request.headers:
        return see_other(address)
    return await _draw_search(
        site, request, "results.html", limit=_TYPING, is_typing=True, headers={"hx-replace-url": address}
    )


async def _draw_search(
    site: Site,
    request: Request,
    template: str,
    *,
    limit: int,
    is_typing: bool = False,
    headers: dict[str, str] | None = None,
) -> Response:
    asked = read_query(request.query_params)
    work = partial(_search_notes, asked=asked, limit=limit, vaults=site.info.vaults, is_typing=is_typing)
    notes, result = await site.read(work) if asked.query.strip() else ([], None)
    home = {} if result else await _find_home(site, asked)
    choices = await site.choices()
    return site.page(
        request, template, headers=headers, asked=asked, notes=notes, result=result, choices=choices, **home
    )


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
    name = param(request.query_params, "to")
    source = param(request.query_params, "from", 1_000)
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


def _search_notes(
    kb: KnowledgeBase, asked: PageQuery, limit: int, vaults: tuple[str, ...], *, is_typing: bool = False
) -> tuple[list[list[ShownHit]], SearchResult]:
    """Return the hits of each note together, ready to be drawn, and all that the search says."""
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
    return [[_show_hit(hit, asked.query, own) for hit in hits] for hits in result.notes], result


def _show_hit(hit: Hit, query: str, own_vault: str | None) -> ShownHit:
    passage = render_passage(without_title(hit.text, hit.title), query, hit.path)
    safe = Markup(passage)  # noqa: S704 - the renderer escapes
    return ShownHit(hit, mark(hit.title, query), safe, hit.vault in (None, own_vault))
