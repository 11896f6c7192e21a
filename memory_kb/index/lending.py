"""Vectors for the notes of an old revision: those that this vault has paid for already, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import ProviderFailed
from memory_kb.index.passages import batched
from memory_kb.index.vectors import VectorStore
from memory_kb.ports import Embedder, Limits, Purpose, Space

if TYPE_CHECKING:
    from memory_kb.ports import Vectors

_WINDOW = 2_000


class QuestionsOnly:
    """An embedder that embeds questions; the texts of a revision have their vectors from the cache or not at all."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def space(self) -> Space:
        """The space of its vectors."""
        return self._embedder.space

    @property
    def limits(self) -> Limits:
        """What it takes at once."""
        return self._embedder.limits

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Return the vectors of questions.

        Raises:
            ProviderFailed: the texts are no questions, or the embedder fails.
        """
        if purpose == "document":
            raise ProviderFailed("the texts of an old revision are not embedded again")
        return self._embedder.embed(texts, purpose)

    def close(self) -> None:
        """Leave the embedder open: it belongs to the vault as it is now."""


def lend(lender: VectorStore, borrower: VectorStore) -> None:
    """Give an index the vectors that another has of the same texts; the lock of the borrower's is held."""
    import numpy as np

    for shelf in lender.shelves():
        space = shelf.space
        there = borrower.shelf(space)
        if there and borrower.is_checked(there):
            continue
        for batch in batched(borrower.passages(), _WINDOW):
            known = lender.cache.known(space, {passage.hash for passage in batch})
            if known:
                rows = np.frombuffer(b"".join(known.values()), dtype="<f4").reshape(len(known), space.dimension)
                borrower.cache.remember(space, list(known), rows)
        borrower.attach(space)
