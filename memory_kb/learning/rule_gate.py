"""Weigh the evidence of past sessions for or against a rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from memory_kb.index.session_index import SessionIndex
from memory_kb.learning.ingest import Gate, GateVerdict, Learning
from memory_kb.learning.memories import Memories
from memory_kb.learning.playbook import RULE_KINDS
from memory_kb.learning.text_comparison import likeness
from memory_kb.memory import Memory
from memory_kb.model import Location, make_place
from memory_kb.search.query import parse_words
from memory_kb.store.session_events import EventFilter
from memory_kb.text import pluralize
from memory_kb.vault import Vault

#: Sessions that accept a rule, sessions that reject one, and how alike an existing one says the same.
ACCEPTING, REJECTING, ALIKE = 5, 3, 0.85
_SHORTEST = 15
DRAFT_CONFIDENCE = 0.4
_KEYWORDS, _LONG = 3, 4


class SessionCounts(NamedTuple):
    """How many past sessions about a rule's words ended well, and how many badly."""

    successes: int = 0
    failures: int = 0


def judge_rule(text: str, evidence: SessionCounts, existing: Memory | None = None) -> GateVerdict:
    """Decide about a proposed rule; `existing` is a rule that says the same.

    Example:
        >>> judge_rule("Run the migrations first.", SessionCounts(4, 1))
        GateVerdict(decision='draft', reason='4 sessions speak for it and 1 against', confidence=0.4, existing=None)
    """
    if len(" ".join(text.split())) < _SHORTEST:
        return GateVerdict("reject", f"a rule of fewer than {_SHORTEST} characters says too little")
    if existing:
        return GateVerdict("helpful", f"rule {existing.id} says the same", existing=existing)
    good, bad = evidence
    counts = f"{pluralize(good, 'session')} {'speaks' if good == 1 else 'speak'} for it and {bad} against"
    if good >= ACCEPTING and not bad:
        return GateVerdict("accept", counts)
    if bad >= REJECTING and not good:
        return GateVerdict("reject", counts)
    return GateVerdict("draft", counts, DRAFT_CONFIDENCE)


def find_same_rule(text: str, rules: Iterable[Memory]) -> Memory | None:
    """Return the live rule or pitfall that says nearly the same as a text; one that says the opposite does not."""
    found = ((likeness(text, one.text), one) for one in rules if one.is_live and one.kind in RULE_KINDS)
    alike, best = max(found, key=itemgetter(0), default=(0.0, None))
    return best if alike >= ALIKE else None


def keywords(text: str) -> tuple[str, ...]:
    """Return the words of a rule that past sessions are searched for, the longest first.

    Example:
        >>> keywords("Always run the database migrations before the integration tests.")
        ('integration', 'migrations', 'database')
    """
    words = list(dict.fromkeys(word.strip('"') for word in parse_words(text).terms))
    long = [word for word in words if len(word) >= _LONG] or words
    return tuple(sorted(long, key=len, reverse=True))[:_KEYWORDS]


#: Sessions looked at for and against a rule.
_MOST_SESSIONS = 200


@dataclass(frozen=True)
class RuleGate:
    """The gate for rules that a machine found."""

    _vault: Vault
    _memories: Memories

    def gate_for(self, learnings: Iterable[Learning]) -> Gate | None:
        """Return the gate for what was extracted from a session; only rules need evidence."""
        if not any(learning.draft.kind == "rule" for learning in learnings):
            return None
        known = self._memories.of_kinds(*RULE_KINDS)

        def weigh(learning: Learning) -> GateVerdict | None:
            if learning.draft.kind != "rule":
                return None
            evidence = self.session_evidence(learning.draft.title or learning.draft.text, learning.origins)
            return judge_rule(
                learning.draft.text, evidence, find_same_rule(learning.draft.text, _in_use(known, learning.place))
            )

        return weigh

    def weigh_rule(
        self, text: str, *, scope: str = "project", job: str | None = None, task: str | None = None
    ) -> GateVerdict:
        """Judge a rule that somebody proposes by past sessions and by the existing rules."""
        known = _in_use(self._memories.of_kinds(*RULE_KINDS), make_place(scope, job, task))
        return judge_rule(text, self.session_evidence(text), find_same_rule(text, known))

    def session_evidence(self, text: str, without: Collection[str] = ()) -> SessionCounts:
        """Return how past sessions about the words of a rule ended, all but those in `without`."""
        words = keywords(text)
        if not words:
            return SessionCounts()
        with closing(SessionIndex(self._vault.machine, self._vault.seal)) as index:
            index.sync()
            query = " AND ".join(f'"{word}"' for word in words)
            found = [hit.session for hit in index.search(query, EventFilter(), _MOST_SESSIONS)]
            ended = {one.session: one.outcome for one in index.seen()}
        outcomes = [ended.get(session) for session in found if session not in without]
        return SessionCounts(outcomes.count("success"), outcomes.count("failure"))


def _in_use(rules: Iterable[Memory], place: Location) -> Iterator[Memory]:
    """Yield the rules that hold at a place, but for those in people's own file."""
    return (rule for rule in rules if not rule.is_in_people_file and place.is_within(rule.place))
