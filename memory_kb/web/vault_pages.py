"""The pages about a whole vault: search, list, health, findings, link graph, review queue and sessions."""

from __future__ import annotations

import itertools
import re
from html import escape, unescape
from textwrap import dedent
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import JSONResponse, Response

from memory_kb.context.highlight import read_query_words
from memory_kb.errors import UsageError
from memory_kb.index.doctor import LintPass
from memory_kb.index.link_map import LinkMap
from memory_kb.model import PER_ENTRY, Hit
from memory_kb.text import encode, hash_of
from memory_kb.web.addresses import entry_address
from memory_kb.web.page_query import LONGEST_FORM, PAGE_SIZE, PageQuery
from memory_kb.web.render import LinkBase, render_note, without_title
from memory_kb.web.site import PageRequest, see_other
from memory_kb.web_queries import LastLook

#: Hits while somebody types, on the page itself, and when more are asked for.
_TYPING, _LIMIT, _MORE = 10, 20, 100
_NEWEST = 8


class ShownHit(NamedTuple):
    """A hit with its text as HTML; only what is in this vault has a page."""

    hit: Hit
    title: list[str]
    passage: Markup
    is_here: bool = True

    @property
    def address(self) -> str:
        """The place of the passage on the page of its entry."""
        hit = self.hit
        return f"{entry_address(hit.id, hit.path, hit.line)}&lines={hit.line}-{hit.end_line}#passage"


def show_search(request: PageRequest) -> Response:
    """The page that one begins with; with a question, what answers it, in all ways that there are."""
    return _draw_search(request, "search.html", _MORE if request.param("more") else _LIMIT)


def show_results(request: PageRequest) -> Response:
    """The part of that page that changes while somebody types: words alone, no model is asked."""
    address = request.query.address("/")
    if "hx-request" not in request.http.headers:
        return see_other(address)
    return _draw_search(request, "results.html", _TYPING, is_typing=True, headers={"hx-replace-url": address})


def _draw_search(
    request: PageRequest, template: str, limit: int, *, is_typing: bool = False, headers: dict[str, str] | None = None
) -> Response:
    kb, asked, vaults = request.kb, request.query, request.site.info.vaults
    found: dict[str, Any] = {"notes": [], "result": None, "newest": None, "recent": None}
    if asked.query.strip():
        how: dict[str, Any] = {
            "mode": "text" if is_typing else "auto",
            "explain": True,
            "is_typing": is_typing,
            "vaults": vaults,
        }
        found["result"] = kb.search(asked.query, limit=limit, per_entry=PER_ENTRY, **how, **asked.filters)
        own = kb.index.team.name if vaults else None

        def show(hit: Hit) -> ShownHit:
            passage = render_passage(without_title(hit.text, hit.title), asked.query, hit.path)
            return ShownHit(hit, read_query_words(asked.query).split(hit.title), passage, hit.vault in (None, own))

        found["notes"] = [[show(hit) for hit in hits] for hits in found["result"].notes]
    elif asked.is_filtered:
        found["newest"] = kb.browse(limit=_NEWEST, **asked.filters)
    else:
        found["recent"] = request.cached("recent", lambda kb: kb.recent())
    return request.page(template, headers=headers, asked=asked, choices=request.choices(), **found)


def show_browse(request: PageRequest) -> Response:
    """Entries a page at a time."""
    asked = request.query
    offset = (asked.page - 1) * PAGE_SIZE
    browsed = request.kb.browse(order=asked.order, offset=offset, limit=PAGE_SIZE, folder=asked.folder, **asked.filters)
    pages = -(-browsed.total // PAGE_SIZE)
    return request.page(
        "browse.html", asked=asked, browsed=browsed, pages=pages, first=offset + 1, choices=request.choices()
    )


def go(request: PageRequest) -> Response:
    """Follow a link by the name that it gives its target."""
    name = request.param("to")
    found = request.kb.follow(request.param("from", 1_000), [name]).get(name)
    if found is None:
        return see_other(PageQuery(query=name).address("/"))
    return see_other(entry_address(found.id, found.path, found.line))


_HTML_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)([^>]*)>")
_LEFT_OUT = frozenset(("a", "audio", "video", "hr", "section", "sup", "mark"))
_REPLACED = {"details": "div", "summary": "p"} | {f"h{level}": "h3" for level in range(1, 7)}


def render_passage(text: str, query: str, path: str) -> Markup:
    """Return the HTML of a passage of a note, with the words of a query marked; nothing in it can be followed.

    Example:
        >>> print(render_passage("## Tea\\n\\n**Green** [[tea]]", "green tea", "a.md").strip())
        <h3><mark>Tea</mark></h3>
        <p><strong><mark>Green</mark></strong> <mark>tea</mark></p>
    """
    html = render_note(dedent(text), LinkBase(path))
    marked = _mark_html(_HTML_TAG.sub(_without_action, html), read_query_words(query))
    return Markup(marked)  # noqa: S704 - the renderer escapes


def _without_action(found: re.Match[str]) -> str:
    """Return a tag of a note as it is in a passage: without links, pictures, fields, headings and names of places."""
    close, name, attributes = found[1], found[2], found[3]
    if name == "img":
        shown = re.search(r'alt="([^"]*)"', attributes)
        return f'<span class="picture">{shown[1]}</span>' if shown else ""
    if name == "input":
        return "☑ " if "checked=" in attributes else "☐ "
    if name in _LEFT_OUT:
        return ""
    name = _REPLACED.get(name, name)
    kept = "".join(re.findall(r' (?:class|xmlns|display)="[^"]*"', attributes))
    return f"<{close}{name}{kept}>"


