"""The side of the index that knows meanings: which vectors answer, and how they get there."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.errors import ProviderFailed, VaultBusy, explain_failure
from memory_kb.index.cache import Lender
from memory_kb.index.database import DATABASE
from memory_kb.locks import hold_lock
from memory_kb.notes.worktrees import find_siblings
from memory_kb.ports import NOT_ASKED, Asked, Embedder, Question, Space

if TYPE_CHECKING:
    import threading

    from memory_kb.index.cache import Passage
    from memory_kb.index.embedding import EmbeddingReport, Estimate, Progress
    from memory_kb.index.vectors import Shelf, VectorStore
    from memory_kb.notes.vault import Vault
    from memory_kb.ports import Vectors

#: A search embeds this many missing texts by itself; more are left to `index`.
CATCH_UP = 32
#: Questions whose vectors are kept.
_QUESTIONS = 256
#: Seconds that a search waits for whoever is indexing before it does without the newest vectors.
_BRIEF = 0.2
#: Seconds that `index` waits for another process that is embedding.
_LONG = 3600.0


class Semantics:
    """The embedders of a vault and the vectors made with them.

    `choose` gives the embedder that the settings ask for, or None; `choose_for` one of a space
    that is there already, so that old vectors answer until new ones are complete.
    """

    def __init__(
        self, choose: Callable[[], Embedder | None], choose_for: Callable[[Space], Embedder | None], machine: Path
    ) -> None:
        self._choose, self._choose_for = choose, choose_for
        self._lock, self._turn = machine / "index.lock", machine / "embed.lock"
        self._lender = Lender(lambda: (folder / DATABASE for folder in find_siblings(machine)))
        self._others: dict[Space, Embedder | None] = {}
        self._questions: OrderedDict[tuple[Space, str], Vectors] = OrderedDict()

    @functools.cached_property
    def embedder(self) -> Embedder | None:
        """The embedder in use.

        Raises:
            ProviderFailed: the one asked for is not there.
        """
        return self._choose()

    def close(self) -> None:
        """Give back what the embedders hold; they are chosen again when needed."""
        for embedder in (self.__dict__.pop("embedder", None), *self._others.values()):
            if embedder:
                embedder.close()
        self._others.clear()

    def embed(
        self,
        store: VectorStore,
        *,
        progress: Progress | None = None,
        on_wait: Callable[[], None] | None = None,
        stop: threading.Event | None = None,
        wait: float = _LONG,
    ) -> EmbeddingReport:
        """Embed every chunk that has no vector; one process at a time.

        Raises:
            VaultBusy: another process is embedding and does not come to an end.
        """
        from memory_kb.index.embedding import EmbeddingReport, embed_missing, resolve

        try:
            embedder = self.embedder
        except ProviderFailed as exc:
            return EmbeddingReport(reason=explain_failure(exc))
        if embedder is None:
            return EmbeddingReport()
        with hold_lock(self._turn, wait, on_wait):
            report = embed_missing(store, embedder, self._lock, progress=progress, stop=stop, lender=self._lender)
        if not report.missing:
            space = resolve(store, embedder.space)
            for shelf in store.shelves():
                if shelf.space != space:
                    with hold_lock(self._lock, _LONG):
                        store.drop(shelf.space)
        return report

    def estimate(self, store: VectorStore, further: Iterator[Passage]) -> Estimate | None:
        """Return what embedding would take; None without an embedder.

        Raises:
            ProviderFailed: the embedder asked for is not there.
        """
        from memory_kb.index.embedding import estimate

        return estimate(store, self.embedder, further, self._lender) if self.embedder else None

    def ask(self, open_store: Callable[[], VectorStore], text: str) -> Asked:
        """Return a question as a vector beside the vectors that may answer it.

        Without an embedder the vectors are not even opened.
        """
        try:
            embedder = self.embedder
            if embedder is None:
                return NOT_ASKED
            store = open_store()
            reasons = self._catch_up(store, embedder)
            found = self._answering(store, embedder)
            if found is None:
                return Asked(
                    None,
                    reasons or ("no passage has a vector yet, so this is a text search; `memory-kb index` makes them",),
                )
            shelf, embedder = found
            vector = self._embed_question(shelf.space, embedder, text)
        except ProviderFailed as exc:
            return Asked(None, (f"{explain_failure(exc)}; this is a text search",))
        table = store.table(shelf.space)
        if table is None:
            return Asked(None, ("the vectors are being renewed, so this is a text search",))
        wanted = self.embedder.space if self.embedder else shelf.space
        if shelf.space[:2] != wanted[:2]:
            reasons += (f"the vectors of {wanted} are not complete; those of {shelf.space} answer",)
        elif wanted.dimension not in (0, shelf.space.dimension):
            sizes = f"{wanted.dimension} numbers are not complete; those of {shelf.space.dimension} answer"
            reasons += (f"the vectors of {wanted} with {sizes}",)
        missing = store.count_missing(shelf)
        if missing:
            reasons += (
                f"{missing:,} passages have no vector yet and are found by their words alone; `memory-kb index` makes them",
            )
        return Asked(Question(vector, table), reasons)

    def _catch_up(self, store: VectorStore, embedder: Embedder) -> tuple[str, ...]:
        """Look for vectors of new chunks; embed them if they are few."""
        from memory_kb.index.embedding import embed_missing, resolve

        space = resolve(store, embedder.space)
        shelf = store.shelf(space) if space.dimension else None
        try:
            if shelf and not store.is_checked(shelf):
                with hold_lock(self._lock, _BRIEF):
                    store.attach(space, only_new=True)
                shelf = store.shelf(space)
            missing = store.count_missing(shelf) if shelf else store.count_chunks(CATCH_UP + 1)
            if 0 < missing <= CATCH_UP:
                with hold_lock(self._turn, _BRIEF):
                    reason = embed_missing(store, embedder, self._lock, limit=CATCH_UP, lender=self._lender).reason
                    return (reason,) if reason else ()
        except VaultBusy:
            pass
        return ()

    def _answering(self, store: VectorStore, embedder: Embedder) -> tuple[Shelf, Embedder] | None:
        """Return the vectors that answer: the wanted ones, or complete older ones while they are not."""
        wanted = store.shelf(embedder.space)
        if wanted and wanted.rows and not store.count_missing(wanted):
            return wanted, embedder
        older = [shelf for shelf in store.shelves() if shelf.rows and (not wanted or shelf.space != wanted.space)]
        for shelf in sorted(older, key=lambda shelf: -shelf.rows):
            if shelf.rows > (wanted.rows if wanted else 0):
                other = self._other(shelf.space)
                if other:
                    return shelf, other
        return (wanted, embedder) if wanted and wanted.rows else None

    def _other(self, space: Space) -> Embedder | None:
        if space not in self._others:
            self._others[space] = self._choose_for(space)
        return self._others[space]

    def _embed_question(self, space: Space, embedder: Embedder, text: str) -> Vectors:
        key = (space, text)
        if key not in self._questions:
            vector = embedder.embed([text], "query")[0]
            if len(vector) != space.dimension:
                message = f"{space} answers with {len(vector)} numbers instead of {space.dimension}"
                raise ProviderFailed(message, "`memory-kb index` makes new vectors")
            self._questions[key] = vector
            if len(self._questions) > _QUESTIONS:
                self._questions.popitem(last=False)
        self._questions.move_to_end(key)
        return self._questions[key]


def open_semantics(vault: Vault) -> Semantics:
    """Return the embedding models that the settings ask for, with their vectors in the machine folder."""
    from memory_kb.providers import choosing

    chosen, environ = vault.settings.embeddings, vault.environ
    return Semantics(
        lambda: choosing.choose_embedder(chosen, environ),
        lambda space: choosing.choose_embedder_for(space, chosen, environ),
        vault.machine,
    )
