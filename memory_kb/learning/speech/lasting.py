"""How much a sentence is like those that are worth keeping, learned from labelled messages.

For what no form is known for: most of what people tell of their projects, they tell in their own
words. A linear model over the traits of a sentence; its weights are read once, from a table that
`scripts/train` writes and anybody can read.
"""

from __future__ import annotations

import functools
import math
import pkgutil
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory_kb.learning.speech.cues import kind_traits
from memory_kb.learning.speech.traits import UNSPACED, place_traits, shown_word, traits

#: The tables of weights beside this module: for what people tell, for what agents repeat as agreed, and for the kind of what people tell.
TOLD, AGREED, KIND = "told.tsv", "agreed.tsv", "kind.tsv"
#: What a kept sentence may be, in the order of the columns of the table of kinds.
KINDS = ("fact", "policy", "preference", "decision")
#: So many words are shown of those that speak for a sentence.
_SHOWN = 3
#: What every sentence counts by itself; no trait is called so.
EVERY = "(every)"


class Judgement(NamedTuple):
    """How a sentence was judged: by how much it is above what is enough, what it would be, and the words that speak most for it."""

    margin: float
    kind: str
    words: tuple[str, ...] = ()

    @property
    def is_lasting(self) -> bool:
        """Whether it is worth keeping."""
        return self.margin >= 0


class Weights(NamedTuple):
    """What each trait counts: for being kept, or for each of the kinds.

    `enough` is what all of them must come to: within a session in scripts with spaces and in those
    without, and then the same for the first message of a session, which tells the task. Of kinds the
    largest counts, and nothing is enough by itself.
    """

    enough: tuple[float, ...]
    rows: Mapping[str, tuple[float, ...]]


def judge(sentences: Sequence[str], table: str = TOLD, *, answered: str | None = "") -> list[Judgement]:
    """Return the judgement on each sentence of a masked text.

    Args:
        sentences: all of the text.
        table: which weights.
        answered: the message before it; None where the text is the first message of a session, which
            tells the task, so that it must be more like what is kept.

    Example:
        >>> judged = judge(["New tables go under the reporting schema, the public schema is frozen.", "Can you run it again?"])
        >>> [one.is_lasting for one in judged]
        [True, False]
    """
    weights = read_weights(table)
    judged = []
    for place, sentence in enumerate(sentences):
        before = sentences[place - 1] if place else None
        found = traits(sentence, before, sentences[place + 1] if place + 1 < len(sentences) else None)
        found |= place_traits(answered, place, len(sentences))
        (keep,) = _weigh(found, weights.rows)
        margin = keep - weights.enough[(UNSPACED in found) + 2 * (answered is None)]
        if margin < 0:
            judged.append(Judgement(margin, KINDS[0]))
        else:
            judged.append(
                Judgement(margin, kind_of(sentence) if table == TOLD else "decision", _strongest(found, weights.rows))
            )
    return judged


def kind_of(sentence: str) -> str:
    """Return the kind of a sentence of a masked text that is kept; in doubt no policy, which agents are told to obey.

    Example:
        >>> kind_of("never commit to main, releases are cut from there"), kind_of("the scanner in hall 2 has no wifi")
        ('policy', 'fact')
        >>> kind_of("I'd rather have short answers, please")
        'preference'
    """
    kinds = _weigh(kind_traits(sentence), read_weights(KIND).rows)
    return KINDS[kinds.index(max(kinds))]


def _weigh(found: frozenset[str], rows: Mapping[str, tuple[float, ...]]) -> list[float]:
    """Return the score of a sentence in each column; the sums are exact, so that no order of the traits matters."""
    columns = zip(*(rows[trait] for trait in found if trait in rows), strict=True)
    sums = list(map(math.fsum, columns)) or [0.0] * len(rows[EVERY])
    return [every + total / math.sqrt(len(found)) for every, total in zip(rows[EVERY], sums, strict=True)]


def _strongest(found: frozenset[str], rows: Mapping[str, tuple[float, ...]]) -> tuple[str, ...]:
    """Return the words, and pairs of words, that speak most for a sentence, each said once."""
    words = ((rows[trait][0], shown) for trait in found if trait in rows and (shown := shown_word(trait)))
    strongest: list[str] = []
    for weight, word in sorted(words, reverse=True):
        if weight > 0 and not any(word in other or other in word for other in strongest):
            strongest.append(word)
    return tuple(strongest[:_SHOWN])


@functools.cache
def read_weights(table: str) -> Weights:
    """Read a table of weights: a line for each trait, after lines that begin with `# ` and a word."""
    enough, rows = tuple[float, ...](), dict[str, tuple[float, ...]]()
    for line in (pkgutil.get_data(__package__, table) or b"").decode().splitlines():
        if line.startswith("# "):
            if line.startswith("# enough "):
                enough = tuple(map(float, line.split()[2:]))
            continue
        trait, *weights = line.split("\t")
        rows[trait] = tuple(map(float, weights))
    return Weights(enough, rows)
