"""Render notes as HTML that holds only text, structure and checked links."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markupsafe import Markup

from memory_kb.markdown.headings import find_anchor, find_headings, sections_by_heading
from memory_kb.markdown.links import find_tags
from memory_kb.model import Span
from memory_kb.web.addresses import attachment_address, is_harmless, link_attributes, media_kind, name_place
from memory_kb.web.note_syntax import add_note_syntax, nest

if TYPE_CHECKING:
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict
    from math_core import LatexToMathML


_EMBED = re.compile(r"^ {0,3}!\[\[([^\[\]|#\n]+)[^\[\]\n]*\]\][ \t]*$", re.MULTILINE)
_FILE = re.compile(r"\.(?!md\b)[A-Za-z0-9]{2,5}\s*\Z")
#: Longer texts are shown as they are written.
MAX_RENDERED = 400_000


#: What is read of a note to show it inside of another one: its path and the text below its frontmatter.
Embedded = tuple[str, str]


class LinkBase(NamedTuple):
    """The place of a text, and what links in it may lead to.

    `leads` says whether there is an entry of that name; None where it is not known. `embedded` are the notes that it
    shows, by the name it gives them. `passage` are its lines to be marked, from 0, the last one not included.
    `keeps_lines` says whether the lines of a paragraph are shown as they are written.
    """

    path: str
    leads: Callable[[str], bool] | None = None
    embedded: Mapping[str, Embedded] = {}
    passage: range = range(0)
    keeps_lines: bool = False


def render_note(text: str, place: LinkBase) -> Markup:
    """Return the HTML of a note; raw HTML is there as text, headings one level lower.

    Example:
        >>> print(render_note("# A <b>\\n\\n[[dingo|Dingo]] [x](javascript:alert)", LinkBase("a.md")))
        <h2 id="at-a-b">A &lt;b&gt;</h2>
        <p><a href="/go?to=dingo" class="wiki">Dingo</a> [x](javascript:alert)</p>
        <BLANKLINE>
    """
    # What scrolls can be reached by keys.
    html = _draw(text, place).replace("<pre><code", '<pre tabindex="0"><code')
    return Markup(html)  # noqa: S704 - the renderer escapes


def _draw(text: str, place: LinkBase) -> str:
    return str(_parser().render(text, {"place": place, "tags": frozenset(find_tags(text))}))


def without_title(text: str, title: str) -> str:
    """Return a text without a first heading that is a title, which is above it on the page.

    Example:
        >>> without_title("# Tea\\nGreen.", "Tea"), without_title("Green.", "Tea")
        ('Green.', 'Green.')
    """
    first, _, rest = text.partition("\n")
    return rest if first.startswith("#") and first.lstrip("#").strip() == title.strip() else text


def find_embeds(text: str) -> tuple[str, ...]:
    r"""Return the names of the notes that a text shows, each alone in its paragraph.

    Example:
        >>> find_embeds("![[Tea#Steps]]\n\n![[a.png]] and ![[b]]")
        ('Tea',)
    """
    return tuple(dict.fromkeys(found[1].strip() for found in _EMBED.finditer(text) if not _FILE.search(found[1])))


def find_contents(text: str) -> list[tuple[int, str, str]]:
    """Return the headings of a text: how deep, words, and the name of their place in the page."""
    headings = list(find_headings(text))
    depths = nest(one.level for one in headings)
    return [
        (depth, one.words, name_place(one.words.replace("#", " "))) for depth, one in zip(depths, headings, strict=True)
    ]


@functools.cache
def _parser() -> MarkdownIt:
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin

    options = {"html": False, "maxNesting": 40, "tasklists": True, "highlight": _colour_code}
    parser = MarkdownIt("commonmark", options, renderer_cls=_NoteRenderer)
    parser.enable(["table", "strikethrough"]).use(footnote_plugin).use(gfm_autolink_plugin)
    # `$inline$` and `$$display$$` are formulas, `$5 and $10` are none.
    parser.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True)
    for name in ("math_inline", "math_inline_double", "math_block"):
        parser.add_render_rule(name, _draw_formula)
    parser.validateLink = is_harmless  # type: ignore[method-assign,assignment]
    add_note_syntax(parser)
    return parser


def _colour_code(code: str, language: str, _attributes: str) -> str:
    """Return a block of code with its words in classes, or an empty text if its language is unknown."""
    if not language:
        return ""
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _picture(name: str, path: str, shown: str, size: str) -> str:
    sizes = [
        f' {side}="{length}"' for side, length in zip(("width", "height"), size.split("x"), strict=False) if length
    ]
    source, label = escape(attachment_address(name, path)), escape(shown or name)
    return f'<img src="{source}" alt="{label}"{"".join(sizes)} loading="lazy">'


class _NoteRenderer(RendererHTML):
    """Draws the tokens of a note that are not drawn as in other Markdown; each method draws those of its name."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token, place = tokens[idx], env["place"]
        target = token.meta.get("target")
        if "address" in token.meta:
            token.attrs = {"href": token.meta["address"], "class": "tag"}
        elif target is not None:
            if place.leads is not None and not place.leads(target):
                folder, _, name = target.removesuffix(".md").strip("/").rpartition("/")
                query = {"title": name} | ({"folder": folder} if folder else {})
                token.attrs |= {
                    "href": f"/new?{urlencode(query)}",
                    "class": f"{token.attrs['class']} missing",
                    "title": "no note is called that yet: make it",
                }
        else:
            token.attrs = link_attributes(str(token.attrs.get("href", "")), place.path) | (
                {"title": token.attrs["title"]} if "title" in token.attrs else {}
            )
        return self.renderToken(tokens, idx, options, env)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        address, shown = str(token.attrs.get("src", "")), self.renderInlineAsText(token.children, options, env)
        label = escape(f"picture: {shown or address}")
        if urlsplit(address).scheme in ("http", "https"):
            return f'<a href="{escape(address)}" rel="noopener noreferrer" class="away">{label}</a>'
        if not urlsplit(address).scheme and media_kind(urlsplit(address).path) == "image":
            return _picture(unquote(urlsplit(address).path), env["place"].path, shown, "")
        return f'<span class="picture">{label}</span>'

    def attachment(self, tokens: Sequence[Token], idx: int, _: OptionsDict, env: EnvType) -> str:
        meta, label = tokens[idx].meta, escape(tokens[idx].content)
        target, path = meta["target"], env["place"].path
        kind = media_kind(target)
        if kind == "image":
            return _picture(target, path, meta["shown"], meta["size"])
        address = escape(attachment_address(target, path))
        if kind in ("audio", "video"):
            return f'<{kind} controls preload="metadata" src="{address}" title="{label}"></{kind}>'
        return f'<a class="picture" href="{address}">{label}</a>'

    def embed(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Draw another note, or one part of it; what that one embeds is a link there."""
        token = tokens[idx]
        path, text = env["place"].embedded[token.meta["target"]]
        found = find_anchor(text, token.meta["anchor"]) if token.meta["anchor"] else Span(0, len(text))
        link = self.renderInline(token.children or [], options, env)
        if found is None:
            return link
        part = sections_by_heading(text).get(found, found)
        inside = _draw(text[part.start : part.end], LinkBase(path, keeps_lines=env["place"].keeps_lines))
        without_ids = inside.replace(' id="', ' data-id="')
        return f'<p class="from">{link}</p>{without_ids}'

    def softbreak(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002 - the parser passes them
        return "<br>\n" if env["place"].keeps_lines else "\n"

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Draw a cell of a table with a class in the place of a style, which the page's policy refuses."""
        token = tokens[idx]
        style = str(token.attrs.pop("style", ""))
        if style:
            token.attrs["class"] = f"align-{style.rpartition(':')[2]}"
        return self.renderToken(tokens, idx, options, env)

    th_open = td_open


#: A longer or deeper formula is shown as it is written: the converter calls itself for each level.
_MOST_CHARACTERS, _MOST_BRACES = 5_000, 500
_STYLE = re.compile(r' style="([^"]*)"')
#: What the converter says in styles, which the page's policy refuses, and the classes of `page.css` for it.
_CLASSES = {
    "text-align: right": "align-right",
    "text-align: left": "align-left",
    "padding-left: 0": "near-left",
    "padding-right: 0": "near-right",
    "width: 100%": "whole",
    "width: 50%": "half",
    "border-top": "line-top",
    "border-bottom": "line-bottom",
    "border-left": "line-left",
    "border-right": "line-right",
}
_COLOUR = re.compile(r"(?:^|;)color: ?(#[0-9A-Fa-f]{6})")


def convert(formula: str, *, is_display: bool) -> str:
    r"""Return the MathML of a formula; one that cannot be read is there as it is written.

    Example:
        >>> convert(r"\nonsense <b>", is_display=False)
        '<code class="formula" title="a formula that cannot be read">\\nonsense &lt;b&gt;</code>'
    """
    if len(formula) <= _MOST_CHARACTERS and formula.count("{") <= _MOST_BRACES:
        try:
            drawn = _converter().convert_with_local_state(formula, displaystyle=is_display)
            return _STYLE.sub(_name_style, drawn).replace("<math display", '<math tabindex="0" display', 1)
        except Exception:  # noqa: BLE001, S110 - what a note holds never keeps it from being shown
            pass
    return f'<code class="formula" title="a formula that cannot be read">{escape(formula)}</code>'


@functools.cache
def _converter() -> LatexToMathML:
    from math_core import LatexToMathML

    return LatexToMathML(fancy_error=False)


def _name_style(found: re.Match[str]) -> str:
    colour, words = _COLOUR.search(found[1]), [name for style, name in _CLASSES.items() if style in found[1]]
    return (f' mathcolor="{colour[1]}"' if colour else "") + (f' class="{" ".join(words)}"' if words else "")


def _draw_formula(_renderer: Any, tokens: Any, number: int, _options: Any, _env: Any) -> str:
    token = tokens[number]
    return convert(token.content.strip(), is_display=token.type != "math_inline") + ("\n" if token.block else "")
