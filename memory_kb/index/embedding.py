"""Vectors for the chunks that have none yet: in batches, side by side, each kept as it comes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ProviderFailed, explain_failure
from memory_kb.index.cache import Lender, Passage, batched
from memory_kb.index.vectors import VectorStore
from memory_kb.locks import hold_lock
from memory_kb.ports import Embedder, Space
from memory_kb.text import count_tokens

if TYPE_CHECKING:
    from memory_kb.ports import Vectors

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


#: Lends nothing.
_NOBODY = Lender(tuple)


def estimate(store: VectorStore, embedder: Embedder, further: Iterator[Passage], lender: Lender = _NOBODY) -> Estimate:
    """Return what embedding all chunks that have no vector would take.

    `further` are passages of files that are not indexed yet; what `lender` has is not made.
    """
    space = resolve(store, embedder.space)
    shelf = store.shelf(space)
    seen: set[str] = set()
    texts = tokens = 0
    for passages in (store.passages(shelf.through if shelf else 0), further):
        for batch in batched(passages, _WINDOW):
            unknown = _unknown(store, space, batch, seen)
            lent = lender.known(space, [passage.hash for passage in unknown])[1]
            made = [passage for passage in unknown if passage.hash not in lent]
            texts += len(made)
            tokens += sum(count_tokens(passage.text) for passage in made)
    price = embedder.limits.price
    return Estimate(texts, tokens, None if price is None else round(tokens * price / 1e6, 6))


def embed_missing(
    store: VectorStore,
    embedder: Embedder,
    lock: Path,
    *,
    progress: Progress | None = None,
    limit: int | None = None,
    stop: threading.Event | None = None,
    lender: Lender = _NOBODY,
) -> EmbeddingReport:
    """Embed the chunks that have no vector, and put them where searches look; what `lender` has is not made again.

    Vectors are kept batch by batch, so whatever ends it early costs nothing twice. With `limit`,
    nothing is embedded when more texts than that are missing. The lock is held only for writing.
    """
    return _Run(store, embedder, lock, progress, stop).run(limit, lender)


def resolve(store: VectorStore, space: Space) -> Space:
    """Return a space with the dimension that its cached vectors have, if it has none of its own."""
    return space if space.dimension else space._replace(dimension=store.cache.find_dimension(space))


def _unknown(store: VectorStore, space: Space, batch: list[Passage], seen: set[str]) -> list[Passage]:
    """Return the passages of a batch that are not cached, each text once, and note them as seen."""
    known = store.cache.known(space, {passage.hash for passage in batch} - seen)
    fresh: list[Passage] = []
    for passage in batch:
        if passage.hash not in known and passage.hash not in seen:
            seen.add(passage.hash)
            fresh.append(passage)
    return fresh


class _Run:
    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        lock: Path,
        progress: Progress | None,
        stop: threading.Event | None,
    ) -> None:
        self._store, self._embedder, self._lock = store, embedder, lock
        self._progress, self._stop = progress, stop
        self._space = resolve(store, embedder.space)
        self._embedded = self._total = self._failed = 0
        self._reason: str | None = None

    def run(self, limit: int | None, lender: Lender) -> EmbeddingReport:
        if self._space.dimension:
            self._attach()
        shelf = self._store.shelf(self._space) if self._space.dimension else None
        after = shelf.through if shelf else 0
        missing: set[str] = set()
        for batch in batched(self._store.passages(after), _WINDOW):
            _unknown(self._store, self._space, batch, missing)
        if missing:
            missing -= self._borrow(lender, missing)
        self._total = len(missing)
        if missing and (limit is None or len(missing) <= limit):
            try:
                self._embed_after(after)
            finally:
                self._attach()
        shelf = self._store.shelf(self._space)
        left = self._store.count_missing(shelf) if shelf else self._total
        return EmbeddingReport(self._embedded, left, self._reason)

    def _borrow(self, lender: Lender, missing: set[str]) -> set[str]:
        """Keep the vectors that others have of texts, and return which."""
        import numpy as np

        self._space, lent = lender.known(self._space, missing)
        hashes = list(lent)
        if hashes:
            with hold_lock(self._lock, _LOCK_SECONDS):
                for place in range(0, len(hashes), _WINDOW):
                    batch = hashes[place : place + _WINDOW]
                    rows = np.frombuffer(b"".join(lent[one] for one in batch), dtype="<f4").reshape(
                        len(batch), self._space.dimension
                    )
                    self._store.cache.remember(self._space, batch, rows)
            self._attach()
        return set(hashes)

    def _embed_after(self, after: int) -> None:
        limits = self._embedder.limits
        pool = ThreadPoolExecutor(limits.parallel, thread_name_prefix="embed")
        running: dict[Future[Vectors], list[Passage]] = {}
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

    def _ask(self, batch: list[Passage], future: Future[Vectors]) -> None:
        try:
            future.set_result(self._embedder.embed([passage.text for passage in batch], "document"))
        except BaseException as exc:  # noqa: BLE001 - raised again by whoever takes the answer
            future.set_exception(exc)

    @property
    def _is_over(self) -> bool:
        return self._failed >= _PATIENCE or (self._stop is not None and self._stop.is_set())

    def _batches(self, after: int, seen: set[str]) -> Iterator[list[Passage]]:
        """Yield what to embed in batches that the provider takes."""
        limits = self._embedder.limits
        for window in batched(self._store.passages(after), _WINDOW):
            batch: list[Passage] = []
            tokens = 0
            for passage in _unknown(self._store, self._space, window, seen):
                size = count_tokens(passage.text)
                if batch and (len(batch) >= limits.texts or tokens + size > limits.tokens):
                    yield batch
                    batch, tokens = [], 0
                batch.append(passage)
                tokens += size
            if batch:
                yield batch
            if self._embedded:
                self._attach(window[-1].key)

    def _take(self, running: dict[Future[Vectors], list[Passage]], done: set[Future[Vectors]]) -> None:
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

    def _keep(self, batch: list[Passage], vectors: Vectors) -> None:
        self._space = self._space._replace(dimension=vectors.shape[1])
        with hold_lock(self._lock, _LOCK_SECONDS):
            self._store.cache.remember(self._space, [passage.hash for passage in batch], vectors)
        self._embedded += len(batch)

    def _attach(self, until: int | None = None) -> None:
        if self._space.dimension:
            with hold_lock(self._lock, _LOCK_SECONDS):
                self._store.attach(self._space, until=until)
