"""The sentences of a message that the person wrote: no code, no quotes, nothing pasted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.entry import Span
from memory_kb.expressions import lazy_compile
from memory_kb.learning.logs.transcripts import from_person
from memory_kb.learning.speech.foreign import width
from memory_kb.notes.injected import strip

#: Stands for a letter of inline code: a word that says nothing.
CODE = "\ua66e"
#: Stands for a letter of quoted text: no word at all.
QUOTE = '"'
#: Stands for a letter of what was pasted: no sentence goes across it.
GONE = "\x00"
#: A longer message is not looked through at all.
MAX_RAW = 200_000

_FENCE = lazy_compile(
    r"^[ \t>]*(?P<mark>```+|~~~+)[^\n]*(?:\n(?s:.*?)(?:^[ \t>]*(?P=mark)[^\n]*$|\Z)|\Z)", re.MULTILINE
)
_INLINE = lazy_compile(r"(?<!`)(?P<ticks>`{1,2})(?!`)[^\n]{1,300}?(?<!`)(?P=ticks)(?!`)")
_QUOTED = lazy_compile(
    r'(?<![\w"])"[^"\n]{1,600}"(?!\w)|“[^”\n]{1,600}”|„[^“”\n]{1,600}[“”]|«[^»\n]{1,600}»'
    r"|(?<![\w'])'(?![\s'])[^'\n]{1,600}(?<!\s)'(?!\w)|‘[^’\n]{1,600}’(?!\w)"
)
_BLOCK_QUOTE = lazy_compile(r"^[ \t]*>[^\n]*$", re.MULTILINE)
_CODE_LINE = lazy_compile(
    r"^(?: {4}|\t)[^\n]*\S[^\n]*$|^[^\S\n]*(?://|/\*|\*/|--\s*\w+\s*$|[^\n]*[;{}]\s*$"
    r"|(?:def|class|import|from|const|let|var|function|assert|export|public|private|func|fn)\s[^\n]*[(){};=:'][^\n]*$)[^\n]*",
    re.MULTILINE,
)
_TAG = lazy_compile(r"<(?P<name>[A-Za-z][\w:-]{0,60})(?:\s[^<>\n]{0,300})?>")
# A paragraph with such a line came out of a terminal.
_LOG_LINE = lazy_compile(
    r"^[^\S\n]*(?:\[?\d{4}-\d\d-\d\d[T ,]|\[?\d\d:\d\d:\d\d|\[(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE)\]"
    r"|(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL|CRITICAL|FAILED|PASSED|PANIC)\b[: ]|Traceback \(most|File \"[^\"\n]+\", line \d"
    r"|(?:Fatal |Uncaught |Unhandled )?(?:[\w$]+\.)*[\w$]*(?:Error|Exception|Warning)\b(?:\[\w+\])?: "
    r"|(?:error|warning|fatal|panic|hint|remote)(?:\[\w+\])?: "
    r"|npm (?:ERR!|WARN)|E {2,}\S|at \S+ \(|Caused by:|thread '|[$❯➜%] \S|>>> |\S+\.\w+:\d+(?::\d+)?[ :-])",
    re.MULTILINE,
)
# A paragraph with such a line came out of version control.
_DIFF_LINE = lazy_compile(
    r"^(?:diff --git |@@ |\+\+\+ |--- [ab]/|commit [0-9a-f]{7,40}\b|Author: |index [0-9a-f]{7,}"
    r"|(?:feat|fix|chore|docs|refactor|test|tests|style|perf|build|ci|revert)(?:\([^)\n]{1,40}\))?!?: )",
    re.MULTILINE,
)
# From such a line on, a document follows, or the words of somebody else.
_DOCUMENT = lazy_compile(
    r"^[ \t]*(?:#{1,6}[ \t]+\S|---[ \t]*\n[\w-]+:|(?:assistant|human|user|system|claude|chatgpt|gpt|bot|ai|model|agent|from|subject)[ \t]*:"
    r"|dear [^\n]{1,40},[ \t]*$|(?:user story|acceptance criteria|ticket|issue|epic|story)\b[^\n.]{0,60}:"
    r"|(?:as an?|given) [^\n,]{2,40},? i (?:want|would like)"
    r"|[^\n]*\b(?:spec|specs|specification|article|blog|post|mail|email|message|msg|ticket|issue|criteria|requirements|readme|docs|documentation"
    r"|guide|guidelines?|handbook|wiki|policy|prompt|text|snippet|answer|reply|wrote|writes|says|said|replied|answered|told me|errors?|output|logs?"
    r"|response|description|story|template|transcript|review|comments?)\b[^\n:.]{0,40}:[ \t]*$)",
    re.MULTILINE | re.IGNORECASE,
)
# Prompts that programs and people write for agents.
_BOILERPLATE = lazy_compile(
    r"\s*(?:you(?: are|'re|’re) (?:an?|the) [^.\n]{0,60}?(?:assistant|engineer|developer|expert|agent|reviewer|specialist|architect|writer|model|ai|"
    r"analyst|programmer|tester|bot|coder)\b|(?:act|behave) as (?:an?|the|if)\b|your (?:task|job|role|goal|mission) is\b|<instructions>"
    r"|# ?(?:role|task|context)\b)",
    re.IGNORECASE,
)
_PARAGRAPH = lazy_compile(r"(?:[^\n]*\S[^\n]*(?:\n|\Z))+")
_STOP = lazy_compile(
    r"(?<![\d\s.!?…])[.!?…]++[\"'”’)*_]*+(?=\s)|(?<=[\d\"\x00" + CODE + r"])[.!?…]++(?=\s)|[。！？]|\x00++"
)
_ABBREVIATION = lazy_compile(
    r"\b(?:e\.g|i\.e|etc|vs|approx|resp|incl|cf|z\.\s?B|d\.\s?h|p\.\s?ej|No|Nr)\.$", re.IGNORECASE
)
_BULLET = lazy_compile(r"[\s\x00]*(?:(?:[-*+•–]|\d{1,3}[.)]|\[.?\])\s+)*[\s*_]*")
_NEW_ITEM = lazy_compile(r"[ \t]*(?:[-*+•–]|\d{1,3}[.)])\s")
#: A line this long that does not end a sentence was wrapped.
_WRAPPED = 60


class OwnText(NamedTuple):
    """What a person wrote, as it came, and the same text with what is not theirs blanked out.

    Both have the same length; `boilerplate` says that it is a prompt written for agents.
    """

    text: str
    masked: str
    boilerplate: bool

    @property
    def size(self) -> int:
        """How many characters are the person's own; inline code is part of its sentence, and a wide sign counts twice."""
        own = self.masked.replace(GONE, "").replace(QUOTE, "").strip()
        return width(own)


