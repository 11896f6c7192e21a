"""What a sentence is made of, as far as it tells whether it is worth keeping: words, their order, their places, what it answers.

The same traits are counted when weights are learned and when a sentence is weighed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.ownwords import CODE, QUOTE

#: Stand for inline code, for something quoted, for a name as programs have it, and for a run without spaces.
_CODE_WORD, _QUOTE_WORD, _NAME_WORD, UNSPACED = "<code>", "<quote>", "<name>", "<run>"
_CODES = lazy_compile(rf"{CODE}+")
_QUOTES = lazy_compile(rf"{QUOTE}{{2,}}")
_NAMES = lazy_compile(r"\S*/\S*\w\S*|\b\w+\.\w{1,5}\b(?!\s*$)|\b\w+_\w+\b")
_TOKEN = lazy_compile(r"<(?:code|quote|name)>|[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[?!.,:;()—–…-]|[？。、！，]")
#: Scripts that write no spaces, whose signs are looked at in short runs.
_NO_SPACES = lazy_compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")
_LONGEST_RUN = 4
#: A number of fewer digits is a small one.
_YEAR_DIGITS = 4
#: Longer words count by their beginnings and endings too.
_LONG_WORD, _BEGINNING, _ENDING = 4, 4, 3
_LENGTH_STEP, _LENGTH_STEPS = 3, 8
_QUESTION_MARKS = ("?", "？")
#: Messages of more sentences are alike, and so are places further back.
_MOST_SENTENCES, _LAST_PLACE = 5, 3


def traits(sentence: str, before: str | None = None, after: str | None = None) -> frozenset[str]:
    """Return the traits of a sentence of a masked text, and the words with which its neighbours begin.

    Example:
        >>> sorted(traits("Use pnpm"))
        ['$ pnpm', '+ use pnpm', '< none', '> none', '^ use', '^^ use pnpm', '^^^ use pnpm', 'long 0', 'pnpm', 'use']
        >>> "<name>" in traits("see src/a.py"), "+ 0 spaces" in traits("2 spaces"), "~ 使って" in traits("uvを使って")
        (True, True, True)
    """
    runs: list[str] = []
    words = list(_words(sentence, runs))
    found = set(words)
    found.update(f"+ {one} {two}" for one, two in itertools.pairwise(words))
    found.update(f"* {one} {three}" for one, three in zip(words, words[2:], strict=False))
    found.update(f"{word[:_BEGINNING]}-" for word in words if word.isalpha() and len(word) > _LONG_WORD)
    found.update(f"-{word[-_ENDING:]}" for word in words if word.isalpha() and len(word) > _LONG_WORD)
    if words:
        found.update((f"^ {words[0]}", f"^^ {' '.join(words[:2])}", f"^^^ {' '.join(words[:3])}", f"$ {words[-1]}"))
    found.update(_run_traits(runs))
    found.add(f"long {min(_LENGTH_STEPS, len(words) // _LENGTH_STEP)}")
    found.update(_beside("<", before))
    found.update(_beside(">", after))
    return frozenset(found)


def place_traits(answered: str | None, place: int, count: int) -> frozenset[str]:
    """Return the traits of a sentence that tell where it stands: in the session, and in its message.

    Args:
        answered: the message before its message; None for the first of a session.
        place: how many sentences of its message stand before it.
        count: how many sentences its message has.

    Example:
        >>> sorted(place_traits("Keep the old names?", 0, 1)), sorted(place_traits(None, 1, 3))
        (['@ answer', '@ last', '@ of 1', '@ place 0'], ['@ of 3', '@ opening', '@ place 1'])
    """
    turn = "opening" if answered is None else "answer" if answered.rstrip().endswith(_QUESTION_MARKS) else "remark"
    found = {f"@ {turn}", f"@ of {min(_MOST_SENTENCES, count)}", f"@ place {min(_LAST_PLACE, place)}"}
    return frozenset(found | {"@ last"} if place == count - 1 else found)


def shown_word(trait: str) -> str:
    """Return the words of a trait that stands for words anywhere in a sentence, else nothing.

    Example:
        >>> [shown_word(trait) for trait in ("anymore", "+ we dont", "^ we", "-ing", "<name>", "+ 0 ,")]
        ['anymore', 'we dont', '', '', '', '']
    """
    words = trait.removeprefix("+ ").removeprefix("~ ")
    return words if words.replace(" ", "").replace("'", "").isalpha() else ""


def _words(sentence: str, runs: list[str]) -> Iterator[str]:
    text = _NAMES.sub(
        f" {_NAME_WORD} ", _QUOTES.sub(f" {_QUOTE_WORD} ", _CODES.sub(f" {_CODE_WORD} ", sentence.rstrip(" .。")))
    )
    for found in _TOKEN.finditer(text):
        word = found[0].replace("’", "'")
        if word.isdigit():
            yield "0" if len(word) < _YEAR_DIGITS else "0000"
        elif _NO_SPACES.search(word):
            runs.append(word)
            yield UNSPACED
        else:
            if word.isupper() and len(word) > 1:
                yield "<caps>"
            yield word.lower()


def _run_traits(runs: Sequence[str]) -> Iterator[str]:
    for run in runs:
        for size in range(1, _LONGEST_RUN + 1):
            yield from (f"~ {run[start : start + size]}" for start in range(len(run) - size + 1))
        yield from (f"~^ {run[:2]}", f"~$ {run[-2:]}", f"~$ {run[-3:]}")


def _beside(side: str, neighbour: str | None) -> Iterator[str]:
    """Yield that there is a neighbour on a side, its first word, and whether it asks."""
    yield f"{side} {'none' if neighbour is None else 'some'}"
    if neighbour:
        word = re.search(r"\w+", neighbour)
        if word:
            yield f"{side} {word[0].lower()}"
        if neighbour.rstrip().endswith(_QUESTION_MARKS):
            yield f"{side} ?"
