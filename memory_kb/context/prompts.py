"""What a prompt is about, and which of the entries that a search finds bear on it."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection
from datetime import date

from memory_kb.context.briefs import Assess, fill
from memory_kb.context.framing import frame
from memory_kb.context.gather import Found, Material
from memory_kb.context.relevance import Topic, shared_words, stem
from memory_kb.context.session_start import Given
from memory_kb.text import stop_words, strip

#: What a prompt gets at most.
MOST_ENTRIES, MOST_TOKENS = 3, 600
#: The part of a prompt that says what it is about, in characters.
_LONGEST = 2_000
#: Words of its own that a prompt needs, so that something may bear on it.
_LEAST_WORDS = 2
#: A prompt is about its rarest words; so many are looked at.
_RAREST = 8
#: A passage this near in meaning needs to share half of what another must.
_NEAR = 0.6
_WORD = re.compile(r"[^\W_]+")
#: Words of acknowledgements and orders, which say nothing about the matter.
_ORDERS = frozenset(
    """yes yep yeah yup no nope ok okay sure fine right correct exactly agreed done thanks thank thx please great good nice cool
    perfect awesome excellent lgtm hi hello hey bye sorry go ahead continue proceed carry keep going next start begin stop wait
    cancel abort skip retry again undo revert redo more less back run rerun execute test tests testing build rebuild compile lint
    format commit push pull merge rebase amend pr branch deploy ship release fix fixes failing failed fail fails broken bug bugs
    error errors issue issues problem problems make do it look looks check show see read open close explain summarize tell say try
    use add remove delete change update write create finish implement apply approve option first second third one two three four
    step steps now today later first last everything all both same work works working code file files change changes review
    let lets think want need help question answer plan new old unit""".split()  # noqa: SIM905 - a list of words reads better
)

_ORDER_STEMS = frozenset(map(stem, _ORDERS))


def find_task(prompt: str) -> str:
    """Return what a prompt is about; "" for acknowledgements, short orders and messages of machines.

    Example:
        >>> find_task("yes, fix the failing tests and commit"), find_task("<task-notification>the queue</task-notification>")
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
    words = list(dict.fromkeys(_WORD.findall(text.casefold())))
    said = [word for word in words if len(word) > 1 and not word.isdigit() and word not in _ORDERS]
    return text if len(said) - len(stop_words(said) & set(said)) >= _LEAST_WORDS else ""


def choose(material: Material, shown: Collection[str], floor: float) -> list[Found]:
    """Return the entries above the floor that were not shown yet, best first."""
    found = {one.memory.id: one for one in (*material.skills, *material.found) if one.memory.id not in shown}
    bearing = [one for one in found.values() if bears_on(material.topic, one, floor)]
    return sorted(bearing, key=lambda one: (-one.hit.score, one.memory.path, one.memory.id))


def bears_on(topic: Topic, found: Found, floor: float) -> bool:
    """Tell whether an entry covers enough of the rare words of a prompt.

    It needs two of its words, those of orders left out, together worth one that stands in a single note, and a share of the worth of the
    rarest words. A word that no note has counts half: the prompt is about that, too.
    """
    topic = topic._replace(words=tuple((word, worth) for word, worth in topic.words if word not in _ORDER_STEMS))
    shared = shared_words(topic, found.memory)
    worths = [worth or topic.rarest / 2 for _, worth in topic.words]
    wanted = sum(heapq.nlargest(_RAREST, worths))
    is_near = found.hit.parts.vector is not None and found.hit.parts.vector >= _NEAR
    needed = floor / 2 if is_near else floor
    return len(shared) >= _LEAST_WORDS and sum(shared) >= max(needed * wanted, 0.0 if is_near else topic.rarest)


def build_prompt_context(
    material: Material, shown: Collection[str], floor: float, today: date, assess: Assess
) -> Given:
    """Write what bears on a prompt, within its budget."""
    chosen = choose(material, shown, floor)
    brief = fill(
        (one.memory for one in chosen),
        MOST_TOKENS - len(frame("")) // 4 - 1,
        today,
        assess,
        most=MOST_ENTRIES,
        passages={one.memory.id: one.hit.text for one in chosen},
    )
    return Given(frame("\n".join(brief.lines)), brief.ids) if brief.ids else Given()
