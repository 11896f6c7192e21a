"""The pages with the health of a vault, its findings and its link graph."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from memory_kb.index.doctor import LintPass
from memory_kb.index.link_map import LinkMap
from memory_kb.web.charts import entry_address
from memory_kb.web.site import PageRequest
from memory_kb.web_queries import LastLook

_RUNS, _PROBLEMS = 15, 300


def show_health(request: PageRequest) -> Response:
    """How fresh the index is, what it holds, what was done and what it cost."""
    kb = request.kb
    health = {"status": kb.status(), "stats": kb.stats(), "upkeep": kb.upkeep()}
    return request.page("health.html", health=health | {"runs": kb.runs()[:_RUNS], "warnings": kb.vault.warnings})


def show_findings(request: PageRequest) -> Response:
    """The findings; with `deep`, the index is compared with the notes too, which takes longer.

    Of a large vault it is what was found last, while a look in the background finds what is new.
    """
    is_deep = bool(request.param("deep"))
    verb = "doctor" if is_deep else "lint"
    last, is_looking = _look_again(request, verb)
    if not last.is_large:
        found = request.kb.doctor().problems if is_deep else request.kb.lint()
        last = last._replace(look=LintPass(last.generation, "", len(found), found[:_PROBLEMS]))
    return request.page("findings.html", last=last, is_looking=is_looking, is_deep=is_deep)


def _look_again(request: PageRequest, verb: str) -> tuple[LastLook, bool]:
    """Return what `lint` or `doctor` found last, and whether a large vault is being examined in the background."""
    last = request.kb.last_look(verb)
    return last, last.is_large and request.site.look_again(verb, is_current=last.is_current)


#: So many entries can still be distinguished, of all and around one.
_MOST, _MOST_AROUND = 120, 300
#: How many links away from the entry in the middle, as one may choose.
_STEPS = (1, 2, 3, 4)


def show_graph(request: PageRequest) -> Response:
    """The link graph: around one entry, or around the entries with the most links."""
    links = _choose_links(request)
    return request.page(
        "graph.html", is_looking=_look_again(request, "lint")[1], asked=request.query, links=links,
        center=request.param("id", 1_000), choices=request.choices(), depths=_STEPS, steps=_read_steps(request),
        at=request.param("at", 1_000),
    )  # fmt: skip


def send_graph(request: PageRequest) -> Response:
    """The link graph as JSON, for the script that draws it."""
    links = _choose_links(request)
    nodes = [
        {"id": node.key, "name": node.title, "kind": node.kind, "scope": node.scope, "status": node.status,
         "href": entry_address(node.id, node.path, node.line)}
        for node in links.nodes
    ]  # fmt: skip
    edges = [{"source": one.source, "target": one.target, "relation": one.relation} for one in links.edges]
    return JSONResponse({"nodes": nodes, "links": edges})


def _read_steps(request: PageRequest) -> int:
    word = request.param("steps")
    return int(word) if word in map(str, _STEPS) else 2


def _choose_links(request: PageRequest) -> LinkMap:
    asked, wanted, path = request.query, request.param("id", 1_000), request.param("at", 1_000).rpartition(":")[0]
    if wanted:
        return request.kb.links_around(wanted, path, _read_steps(request), _MOST_AROUND)
    folder = f"{asked.folder.strip('/')}/" if asked.folder.strip("/") else ""
    return request.kb.busiest_links(_MOST, asked.kind, asked.scope, folder)
