"""The page that says how the vault is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memory_kb.kb import KnowledgeBase
from memory_kb.model import Problem
from memory_kb.reports import RunView, Stats, Status
from memory_kb.verbs.browsing import Upkeep
from memory_kb.web.asking import one
from memory_kb.web.desk import Desk

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_RUNS, _PROBLEMS = 15, 300


class Health(NamedTuple):
    """What can be told at once."""

    status: Status
    stats: Stats
    upkeep: Upkeep
    runs: tuple[RunView, ...]
    warnings: tuple[str, ...]


async def show_health(desk: Desk, request: Request) -> Response:
    """How fresh the index is, what it holds, what was done and what it cost."""

    def look(kb: KnowledgeBase) -> Health:
        return Health(kb.status(), kb.stats(), kb.upkeep(), kb.runs()[:_RUNS], tuple(kb.vault.warnings))

    return desk.page(request, "health.html", health=await desk.study(look), said=one(request.query_params, "said"))


async def show_findings(desk: Desk, request: Request) -> Response:
    """What is to be mended; with `deep`, the index is held against the notes too, which takes longer."""

    def look(kb: KnowledgeBase) -> tuple[Problem, ...]:
        return kb.doctor().problems if one(request.query_params, "deep") else kb.lint()

    found = await desk.study(look)
    return desk.page(
        request,
        "findings.html",
        findings=found[:_PROBLEMS],
        total=len(found),
        is_deep=bool(one(request.query_params, "deep")),
    )
