"""Instructions in other languages, by the tables of `tongues`."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.tongues import Tongue

#: Sentences of other lengths are no instructions; signs that stand for whole syllables count as two.
_SHORTEST, _LONGEST = 12, 320
_KANA = lazy_compile(r"[\u3040-\u30ff]")
_HAN = lazy_compile(r"[\u4e00-\u9fff]")
# One of their words is in every instruction that the tables know.
_GERMANIC = lazy_compile(
    r"\b(?:immer|stets|nie|niemals|kein\w*|bitte|wir|ich|alle|jede\w*|ist|sind|werden|statt|anstelle|merke?|denke?|vergiss|ab|künftig|"
    r"zukunft|von|vor|nach|bei|lieber|"
    r"grundsätzlich|nur|mir|wenn|hör|darf|muss|müssen|nicht|überall|auf|nee|altijd|nooit|vanaf|voortaan|onthoud|vergeet|gebruik\w*|bij|noteer|schrijf|merken|notier\w*|schreibe?|"
    r"hier|elke|iedere|voorkeur|de|het|"
    r"plaats|het|denk|bedenk)\b",
    re.IGNORECASE,
)
_ROMANCE = lazy_compile(
    r"\b(?:toujours|jamais|plus|désormais|dorénavant|partir|on|nous|je|préf\w+|au lieu|plutôt|avant|après|chaque|tous|toutes|tout|"
    r"interdit\w*|sont|souviens|retiens|"
    r"oublie\w*|garde|rappelle|note|siempre|nunca|jamás|uses|en|ahora|prefiero|preferimos|cada|todos|todas|recuerda|ten|olvides|"
    r"acuérdate|usamos|aquí|sempre|agora|"
    r"prefiro|vez|antes|lembr\w+|esqueça|mai|ora|poi|futuro|preferisco|invece|prima|ogni|tutti|tutte|ricorda\w*|tieni|dimenticare|"
    r"usiamo|qui|al posto|sono|il|est|apunta|anot[ae]|segnati|annota\w*|retenir|noter|memorizza|mémorise|guarda|nada|são|vão|van|vanno)\b",
    re.IGNORECASE,
)
_WIDE = lazy_compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]")


class Told(NamedTuple):
    """What a sentence is and where the thing itself begins."""

    pattern: str
    start: int


def width(text: str) -> int:
    """Return how long a text is where a sign that stands for a syllable or a word counts as two.

    Example:
        >>> width("abc"), width("必ず")
        (3, 4)
    """
    return len(text) + len(_WIDE.findall(text))


def tongues_of(sentence: str) -> tuple[Tongue, ...]:
    """Return the languages that a sentence may be in, other than English; their tables are loaded when they are needed."""
    if _HAN.search(sentence) or _KANA.search(sentence):
        from memory_kb.learning.speech import eastern

        return (eastern.JAPANESE if _KANA.search(sentence) else eastern.CHINESE,)
    found: list[Tongue] = []
    if _GERMANIC.search(sentence):
        from memory_kb.learning.speech import germanic

        found += (germanic.GERMAN, germanic.DUTCH)
    if _ROMANCE.search(sentence):
        from memory_kb.learning.speech import romance

        found += (romance.FRENCH, romance.SPANISH, romance.PORTUGUESE, romance.ITALIAN)
    return tuple(found)


def read_foreign(sentence: str) -> Told | None:
    """Return what a sentence in another language is that holds for more than this once.

    Example:
        >>> read_foreign("Verwende immer Gradle."), read_foreign("Utilise toujours Gradle."), read_foreign("Das geht immer noch nicht.")
        (Told(pattern='preference', start=0), Told(pattern='preference', start=0), None)
        >>> read_foreign("テストは必ず英語で書いてください。").pattern, read_foreign("Nein, nimm Gradle statt Maven.").pattern
        ('preference', 'correction')
    """
    flat = sentence.replace("\n", " ")
    if not _SHORTEST <= width(flat) <= _LONGEST:
        return None
    return next((told for tongue in tongues_of(flat) if (told := _read(tongue, flat))), None)


def _read(tongue: Tongue, sentence: str) -> Told | None:
    lead = tongue.lead.match(sentence)
    start = lead.end() if lead else 0
    objection = tongue.objection.match(sentence, start)
    start = objection.end() if objection else start
    if objection and (lead := tongue.lead.match(sentence, start)):
        start = lead.end()
    found = next((pattern for pattern, way in tongue.ways if way.match(sentence, start)), None)
    if found is None or tongue.doubt.search(sentence, start):
        return None
    return Told("correction" if objection else found, start)


def request_in(sentence: str) -> int | None:
    """Return where begins what somebody asks to remember, or nothing where they do not.

    Example:
        >>> request_in("Ricorda che il proxy serve."), request_in("Ricordo tutto.")
        (12, None)
    """
    for tongue in tongues_of(sentence):
        found = tongue.request.match(sentence, _start(tongue, sentence)) or tongue.request.match(sentence)
        if found:
            return found.end()
    return None


def asks_back(sentence: str) -> bool:
    """Tell whether somebody asks to remember what they said before."""
    return any(tongue.request_back.match(sentence, _start(tongue, sentence)) for tongue in tongues_of(sentence))


def is_doubtful(sentence: str) -> bool:
    """Tell whether a sentence in the languages that it may be in is for this once, or points at something."""
    return any(tongue.doubt.search(sentence) for tongue in tongues_of(sentence))


def _start(tongue: Tongue, sentence: str) -> int:
    lead = tongue.lead.match(sentence)
    return lead.end() if lead else 0
