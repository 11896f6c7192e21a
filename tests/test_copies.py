"""What several notes say alike is shown once, and the hits of one note stand together."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from conftest import Files, Run
from support import entry

from memory_kb import KnowledgeBase

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
TEXT = "# Wombats\n\nThe wombats are fed at noon."
COPIES: Files = {
    "memory/a.md": entry(TEXT, id="a", kind="fact"),
    "memory/archive/b.md": entry(TEXT, id="b", kind="fact"),
    "memory/c.md": entry("# Quokkas\n\nThey, too, are fed at noon, like wombats.", id="c", kind="fact"),
}


def test_the_same_text_is_shown_once_with_its_other_places(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault(COPIES))
    first, second = kb.search("wombats").hits
    assert {first.path, *(copy.rpartition(":")[0] for copy in first.copies)} == {"memory/a.md", "memory/archive/b.md"}
    assert (second.id, second.copies) == ("c", ())


def test_copies_beyond_the_best_sections_are_shown_once_too(vault: Vault, open_kb: Open) -> None:
    topics = ("Perth", "Hobart", "Cairns", "Darwin", "Albury", "Bendigo", "Geelong", "Mackay")
    files = {
        f"{folder}/{topic}.md": f"# {topic}\n\nThe wombats of {topic}{' sleep, eat and dig' * number} at noon.\n"
        for folder in range(9)
        for number, topic in enumerate(topics)
    }
    hits = open_kb(vault(files)).search("wombats", limit=20).hits
    assert len(hits) == len({hit.text for hit in hits}) == 8


def test_why_not_names_what_replaces_a_copy(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault(COPIES))
    shown = kb.search("wombats").hits[0]
    answer = kb.why_not("wombats", "b" if shown.id == "a" else "a")
    assert answer.step == "copy"
    assert f"{shown.path}:{shown.line}" in answer.reason


def test_a_context_may_give_a_copy_whose_twin_is_superseded(vault: Vault, open_kb: Open) -> None:
    files = {
        "memory/a.md": entry(TEXT, id="a", kind="fact", importance=0.9),
        "memory/b.md": entry(TEXT, id="b", kind="fact", supersedes="[a]"),
    }
    assert "fed at noon" in open_kb(vault(files)).context("when are the wombats fed").text


def test_the_hits_of_a_note_are_together_in_the_terminal(vault: Vault, run: Run) -> None:
    parts = "\n\n".join(
        f"## Part {number}\n\n{' '.join(f'The wombats sleep {number} and {n}.' for n in range(60))}"
        for number in range(3)
    )
    folder = vault({"memory/long.md": f"# Long\n\n{parts}\n", "memory/short.md": "# Short\n\nSome wombats.\n"})
    flat = json.loads(run("--vault", folder, "search", "wombats", "--json").stdout)["hits"]
    assert len([hit for hit in flat if hit["path"] == "memory/long.md"]) > 1
    printed = run("--vault", folder, "search", "wombats").stdout
    assert printed.count("memory/long.md:") == 1
    assert sorted(int(line.split(".")[0]) for line in printed.splitlines() if line.lstrip()[:1].isdigit()) == [
        hit["rank"] for hit in flat
    ]


def test_one_long_note_leaves_room_for_others_in_the_terminal(vault: Vault, run: Run) -> None:
    parts = "\n\n".join(
        f"## Part {number}\n\n{' '.join(f'The wombats of house {number} eat wombat food {n}.' for n in range(60))}"
        for number in range(12)
    )
    folder = vault(
        {"memory/long.md": f"# Wombats\n\n{parts}\n", "memory/short.md": "# Short\n\nSome wombats are fed.\n"}
    )
    flat = json.loads(run("--vault", folder, "search", "wombats", "--limit", "5", "--json").stdout)["hits"]
    assert [hit["path"] for hit in flat] == ["memory/long.md"] * 5
    assert "memory/short.md:" in run("--vault", folder, "search", "wombats", "--limit", "5").stdout
    alone = run("--vault", folder, "search", "house", "--limit", "5").stdout
    assert len([line for line in alone.splitlines() if line.lstrip()[:1].isdigit()]) == 5


def test_the_command_counts_the_copies_and_names_three(vault: Vault, run: Run) -> None:
    folder = vault({f"memory/{name}.md": entry(TEXT, kind="fact") for name in "abcdef"})
    (line,) = [line for line in run("--vault", folder, "search", "wombats").stdout.splitlines() if "copies" in line]
    assert re.fullmatch(r" +\+5 copies: memory/b\.md:\d, memory/c\.md:\d, memory/d\.md:\d, …", line)
