"""What is remembered of the entries is what a fresh reading gives, whatever happens to the files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.model import EVERYTHING

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
FILTERS = (
    EVERYTHING,
    EVERYTHING._replace(kinds=("rule",)),
    EVERYTHING._replace(statuses=("active",)),
    EVERYTHING._replace(job="api"),
)


def change(folder: Path, rng: random.Random) -> None:
    """Let one thing happen to the notes of a vault."""
    notes = sorted(folder.rglob("*.md"))
    place = folder / "memory" / rng.choice(("", "rules", "jobs/api", "jobs/web"))
    number = rng.randrange(1_000)
    match rng.randrange(5):
        case 0 | 1:
            place.mkdir(parents=True, exist_ok=True)
            texts = (
                entry(f"Wombat {number} {part}.", id=f"e{number}-{part}", kind=rng.choice(("rule", "fact")))
                for part in range(rng.randrange(1, 4))
            )
            (place / f"{number}.md").write_text("\n".join(texts))
        case 2 if notes:
            note = rng.choice(notes)
            note.write_text(note.read_text().replace("Wombat", "Quokka"))
        case 3 if notes:
            rng.choice(notes).unlink()
        case _ if notes:
            place.mkdir(parents=True, exist_ok=True)
            rng.choice(notes).rename(place / f"moved{number}.md")


@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_a_fresh_reading_gives(vault: MakeVault, open_kb: Open, seed: int) -> None:
    rng = random.Random(seed)
    folder = vault({"memory/config.yaml": ""})
    kb = open_kb(folder)
    for _ in range(12):
        for _ in range(rng.choice((0, 1, 1, 2, 6))):
            change(folder, rng)
        filters = rng.choice(FILTERS)
        if rng.random() < 0.5:
            kb.memories.all(EVERYTHING)
        with KnowledgeBase.open(folder, kb.vault.home, environ={}) as fresh:
            expected = fresh.memories.all(filters)
        assert kb.memories.all(filters) == expected
