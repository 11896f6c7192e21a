"""The page of the link graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from memory_kb.errors import UnknownEntry
from memory_kb.index.browsing import LinkMap, take_around, take_busiest
from memory_kb.web.asking import Asked, Parameters, one, read_asked
from memory_kb.web.desk import Desk
from memory_kb.web.drawing import entry_address
from memory_kb.words import KINDS, SCOPES

if TYPE_CHECKING:
    from starlette.requests import Request

#: So many entries can still be told apart.
_MOST = 120
_STEPS = 2


async def show_graph(desk: Desk, request: Request) -> Response:
    """What hangs together with what: around one entry, or where most links meet."""
    asked, center = read_asked(request.query_params), one(request.query_params, "id", 1_000)
    links = await _choose(desk, asked, request.query_params)
    return desk.page(request, "graph.html", asked=asked, links=links, center=center, kinds=tuple(KINDS), scopes=SCOPES)


async def send_graph(desk: Desk, request: Request) -> Response:
    """The same as data, for whoever draws it."""
    links = await _choose(desk, read_asked(request.query_params), request.query_params)
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


async def _choose(desk: Desk, asked: Asked, parameters: Parameters) -> LinkMap:
    links = await desk.keep("names", lambda kb: kb.link_map())
    wanted, at = one(parameters, "id", 1_000), one(parameters, "at", 1_000)
    if wanted:
        path = at.rpartition(":")[0]
        fitting = [node.key for node in links.nodes if node.id == wanted and path in ("", node.path)]
        key = fitting[0] if fitting else links.names.get(wanted.casefold())
        if key is None:
            raise UnknownEntry(wanted)
        return take_around(links, key, _STEPS, _MOST)
    chosen = {
        node.key
        for node in links.nodes
        if node.kind in (asked.kind or (node.kind,)) and node.scope in (asked.scope or (node.scope,))
    }
    return take_busiest(links, _MOST, chosen if asked.kind or asked.scope else None)
