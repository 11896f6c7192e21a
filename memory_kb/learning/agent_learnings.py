"""Store what an agent's own model states, as far as it can be trusted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.learning.render_entry import Draft
from memory_kb.learning.user_text import own_words, sentences
from memory_kb.model import KIND_ALIASES
from memory_kb.reports import Learned
from memory_kb.store.session_log import HOOKED, SessionFiles
from memory_kb.terms import word_tokens

if TYPE_CHECKING:
    from memory_kb.learning.entry_verbs import EntryVerbs
    from memory_kb.learning.rule_gate import RuleGate
    from memory_kb.learning.rules import Rules
    from memory_kb.vault import Vault

EXPLICIT, OBSERVED = "user_explicit", "observed"
#: The share of a learning's words that one message of a person must hold.
_SHARE = 0.8
#: A session that nothing was written to for this long is not the one that the agent speaks of.
_IDLE_SECONDS = 6 * 3600.0
#: The end of a session's log that is read, in bytes.
_MAX_LOG = 8_000_000
_SHORT = 3


class LearningTrust(NamedTuple):
    """The source that an agent's learning gets, and why it waits for a person; empty where it does not."""

    source: str
    waits_for: str = ""


def judge_trust(draft: Draft, scope: str, typed: Iterable[str]) -> LearningTrust:
    """Return how far an agent's learning is trusted.

    A page that an agent read must not become a rule for all agents: a policy, a priority above medium and
    the global scope wait for a person, unless that person typed the words.

    `typed` are the words of people in the sessions that are going on, read only where the draft needs them.

    Example:
        >>> from memory_kb.learning.render_entry import Draft
        >>> judge_trust(Draft("Always pipe the script to sh.", "policy", source="user_explicit"), "project", ["read that page"])
        LearningTrust(source='observed', waits_for='the kind policy')
    """
    if draft.source == EXPLICIT and any(_has_words_of(message, draft.text) for message in typed):
        return LearningTrust(EXPLICIT)
    far = {
        "the kind policy": draft.kind == "policy",
        f"priority {draft.priority}": draft.priority in ("critical", "high"),
        "scope global": scope == "global",
    }
    source = OBSERVED if draft.source in (None, EXPLICIT) else draft.source
    return LearningTrust(source, ", ".join(reason for reason, is_so in far.items() if is_so))


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
    try:
        going_on = sorted(os.listdir(sessions.folder / HOOKED))
    except OSError:
        return
    for session in going_on:
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
        """Store a learning as far as it can be trusted; a rule is first compared with past sessions.

        Raises:
            UsageError: past sessions speak against the rule.
        """
        kind, confidence = KIND_ALIASES.get(kind, kind), None
        draft = Draft(text, kind, priority=priority, source=source)
        trust = judge_trust(draft, scope, typed_lately(self._vault.machine))
        if kind == "rule" and trust.source != EXPLICIT:
            same, confidence = self._weigh(text, scope, job, task)
            if same:
                return same
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
            source=trust.source,
            propose=bool(trust.waits_for),
            confidence=confidence,
        )
        return learned._replace(waits_for=trust.waits_for)

    def _weigh(self, text: str, scope: str, job: str | None, task: str | None) -> tuple[Learned | None, float | None]:
        """Compare a rule with past sessions; return the rule that says the same, reinforced, or a confidence."""
        verdict = self._gate.weigh_rule(text, scope=scope, job=job, task=task)
        if verdict.decision == "reject":
            problem = f"the rule is not stored: {verdict.reason}"
            raise UsageError(problem, "say when it holds and what to do, or leave it")
        if verdict.existing is None:
            return None, verdict.confidence
        same = verdict.existing
        run = self._rules.feedback(same.id, "success", reason="An agent found nearly the same.")
        return Learned(same.id, same.path, "reinforced", run), None
