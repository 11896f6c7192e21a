"""Vaults whose vectors come from the fake provider, for the tests of embedding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import NOW
from support import query

from memory_kb import KnowledgeBase
from memory_kb.index.vectors import make_passages
from memory_kb.providers.protocols import VectorSpace

if TYPE_CHECKING:
    from fake_provider import FakeProvider

Open = Callable[..., KnowledgeBase]
NOTES = {f"n{number:03}.md": f"# Note {number}\n\nAll about topic{number} and nothing else.\n" for number in range(60)}


def environment(fake: FakeProvider, home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which the fake server is the provider."""
    return {
        "HOME": str(home.parent),
        "MEMORY_KB_HOME": str(home),
        "MEMORY_KB_EMBEDDINGS_BASE_URL": fake.base_url,
        "MEMORY_KB_EMBEDDINGS_MODEL": "small",
    } | more


@pytest.fixture
def open_with(fake: FakeProvider, home: Path) -> Iterator[Open]:
    """A function that opens a folder with the fake server as its provider."""
    opened: list[KnowledgeBase] = []

    def open_one(folder: Path, **more: str) -> KnowledgeBase:
        kb = KnowledgeBase.open(folder, environ=environment(fake, home, **more), clock=lambda: NOW)
        opened.append(kb)
        return kb

    yield open_one
    for kb in opened:
        kb.close()


def attached(kb: KnowledgeBase, model: str = "small") -> dict[str, list[list[float]]]:
    """Return the vectors that a search would see for the passages of every chunk that there is, by file and position."""
    store = kb.index.index.vectors
    table = store.table(VectorSpace("openai", model, 0))
    rows = defaultdict[object, list[list[float]]](list)
    for key, row in zip(table.keys.tolist(), table.rows.tolist(), strict=True) if table else ():
        rows[key].append(row)
    return {str(place): rows[key] for key, place in query(kb, "SELECT rowid, id FROM chunks") if key in rows}


def assert_every_vector_is_its_text(kb: KnowledgeBase, fake: FakeProvider) -> None:
    chunks = query(kb, "SELECT id, CASE WHEN is_titled THEN title ELSE '' END, headings, content FROM chunks")
    seen = attached(kb)
    assert set(seen) == {str(chunk[0]) for chunk in chunks}
    for place, title, headings, content in chunks:
        texts = [passage.text for passage in make_passages(0, str(title), str(headings), str(content))]
        assert seen[str(place)] == [pytest.approx(fake.vector(text or " "), abs=1e-6) for text in texts], place
