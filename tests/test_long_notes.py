"""A long note beside short ones: all of them are found, and a context has each."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files
from support import entry, found

from memory_kb import KnowledgeBase
from memory_kb.index.port import Candidate
from memory_kb.model import EVERYTHING
from memory_kb.search.candidates import match_evenly

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
WORDS = [
    "region",
    "metrics",
    "ledger",
    "payment",
    "settled",
    "tenant",
    "row",
    "sizes",
    "plan",
    "latency",
    "worker",
    "event",
]
PITFALL = entry("Working inside the Adyen webhook timed out under load; queue it.", id="pit", kind="pitfall")
FACT = entry("Adyen's webhook wants an answer within ten seconds, whatever the load.", id="answer", kind="fact")
TASK = "Adyen webhook times out under load, fix it"


def filler(count: int) -> str:
    return " ".join(itertools.islice(itertools.cycle(WORDS), count))


def guide(sections: int) -> str:
    """Return a guide that is about Adyen's webhook in every section."""
    parts = (
        f"## {n}. Adyen webhook {WORDS[n % 12]} {n}\n\nThe Adyen webhook times out. {filler(90 + n % 7)}."
        for n in range(sections)
    )
    return "# Adyen webhook integration guide\n\n" + "\n\n".join(parts) + "\n"


def others(count: int) -> Files:
    return {
        f"memory/learnings/o{n}.md": entry(f"Quiet matter number {n} concerns topic{n}.", id=f"o{n}", kind="fact")
        for n in range(count)
    }


@pytest.fixture(params=["a guide of 60 KB", "one line of 100 KB", "a guide of 600 KB"])
def long_vault(request: pytest.FixtureRequest, vault: MakeVault) -> Path:
    text = {
        "a guide of 60 KB": guide(75),
        "one line of 100 KB": entry(
            " ".join(f"The Adyen webhook times out at {n}." for n in range(3_000)), id="line", kind="pitfall"
        ),
        "a guide of 600 KB": guide(750),
    }[request.param]
    return vault(
        {"memory/config.yaml": "", "memory/pit.md": PITFALL, "memory/fact.md": FACT, "memory/long.md": text}
        | dict(others(20))
    )


def test_a_context_has_what_the_short_notes_say_too(long_vault: Path, open_kb: Open) -> None:
    kb = open_kb(long_vault)
    context = kb.context(TASK)
    assert {"pit", "answer"} <= set(context.ids)
    assert "Quiet matter" not in context.text
    assert "### long.md" in kb.context("The Adyen webhook times out").text


def test_short_notes_are_found_beside_a_long_one(long_vault: Path, open_kb: Open) -> None:
    paths = found(open_kb(long_vault), "Adyen webhook times out", limit=300)
    assert {"memory/long.md", "memory/pit.md", "memory/fact.md"} <= set(paths)


def test_a_long_note_that_fits_in_every_section_leaves_room_for_others(vault: MakeVault, open_kb: Open) -> None:
    short = {f"note{n}.md": f"Topic{n}: Adyen's webhook times out. {filler(150 + n)}" for n in range(30)}
    kb = open_kb(vault({"guide.md": guide(sections=40), **short}))
    assert len(set(found(kb, "Adyen webhook times out", limit=10))) > 5


def test_the_first_hits_are_the_same_for_every_limit(long_vault: Path, open_kb: Open) -> None:
    kb = open_kb(long_vault)
    all_of_them = [(hit.path, hit.line) for hit in kb.search("Adyen webhook times out", limit=300).hits]
    for limit in (1, 30):
        assert [(hit.path, hit.line) for hit in kb.search("Adyen webhook times out", limit=limit).hits] == all_of_them[
            :limit
        ]


def test_a_long_note_alone_gives_all_its_passages(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/config.yaml": "", "memory/long.md": guide(75)}))
    hits = kb.search("Adyen webhook times out", limit=200).hits
    lines = [line for hit in hits for line in range(hit.line, hit.end_line + 1)]
    assert len(hits) > 40
    assert len(lines) == len(set(lines))


def candidate(key: int, part: int) -> Candidate:
    return Candidate(key, -1.0, 0.5, 0, None, "active", "project", 0, "", "", part)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(3, [0, 1, 100]), (4, [0, 1, 100, 2]), (50, [0, 1, 100, *range(2, 30)])],
    ids=["room is made", "the rest follows", "nothing is lost"],
)
def test_no_entry_takes_all_the_places(limit: int, expected: list[int]) -> None:
    there = [*(candidate(part, part) for part in range(30)), candidate(100, 0)]
    assert [one.key for one in match_evenly(lambda most: there[:most], limit, crowd=2)] == expected


def test_an_entry_has_its_sections_as_far_apart_as_its_file(vault: MakeVault, open_kb: Open) -> None:
    text = "\n\n\n\n".join(f"## Part {number}\n\n{'Some words. ' * 150}End." for number in range(4))
    kb = open_kb(vault({"a.md": f"# Long\n\n{text}\n"}))
    (memory,) = kb.index.read(lambda index: list(index.memories(EVERYTHING)))
    assert kb.stats().chunks > 1
    assert text in memory.text
