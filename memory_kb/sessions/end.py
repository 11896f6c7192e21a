"""End a session in five steps; a failing part does not stop the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from memory_kb.errors import ProviderFailed
from memory_kb.markdown.fields import parse_date
from memory_kb.model import Location
from memory_kb.sessions.steps import Done, Step, merge_steps, run_steps, say_changes

if TYPE_CHECKING:
    from datetime import date

    from memory_kb.episodes.service import Episodes
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.captures import Captures
    from memory_kb.learning.compactor import Compactor
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.extraction_service import Extraction
    from memory_kb.learning.lifecycle import Lifecycle
    from memory_kb.learning.outcomes import Outcomes
    from memory_kb.learning.review import Review
    from memory_kb.learning.stages import Stages
    from memory_kb.reports import RunReport, StepReport
    from memory_kb.sessions.maintenance import Maintenance
    from memory_kb.sessions.service import Sessions
    from memory_kb.store.events import Event
    from memory_kb.store.session_log import TraceSession
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault
    from memory_kb.working.continuity import Continuity

_WERE = ("was", "were")
#: The five steps of a session's end, each with its parts in the order in which they run.
STEPS = {
    "episode": ("index", "episodes", "stage"),
    "capture": ("extraction", "capture"),
    "credit": ("feedback", "reinforcement"),
    "merge": ("contradictions", "compaction"),
    "maintain": ("consolidation", "promotion", "anti-patterns", "continuity", "maintenance"),
}


class SessionEnd:
    """The steps after a session."""

    def __init__(
        self,
        vault: Vault,
        index: VaultIndex,
        writer: Writer,
        store: EntryStore,
        captures: Captures,
        compactor: Compactor,
        continuity: Continuity,
        episodes: Episodes,
        extraction: Extraction,
        lifecycle: Lifecycle,
        stages: Stages,
        maintenance: Maintenance,
        outcomes: Outcomes,
        review: Review,
        sessions: Sessions,
        trace: TraceSession,
    ) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._store = store
        self._captures = captures
        self._compactor = compactor
        self._continuity = continuity
        self._episodes = episodes
        self._extraction = extraction
        self._lifecycle = lifecycle
        self._stages = stages
        self._maintenance = maintenance
        self._outcomes = outcomes
        self._review = review
        self._sessions = sessions
        self._trace = trace

    def run(self, session: str, end: Event | None, *, dry_run: bool = False) -> tuple[StepReport, ...]:
        """Do what follows a session that is closed, in five steps.

        Whatever is done already is not done again, so that a session may be ended again after an
        interruption, or when it went on. With `dry_run` nothing is written; `end` is then the event
        that would be.
        """
        from memory_kb.reports import StepReport

        sentences = () if dry_run else self._writer.recover()
        mended = tuple(StepReport("recovery", "done", sentence, 0.0) for sentence in sentences)
        start, last = self._edges(session)
        place = self._place_of_session(start)
        with self._index.settled():
            # The parts take theirs from all entries, which are read once.
            self._store.all()
            parts = self._parts(session, start, (end or last) if dry_run else last, place, dry_run=dry_run)
            return (*mended, *merge_steps(run_steps(one for one in parts if not dry_run or one[0] != "index"), STEPS))

    def _parts(
        self, session: str, start: Event | None, end: Event | None, place: Location, *, dry_run: bool = False
    ) -> Iterator[Step]:
        fresh: set[str] = set()

        def noting(step: str, work: Callable[[], Done]) -> Callable[[], Done]:
            """Do work that is a step of the maintenance, too."""

            def do() -> Done:
                done = work()
                fresh.add(step)
                return done

            return do

        yield "index", lambda: self._sessions.index_step(session)
        yield "episodes", lambda: self._episodes_step(session, dry_run=dry_run)
        yield "stage", lambda: self._stage_step(place.job, dry_run=dry_run)
        yield "extraction", lambda: self._extraction_step(session, dry_run=dry_run)
        yield "capture", lambda: self._capture_step(session, dry_run=dry_run)
        yield "feedback", lambda: self._feedback_step(session, end, dry_run=dry_run)
        yield "reinforcement", lambda: self._reinforcement_step(session, dry_run=dry_run)
        yield "contradictions", lambda: self._contradictions_step(_day_of(start), dry_run=dry_run)
        yield "compaction", noting("dedup", lambda: self._maintenance.dedup_step(dry_run=dry_run))
        yield "consolidation", noting("semantic", lambda: self._maintenance.semantic_step(dry_run=dry_run))
        yield (
            "promotion",
            noting(
                "promote",
                lambda: self._maintenance.run_of(self._lifecycle.promote, "promoted", "promoted", dry_run=dry_run),
            ),
        )
        yield "anti-patterns", lambda: self._scan_step(dry_run=dry_run)
        yield "continuity", lambda: self._continuity_step(place, dry_run=dry_run)
        yield "maintenance", lambda: self._maintenance_step(fresh, dry_run=dry_run)

    def _edges(self, session: str) -> tuple[Event | None, Event | None]:
        """Return the first event of a session, and the last that says how it ended."""
        with self._sessions.files.writing(session) as writer:
            first, last = writer.first, writer.last
        return first, last if last is not None and last.event == "end" else None

    def _place_of_session(self, start: Event | None) -> Location:
        from memory_kb.model import make_place

        if start is None or not self._vault.memory or not start.job:
            return Location()
        return make_place("project", start.job, start.task)

    def _episodes_step(self, session: str, *, dry_run: bool) -> Done:
        done = self._episodes.reflect(session, dry_run=dry_run)
        counts = Counter(one.action for one in done.episodes)
        away = counts.pop("forgotten", 0)
        counted = [f"{count} {word}" for word, count in counts.items()]
        counted += (
            [
                f"{away} left out that {_WERE[away > 1]} reverted or deleted before; `memory-kb reflect {session} --again`"
            ]
            if away
            else []
        )
        return Done("; ".join((*counted, *done.notices)), (done.run,), is_skipped=bool(away) and not done.run.changes)

    def _stage_step(self, job: str | None, *, dry_run: bool) -> Done:
        reports = [
            self._stages.detect(dry_run=dry_run),
            *([self._stages.detect(job, dry_run=dry_run)] if job else []),
        ]
        new = [
            f"{'' if report.before == 'unknown' else f'{report.before} is over, '}{report.stage} begins"
            for report in reports
            if report.is_new
        ]
        return Done("; ".join(new), tuple(report.run for report in reports))

    def _capture_step(self, session: str, *, dry_run: bool) -> Done:
        from memory_kb.episodes.error_pitfalls import find_hard_events

        runs = []
        if self._vault.settings.learning.capture != "off":
            runs.append(self._captures.capture(session=session, dry_run=dry_run).run)
        offers = find_hard_events(self._trace(session), Location())
        if offers:
            runs.append(self._store.take_in("capture", offers, dry_run=dry_run)[1])
        return Done(say_changes(runs, "learning kept or proposed", "learnings kept or proposed"), tuple(runs))

    def _extraction_step(self, session: str, *, dry_run: bool) -> Done:
        done = self._extraction.extract(session, dry_run=dry_run)
        kept = sum(scope.count(action) for scope in done.scopes for action in ("created", "reinforced"))
        counted = f"{kept} learning{'s' * (kept != 1)} kept" if kept else "nothing worth keeping"
        needy = sum(scope.outcome == "skipped" for scope in done.scopes)
        asked = f"; {needy} scopes need a language model" if needy else ""
        for reason in dict.fromkeys(scope.message for scope in done.failed):
            asked += f"; {', '.join(one.scope for one in done.failed if one.message == reason)} failed: {reason}"
        asked += f"; {done.summary}" if done.failed or any(one.outcome == "planned" for one in done.scopes) else ""
        asked += f"; {done.used}" if done.used.calls and not dry_run else ""
        away = done.was_taken_away
        left = (
            f"{away} left out that {_WERE[away > 1]} reverted or deleted before; `memory-kb extract {session} --again`"
            if away
            else ""
        )
        summary = "; ".join(filter(None, (counted if kept or not away else "", left)))
        code = ProviderFailed.exit_code if done.is_failure else 0
        is_skipped = bool(away) and not any(run.changes for run in done.runs)
        return Done(f"{summary}{asked}", done.runs, is_skipped, code)

    def _feedback_step(self, session: str, end: Event | None, *, dry_run: bool) -> Done:
        """Credit what the session's agents were shown: when somebody said how it went, and else what they said of entries."""
        outcome = (end.args or {}).get("outcome") if end else None
        word = (
            {"partial": "mixed"}.get(str(outcome), str(outcome))
            if outcome in ("success", "failure", "mixed", "partial")
            else None
        )
        runs = self._outcomes.credit_session(session, word, dry_run=dry_run)
        if word is None and not any(run.changes for run in runs):
            return Done("nobody said how it went", is_skipped=True)
        return Done(say_changes(runs, "credited", "credited"), runs)

    def _reinforcement_step(self, session: str, *, dry_run: bool) -> Done:
        run = self._lifecycle.reinforce(session, dry_run=dry_run)
        return Done(say_changes([run], "entry counted", "entries counted"), (run,))

    def _contradictions_step(self, since: date | None, *, dry_run: bool) -> Done:
        report = self._compactor.contradictions(resolve=True, since=since, dry_run=dry_run)
        return Done(report.summary, (report.run,))

    def _scan_step(self, *, dry_run: bool) -> Done:
        report = self._review.scan(dry_run=dry_run)
        return Done(say_changes([report.run], "proposal for review", "proposals for review"), (report.run,))

    def _continuity_step(self, place: Location, *, dry_run: bool) -> Done:
        report = self._continuity.refresh(job=place.job, only_if_there=True, dry_run=dry_run)
        return Done(report.path if report.run.changes else "", (report.run,))

    def _maintenance_step(self, fresh: Collection[str], *, dry_run: bool) -> Done:
        if not self._maintenance.is_maintenance_due():
            return Done()
        # A preview of the contradictions would repeat what that stage reported: nothing was resolved.
        fresh = {*fresh, "contradictions"} if dry_run else fresh
        steps = self._maintenance.run_due(fresh=fresh, dry_run=dry_run).steps
        lines = [
            f"{step.name}: {step.message}" if step.message and not step.conflicts else step.name
            for step in steps
            if step.outcome in ("done", "failed") or step.conflicts
        ]
        runs = tuple(run for step in steps for run in _runs_of(step))
        code = next((step.exit_code for step in steps if step.exit_code), 0)
        return Done(
            "; ".join(lines), runs, is_skipped=bool(lines) and not any(run.changes for run in runs), exit_code=code
        )


def _runs_of(step: StepReport) -> Iterator[RunReport]:
    """Yield what a step wrote, as runs: its changes are with the first."""
    from memory_kb.reports import RunReport

    first, *others = step.runs or (None,)
    yield RunReport(first, step.name, step.changes, step.conflicts, step.diff)
    yield from (RunReport(run, step.name) for run in others)


def _day_of(start: Event | None) -> date | None:
    return parse_date(start.ts) if start else None
