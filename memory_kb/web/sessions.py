"""The pages of sessions: the list, a search in them, and the events of one."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from memory_kb.context.highlight import Stretch
from memory_kb.web.site import PAGE_SIZE, Site, param, read_query

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_EVENTS = 200
#: So much of a long text is shown at first.
_LONG = 1_500


async def show_sessions(site: Site, request: Request) -> Response:
    """The sessions, or the events of any that fit a query."""
    asked = read_query(request.query_params)
    hits = (
        await site.study(lambda kb: kb.sessions.search(asked.query, limit=PAGE_SIZE)) if asked.query.strip() else None
    )
    seen = (await site.study(lambda kb: kb.sessions.list())).sessions
    first = (asked.page - 1) * PAGE_SIZE
    snippets = [(hit, read_snippet(hit.content_snippet)) for hit in hits.hits] if hits else []
    return site.page(
        request, "sessions.html", asked=asked, hits=hits, snippets=snippets, sessions=seen[first : first + PAGE_SIZE], total=len(seen),
        pages=-(-len(seen) // PAGE_SIZE),
    )  # fmt: skip


async def show_session(site: Site, request: Request) -> Response:
    """One session, event by event."""
    asked, session = read_query(request.query_params), param(request.query_params, "session")
    first = (asked.page - 1) * _EVENTS
    events = await site.study(
        lambda kb: list(itertools.islice(kb.sessions.replay(session), first, first + _EVENTS + 1))
    )
    every = (await site.study(lambda kb: kb.sessions.list())).sessions
    return site.page(
        request, "session.html", seen=next((one for one in every if one.session == session), None), asked=asked,
        session=session, events=events[:_EVENTS], has_more=len(events) > _EVENTS, long=_LONG,
    )  # fmt: skip


def read_snippet(text: str) -> tuple[Stretch, ...]:
    """Return a snippet of the session search cut at what it marks.

    Example:
        >>> [piece.text for piece in read_snippet("a >>>flaky<<< test") if piece.is_hit]
        ['flaky']
    """
    pieces = re.split(r">>>(.*?)<<<", text, flags=re.DOTALL)
    return tuple(Stretch(piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece)
