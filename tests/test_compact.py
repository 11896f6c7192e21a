"""Compaction: said once what was said twice, and nobody's text lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from compacting import ARCHIVE, LONGER, NIGHTLY, compact, memory_of, statuses
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import open_at, tree
from support import entry, found

from memory_kb import KnowledgeBase
from memory_kb.reports import RunReport
from memory_kb.store.writer import Writer

if TYPE_CHECKING:
    from conftest import Run

Open = Callable[..., KnowledgeBase]
Make = Callable[..., Path]


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
    assert (merged.last_reinforced, merged.word("last_applied"), merged.created_at) == (
        "2026-05-01",
        "2026-04-01",
        "2026-01-01",
    )
    assert [(link.to, link.relation) for link in merged.links] == [("ep-1", "derived_from"), ("light", "supersedes")]
    text = (kb.vault.folder / "memory/rules/heavy.md").read_text()
    assert text.startswith("---\n# the one that stays\nid: heavy\nkind: rule\nimportance: 0.80   # said in a review\n")
    assert "own: {a:   1}\n" in text
    gone = memory_of(kb, "light")
    assert (gone.path, gone.status, gone.text) == (f"{ARCHIVE}/light.md", "archived", LONGER)
    assert ("heavy", "superseded_by") in [(link.to, link.relation) for link in gone.links]
    assert set(found(kb, "nightly build")) == {"memory/rules/heavy.md", f"{ARCHIVE}/light.md"}


def test_a_long_text_arrives_byte_for_byte(vault: Make, open_kb: Open) -> None:
    chapter = (
        "# Chapter\n\n\nTwo  spaces  and a break.  \n\n```py\nx = 1\n\n\n\ny = 2\n```\n\n---\n\n" + f"{NIGHTLY}\n" * 30
    )
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
    kb = open_kb(
        vault({f"memory/rules/{n}.md": entry(NIGHTLY, id=f"e{n}", kind="rule", **one) for n, one in enumerate(fields)})
    )
    assert compact(kb) == (2, 1)
    assert [name for name, status in statuses(kb).items() if status == "compacted"] == [stays]


def test_four_fifths_of_the_words_are_not_enough(vault: Make, open_kb: Open) -> None:
    said = "the nightly build is slow"
    files = {f"memory/rules/{n}.md": entry(text, kind="rule") for n, text in enumerate((said, f"{said} here"))}
    assert compact(open_kb(vault(files))) == (2, 1)
    shorter = {f"memory/rules/{n}.md": entry(text, kind="rule") for n, text in enumerate((said[4:], said))}
    assert compact(open_kb(vault(shorter))) == (2, 2)


def test_undo_takes_a_compaction_back(vault: Make, open_kb: Open) -> None:
    kb = open_kb(
        vault(
            {
                "memory/rules/a.md": entry(NIGHTLY, id="a", kind="rule"),
                "memory/rules/b.md": entry(LONGER, id="b", kind="rule"),
            }
        )
    )
    before = tree(kb.vault.folder)
    assert kb.compact(dry_run=True).after == 1
    assert tree(kb.vault.folder) == before
    kb.compact()
    assert tree(kb.vault.folder) != before
    kb.undo()
    assert tree(kb.vault.folder) == before


def test_institutional_memory_is_compacted_in_place(vault: Make, open_kb: Open) -> None:
    theirs = "# What we know\n\nWritten by people.\n\n"
    other = (
        "---\nid: other   # stays\ntype: directive\n---\nSomething else entirely.\n\n---\n\nA rule below a rule.\n\n"
    )
    retired = entry("Over and done.", id="over", type="directive", status="retired")
    text = (
        theirs
        + entry(NIGHTLY, id="a", type="directive")
        + "\n"
        + other
        + retired
        + "\n"
        + entry(LONGER, id="b", type="directive")
    )
    kb = open_kb(vault({"memory/config.yaml": "", "memory/institutional.md": text.replace("\n", "\r\n")}))
    assert compact(kb) == (4, 2)
    data = (kb.vault.folder / "memory/institutional.md").read_bytes().decode()
    assert data.startswith((theirs + "---\nid: a\ntype: directive\nstatus: compacted\n").replace("\n", "\r\n"))
    assert other.replace("\n", "\r\n") in data
    assert LONGER in data
    assert "over" not in data
    assert "\n" not in data.replace("\r\n", "")
    assert [statuses(kb)[name] for name in ("a", "b", "over", "other")] == [
        "compacted",
        "archived",
        "retired",
        "active",
    ]
    assert {memory.place.learning_type for memory in kb.memories.all() if "/archive/" in memory.path} == {"task"}


def test_preferences_of_people_stay_such_in_the_archive(vault: Make, open_kb: Open) -> None:
    files = {f"memory/proxy-tasks/{name}.md": entry(NIGHTLY, id=name, kind="preference") for name in "ab"}
    kb = open_kb(vault({"memory/config.yaml": ""} | files))
    assert compact(kb) == (2, 1)
    assert memory_of(kb, "b").place.learning_type == "proxy"


def test_a_file_keeps_its_ending_in_the_archive(vault: Make, open_kb: Open) -> None:
    files = {"memory/learnings/Old.MD": entry("Over.", id="over", kind="fact", status="retired")}
    kb = open_kb(vault({"memory/config.yaml": ""} | files))
    compact(kb)
    assert memory_of(kb, "over").path.endswith("/Old-over.MD")


def test_compacted_entries_are_merged_reinforced_retired_and_compacted_again(vault: Make, open_kb: Open) -> None:
    files = {
        f"memory/learnings/{name}.md": entry(NIGHTLY, id=name, kind="fact", status="compacted", phase="planning")
        for name in "ab"
    }
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


def test_a_person_who_edits_meanwhile_keeps_the_pair_whole(
    vault: Make, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"memory/rules/{name}.md": entry(NIGHTLY, id=name, kind="rule") for name in "ab"}
    files |= {f"memory/learnings/{name}.md": entry("Over.", id=name, kind="fact", status="retired") for name in "xy"}
    kb = open_kb(vault(files))
    run_plan = Writer.run
    theirs = entry("A person changed all of this.", id="b", kind="rule")

    def edit_first(self: Writer, verb: str, plan: Any, **how: Any) -> RunReport:
        (kb.vault.folder / "memory/rules/b.md").write_text(theirs)
        (kb.vault.folder / "memory/learnings/x.md").write_text(
            entry("Over. Really.", id="x", kind="fact", status="retired")
        )
        return run_plan(self, verb, plan, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "run", edit_first)
        report = kb.compact()
    assert (kb.vault.folder / "memory/rules/b.md").read_text() == theirs
    assert (kb.vault.folder / "memory/rules/a.md").read_text() == files["memory/rules/a.md"]
    assert {conflict.id for conflict in report.run.conflicts} == {"a", "b", "x"}
    assert report.before - report.after == 1
    assert compact(kb) == (3, 2)
    assert "Really." in (kb.vault.folder / f"{ARCHIVE}/x.md").read_text()


WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "not", "7", "8", "never"]),
    min_size=1,
    max_size=12,
).map(" ".join)


@given(
    st.lists(
        st.tuples(
            WORDS,
            st.sampled_from(["a", "b", "c", "d", "e"]),
            st.sampled_from(
                ["memory/institutional.md", "memory/learnings/one.md", "memory/learnings/two.md", "memory/rules/r.md"]
            ),
            st.sampled_from(["active", "compacted", "retired"]),
            st.sampled_from([0.4, 0.9]),
        ),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=12)
def test_no_text_is_lost_and_a_second_run_does_nothing(
    tmp_path_factory: pytest.TempPathFactory, listed: list[tuple[str, str, str, str, float]]
) -> None:
    place = tmp_path_factory.mktemp("any")
    (place / "vault/memory").mkdir(parents=True)
    (place / "vault/memory/config.yaml").touch()
    files: dict[str, str] = {}
    for body, name, path, status, weight in listed:
        files[path] = (
            files.get(path, "")
            + "\n" * (path in files)
            + entry(body, id=name, kind="rule", status=status, importance=weight)
        )
    for path, text in files.items():
        file = place / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with open_at(place) as kb:
        report = kb.compact()
        everything = "\n".join(memory.text for memory in kb.memories.all())
        assert all(body in everything for body, *_ in listed)
        after = tree(place)
        again = kb.compact()
        assert (again.run.run, tree(place)) == (None, after)
        assert again.before == report.after
        kb.undo()
        assert {memory.text for memory in kb.memories.all()} == {body for body, *_ in listed}


def test_the_command(run: Run, vault: Make) -> None:
    folder = vault({f"memory/rules/{name}.md": entry(NIGHTLY, id=name, kind="rule") for name in "ab"})
    before = tree(folder)
    shown = run("--vault", folder, "compact", "--dry-run")
    assert (shown.returncode, tree(folder)) == (0, before)
    assert "+++ memory/archive/" in shown.stdout
    assert "would move memory/rules/b.md" in shown.stderr
    told = json.loads(run("--vault", folder, "compact", "--json").stdout)
    assert [told[name] for name in ("before", "after", "retired", "repeated", "merged", "verb")] == [
        2,
        1,
        0,
        0,
        1,
        "compact",
    ]
    done = run("--vault", folder, "compact")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 entry, nothing to do\n", "")
    assert run("--vault", folder, "compact", "--threshold", "7").returncode == 2


def test_an_empty_vault(open_kb: Open, folder: Path) -> None:
    report = open_kb(folder).compact()
    assert (report.before, report.after, report.run.run) == (0, 0, None)
