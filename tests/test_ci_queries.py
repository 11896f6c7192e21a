"""saved queries that vanish, break, or expect what is nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import write_files
from support import entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Files, Run
    from repositories import Clone

QUERIES = (
    "- question: frobnicator zigzag clamp\n  expect: [one-a, one-b]\n- question: quolls at night\n  expect: [two]\n"
)
FILES = {
    "memory/config.yaml": "# nothing yet\n",
    ".gitignore": ".memory-kb/\n",
    "memory/queries.yaml": QUERIES,
    "memory/learnings/a.md": entry("The frobnicator needs a zigzag clamp.", id="one-a", kind="fact"),
    "memory/learnings/b.md": entry("Some zigzag clamp of the frobnicator is blue.", id="one-b", kind="fact"),
    "memory/learnings/two.md": entry("Quolls hunt at night.", id="two", kind="fact"),
}


def change(clone: Clone, *gone: str, code: int = 7, **files: str) -> Any:
    """Take files out, write `queries.yaml`, and return what ci says of that."""
    for name in gone:
        (clone.folder / "memory" / name).unlink()
    write_files(clone.folder, {f"memory/{name}.yaml": text for name, text in files.items()})
    clone.save("change")
    return json.loads(clone.kb("ci", "main~1..main", "--json", code=code))


def messages(report: Any) -> list[str]:
    return [one["message"] for one in report["findings"]]


@pytest.mark.parametrize(
    ("queries", "said", "unasked"),
    [
        ("- question: [broken\n", "not valid YAML", 2),
        ("nothing: here\n", "the saved queries are gone; there were 2", 2),
        ("# all gone\n", "the saved queries are gone; there were 2", 2),
        (QUERIES.replace("- question: quolls", "- questio: quolls"), "has no question", 1),
    ],
)
def test_queries_that_break_are_a_finding(queries: str, said: str, unasked: int, clone: Clone) -> None:
    report = change(clone, queries=queries)
    (message,) = messages(report)
    assert said in message
    assert (report["findings"][0]["path"], len(report["unasked"])) == ("memory/queries.yaml", unasked)


def test_queries_that_go_are_a_finding(clone: Clone) -> None:
    assert messages(change(clone, "queries.yaml")) == ["the saved queries are gone; there were 2"]
    assert clone.kb("ci", "main..main").startswith("## ✅")


def test_one_query_may_be_taken_out_and_is_named(clone: Clone) -> None:
    report = change(clone, "learnings/two.md", code=0, queries=QUERIES.partition("- question: quolls")[0])
    assert report["unasked"] == ["quolls at night"]
    assert [one["after"]["question"] for one in report["queries"]] == ["frobnicator zigzag clamp"]
    assert report["recall"]["before"]["questions"] == 1


def test_what_is_expected_and_nowhere_is_found_by_ci_eval_and_lint(clone: Clone) -> None:
    report = change(clone, "learnings/a.md")
    said = "'frobnicator zigzag clamp' expects 'one-a', and no entry is called that"
    assert report["findings"] == [{"path": "memory/queries.yaml", "line": 1, "message": said}]
    assert [one["verdict"] for one in report["queries"]] == ["fewer", "same"]
    assert (report["recall"]["before"]["recall"]["10"], report["recall"]["after"]["recall"]["10"]) == (1.0, 0.75)
    assert report["recall"]["after"]["hits"]["10"] == 1.0
    assert "| ⚠️ finds fewer |" in clone.kb("ci", "main~1..main", code=7)
    measured = json.loads(clone.kb("eval", "--json", code=7))
    assert measured["problems"] == report["findings"]
    assert f"memory/queries.yaml:1: {said}" in clone.kb("lint", code=7)
    clone.save("later")
    assert clone.kb("ci", "main~1..main").startswith("## ✅")


def test_what_is_archived_or_named_by_its_path_or_beginning_is_somewhere(clone: Clone) -> None:
    write_files(clone.folder, {"memory/archive/2026-01/old.md": entry("It was.", id="old", kind="fact")})
    write_files(
        clone.folder, {"memory/queries.yaml": "- question: q\n  expect: [old, memory/learnings/a.md, long-eno]\n"}
    )
    write_files(clone.folder, {"memory/learnings/c.md": entry("Here.", id="long-enough", kind="fact")})
    clone.kb("lint")


def test_a_file_of_that_name_in_other_notes_is_none_of_ours(vault: Callable[[Files], Path], run: Run) -> None:
    folder = vault({"a.md": "Text.\n", "queries.yaml": "- name: up\n  expr: rate(x)\n"})
    assert run("--vault", folder, "lint").returncode == 0
