"""Read what notes have beyond CommonMark: wikilinks, tags, highlights, comments, callouts and embedded notes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from markdown_it.token import Token

from memory_kb.markdown.links import WIKILINK, is_attachment
from memory_kb.terms import MARKS
from memory_kb.web.addresses import fragment, media_kind, name_place, origin_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline


_BLOCK = re.compile(r"(?:^|[ \t\n])\^([A-Za-z0-9-]+)[ \t]*\Z")
_TAG = re.compile(rf"(?<![\w#/&])#([^\W_][\w{MARKS}/-]*)")
_SIZE = re.compile(r"\d+(?:x\d+)?\Z")
_CALLOUT = re.compile(r"\[!(?P<kind>[A-Za-z][\w-]*)\](?P<fold>[+-]?)(?P<title>[^\n]*)")
_HIGHLIGHT = re.compile(r"==(?=[^\s=])((?:(?!==)[^\n])*[^\s=])==(?!=)")


def add_note_syntax(parser: MarkdownIt) -> None:
    """Add the rules to a parser; its `env` has the `place` of the text, a `LinkBase`, and the note's `tags`."""
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


def _read_wikilink(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's own signature
    """Read a link such as `[[note#heading|words]]`, to a part of the same note, or to what is shown in its place."""
    is_embed = state.src.startswith("![[", state.pos)
    found = WIKILINK.match(state.src, state.pos + is_embed, state.posMax)
    target, anchor = (found[1].strip(), (found[2] or "").strip()) if found else ("", "")
    comment = state.src.rfind("<!--", 0, state.pos)
    is_in_comment = comment >= 0 and state.pos < state.src.find("-->", comment)
    if found is None or is_in_comment or not (target or (anchor and not is_embed)):
        return False
    if not silent:
        words = (found[3] or "").lstrip("\\").removeprefix("|").strip()
        size = words if is_embed and _SIZE.match(words) else ""
        shown = "" if size else words
        if is_attachment(target):
            token = state.push("attachment", "", 0)
            token.meta = {"target": target, "shown": shown, "size": size}
            token.content = f"{'picture' if media_kind(target) == 'image' else 'file'}: {shown or target}"
        elif not target:
            _push_link(state, shown or anchor[1:].strip()).attrs = {"href": f"#{quote(anchor[1:].strip())}"}
        else:
            opening = _push_link(state, shown or f"{target}{anchor}")
            opening.attrs = {
                "href": f"/go?{urlencode({'to': target} | origin_of(state.env['place'].path))}{fragment(anchor[1:])}",
                "class": "wiki embed" if is_embed else "wiki",
            }
            opening.meta = {"target": target, "anchor": anchor.lstrip("#")}
    state.pos = found.end()
    return True


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
