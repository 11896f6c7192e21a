"""Find the text of a purged entry in whatever form a log, a cache or another note has it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memory_kb.credentials import locate_secrets
from memory_kb.text import load_json

#: What is written in place of the text; it is plain in YAML, in JSON and in Markdown.
REPLACEMENT = "(purged)"
#: A piece of fewer words is said by others too. A long word counts as several, and so does text without spaces.
_FEWEST_WORDS, _FEWEST_WORDS_OF_A_WHOLE, _LONG_WORD = 5, 3, 12
#: A longer piece is found by its paragraphs.
_MOST_WORDS = 2_000
_WORD = re.compile(r"[^\W_]+")
_ASCII_WORD = re.compile(r"[0-9A-Za-z]+")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n")
_PARAGRAPH_END = re.compile(r"\n\s*\n")
#: Between two words: spacing, punctuation, or an escape of JSON inside of JSON.
_BETWEEN = r"(?:[\W_]|\\[nrt])+"
_NOT_INSIDE_A_WORD = (r"(?:(?<![^\W_])|(?<=\\[nrt]))", r"(?![^\W_])")


class PurgedText(NamedTuple):
    """What is looked for, whatever its case, spacing and punctuation.

    Attributes:
        whole: the text, its paragraphs and the credentials in it; None where it is too short to be looked for.
        parts: those, and its sentences and lines; for files that nobody edits.
        marks: every place of a part contains one of these words, in lower case; b"" is in every place.
    """

    whole: re.Pattern[str] | None
    parts: re.Pattern[str] | None
    marks: tuple[bytes, ...]

    def may_be_in(self, data: bytes) -> bool:
        """Return quickly whether some bytes can contain a part."""
        lower = data.lower()
        return any(mark in lower for mark in self.marks)

    def is_in(self, text: str) -> bool:
        """Return whether a text contains a part."""
        return bool(self.parts and self.may_be_in(text.encode("utf-8", "replace")) and self.parts.search(text))

    def cut_from_line(self, line: bytes) -> bytes:
        """Return a line of a log without the text; a JSON object stays one."""
        if not self.may_be_in(line):
            return line
        try:
            value = load_json(line)
        except (ValueError, RecursionError):
            return self.cut_from(line)
        cut = self._cut_value(value)
        if cut == value:
            return line
        separators = None if b'": ' in line[:200] else (",", ":")
        return json.dumps(cut, ensure_ascii=False, separators=separators).encode("utf-8", "surrogatepass") + b"\n"

    def cut_from(self, data: bytes, *, only_whole: bool = False) -> bytes:
        """Return some bytes without the text, every other byte as it was."""
        pattern = self.whole if only_whole else self.parts
        if pattern is None or not self.may_be_in(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        return pattern.sub(REPLACEMENT, text).encode("utf-8", "surrogateescape")

    def _cut_value(self, value: object) -> object:
        if isinstance(value, str):
            return self.parts.sub(REPLACEMENT, value) if self.parts else value
        if isinstance(value, list):
            return [self._cut_value(one) for one in value]
        if isinstance(value, dict):
            return {str(self._cut_value(name)): self._cut_value(one) for name, one in value.items()}
        return value


def read_purged_text(body: str, title: str, names: Iterable[str] = ()) -> PurgedText:
    """Return what is looked for of an entry.

    Args:
        body: its text.
        title: what it is called.
        names: of its file, made from its first words.

    Example:
        >>> text = read_purged_text("The staging password is *hunter two*.", "")
        >>> text.cut_from(b"> the staging\\n> password is hunter  two!")
        b'> (purged)!'
        >>> read_purged_text("Use tabs.", "").whole is None
        True
    """
    secrets = [body[found.start : found.end] for found in locate_secrets(body)]
    paragraphs = _PARAGRAPH_END.split(body)
    whole = {*_worth_finding([body], _FEWEST_WORDS_OF_A_WHOLE), *_worth_finding([*paragraphs, title], _FEWEST_WORDS)}
    whole |= set(_worth_finding(secrets, 1))
    sentences = [piece for paragraph in paragraphs for piece in _SENTENCE_END.split(paragraph)]
    lines = body.splitlines()
    parts = whole | set(_worth_finding([*sentences, *lines, *names], _FEWEST_WORDS))
    marks = {_mark_of(piece) for piece in parts}
    return PurgedText(_compile(whole), _compile(parts), (b"",) if b"" in marks else tuple(sorted(marks)))


def _worth_finding(pieces: Iterable[str], fewest: int) -> Iterator[tuple[str, ...]]:
    for piece in pieces:
        words = tuple(_WORD.findall(piece))
        count = sum(max(1, len(word.encode("utf-8", "replace")) // _LONG_WORD) for word in words)
        if count >= fewest and len(words) <= _MOST_WORDS:
            yield words


def _mark_of(words: tuple[str, ...]) -> bytes:
    plain = [word for word in words if _ASCII_WORD.fullmatch(word)]
    return max(plain, key=len, default="").lower().encode()


def _compile(pieces: set[tuple[str, ...]]) -> re.Pattern[str] | None:
    if not pieces:
        return None
    # Of pieces that begin alike the longest is found.
    ordered = sorted(pieces, key=lambda words: (-sum(map(len, words)), words))
    choice = "|".join(_BETWEEN.join(map(_spelled, words)) for words in ordered)
    before, after = _NOT_INSIDE_A_WORD
    return re.compile(f"{before}(?:{choice}){after}", re.IGNORECASE)


def _spelled(word: str) -> str:
    """Return an expression for a word, also as it is escaped in JSON inside of JSON."""
    return "".join(sign if sign.isascii() else f"(?:{sign}|{re.escape(json.dumps(sign)[1:-1])})" for sign in word)
