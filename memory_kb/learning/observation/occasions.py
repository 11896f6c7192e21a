"""What something was said about: what the agent had said or done last, where the words themselves do not tell."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.lessons import OCCASION
from memory_kb.learning.observation.corrections import Did
from memory_kb.learning.observation.statements import is_sound
from memory_kb.learning.speech.reading import Capture
from memory_kb.learning.speech.telling import is_nameless

#: An occasion of fewer characters says nothing; so many are enough.
_LENGTHS = range(12, 240)
_UNMARKED = lazy_compile(r"^(that|it|this)s\b", re.IGNORECASE)


class Words(NamedTuple):
    """What the agent said last, and the number of its event."""

    text: str = ""
    seq: int = 0


def last_words(said: tuple[str, ...], seq: int) -> Words | None:
    """Return the last sentences of an agent's message, as many as fit; none that is too long itself.

    Example:
        >>> last_words(("Done.", "The image has no time zones.", "Shall I add them?"), 7).text
        'The image has no time zones. Shall I add them?'
    """
    kept = ""
    for one in reversed(said):
        longer = f"{one} {kept}".strip()
        if len(one) in _LENGTHS and len(longer) not in _LENGTHS:
            break
        kept = longer if len(one) in _LENGTHS else kept
    return Words(kept, seq) if kept else None


def occasion_of(capture: Capture, words: Words, did: tuple[Did, ...]) -> str:
    """Return the line that tells what something was said about that answers or says little: what the agent said or did last.

    What it said counts as far as it gives no orders and holds no secret.

    Args:
        capture: what the person said.
        words: what the agent said since the person spoke before.
        did: what it did since then.
    """
    if not (capture.is_answer or is_pointing(capture)):
        return ""
    done = next((one for one in reversed(did) if one.target), None)
    if words.text and is_sound(words.text) and not (done and done.seq > words.seq):
        return f"\n**Context:** {OCCASION}had said: `{words.text.replace('`', chr(39))}`"
    return f"\n**Context:** {OCCASION}{done.told}." if done else ""


def is_pointing(capture: Capture) -> bool:
    """Tell whether a capture names not what it is about; an apostrophe may be missing."""
    return bool(capture.like) and is_nameless(_UNMARKED.sub(r"\1's", capture.span))
