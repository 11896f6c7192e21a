"""Check what a language model says that a record teaches, and drop what rests on nothing or nobody would keep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.credentials import find_secret
from memory_kb.learning.conversation import ShownRecord
from memory_kb.learning.extraction_scopes import FEWEST, MOST, ScopeQuestion
from memory_kb.learning.text_comparison import nearness
from memory_kb.memory import Memory
from memory_kb.terms import has_cjk, word_tokens
from memory_kb.text import on_one_line

#: The fewest and most characters of a title, and of a line; the most of a learning.
_TITLE, _LINE, _LEARNING = (6, 140), (4, 700), 2_000
#: The shortest quote that shows anything, unless it is all that was said.
_QUOTE, _CJK_QUOTE = 10, 4
#: More alike than this to what is there, it is said already.
_KNOWN_ABOVE = 0.8
_TAG = re.compile(r"[^\W_][\w.+#-]{0,30}")
_SMOOTH = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "`": "'"})
_ELLIPSIS = re.compile(r"\[?(?:…|\.\.\.)\]?")
#: A command or a path written as code, an address, and a path of the machine.
_NAMED = re.compile(r"`[^`\n]*[ /|][^`\n]*`|\b\w+://\S+|(?<!\S)~?/\S*")
#: The fewest words of a statement, and the fewest beside paths and addresses.
_WORDS, _OTHER_WORDS = 3, 2
_PLACE = re.compile(r"\S*[/\\]\S*|\b[\w-]+\.[a-z]{1,5}\b(?!\s)")
#: A line of a log, a mark of a list, counts as test runners print them, or somebody who reports.
_STATUS = re.compile(
    r"^\W*(?:\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b|\[[ xX]\])"
    r"|\b\d+ [a-z]+, \d+ [a-z]+|^(?:I|I'm|I've|I'll|Let me)\b"
)
_OPEN_END = re.compile(r"[,;:(\[{…–—-]$|\.\.\.$|\b(?:the|an?|and|or|of)$")
_MOMENT = re.compile(r"\b(?:now|today|tomorrow|yesterday|currently)\b", re.IGNORECASE)
_POINTER = re.compile(r"^(?:it|its|this|that|these|those|they|he|she|there|here)\b", re.IGNORECASE)


class Extracted(NamedTuple):
    """A learning: labels with their texts, and the events it quotes; `same_as` is the entry that says it already."""

    title: str
    lines: tuple[tuple[str, str], ...]
    tags: tuple[str, ...]
    numbers: tuple[int, ...]
    same_as: Memory | None = None

    @property
    def body(self) -> str:
        """Its lines, as they stand in its entry."""
        return "\n".join(f"**{name}:** {text}" for name, text in self.lines)

    @property
    def text(self) -> str:
        """What it says, for comparing."""
        return f"{self.title}\n{self.body}"


def sift(answer: Mapping[str, Any], question: ScopeQuestion) -> tuple[list[Extracted], list[str]]:
    """Return the learnings of an answer that may be kept, and why each of the others was not."""
    items = answer["learnings"]
    found: list[Extracted] = []
    dropped = ["more than were asked for"] * max(0, len(items) - MOST)
    for item in items[:MOST]:
        one = _read_learning(item, question)
        if why := next(_objections(one, question, found), None):
            dropped.append(why)
        else:
            found.append(one)
    return found, dropped


def _read_learning(item: Mapping[str, Any], question: ScopeQuestion) -> Extracted:
    lines = tuple((label.name, on_one_line(item[label.key])) for label in question.step.labels)
    tags = (on_one_line(tag).lstrip("#").replace(" ", "-").casefold() for tag in item["tags"][:10])
    shown = {passage.number: _smooth(passage.text) for passage in question.shown.passages}
    quotes = [(quote["number"], on_one_line(quote["quote"])) for quote in item["quotes"][:10]]
    one = Extracted(
        on_one_line(item["title"]).strip("# "),
        lines,
        tuple(dict.fromkeys(filter(_TAG.fullmatch, tags))),
        tuple(sorted({number for number, quote in quotes if number in shown and _occurs_in(quote, shown[number])})),
    )
    said = (known for known in question.known if nearness(one.text, known.text) > _KNOWN_ABOVE)
    return one._replace(same_as=next(said, None))


def _occurs_in(quote: str, text: str) -> bool:
    """Return whether a quote is in a text, but for its spacing, quotation marks and what it leaves out.

    Example:
        >>> _occurs_in('"Use  UTC … everywhere"', _smooth("Please use UTC for dates, everywhere.")), _occurs_in("Use", "use utc")
        (True, False)
    """
    parts = [part for piece in _ELLIPSIS.split(quote) if (part := _smooth(piece).strip("\"' .,:;"))]
    length = sum(map(len, parts))
    is_all = length > 1 and "".join(parts) == text.strip("\"' .,:;!?")
    is_long_enough = is_all or length >= (_CJK_QUOTE if has_cjk(quote) else _QUOTE)
    return is_long_enough and all(part in text for part in parts)


def _smooth(text: str) -> str:
    return " ".join(text.translate(_SMOOTH).casefold().split())


def _objections(one: Extracted, question: ScopeQuestion, before: Sequence[Extracted]) -> Iterator[str]:
    texts = [text for _, text in one.lines]
    whole = ". ".join((one.title, *texts))
    if not one.title or any(len(text) < _LINE[0] for text in texts):
        yield "incomplete"
    is_long = len(whole) > _LEARNING or any(len(text) > _LINE[1] for text in texts)
    if is_long or not _TITLE[0] <= len(one.title) <= _TITLE[1]:
        yield "too long or too short"
    yield from _find_junk(one, question)
    if find_secret(whole) or any(map(find_secret, one.tags)):
        yield "holds a credential"
    if not one.numbers:
        yield "its evidence is not in what was shown"
    if question.scope.is_rollup and len(one.numbers) < FEWEST:
        yield "rests on fewer than two sources"
    if not _names_only_what_was_shown(whole, question.shown):
        yield "names a command or an address that is not in what was shown"
    if _advises_what_a_tool_said(one, question):
        yield "its advice is in the words of a tool's output"
    known = one.same_as
    is_turned_down = known is not None and not known.is_live and known.status != "proposed"
    if is_turned_down or any(nearness(one.text, other.text) > _KNOWN_ABOVE for other in before):
        yield "known already"


def _names_only_what_was_shown(text: str, shown: ShownRecord) -> bool:
    record = _smooth(shown.text)
    said = _smooth("\n".join(passage.text for passage in shown.passages if passage.who != "failed"))
    return all(_smooth(name).strip("' .,;:)") in (said if "://" in name else record) for name in _NAMED.findall(text))


def _advises_what_a_tool_said(one: Extracted, question: ScopeQuestion) -> bool:
    """Return whether a line of advice has more words from tool output alone than words of people and agents.

    Anybody may have written what a tool puts out: it shows what failed, and is no reason to do anything.
    """
    said = _long_stems(passage.text for passage in question.shown.passages if passage.who != "failed")
    put_out = _long_stems(passage.text for passage in question.shown.passages if passage.who == "failed") - said
    advice = {label.name for label in question.step.labels if label.is_advice}
    lines = [_long_stems([text]) for name, text in one.lines if name in advice]
    return any(len(words & put_out) > len(words & said) for words in lines)


def _long_stems(texts: Iterable[str]) -> set[str]:
    """Return the beginnings of the longer words of some texts, which are the same in all their forms."""
    return {word[:5] for text in texts for word in word_tokens(text) if len(word) >= 5}


def _find_junk(one: Extracted, question: ScopeQuestion) -> Iterator[str]:
    """Yield why a learning is none, whatever it rests on; a line that was chosen from a list says nothing about it."""
    chosen = {label.name for label in question.step.labels if label.options}
    texts = [text for name, text in one.lines if name not in chosen]
    everything = (one.title, *texts)
    if all(len(word_tokens(_PLACE.sub(" ", text))) < _OTHER_WORDS for text in texts):
        yield "only a path or an address"
    if any(map(_STATUS.search, everything)):
        yield "a status line"
    if any(map(_OPEN_END.search, everything)) or all(len(word_tokens(text)) < _WORDS for text in texts):
        yield "a fragment"
    if _MOMENT.search(one.title) or all(map(_MOMENT.search, texts)):
        yield "an order for now"
    if all(map(_POINTER.match, everything)):
        yield "no subject"