def read_own_text(message: str) -> OwnText:
    """Return the person's own part of a message; what memory-kb or a harness put there is cut out.

    Example:
        >>> read_own_text("Always use `ruff`.").masked.replace(CODE, "x")
        'Always use xxxxxx.'
        >>> read_own_text("> Always use tabs.\\nWhy?").size
        4
    """
    text = "\n".join(event.content or "" for event in from_person(strip(message)) if event.type == "message")
    masked = _blank_tags(_FENCE.sub(_gone, text.replace(GONE, " ")))
    document = _DOCUMENT.search(masked)
    if document:
        masked = masked[: document.start()] + _blank(masked[document.start() :], GONE)
    masked = _PARAGRAPH.sub(_blank_pasted, masked)
    for pattern in (_BLOCK_QUOTE, _CODE_LINE):
        masked = pattern.sub(_gone, masked)
    masked = _INLINE.sub(lambda found: CODE * len(found[0]), masked)
    masked = _QUOTED.sub(lambda found: QUOTE * len(found[0]), masked.replace("’", "'"))
    return OwnText(text, masked, _BOILERPLATE.match(text) is not None)


def _gone(found: re.Match[str]) -> str:
    return _blank(found[0], GONE)


def _blank(text: str, sign: str) -> str:
    return re.sub(r"[^\n]", sign, text)


def _blank_pasted(found: re.Match[str]) -> str:
    return _gone(found) if _LOG_LINE.search(found[0]) or _DIFF_LINE.search(found[0]) else found[0]


def _blank_tags(text: str) -> str:
    """Blank out every `<tag>...</tag>`, in time that grows with the text alone."""
    pieces, place, never_closed = [], 0, set[str]()
    for tag in _TAG.finditer(text):
        name = tag["name"]
        if tag.start() < place or name in never_closed:
            continue
        close = text.find(f"</{name}>", tag.end())
        if close < 0:
            never_closed.add(name)
            continue
        end = close + len(name) + 3
        pieces += [text[place : tag.start()], _blank(text[tag.start() : end], GONE)]
        place = end
    return "".join((*pieces, text[place:]))


def sentences(masked: str) -> Iterator[Span]:
    """Yield where the sentences of a masked text are, without bullets and white space around them.

    A line is a sentence of its own unless it was wrapped.

    Example:
        >>> text = "fix it, e.g. with a lock\\n- always use tabs. And UTC!"
        >>> [text[start:end] for start, end in sentences(text)]
        ['fix it, e.g. with a lock', 'always use tabs.', 'And UTC!']
    """
    for start, end in _lines(masked):
        place = _begin(masked, start, end)
        for stop in _STOP.finditer(masked, place, end):
            if _ABBREVIATION.search(masked, max(place, stop.end() - 8), stop.end()):
                continue
            yield from _trimmed(masked, place, stop.start() if stop[0][0] == GONE else stop.end())
            place = stop.end()
        yield from _trimmed(masked, place, end)


def _lines(masked: str) -> Iterator[Span]:
    """Yield the lines, wrapped ones put together."""
    start = place = 0
    while place <= len(masked):
        end = masked.find("\n", place)
        end = len(masked) if end < 0 else end
        line, after = masked[place:end].rstrip(), masked[end + 1 : end + 3]
        goes_on = (
            len(line) >= _WRAPPED
            and line[-1] not in ".!?:…"
            and after[:1].islower()
            and not _NEW_ITEM.match(masked, end + 1)
        )
        if not goes_on or end >= len(masked):
            yield Span(start, end)
            start = end + 1
        place = end + 1


def _begin(masked: str, start: int, end: int) -> int:
    """Return where a sentence begins after bullets, numbers and white space."""
    bullet = _BULLET.match(masked, start, end)
    return bullet.end() if bullet else start


def _trimmed(masked: str, start: int, end: int) -> Iterator[Span]:
    start = _begin(masked, start, end)
    while end > start and masked[end - 1] in " \t\r\n" + GONE:
        end -= 1
    if end > start:
        yield Span(start, end)
