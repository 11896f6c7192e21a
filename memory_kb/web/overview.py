"""The pages with the health of a vault, its findings and its link graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import JSONResponse, Response

from memory_kb.errors import UnknownEntry
from memory_kb.git.browsing import Upkeep
from memory_kb.index.link_map import LinkMap, take_around, take_busiest
from memory_kb.kb import KnowledgeBase
from memory_kb.model import Problem
from memory_kb.reports import RunView, Stats, Status
from memory_kb.web.charts import entry_address
from memory_kb.web.site import PageQuery, Parameters, Site, one, read_query

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


_RUNS, _PROBLEMS = 15, 300


class Health(NamedTuple):
    """What is known without a slow read."""

    status: Status
    stats: Stats
    upkeep: Upkeep
    runs: tuple[RunView, ...]
    warnings: tuple[str, ...]


async def show_health(site: Site, request: Request) -> Response:
    """How fresh the index is, what it holds, what was done and what it cost."""

    def look(kb: KnowledgeBase) -> Health:
        return Health(kb.status(), kb.stats(), kb.upkeep(), kb.runs()[:_RUNS], tuple(kb.vault.warnings))

    return site.page(request, "health.html", health=await site.study(look), said=one(request.query_params, "said"))


async def show_findings(site: Site, request: Request) -> Response:
    """What is to be fixed; with `deep`, the index is held against the notes too, which takes longer."""

    def look(kb: KnowledgeBase) -> tuple[Problem, ...]:
        return kb.doctor().problems if one(request.query_params, "deep") else kb.lint()

    found = await site.study(look)
    return site.page(
        request,
        "findings.html",
        findings=found[:_PROBLEMS],
        total=len(found),
        is_deep=bool(one(request.query_params, "deep")),
    )


#: So many entries can still be distinguished, of all and around one.
_MOST, _MOST_AROUND = 120, 300
#: How many links away from the entry in the middle, as one may choose.
_STEPS = (1, 2, 3, 4)


async def show_graph(site: Site, request: Request) -> Response:
    """What hangs together with what: around one entry, or where most links meet."""
    asked, center = read_query(request.query_params), one(request.query_params, "id", 1_000)
    links = await _choose(site, asked, request.query_params)
    return site.page(
        request,
        "graph.html",
        asked=asked,
        links=links,
        center=center,
        choices=await site.choices(),
        depths=_STEPS,
        steps=_read_steps(request.query_params),
        at=one(request.query_params, "at", 1_000),
    )


async def send_graph(site: Site, request: Request) -> Response:
    """The same as data, for whoever draws it."""
    links = await _choose(site, read_query(request.query_params), request.query_params)
    nodes = [
        {"id": node.key, "name": node.title, "kind": node.kind, "scope": node.scope, "status": node.status,
         "href": entry_address(node.id, node.path, node.line)}
        for node in links.nodes
    ]  # fmt: skip
    return JSONResponse(
        {
            "nodes": nodes,
            "links": [
                {"source": edge.source, "target": edge.target, "relation": edge.relation} for edge in links.edges
            ],
        }
    )


def _read_steps(parameters: Parameters) -> int:
    word = one(parameters, "steps")
    return int(word) if word in map(str, _STEPS) else 2


async def _choose(site: Site, asked: PageQuery, parameters: Parameters) -> LinkMap:
    links = await site.keep("map", lambda kb: kb.link_map())
    wanted, at = one(parameters, "id", 1_000), one(parameters, "at", 1_000)
    if wanted:
        path = at.rpartition(":")[0]
        fitting = [node.key for node in links.nodes if node.id == wanted and path in ("", node.path)]
        if not fitting:
            named = (await site.read(lambda kb: kb.follow("", [wanted]))).get(wanted)
            fitting = [node.key for node in links.nodes if named and (node.path, node.line) == (named.path, named.line)]
            beginning = [node.key for node in links.nodes if node.id.startswith(wanted)]
            fitting = fitting or (beginning if len(beginning) == 1 else [])
        if not fitting:
            raise UnknownEntry(wanted)
        return take_around(links, fitting[0], _read_steps(parameters), _MOST_AROUND)
    folder = f"{asked.folder.strip('/')}/" if asked.folder.strip("/") else ""
    chosen = {
        node.key
        for node in links.nodes
        if node.kind in (asked.kind or (node.kind,))
        and node.scope in (asked.scope or (node.scope,))
        and node.path.startswith(folder)
    }
    return take_busiest(links, _MOST, chosen if asked.kind or asked.scope or folder else None)
