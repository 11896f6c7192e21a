"""Reinforcement, stages and archiving: what changes in the notes, once, and what never does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from conftest import NOW, Files, Run

from memory_kb import KnowledgeBase
from memory_kb.errors import VaultBusy
from memory_kb.learning.outcomes import find_due
from memory_kb.learning.playbook import activation_score
from memory_kb.learning.stages import STAGES, guess_stage
from memory_kb.store.logs import Credit, Retrieval, RetrievalLog, log_shown
from memory_kb.vault import hold_lock

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": "reinforcement: {counts: shown}\n"}


def entry(entry_id: str, text: str, **fields: object) -> str:
    head = {
        "id": entry_id,
        "kind": "fact",
        "status": "active",
        "reinforcement_count": 0,
        "last_reinforced": "'2026-11-01'",
    } | fields
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in head.items()) + f"---\n{text}\n"


def remember_session(kb: KnowledgeBase, session: str | None, *ids: str) -> None:
    log_shown(kb.vault, "search", ids, session=session)


# -- reinforcement -------------------------------------------------------------------------


def test_what_a_session_saw_counts_once(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        CONFIG | {"memory/learnings/a.md": entry("a", "Redis."), "memory/learnings/b.md": entry("b", "Mongo.")}
    )
    kb = open_kb(folder)
    for _ in range(3):
        remember_session(kb, "s1", "a")
    before = (folder / "memory/learnings/b.md").read_bytes()
    assert len(kb.reinforce("s1").changes) == 1
    assert kb.reinforce("s1").run is None
    text = (folder / "memory/learnings/a.md").read_text()
    assert text == entry("a", "Redis.", reinforcement_count=1, last_reinforced="'2026-11-21'")
    assert (folder / "memory/learnings/b.md").read_bytes() == before


def test_more_that_is_seen_after_the_end_counts_at_the_next(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(
        vault(CONFIG | {"memory/learnings/a.md": entry("a", "Redis."), "memory/learnings/b.md": entry("b", "Mongo.")})
    )
    remember_session(kb, "s1", "a")
    kb.reinforce("s1")
    remember_session(kb, "s1", "a", "b")
    assert [change.id for change in kb.reinforce("s1").changes] == ["b"]


def test_outside_a_session_each_day_counts(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(CONFIG | {"memory/learnings/a.md": entry("a", "Redis.")})
    for day in range(3):
        for _ in range(2):
            remember_session(open_kb(folder, NOW - timedelta(days=day)), None, "a")
    kb = open_kb(folder)
    kb.reinforce()
    assert (folder / "memory/learnings/a.md").read_text() == entry(
        "a", "Redis.", reinforcement_count=3, last_reinforced="'2026-11-21'"
    )
    assert kb.reinforce().run is None


def test_a_search_is_what_counts(vault: MakeVault, open_kb: Open, run: Run) -> None:
    folder = vault(
        CONFIG
        | {"memory/learnings/a.md": entry("a", "Redis is fast."), "memory/learnings/b.md": entry("b", "Mongo is slow.")}
    )
    done = run("--vault", folder, "search", "redis", env={"MEMORY_KB_SESSION": "s9"})
    assert done.returncode == 0
    assert [change.id for change in open_kb(folder).reinforce("s9").changes] == ["a"]


@pytest.mark.parametrize("status", ["retired", "archived", "proposed", "rejected"])
def test_only_live_entries_count(vault: MakeVault, open_kb: Open, status: str) -> None:
    kb = open_kb(
        vault(
            CONFIG
            | {"memory/learnings/a.md": entry("a", "Redis.", status=status), "memory/learnings/b.md": "Plain text.\n"}
        )
    )
    remember_session(kb, "s1", "a", "unknown")
    assert kb.reinforce("s1").run is None


def test_a_compacted_entry_counts(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault(CONFIG | {"memory/learnings/a.md": entry("a", "Redis.", status="compacted")}))
    remember_session(kb, "s1", "a")
    assert len(kb.reinforce("s1").changes) == 1


def test_a_killed_run_is_counted_neither_twice_nor_never(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        CONFIG | {"memory/learnings/a.md": entry("a", "Redis."), "memory/learnings/b.md": entry("b", "Mongo.")}
    )
    kb = open_kb(folder)
    remember_session(kb, "s1", "a", "b")
    log = RetrievalLog(kb.vault.machine / "log")
    log.credit("2026-11-21T12:00:00.000Z", [Credit("s1", {"a": 1, "b": 1}, is_done=False)])
    (folder / "memory/learnings/a.md").write_text(entry("a", "Redis.", reinforcement_count=1))
    assert [change.id for change in kb.reinforce("s1").changes] == ["b"]
    assert kb.reinforce("s1").run is None


def test_of_one_id_at_two_scopes_the_most_specific_counts(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(
        vault(
            CONFIG
            | {"memory/learnings/a.md": entry("a", "Redis."), "memory/jobs/api/learnings/a.md": entry("a", "Redis.")}
        )
    )
    remember_session(kb, "s1", "a")
    assert [change.path for change in kb.reinforce("s1").changes] == ["memory/jobs/api/learnings/a.md"]


def test_a_torn_log_is_read_as_far_as_it_goes(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault(CONFIG | {"memory/learnings/a.md": entry("a", "Redis.")}))
    remember_session(kb, "s1", "a")
    log = kb.vault.machine / "log/retrievals.jsonl"
    log.write_bytes(log.read_bytes() + b'{"ts": "2026", "verb": "sea')
    remember_session(kb, "s1", "b")
    assert [one.ids for one in RetrievalLog(log.parent).read()] == [("a",), ("b",)]


def test_old_lines_can_be_dropped(tmp_path: Path) -> None:
    log = RetrievalLog(tmp_path)
    for day in ("2025-01-01", "2026-01-01"):
        log.append(Retrieval(f"{day}T00:00:00Z", "search", ("a",)))
    assert log.trim("2025-06-01") == 1
    assert [one.ts[:4] for one in log.read()] == ["2026"]


def test_due_of_another_session_is_not_ours() -> None:
    log = [Retrieval("2026-01-01T00:00:00Z", "search", ("a",), session="s2")]
    assert find_due(log, [], {}, "s1") == {}


# -- stages --------------------------------------------------------------------------------

STAGED = {
    "memory/learnings/task.md": entry("t", "Plan first.", domain="task", phase="planning"),
    "memory/learnings/team.md": entry("u", "Team norm.", domain="team", phase="planning"),
    "memory/learnings/other.md": entry("o", "Other.", domain="task", phase="design"),
    "memory/learnings/pinned.md": entry("p", "Kept.", domain="task", phase="planning", pinned="true"),
    "memory/learnings/merged.md": entry("m", "Merged.", domain="task", phase="planning", status="compacted"),
    "memory/jobs/api/tasks/t1/learnings/deep.md": entry("d", "Deep.", domain="task", phase="planning"),
}


def test_a_transition_retires_what_was_for_the_stage_that_ended(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(CONFIG | STAGED | {"INTENT.md": "Stage: planning\n"})
    kb = open_kb(folder)
    assert kb.stage.detect().is_new
    (folder / "INTENT.md").write_text("**Stage:** implementation\n")
    report = kb.stage.detect()
    assert (report.before, report.stage) == ("planning", "implementation")
    assert sorted(str(change.id) for change in report.run.changes if change.action == "set") == ["d", "m", "t"]
    assert kb.stage.detect().run.run is None
    assert kb.stage.show() == "implementation"


@pytest.mark.parametrize("intent", [None, "", "Lunch is at noon.\n", "planning and review\n"])
def test_an_unknown_stage_retires_nothing(vault: MakeVault, open_kb: Open, intent: str | None) -> None:
    """Defect D-11."""
    folder = vault(
        CONFIG | STAGED | {"memory/.current-stage": "planning\n"} | ({} if intent is None else {"INTENT.md": intent})
    )
    report = open_kb(folder).stage.detect()
    assert report.run.run is None
    assert report.notice
    assert (folder / "memory/.current-stage").read_text() == "planning\n"


def test_what_is_of_no_known_stage_stays_when_the_first_begins(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault(CONFIG | {"memory/learnings/a.md": entry("a", "Plan.", domain="task", phase="unknown")}))
    assert [change.id for change in kb.stage.set("design").run.changes if change.action == "set"] == []


def test_the_stage_of_a_job_is_its_own(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault(CONFIG | STAGED | {"memory/jobs/api/.current-stage": "planning\n"}))
    report = kb.stage.set("implementation", "api")
    assert [change.id for change in report.run.changes if change.action == "set"] == ["d"]
    assert (kb.stage.show("api"), kb.stage.show()) == ("implementation", "unknown")


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_recognised_where_it_is_stated(stage: str) -> None:
    assert guess_stage(f"# Intent\n\n- **Current stage**: `{stage.title()}`\n") == stage


# -- archiving -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "count", "is_below"), [(285, 0, False), (286, 0, True), (375, 1, False), (376, 1, True)]
)
def test_when_a_fact_falls_below_the_line(days: int, count: int, is_below: bool) -> None:
    """Archived after 285.3 days; with count 1, 90 more."""
    assert (
        activation_score("fact", count, date(2026, 11, 21) - timedelta(days=days), date(2026, 11, 21)) < 0.1
    ) is is_below


def test_a_new_fact_is_far_from_it() -> None:
    """Defect D-15: a counter that starts at 0 must not make the score 0."""
    assert activation_score("fact", 0, date(2026, 1, 1), date(2026, 1, 1)) == 0.9


OLD = "'2025-01-01'"


def test_what_is_faded_moves_to_the_archive(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        CONFIG
        | {
            "memory/learnings/old.md": entry("old", "Faded.", last_reinforced=OLD),
            "memory/learnings/new.md": entry("new", "Fresh."),
            "memory/learnings/pinned.md": entry("pin", "Kept.", last_reinforced=OLD, pinned="true"),
            "memory/learnings/policy.md": entry("pol", "Law.", last_reinforced=OLD, kind="policy"),
            "memory/rules/used.md": entry(
                "use", "Used.", last_reinforced=OLD, kind="rule", last_applied="'2026-11-01'"
            ),
            "memory/learnings/two.md": entry("one", "First.", last_reinforced=OLD) + "\n" + entry("two", "Second."),
            "memory/MEMORY.md": entry("mem", "People's.", last_reinforced=OLD),
            "memory/learnings/note.md": "Old words of a person, undated.\n",
            "memory/institutional.md": entry("ins", "Norm.", last_reinforced=OLD),
        }
    )
    kb = open_kb(folder)
    (step,) = kb.consolidate("archive")
    assert (step.outcome, step.message) == ("done", "2 archived")
    archive = folder / "memory/archive/2026-11"
    assert sorted(file.name for file in archive.iterdir()) == ["old.md", "two-one.md"]
    assert (archive / "old.md").read_text() == entry("old", "Faded.", last_reinforced=OLD, status="archived")
    assert (folder / "memory/learnings/two.md").read_text() == entry("two", "Second.")
    assert kb.lifecycle.archive().run is None
    assert [hit.status for hit in kb.search("faded").hits] == ["archived"]
    assert kb.undo().conflicts == ()
    assert (folder / "memory/learnings/old.md").read_text() == entry("old", "Faded.", last_reinforced=OLD)


def test_old_pages_of_other_tools_stay_where_they_are(vault: MakeVault, open_kb: Open) -> None:
    pages = {
        "vault/release.2020-07-25.md": "---\nid: 6aed338c\ntitle: '0.04'\ndate: '2020-07-25'\n---\nNews.\n",
        "docs/2020-01-01.md": "---\nid: overview\ntype: docs\n---\nOverview.\n",
        "papers/a.md": f"---\nkind: own\nlast_reinforced: {OLD}\n---\nA paper.\n",
    }
    folder = vault(pages | {"learnings/old.md": entry("old", "Faded.", last_reinforced=OLD)})
    kb = open_kb(folder)
    assert [step.message for step in kb.consolidate("archive")] == ["1 archived"]
    assert {path: (folder / path).read_text() for path in pages} == pages
    kb.outcome("coder", "news", "success", used=["vault/release.2020-07-25.md", "overview"])
    assert {path: (folder / path).read_text() for path in pages} == pages


def test_age_counts_from_the_day_and_not_from_the_hour(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(CONFIG | {"memory/learnings/a.md": entry("a", "Text.", last_reinforced="'2026-01-01'")})
    assert open_kb(folder, datetime(2026, 10, 13, 23, 59, tzinfo=UTC)).lifecycle.archive().run is None
    assert open_kb(folder, datetime(2026, 10, 14, 0, 1, tzinfo=UTC)).lifecycle.archive().run


# -- promotion -----------------------------------------------------------------------------

SAID = "Run the migrations before the server starts, or the health check fails."


def jobs(*texts: str, kind: str = "fact", folder_name: str = "learnings") -> dict[str, str]:
    return {f"memory/jobs/job{n}/{folder_name}/a.md": entry(f"j{n}", text, kind=kind) for n, text in enumerate(texts)}


def test_what_three_jobs_learned_becomes_the_projects(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault(CONFIG | jobs(SAID, SAID.replace("Run", "run"), SAID + " Always.")))
    report = kb.promote()
    assert [change.action for change in report.changes] == ["create"]
    (made,) = (one for one in kb.memories.all() if one.place.scope == "project")
    assert made.text.strip() == SAID + " Always."
    assert (made.word("promoted_from"), made.word("promoted_at")) == ("session", "2026-11-21")
    assert set(made.words("sources")) == {"j0", "j1", "j2"}
    assert kb.promote().run is None


@pytest.mark.parametrize(
    "files",
    [
        jobs(SAID, SAID),
        jobs(SAID, SAID, SAID.replace("before", "not before")),
        jobs(SAID, SAID, "Something else entirely, about lunch."),
        jobs(SAID, SAID, SAID, folder_name="proxy-tasks"),
        jobs(SAID, SAID, SAID) | {"memory/learnings/no.md": entry("no", SAID, status="rejected")},
        {f"memory/jobs/one/tasks/t{n}/learnings/a.md": entry(f"t{n}", SAID) for n in range(3)},
    ],
    ids=["two jobs", "a negation", "another", "people's preferences", "rejected before", "three tasks of one job"],
)
def test_what_does_not_promote(vault: MakeVault, open_kb: Open, files: Files) -> None:
    assert open_kb(vault({**CONFIG, **files})).promote().run is None


def test_only_the_matching_entry_is_reinforced(vault: MakeVault, open_kb: Open) -> None:
    """Defect D-9."""
    both = entry("p1", SAID) + "\n" + entry("p2", "Other things are true as well.")
    folder = vault(CONFIG | jobs(SAID, SAID, SAID) | {"memory/learnings/both.md": both})
    kb = open_kb(folder)
    assert [change.id for change in kb.promote().changes] == ["p1"]
    assert (folder / "memory/learnings/both.md").read_text().endswith(entry("p2", "Other things are true as well."))
    assert kb.promote().run is None


def test_without_a_judge_nothing_goes_to_the_home(vault: MakeVault, open_kb: Open, home: Path) -> None:
    kb = open_kb(vault(CONFIG | {"memory/learnings/a.md": entry("a", "Write tests first.", reinforcement_count=9)}))
    assert kb.promote().run is None
    assert not home.exists()


class Judge:
    """A language model for which everything holds everywhere; `meanwhile` is called while it is asked."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._meanwhile, self.prompts = meanwhile, list[str]()

    def complete(self, prompt: str, schema: Mapping[str, object], *, timeout: float) -> Mapping[str, object]:
        assert schema["additionalProperties"] is False
        assert timeout > 0
        self.prompts.append(prompt)
        self._meanwhile()
        return {"everywhere": [1, 2]}


