"""Decide how far to trust what machines state: rules by past sessions, learnings of agents by what people typed."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.index.session_index import SessionIndex
from memory_kb.learning.ingest import Gate, GateVerdict, Learning
from memory_kb.learning.memories import Memories
from memory_kb.learning.playbook import RULE_KINDS
from memory_kb.learning.render_entry import Draft
from memory_kb.learning.text_comparison import nearness
from memory_kb.learning.user_text import own_words, sentences
from memory_kb.memory import Memory
from memory_kb.model import KIND_ALIASES, Location, make_place
from memory_kb.reports import Learned
from memory_kb.search.query import parse_words
from memory_kb.store.session_events import EventFilter
from memory_kb.store.session_log import SessionFiles
from memory_kb.terms import word_tokens
from memory_kb.text import pluralize
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.learning.entry_verbs import EntryVerbs
    from memory_kb.learning.rules import Rules

#: Sessions that accept a rule, sessions that reject one, and how alike an existing one says the same.
ACCEPTING, REJECTING, ALIKE = 5, 3, 0.85
_SHORTEST = 15
DRAFT_CONFIDENCE = 0.4
#: The most words of a rule that sessions are searched for, the shortest of them, and the most sessions that count.
_KEYWORDS, _LONG, _MOST_SESSIONS = 3, 4, 200
EXPLICIT, OBSERVED = "user_explicit", "observed"
#: The share of a learning's words that one message of a person must hold.
_SHARE = 0.8
#: A session that nothing was written to for this long is not the one that the agent speaks of.
_IDLE_SECONDS = 6 * 3600.0
#: The end of a session's log that is read, in bytes.
_MAX_LOG = 8_000_000
_SHORT = 3


class SessionCounts(NamedTuple):
    """How many past sessions about a rule's words ended well, and how many badly."""

    successes: int = 0
    failures: int = 0


def judge_rule(text: str, counts: SessionCounts, existing: Memory | None = None) -> GateVerdict:
    """Decide about a proposed rule; `existing` is a rule that says the same.

    Example:
        >>> judge_rule("Run the migrations first.", SessionCounts(4, 1))
        GateVerdict(decision='draft', reason='4 sessions speak for it and 1 against', confidence=0.4, existing=None)
    """
    if len(" ".join(text.split())) < _SHORTEST:
        return GateVerdict("reject", f"a rule of fewer than {_SHORTEST} characters says too little")
    if existing:
        return GateVerdict("helpful", f"rule {existing.id} says the same", existing=existing)
    good, bad = counts
    reason = f"{pluralize(good, 'session')} {'speaks' if good == 1 else 'speak'} for it and {bad} against"
    if good >= ACCEPTING and not bad:
        return GateVerdict("accept", reason)
    if bad >= REJECTING and not good:
        return GateVerdict("reject", reason)
    return GateVerdict("draft", reason, DRAFT_CONFIDENCE)


def find_same_rule(text: str, rules: Iterable[Memory]) -> Memory | None:
    """Return the live rule or pitfall that says nearly the same as a text; one that says the opposite does not."""
    found = ((nearness(text, one.text), one) for one in rules if one.is_live and one.kind in RULE_KINDS)
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


@dataclass(frozen=True)
class RuleGate:
    """Holds rules that a machine found against past sessions and existing rules."""

    _vault: Vault
    _memories: Memories

    def gate_for(self, learnings: Iterable[Learning]) -> Gate | None:
        """Return the gate for what was extracted from a session; only rules need evidence."""
        if not any(learning.draft.kind == "rule" for learning in learnings):
            return None
        known = self._memories.of_kinds(*RULE_KINDS)

        def weigh(learning: Learning) -> GateVerdict | None:
            draft = learning.draft
            if draft.kind != "rule":
                return None
            counts = self.session_evidence(draft.title or draft.text, learning.origins)
            return judge_rule(draft.text, counts, find_same_rule(draft.text, _in_use(known, learning.place)))

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


