"""The verbs reflect and episode, the diary, and what recurs in episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from memory_kb.episodes.consolidation import WINDOW_DAYS, Consolidation, PatternReport, find_hard_events
from memory_kb.episodes.diary_text import (
    DiaryEntry,
    EpisodeResult,
    ReflectReport,
    ask_diary,
    export_diary,
    quality_score,
    read_diary,
)
from memory_kb.episodes.episode import (
    EPISODE_NEW_DAYS,
    FULL_DAYS,
    choose_ageing,
    is_current,
    make_episode,
    name_episode,
    plan_episode,
    plan_summary,
    references,
    title_of,
)
from memory_kb.episodes.session_facts import Trace
from memory_kb.errors import UsageError
from memory_kb.learning.compaction import archive_path, plan_archiving
from memory_kb.learning.conversation import read_conversation
from memory_kb.learning.memories import Memories
from memory_kb.learning.render_entry import Draft, check_draft, plan_entry, without_empty
from memory_kb.learning.trust import RuleGate
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.providers.models import Models
from memory_kb.reports import Learned, RunReport
from memory_kb.store.changes import Change, Plan
from memory_kb.store.session_events import SESSION_OUTCOMES
from memory_kb.store.session_log import SessionFiles, find_id
from memory_kb.store.writer import Writer
from memory_kb.text import fits_tag, hash_of, printable, shorten
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.episodes.trace import Traces

_READ = ("active", "compacted", "archived")


@dataclass(frozen=True)
class Episodes:
    """Episodes of what sessions did, and rules from recurring ones."""

    _vault: Vault
    _writer: Writer
    _memories: Memories
    _models: Models
    _rule_gate: RuleGate
    _get_traces: Callable[[], Traces]

    def reflect(
        self,
        session: str,
        *,
        again: bool = False,
        dry_run: bool = False,
        on_problem: Callable[[int, str], None] | None = None,
    ) -> ReflectReport:
        """Build the episodes of a session, one for each task that its events name.

        Built again from the same events nothing changes. A session that went on renews its episode, unless somebody has
        edited that or deleted it; `again` builds what was deleted, too. `on_problem` is called with the number of
        a line that is no event, and why.
        """
        files = SessionFiles(self._vault.machine)
        session = find_id(session, files.ids())
        traces = self._get_traces().of(session, on_problem)
        notices: list[str] = []
        known = {memory.id: memory for memory in self._memories.of_kinds("episode")}
        asked = None if dry_run else notices
        planned = [
            self._plan_episode(trace, known, asked, is_first=number == 0, again=again)
            for number, trace in enumerate(traces)
        ]
        run = self._writer.run("reflect", [change for _, changes in planned for change in changes], dry_run=dry_run)
        left = {conflict.path for conflict in run.conflicts}
        done = tuple(one._replace(action="left") if one.path in left else one for one, _ in planned)
        return ReflectReport(session, done, run, tuple(dict.fromkeys(notices)))

    def _plan_episode(
        self, trace: Trace, known: dict[str, Memory], notices: list[str] | None, *, is_first: bool, again: bool
    ) -> tuple[EpisodeResult, Plan]:
        if trace.is_empty:
            return EpisodeResult(trace.session, "", "", "empty"), ()
        now, folder_of = self._vault.clock(), self._vault.folder_of
        if not self._vault.memory:  # a plain folder of notes has no jobs and tasks
            trace = trace._replace(job=None, task=None)
        episode = make_episode(trace, now, is_first=is_first)
        there = known.get(episode.id)
        if there is None and not again and episode.id in self._memories.made_ids():
            result, _ = plan_episode(episode, None, folder_of, now)
            return result._replace(action="forgotten"), ()
        if there and is_current(episode.seq, there):
            return plan_episode(episode, there, folder_of, now)
        if notices is not None and self._models.has_llm:
            talk = read_conversation(SessionFiles(self._vault.machine).read(trace.session))
            diary, notice = ask_diary(self._models, trace, f"{talk.humans.text}\n{talk.execution.text}")
            notices += [notice] if notice else []
            episode = make_episode(trace, now, is_first=is_first, diary=diary)
        return plan_episode(episode, self._memories.read_from_file(there) if there else None, folder_of, now)

    def propose_hard_events(self, session: str, *, dry_run: bool = False) -> RunReport:
        """Propose pitfalls for review: commands that worked after a small change, and changes that were reverted."""
        return self._memories.ingest("capture", find_hard_events(self._get_traces().of(session)), dry_run=dry_run)[1]

    def episode(
        self,
        event: str,
        *,
        outcome: str | None = None,
        tags: Sequence[str] = (),
        job: str | None = None,
        task: str | None = None,
        session: str | None = None,
        agent: str | None = None,
        dry_run: bool = False,
    ) -> Learned:
        """Write an episode about a single event; the same event on the same day is the same episode."""
        place = self._vault.place_for("project", job, task)
        now = self._vault.clock()
        if outcome is not None and outcome not in SESSION_OUTCOMES:
            raise UsageError(f"unknown outcome {outcome!r}", f"it may be {', '.join(SESSION_OUTCOMES)}")
        text = " ".join(event.split())
        named = "\n".join((text.casefold(), outcome or "", place.job or "", place.task or "", place.scope))
        entry_id = f"ep-{self._vault.today().isoformat()}-{hash_of(printable(named).encode())[:8]}"
        values: dict[str, Value | None] = {
            "session_id": session,
            "task_id": place.task,
            "agent": agent,
            "outcome": outcome or "mixed",
            "quality_score": quality_score(outcome, (), 0),
            "goal": shorten(text, 200),
        }
        made = Draft(
            event.strip(), "episode", title_of(text), tuple(tags), source="user_explicit", fields=without_empty(values)
        )
        draft = check_draft(made, allow_secret=self._vault.allows_secrets)
        there = next((memory for memory in self._memories.of_kinds("episode") if memory.id == entry_id), None)
        if there:
            return Learned(entry_id, there.path, "known", RunReport(None, "episode"))
        path = name_episode(draft.title or "", entry_id, self._vault.folder_of(place))
        run = self._writer.run(
            "episode", [plan_entry(draft, entry_id, path, now, "Recorded on request.")], dry_run=dry_run
        )
        return Learned(entry_id, path, "left" if run.conflicts else "created", run)

    def consolidate_semantic(self, *, dry_run: bool = False) -> PatternReport:
        """Make rules of what recurs in recent episodes, and pitfalls of their errors."""
        memories, vectors = self._memories.read_with_vectors(
            lambda _: True, lambda memory: memory.kind == "episode" and memory.is_live
        )
        learnings, changes = Consolidation(
            memories,
            self._vault.clock(),
            vectors,
            self._memories.made_ids(),
            self._rule_gate.session_evidence,
            self._memories.made_since(self._vault.today() - timedelta(days=WINDOW_DAYS)),
        ).plan()
        plan = self._memories.plan_ingest(learnings)
        run = self._writer.run("consolidate", (*changes, *plan.changes), dry_run=dry_run)
        return PatternReport(plan.results, tuple(change.entry_id or "" for change in changes), run)

    def age_episodes(self, *, dry_run: bool = False) -> RunReport:
        """Summarise the episodes of more than a week, archive those of more than a month that nothing refers to.

        None is ever deleted. Pinned and evergreen episodes stay, and those in MEMORY.md. An episode without a date does
        not age. What was made in the last days, of old sessions too, stays for now.
        """
        today, folder_of = self._vault.today(), self._vault.folder_of
        made_since = self._memories.made_since(today - timedelta(days=EPISODE_NEW_DAYS))

        def plan(memories: Sequence[Memory]) -> Iterator[Change | None]:
            is_referenced = references(memories)
            for one in memories:
                is_kept = one.is_pinned or one.is_evergreen or one.is_in_people_file or one.id in made_since
                if one.kind != "episode" or is_kept or not (one.is_live and one.is_ours and one.seen):
                    continue
                days = (today - one.seen).days
                ageing = choose_ageing(days, is_referenced=days > FULL_DAYS and is_referenced(one))
                if ageing == "archive":
                    reason = f"It is {days} days old and nothing refers to it."
                    yield from plan_archiving(one, archive_path(one, folder_of(one.place), today), reason)
                elif ageing == "summary" and one.metadata.get("detail") == "full" and one.word("built_from"):
                    yield from plan_summary(one, self._memories.read_from_file, days)

        return self._memories.run_plan("age", plan, dry_run=dry_run)


@dataclass(frozen=True)
class Diary:
    """The episodes, as a diary."""

    _memories: Memories

    def list(
        self,
        *,
        tag: Sequence[str] = (),
        status: Sequence[str] = (),
        min_quality: float | None = None,
        since: date | None = None,
        agent: str | None = None,
    ) -> tuple[DiaryEntry, ...]:
        """Return the diary, the newest first; with any of the tags, one of the states, and at least this quality."""
        asked = (status,) if isinstance(status, str) else status
        tags = (tag,) if isinstance(tag, str) else tuple(tag)
        states = ["mixed" if word == "partial" else word for word in asked]
        wrong = next((word for word in states if word not in ("success", "failure", "mixed")), None)
        if wrong is not None:
            raise UsageError(f"unknown status {wrong!r}", "it may be success, failure, mixed")

        def is_wanted(entry: DiaryEntry) -> bool:
            return (
                (not tags or fits_tag(entry.tags, tags))
                and (not states or entry.status in states)
                and (min_quality is None or entry.quality_score >= min_quality)
                and (since is None or entry.timestamp[:10] >= since.isoformat())
                and agent in (None, entry.agent)
            )

        episodes = (one for one in self._memories.of_kinds("episode") if one.status in _READ)
        entries = map(read_diary, episodes)
        return tuple(sorted(filter(is_wanted, entries), key=lambda entry: (entry.timestamp, entry.id), reverse=True))

    def export(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Yield the diary for other tools, the oldest first; the filters are those of `list`."""
        return (export_diary(entry) for entry in reversed(self.list(**wanted)))
