"""Render the formulas of notes as MathML, which needs no scripts or fonts."""

from __future__ import annotations

import functools
import html
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from math_core import LatexToMathML

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


def add_formulas(parser: MarkdownIt) -> None:
    """Read `$inline$` and `$$display$$` formulas; `$5 and $10` are none."""
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True)
    for name in ("math_inline", "math_inline_double", "math_block"):
        parser.add_render_rule(name, _draw_formula)


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
    return f'<code class="formula" title="a formula that cannot be read">{html.escape(formula)}</code>'


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