def test_what_changes_while_the_judge_is_asked_is_judged_again(vault: MakeVault, open_kb: Open) -> None:
    notes = {f"memory/learnings/{name}.md": entry(name, said) for name, said in (("a", "Pin Redis."), ("b", "Use uv."))}
    folder = vault(CONFIG | notes | jobs(SAID, SAID, SAID))
    kb, other = open_kb(folder), open_kb(folder)
    edited = entry("b", "Use uv in this project alone.")

    def edit() -> None:
        (folder / "memory/learnings/b.md").write_text(edited)
        other.forget("j0")

    kb.models.__dict__["llm"] = judge = Judge(edit)
    assert [change.path.rpartition("-")[0] for change in kb.promote().changes] == ["~global/learnings/pin-redis"]
    assert (folder / "memory/learnings/b.md").read_text() == edited
    kb.models.__dict__["llm"] = again = Judge()
    kb.promote()
    assert ("[1] Pin Redis." in judge.prompts[0], "[1] Use uv in this" in again.prompts[0]) == (True, True)


def test_a_judgment_counts_when_what_follows_from_it_is_written(
    vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = open_kb(vault(CONFIG | {"memory/learnings/a.md": entry("a", "Pin Redis.")}))
    kb.models.__dict__["llm"] = judge = Judge()
    monkeypatch.setattr("memory_kb.store.writer.hold_lock", lambda path, _: hold_lock(path, 0.0))
    with hold_lock(kb.vault.machine / "lock", 0.0), pytest.raises(VaultBusy):
        kb.promote()
    assert [change.action for change in kb.promote().changes] == ["create"]
    assert kb.promote().run is None
    assert len(judge.prompts) == 2
