"""What past sessions say for and against a rule before it is accepted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from memory_kb.filters import EVERYTHING

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.evidence import Evidence, Verdict
    from memory_kb.learning.intake import Gate, Offer
    from memory_kb.notes.vault import Vault
    from memory_kb.verbs.sessions import Sessions

#: Sessions looked at for and against a rule.
_MOST_SESSIONS = 200
_RULES = EVERYTHING._replace(kinds=("rule", "pitfall"))


class SessionEvidence:
    """The gate that a rule passes which a machine found."""

    def __init__(self, vault: Vault, store: EntryStore, sessions: Sessions) -> None:
        self._vault = vault
        self._store = store
        self._sessions = sessions

    def gate_for(self, offers: Iterable[Offer]) -> Gate | None:
        """Return what judges the rules among what was extracted from a session; nothing else needs evidence.

        Past sessions are searched for the words of a rule's title. Only what holds where the rule
        would stand can say the same.
        """
        from memory_kb.learning.evidence import find_nearest, judge_rule

        if not any(offer.draft.kind == "rule" for offer in offers):
            return None
        known = [rule for rule in self._store.all(_RULES) if not rule.is_in_people_file]

        def weigh(offer: Offer) -> Verdict | None:
            if offer.draft.kind != "rule":
                return None
            evidence = self.session_evidence(
                offer.draft.title or offer.draft.text, without=[offer.origin] if offer.origin else ()
            )
            rules = (rule for rule in known if offer.place.is_within(rule.place))
            return judge_rule(offer.draft.text, evidence, find_nearest(offer.draft.text, rules))

        return weigh

    def weigh_rule(
        self, text: str, *, scope: str = "project", job: str | None = None, task: str | None = None
    ) -> Verdict:
        """Return what past sessions, and the rules there are, make of a rule that somebody proposes.

        Five sessions about its words that ended well and none that ended badly accept it, three that ended
        badly and none that ended well reject it; else it is a draft. One that says nearly the same is marked instead.
        """
        from memory_kb.filters import make_place
        from memory_kb.learning.evidence import find_nearest, judge_rule

        place = make_place(scope, job, task)
        known = (rule for rule in self._store.all(_RULES) if not rule.is_in_people_file and place.is_within(rule.place))
        return judge_rule(text, self.session_evidence(text), find_nearest(text, known))

    def session_evidence(self, text: str, without: Collection[str] = ()) -> Evidence:
        """Return how past sessions about the words of a rule ended.

        `without` are sessions that do not count, such as the one that the rule comes from.
        """
        from memory_kb.index.sessions import SessionIndex
        from memory_kb.learning.evidence import Evidence, keywords
        from memory_kb.notes.events import EventFilter

        words = keywords(text)
        if not words:
            return Evidence()
        query = " AND ".join(f'"{word}"' for word in words)
        index = SessionIndex(self._vault.machine)
        try:
            index.sync()
            sessions = dict.fromkeys(
                hit.session
                for hit in index.search(query, EventFilter(), 10 * _MOST_SESSIONS)
                if hit.session not in without
            )
            ends = [
                index.search("", EventFilter(types=("end",), session=session), 1)
                for session in list(sessions)[:_MOST_SESSIONS]
            ]
        finally:
            index.close()
        outcomes = [self._outcome_at(hit.session, hit.offset) for hits in ends for hit in hits]
        return Evidence(outcomes.count("success"), outcomes.count("failure"))

    def _outcome_at(self, session: str, offset: int) -> str | None:
        """Return the outcome that the end of a session names."""
        from memory_kb.notes.events import NoEvent
        from memory_kb.notes.sessionlog import read_lines

        try:
            event = next(read_lines(self._sessions.files.path(session), offset)).parse()
        except (OSError, StopIteration, NoEvent):
            return None
        outcome = (event.args or {}).get("outcome") if event else None
        return outcome if isinstance(outcome, str) else None
