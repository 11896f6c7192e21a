"""Render a passage of a note as HTML with the words of a query marked."""

from __future__ import annotations

import re
from html import escape, unescape
from textwrap import dedent

from memory_kb.context.highlight import mark_words, read_query_words

_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)([^>]*)>")
_LEFT_OUT = frozenset(("a", "audio", "video", "hr", "section", "sup", "mark"))
_REPLACED = {"details": "div", "summary": "p"} | {f"h{level}": "h3" for level in range(1, 7)}


def render_passage(text: str, query: str, path: str) -> str:
    """Return the HTML of a passage of a note, with the words of a query marked; nothing in it can be followed.

    Example:
        >>> render_passage("## Tea\\n\\n- **Green** [[tea]]\\n", "green tea", "a.md")
        '<h3><mark>Tea</mark></h3>\\n<ul>\\n<li><strong><mark>Green</mark></strong> <mark>tea</mark></li>\\n</ul>\\n'
    """
    from memory_kb.web.render import LinkBase, render

    return _mark_html(_TAG.sub(_without_action, render(dedent(text), LinkBase(path))), read_query_words(query))


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
        text = unescape(piece)
        pieces += [
            f"<mark>{escape(one.text)}</mark>" if one.is_hit else escape(one.text) for one in mark_words(text, wanted)
        ]
    return "".join(pieces)
