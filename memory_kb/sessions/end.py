"""End a session in five steps; a failing part does not stop the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_kb.episodes.consolidation import find_hard_events
from memory_kb.errors import ProviderFailed
from memory_kb.learning.rules import parse_outcome
from memory_kb.model import Location, make_place
from memory_kb.reports import StepReport
from memory_kb.session_facts import TraceSession
from memory_kb.sessions.maintenance import EndedSession, Part, PartResult, report_changes, run_step
from memory_kb.store.session_log import SESSION_OUTCOMES
from memory_kb.text import parse_date, pluralize

if TYPE_CHECKING:
    from memory_kb.episodes.service import Episodes
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.capture import Captures
    from memory_kb.learning.extraction import Extraction
    from memory_kb.learning.memories import Memories
    from memory_kb.learning.outcomes import Outcomes
    from memory_kb.learning.review import Review
    from memory_kb.learning.stages import Stages
    from memory_kb.sessions.maintenance import Maintenance
    from memory_kb.sessions.service import Sessions
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault
    from memory_kb.working.continuity import Continuity


@dataclass(frozen=True)
class SessionEnd:
    """What follows a session that is closed, with the services that do it.

    Whatever is done already is not done again, so that a session may be ended again after an
    interruption, or when it went on.
    """

    ended: EndedSession
    vault: Vault
    index: VaultIndex
    writer: Writer
    memories: Memories
    captures: Captures
    continuity: Continuity
    episodes: Episodes
    extraction: Extraction
    stages: Stages
    maintenance: Maintenance
    outcomes: Outcomes
    review: Review
    sessions: Sessions
    trace: TraceSession

    def run(self) -> tuple[StepReport, ...]:
        """Run the five steps, and return one report for each, after those of runs that were recovered."""
        sentences = () if self.dry_run else self.writer.recover()
        recovered = tuple(StepReport("recovery", "done", sentence, 0.0) for sentence in sentences)
        with self.index.up_to_date():
            # The parts take theirs from all entries, which are read once.
            self.memories.all()
            return (*recovered, *(run_step(name, parts) for name, parts in self.steps().items()))

    @property
    def session(self) -> str:
        return self.ended.session

    @property
    def dry_run(self) -> bool:
        return self.ended.is_preview

    def steps(self) -> dict[str, list[tuple[str, Part]]]:
        """Return the five steps, each with its parts in the order in which they run."""
        due = self.maintenance.due_parts(dry_run=self.dry_run) if self.maintenance.is_maintenance_due() else {}
        # A due part also records in the maintenance log when it was done.
        parts = self.maintenance.all_parts(dry_run=self.dry_run) | due
        # These parts run in the steps below, due or not; all other due parts run at the end of "maintain".
        placed_below = {"semantic", "dedup", "promote"}
        if self.dry_run:  # In a preview nothing is resolved: the due part would report the same contradictions again.
            placed_below.add("contradictions")
        further = [(f"maintenance: {name}", part) for name, part in due.items() if name not in placed_below]
        return {
            "episode": [("index", self._index), ("episodes", self._episodes), ("stage", self._stage)],
            "capture": [("extraction", self._extraction), ("capture", self._capture)],
            "credit": [("feedback", self._feedback), ("reinforcement", self._reinforcement)],
            "merge": [("contradictions", self._contradictions), ("compaction", parts["dedup"])],
            "maintain": [
                ("consolidation", parts["semantic"]),
                ("promotion", parts["promote"]),
                ("anti-patterns", self._anti_patterns),
                ("continuity", self._continuity),
                *further,
            ],
        }

    @property
    def _place(self) -> Location:
        start = self.ended.start
        if start is None or not self.vault.memory or not start.job:
            return Location()
        return make_place("project", start.job, start.task)

    def _index(self) -> PartResult:
        return PartResult() if self.dry_run else self.sessions.index_part(self.session)

    def _episodes(self) -> PartResult:
        done = self.episodes.reflect(self.session, dry_run=self.dry_run)
        counts = Counter(one.action for one in done.episodes)
        away = counts.pop("forgotten", 0)
        counted = (f"{count} {word}" for word, count in counts.items())
        message = "; ".join((*counted, *self._say_left_out(away, "reflect"), *done.notices))
        return PartResult(message, (done.run,), is_skipped=bool(away) and not done.run.changes)

    def _stage(self) -> PartResult:
        jobs = dict.fromkeys((None, self._place.job))
        reports = [self.stages.detect(job, dry_run=self.dry_run) for job in jobs]
        new = (f"{one.before} -> {one.stage}" for one in reports if one.is_new)
        return PartResult("; ".join(new), tuple(report.run for report in reports))

    def _capture(self) -> PartResult:
        runs = []
        if self.vault.settings.learning.capture != "off":
            runs.append(self.captures.capture(session=self.session, dry_run=self.dry_run).run)
        if learnings := find_hard_events(self.trace(self.session), Location()):
            runs.append(self.memories.ingest("capture", learnings, dry_run=self.dry_run)[1])
        return report_changes(runs, "learning kept or proposed", "learnings kept or proposed")

    def _extraction(self) -> PartResult:
        done = self.extraction.extract(self.session, dry_run=self.dry_run)
        if done.scopes and done.scopes[0].outcome == "skipped":
            return PartResult(f"skipped: {done.scopes[0].message}", done.runs)
        kept = sum(scope.count(action) for scope in done.scopes for action in ("created", "reinforced"))
        away, is_planned = done.was_taken_away, any(one.outcome == "planned" for one in done.scopes)
        parts = [f"{pluralize(kept, 'learning')} kept"] if kept else [] if away else ["nothing worth keeping"]
        parts += self._say_left_out(away, "extract")
        for reason in dict.fromkeys(scope.message for scope in done.failed):
            names = ", ".join(one.scope for one in done.failed if one.message == reason)
            parts.append(f"{names} failed: {reason}")
        parts += [done.summary] if done.failed or is_planned else []
        parts += [str(done.used)] if done.used.calls and not self.dry_run else []
        code = ProviderFailed.exit_code if done.is_failure else 0
        is_skipped = bool(away) and not any(run.changes for run in done.runs)
        return PartResult("; ".join(parts), done.runs, is_skipped, code)

    def _feedback(self) -> PartResult:
        """Credit what the session's agents were shown, by the stated outcome, else by what they said of entries."""
        outcome = (self.ended.end.args or {}).get("outcome") if self.ended.end else None
        word = parse_outcome(outcome) if outcome in SESSION_OUTCOMES else None
        runs = self.outcomes.credit_session(self.session, word, dry_run=self.dry_run)
        if word is None and not any(run.changes for run in runs):
            return PartResult("nobody said how it went", is_skipped=True)
        return report_changes(runs, "credited")

    def _reinforcement(self) -> PartResult:
        run = self.outcomes.reinforce(self.session, dry_run=self.dry_run)
        return report_changes([run], "entry counted", "entries counted")

    def _contradictions(self) -> PartResult:
        day = parse_date(self.ended.start.ts) if self.ended.start else None
        return self.maintenance.contradictions_part(day, dry_run=self.dry_run)

    def _anti_patterns(self) -> PartResult:
        run = self.review.scan(dry_run=self.dry_run).run
        return report_changes([run], "proposal for review", "proposals for review")

    def _continuity(self) -> PartResult:
        report = self.continuity.refresh(job=self._place.job, only_if_there=True, dry_run=self.dry_run)
        return PartResult(report.path if report.run.changes else "", (report.run,))

    def _say_left_out(self, count: int, verb: str) -> list[str]:
        """Return the remark on what a person has reverted or deleted before, if anything."""
        words = f"{count} left out that {'were' if count > 1 else 'was'} reverted or deleted before"
        return [f"{words}; `memory-kb {verb} {self.session} --again`"] if count else []
