"""Render notes as HTML that holds only text, structure and checked links."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from memory_kb.markdown.headings import find_anchor, find_headings, find_section, normal_heading
from memory_kb.markdown.links import WIKILINK, find_tags, find_wikilinks
from memory_kb.model import Span
from memory_kb.terms import MARKS
from memory_kb.web.formulas import add_formulas

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.utils import EnvType, OptionsDict

_SCHEMES = ("http", "https", "mailto")
_BLOCK = re.compile(r"(?:^|[ \t\n])\^([A-Za-z0-9-]+)[ \t]*\Z")
_EMBED = re.compile(r"^ {0,3}!\[\[([^\[\]|#\n]+)[^\[\]\n]*\]\][ \t]*$", re.MULTILINE)
_FILE = re.compile(r"\.(?!md\b)[A-Za-z0-9]{2,5}\s*\Z")
_TAG = re.compile(rf"(?<![\w#/&])#([^\W_][\w{MARKS}/-]*)")
_SIZE = re.compile(r"\d+(?:x\d+)?\Z")
_NOTE = re.compile(r"\.md$", re.IGNORECASE)
_CALLOUT = re.compile(r"\[!(?P<kind>[A-Za-z][\w-]*)\](?P<fold>[+-]?)(?P<title>[^\n]*)")
_HIGHLIGHT = re.compile(r"==(?=[^\s=])((?:(?!==)[^\n])*[^\s=])==(?!=)")
_OWN_PART = re.compile(r"\[\[#([^\[\]|\n]+?)(?:\\?\|([^\[\]\n]*))?\]\]")
#: The only files that are sent, by how their names end.
ATTACHMENT_TYPES = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".wav": "audio/wav",
    ".mov": "video/quicktime",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}
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


def render_note(text: str, place: LinkBase) -> str:
    """Return the HTML of a note; raw HTML is there as text, headings one level lower.

    Example:
        >>> render_note("# A <b>\\n\\n[[dingo|Dingo]] [x](javascript:alert)", LinkBase("a.md"))
        '<h2 id="at-a-b">A &lt;b&gt;</h2>\\n<p><a href="/go?to=dingo" class="wiki">Dingo</a> [x](javascript:alert)</p>\\n'
    """
    # What scrolls can be reached by keys.
    return _draw(text, place).replace("<pre><code", '<pre tabindex="0"><code')


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
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin

    options = {"html": False, "maxNesting": 40, "tasklists": True, "highlight": _colour_code}
    parser = MarkdownIt("commonmark", options, renderer_cls=_NoteRenderer)
    parser.enable(["table", "strikethrough"]).use(footnote_plugin).use(gfm_autolink_plugin)
    add_formulas(parser)
    parser.validateLink = _is_harmless  # type: ignore[method-assign,assignment]
    parser.block.ruler.before("paragraph", "comment", _skip_comment)
    parser.core.ruler.before("inline", "callouts", _mark_callouts)
    parser.inline.ruler.before("link", "wikilink", _read_wikilink)
    parser.inline.add_terminator_char("=")
    parser.inline.add_terminator_char("%")
    parser.inline.ruler.before("emphasis", "highlight", _read_highlight)
    parser.inline.ruler.before("emphasis", "comment", _skip_inline_comment)
    parser.inline.add_terminator_char("#")
    parser.inline.ruler.before("link", "tag", _read_tag)
    parser.core.ruler.push("levels", _nest_headings)
    parser.core.ruler.push("places", _name_places)
    parser.core.ruler.push("embeds", _show_embeds)
    parser.core.ruler.push("passage", _mark_passage)
    return parser


def _is_harmless(address: str) -> bool:
    """Return whether an address may be linked to.

    Example:
        >>> [_is_harmless(one) for one in ("https://a.b", "b.md#x", "java\\tscript:x", "data:text/html,x", "//evil.example")]
        [True, True, False, False, False]
    """
    bare = re.sub(r"[\x00-\x20]", "", unquote(address))
    try:
        parts = urlsplit(bare)
    except ValueError:
        return False
    return parts.scheme.lower() in _SCHEMES if parts.scheme else not parts.netloc and not bare.startswith(("//", "\\"))


def _mark_callouts(state: StateCore) -> None:
    """Turn quotes that begin with `[!type] Title` into callouts; `-` and `+` behind the brackets make them fold."""
    tokens = state.tokens
    bodies: dict[int, list[Token]] = {}
    for number in range(len(tokens) - 3):
        opening, paragraph, words, end = tokens[number : number + 4]
        is_quote = (opening.type, paragraph.type) == ("blockquote_open", "paragraph_open")
        found = _CALLOUT.match(words.content) if is_quote else None
        if found is None:
            continue
        later = (tokens[place] for place in range(number, len(tokens)))
        closing = next(one for one in later if one.type == "blockquote_close" and one.level == opening.level)
        kind, fold = found["kind"].casefold(), found["fold"]
        opening.tag = closing.tag = "details" if fold else "div"
        opening.attrSet("class", f"callout callout-{kind}")
        if fold == "+":
            opening.attrSet("open", "")
        paragraph.tag = end.tag = "summary" if fold else "p"
        paragraph.attrSet("class", "callout-title")
        bodies[number + 3] = _paragraph(words, words.content[found.end() :].strip("\n"))
        words.content = found["title"].strip() or kind.capitalize()
    state.tokens = [one for number, token in enumerate(tokens) for one in (token, *bodies.get(number, ()))]


def _paragraph(words: Token, content: str) -> list[Token]:
    """Return the tokens of a paragraph beside another; none for no text."""
    if not content:
        return []
    inline = Token("inline", "", 0, content=content, children=[], block=True, level=words.level, map=words.map)
    return [Token("paragraph_open", "p", 1, block=True), inline, Token("paragraph_close", "p", -1, block=True)]


def _skip_comment(state: StateBlock, start: int, stop: int, silent: bool) -> bool:  # noqa: FBT001 - the parser's
    """Leave out a comment that fills its lines, from `%%` to `%%`."""
    begin = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith("%%", begin):
        return False
    for line in range(start, stop):
        place = begin + 2 if line == start else state.bMarks[line]
        if state.src[place : state.eMarks[line]].rstrip().endswith("%%"):
            if not silent:
                state.line = line + 1
            return True
    return False


def _skip_inline_comment(state: StateInline, silent: bool) -> bool:  # noqa: ARG001, FBT001 - the parser's own signature
    close = state.src.find("%%", state.pos + 2, state.posMax) if state.src.startswith("%%", state.pos) else -1
    if close < 0:
        return False
    state.pos = close + 2
    return True


def _push_link(state: StateInline, shown: str) -> Token:
    """Add a link around some words; return its opening, for its address."""
    opening = state.push("link_open", "a", 1)
    state.push("text", "", 0).content = shown
    state.push("link_close", "a", -1)
    return opening


def _read_tag(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's own signature
    """Read a `#tag` of the note, as a link to the entries that have it."""
    found = _TAG.match(state.src, state.pos, state.posMax)
    tag = found[1].rstrip("/-") if found else ""
    if tag not in state.env["tags"] or state.linkLevel:
        return False
    if not silent:
        _push_link(state, f"#{tag}").meta = {"address": f"/browse?{urlencode({'tag': tag})}"}
    state.pos += len(tag) + 1
    return True


def _read_highlight(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's own signature
    found = _HIGHLIGHT.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        end, state.pos, state.posMax = state.posMax, found.start(1), found.end(1)
        state.push("mark_open", "mark", 1)
        state.md.inline.tokenize(state)
        state.push("mark_close", "mark", -1)
        state.posMax = end
    state.pos = found.end()
    return True


def _read_own_part(state: StateInline, *, silent: bool) -> bool:
    """Read a link to a heading of the same note, such as `[[#Steps|how]]`."""
    found = _OWN_PART.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        shown = (found[2] or "").strip() or found[1].strip()
        _push_link(state, shown).attrs = {"href": f"#{quote(found[1].strip())}"}
    state.pos = found.end()
    return True


def _read_wikilink(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's own signature
    is_embed = state.src.startswith("![[", state.pos)
    if not is_embed and not state.src.startswith("[[", state.pos):
        return False
    if state.src.startswith("[[#", state.pos):
        return _read_own_part(state, silent=silent)
    found = WIKILINK.match(state.src, state.pos + is_embed, state.posMax)
    if found is None or not found[1].strip() or _is_in_comment(state.src, state.pos):
        return False
    if not silent:
        target, anchor = found[1].strip(), (found[2] or "").strip()
        shown = (found[3] or "").lstrip("\\").removeprefix("|").strip()
        shown = "" if is_embed and _SIZE.match(shown) else shown
        if any(link.is_attachment for link in find_wikilinks(f"[[{target}]]")):
            token = state.push("attachment", "", 0)
            size = _SIZE.match((found[3] or "").lstrip("\\").removeprefix("|").strip())
            token.meta = {"target": target, "shown": shown, "size": size[0] if size else ""}
            token.content = f"{'picture' if _media(target) == 'image' else 'file'}: {shown or target}"
        else:
            opening = _push_link(state, shown or f"{target}{anchor}")
            opening.attrs = {
                "href": f"/go?{urlencode({'to': target} | _origin(state.env['place'].path))}{_fragment(anchor[1:])}",
                "class": "wiki embed" if is_embed else "wiki",
            }
            opening.meta = {"target": target, "anchor": anchor.lstrip("#")}
    state.pos = found.end()
    return True


def _origin(path: str) -> dict[str, str]:
    """Return what an address says of the note that a link is in: its own folder is searched first."""
    return {"from": path} if "/" in path else {}


def _is_in_comment(text: str, place: int) -> bool:
    start = text.rfind("<!--", 0, place)
    return start >= 0 and 0 <= text.find("-->", start) > place


def name_place(anchor: str) -> str:
    """Return what a heading or `^block` is called within a page; no other part of it is called so.

    Example:
        >>> name_place("Part#Why we **wait**"), name_place("^Rb1")
        ('at-why-we-wait', 'at-^rb1')
    """
    last = anchor.rpartition("#")[2].strip()
    return f"at-{last.casefold() if last.startswith('^') else normal_heading(last).replace(' ', '-')}"


def _fragment(anchor: str) -> str:
    return f"#{quote(name_place(anchor))}" if anchor.strip() else ""


def nest(levels: Iterable[int]) -> list[int]:
    """Return how deep each heading is below others, from 1; levels that are left out do not count.

    Example:
        >>> nest([3, 5, 3, 1, 2])
        [1, 2, 1, 1, 2]
    """
    above: list[int] = []
    depths = []
    for level in levels:
        above = [one for one in above if one < level] + [level]
        depths.append(len(above))
    return depths


def _nest_headings(state: StateCore) -> None:
    """Put the headings of a text below the title of its page, each one level below what it is under."""
    openings = [token for token in state.tokens if token.type == "heading_open"]
    closings = [token for token in state.tokens if token.type == "heading_close"]
    for opening, closing, depth in zip(openings, closings, nest(int(one.tag[1]) for one in openings), strict=True):
        opening.tag = closing.tag = f"h{min(6, depth + 1)}"


def _name_places(state: StateCore) -> None:
    """Name the headings and blocks of a text, so that links lead to them; the ids of blocks are not shown."""
    for number, token in enumerate(state.tokens):
        if token.type != "inline" or number == 0:
            continue
        opening = state.tokens[number - 1]
        if opening.type == "heading_open":
            opening.attrSet("id", name_place(token.content.replace("#", " ")))
            continue
        found, last = _BLOCK.search(token.content), token.children[-1] if token.children else None
        if found and last and last.type == "text" and last.content.rstrip().endswith(f"^{found[1]}"):
            last.content = last.content.rstrip()[: -len(found[1]) - 1].rstrip()
            # The paragraph of an item in a tight list is not drawn.
            holder = state.tokens[number - 2] if opening.hidden and number > 1 else opening
            holder.attrSet("id", name_place(f"^{found[1]}"))


def _show_embeds(state: StateCore) -> None:
    """Turn paragraphs that are nothing but `![[note]]` into the text of that note, where it is known."""
    made: list[Token] = []
    for token in state.tokens:
        children = token.children or []
        if token.type == "inline" and len(children) == 3 and "embed" in str(children[0].attrs.get("class", "")):
            name = children[0].meta["target"]
            if name in state.env["place"].embedded and made[-1].type == "paragraph_open" and not made[-1].hidden:
                made[-1].tag, made[-1].attrs = "div", {"class": "embedded"}
                token.type, token.meta = "embed", {"target": name, "anchor": children[0].meta["anchor"]}
        if token.type == "paragraph_close" and made[-1].type == "embed":
            token.tag = "div"
        made.append(token)
    state.tokens = made


def _mark_passage(state: StateCore) -> None:
    """Mark the blocks of the lines that a search found; the first is the place that its link leads to."""
    passage, is_first = state.env["place"].passage, True
    for token in state.tokens:
        start, stop = token.map or (0, 0)
        is_block = token.level == 0 and token.nesting >= 0 and token.type != "inline"
        if passage and is_block and start < passage.stop and passage.start < stop:
            token.attrJoin("class", "passage")
            if is_first and "id" not in token.attrs:
                token.attrSet("id", "passage")
                is_first = False


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


def _media(name: str) -> str:
    """Return what a file is by its name: `image`, `audio`, `video`, `application`, or nothing that is sent."""
    _, dot, ending = name.rpartition(".")
    return ATTACHMENT_TYPES.get(f"{dot}{ending.lower()}", "").partition("/")[0]


def _attributes(address: str, path: str) -> dict[str, str | int | float]:
    """Return the attributes of a link as written in a note: elsewhere, or to a note beside it.

    Example:
        >>> _attributes("../rules/b.md#x", "memory/learnings/a.md")
        {'href': '/entry?id=memory%2Frules%2Fb.md#at-x'}
    """
    parts = urlsplit(address)
    if parts.scheme:
        return {"href": address, "rel": "noopener noreferrer", "class": "away"}
    if not parts.path:
        return {"href": _fragment(unquote(parts.fragment)) or "#"}
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path)))
    if _media(target):
        return {"href": _attachment_address(unquote(parts.path), path)}
    query = {"id": target} if _NOTE.search(target) else {"to": posixpath.basename(target)}
    return {"href": f"/{'entry' if 'id' in query else 'go'}?{urlencode(query)}{_fragment(unquote(parts.fragment))}"}


def _picture(name: str, path: str, shown: str, size: str) -> str:
    """Return the HTML of a picture of the vault, as wide and high as it says."""
    width, _, height = size.partition("x")
    source = escape(_attachment_address(name, path))
    sizes = (f' width="{width}"' if width else "") + (f' height="{height}"' if height else "")
    return f'<img src="{source}" alt="{escape(shown or name)}"{sizes} loading="lazy">'


def _attachment_address(name: str, path: str) -> str:
    return f"/attachment?{urlencode({'name': name} | _origin(path))}"


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
            token.attrs = _attributes(str(token.attrs.get("href", "")), place.path) | (
                {"title": token.attrs["title"]} if "title" in token.attrs else {}
            )
        return self.renderToken(tokens, idx, options, env)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        address, shown = str(token.attrs.get("src", "")), self.renderInlineAsText(token.children, options, env)
        label = escape(f"picture: {shown or address}")
        if urlsplit(address).scheme in ("http", "https"):
            return f'<a href="{escape(address)}" rel="noopener noreferrer" class="away">{label}</a>'
        if not urlsplit(address).scheme and _media(urlsplit(address).path) == "image":
            return _picture(unquote(urlsplit(address).path), env["place"].path, shown, "")
        return f'<span class="picture">{label}</span>'

    def attachment(self, tokens: Sequence[Token], idx: int, _: OptionsDict, env: EnvType) -> str:
        meta, label = tokens[idx].meta, escape(tokens[idx].content)
        target, path = meta["target"], env["place"].path
        kind = _media(target)
        if kind == "image":
            return _picture(target, path, meta["shown"], meta["size"])
        address = escape(_attachment_address(target, path))
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
        part = find_section(text, found)
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
