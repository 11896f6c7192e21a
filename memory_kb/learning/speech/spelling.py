"""Read words that decide although they are misspelt; what is kept stays as it was written."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from memory_kb.expressions import lazy_compile

#: Words that decide, which a slip of one letter does not hide.
_DECIDING = (
    *(
        "always",
        "never",
        "prefer",
        "instead",
        "remember",
        "everywhere",
        "please",
        "should",
        "because",
        "before",
        "whenever",
        "required",
    ),
    *("allowed", "forbidden", "commit", "commits", "committing", "anymore", "without", "stop using"),
)
#: How the short ones are mistyped, and those that lack more than a letter.
_USUAL = {
    "dont": "don't", "dnt": "don't", "dont't": "don't", "do'nt": "don't", "donot": "do not", "evr": "ever", "eva": "ever", "u": "you", "ur": "your",
    "plz": "please", "plse": "please", "pleas": "please", "pls": "please", "rember": "remember", "remeber": "remember", "remmember": "remember",
    "alwyas": "always", "awlays": "always", "nver": "never", "neva": "never", "insted": "instead", "insead": "instead", "perfer": "prefer",
    "teh": "the", "hte": "the", "hav": "have", "taht": "that", "thsi": "this", "shoud": "should", "shuld": "should", "becuase": "because",
    "cuz": "because", "cos": "because", "mustnt": "must not", "shouldnt": "shouldn't", "doesnt": "doesn't", "cant": "can't", "isnt": "isn't",
    "arent": "aren't", "wont": "won't", "everytime": "every time", "evry": "every", "evrywhere": "everywhere", "usign": "using", "uesd": "used",
    "alow": "allow", "alows": "allows", "alowed": "allowed", "comit": "commit", "comits": "commits", "comitting": "committing",
    "comiting": "committing", "commiting": "committing", "requries": "requires", "forbiden": "forbidden", "wich": "which", "thx": "thanks",
    "lets": "let's", "im": "i'm", "weve": "we've", "dosnt": "doesn't", "wen": "when",
}  # fmt: skip
#: Words of their own that are one letter away.
_OTHERS = frozenset(
    [
        "newer",
        "nerve",
        "prefers",
        "preferred",
        "steady",
        "pleased",
        "pleases",
        "becomes",
        "comment",
        "comments",
        "commute",
        "commits",
        "commit",
        "without",
        "allow",
        "alloy",
        "aloud",
        "should",
        "shoulder",
        "shield",
        "nevers",
        "ever",
        "even",
        "alway's",
        "remembers",
        "instate",
    ]
)
_WORD = lazy_compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
_SHORTEST = 5


class Respelt(NamedTuple):
    """A text as it is read, and where its pieces stood in the one that was written."""

    text: str
    read: tuple[int, ...]
    written: tuple[int, ...]

    def place(self, at: int) -> int:
        """Return where a place of the text that is read stands in the one that was written."""
        piece = bisect_right(self.read, at) - 1
        end = self.written[piece + 1] if piece + 1 < len(self.written) else None
        place = self.written[piece] + at - self.read[piece]
        return place if end is None else min(place, end)


def respell(text: str) -> Respelt:
    """Return a text with the words that decide as they are spelt.

    Example:
        >>> respell("dont evr use comits").text
        "don't ever use commits"
        >>> respell("allways use nevr").place(len("always use "))
        12
    """
    pieces, read, written, at, size = [], [0], [0], 0, 0
    for word in _WORD.finditer(text):
        meant = _meant(word[0].lower())
        if meant is None:
            continue
        pieces += [text[at : word.start()], meant]
        size += word.start() - at + len(meant)
        at = word.end()
        read.append(size)
        written.append(at)
    return Respelt("".join((*pieces, text[at:])), tuple(read), tuple(written))


@lru_cache(maxsize=4096)
def _meant(word: str) -> str | None:
    """Return the word that is meant by one that is none, or nothing."""
    if word in _USUAL:
        return _USUAL[word]
    if len(word) < _SHORTEST - 1 or word in _OTHERS:
        return None
    return (
        next(
            (right for right in _DECIDING if right != word and len(right) >= _SHORTEST and _is_slip(word, right)), None
        )
        if word not in _DECIDING
        else None
    )


def _is_slip(word: str, right: str) -> bool:
    """Tell whether one letter is missing, doubled, swapped or another, and not the first."""
    if word[0] != right[0] or abs(len(word) - len(right)) > 1:
        return False
    start = next(
        (place for place, (one, other) in enumerate(zip(word, right, strict=False)) if one != other),
        min(len(word), len(right)),
    )
    rest, meant = word[start:], right[start:]
    if len(word) == len(right):
        return rest[1:] == meant[1:] or (rest[:2] == meant[1::-1] and rest[2:] == meant[2:])
    # A letter at the end is another form of the word, not a slip.
    return (rest[1:] == meant and start < len(right)) or (rest == meant[1:] and start < len(right) - 1)
