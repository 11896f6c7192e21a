"""What waits for a person's judgment, and what became of a task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_kb.errors import UsageError
from memory_kb.filters import EVERYTHING, FilterWords, make_filters
from memory_kb.verbs.rules import Rules, read_outcome

if TYPE_CHECKING:
    from typing import Unpack

    from memory_kb.learning.memories import Memory
    from memory_kb.learning.rules.inversion import ScanReport
    from memory_kb.learning.rules.outcomes import Account, Crediting, OutcomeReport
    from memory_kb.learning.rules.review import Ground, ReviewItem, ReviewView
    from memory_kb.reports import RunReport


class Reviewing(Rules):
    """The verbs review list, show, scan, approve and reject, and outcome."""

    def review_list(self, **filters: Unpack[FilterWords]) -> tuple[ReviewItem, ...]:
        """Return what waits for a judgment: proposals first, then live entries with flags.

        The filters are those of `search`.
        """
        from memory_kb.learning.rules.review import find_waiting

        chosen = make_filters(**filters)
        everything = EVERYTHING if not chosen.job else EVERYTHING._replace(job=chosen.job, task=chosen.task)
        wanted = chosen._replace(
            kinds=chosen.kinds or everything.kinds,
            statuses=chosen.statuses or everything.statuses,
            learning_types=chosen.learning_types or everything.learning_types,
        )
        return find_waiting(self._memories(wanted), self._today())

    def review_show(self, wanted: str) -> ReviewView:
        """Return an entry of the queue with its text, and with what approving it would write.

        Raises:
            UnknownEntry: there is none.
            UsageError: it is over, and cannot be approved.
        """
        from memory_kb.learning.rules.review import ReviewView, make_item
        from memory_kb.notes.sheets import find_entry

        found = self._find(wanted)
        text = self.note(found.path).text
        entry = find_entry(text, found.path, found.id)
        return ReviewView(make_item(found, self._today()), text[entry.span.start : entry.span.end], self.review_approve(found.id, dry_run=True))

    def review_scan(self, *, dry_run: bool = False) -> ScanReport:
        """Propose a warning in the place of every rule that failed too often (S0-33 to S0-36).

        The proposals lie in `review/` until somebody approves or rejects them.
        """
        from memory_kb.learning.intake import plan_intake
        from memory_kb.learning.rules.inversion import ScanReport, plan_scan
        from memory_kb.learning.rules.playbook import RULE_KINDS

        with self._planning(dry_run=dry_run):
            scan = plan_scan(self._memories(EVERYTHING._replace(kinds=RULE_KINDS)))
            made = functools.cache(self._decisions.made)
            intake = self._reading(lambda index: plan_intake(scan.offers, index, self._folder_of, self._clock(), lambda entry_id: entry_id in made()))
            run = self.run_plan("review scan", [*intake.changes, *scan.changes], dry_run=dry_run)
        refused = tuple(f"{one.offer.reason} {one.message}" for one in intake.taken if one.action == "refused")
        return ScanReport(tuple(one.id for one in intake.taken if one.action == "created"), refused, run)

    def review_approve(self, *wanted: str, dry_run: bool = False) -> RunReport:
        """Approve entries: a proposal is put in use, a flag is taken away (S0-38).

        Approving twice changes nothing more.

        Raises:
            UnknownEntry: there is no such entry.
            UsageError: one of them is retired or archived, or none is named.
            CannotSplice: an entry cannot be added to `institutional.md`.
        """
        from memory_kb.learning.rules.review import plan_approval

        with self._planning(dry_run=dry_run):
            found = self._find_all(wanted)
            return self.run_plan("review approve", plan_approval(found, self._ground()), dry_run=dry_run)

    def review_reject(self, *wanted: str, reason: str | None = None, dry_run: bool = False) -> RunReport:
        """Reject entries: they stay where they are, and keep the same text from coming back.

        Raises:
            UnknownEntry: there is no such entry.
            UsageError: one of them does not wait for review, or none is named.
        """
        from memory_kb.learning.rules.review import plan_rejection

        with self._planning(dry_run=dry_run):
            found = self._find_all(wanted)
            return self.run_plan("review reject", plan_rejection(found, reason, self._ground()), dry_run=dry_run)

    def outcome(
        self, agent: str, task: str, outcome: str, *, used: Sequence[str] = (), session: str | None = None, dry_run: bool = False
    ) -> OutcomeReport:
        """Say how a task went; the rules, pitfalls and skills that its agent was shown are credited for it.

        Without `used` all that was shown gets the outcome, pitfalls no failure. With it, or where
        the agent itself said what helped (`[memory-kb: helpful ID]`), those are credited and the
        others only settle. Each entry is credited once for a task of an agent; a task that was
        shown nothing changes nothing.

        Args:
            agent: who did it, as it was named when it was shown something.
            task: the task, named in the same way.
            outcome: `success`, `failure` or `mixed`.
            used: the entries that were used, by their ids.
            session: only what was shown in this session.
            dry_run: whether only to tell what would change.

        Raises:
            UsageError: there is no such outcome.
            UnknownEntry: one that was used does not exist.
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        from memory_kb.learning.rules.outcomes import EVIDENCE_KINDS, OutcomeReport, find_credited, find_injected, plan_outcome
        from memory_kb.notes.outcomes import OutcomeLog
        from memory_kb.notes.retrievals import RetrievalLog
        from memory_kb.reports import RunReport

        word, today = read_outcome(outcome), self._today()
        reason = f"{agent} on {task}: {word}."
        with self._planning(dry_run=dry_run):
            if not dry_run:
                self.recover()
            shown = find_injected(RetrievalLog(self.machine / "log").read(), agent, task, session)
            if not shown.ids:
                where = f" in session {session}" if session else ""
                notice = f"Nothing was shown to {agent} for {task}{where}: `context` must name the same agent and task. Nothing is credited."
                return OutcomeReport(agent, task, word, (), (), notice, RunReport(None, "outcome"))
            account = self._hear(word, shown.ids, used, dict.fromkeys((*shown.sessions, *([session] if session else []))))
            memories = self._memories(EVERYTHING._replace(kinds=EVIDENCE_KINDS))
            told = list(OutcomeLog(self.machine / "log").read(agent, task))
            known = find_credited(told, self._undone() if told else (), memories)
            asked = dict.fromkeys((*account.used, *shown.ids))
            wanted = [one for one in asked if one not in known]
            plan = plan_outcome(memories, wanted, account, today, reason)
            run = self._credit(
                plan, (agent, task, word, session), lambda entries: plan_outcome(entries, wanted, account, today, reason), dry_run=dry_run
            )
        left = {conflict.id for conflict in run.conflicts}
        credits_ = tuple(one for one in plan.credits if one.id not in left)
        notice = "" if plan.credits else "All of it was credited before." if known else "None of what was shown is a rule, pitfall or skill in use."
        return OutcomeReport(agent, task, word, credits_, tuple(one for one in asked if one in known), notice, run)

    def _reconsider(self, agent: str, task: str, outcome: str, session: str, *, dry_run: bool = False) -> RunReport:
        """Settle what a session credited again, where it is now said to have gone otherwise.

        Raises:
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        from memory_kb.learning.rules.outcomes import EVIDENCE_KINDS
        from memory_kb.learning.rules.secondthoughts import find_former, plan_second_thoughts
        from memory_kb.notes.outcomes import OutcomeLog
        from memory_kb.reports import RunReport

        word, today = read_outcome(outcome), self._today()
        reason = f"{agent} on {task}: {word}."
        with self._planning(dry_run=dry_run):
            memories = self._memories(EVERYTHING._replace(kinds=EVIDENCE_KINDS))
            former = find_former(OutcomeLog(self.machine / "log").read(agent, task), self._undone(), memories, session, word)
            if not former:
                return RunReport(None, "outcome")
            account = self._hear(word, tuple(former), (), (session,))

            def plan(entries: Sequence[Memory]) -> Crediting:
                return plan_second_thoughts(entries, former, account, today, reason)

            return self._credit(plan(memories), (agent, task, word, session), plan, dry_run=dry_run)

    def _hear(self, outcome: str, shown: Sequence[str], used: Sequence[str], sessions: Iterable[str]) -> Account:
        """Return what is known of how a task went, by its sessions and by whoever tells."""
        from memory_kb.learning.rules.outcomes import Account, find_marks, resolve_marks
        from memory_kb.notes.sessionlog import SessionFiles

        files = SessionFiles(self.machine)
        marks: dict[str, str] = {}
        for session in set(files.ids()).intersection(sessions):
            marks |= find_marks(files.read(session))
        names = (used,) if isinstance(used, str) else used
        full = tuple(next((one for one in shown if one == name), None) or self._find(name).id for name in names)
        return Account(outcome, full, resolve_marks(marks, shown))

    def _credit(
        self, plan: Crediting, about: tuple[str, str, str, str | None], planner: Callable[[Sequence[Memory]], Crediting], *, dry_run: bool
    ) -> RunReport:
        """Write credits down, then into the notes, then that it is done."""
        from memory_kb.notes.events import format_time
        from memory_kb.notes.outcomes import Outcome, OutcomeLog
        from memory_kb.reports import RunReport

        if not plan.marks:
            return RunReport(None, "outcome")
        if dry_run:
            return self.run_plan("outcome", plan.changes, dry_run=True)
        agent, task, word, session = about
        log = OutcomeLog(self.machine / "log")
        begun = Outcome(format_time(self._clock()), agent, task, word, plan.marks, session)
        log.append(begun)
        run, left = None, set[str | None](plan.marks)
        try:
            run = self._carry_out("outcome", lambda memories: planner(memories).changes, plan.changes)
            left = {conflict.id for conflict in run.conflicts}
        finally:
            kept = {name: mark for name, mark in plan.marks.items() if name not in left}
            log.append(replace(begun, marks=kept, run=run.run if run else None, is_done=True))
        return run

    def _undone(self) -> frozenset[str]:
        """Return the runs that were taken back."""
        from memory_kb.notes.undoing import undone_by

        return frozenset(undone_by(self._decisions.undoings()))

    def _find_all(self, wanted: Sequence[str]) -> tuple[Memory, ...]:
        """Return entries that are named, each once."""
        if not wanted:
            raise UsageError("no entry is named", "`memory-kb review list` shows what waits")
        found = {(memory.path, memory.id): memory for memory in map(self._find, wanted)}
        return tuple(found.values())

    def _ground(self) -> Ground:
        from memory_kb.learning.rules.review import Ground
        from memory_kb.notes.changes import read_if_there
        from memory_kb.notes.plans import NoteText

        def read(path: str) -> NoteText | None:
            data = read_if_there(path, self.vault.resolve(path))
            return None if data is None else NoteText(path, data)

        return Ground(self._memories(), self._folder_of, read, self._today())
