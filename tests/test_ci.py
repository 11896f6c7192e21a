"""saved queries: measured now, held against each other between two revisions, and proposed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from conftest import NOW, REPOSITORY, Files, Run, write_files
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.cli.evaluate import ci_as_json
from memory_kb.git.ci_report import MOST, as_markdown, escape_markdown
from memory_kb.git.comparison import CiReport, QueryChange, RevisionView, compare_revisions, split_problems
from memory_kb.git.metrics import QuestionResult, average_results
from memory_kb.model import Problem
from memory_kb.store.saved_queries import SavedQuery, parse_queries, write_queries

if TYPE_CHECKING:
    from repositories import Clone

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

QUERIES = """# What everybody should find.
- question: zebra stripes
  expect: [z1]
- question: how do otters swim
  expect: [o1-long-enough]
  task: teach an otter to swim
  max_tokens: 200
"""
FILES = {
    "memory/config.yaml": "",
    ".gitignore": ".memory-kb/\n",
    "memory/queries.yaml": QUERIES,
    "memory/learnings/zebra.md": entry("Zebras have stripes.", id="z1", kind="fact", title="Zebra stripes"),
    "memory/learnings/otter.md": entry(
        "Otters swim on their backs. See [[z1]].", id="o1-long-enough-1", kind="fact", title="Otters"
    ),
    "memory/rules/push.md": entry(
        "Always run the linter before every push to main.", id="r1", kind="rule", created_at="'2026-01-01'"
    ),
}


def change(clone: Clone, files: Files) -> None:
    clone.git("checkout", "-q", "-B", "side")
    write_files(clone.folder, files)
    clone.save("side")


def report_of(clone: Clone, between: str = "main..side", **how: Any) -> Any:
    """Return what `ci --json` prints; `sound` is what its exit code tells."""
    environ = {"HOME": str(clone.folder.parent), "PATH": os.environ["PATH"]}
    with KnowledgeBase.open(clone.folder, clone.folder.parent / "home", environ=environ, clock=lambda: NOW) as kb:
        return ci_as_json(kb.ci(between, **how))


def messages(report: Any) -> list[str]:
    return [one["message"] for one in report["findings"]]


# -- ci --------------------------------------------------------------------------------------


def test_a_change_that_harms_nothing_is_sound(clone: Clone) -> None:
    change(clone, {"memory/learnings/quoll.md": entry("Quolls hunt at night.", id="q1", kind="fact")})
    report = report_of(clone)
    assert report["sound"]
    assert [one["verdict"] for one in report["queries"]] == ["same", "same"]
    assert (
        report["recall"]["before"]["recall"] == report["recall"]["after"]["recall"] == {"1": 1.0, "5": 1.0, "10": 1.0}
    )
    assert clone.kb("ci", "main..side").startswith("## ✅ Memories: nothing to fix\n")
    assert clone.git("status", "--porcelain") == ""


def test_lost_recall_fails_and_names_the_query(clone: Clone) -> None:
    change(clone, {"memory/learnings/zebra.md": entry("It has gone.", id="z1", kind="fact", title="Nothing")})
    report = report_of(clone)
    assert messages(report) == ["'zebra stripes' no longer finds any of z1 among its first 10 hits (was rank 1)"]
    assert (report["findings"][0]["path"], report["findings"][0]["line"]) == ("memory/queries.yaml", 2)
    assert [one["verdict"] for one in report["queries"]] == ["lost", "same"]
    text = clone.kb("ci", "main..side", "--output", clone.folder.parent / "report.md", code=7)
    assert json.loads(clone.kb("ci", "main..side", "--json", code=7)) == report
    assert "| zebra stripes | ❌ lost | 1 | – |" in text
    assert (clone.folder.parent / "report.md").read_text(encoding="utf-8") == text


def test_a_new_query_that_finds_nothing_fails_and_one_that_is_gone_is_reported(clone: Clone) -> None:
    change(clone, {"memory/queries.yaml": "- question: how do quolls hunt\n  expect: q1\n"})
    report = report_of(clone)
    assert messages(report) == [
        "the new query 'how do quolls hunt' finds none of q1 among its first 10 hits",
        "'how do quolls hunt' expects 'q1', and no entry is called that",
    ]
    assert report["unasked"] == ["zebra stripes", "how do otters swim"]


WRONG = {
    "learnings/secret.md": ("The key is AKIAQ2W3E4R5T6Y7U2I3, mind you.\n", "looks like an AWS access key"),
    "learnings/field.md": (
        entry("x", id="b1", kind="fact", note="AKIAQ2W3E4R5T6Y7U2I3"),
        "looks like an AWS access key",
    ),
    "learnings/comment.md": (
        "---\nid: b5\n# note: AKIAQ2W3E4R5T6Y7U2I3\n---\n\nA comment.\n",
        "looks like an AWS access key",
    ),
    "learnings/wikilink.md": (
        entry("See [[nowhere]].", id="b2", kind="fact"),
        "the wikilink to 'nowhere' leads to no entry",
    ),
    "learnings/link.md": (
        entry("x", id="b3", links="[{to: gone, relation: derived_from}]"),
        "the derived_from link to 'gone'",
    ),
    "learnings/id.md": (entry("Another.", id="z1", kind="fact"), "the id z1 is also used at"),
    "rules/contradiction.md": (
        entry("Never run the linter before every push to main.", id="r2", kind="rule"),
        "contradict each other, and no link",
    ),
    "learnings/markers.md": (
        "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n",
        "a conflict of a merge is not settled here",
    ),
}


def test_what_is_new_and_wrong_fails_once(clone: Clone) -> None:
    change(clone, {f"memory/{path}": text for path, (text, _) in WRONG.items()})
    report = report_of(clone)
    for _, said in WRONG.values():
        assert any(said in message for message in messages(report)), said
    with_secrets = {f"memory/learnings/{name}.md" for name in ("secret", "field", "comment")}
    assert with_secrets <= {one["path"] for one in report["findings"]}
    clone.git("checkout", "-q", "-B", "main")
    change(clone, {"memory/learnings/quoll.md": "Quolls hunt at night."})
    later = report_of(clone)
    assert later["findings"] == []
    strict = messages(report_of(clone, strict=True))
    for _, said in WRONG.values():
        assert any(said in one["message"] for one in later["known"]) or "contradict" in said
        assert any(said in message for message in strict)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"memory/institutional.md": "Always so. " * 1000}, "the institutional notes take"),
        (
            {"memory/learnings/bad.md": entry("Otters swim.\n\n" + "They swim and swim. " * 60, id="b", kind="fact")},
            "tokens and may take 200",
        ),
    ],
    ids=["institutional", "budget"],
)
def test_what_is_new_and_too_long_fails_once(files: Files, said: str, clone: Clone) -> None:
    change(clone, files)
    report = report_of(clone)
    assert any(said in message for message in messages(report)), messages(report)
    clone.git("checkout", "-q", "-B", "main")
    change(clone, {"memory/learnings/quoll.md": "Quolls hunt at night."})
    assert report_of(clone)["findings"] == []


def test_a_contradiction_with_a_link_is_settled(clone: Clone) -> None:
    bad = entry(
        "Never run the linter before every push to main.",
        id="r2",
        kind="rule",
        links="[{to: r1, relation: supersedes}]",
    )
    change(clone, {"memory/rules/bad.md": bad})
    assert report_of(clone)["sound"]


def test_contexts_show_what_agents_are_given_now(clone: Clone) -> None:
    change(
        clone,
        {
            "memory/learnings/more.md": entry(
                "To teach an otter to swim, begin in a tub.", id="t1", kind="fact", title="Tubs first"
            )
        },
    )
    report = report_of(clone)
    (told,) = [one for one in report["contexts"] if one["task"] == "teach an otter to swim"]
    assert (told["added"], told["same"]) == (["t1"], False)
    assert told["tokens"]["after"] > 0
    text = clone.kb("ci", "main..side")
    assert "  - + Tubs first (`t1`)" in text
    assert "To teach an otter to swim, begin in a tub." in told["text"]["after"]
    assert any("tokens and may take 5" in message for message in messages(report_of(clone, max_tokens=5, strict=True)))


def test_three_dots_compare_with_where_both_parted(clone: Clone) -> None:
    change(clone, {"memory/learnings/quoll.md": "Quolls hunt at night."})
    clone.git("checkout", "-q", "main")
    write_files(
        clone.folder, {"memory/learnings/zebra.md": entry("See [[nowhere]]. Zebra stripes.", id="z1", kind="fact")}
    )
    clone.save("main")
    clone.git("checkout", "-q", "side")
    assert report_of(clone, "main..HEAD")["base"]["revision"] == clone.git("rev-parse", "main").strip()
    assert report_of(clone, "main...HEAD")["base"]["revision"] == clone.git("rev-parse", "main~1").strip()
    assert report_of(clone, "main")["head"]["name"] == "HEAD"


def test_what_cannot_be_compared_is_an_error(clone: Clone) -> None:
    assert "is no revision" in clone.kb("ci", "main..nowhere", code=2)
    assert "nothing says what to compare" in clone.kb("ci", code=2)
    assert "nothing says what to compare" in clone.kb("ci", "main..HEAD", "--staged", code=2)


@pytest.mark.slow
def test_the_hook_looks_at_what_is_staged_and_at_nothing_else(clone: Clone) -> None:
    hook = clone.folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(REPOSITORY / "docs/git/pre-commit", hook)
    write_files(
        clone.folder, {"memory/learnings/bad.md": "See [[nowhere]].", "memory/learnings/good.md": "Quolls hunt."}
    )
    clone.git("add", "memory/learnings/good.md")
    clone.git("commit", "-q", "-m", "good")
    clone.git("add", "-A")
    head = clone.git("rev-parse", "HEAD")
    clone.git("commit", "-q", "-m", "bad", may_fail=True)
    assert clone.git("rev-parse", "HEAD") == head
    clone.git("commit", "-q", "-m", "bad", "--no-verify")
    write_files(clone.folder, {"memory/learnings/good.md": "Quolls hunt at night.", "src.py": "x"})
    clone.git("commit", "-q", "-m", "part", "--", "memory/learnings/good.md")
    assert clone.git("show", "--name-only", "--format=", "HEAD").split() == ["memory/learnings/good.md"]


def test_the_sample_workflow_reads_and_names_no_machine() -> None:
    text = (REPOSITORY / "docs/git/memories.yml").read_text(encoding="utf-8")
    flow = yaml.safe_load(text)
    assert any("memory-kb ci" in step.get("run", "") for step in flow["jobs"]["memories"]["steps"])
    assert "://" not in text


# -- the report ------------------------------------------------------------------------------


def test_no_text_of_a_note_breaks_out_of_the_report() -> None:
    nasty = "a | b\n# c <img src=x> @team `code` [x](y) ```"
    query = SavedQuery(nasty, ("x",))
    empty = RevisionView("main", "0" * 40)
    report = CiReport(
        empty,
        empty,
        (average_results("a", ()), average_results("b", ())),
        (QueryChange("lost", None, QuestionResult(query, {"x": None}, (nasty,))),),
    )
    row = next(line for line in as_markdown(report).splitlines() if "lost" in line)
    assert "<img" not in row
    assert "@team" not in row
    assert row.replace("\\|", "").count("|") == 6
    assert "\\`code\\`" in escape_markdown(nasty)


def test_a_report_is_never_too_long_for_a_comment() -> None:
    problems = tuple(Problem(f"memory/{number}.md", 1, "x" * 300) for number in range(2_000))
    report = compare_revisions(RevisionView("a", "1"), RevisionView("b", "2", problems=problems), "memory/queries.yaml")
    assert len(report.findings) == 2_000
    assert len(as_markdown(report)) <= MOST + 100
    assert "and 1950 more" in as_markdown(report)


def test_a_problem_that_only_moved_is_not_new() -> None:
    old = [Problem("a.md", 3, "the id x is also used at b.md:7")]
    assert split_problems(old, [Problem("c.md", 9, "the id x is also used at b.md:12")]) == (
        (),
        (Problem("c.md", 9, "the id x is also used at b.md:12"),),
    )


# -- eval ------------------------------------------------------------------------------------


def test_eval_measures_beside_grep_and_counts_as_no_use(vault: MakeVault, run: Run) -> None:
    folder = vault(
        FILES
        | {
            "memory/learnings/decoy.md": entry(
                "A zebra crossing needs new stripes: zebra, stripes.", id="d", kind="fact"
            )
        }
    )
    done = run("--vault", folder, "eval", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [row["name"] for row in report["rows"]] == ["memory-kb", "grep"]
    assert report["rows"][0]["mrr"] > report["rows"][1]["mrr"]
    assert [one["rank"] for one in report["queries"]] == [1, 1]
    assert not (folder / "memory/.memory-kb/log/retrievals.jsonl").exists()
    table = run("--vault", folder, "eval").stdout.splitlines()
    assert table[0].split() == ["recall@1", "recall@5", "recall@10", "hit@10", "MRR"]


def test_eval_ends_with_seven_where_something_is_missed(vault: MakeVault, run: Run) -> None:
    folder = vault(FILES | {"memory/queries.yaml": "- question: wombats\n  expect: z1\n- question: [\n"})
    done = run("--vault", folder, "eval", "--json")
    assert done.returncode == 7
    assert json.loads(done.stdout)["problems"][0]["path"] == "memory/queries.yaml"
    write_files(folder, {"memory/queries.yaml": "- question: wombats\n  expect: z1\n"})
    done = run("--vault", folder, "eval")
    assert (done.returncode, "missed  wombats" in done.stdout) == (7, True)
    (folder / "memory/queries.yaml").unlink()
    done = run("--vault", folder, "eval")
    assert (done.returncode, "--propose" in done.stderr) == (2, True)


def test_the_sample_vault_answers_its_saved_queries(run: Run, tmp_path: Path) -> None:
    shutil.copytree(
        REPOSITORY / "sample_vault/project", tmp_path / "sample", ignore=shutil.ignore_patterns(".memory-kb")
    )
    report = json.loads(run("--vault", tmp_path / "sample", "eval", "--json").stdout)
    assert (len(report["queries"]), report["rows"][0]["hits"]["10"], report["problems"]) == (10, 1.0, [])


def test_proposals_come_from_what_was_asked_and_from_the_notes(vault: MakeVault, run: Run) -> None:
    folder = vault(FILES | {"memory/queries.yaml": "- question: zebra stripes\n  expect: z1\n"})
    for words in (
        "otters on their backs",
        "otters on their backs",
        "zebra  STRIPES",
        "key AKIAQ2W3E4R5T6Y7U2I3 otters",
    ):
        run("--vault", folder, "search", words)
    done = run("--vault", folder, "eval", "--propose", "5")
    assert done.returncode == 0, done.stderr
    queries = parse_queries(done.stdout, "x").queries
    assert queries[0] == SavedQuery("otters on their backs", ("o1-long-enough-1",), line=1)
    assert [one.expect for one in queries[1:]] == [("r1",)]
    with (folder / "memory/queries.yaml").open("a", encoding="utf-8") as stream:
        stream.write(done.stdout)
    assert run("--vault", folder, "eval").returncode == 0
    assert run("--vault", folder, "eval", "--propose", "5").stdout == ""


def test_a_page_with_an_id_among_plain_notes_is_proposed(vault: MakeVault, run: Run) -> None:
    folder = vault({"tea.md": "---\nid: tea-1\n---\n# Tea\n\nThe walrus drinks oolong at the harbour every morning.\n"})
    assert "expect: [tea-1]" in run("--vault", folder, "eval", "--propose", "5").stdout


def test_what_only_one_person_has_is_not_proposed_to_the_team(vault: MakeVault, run: Run, home: Path) -> None:
    folder = vault({"memory/a.md": "# Nothing of ours\n"})
    write_files(
        home, {"MEMORY.md": "---\nid: g1\nkind: fact\n---\nMongooses juggle turquoise marbles before breakfast.\n"}
    )
    run("--vault", folder, "search", "mongooses juggle")
    assert run("--vault", folder, "eval", "--propose", "5").stdout == ""


@pytest.mark.parametrize(
    ("text", "count", "said"),
    [
        ("", 0, None),
        ("# nothing\n", 0, None),
        ("---\n- question: a\n  expect: b\n", 1, None),
        ("queries:\n  - question: a\n    expect: [b]\n", 1, None),
        ("[{question: a, expect: b}]", 1, None),
        ("- a\n- question: b\n  expect: c\n", 1, (1, "is no query")),
        ("\n- expect: c\n", 0, (2, "has no question")),
        ("- question: a\n  expect: b\n  k: many\n", 1, (1, "k many is no number")),
        ("- question: a\n  ask: b\n", 1, (1, "a field that means nothing: ask")),
        ("- question: a\n- question: [b\n", 0, (2, "not valid YAML")),
        ("just words", 0, (1, "no list of queries")),
        ("queries: 7", 0, (1, "no list of queries")),
        ("&a [*a]", 0, (1, "")),
    ],
)
def test_a_file_of_queries_is_read_as_far_as_it_can_be(text: str, count: int, said: tuple[int, str] | None) -> None:
    read = parse_queries(text, "queries.yaml")
    assert len(read.queries) == count
    assert bool(read.problems) == (said is not None)
    if said:
        assert said[1] in read.problems[0].message
        assert abs(read.problems[0].line - said[0]) <= 1


def test_proposals_read_back_as_the_same() -> None:
    queries = (SavedQuery("yes", ("no", "2026-01-01")), SavedQuery("- a: 'b' # c", ("x, y",)))
    assert [(one.question, one.expect) for one in parse_queries(write_queries(queries), "x").queries] == [
        (one.question, one.expect) for one in queries
    ]
