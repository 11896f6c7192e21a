"""Each revision is read with the settings that stand in it, under those of the person."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from conftest import REPOSITORY, write_files
from support import entry

if TYPE_CHECKING:
    from repositories import Clone

QUESTION = "- question: frobnicator zigzag clamp\n  expect: [one]\n"
FILES = {
    "memory/config.yaml": "# nothing yet\n",
    ".gitignore": ".memory-kb/\n",
    "memory/queries.yaml": QUESTION,
    "memory/learnings/one.md": entry("The frobnicator needs a zigzag clamp.", id="one", kind="fact"),
    "memory/learnings/two.md": entry("Quolls hunt at night.", id="two", kind="fact"),
}


def save(clone: Clone, config: str) -> None:
    write_files(clone.folder, {"memory/config.yaml": config})
    clone.save("settings")


@pytest.mark.slow
def test_recall_lost_through_a_setting_fails_whatever_is_checked_out(clone: Clone) -> None:
    save(clone, 'ignore: ["one*"]\n')
    for where in ("main", "main~1"):
        clone.git("checkout", "-q", where)
        report = json.loads(clone.kb("ci", "main~1..main", "--json", code=7))
        assert report["findings"][0]["message"].startswith("'frobnicator zigzag clamp' no longer finds any of one")
        assert clone.kb("ci", "main..main~1").startswith("## ✅")


def test_looking_back_uses_the_settings_of_then(clone: Clone) -> None:
    save(clone, 'ignore: ["one*"]\n')

    def found_at(revision: str) -> list[str]:
        return [
            hit["id"] for hit in json.loads(clone.kb("search", "frobnicator", "--json", "--as-of", revision))["hits"]
        ]

    assert found_at("main") == []
    assert found_at("main~1") == ["one"]


def test_the_settings_of_the_person_stand_under_those_of_both(clone: Clone, home: Path) -> None:
    write_files(home, {"config.yaml": 'ignore: ["one*"]\n'})
    save(clone, "ranking: {half_life_days: 30}\n")
    assert json.loads(clone.kb("search", "frobnicator", "--json", "--as-of", "main"))["hits"] == []
    save(clone, "ignore: []\n")
    assert json.loads(clone.kb("search", "frobnicator", "--json", "--as-of", "main"))["hits"] != []


def test_where_things_lie_and_are_sent_is_not_told_by_a_revision(clone: Clone, tmp_path: Path) -> None:
    save(
        clone,
        f"index: {{path: {tmp_path / 'elsewhere'}}}\nembeddings: {{provider: openai, base_url: 'http://127.0.0.1:1'}}\n",
    )
    save(clone, "")
    assert clone.kb("ci", "main~1..main").startswith("## ✅")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("config", "line", "said"),
    [
        ("ignore: [\n", 2, "not valid YAML"),
        ("ranking: {half_life_days: soon}\n", 1, "half_life_days takes a number"),
        ("just words\n", 1, "mapping"),
    ],
)
def test_settings_that_cannot_be_used_are_a_finding(config: str, line: int, said: str, clone: Clone) -> None:
    save(clone, config)
    save(clone, "# mended\n")
    (finding,) = json.loads(clone.kb("ci", "main~2..main~1", "--json", code=7))["findings"]
    assert (finding["path"], finding["line"]) == ("memory/config.yaml", line)
    assert said in finding["message"]
    assert str(clone.folder) not in finding["message"]
    assert clone.kb("ci", "main~1..main").startswith("## ✅")
    assert "frobnicator" in clone.kb("search", "frobnicator", "--as-of", "main~1")


@pytest.mark.slow
def test_the_samples_start_for_settings_too(clone: Clone) -> None:
    hook = clone.folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(REPOSITORY / "docs/git/pre-commit", hook)
    head = clone.git("rev-parse", "HEAD")
    write_files(clone.folder, {"memory/config.yaml": 'ignore: ["one*"]\n'})
    clone.git("commit", "-q", "-a", "-m", "settings", may_fail=True)
    assert clone.git("rev-parse", "HEAD") == head
    flow = yaml.safe_load((REPOSITORY / "docs/git/memories.yml").read_text(encoding="utf-8"))
    assert "**/memory/config.yaml" in flow[True]["pull_request"]["paths"]
