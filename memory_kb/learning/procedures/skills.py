"""Skills and how well they did: the counts of a skill as a Beta distribution, and orders by it (S0-51 to S0-57)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from memory_kb.errors import AmbiguousId, UnknownEntry, UsageError
from memory_kb.learning.memories import Memory
from memory_kb.learning.rules.playbook import in_force
from memory_kb.model import Hit
from memory_kb.words import LIVE_STATUSES

#: What skills are ordered by: a sample of the distribution, its mean, or its upper bound.
ORDERS = ("thompson", "mean", "ucb")
#: Standard deviations above the mean that the upper bound stands at (S0-53).
_UPPER = 1.96
#: Candidates of a search for each hit that is wanted, and how well they must fit beside the best.
_POOL, _FITTING = 2, 0.5


class Beta(NamedTuple):
    """What is known of a skill's chance to succeed, from a uniform prior (S0-54)."""

    alpha: float = 1.0
    beta: float = 1.0

    @property
    def mean(self) -> float:
        """The chance that is expected.

        Example:
            >>> Beta(8, 2).mean, Beta().mean
            (0.8, 0.5)
        """
        return self.alpha / (self.alpha + self.beta)

    @property
    def sd(self) -> float:
        """How far the chance may be from that, as a standard deviation.

        Example:
            >>> round(Beta(8, 2).sd, 4), round(Beta().sd, 4)
            (0.1206, 0.2887)
        """
        total = self.alpha + self.beta
        return math.sqrt(self.alpha * self.beta / (total * total * (total + 1)))

    @property
    def ucb(self) -> float:
        """The mean and 1.96 standard deviations (S0-53): high for what did well, and for what is new.

        Example:
            >>> round(Beta(8, 2).ucb, 3), round(Beta().ucb, 3)
            (1.036, 1.066)
        """
        return self.mean + _UPPER * self.sd