def _mark_html(html: str, wanted: re.Pattern[str]) -> str:
    """Return HTML with the words of a query marked, but for those in formulas."""
    pieces, is_formula = [], False
    for number, piece in enumerate(re.split(r"(<[^>]*>)", html)):
        is_formula = piece.startswith("<math") or (is_formula and piece != "</math>")
        if number % 2 or is_formula:
            pieces.append(piece)
            continue
        words = enumerate(map(escape, wanted.split(unescape(piece))))
        pieces += [f"<mark>{word}</mark>" if place % 2 else word for place, word in words]
    return "".join(pieces)


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
    return last, last.is_large and request.site.looks.begin(verb, is_due=not last.is_current)


#: So many entries can still be distinguished, of all and around one.
_MOST, _MOST_AROUND = 120, 300
#: How many links away from the entry in the middle, as one may choose.
_STEPS = (1, 2, 3, 4)


def show_graph(request: PageRequest) -> Response:
    """The link graph: around one entry, or around the entries with the most links."""
    links, steps = _choose_links(request)
    return request.page(
        "graph.html", is_looking=_look_again(request, "lint")[1], asked=request.query, links=links, depths=_STEPS,
        center=request.param("id", 1_000), choices=request.choices(), steps=steps, at=request.param("at", 1_000),
    )  # fmt: skip


def send_graph(request: PageRequest) -> Response:
    """The link graph as JSON, for the script that draws it."""
    links, _ = _choose_links(request)
    nodes = [
        {"id": node.key, "name": node.title, "kind": node.kind, "scope": node.scope, "status": node.status,
         "href": entry_address(node.id, node.path, node.line)}
        for node in links.nodes
    ]  # fmt: skip
    return JSONResponse({"nodes": nodes, "links": [one._asdict() for one in links.edges]})


def _choose_links(request: PageRequest) -> tuple[LinkMap, int]:
    """Return the links that are asked for, and how far away from the entry in the middle they go."""
    asked, wanted, word = request.query, request.param("id", 1_000), request.param("steps")
    steps = int(word) if word in map(str, _STEPS) else 2
    if wanted:
        path = request.param("at", 1_000).rpartition(":")[0]
        return request.kb.links_around(wanted, path, steps, _MOST_AROUND), steps
    folder = f"{asked.folder.strip('/')}/" if asked.folder.strip("/") else ""
    return request.kb.busiest_links(_MOST, asked.kind, asked.scope, folder), steps


#: The most days that one is left out of the queue.
_MOST_DAYS = 365


def show_queue(request: PageRequest) -> Response:
    """What waits for a judgment."""
    asked, items = request.query, request.cached("review", lambda kb: kb.review.list())
    first = (asked.page - 1) * PAGE_SIZE
    shown = items[first : first + PAGE_SIZE]
    texts = [render_note(item.text, LinkBase(item.path)) for item in shown]
    pages = -(-len(items) // PAGE_SIZE)
    return request.page("review.html", asked=asked, items=shown, total=len(items), texts=texts, pages=pages)


def show_item(request: PageRequest) -> Response:
    """One that waits, with its text and what each judgment would write."""
    review, entry = request.kb.review, request.entry()
    view = review.show(entry)
    rejection = review.reject(entry, dry_run=True).diff
    text = view.text.partition("\n---\n")[2] if view.text.startswith("---") else view.text
    body = render_note(text, LinkBase(view.item.path))
    return request.page(
        "reviewitem.html", view=view, item=view.item, body=body, rejection=rejection, wanted=request.wanted,
        text=text.strip("\n"), was=hash_of(encode(view.text)), at=f"{view.item.path}:{view.item.line}",
    )  # fmt: skip


def judge(request: PageRequest) -> Response:
    """Approve, reject, edit or snooze one that waits."""
    judgment, review = request.param("judgment"), request.kb.review
    entry = request.entry()
    if judgment == "approve":
        run = review.approve(entry)
    elif judgment == "reject":
        run = review.reject(entry, reason=request.param("reason", 1_000).strip() or None)
    elif judgment == "edit":
        run = review.edit(entry, request.param("text", LONGEST_FORM), was=request.param("was"))
    elif judgment == "snooze":
        days = request.param("days")
        if not (days.isdecimal() and 0 < int(days) <= _MOST_DAYS):
            raise UsageError(f"{days!r} is no number of days", f"it may be 1 to {_MOST_DAYS}")
        run = review.snooze(entry, days=int(days))
    else:
        raise UsageError("a judgment is to approve, reject, edit or snooze")
    said = "conflict" if run.conflicts else judgment if run.changes else "same"
    return see_other(f"/review?said={said}{f'&run={run.run}' if run.run else ''}")


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


def read_snippet(text: str) -> list[str]:
    """Return a snippet of the session search cut at what it marks, which is at odd places.

    Example:
        >>> read_snippet("a >>>flaky<<< test")
        ['a ', 'flaky', ' test']
    """
    return re.split(r">>>(.*?)<<<", text, flags=re.DOTALL)
