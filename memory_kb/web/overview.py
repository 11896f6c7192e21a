"""The pages with the health of a vault, its findings and its link graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from memory_kb.index.link_map import LinkMap
from memory_kb.index.lint_cache import LintPass
from memory_kb.kb import KnowledgeBase
from memory_kb.web.charts import entry_address
from memory_kb.web.site import PageQuery, Parameters, Site, param, read_query
from memory_kb.web_queries import LastLook

if TYPE_CHECKING:
    from starlette.requests import Request


_RUNS, _PROBLEMS = 15, 300


async def show_health(site: Site, request: Request) -> Response:
    """How fresh the index is, what it holds, what was done and what it cost."""

    def look(kb: KnowledgeBase) -> dict[str, Any]:
        known = {"status": kb.status(), "stats": kb.stats(), "upkeep": kb.upkeep()}
        return known | {"runs": kb.runs()[:_RUNS], "warnings": kb.vault.warnings}

    return site.page(request, "health.html", health=await site.study(look), said=param(request.query_params, "said"))


async def show_findings(site: Site, request: Request) -> Response:
    """What is to be fixed; with `deep`, the index is held against the notes too, which takes longer.

    Of a large vault it is what was found last, while a look in the background finds what is new.
    """
    is_deep = bool(param(request.query_params, "deep"))
    verb = "doctor" if is_deep else "lint"

    def look(kb: KnowledgeBase) -> LastLook:
        last = kb.last_look(verb)
        if last.is_large:
            return last
        found = kb.doctor().problems if is_deep else kb.lint()
        return last._replace(look=LintPass(last.generation, "", len(found), found[:_PROBLEMS]))

    last = await site.study(look)
    is_looking = last.is_large and site.look_again(verb, is_current=last.is_current)
    return site.page(request, "findings.html", last=last, is_looking=is_looking, is_deep=is_deep)


#: So many entries can still be distinguished, of all and around one.
_MOST, _MOST_AROUND = 120, 300
#: How many links away from the entry in the middle, as one may choose.
_STEPS = (1, 2, 3, 4)


async def show_graph(site: Site, request: Request) -> Response:
    """What hangs together with what: around one entry, or where most links meet."""
    asked, center = read_query(request.query_params), param(request.query_params, "id", 1_000)
    links = await _choose_links(site, asked, request.query_params)
    last = await site.read(lambda kb: kb.last_look("lint"))
    is_looking = last.is_large and site.look_again("lint", is_current=last.is_current)
    return site.page(
        request,
        "graph.html",
        is_looking=is_looking,
        asked=asked,
        links=links,
        center=center,
        choices=await site.choices(),
        depths=_STEPS,
        steps=_read_steps(request.query_params),
        at=param(request.query_params, "at", 1_000),
    )


async def send_graph(site: Site, request: Request) -> Response:
    """The same as data, for whoever draws it."""
    links = await _choose_links(site, read_query(request.query_params), request.query_params)
    nodes = [
        {"id": node.key, "name": node.title, "kind": node.kind, "scope": node.scope, "status": node.status,
         "href": entry_address(node.id, node.path, node.line)}
        for node in links.nodes
    ]  # fmt: skip
    edges = [{"source": one.source, "target": one.target, "relation": one.relation} for one in links.edges]
    return JSONResponse({"nodes": nodes, "links": edges})


def _read_steps(parameters: Parameters) -> int:
    word = param(parameters, "steps")
    return int(word) if word in map(str, _STEPS) else 2


async def _choose_links(site: Site, asked: PageQuery, parameters: Parameters) -> LinkMap:
    wanted, path = param(parameters, "id", 1_000), param(parameters, "at", 1_000).rpartition(":")[0]
    if wanted:
        return await site.study(lambda kb: kb.links_around(wanted, path, _read_steps(parameters), _MOST_AROUND))
    folder = f"{asked.folder.strip('/')}/" if asked.folder.strip("/") else ""
    return await site.study(lambda kb: kb.busiest_links(_MOST, asked.kind, asked.scope, folder))