def make_beta(success_count: int, failure_count: int) -> Beta:
    """Return the distribution for some outcomes (S0-51).

    Example:
        >>> make_beta(7, 1)
        Beta(alpha=8.0, beta=2.0)
    """
    return Beta(success_count + 1.0, failure_count + 1.0)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as it is listed.

    Attributes:
        text: its body.
        score: what it was ordered by; None where nothing was.
    """

    id: str
    name: str
    description: str | None
    tags: tuple[str, ...]
    success_count: int
    failure_count: int
    alpha: float
    beta: float
    mean: float
    ucb: float
    created_by: str | None
    created_at: str | None
    scope: str
    path: str
    line: int
    text: str
    score: float | None = None

    @property
    def chance(self) -> Beta:
        """What is known of its chance to succeed."""
        return Beta(self.alpha, self.beta)


@dataclass(frozen=True, slots=True)
class SkillSearch:
    """The skills that fit a query in the order to try them, and how far the search can be trusted."""

    query: str
    mode: str
    skills: tuple[Skill, ...]
    degraded: tuple[str, ...] = ()


def make_skill(memory: Memory) -> Skill:
    """Return an entry of kind skill as it is listed.

    Example:
        >>> from memory_kb.model import Location
        >>> memory = Memory("x", "a.md", "", Location(), "Ship", "1. Tag", metadata={"name": "Ship it", "success_count": 7, "failure_count": 1})
        >>> skill = make_skill(memory)
        >>> skill.name, skill.alpha, skill.beta, skill.mean
        ('Ship it', 8.0, 2.0, 0.8)
    """
    wins, losses = memory.count("success_count"), memory.count("failure_count")
    chance = make_beta(wins, losses)
    return Skill(
        id=memory.id,
        name=name_of(memory),
        description=memory.word("description"),
        tags=memory.tags,
        success_count=wins,
        failure_count=losses,
        alpha=chance.alpha,
        beta=chance.beta,
        mean=round(chance.mean, 6),
        ucb=round(chance.ucb, 6),
        created_by=memory.word("created_by"),
        created_at=memory.created_at,
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
        text=memory.text,
    )


def name_of(memory: Memory) -> str:
    """Return what a skill is called: its name, else its title without the word `Skill:`.

    Example:
        >>> from memory_kb.model import Location
        >>> name_of(Memory("x", "a.md", "", Location(), "Skill: Ship it", ""))
        'Ship it'
    """
    head, colon, tail = memory.title.partition(":")
    titled = tail.strip() if colon and head.strip().lower() == "skill" else memory.title
    return memory.word("name") or titled or memory.id


def key_of(name: str) -> str:
    """Return a name as names are compared: in one case, with single spaces.

    Example:
        >>> key_of(" Ship  IT ")
        'ship it'
    """
    return " ".join(name.casefold().split())


def is_usable(memory: Memory) -> bool:
    """Tell whether an entry is a live skill that nothing has superseded."""
    return memory.kind == "skill" and memory.status in LIVE_STATUSES and not memory.is_superseded


def usable_skills(memories: Iterable[Memory]) -> tuple[Skill, ...]:
    """Return the live skills in force; of one id at several scopes the most specific (S0-19)."""
    return tuple(make_skill(memory) for memory in in_force(memories) if is_usable(memory))


def rank_skills(skills: Sequence[Skill], by: str, rng: Random) -> tuple[Skill, ...]:
    """Return skills best first, each with the score it has got.

    `thompson` draws one sample for each skill from its distribution (S0-52), in the order of their
    ids, so that one seed gives one order whatever order they come in. `mean` and `ucb` draw
    nothing (S0-53). Equal scores stand in the order of names.

    Raises:
        UsageError: there is no such order.

    Example:
        >>> from memory_kb.model import Location
        >>> def skill(name, wins, losses):
        ...     metadata = {"success_count": wins, "failure_count": losses}
        ...     return make_skill(Memory(name, f"{name}.md", "", Location(), name, "", metadata=metadata))
        >>> [(one.name, one.score) for one in rank_skills([skill("new", 0, 0), skill("good", 7, 1)], "mean", Random(1))]
        [('good', 0.8), ('new', 0.5)]
        >>> [one.name for one in rank_skills([skill("good", 7, 1), skill("new", 0, 0)], "ucb", Random(1))]
        ['new', 'good']
    """
    if by not in ORDERS:
        raise UsageError(f"skills cannot be ranked by {by!r}", f"it may be {', '.join(ORDERS)}")
    scored = [
        replace(skill, score=round(_score(skill.chance, by, rng), 6))
        for skill in sorted(skills, key=lambda skill: (skill.id, skill.path))
    ]
    return tuple(sorted(scored, key=lambda skill: (-(skill.score or 0.0), key_of(skill.name), skill.id, skill.path)))


def _score(chance: Beta, by: str, rng: Random) -> float:
    if by == "thompson":
        return rng.betavariate(chance.alpha, chance.beta)
    return chance.mean if by == "mean" else chance.ucb


def count_pool(limit: int) -> int:
    """Return how many candidates compete for a number of hits."""
    return _POOL * limit


def choose_candidates(hits: Sequence[Hit], skills: Iterable[Skill], limit: int) -> tuple[Skill, ...]:
    """Return the skills that fit a query well enough to compete (S0-55).

    They are the first of the search, twice as many as are wanted, without those that fit less
    than half as well as the best: how often a skill worked says nothing of what it is for.
    """
    known = {skill.id: skill for skill in skills}
    best = max((hit.parts.relevance for hit in hits), default=0.0)
    fitting = dict.fromkeys(hit.id for hit in hits if hit.id in known and hit.parts.relevance >= _FITTING * best)
    return tuple(known[name] for name in fitting)[: count_pool(limit)]


def find_skill(memories: Iterable[Memory], wanted: str) -> Memory:
    """Return the live skill of an id, a name, or the unique beginning of an id.

    Raises:
        UnknownEntry: there is none.
        AmbiguousId: there are several.
    """
    skills = [memory for memory in in_force(memories) if is_usable(memory)]
    for found in (
        [memory for memory in skills if memory.id == wanted],
        [memory for memory in skills if key_of(name_of(memory)) == key_of(wanted)],
        [memory for memory in skills if wanted and memory.id.startswith(wanted)],
    ):
        if len(found) > 1:
            raise AmbiguousId(wanted, [f"{memory.path}:{memory.line}" for memory in found])
        if found:
            return found[0]
    raise UnknownEntry(wanted)
