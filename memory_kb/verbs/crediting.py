"""What became of a task, and what that says of the entries that its agent was shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from memory_kb.filters import EVERYTHING
from memory_kb.verbs.rules import Rules, read_outcome

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.memories import Memory
    from memory_kb.learning.rules.outcomes import Account, OutcomeReport
    from memory_kb.learning.rules.outcomes import Crediting as Plan
    from memory_kb.learning.rules.sessionshare import Candidate, Showing
    from memory_kb.notes.outcomes import Outcome
    from memory_kb.notes.retrievals import Retrieval
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.reports import RunReport
    from memory_kb.verbs.rules import Rules

#: How long after a session of hooks an outcome may still be told of it, in other words than those of its prompts.
_LATE = timedelta(days=1)
#: What stands as outcome where an agent said of entries what they did, and nobody how the task went.
_MARKED = "marked"


class Outcomes:
    """The verb outcome, and what a session's end makes of what hooks showed."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore, rules: Rules) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._rules = rules

    def outcome(
        self,
        agent: str,
        task: str,
        outcome: str,
        *,
        used: Sequence[str] = (),
        task_id: str | None = None,
        session: str | None = None,
        dry_run: bool = False,
    ) -> OutcomeReport:
        """Say how a task went; the rules, pitfalls and skills that its agent was shown are credited for it.

        Without `used` all that was shown gets the outcome, pitfalls no failure. With it, or where
        the agent itself said what helped (`[memory-kb: helpful ID]`), those are credited and the
        others only settle. Each entry is credited once for a task of an agent; a task that was
        shown nothing changes nothing.

        Where nothing was shown for the task by name, it is what hooks showed in its session: the
        one that is named here or by `MEMORY_KB_SESSION`, else the one of this agent that runs, or
        ran last. There each entry is credited once for the session.

        Args:
            agent: who did it, as it was named when it was shown something.
            task: the task, named in the same way.
            outcome: `success`, `failure` or `mixed`.
            used: the entries that were used, by their ids.
            task_id: what the task is called, where `context` was told that too.
            session: only what was shown in this session.
            dry_run: whether only to tell what would change.

        Raises:
            UsageError: there is no such outcome.
            UnknownEntry: one that was used does not exist.
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        from memory_kb.credentials import redact
        from memory_kb.learning.rules.outcomes import OutcomeReport
        from memory_kb.reports import RunReport

        word = read_outcome(outcome)
        agent, task, task_id = redact(agent).text, redact(task).text, task_id and redact(task_id).text
        with self._store.planning(dry_run=dry_run):
            if not dry_run:
                self._writer.recover()
            showing = self._find_showing(self._retrievals(session), agent, task, session, task_id)
            if showing is None:
                where = f" in session {session}" if session else ""
                notice = f"Nothing was shown to {agent} for {task}{where}: `context` must name the same agent and task. Nothing is credited."
                return OutcomeReport(agent, task, word, (), (), notice, RunReport(None, "outcome"))
            report = self._count(showing, word, used, session, dry_run=dry_run)
        if showing.hooked is None or report.notice:
            return report
        return replace(
            report,
            notice=f"Nothing was shown for this task by name; this is what hooks showed in session {showing.session}.",
        )

    def credit_session(self, session: str, word: str | None, *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Credit what was shown in a session that is over; without an outcome only what its agents said of entries."""
        by_name, shares = self._showings_of(session)
        runs = (
            [self.outcome(one.agent, one.task, word, session=session, dry_run=dry_run).run for one in by_name]
            if word
            else []
        )
        with self._store.planning(dry_run=dry_run):
            runs += [self._count(one, word, (), session, dry_run=dry_run).run for one in shares] if word else []
            runs += [self._count_marks(one, session, dry_run=dry_run) for one in (*by_name, *shares)]
        return tuple(runs)

    def reconsider_session(self, session: str, word: str, *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Settle what a session credited again, where it is now said to have gone otherwise."""
        by_name, shares = self._showings_of(session)
        with self._store.planning(dry_run=dry_run):
            return tuple(self._reconsider(one, word, session, dry_run=dry_run) for one in (*by_name, *shares))

    def _showings_of(self, session: str) -> tuple[tuple[Showing, ...], tuple[Showing, ...]]:
        """Return what was shown in a session for tasks by their names, and what hooks showed there."""
        from memory_kb.learning.rules.sessionshare import find_shares, split_pairs

        retrievals = self._retrievals(session)
        since = min((one.ts for one in retrievals if one.session == session), default="")
        named = (
            self._find_showing(retrievals, agent, task, session) for agent, task in split_pairs(retrievals, session)
        )
        return tuple(one._replace(session=session, since=since) for one in named if one), find_shares(
            retrievals, session
        )

    def _reconsider(self, showing: Showing, word: str, session: str, *, dry_run: bool) -> RunReport:
        from memory_kb.learning.rules.outcomes import EVIDENCE_KINDS
        from memory_kb.learning.rules.secondthoughts import find_former, plan_second_thoughts
        from memory_kb.reports import RunReport

        told = [one for one in self._find_told(showing) if one.outcome != _MARKED]
        if not told:
            return RunReport(None, "outcome")
        today, reason = self._vault.today(), f"{showing.agent} on {showing.task}: {word}."
        memories = self._store.all(EVERYTHING._replace(kinds=EVIDENCE_KINDS))
        former = find_former(told, self._undone(), memories, session, word)
        if not former:
            return RunReport(None, "outcome")
        account = self._hear(word, showing, (), session)

        def plan(entries: Sequence[Memory]) -> Plan:
            return plan_second_thoughts(entries, former, account, today, reason)

        return self._write_credits(plan(memories), self._begin(showing, word, session), plan, dry_run=dry_run)

    def _count(
        self, showing: Showing, word: str, used: Sequence[str], session: str | None, *, dry_run: bool
    ) -> OutcomeReport:
        """Give an outcome to what was shown and did not get one yet; the vault's lock is held."""
        from memory_kb.learning.rules.outcomes import EVIDENCE_KINDS, OutcomeReport, find_credits, plan_outcome

        agent, task, today = showing.agent, showing.task, self._vault.today()
        reason = f"{agent} on {task}: {word}."
        account = self._hear(word, showing, used, session)
        memories = self._store.all(EVERYTHING._replace(kinds=EVIDENCE_KINDS))
        told = self._find_told(showing)
        known = {name for name, _ in find_credits(told, self._undone() if told else (), memories)}
        asked = dict.fromkeys((*account.used, *showing.shown.ids))
        wanted = [one for one in asked if one not in known]
        plan = plan_outcome(memories, wanted, account, today, reason)
        run = self._write_credits(
            plan,
            self._begin(showing, word, session),
            lambda held: plan_outcome(held, wanted, account, today, reason),
            dry_run=dry_run,
        )
        left = {conflict.id for conflict in run.conflicts}
        credits_ = tuple(one for one in plan.credits if one.id not in left)
        notice = (
            ""
            if plan.credits
            else "All of it was credited before."
            if known
            else "None of what was shown is a rule, pitfall or skill in use."
        )
        return OutcomeReport(agent, task, word, credits_, tuple(one for one in asked if one in known), notice, run)

    def _count_marks(self, showing: Showing, session: str, *, dry_run: bool) -> RunReport:
        """Credit what the agents of a session said of entries, where that is not credited; one that was taken back stays so."""
        from memory_kb.learning.rules.outcomes import EVIDENCE_KINDS, Account, find_credits, plan_outcome
        from memory_kb.learning.rules.sessionshare import choose_new_marks
        from memory_kb.reports import RunReport

        heard = self._hear(_MARKED, showing, (), session).marks
        if not heard:
            return RunReport(None, "outcome")
        memories = self._store.all(EVERYTHING._replace(kinds=EVIDENCE_KINDS))
        marks = choose_new_marks(heard, find_credits(self._find_told(showing), (), memories))
        account, today = Account(_MARKED, marks=marks), self._vault.today()
        reason = f"{showing.agent} said so in session {session}."
        plan = plan_outcome(memories, tuple(marks), account, today, reason)
        return self._write_credits(
            plan,
            self._begin(showing, _MARKED, session),
            lambda held: plan_outcome(held, tuple(marks), account, today, reason),
            dry_run=dry_run,
        )

    def _retrievals(self, session: str | None) -> list[Retrieval]:
        """Return what was shown in a session, or all that was."""
        from memory_kb.notes.retrievals import RetrievalLog

        return list(RetrievalLog(self._vault.machine / "log").read(session))

    def _find_showing(
        self, retrievals: Sequence[Retrieval], agent: str, task: str, session: str | None, task_id: str | None = None
    ) -> Showing | None:
        """Return what an agent was shown for a task: by name, else by hooks in its session."""
        from memory_kb.learning.rules.outcomes import Injected, find_injected
        from memory_kb.learning.rules.sessionshare import Showing, find_shares

        for name in filter(None, (task_id, task)):
            shown = find_injected(retrievals, agent, name, session)
            if shown.ids:
                return Showing(agent, name, shown)
        chosen = self._find_session(retrievals, agent, task, session)
        shares = find_shares(retrievals, chosen) if chosen else ()
        if not shares:
            return None
        ids = dict.fromkeys(name for one in shares for name in one.shown.ids)
        return shares[0]._replace(agent=agent, task=task, shown=Injected(tuple(ids), shares[0].shown.sessions))

    def _find_session(self, retrievals: Sequence[Retrieval], agent: str, task: str, session: str | None) -> str | None:
        """Return the session that a task was done in, where hooks showed something; None where nobody can tell."""
        from memory_kb.agents.known import recognise
        from memory_kb.learning.rules.sessionshare import choose_session
        from memory_kb.notes.events import format_time
        from memory_kb.notes.sessionlog import SessionFiles

        if session:
            return session
        held = self._vault.session
        if held and (
            SessionFiles(self._vault.machine).path(held).exists()
            or any(one.session == held for one in retrievals if one.is_hooked)
        ):
            return held
        hooked = recognise(agent)
        if hooked is None:
            return None
        return choose_session(task, self._candidates(retrievals, hooked), format_time(self._vault.clock() - _LATE))

    def _candidates(self, retrievals: Sequence[Retrieval], hooked: str) -> Iterator[Candidate]:
        """Yield the sessions of an agent that run, and those in which its hooks showed something."""
        from memory_kb.learning.rules.sessionshare import Candidate

        running = {one.session: one for one in self._running(hooked)}
        yield from running.values()
        shown: dict[str, list[Retrieval]] = {}
        for one in retrievals:
            if one.is_hooked and one.agent == hooked and one.session not in running:
                shown.setdefault(one.session or "", []).append(one)
        for session, held in shown.items():
            yield Candidate(session, tuple(one.query for one in held if one.query), max(one.ts for one in held))

    def _running(self, hooked: str) -> Iterator[Candidate]:
        """Yield the sessions that hooks of an agent began and nobody ended."""
        from memory_kb.learning.rules.sessionshare import Candidate
        from memory_kb.notes.sessionlog import HOOKED, SessionFiles

        files = SessionFiles(self._vault.machine)
        try:
            names = sorted(os.listdir(files.folder / HOOKED))
        except OSError:
            return
        for name in set(names).intersection(files.ids()):
            events = list(files.read(name))
            if events and events[0].agent == hooked and events[-1].event != "end":
                prompts = tuple(
                    one.content for one in events if one.type == "message" and one.role == "user" and one.content
                )
                yield Candidate(name, prompts, events[-1].ts or "", is_running=True)

    def _find_told(self, showing: Showing) -> tuple[Outcome, ...]:
        """Return the outcomes that credited what was shown."""
        from memory_kb.learning.rules.sessionshare import find_told
        from memory_kb.notes.outcomes import OutcomeLog

        return find_told(OutcomeLog(self._vault.machine / "log").read_about(showing.task, showing.session), showing)

    def _hear(self, outcome: str, showing: Showing, used: Sequence[str], session: str | None) -> Account:
        """Return what is known of how a task went, by its sessions and by whoever tells."""
        from memory_kb.learning.rules.outcomes import Account, find_marks, resolve_marks
        from memory_kb.notes.sessionlog import SessionFiles

        files, shown = SessionFiles(self._vault.machine), showing.shown.ids
        sessions: Iterable[str] = dict.fromkeys((*showing.shown.sessions, *([session] if session else [])))
        marks: dict[str, str] = {}
        for name in set(files.ids()).intersection(sessions):
            marks |= find_marks(files.read(name))
        names = (used,) if isinstance(used, str) else used
        full = tuple(next((one for one in shown if one == name), None) or self._rules.find(name).id for name in names)
        return Account(outcome, full, resolve_marks(marks, shown))

    def _begin(self, showing: Showing, word: str, session: str | None) -> Outcome:
        """Return an outcome as it is written down before anything is credited for it."""
        from memory_kb.notes.events import format_time
        from memory_kb.notes.outcomes import Outcome

        return Outcome(
            format_time(self._vault.clock()), showing.agent, showing.task, word, {}, showing.session or session
        )

    def _write_credits(
        self, plan: Plan, about: Outcome, planner: Callable[[Sequence[Memory]], Plan], *, dry_run: bool
    ) -> RunReport:
        """Write credits down, then into the notes, then that it is done."""
        from memory_kb.notes.outcomes import OutcomeLog
        from memory_kb.reports import RunReport

        if not plan.marks:
            return RunReport(None, "outcome")
        if dry_run:
            return self._writer.run("outcome", plan.changes, dry_run=True)
        log, begun = OutcomeLog(self._vault.machine / "log"), replace(about, marks=plan.marks)
        log.append(begun)
        run, left = None, set[str | None](plan.marks)
        try:
            run = self._store.carry_out("outcome", lambda memories: planner(memories).changes, plan.changes)
            left = {conflict.id for conflict in run.conflicts}
        finally:
            kept = {name: mark for name, mark in plan.marks.items() if name not in left}
            log.append(replace(begun, marks=kept, run=run.run if run else None, is_done=True))
        return run

    def _undone(self) -> frozenset[str]:
        """Return the runs that were taken back."""
        from memory_kb.notes.undoing import undone_by

        return frozenset(undone_by(self._writer.journal.undoings()))
