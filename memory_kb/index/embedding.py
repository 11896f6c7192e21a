"""Embed the texts that have no vector yet, estimate what that costs, and search by vectors."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ProviderFailed, VaultBusy, explain_failure
from memory_kb.index.port import NOT_ASKED, Asked, Question
from memory_kb.index.schema import DATABASE, LOCK
from memory_kb.private import cut_private
from memory_kb.providers.base import Embedder, Space
from memory_kb.text import count_tokens
from memory_kb.vault import hold_lock

if TYPE_CHECKING:
    import threading
    from concurrent.futures import Future

    from memory_kb.index.vectors import EmbeddedPassage, VectorFile, VectorStore
    from memory_kb.providers.base import Vectors
    from memory_kb.vault import Vault


#: Texts looked up in the cache at a time.
_WINDOW = 2_000
#: Batches that may fail before the rest is left for another time.
_PATIENCE = 3
#: Seconds that answers already paid for are waited for after Ctrl-C.
_GRACE = 5.0
#: Seconds that a write waits for whoever is indexing.
_LOCK_SECONDS = 300.0

#: Told the number of texts embedded and the number to embed.
Progress = Callable[[int, int], None]


class Estimate(NamedTuple):
    """What embedding would take: `usd` is None where the price is not known."""

    texts: int = 0
    tokens: int = 0
    usd: float | None = 0.0


class EmbeddingReport(NamedTuple):
    """What was embedded, what is still without a vector, and what failed first."""

    embedded: int = 0
    missing: int = 0
    reason: str | None = None


def _unknown(store: VectorStore, space: Space, batch: list[EmbeddedPassage], seen: set[str]) -> list[EmbeddedPassage]:
    """Return the passages of a batch that are not cached, each text once, and note them as seen."""
    known = store.cache.known(space, {passage.hash for passage in batch} - seen)
    fresh: list[EmbeddedPassage] = []
    for passage in batch:
        if passage.hash not in known and passage.hash not in seen:
            seen.add(passage.hash)
            fresh.append(passage)
    return fresh


class _Embedding:
    """Embedding the chunks that have no vector, and putting them where searches look.

    Vectors are kept batch by batch, so whatever ends it early costs nothing twice. The lock is held only for writing.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        machine: Path,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self._store, self._embedder, self._machine = store, embedder, machine
        self._progress, self._stop = progress, stop
        self._space = store.cache.resolve(embedder.space)
        self._embedded = self._total = self._failed = 0
        self._reason: str | None = None

    def run(self, limit: int | None = None) -> EmbeddingReport:
        """Do it, unless more texts than `limit` are missing; what other working trees have is not made again."""
        from memory_kb.index.vectors import batched

        self._attach()
        vector_file = self._store.vector_file(self._space) if self._space.dimension else None
        after = vector_file.through if vector_file else 0
        missing: set[str] = set()
        for batch in batched(self._store.passages(after), _WINDOW):
            _unknown(self._store, self._space, batch, missing)
        missing -= self._copy_known(missing)
        self._total = len(missing)
        if missing and (limit is None or len(missing) <= limit):
            try:
                self._embed_after(after)
            finally:
                self._attach()
        vector_file = self._store.vector_file(self._space)
        left = self._store.count_missing(vector_file) if vector_file else self._total
        return EmbeddingReport(self._embedded, left, self._reason)

    def _writing(self) -> AbstractContextManager[None]:
        return hold_lock(self._machine / LOCK, _LOCK_SECONDS)

    def _copy_known(self, missing: set[str]) -> frozenset[str]:
        """Keep the vectors that others have of texts, and return which."""
        self._space, lent = _find_lent(self._machine, self._space, missing)
        if lent:
            with self._writing():
                self._store.cache.remember(self._space, lent)
            self._attach()
        return frozenset(lent)

    def _embed_after(self, after: int) -> None:
        from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

        limits = self._embedder.limits
        pool = ThreadPoolExecutor(limits.parallel, thread_name_prefix="embed")
        running: dict[Future[Vectors], list[EmbeddedPassage]] = {}
        seen: set[str] = set()
        try:
            for batch in self._batches(after, seen):
                if self._is_over:
                    break
                # Ctrl-C may come at any moment: a request is on the list before it is sent.
                future: Future[Vectors] = Future()
                running[future] = batch
                pool.submit(self._ask, batch, future)
                if len(running) >= limits.parallel:
                    self._take(running, wait(running, return_when=FIRST_COMPLETED).done)
            while running:
                self._take(running, wait(running, return_when=FIRST_COMPLETED).done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            with contextlib.suppress(Exception):
                self._take(running, wait(running, _GRACE).done)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, batch: list[EmbeddedPassage], future: Future[Vectors]) -> None:
        try:
            future.set_result(self._embedder.embed([passage.text for passage in batch], "document"))
        except BaseException as exc:  # noqa: BLE001 - raised again by whoever takes the answer
            future.set_exception(exc)

    @property
    def _is_over(self) -> bool:
        return self._failed >= _PATIENCE or (self._stop is not None and self._stop.is_set())

    def _batches(self, after: int, seen: set[str]) -> Iterator[list[EmbeddedPassage]]:
        """Yield what to embed in batches that the provider takes."""
        from memory_kb.index.vectors import batched
        from memory_kb.providers.embeddings import estimate_tokens

        limits = self._embedder.limits
        for window in batched(self._store.passages(after), _WINDOW):
            batch: list[EmbeddedPassage] = []
            tokens = 0
            for passage in _unknown(self._store, self._space, window, seen):
                size = estimate_tokens(passage.text)
                if batch and (len(batch) >= limits.texts or tokens + size > limits.tokens):
                    yield batch
                    batch, tokens = [], 0
                batch.append(passage)
                tokens += size
            if batch:
                yield batch
            if self._embedded:
                self._attach(window[-1].key)

    def _take(self, running: dict[Future[Vectors], list[EmbeddedPassage]], done: set[Future[Vectors]]) -> None:
        """Keep the answers that have come; note the failures. An answer stays on the list until it is kept."""
        for future in done:
            try:
                vectors = future.result()
            except ProviderFailed as exc:
                self._failed = self._failed + 1 if exc.is_passing else _PATIENCE
                self._reason = self._reason or explain_failure(exc)
                del running[future]
                continue
            self._failed = 0
            self._keep(running[future], vectors)
            del running[future]
            if self._progress:
                self._progress(self._embedded, self._total)

    def _keep(self, batch: list[EmbeddedPassage], vectors: Vectors) -> None:
        self._space = self._space._replace(dimension=vectors.shape[1])
        rows = (row.tobytes() for row in vectors.astype("<f4", copy=False))
        with self._writing():
            self._store.cache.remember(
                self._space, {passage.hash: row for passage, row in zip(batch, rows, strict=True)}
            )
        self._embedded += len(batch)

    def _attach(self, until: int | None = None) -> None:
        if self._space.dimension:
            with self._writing():
                self._store.attach(self._space, until=until)


