"""End a session in five steps; a failing part does not stop the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_kb.episodes.error_pitfalls import find_hard_events
from memory_kb.errors import ProviderFailed
from memory_kb.learning.rules import read_outcome
from memory_kb.markdown.fields import parse_date
from memory_kb.model import Location, make_place
from memory_kb.reports import StepReport
from memory_kb.sessions.maintenance import Done, Work, changed, run_step
from memory_kb.store.session_log import OUTCOMES

if TYPE_CHECKING:
    from memory_kb.episodes.service import Episodes
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.captures import Captures
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.extraction import Extraction
    from memory_kb.learning.lifecycle import Lifecycle
    from memory_kb.learning.outcomes import Outcomes
    from memory_kb.learning.review import Review
    from memory_kb.learning.stages import Stages
    from memory_kb.sessions.maintenance import Maintenance
    from memory_kb.sessions.service import Sessions
    from memory_kb.store.events import Event
    from memory_kb.store.session_log import TraceSession
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault
    from memory_kb.working.continuity import Continuity


@dataclass(frozen=True)
class SessionEnd:
    """The steps after a session."""

    _vault: Vault
    _index: VaultIndex
    _writer: Writer
    _store: EntryStore
    _captures: Captures
    _continuity: Continuity
    _episodes: Episodes
    _extraction: Extraction
    _lifecycle: Lifecycle
    _stages: Stages
    _maintenance: Maintenance
    _outcomes: Outcomes
    _review: Review
    _sessions: Sessions
    _trace: TraceSession

    def run(self, session: str, end: Event | None, *, dry_run: bool = False) -> tuple[StepReport, ...]:
        """Do what follows a session that is closed, in five steps.

        Whatever is done already is not done again, so that a session may be ended again after an
        interruption, or when it went on. With `dry_run` nothing is written; `end` is then the event
        that would be.
        """
        sentences = () if dry_run else self._writer.recover()
        mended = tuple(StepReport("recovery", "done", sentence, 0.0) for sentence in sentences)
        with self._sessions.files.writing(session) as writer:
            start, last = writer.first, writer.last
        if dry_run and end:
            last = end
        with self._index.settled():
            # The parts take theirs from all entries, which are read once.
            self._store.all()
            steps = self._steps(session, start, last if last and last.event == "end" else None, dry_run=dry_run)
            return (*mended, *(run_step(name, parts) for name, parts in steps.items()))

    def _steps(
        self, session: str, start: Event | None, end: Event | None, *, dry_run: bool
    ) -> dict[str, list[tuple[str, Work]]]:
        """Return the five steps, each with its parts in the order in which they run."""
        place, day = self._place_of_session(start), parse_date(start.ts) if start else None
        own, reinforce, scan = self._maintenance, self._lifecycle.reinforce, self._review.scan
        due = own.due_steps(dry_run=dry_run) if own.is_maintenance_due() else {}
        work = own.steps(dry_run=dry_run) | due
        # A preview of the contradictions would say twice what they are: nothing was resolved.
        once = {"semantic", "dedup", "promote", *(["contradictions"] if dry_run else [])}
        return {
            "episode": [
                *([] if dry_run else [("index", lambda: self._sessions.index_step(session))]),
                ("episodes", lambda: self._episodes_step(session, dry_run=dry_run)),
                ("stage", lambda: self._stage_step(place.job, dry_run=dry_run)),
            ],
            "capture": [
                ("extraction", lambda: self._extraction_step(session, dry_run=dry_run)),
                ("capture", lambda: self._capture_step(session, dry_run=dry_run)),
            ],
            "credit": [
                ("feedback", lambda: self._feedback_step(session, end, dry_run=dry_run)),
                (
                    "reinforcement",
                    lambda: changed([reinforce(session, dry_run=dry_run)], "entry counted", "entries counted"),
                ),
            ],
            "merge": [
                ("contradictions", lambda: own.contradictions_step(day, dry_run=dry_run)),
                ("compaction", work["dedup"]),
            ],
            "maintain": [
                ("consolidation", work["semantic"]),
                ("promotion", work["promote"]),
                (
                    "anti-patterns",
                    lambda: changed([scan(dry_run=dry_run).run], "proposal for review", "proposals for review"),
                ),
                ("continuity", lambda: self._continuity_step(place, dry_run=dry_run)),
                *((f"maintenance: {name}", one) for name, one in due.items() if name not in once),
            ],
        }

    def _place_of_session(self, start: Event | None) -> Location:
        if start is None or not self._vault.memory or not start.job:
            return Location()
        return make_place("project", start.job, start.task)

    def _episodes_step(self, session: str, *, dry_run: bool) -> Done:
        done = self._episodes.reflect(session, dry_run=dry_run)
        counts = Counter(one.action for one in done.episodes)
        away = counts.pop("forgotten", 0)
        counted = (f"{count} {word}" for word, count in counts.items())
        left = _say_left_out(away, "reflect", session)
        message = "; ".join((*counted, *left, *done.notices))
        return Done(message, (done.run,), is_skipped=bool(away) and not done.run.changes)

    def _stage_step(self, job: str | None, *, dry_run: bool) -> Done:
        reports = [self._stages.detect(one, dry_run=dry_run) for one in dict.fromkeys((None, job))]
        new = (
            f"{'' if report.before == 'unknown' else f'{report.before} is over, '}{report.stage} begins"
            for report in reports
            if report.is_new
        )
        return Done("; ".join(new), tuple(report.run for report in reports))

    def _capture_step(self, session: str, *, dry_run: bool) -> Done:
        runs = []
        if self._vault.settings.learning.capture != "off":
            runs.append(self._captures.capture(session=session, dry_run=dry_run).run)
        offers = find_hard_events(self._trace(session), Location())
        if offers:
            runs.append(self._store.take_in("capture", offers, dry_run=dry_run)[1])
        return changed(runs, "learning kept or proposed", "learnings kept or proposed")

    def _extraction_step(self, session: str, *, dry_run: bool) -> Done:
        done = self._extraction.extract(session, dry_run=dry_run)
        if done.scopes and done.scopes[0].outcome == "skipped":
            return Done(f"skipped: {done.scopes[0].message}", done.runs)
        kept = sum(scope.count(action) for scope in done.scopes for action in ("created", "reinforced"))
        away, is_planned = done.was_taken_away, any(one.outcome == "planned" for one in done.scopes)
        parts = [f"{kept} learning{'s' * (kept != 1)} kept"] if kept else [] if away else ["nothing worth keeping"]
        parts += _say_left_out(away, "extract", session)
        for reason in dict.fromkeys(scope.message for scope in done.failed):
            names = ", ".join(one.scope for one in done.failed if one.message == reason)
            parts.append(f"{names} failed: {reason}")
        parts += [done.summary] if done.failed or is_planned else []
        parts += [str(done.used)] if done.used.calls and not dry_run else []
        code = ProviderFailed.exit_code if done.is_failure else 0
        is_skipped = bool(away) and not any(run.changes for run in done.runs)
        return Done("; ".join(parts), done.runs, is_skipped, code)

    def _feedback_step(self, session: str, end: Event | None, *, dry_run: bool) -> Done:
        """Credit what the session's agents were shown: when somebody said how it went, and else what they said of entries."""
        outcome = (end.args or {}).get("outcome") if end else None
        word = read_outcome(outcome) if outcome in OUTCOMES else None
        runs = self._outcomes.credit_session(session, word, dry_run=dry_run)
        if word is None and not any(run.changes for run in runs):
            return Done("nobody said how it went", is_skipped=True)
        return changed(runs, "credited", "credited")

    def _continuity_step(self, place: Location, *, dry_run: bool) -> Done:
        report = self._continuity.refresh(job=place.job, only_if_there=True, dry_run=dry_run)
        return Done(report.path if report.run.changes else "", (report.run,))


def _say_left_out(count: int, verb: str, session: str) -> list[str]:
    """Return the remark on what a person has taken away before, if anything."""
    words = f"{count} left out that {'were' if count > 1 else 'was'} reverted or deleted before"
    return [f"{words}; `memory-kb {verb} {session} --again`"] if count else []
