"""Questions, also those that are written without a question mark."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.phrases import any_of

_PARTICLE = lazy_compile(r"(?:[吗呢么]|かな|っけ)[。…]*$")
_EN = (
    r"(?:what(?:'?s| is| are| was| were| do| does| did| about| if| kind)"
    r"|how (?:do|does|did|can|could|should|would|come|much|many|long|often|is|are|about)"
    r"|why (?:is|are|was|were|do|does|did|not|isn'?t|don'?t|doesn'?t|would|should|can'?t)|where(?:'s| is| are| do| does| did| can)"
    r"|which (?:one|of|is|are)|who(?:'s| is| are| does| wrote| owns| did)|any idea"
    r"|(?:is|are|isn'?t|aren'?t|does|did|didn'?t|doesn'?t|can|could|should|would|will|has)"
    r" (?:i|we|you|u|it|they|this|that|there|the|he|she|anyone|anybody|someone|somebody)|(?:do|have|don'?t) (?:i|we|you|u|they))"
)
_FOREIGN = any_of(
    "wie_(?:geht|macht|kann|sieht|heißt|kommt?|machen|ist|sind|viele?|oft|lange) was_(?:ist|sind|heißt|macht|bedeutet|passiert|kostet) warum wieso "
    "weshalb wo_(?:ist|sind|liegt|finde|steht) (?:kannst|könntest)_du kann_man geht_das gibt(?:'?s|_es) "
    "comment_(?:on|je|tu|ça|faire) pourquoi c'est_quoi qu'est-ce est-ce quel(?:le)?s?_(?:est|sont) combien où_(?:est|sont) "
    "cómo qué_(?:es|hace|pasa) por_qué cuál(?:es)? cuánt[oa]s? dónde como_(?:eu|a_gente|faz|faço|que) por_que qual_(?:é|a|o) onde_(?:fica|está) "
    "come_(?:faccio|si_fa|mai) qual_è quant[oaie]_(?:costa|sono|è) dove_(?:sta|è) hoe_(?:kan|moet|doe|werkt) wat_(?:is|zijn|doet) waarom "
    "waar_(?:is|staat)"
)
_ASKING = lazy_compile(
    rf"(?:(?:and|so|but|ok|okay|hm+|hey|btw|also|oh|wait|und|aber|et|mais|y|e|en)[, ]+)*(?:{_EN}|{_FOREIGN})\b",
    re.IGNORECASE,
)
#: Who asks why and says it at once, tells.
_ANSWERED = lazy_compile(
    r"[,;:–—] ?(?:bc|because|cause|cuz|since|as|well|weil|da|denn|parce que|porque|perché|omdat)\b|: ", re.IGNORECASE
)


def is_question(masked: str) -> bool:
    """Tell whether a sentence of a masked text ends as a question does."""
    return masked.rstrip("\"')*_ ").endswith(("?", "？", "か。", "か"))


def asks(masked: str) -> bool:
    """Tell whether a sentence of a masked text asks, with a question mark or without one.

    Example:
        >>> [asks(one) for one in ("is that so?", "whats the port of staging", "what we ship is signed", "why are we on 3.9, bc torch needs it")]
        [True, True, False, False]
    """
    said = masked.strip()
    return (
        is_question(said)
        or _PARTICLE.search(said) is not None
        or (_ASKING.match(said) is not None and _ANSWERED.search(said) is None)
    )
