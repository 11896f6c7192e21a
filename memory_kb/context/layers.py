"""Select entries in four layers: always valid, relevant to the task, procedures, and linked entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from memory_kb.context.briefs import write_brief
from memory_kb.context.framing import LINE_LENGTH, as_line
from memory_kb.learning.confidence import activation_score
from memory_kb.markdown.lists_and_fences import find_items
from memory_kb.model import BASELINE_KINDS, KINDS, PRIORITIES, Memory, Span
from memory_kb.skills.skill_text import parse_skill
from memory_kb.text import count_tokens, short_id

if TYPE_CHECKING:
    from memory_kb.providers.base import TokenCounter

_BASELINE_PRIORITIES = frozenset({"critical", "high"})
#: Entries below this are not injected.
MIN_ACTIVATION = 0.3
#: The characters of a line; an entry that is longer is in it by its title.
_SHORT = 200
_MOST_PROCEDURES = 3
_STEPS_SHOWN = 3
_HEADS = {"baseline": "## Core Memory", "contextual": "", "procedures": "## Learned Procedures", "linked": "## Linked"}


class Layers:
    """Lines of entries under the headings of their layers, within a budget of tokens.

    Attributes:
        shown: the entries that have a line.
        procedures: those of them that are skills.
        is_whole: whether all that always holds has found room.
    """

    def __init__(self, budget: int, today: date, marks: Mapping[str, str], count: TokenCounter = count_tokens) -> None:
        self.budget, self.today, self.marks, self.count = budget, today, marks, count
        self.text = ""
        self.shown: list[Memory] = []
        self.procedures: list[Memory] = []
        self.is_whole = True
        self._last = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The entries that have a line."""
        return tuple(one.id for one in self.shown)

    def fill(
        self,
        baseline: Iterable[Memory],
        fitting: Sequence[Memory],
        procedures: Sequence[Memory],
        look_up: Callable[[str], Memory | None],
    ) -> None:
        """Add the four layers, in their order; what does not fit is passed over.

        Of the `baseline`, entries of the right kind and priority always hold; `fitting` and `procedures` fit the task,
        best first. Links are followed from those, by `look_up`: what always holds links to everything.
        """
        high = order_baseline(baseline, self.today)
        always = self._add("baseline", high)
        self.is_whole = len(always) == len(high)
        # Those too long for a line are left to the retrieved learnings, which show them in full.
        known = (one for one in fitting if one.kind not in ("skill", "episode") and not one.is_unverified)
        short = (one for one in known if len(" ".join(one.text.split())) <= LINE_LENGTH and _is_in_force(one))
        present = [(score, one) for one in short if (score := _activation(one, self.today)) > MIN_ACTIVATION]
        present.sort(key=lambda pair: (-pair[0], pair[1].path, pair[1].id))
        contextual = self._add("contextual", (one for _, one in present if one not in always))
        proven = sorted(procedures, key=lambda one: one.count("success_count") == 0)[:_MOST_PROCEDURES]
        self.procedures = self._add("procedures", proven)
        self._add("linked", _neighbours([*contextual, *self.procedures], set(self.ids), look_up))

    def _add(self, layer: str, memories: Iterable[Memory]) -> list[Memory]:
        """Add entries, and return those that fit."""
        fitting = [one for one in memories if self._add_line(layer, self._line(layer, one))]
        self.shown += fitting
        return fitting

    def _line(self, layer: str, memory: Memory) -> str:
        mark = self.marks.get(memory.id, "")
        if layer == "procedures":
            return f"{_show_procedure(memory)} {mark}".rstrip()
        return write_brief(memory, self.today, _title_of_long(memory), mark, _SHORT)

    def _add_line(self, layer: str, line: str) -> bool:
        head = _HEADS[layer] if layer != self._last else ""
        starts_block = layer != self._last and (head or self._last == "procedures")
        gap = "" if not self.text else "\n\n" if starts_block else "\n"
        longer = "".join((self.text, gap, f"{head}\n" if head else "", line))
        if self.count(longer) > self.budget:
            return False
        self.text, self._last = longer, layer
        return True


def order_baseline(memories: Iterable[Memory], today: date) -> list[Memory]:
    """Return the policies, architecture and preferences of high priority, the weightiest first."""
    high = (one for one in memories if one.kind in BASELINE_KINDS and priority_of(one) in _BASELINE_PRIORITIES)
    holding = [one for one in high if _is_in_force(one) and not one.is_unverified]
    return sorted(holding, key=lambda one: (-PRIORITIES[priority_of(one)], -_activation(one, today), one.path, one.id))


def priority_of(memory: Memory) -> str:
    """Return an entry's priority, or that of its kind."""
    return memory.priority or KINDS[memory.kind].priority


def _activation(memory: Memory, today: date) -> float:
    seen = None if memory.is_evergreen else memory.seen
    return activation_score(memory.kind, memory.reinforcement_count, seen, today)


def _is_in_force(memory: Memory) -> bool:
    return memory.is_live and not memory.is_superseded


def _title_of_long(memory: Memory) -> str | None:
    """Return the title of an entry that is too long for a line, unless that is the name of its file."""
    is_short = len(" ".join(memory.text.split())) <= _SHORT
    name = memory.path.rpartition("/")[2].removesuffix(".md")
    return None if is_short or memory.kind == "skill" or memory.title in ("", name) else memory.title


def _show_procedure(memory: Memory) -> str:
    name = as_line(memory.word("name") or memory.title, 80).removeprefix("Skill: ")
    items = (item.text for item in find_items(memory.text, Span(0, len(memory.text))))
    steps = [as_line(step, 80) for step in parse_skill(memory.text).steps or items]
    shown = " → ".join(steps[:_STEPS_SHOWN]) + (" → …" if len(steps) > _STEPS_SHOWN else "")
    return f"- **{name}**: {shown or as_line(memory.text, 120)} ({as_line(short_id(memory.id), 80)})"


def _neighbours(chosen: Sequence[Memory], taken: set[str], look_up: Callable[[str], Memory | None]) -> list[Memory]:
    """Return what the chosen entries link to, without what was replaced or is taken already."""
    links = (link for one in chosen for link in one.links if link.relation not in ("supersedes", "superseded_by"))
    found = [look_up(to) for to in dict.fromkeys(link.to for link in links) if to not in taken]
    in_force = (one for one in found if one and _is_in_force(one) and not one.is_unverified)
    return [one for one in in_force if one.kind not in ("episode", "handoff", "ledger")]