#: A search embeds what this many missing chunks have, and so many texts, by itself; more is left to `index`.
CATCH_UP, _MOST_TEXTS = 32, 128
#: Questions whose vectors are kept.
_QUESTIONS = 256
#: Seconds that a search waits for whoever is indexing before it does without the newest vectors.
_BRIEF = 0.2
#: Seconds that `index` waits for another process that is embedding.
_LONG = 3600.0


class VectorSearch:
    """The embedders of a vault and the vectors made with them.

    `choose` gives the embedder that the settings ask for, or None; `choose_for` one of a space
    that is there already, so that old vectors answer until new ones are complete.
    """

    def __init__(
        self, choose: Callable[[], Embedder | None], choose_for: Callable[[Space], Embedder | None], machine: Path
    ) -> None:
        self._choose, self._choose_for = choose, choose_for
        self._lock, self._turn = machine / LOCK, machine / "embed.lock"
        self._machine = machine
        self._others: dict[Space, Embedder | None] = {}
        self._questions: dict[tuple[Space, str], Vectors] = {}

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
        open_store: Callable[[], VectorStore],
        *,
        progress: Progress | None = None,
        on_wait: Callable[[], None] | None = None,
        stop: threading.Event | None = None,
        wait: float = _LONG,
    ) -> EmbeddingReport:
        """Embed every chunk that has no vector; one process at a time. Without an embedder nothing is opened.

        Raises:
            VaultBusy: another process is embedding and does not come to an end.
        """
        try:
            embedder = self.embedder
        except ProviderFailed as exc:
            return EmbeddingReport(reason=explain_failure(exc))
        if embedder is None:
            return EmbeddingReport()
        store = open_store()
        with hold_lock(self._turn, wait, on_wait):
            report = _Embedding(store, embedder, self._machine, progress, stop).run()
        if not report.missing:
            space = store.cache.resolve(embedder.space)
            for vector_file in store.vector_files():
                if vector_file.space != space:
                    with hold_lock(self._lock, _LONG):
                        store.drop(vector_file.space)
        return report

    def estimate(self, store: VectorStore, further: Iterator[EmbeddedPassage]) -> Estimate | None:
        """Return what embedding all chunks that have no vector would take; None without an embedder.

        `further` are passages of files that are not indexed yet; what other working trees have is not made.

        Raises:
            ProviderFailed: the embedder asked for is not there.
        """
        from memory_kb.index.vectors import batched

        if self.embedder is None:
            return None
        space = store.cache.resolve(self.embedder.space)
        vector_file = store.vector_file(space)
        seen: set[str] = set()
        texts = tokens = 0
        passages = itertools.chain(store.passages(vector_file.through if vector_file else 0), further)
        for batch in batched(passages, _WINDOW):
            unknown = _unknown(store, space, batch, seen)
            lent = _find_lent(self._machine, space, {passage.hash for passage in unknown})[1]
            made = [passage for passage in unknown if passage.hash not in lent]
            texts += len(made)
            tokens += sum(count_tokens(passage.text) for passage in made)
        price = self.embedder.limits.price
        return Estimate(texts, tokens, None if price is None else round(tokens * price / 1e6, 6))

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
            vector_file, embedder = found
            vector = self._embed_question(vector_file.space, embedder, text)
        except ProviderFailed as exc:
            return Asked(None, (f"{explain_failure(exc)}; this is a text search",))
        table = store.table(vector_file.space)
        if table is None:
            return Asked(None, ("the vectors are being renewed, so this is a text search",))
        wanted = self.embedder.space if self.embedder else vector_file.space
        if vector_file.space[:2] != wanted[:2]:
            reasons += (f"the vectors of {wanted} are not complete; those of {vector_file.space} answer",)
        elif wanted.dimension not in (0, vector_file.space.dimension):
            sizes = f"{wanted.dimension} numbers are not complete; those of {vector_file.space.dimension} answer"
            reasons += (f"the vectors of {wanted} with {sizes}",)
        missing = store.count_missing(vector_file)
        if missing:
            reasons += (
                f"{missing:,} passages have no vector yet and are found by their words alone; `memory-kb index` makes them",
            )
        return Asked(Question(vector, table), reasons)

    def ask_elsewhere(self, text: str) -> tuple[Space, Vectors] | None:
        """Return a question as a vector, for vectors that others made; None without an embedder.

        Raises:
            ProviderFailed: the embedder is not there, or does not answer.
        """
        embedder = self.embedder
        if embedder is None:
            return None
        vector = self._embed_question(embedder.space, embedder, text)
        return embedder.space._replace(dimension=len(vector)), vector

    def _catch_up(self, store: VectorStore, embedder: Embedder) -> tuple[str, ...]:
        """Look for vectors of new chunks; embed them if they are few."""
        space = store.cache.resolve(embedder.space)
        vector_file = store.vector_file(space) if space.dimension else None
        try:
            if vector_file and not store.is_checked(vector_file):
                with hold_lock(self._lock, _BRIEF):
                    store.attach(space, only_new=True)
                vector_file = store.vector_file(space)
            missing = store.count_missing(vector_file) if vector_file else store.count_chunks(CATCH_UP + 1)
            if 0 < missing <= CATCH_UP:
                with hold_lock(self._turn, _BRIEF):
                    reason = _Embedding(store, embedder, self._machine).run(_MOST_TEXTS).reason
                    return (reason,) if reason else ()
        except VaultBusy:
            pass
        return ()

    def _answering(self, store: VectorStore, embedder: Embedder) -> tuple[VectorFile, Embedder] | None:
        """Return the vectors that answer: the wanted ones, or complete older ones while they are not."""
        wanted = store.vector_file(embedder.space)
        if wanted and wanted.rows and not store.count_missing(wanted):
            return wanted, embedder
        filled = (one for one in store.vector_files() if one.rows)
        for vector_file in sorted(filled, key=lambda one: (-one.rows, one != wanted)):
            other = embedder if vector_file == wanted else self._other(vector_file.space)
            if other:
                return vector_file, other
        return None

    def _other(self, space: Space) -> Embedder | None:
        if space not in self._others:
            self._others[space] = self._choose_for(space)
        return self._others[space]

    def _embed_question(self, space: Space, embedder: Embedder, text: str) -> Vectors:
        text = cut_private(text)
        key = (space, text)
        if key not in self._questions:
            vector = embedder.embed([text], "query")[0]
            if space.dimension not in (0, len(vector)):
                message = f"{space} answers with {len(vector)} numbers instead of {space.dimension}"
                raise ProviderFailed(message, "`memory-kb index` makes new vectors")
            if len(self._questions) >= _QUESTIONS:
                self._questions.clear()
            self._questions[key] = vector
        return self._questions[key]


def _find_lent(machine: Path, space: Space, hashes: Collection[str]) -> tuple[Space, dict[str, bytes]]:
    """Return the vectors that the other working trees of a repository have of texts, and their space."""
    from memory_kb.index.vectors import find_elsewhere
    from memory_kb.store.project import find_siblings

    return find_elsewhere((folder / DATABASE for folder in find_siblings(machine)), space, hashes)


def open_vector_search(vault: Vault) -> VectorSearch:
    """Return the embedding models that the settings ask for, with their vectors in the machine folder."""
    from memory_kb.providers import choose as choosing

    chosen, environ = vault.settings.embeddings, vault.environ
    return VectorSearch(
        lambda: choosing.choose_embedder(chosen, environ),
        lambda space: choosing.choose_embedder_for(space, chosen, environ),
        vault.machine,
    )
