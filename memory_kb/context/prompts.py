"""Find the entries that bear on a prompt, or none."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.injected import strip
from memory_kb.stop_words import stop_words

# Most prompts get nothing: what writes a context is loaded for the others.
if TYPE_CHECKING:
    from memory_kb.context.briefs import Assess
    from memory_kb.context.framing import Given
    from memory_kb.context.gather import Found, Material
    from memory_kb.context.relevance import Topic
    from memory_kb.search.why_not import Absence

#: What a prompt gets at most.
MOST_ENTRIES, MOST_TOKENS = 3, 600
#: The part of a prompt that says what it is about, in characters.
_LONGEST = 2_000
#: Words of its own that a prompt needs, and those that it must have in common with what bears on it.
_LEAST_SAID, _LEAST_WORDS = 4, 3
#: A prompt is about its rarest words; so many are looked at. With the floor as it is, 17 % of 772 prompts of seven public
#: projects got something, and 4 of 187 short ones.
_RAREST = 12
#: A word is rare from this share of the worth of one that is in a single note, or where 7 notes in 100 have it.
_RARE, _RARE_WORTH = 0.5, 2.65
#: A passage this near in meaning needs to share half of what another must.
_NEAR = 0.6
_WORD = re.compile(r"[^\W_]+")


def find_task(prompt: str) -> str:
    """Return what a prompt is about; "" for acknowledgements, short orders and messages of machines.

    Example:
        >>> find_task("yes"), find_task("<task-notification>the queue</task-notification>")
        ('', '')
        >>> find_task("Why does the upload queue lose messages?")
        'Why does the upload queue lose messages?'
    """
    from memory_kb.learning.wrappers import MAX_MESSAGE, split_message

    text = strip(prompt) if len(prompt) <= MAX_MESSAGE else prompt
    if len(text) <= MAX_MESSAGE:
        text = split_message(text).sent
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST * 3 // 4]} {text[-_LONGEST // 4 :]}"
    return text if len(own_words(text)) >= _LEAST_SAID else ""


def own_words(text: str) -> list[str]:
    """Return the words of a text that are not those of every sentence.

    Example:
        >>> own_words("Push it to the quokka 2")
        ['push', 'quokka']
    """
    words = [word for word in dict.fromkeys(_WORD.findall(text.casefold())) if len(word) > 1 and not word.isdigit()]
    common = stop_words(words)
    return [word for word in words if word not in common]


def choose(material: Material, shown: Collection[str], floor: float) -> list[Found]:
    """Return the entries above the floor that were not shown yet, best first."""
    found = {one.memory.id: one for one in (*material.skills, *material.found) if one.memory.id not in shown}
    bearing = [one for one in found.values() if weigh(_topic_for(one, material), one, floor).is_enough]
    return sorted(bearing, key=lambda one: (-one.hit.score, one.memory.path, one.memory.id))


class Bearing(NamedTuple):
    """How much an entry says of a prompt: the rare words it shares, what they are worth, and what it needs of both."""

    shared: tuple[str, ...]
    worth: float
    least: int
    needed: float

    @property
    def is_enough(self) -> bool:
        """Whether the entry bears on the prompt."""
        return len(self.shared) >= self.least and self.worth >= self.needed


def weigh(topic: Topic, found: Found, floor: float) -> Bearing:
    """Return how much an entry says of the rare words of a prompt.

    Words that many notes have are those of orders and of the trade, and prove nothing. Of the rare ones it needs three, worth a
    share of the rarest of the prompt. A word that no note has counts half: the prompt is about that, too.
    """
    rare = tuple((word, worth) for word, worth in topic.words if worth >= min(_RARE * topic.rarest, _RARE_WORTH))
    shared = {word: worth for word, worth in rare if word in found.shared}
    wanted = sum(heapq.nlargest(_RAREST, (worth or topic.rarest / 2 for _, worth in topic.words)))
    is_near = found.hit.parts.vector is not None and found.hit.parts.vector >= _NEAR
    needed = (floor / 2 if is_near else floor) * wanted
    return Bearing(tuple(shared), sum(shared.values()), _LEAST_WORDS - is_near, needed)


def _topic_for(found: Found, material: Material) -> Topic:
    """Return what the words of a prompt are worth: what all sessions begin with proves nothing of one of them."""
    return material.topic_of_all if found.memory.kind == "episode" else material.topic


def explain_silence(material: Material, wanted: str, shown: Collection[str], floor: float) -> Absence | None:
    """Return why an entry does not come at a prompt; None where a search for the prompt does not find it."""
    from memory_kb.search.why_not import Absence

    found = next((one for one in (*material.skills, *material.found) if one.memory.id == wanted), None)
    if wanted in shown:
        return Absence(
            "shown", "this session was shown it already, and each entry comes once until a compaction or clear"
        )
    if found is None:
        return None
    bearing = weigh(_topic_for(found, material), found, floor)
    words = f"it shares {', '.join(bearing.shared) or 'none'} of the rare words of the prompt"
    if len(bearing.shared) < bearing.least:
        return Absence("few-rare-words", f"{words}; {bearing.least} are needed")
    if not bearing.is_enough:
        return Absence(
            "below-floor",
            f"{words}, too small a part of what the prompt is about (context.floor {floor:g})",
            None,
            bearing.worth,
            bearing.needed,
        )
    rank = [one.memory.id for one in choose(material, shown, floor)].index(wanted) + 1
    if rank > MOST_ENTRIES:
        return Absence("budget", f"{words}, but {rank - 1} others fit better, and {MOST_ENTRIES} come at most", rank)
    return Absence("found", f"{words}, and comes at rank {rank}", rank)


def build_prompt_context(
    material: Material, shown: Collection[str], floor: float, today: date, assess: Assess
) -> Given:
    """Write what bears on a prompt, within its budget."""
    from memory_kb.context.briefs import fill
    from memory_kb.context.framing import Given, frame

    chosen = choose(material, shown, floor)
    if not chosen:
        return Given()
    brief = fill(
        (one.memory for one in chosen),
        MOST_TOKENS - len(frame("")) // 4 - 1,
        today,
        assess,
        most=MOST_ENTRIES,
        passages={one.memory.id: one.hit.text for one in chosen},
    )
    return Given(frame("\n".join(brief.lines)), brief.ids) if brief.ids else Given()
