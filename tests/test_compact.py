"""Compaction: said once what was said twice, and nobody's text lost (S3-52 to S3-55, S3-67, D-7)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planning import open_at, tree
from support import days_ago, entry, found

from memory_kb import KnowledgeBase
from memory_kb.errors import Forgotten, UsageError
from memory_kb.index.semantics import Semantics
from memory_kb.learning.memories import Memory
from memory_kb.ports import Limits, Purpose, Space
from memory_kb.reports import RunReport
from memory_kb.verbs.compacting import replan_whole

if TYPE_CHECKING:
    from conftest import Run

Open = Callable[..., KnowledgeBase]
Make = Callable[..., Path]

NIGHTLY = "The nightly build compiles every service and runs the whole test suite on the runner in the basement."
LONGER = NIGHTLY.replace("on the runner", "on the old runner")
ARCHIVE = "memory/archive/2026-11"


def memory_of(kb: KnowledgeBase, entry_id: str) -> Memory:
    (found_one,) = [memory for memory in kb._memories() if memory.id == entry_id]
    return found_one


def statuses(kb: KnowledgeBase) -> dict[str, str]:
    return {memory.id: memory.status for memory in kb._memories()}


def compact(kb: KnowledgeBase, **how: Any) -> tuple[int, int]:
    """Compact twice; the second time may change nothing."""
    report = kb.compact(**how)
    before = tree(kb.vault.folder)
    again = kb.compact(**how)
    assert (again.run.run, again.before, tree(kb.vault.folder)) == (None, report.after, before)
    assert report.run.conflicts == ()
    return report.before, report.after


# -- merging, to the letter of §6.8 ----------------------------------------------------------------


def test_a_merge_keeps_what_all_of_them_have(vault: Make, open_kb: Open) -> None:
    first = entry(
        LONGER,
        id="light",
        kind="rule",
        importance=0.5,
        confidence=0.9,
        tags="[ci, build]",
        sources="[ep-1]",
        session_id="s7",
        links="[{to: ep-1, relation: derived_from}, {to: heavy, relation: related_to}]",
        reinforcement_count=7,
        last_reinforced="'2026-05-01'",
        created_at="'2026-01-01'",
        success_count=2,
        failure_count=1,
        usage_count=3,
    )
    second = (
        "---\n# the one that stays\nid: heavy\nkind: rule\nimportance: 0.80   # said in a review\nconfidence: 0.5\ntags: ['build', nightly]\n"
        "reinforcement_count: 2\nlast_reinforced: '2026-03-01'\nlast_applied: '2026-04-01'\n"
        "created_at: '2026-02-01'\nsuccess_count: 5\nown: {a:   1}\n---\n\n"
        f"{NIGHTLY}\n"
    )
    kb = open_kb(vault({"memory/rules/light.md": first, "memory/rules/heavy.md": second}))
    assert compact(kb) == (2, 1)
    merged = memory_of(kb, "heavy")
    assert (merged.path, merged.text, merged.status) == ("memory/rules/heavy.md", LONGER, "compacted")
    assert (merged.importance, merged.share("confidence", 0), merged.reinforcement_count) == (0.8, 0.5, 7)
    assert [merged.count(name) for name in ("usage_count", "success_count", "failure_count")] == [3, 7, 1]
    assert (merged.tags, merged.words("sources")) == (("build", "nightly", "ci"), ("ep-1", "s7"))
    assert (merged.last_reinforced, merged.word("last_applied"), merged.created_at) == ("2026-05-01", "2026-04-01", "2026-01-01")
    assert [(link.to, link.relation) for link in merged.links] == [("ep-1", "derived_from"), ("light", "supersedes")]
    text = (kb.vault.folder / "memory/rules/heavy.md").read_text()
    assert text.startswith("---\n# the one that stays\nid: heavy\nkind: rule\nimportance: 0.80   # said in a review\n")
    assert "own: {a:   1}\n" in text
    gone = memory_of(kb, "light")
    assert (gone.path, gone.status, gone.text) == (f"{ARCHIVE}/light.md", "archived", LONGER)
    assert ("heavy", "superseded_by") in [(link.to, link.relation) for link in gone.links]
    assert set(found(kb, "nightly build")) == {"memory/rules/heavy.md", f"{ARCHIVE}/light.md"}


def test_a_long_text_arrives_byte_for_byte(vault: Make, open_kb: Open) -> None:
    chapter = "# Chapter\n\n\nTwo  spaces  and a break.  \n\n```py\nx = 1\n\n\n\ny = 2\n```\n\n---\n\n" + f"{NIGHTLY}\n" * 30
    body = "".join(chapter.replace("Chapter", f"Part {letter}") for letter in "ABCD").rstrip("\n")
    files = {
        "memory/rules/long.md": entry(body, id="long", kind="rule"),
        "memory/rules/short.md": entry(body.removesuffix(f"\n{NIGHTLY}"), id="short", kind="rule", importance=0.9),
    }
    kb = open_kb(vault(files))
    assert compact(kb) == (2, 1)
    text = (kb.vault.folder / "memory/rules/short.md").read_text()
    assert text.partition("---\n")[2].partition("---\n")[2] == f"{body}\n"


@pytest.mark.parametrize(
    ("fields", "stays"),
    [
        ([{"importance": 0.4, "confidence": 0.9}, {"importance": 0.5, "confidence": 0.1}], "e1"),
        ([{"importance": 0.5, "confidence": 0.4}, {"importance": 0.5, "confidence": 0.6}], "e1"),
        ([{"created_at": "'2026-03-01'"}, {"created_at": "'2026-02-01'"}], "e1"),
        ([{}, {"created_at": "'2026-02-01'"}], "e1"),
        ([{}, {}], "e0"),
    ],
    ids=["importance", "confidence", "oldest", "dated", "first"],
)
def test_who_stays(fields: list[dict[str, object]], stays: str, vault: Make, open_kb: Open) -> None:
    kb = open_kb(vault({f"memory/rules/{n}.md": entry(NIGHTLY, id=f"e{n}", kind="rule", **one) for n, one in enumerate(fields)}))
    assert compact(kb) == (2, 1)
    assert [name for name, status in statuses(kb).items() if status == "compacted"] == [stays]


def test_undo_takes_a_compaction_back(vault: Make, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/rules/a.md": entry(NIGHTLY, id="a", kind="rule"), "memory/rules/b.md": entry(LONGER, id="b", kind="rule")}))
    before = tree(kb.vault.folder)
    assert kb.compact(dry_run=True).after == 1
    assert tree(kb.vault.folder) == before
    kb.compact()
    assert tree(kb.vault.folder) != before
    kb.undo()
    assert tree(kb.vault.folder) == before


# -- what is alike, and what is not ----------------------------------------------------------------


def count(vault: Make, open_kb: Open, texts: tuple[str, ...], **how: Any) -> int:
    files = {f"memory/learnings/{number}.md": entry(text, id=f"e{number}", kind="fact") for number, text in enumerate(texts)}
    return compact(open_kb(vault(files)), **how)[1]


OPPOSED = """
negation     Use tabs for all indentation in this whole project and in its {examples.|examples, not spaces.}
don't        {Use|Don't use} tabs for all indentation in this whole project and in its examples.
cannot       You {can|cannot} push to the main branch of this repository on any day of the week.
number       The database of the staging system listens on port {5432|5433} of its own host.
opposite     {Enable|Disable} the query cache of the gateway in production, and tell the team on duty.
before       Run all of the migrations {before|after} the deploy of the services to the staging cluster.
avoid        {Prefer|Avoid} small functions with few arguments over large classes in the domain layer.
order        On staging {migrate the schema of the database and then deploy|deploy the schema of the database and then migrate} the services.
name         The cache of the gateway is kept in {Redis|Memcached} and is cleared by the nightly job.
code         Call `{retry_once|retry_twice}` from the worker when the answer of the server is empty again.
sign         Call the worker again when the state of the answer {==|!=} the state of the question.
option       Call the worker again with {-f|f} when the state of the answer is bad or empty.
"""
WORDS_ONLY = ("order", "name", "code", "sign", "option")


def versions(line: str) -> tuple[str, str, str]:
    """Return the name of a row and both its texts."""
    name, _, text = line.partition(" ")
    choice = re.search(r"{(.*)\|(.*)}", text)
    assert choice
    one, other = (text[: choice.start()].lstrip() + choice[number] + text[choice.end() :] for number in (1, 2))
    return name, one, other


@pytest.mark.parametrize(("name", "one", "other"), list(map(versions, OPPOSED.strip().splitlines())))
def test_what_turns_a_sentence_round_is_never_merged_away(name: str, one: str, other: str, vault: Make, open_kb: Open) -> None:
    assert count(vault, open_kb, (one, other)) == 2
    if name not in WORDS_ONLY:  # whoever asks for paraphrases says that order and names do not matter
        assert count(vault, open_kb, (one, other), threshold=0.4) == 2


def test_exactly_four_fifths_are_not_enough(vault: Make, open_kb: Open) -> None:
    assert count(vault, open_kb, ("alpha beta gamma delta", "alpha beta gamma delta epsilon")) == 2
    assert count(vault, open_kb, ("alpha beta gamma delta epsilon", "alpha beta gamma delta epsilon zeta")) == 1


def test_merges_accumulate_around_the_first(vault: Make, open_kb: Open) -> None:
    first = "one two three four five six seven eight nine ten".replace("one", "ein")  # no word is a number
    assert count(vault, open_kb, (first, f"{first} red blue", f"{first} warm cold")) == 1


def test_a_chain_is_followed_until_nothing_is_left(vault: Make, open_kb: Open) -> None:
    """The longest text stays, so what is like that would be merged by the next run; it is by this one."""
    texts = ["a b c d e f g h i j", "a b c d e f g h i j k l", "a b c d e f g h i j k l m n"]
    assert count(vault, open_kb, tuple(texts)) == 1


def test_letters_of_other_scripts_count(vault: Make, open_kb: Open) -> None:
    same = "Ночная сборка собирает все службы и запускает весь набор тестов на сервере в подвале"
    assert count(vault, open_kb, (same, f"{same} снова", "Совсем другой текст о другом")) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "decision"},
        {"domain": "task"},
        {"applies_to": "['*.go']"},
        {"status": "proposed"},
        {"status": "rejected"},
        {"status": "archived"},
        {"pinned": "true"},
        {"kind": "episode"},
        {"kind": "handoff"},
        {"links": "[{to: e0, relation: contradicts}]"},
        {"links": "[{to: e9, relation: superseded_by}]"},
        {"kind": "null", "type": "docs"},
        {"kind": "null"},
    ],
    ids=str,
)
def test_what_stays_apart(fields: dict[str, object], vault: Make, open_kb: Open) -> None:
    shared = {key: value for key, value in fields.items() if key == "kind" and value in ("episode", "handoff")}
    files = {
        "memory/learnings/0.md": entry(NIGHTLY, **({"id": "e0", "kind": "fact"} | shared)),
        "memory/learnings/1.md": entry(NIGHTLY, **({"id": "e1", "kind": "fact"} | fields)),
    }
    kb = open_kb(vault(files))
    before = tree(kb.vault.folder)
    assert kb.compact().run.run is None
    assert tree(kb.vault.folder) == before


def test_scopes_jobs_and_learning_types_stay_apart(vault: Make, open_kb: Open, home: Path) -> None:
    places = (
        *("learnings/p.md", "jobs/a/learnings/j.md", "jobs/b/learnings/j.md", "jobs/a/tasks/t/learnings/t.md", "jobs/a/tasks/u/learnings/t.md"),
        *("institutional.md", "proxy-tasks/x.md", "proxy.md"),
    )
    folder = vault({f"memory/{place}": entry(NIGHTLY, id=f"e{number}", kind="rule") for number, place in enumerate(places)})
    (home / "rules").mkdir(parents=True)
    (home / "rules/g.md").write_text(entry(NIGHTLY, id="g", kind="rule"))
    kb = open_kb(folder)
    before = tree(folder, home)
    wanted: list[dict[str, Any]] = [{}, {"scope": "task"}, {"scope": "global"}, {"job": "a"}, {"job": "a", "task": "t"}]
    for how in wanted:
        assert kb.compact(**how).run.run is None
    assert tree(folder, home) == before


def test_notes_of_people_are_left_alone(vault: Make, open_kb: Open) -> None:
    files = {
        "memory/MEMORY.md": entry(NIGHTLY, id="a", kind="fact") + "\n" + entry(NIGHTLY, id="b", kind="fact"),
        "memory/learnings/plain.md": f"# Build\n\n{NIGHTLY}\n",
        "memory/learnings/page.md": entry(NIGHTLY, title="Page"),
        "memory/proxy.md": entry(NIGHTLY, id="c", kind="fact") + "\n" + entry(NIGHTLY, id="d", kind="fact", status="retired"),
    }
    kb = open_kb(vault(files))
    before = tree(kb.vault.folder)
    assert kb.compact().run.run is None
    assert tree(kb.vault.folder) == before


def test_the_scope_that_is_asked_for(vault: Make, open_kb: Open, home: Path) -> None:
    twice = entry(NIGHTLY, id="a", kind="rule") + "\n" + entry(NIGHTLY, id="b", kind="rule")
    folder = vault({f"memory/{place}rules/r.md": twice for place in ("", "jobs/a/", "jobs/b/", "jobs/a/tasks/t/")})
    (home / "rules").mkdir(parents=True)
    (home / "rules/r.md").write_text(twice)
    kb = open_kb(folder)
    assert compact(kb, job="a") == (2, 1)
    assert compact(kb, scope="global") == (2, 1)
    assert compact(kb, job="a", task="t") == (2, 1)
    assert (home / "archive/2026-11").is_dir()
    assert (folder / "memory/jobs/a/tasks/t/archive/2026-11").is_dir()
    assert compact(kb) == (6, 4)  # the project, both jobs and the home
    with pytest.raises(UsageError, match="unknown scope"):
        kb.compact("nowhere")
    with pytest.raises(UsageError, match="threshold"):
        kb.compact(threshold=0.0)
    with pytest.raises(UsageError, match="job"):
        kb.compact(task="t")


# -- one file with many entries --------------------------------------------------------------------


def test_institutional_memory_is_compacted_in_place(vault: Make, open_kb: Open) -> None:
    theirs = "# What we know\n\nWritten by people.\n\n"
    other = "---\nid: other   # stays\ntype: directive\n---\nSomething else entirely.\n\n---\n\nA rule below a rule.\n\n"
    retired = entry("Over and done.", id="over", type="directive", status="retired")
    text = theirs + entry(NIGHTLY, id="a", type="directive") + "\n" + other + retired + "\n" + entry(LONGER, id="b", type="directive")
    kb = open_kb(vault({"memory/config.yaml": "", "memory/institutional.md": text.replace("\n", "\r\n")}))
    assert compact(kb) == (4, 2)
    data = (kb.vault.folder / "memory/institutional.md").read_bytes().decode()
    assert data.startswith((theirs + "---\nid: a\ntype: directive\nstatus: compacted\n").replace("\n", "\r\n"))
    assert other.replace("\n", "\r\n") in data
    assert LONGER in data
    assert "over" not in data
    assert "\n" not in data.replace("\r\n", "")
    assert [statuses(kb)[name] for name in ("a", "b", "over", "other")] == ["compacted", "archived", "retired", "active"]
    assert {memory.place.learning_type for memory in kb._memories() if "/archive/" in memory.path} == {"task"}


def test_preferences_of_people_stay_such_in_the_archive(vault: Make, open_kb: Open) -> None:
    files = {f"memory/proxy-tasks/{name}.md": entry(NIGHTLY, id=name, kind="preference") for name in "ab"}
    kb = open_kb(vault({"memory/config.yaml": ""} | files))
    assert compact(kb) == (2, 1)
    assert memory_of(kb, "b").place.learning_type == "proxy"


# -- retired ones ----------------------------------------------------------------------------------


def test_retired_ones_leave_and_go_on_keeping_their_text_away(vault: Make, open_kb: Open) -> None:
    text = "Deploys go out on Fridays in the afternoon."
    files = {
        "memory/learnings/gone.md": entry(text, id="gone", kind="fact"),
        "memory/learnings/erased.md": entry("The wiki is the place for all runbooks.", id="erased", kind="fact"),
        "memory/learnings/pinned.md": entry("Pinned.", id="pinned", kind="fact", status="retired", pinned="true"),
        "memory/learnings/page.md": entry("A page.", id="overview", status="retired"),
    }
    kb = open_kb(vault(files))
    kb.forget("gone")
    kb.forget("erased", delete=True)
    assert compact(kb) == (2, 0)
    assert [statuses(kb)[name] for name in ("gone", "erased")] == ["retired", "retired"]
    assert {memory_of(kb, name).path for name in ("gone", "erased")} == {f"{ARCHIVE}/gone.md", f"{ARCHIVE}/erased.md"}
    assert memory_of(kb, "pinned").path == "memory/learnings/pinned.md"
    assert memory_of(kb, "overview").path == "memory/learnings/page.md"
    for forgotten in (text, "The wiki is the place for all runbooks."):
        with pytest.raises(Forgotten):
            kb.learn(forgotten)
    with pytest.raises(Forgotten):
        kb.learn(text, job="api")


def test_two_files_of_one_name_get_two_names_in_the_archive(vault: Make, open_kb: Open) -> None:
    files = {f"memory/learnings/{folder}/same.md": entry(f"Text {folder}.", id=folder, kind="fact", status="retired") for folder in ("x", "y")}
    files |= {
        f"{ARCHIVE}/other.md": entry("There.", id="there", kind="fact"),
        "memory/rules/other.md": entry("Z.", id="z", kind="rule", status="retired"),
    }
    kb = open_kb(vault(files))
    assert compact(kb) == (3, 0)
    assert len({memory.path for memory in kb._memories()}) == 4


# -- one id, several entries -----------------------------------------------------------------------


def test_of_one_id_the_most_important_stays(vault: Make, open_kb: Open) -> None:
    versions = [
        entry(f"{NIGHTLY} {word}.", id="same", type="procedural", importance=weight) for word, weight in (("Old", 0.4), ("New", 0.9), ("Mid", 0.5))
    ]
    text = "# Ours\n\n" + "\n".join(versions) + "\n" + entry("Something else.", id="other", type="procedural")
    kb = open_kb(
        vault({"memory/config.yaml": "", "memory/institutional.md": text, "memory/learnings/copy.md": entry(NIGHTLY, id="same", type="procedural")})
    )
    assert compact(kb) == (5, 3)  # the copy has another learning type
    data = (kb.vault.folder / "memory/institutional.md").read_text()
    assert data == "# Ours\n\n" + versions[1] + "\n" + entry("Something else.", id="other", type="procedural")
    archived = [memory for memory in kb._memories() if memory.status == "archived"]
    assert sorted(memory.text.rpartition(" ")[2] for memory in archived) == ["Mid.", "Old."]
    assert len({memory.id for memory in archived} | {"same"}) == 3
    assert all(("same", "superseded_by") in [(link.to, link.relation) for link in memory.links] for memory in archived)


def test_of_one_id_in_several_files_the_newest_of_the_important_stays(vault: Make, open_kb: Open) -> None:
    files = {f"memory/rules/{age}.md": entry(f"{NIGHTLY} v{age}", id="same", kind="rule", created_at=days_ago(age)) for age in (30, 10, 20)}
    kb = open_kb(vault(files))
    assert compact(kb) == (3, 1)
    assert memory_of(kb, "same").path == "memory/rules/10.md"


def test_pages_that_share_an_id_by_mistake_are_kept(vault: Make, open_kb: Open) -> None:
    files = {
        "memory/rules/one.md": entry("Rebase before you push.", id="same", kind="rule"),
        "memory/rules/two.md": entry("Servers are named after rivers.", id="same", kind="rule"),
        "memory/learnings/a.md": entry("Overview of a page about a page.", id="overview"),
        "memory/learnings/b.md": entry("Overview of a page about a page.", id="overview"),
    }
    kb = open_kb(vault(files))
    assert kb.compact().run.run is None
    assert len([memory for memory in kb._memories() if memory.is_live]) == 4


def test_a_retired_entry_and_a_repeated_id_in_one_file(vault: Make, open_kb: Open) -> None:
    text = "\n".join(
        [
            entry("Gone.", id="gone", kind="rule", status="retired"),
            entry(NIGHTLY, id="same", kind="rule"),
            entry(LONGER, id="same", kind="rule", importance=0.9),
            entry("Run the linter and the formatter before every single push to the server.", id="x", kind="rule"),
            entry("Run the linter and the formatter before every single push to the servers.", id="y", kind="rule"),
        ]
    )
    kb = open_kb(vault({"memory/rules/many.md": text}))
    assert compact(kb) == (5, 2)
    assert [(memory.id, memory.status) for memory in kb._memories() if memory.path == "memory/rules/many.md"] == [
        ("same", "active"),
        ("x", "compacted"),
    ]


def test_a_repeated_id_beside_a_retired_entry_of_the_same(vault: Make, open_kb: Open) -> None:
    mixed = entry("Alpha.", id="same", kind="rule") + "\n" + entry("Alpha beta.", id="same", kind="rule", status="retired")
    kb = open_kb(vault({"memory/rules/a.md": mixed, "memory/rules/b.md": entry("Alpha.", id="same", kind="rule", importance=0.9)}))
    assert compact(kb) == (3, 1)


# -- D-7: compacted entries are alive --------------------------------------------------------------


def test_compacted_entries_are_merged_reinforced_retired_and_compacted_again(vault: Make, open_kb: Open) -> None:
    files = {f"memory/learnings/{name}.md": entry(NIGHTLY, id=name, kind="fact", status="compacted", phase="planning") for name in "ab"}
    kb = open_kb(vault(files))
    assert compact(kb) == (2, 1)
    assert kb.learn(NIGHTLY).action == "reinforced"
    assert memory_of(kb, "a").reinforcement_count == 1
    (kb.vault.folder / "memory/learnings/c.md").write_text(entry(LONGER, id="c", kind="fact", importance=0.9))
    assert compact(kb) == (2, 1)
    assert (memory_of(kb, "c").status, memory_of(kb, "c").reinforcement_count) == ("compacted", 1)
    kb.forget("c")
    assert compact(kb) == (1, 0)
    assert statuses(kb) == {"a": "archived", "b": "archived", "c": "retired"}


# -- meaning ---------------------------------------------------------------------------------------


class Meaning:
    """An embedder for which texts with the same first letter mean the same."""

    space, limits = Space("test", "first-letter", 32), Limits(100, 100_000)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Any:  # noqa: ARG002 - the port's
        return np.eye(32, dtype=np.float32)[[ord(text.strip()[0].lower()) % 32 for text in texts]]

    def close(self) -> None:
        pass


def test_vectors_find_what_words_do_not(vault: Make, open_kb: Open) -> None:
    texts = (
        "Start the linter ahead of every push.",
        "Start the linter, always, ahead of your push, please.",
        "Start the linter ahead of every 3rd push.",
        "Start your day with coffee and cake.",
        "Ahead of every push, the linter: start it, always!",
    )
    files = {f"memory/learnings/{number}.md": entry(text, id=f"e{number}", kind="fact") for number, text in enumerate(texts)}
    kb = open_kb(vault(files))
    assert kb.compact().run.run is None
    kb.__dict__["_semantics"] = Semantics(Meaning, lambda _: None, kb.machine)
    kb.sync()
    assert kb.stats().chunks == 5
    assert compact(kb) == (5, 4)
    assert {name for name, status in statuses(kb).items() if status != "active"} == {"e0", "e1"}


def test_paraphrases_are_merged_on_request(vault: Make, open_kb: Open) -> None:
    texts = (
        "Cache the responses of the catalog in the gateway.",
        "The gateway should be caching catalog responses for a while.",
        "Servers are named after rivers of the country.",
        "Ship it",
        "Ship",
    )
    files = {
        f"memory/learnings/{number}.md": entry(text, id=f"e{number}", kind="fact", reinforcement_count=number) for number, text in enumerate(texts)
    }
    kb = open_kb(vault(files))
    assert kb.compact().run.run is None
    assert compact(kb, threshold=0.4) == (5, 4)
    merged = next(memory for memory in kb._memories() if memory.status == "compacted")
    assert (merged.id, merged.text, merged.importance, merged.reinforcement_count) == ("e0", texts[1], 0.45, 2)


# -- people who write at the same moment -----------------------------------------------------------


def test_a_person_who_edits_meanwhile_keeps_the_pair_whole(vault: Make, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"memory/rules/{name}.md": entry(NIGHTLY, id=name, kind="rule") for name in "ab"}
    files |= {f"memory/learnings/{name}.md": entry("Over.", id=name, kind="fact", status="retired") for name in "xy"}
    kb = open_kb(vault(files))
    run_plan = KnowledgeBase.run_plan
    theirs = entry("A person changed all of this.", id="b", kind="rule")

    def edit_first(self: KnowledgeBase, verb: str, plan: Any, **how: Any) -> RunReport:
        (self.vault.folder / "memory/rules/b.md").write_text(theirs)
        (self.vault.folder / "memory/learnings/x.md").write_text(entry("Over. Really.", id="x", kind="fact", status="retired"))
        return run_plan(self, verb, plan, **how)

    with monkeypatch.context() as patch:
        patch.setattr(KnowledgeBase, "run_plan", edit_first)
        report = kb.compact()
    assert (kb.vault.folder / "memory/rules/b.md").read_text() == theirs
    assert (kb.vault.folder / "memory/rules/a.md").read_text() == files["memory/rules/a.md"]
    assert {conflict.id for conflict in report.run.conflicts} == {"a", "b"}
    assert "Really." in (kb.vault.folder / f"{ARCHIVE}/x.md").read_text()
    assert report.before - report.after == 2
    assert compact(kb) == (2, 2)


def test_an_edit_that_changes_nothing_of_the_plan_is_planned_anew(vault: Make, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    kb = open_kb(vault({f"memory/rules/{name}.md": entry(NIGHTLY, id=name, kind="rule") for name in "ab"}))
    run_plan = KnowledgeBase.run_plan

    def edit_first(self: KnowledgeBase, verb: str, plan: Any, **how: Any) -> RunReport:
        (self.vault.folder / "memory/rules/b.md").write_text(entry(NIGHTLY, id="b", kind="rule", owner="wombat"))
        return run_plan(self, verb, plan, **how)

    with monkeypatch.context() as patch:
        patch.setattr(KnowledgeBase, "run_plan", edit_first)
        assert kb.compact().run.conflicts == ()
    assert "owner: wombat" in (kb.vault.folder / f"{ARCHIVE}/b.md").read_text()


def test_nothing_is_planned_for_a_file_that_is_not_asked_for() -> None:
    assert replan_whole("a.md", [], []) == []


# -- any vault at all ------------------------------------------------------------------------------

WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "not", "7", "8", "never"]), min_size=1, max_size=12).map(
    " ".join
)


@given(
    st.lists(
        st.tuples(
            WORDS,
            st.sampled_from(["a", "b", "c", "d", "e"]),
            st.sampled_from(["memory/institutional.md", "memory/learnings/one.md", "memory/learnings/two.md", "memory/rules/r.md"]),
            st.sampled_from(["active", "compacted", "retired"]),
            st.sampled_from([0.4, 0.9]),
        ),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_text_is_lost_and_a_second_run_does_nothing(
    tmp_path_factory: pytest.TempPathFactory, listed: list[tuple[str, str, str, str, float]]
) -> None:
    place = tmp_path_factory.mktemp("any")
    (place / "vault/memory").mkdir(parents=True)
    (place / "vault/memory/config.yaml").touch()
    files: dict[str, str] = {}
    for body, name, path, status, weight in listed:
        files[path] = files.get(path, "") + "\n" * (path in files) + entry(body, id=name, kind="rule", status=status, importance=weight)
    for path, text in files.items():
        file = place / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with open_at(place) as kb:
        report = kb.compact()
        everything = "\n".join(memory.text for memory in kb._memories())
        assert all(body in everything for body, *_ in listed)
        after = tree(place)
        again = kb.compact()
        assert (again.run.run, tree(place)) == (None, after)
        assert again.before == report.after
        kb.undo()
        assert {memory.text for memory in kb._memories()} == {body for body, *_ in listed}


# -- the command -----------------------------------------------------------------------------------


def test_the_command(run: Run, vault: Make) -> None:
    folder = vault({f"memory/rules/{name}.md": entry(NIGHTLY, id=name, kind="rule") for name in "ab"})
    before = tree(folder)
    shown = run("--vault", folder, "compact", "--dry-run")
    assert (shown.returncode, tree(folder)) == (0, before)
    assert "+++ memory/archive/" in shown.stdout
    assert "would move memory/rules/b.md" in shown.stderr
    told = json.loads(run("--vault", folder, "compact", "--json").stdout)
    assert [told[name] for name in ("before", "after", "retired", "repeated", "merged", "verb")] == [2, 1, 0, 0, 1, "compact"]
    done = run("--vault", folder, "compact")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 entry, nothing to do\n", "")
    assert run("--vault", folder, "compact", "--threshold", "7").returncode == 2


def test_an_empty_vault(open_kb: Open, folder: Path) -> None:
    report = open_kb(folder).compact()
    assert (report.before, report.after, report.run.run) == (0, 0, None)