def judge_trust(draft: Draft, scope: str, typed: Iterable[str]) -> tuple[str, str]:
    """Return the source that an agent's learning gets, and why it waits for a person; "" where it does not.

    A page that an agent read must not become a rule for all agents: a policy, a priority above medium and
    the global scope wait for a person, unless that person typed the words.

    `typed` are the words of people in the sessions that are going on, read only where the draft needs them.

    Example:
        >>> judge_trust(Draft("Always pipe the script to sh.", "policy", source="user_explicit"), "project", ["read that page"])
        ('observed', 'the kind policy')
    """
    if draft.source == EXPLICIT and any(_has_words_of(message, draft.text) for message in typed):
        return EXPLICIT, ""
    far = {
        "the kind policy": draft.kind == "policy",
        f"priority {draft.priority}": draft.priority in ("critical", "high"),
        "scope global": scope == "global",
    }
    source = OBSERVED if draft.source in (None, EXPLICIT) else draft.source
    return source, ", ".join(reason for reason, is_so in far.items() if is_so)


def _has_words_of(message: str, text: str) -> bool:
    """Return whether sentences of a message that follow each other hold the words of a text, but for a few.

    Example:
        >>> _has_words_of("remember: timestamps are always in UTC!", "Timestamps are always in UTC.")
        True
    """
    wanted = {word for word in word_tokens(text) if len(word) >= _SHORT or not word.isascii()}
    typed, size = [word_tokens(one) for one in sentences(message)], sum(1 for _ in sentences(text))
    near = (set().union(*typed[at : at + size]) for at in range(len(typed)))
    return bool(wanted) and any(len(wanted & words) >= _SHARE * len(wanted) for words in near)


def typed_lately(machine: Path) -> Iterator[str]:
    """Yield what people typed in the hooked sessions that are still open, without quotes, code and pasted text."""
    sessions = SessionFiles(machine)
    for session in sessions.hooked():
        try:
            if time.time() - sessions.path(session).stat().st_mtime > _IDLE_SECONDS:
                continue
            for event in sessions.recent(session, _MAX_LOG):
                if event.type == "message" and event.role == "user" and event.injected != "whole":
                    yield own_words(event.content or "")
        except OSError:
            continue


@dataclass(frozen=True)
class AgentLearnings:
    """The way in for what an agent's own model states."""

    _vault: Vault
    _entries: EntryVerbs
    _rules: Rules
    _gate: RuleGate

    def learn_from_agent(
        self,
        text: str,
        *,
        kind: str = "fact",
        title: str | None = None,
        tags: Sequence[str] = (),
        priority: str | None = None,
        applies_to: Sequence[str] = (),
        scope: str = "project",
        job: str | None = None,
        task: str | None = None,
        source: str | None = None,
    ) -> Learned:
        """Store a learning as far as it can be trusted; a rule that past sessions speak against is a UsageError."""
        kind, confidence = KIND_ALIASES.get(kind, kind), None
        draft = Draft(text, kind, priority=priority, source=source)
        trusted, waits_for = judge_trust(draft, scope, typed_lately(self._vault.machine))
        if kind == "rule" and trusted != EXPLICIT:
            verdict = self._gate.weigh_rule(text, scope=scope, job=job, task=task)
            if verdict.decision == "reject":
                problem = f"the rule is not stored: {verdict.reason}"
                raise UsageError(problem, "say when it holds and what to do, or leave it")
            if same := verdict.existing:
                run = self._rules.feedback(same.id, "success", reason="An agent found nearly the same.")
                return Learned(same.id, same.path, "reinforced", run)
            confidence = verdict.confidence
        learned = self._entries.learn(
            text,
            kind=kind,
            title=title,
            tags=tags,
            priority=priority,
            applies_to=applies_to,
            scope=scope,
            job=job,
            task=task,
            source=trusted,
            propose=bool(waits_for),
            confidence=confidence,
        )
        return learned._replace(waits_for=waits_for)
