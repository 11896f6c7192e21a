"""The measuring scripts, run as processes on data small enough to check their figures by hand."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from conftest import REPOSITORY, clean_environment, write_files

SCRIPTS = REPOSITORY / "scripts"


def run_script(name: str, *arguments: str | Path, home: Path, is_ok: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a script of the project with the Python of the tests."""
    found = subprocess.run(
        [sys.executable, SCRIPTS / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        env=clean_environment(home),
    )
    assert (found.returncode == 0) == is_ok, found.stderr
    return found


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the scripts are for a Unix shell")
def test_every_script_explains_itself() -> None:
    for script in sorted(file for file in SCRIPTS.iterdir() if file.is_file() and os.access(file, os.X_OK)):
        program = [sys.executable] if "python" in script.read_text(encoding="utf-8").partition("\n")[0] else []
        done = subprocess.run(
            [*program, script, "--help"], capture_output=True, encoding="utf-8", timeout=60, check=False
        )
        assert (done.returncode, "usage" in done.stdout or "Usage" in done.stdout) == (0, True), script.name


@pytest.fixture
def evaluation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script `eval` as a module."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    loader = importlib.machinery.SourceFileLoader("eval_script", str(SCRIPTS / "eval"))
    spec = importlib.util.spec_from_loader("eval_script", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def run_eval(
    evaluation: ModuleType, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """A function that runs the script in this process and returns what it prints."""

    def run(*arguments: str | Path) -> str:
        with mock.patch.dict(os.environ, clean_environment(home), clear=True):
            monkeypatch.setattr(sys, "argv", ["scripts/eval", *map(str, arguments)])
            assert evaluation.main() == 0
        return capsys.readouterr().out

    return run


def test_every_ingredient_of_the_ranking_can_be_left_out(evaluation: ModuleType) -> None:
    ablation = evaluation.ablation
    for ingredient in ablation.INGREDIENTS.values():
        with ablation.without(ingredient.values):
            for path, value in ingredient.values.items():
                module, name = path.split(".")
                assert getattr(importlib.import_module(f"memory_kb.search.{module}"), name) == value


def hits(module: ModuleType, *texts: str) -> list[Any]:
    return [module.Hit(f"page-{number}.md", text) for number, text in enumerate(texts)]


def test_question_metrics_by_hand(evaluation: ModuleType) -> None:
    # Evidence at places 2 and 12 of 12, one piece missing; every text is 400 characters long.
    texts = [("[m1]" if place == 2 else "[m2]" if place == 12 else "").ljust(400, ".") for place in range(1, 13)]
    row = evaluation.score_question(hits(evaluation, *texts), ["[m1]", "[m2]", "[m3]"])
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert row == pytest.approx(
        {
            "R@5": 1 / 3,
            "R@10": 1 / 3,
            "R@20": 2 / 3,
            "hit@10": 1.0,
            "nDCG@10": (1 / math.log2(3)) / ideal,
            "MRR": 0.5,
            "R@2000c": 1 / 3,  # five texts fit
            "R@4000c": 1 / 3,  # ten texts fit
        }
    )


def test_first_hit_counts_whatever_its_length(evaluation: ModuleType) -> None:
    row = evaluation.score_question(hits(evaluation, "[m1]".ljust(9_000, "."), "[m2]"), ["[m1]", "[m2]"])
    assert (row["R@2000c"], row["R@4000c"], row["R@5"], row["nDCG@10"]) == (0.5, 0.5, 1.0, 1.0)


def test_nothing_found_is_zero_everywhere(evaluation: ModuleType) -> None:
    assert set(evaluation.score_question([], ["[m1]"]).values()) == {0.0}
    assert set(evaluation.score_page([], "a.md").values()) == {0.0}


def test_page_metrics_by_hand(evaluation: ModuleType) -> None:
    row = evaluation.score_page(hits(evaluation, *"abcdefg"), "page-5.md")
    assert row == {
        "hit@1": 0.0,
        "hit@5": 0.0,
        "hit@10": 1.0,
        "MRR": pytest.approx(1 / 6),
        "nDCG@10": pytest.approx(1 / math.log2(7)),
        "R@10": 1.0,
        "R@4000c": 1.0,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\n\nOne two three four five six. Too short.\n", ["One two three four five six."]),
        ("- [ ] One `two` **three**\n  four [[page|five]] [six](x.md).\n", ["One two three four five six."]),
        ("---\ntitle: x\n---\n```\none two three four five six\n```\n| a | b c d e f g |\n", []),
        ("これは日本語の文です。短い。", ["これは日本語の文です。"]),
    ],
    ids=["prose", "markup", "not prose", "no spaces"],
)
def test_sentences(evaluation: ModuleType, text: str, expected: list[str]) -> None:
    assert evaluation.sentences(text) == expected


def test_queries_for_a_page_are_the_same_every_time(evaluation: ModuleType) -> None:
    queries = evaluation.page_queries("guide/setup.md", "Before.\n\nOne two three four five six seven.\n")
    assert queries == evaluation.page_queries("guide/setup.md", "Before.\n\nOne two three four five six seven.\n")
    assert (queries["title"], queries["sentence"]) == ("setup", "One two three four five six seven.")
    assert queries["five words"] in queries["sentence"]
    assert len(queries["five words"].split()) == 5
    japanese = evaluation.page_queries(
        "a.md", "---\ntitle: 設定\n---\nこれはとても長い日本語の文なので途中で切れます。\n"
    )
    assert (japanese["title"], len(japanese["sentence"]), len(japanese["five words"])) == ("設定", 20, 8)


def question(number: int, text: str, category: str, *evidence: str) -> str:
    return (
        json.dumps(
            {"qid": f"q{number}", "sample": "talk", "question": text, "category": category, "evidence": list(evidence)}
        )
        + "\n"
    )


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Three questions: one half answered, one answered second, one not at all."""
    filler = "Nothing of interest stands here at length. "
    return write_files(
        tmp_path / "data",
        {
            "vault/talk/zebra.md": "**Ann** [t:1]: The zebra sleeps.\n",
            "vault/talk/walrus.md": "**Bob** [t:2]: Something else entirely.\n",
            "vault/talk/first.md": f"harbour lighthouse, harbour lighthouse. {filler * 28}\n",
            "vault/talk/second.md": f"**Cid** [t:3]: We saw the lighthouse. {filler * 28}\n",
            "queries.jsonl": question(1, "Where is the zebra?", "single", "[t:1]", "[t:2]")
            + question(2, "harbour lighthouse", "single", "[t:3]")
            + question(3, "harbour", "adversarial", "[t:1]"),
        },
    )


@pytest.mark.parametrize("scope", ["conversation", "all"])
def test_eval_of_questions(questions: Path, run_eval: Callable[..., str], scope: str) -> None:
    report = json.loads(run_eval(questions, "--scope", scope, "--json"))
    groups = report["engines"]["memory-kb"]["groups"]
    assert set(groups) == {"headline", "single", "adversarial", "all"}
    assert groups["headline"] == groups["single"]
    ndcg = round((1 / (1 + 1 / math.log2(3)) + 1 / math.log2(3)) / 2, 4)
    recall = {"R@5": 0.75, "R@10": 0.75, "R@20": 0.75, "R@2000c": 0.25, "R@4000c": 0.75}
    expected = {"n": 2, "hit@10": 1.0, "nDCG@10": ndcg, "MRR": 0.75, **recall}
    # Passages are short enough for the second hit to fit into 2,000 characters, paragraphs are not.
    assert groups["headline"] == expected | {"R@2000c": 0.75}
    assert set(groups["adversarial"].values()) == {1, 0.0}
    assert report["engines"]["plain"]["groups"]["headline"] == expected
    assert (report["queries"], report["vaults"], report["scope"]) == (3, 1, scope)
    files = {file.name for file in questions.rglob("*")}
    assert files == {"queries.jsonl", "vault", "talk", "zebra.md", "walrus.md", "first.md", "second.md"}


def test_eval_of_questions_as_a_table(questions: Path, run_eval: Callable[..., str]) -> None:
    shown = run_eval(questions)
    rows = {line[:16].strip(): line.split() for line in shown.splitlines()}
    assert rows["headline"] == ["headline", "2", "75.0", "75.0", "75.0", "100.0", "62.2", "75.0", "75.0", "75.0"]
    assert {"single", "adversarial", "all", "plain: headline", "plain: all", "memory-kb", "plain"} <= set(rows)
    assert f"eval {questions}" in shown


def test_eval_of_pages(tmp_path: Path, run_eval: Callable[..., str]) -> None:
    words = ("copper", "garden", "window", "river", "candle", "marble", "forest", "engine", "basket", "thunder")
    folders = ["one"] * 5 + ["two"] * 5
    pages = {
        f"{folder}/{word}.md": f"# About {word}\n\nThis {word} stands alone on its own quiet page.\n"
        for folder, word in zip(folders, words, strict=True)
    }
    data = write_files(tmp_path / "pages", {**pages, ".hidden/copper.md": "# Copper\n", "top.md": "Short.\n"})
    report = json.loads(run_eval(data, "--json"))
    groups = report["engines"]["memory-kb"]["groups"]
    assert groups["title: together"]["n"] == 11
    assert {value for name, value in groups["title: together"].items() if name != "n"} == {1.0}
    asked = {name: row["n"] for name, row in groups.items() if name.startswith("sentence")}
    assert asked == {"sentence: together": 10, "sentence: one": 5, "sentence: two": 5}
    assert groups["sentence: one"]["hit@1"] == 1.0
    assert (report["pages"], report["sampled"]) == (11, 11)
    shown = run_eval(data, "--sample", "4")
    assert "4 of 11 pages" in shown
    assert {"title", "sentence", "five words", "plain: title"} <= {line[:16].strip() for line in shown.splitlines()}


def test_eval_of_a_folder_of_collections_is_one_table(questions: Path, run_eval: Callable[..., str]) -> None:
    shown = run_eval(questions.parent).splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [["data", "memory-kb"], ["data", "plain"]]
    assert shown[1].split()[2:5] == ["62.2", "75.0", "75.0"]


def test_eval_of_nothing_says_so(tmp_path: Path, home: Path) -> None:
    assert (
        "neither queries.jsonl and vault/ nor any Markdown"
        in run_script("eval", tmp_path, home=home, is_ok=False).stderr
    )


@pytest.mark.slow
def test_bench_has_all_rows(home: Path) -> None:
    report = json.loads(run_script("bench", "--files", "12", "--runs", "1", "--json", home=home).stdout)
    rows = report["rows"]
    first_words = [row["what"].partition(" ")[0] for row in rows]
    assert first_words == [
        *[
            "cold",
            "peak",
            "nothing",
            "nothing",
            "one",
            "warm",
            "warm",
            "the",
            "the",
            "search",
            "search",
            "warm",
            "warm",
        ],
        *["hook", "hook", "hook", "hook", "hook", "planning", "peak"],
    ]
    assert [(row["unit"], row["target"]) for row in rows] == [
        *[("s", 2.0), ("MB", 150), ("s", 2.5), ("s", 1.9), ("s", 2.0)],
        *[("ms", 2.5), ("ms", 2.5), ("ms", None), ("ms", None), ("s", 3.0), ("s", 2.8), ("ms", 2.0), ("ms", 2.0)],
        *[("s", 2.0), ("s", 2.0), ("s", 3.0), ("s", 3.0), ("s", 3.5), ("s", None), ("MB", None)],
    ]
    for row in rows:
        assert row["files"] == 12
        assert row["ratio"] == pytest.approx(row["ours"] / row["floor"])
        assert row["is_over"] == (
            row["target"] is not None and (row["ours"] if row["unit"] == "MB" else row["ratio"]) > row["target"]
        )


def test_bench_of_a_folder_only_reads_it(tmp_path: Path, home: Path) -> None:
    text = "---\ntitle: Pages\n---\n\n# Pages\n\n" + "Several words about copper gardens and silent rivers. " * 4
    data = write_files(tmp_path / "notes", {"a.md": text, "sub/b.md": text, "picture.png": b"\0"})
    shown = run_script("bench", data, "--only", "index,memory", "--runs", "1", home=home).stdout
    assert "notes: 2 files" in shown
    assert [line[2:13] for line in shown.splitlines() if "<=" in line] == ["cold index ", "peak memory"]
    assert f"bench {data} --only index,memory --runs 1" in shown
    assert sorted(file.name for file in data.rglob("*")) == ["a.md", "b.md", "picture.png", "sub"]


def test_bench_says_what_it_cannot_measure(home: Path) -> None:
    assert "--only takes index" in run_script("bench", "--only", "speed", home=home, is_ok=False).stderr
