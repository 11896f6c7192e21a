"""The pages of sessions: the list, a search in them, and the events of one."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from memory_kb.context.highlight import Stretch
from memory_kb.web.site import PAGE_SIZE, PageRequest

if TYPE_CHECKING:
    from starlette.responses import Response

_EVENTS = 200
#: So much of a long text is shown at first.
_LONG = 1_500


def show_sessions(request: PageRequest) -> Response:
    """The sessions, or the events of any that fit a query."""
    asked, sessions = request.query, request.kb.sessions
    hits = sessions.search(asked.query, limit=PAGE_SIZE) if asked.query.strip() else None
    seen = sessions.list().sessions
    first = (asked.page - 1) * PAGE_SIZE
    snippets = [(hit, read_snippet(hit.content_snippet)) for hit in hits.hits] if hits else []
    return request.page(
        "sessions.html", asked=asked, hits=hits, snippets=snippets, sessions=seen[first : first + PAGE_SIZE],
        total=len(seen), pages=-(-len(seen) // PAGE_SIZE),
    )  # fmt: skip


def show_session(request: PageRequest) -> Response:
    """One session, event by event."""
    asked, session, sessions = request.query, request.param("session"), request.kb.sessions
    first = (asked.page - 1) * _EVENTS
    events = list(itertools.islice(sessions.replay(session), first, first + _EVENTS + 1))
    seen = next((one for one in sessions.list().sessions if one.session == session), None)
    return request.page(
        "session.html", seen=seen, asked=asked, session=session, events=events[:_EVENTS],
        has_more=len(events) > _EVENTS, long=_LONG,
    )  # fmt: skip


def read_snippet(text: str) -> tuple[Stretch, ...]:
    """Return a snippet of the session search cut at what it marks.

    Example:
        >>> [piece.text for piece in read_snippet("a >>>flaky<<< test") if piece.is_hit]
        ['flaky']
    """
    pieces = re.split(r">>>(.*?)<<<", text, flags=re.DOTALL)
    return tuple(Stretch(piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece)
