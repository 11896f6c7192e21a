"""The words of one language in which people give instructions; each has its table, which `foreign` reads."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.expressions import lazy_compile

_I = re.IGNORECASE
#: The rest of a sentence.
REST = r"[^?!;\n]{2,160}"
#: The name of something.
NAMED = (
    r"(?!(?:die|der|das|den|dem|des|ein\w*|dein\w*|mein\w*|le|la|les|un|une|el|los|las|una|lo|il|o|a|os|as|de|het|een|ce|cette|este|esta|l')\b)"
    r"[\w@][\w.+#@/-]*(?: (?-i:[A-Z])[\w.+#-]*)?"
)


class Tongue(NamedTuple):
    """The words of one language.

    Attributes:
        lead: what may stand before a sentence proper.
        objection: how somebody says that it is not so.
        request: asks to remember what follows; `request_back` what was said before.
        doubt: words of a sentence that is for this once, is told, asked or not meant, or points at something.
        ways: how instructions begin or read, by what they become; tried in order.
    """

    lead: re.Pattern[str]
    objection: re.Pattern[str]
    request: re.Pattern[str]
    request_back: re.Pattern[str]
    doubt: re.Pattern[str]
    ways: tuple[tuple[str, re.Pattern[str]], ...]


def asking(verbs: str, filling: str, that: str, titles: str) -> str:
    """Return the expression of a request to remember: a verb with what may follow it, then a colon or `that`; or a title such as `for later:`.

    Example:
        >>> request = lazy_compile(asking("merke? dir", "bitte|für später", "dass", "für später"))
        >>> [request.match(text)[0] for text in ("merk dir bitte für später: X", "merk dir, dass X", "für später: X")]
        ['merk dir bitte für später: ', 'merk dir, dass ', 'für später: ']
    """
    return (
        rf"(?:{verbs})(?:,? (?:{filling}))*(?:\s*[:–—]\s*(?:(?:{that})\s+)?|,?\s+(?:{that})\s*)|(?:{titles})\s*[:–—]\s*"
    )


def tongue(
    *,
    lead: str,
    objection: str,
    request: str,
    request_back: str,
    doubt: tuple[str, ...],
    ways: tuple[tuple[str, str], ...],
    gap: str = r"[\s,;:.!–—-]+",
) -> Tongue:
    """Return a table whose expressions stand behind one another as they do in a sentence; `gap` is what is between words that lead to it."""
    return Tongue(
        lazy_compile(rf"(?:(?:{lead}){gap})*+", _I),
        lazy_compile(rf"(?:{objection})\s*[,:;.!–—、，。-]+\s*", _I),
        lazy_compile(rf"(?:{request})", _I),
        lazy_compile(rf"(?:{request_back})", _I),
        lazy_compile("|".join(doubt), _I),
        tuple((pattern, lazy_compile(way, _I)) for pattern, way in ways),
    )
