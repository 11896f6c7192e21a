"""The pages that search and list entries."""

from __future__ import annotations

import re
from html import escape, unescape
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from memory_kb.context.highlight import Stretch, mark, mark_words, read_query_words
from memory_kb.model import PER_ENTRY, Hit
from memory_kb.web.charts import entry_address
from memory_kb.web.render import LinkBase, render_note, without_title
from memory_kb.web.site import PAGE_SIZE, PageQuery, PageRequest, see_other

if TYPE_CHECKING:
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
        found["notes"] = [[_show_hit(hit, asked.query, own) for hit in hits] for hits in found["result"].notes]
    elif asked.is_filtered:
        found["newest"] = kb.browse(limit=_NEWEST, **asked.filters)
    else:
        found["recent"] = request.kept("recent", lambda kb: kb.recent())
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


def _show_hit(hit: Hit, query: str, own_vault: str | None) -> ShownHit:
    passage = render_passage(without_title(hit.text, hit.title), query, hit.path)
    safe = Markup(passage)  # noqa: S704 - the renderer escapes
    return ShownHit(hit, mark(hit.title, query), safe, hit.vault in (None, own_vault))


_HTML_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)([^>]*)>")
_LEFT_OUT = frozenset(("a", "audio", "video", "hr", "section", "sup", "mark"))
_REPLACED = {"details": "div", "summary": "p"} | {f"h{level}": "h3" for level in range(1, 7)}


def render_passage(text: str, query: str, path: str) -> str:
    """Return the HTML of a passage of a note, with the words of a query marked; nothing in it can be followed.

    Example:
        >>> render_passage("## Tea\\n\\n- **Green** [[tea]]\\n", "green tea", "a.md")
        '<h3><mark>Tea</mark></h3>\\n<ul>\\n<li><strong><mark>Green</mark></strong> <mark>tea</mark></li>\\n</ul>\\n'
    """
    html = render_note(dedent(text), LinkBase(path))
    return _mark_html(_HTML_TAG.sub(_without_action, html), read_query_words(query))


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


def _mark_html(html: str, wanted: re.Pattern[str] | None) -> str:
    """Return HTML with the words of a query marked, but for those in formulas."""
    pieces, is_formula = [], False
    for number, piece in enumerate(re.split(r"(<[^>]*>)", html)):
        is_formula = piece.startswith("<math") or (is_formula and piece != "</math>")
        if number % 2 or is_formula:
            pieces.append(piece)
            continue
        words = mark_words(unescape(piece), wanted)
        pieces += [f"<mark>{escape(one.text)}</mark>" if one.is_hit else escape(one.text) for one in words]
    return "".join(pieces)
