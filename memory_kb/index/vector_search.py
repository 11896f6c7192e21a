"""Embed the texts that have no vector yet, estimate what that costs, and search by vectors."""

import contextlib
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ProviderFailed, VaultBusy, explain_failure
from memory_kb.index.database import LOCK
from memory_kb.index.port import NOT_EMBEDDED, EmbeddedQuery, Progress
from memory_kb.model import Filters
from memory_kb.private_text import cut_private
from memory_kb.providers.protocols import Embedder, Limits, VectorSpace
from memory_kb.text import count_tokens
from memory_kb.vault import hold_lock

if TYPE_CHECKING:
    import threading
    from concurrent.futures import Future

    from memory_kb.index.postgres import PostgresIndex
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vectors import EmbeddedPassage, VectorStore
    from memory_kb.providers.protocols import Vectors
    from memory_kb.vault import Vault


#: Batches that may fail before the run ends early.
_PATIENCE = 3
#: Seconds to wait after Ctrl-C for answers that are already paid for.
_GRACE = 5.0
#: For up to this many chunks without vectors a search looks into the cache, and embeds what is not there if it is no
#: more than this many texts; more is left to `index`.
_MOST_CHUNKS, _MOST_TEXTS = 500, 32
#: The most queries whose vectors are kept.
_MOST_QUERIES = 256
#: Seconds to wait for a lock: by a search, by a write, and by `index`.
_BRIEF, _LOCK_SECONDS, _LONG = 0.2, 300.0, 3600.0

#: Texts by the hashes that their vectors are cached by.
Texts = Mapping[str, str]


class Estimate(NamedTuple):
    """The texts and tokens that embedding would send, and their price; `usd` is None if that is not known."""

    texts: int = 0
    tokens: int = 0
    usd: float | None = 0.0


class EmbeddingReport(NamedTuple):
    """The number of texts embedded, and the first failure."""

    embedded: int = 0
    reason: str | None = None


class _Embedding:
    """One run that embeds the chunks without a vector and gives them theirs.

    Vectors are cached batch by batch, so whatever ends it early costs nothing twice. The lock is held only for writing.
    """

    def __init__(
        self,
        store: "VectorStore",
        embedder: Embedder,
        machine: Path,
        progress: Progress | None = None,
        stop: "threading.Event | None" = None,
    ) -> None:
        self._store, self._embedder, self._machine = store, embedder, machine
        self._progress, self._stop = progress, stop
        self._space = store.cache.resolve(embedder.space)
        self._embedded = self._total = self._failed = 0
        self._reason: str | None = None

    def run(self, limit: int | None = None) -> EmbeddingReport:
        """Embed the missing texts, unless there are more than `limit`.

        Vectors that other working trees have are taken over.
        """
        self._attach()
        passages = self._store.passages(self._store.missing(self._space))
        self._space, lent, texts = _find_texts(self._store, self._space, self._machine, passages)
        self._remember(lent)
        self._total = len(texts)
        try:
            if limit is None or len(texts) <= limit:
                self._embed(texts)
        finally:
            self._attach()
        return EmbeddingReport(self._embedded, self._reason)

    def _attach(self) -> None:
        if self._space.dimension:
            with hold_lock(self._machine / LOCK, _LOCK_SECONDS):
                self._store.attach(self._space)

    def _remember(self, vectors: Mapping[str, bytes]) -> None:
        if vectors:
            with hold_lock(self._machine / LOCK, _LOCK_SECONDS):
                self._store.cache.remember(self._space, vectors)

    def _embed(self, texts: Texts) -> None:
        from concurrent.futures import ThreadPoolExecutor, wait

        limits = self._embedder.limits
        running: deque[tuple[list[str], Future[Vectors]]] = deque()
        pool = ThreadPoolExecutor(limits.parallel, thread_name_prefix="embed")
        try:
            for batch in _cut_batches(texts, limits):
                if self._failed >= _PATIENCE or (self._stop is not None and self._stop.is_set()):
                    break
                words = [texts[digest] for digest in batch]
                running.append((batch, pool.submit(self._embedder.embed, words, "document")))
                if len(running) >= limits.parallel:
                    self._take_first(running)
            while running:
                self._take_first(running)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            with contextlib.suppress(Exception):
                wait([future for _, future in running], _GRACE)
                while running:
                    self._take_first(running, 0.0)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _take_first(self, running: "deque[tuple[list[str], Future[Vectors]]]", seconds: float | None = None) -> None:
        """Store the vectors of the oldest request, or record its failure; a request stays in the list until then."""
        batch, future = running[0]
        try:
            vectors = future.result(seconds)
        except ProviderFailed as exc:
            self._failed = self._failed + 1 if exc.is_passing else _PATIENCE
            self._reason = self._reason or explain_failure(exc)
        else:
            self._failed = 0
            self._space = self._space._replace(dimension=vectors.shape[1])
            rows = (row.tobytes() for row in vectors.astype("<f4", copy=False))
            self._remember(dict(zip(batch, rows, strict=True)))
            self._embedded += len(batch)
            if self._progress:
                self._progress(self._embedded, self._total)
        running.popleft()


def _find_texts(
    store: "VectorStore", space: VectorSpace, machine: Path, passages: "Iterable[EmbeddedPassage]"
) -> tuple[VectorSpace, dict[str, bytes], Texts]:
    """Return the space with its dimension, the vectors that other working trees have, and the texts still to embed."""
    from memory_kb.index.vectors import find_in_siblings

    texts = {passage.hash: passage.text for passage in passages}
    known = store.cache.known(space, texts) if texts else {}
    texts = {digest: text for digest, text in texts.items() if digest not in known}
    space, lent = find_in_siblings(machine, space, texts)
    return space, lent, {digest: text for digest, text in texts.items() if digest not in lent}


def _cut_batches(texts: Texts, limits: Limits) -> Iterator[list[str]]:
    from memory_kb.providers.remote_embedder import estimate_tokens

    batch: list[str] = []
    tokens = 0
    for digest, text in texts.items():
        size = estimate_tokens(text)
        if batch and (len(batch) >= limits.texts or tokens + size > limits.tokens):
            yield batch
            batch, tokens = [], 0
        batch.append(digest)
        tokens += size
    if batch:
        yield batch


class VectorSearch:
    """The embedding model of a vault and the vectors made with it.

    `choose` gives the model that the settings ask for, or None.
    """

    def __init__(self, choose: Callable[[], Embedder | None], machine: Path) -> None:
        self._choose, self._machine = choose, machine
        self._query_vectors: dict[str, Vectors] = {}

    @functools.cached_property
    def embedder(self) -> Embedder | None:
        """The embedder in use."""
        return self._choose()

    def close(self) -> None:
        """Close the embedder; it is chosen again when needed."""
        embedder = self.__dict__.pop("embedder", None)
        self._query_vectors.clear()
        if embedder:
            embedder.close()

    def embed(
        self,
        index: "SqliteIndex",
        *,
        progress: Progress | None = None,
        on_wait: Callable[[], None] | None = None,
        stop: "threading.Event | None" = None,
        wait: float = _LONG,
    ) -> EmbeddingReport:
        """Embed every chunk that has no vector, one process at a time, and return the numbers."""
        try:
            embedder = self.embedder
        except ProviderFailed as exc:
            return EmbeddingReport(reason=explain_failure(exc))
        if embedder is None:
            return EmbeddingReport()
        store = index.vectors
        with self._turn(wait, on_wait):
            return _Embedding(store, embedder, self._machine, progress, stop).run()

    def _turn(self, wait: float, on_wait: Callable[[], None] | None = None) -> contextlib.AbstractContextManager[None]:
        return hold_lock(self._machine / "embed.lock", wait, on_wait)

    def estimate(self, index: "SqliteIndex", further: "Iterator[EmbeddedPassage]") -> Estimate | None:
        """Return the cost of embedding all chunks that have no vector; None without an embedder.

        `further` are passages of files that are not indexed yet; what other working trees have is not made.
        """
        if self.embedder is None:
            return None
        store = index.vectors
        space = store.cache.resolve(self.embedder.space)
        passages = itertools.chain(store.passages(store.missing(space)), further)
        texts = _find_texts(store, space, self._machine, passages)[2]
        tokens = sum(map(count_tokens, texts.values()))
        price = self.embedder.limits.price
        return Estimate(len(texts), tokens, None if price is None else round(tokens * price / 1e6, 6))

    def embed_query(self, index: "SqliteIndex", text: str) -> EmbeddedQuery:
        """Return a query as a vector, with the vectors to compare it with; a few missing vectors are made first."""
        try:
            embedder = self.embedder
            if embedder is None:
                return NOT_EMBEDDED
            store = index.vectors
            reasons = self._catch_up(store, embedder)
            table = store.table(embedder.space)
            if table is None:
                lack = f"no passage has a vector of {embedder.space} yet, so this is a text search"
                return EmbeddedQuery(None, reasons or (f"{lack}; `memory-kb index` makes them",))
            vector = self._make_vector(embedder, text, table.rows.shape[1])
        except ProviderFailed as exc:
            return EmbeddedQuery(None, (f"{explain_failure(exc)}; this is a text search",))
        if number := len(store.missing(embedder.space)):
            lack = f"{number:,} passages have no vector yet and are found by their words alone"
            reasons += (f"{lack}; `memory-kb index` makes them",)
        return EmbeddedQuery(table.compare(vector), reasons)

    def embed_team_query(self, index: "PostgresIndex", text: str, filters: Filters) -> EmbeddedQuery:
        """Return a query as a vector, with the vectors of a team's index to compare it with, or its cosines."""
        try:
            embedder = self.embedder
            if embedder is None:
                return NOT_EMBEDDED
            vector = self._make_vector(embedder, text)
        except ProviderFailed as exc:
            return EmbeddedQuery(None, (f"{explain_failure(exc)}; this is a text search",))
        return EmbeddedQuery(*index.compare((embedder.space._replace(dimension=len(vector)), vector), filters))

    def _catch_up(self, store: "VectorStore", embedder: Embedder) -> tuple[str, ...]:
        """Give the chunks without vectors theirs if they are few; return why that failed, if it did."""
        if not 0 < len(store.missing(store.cache.resolve(embedder.space))) <= _MOST_CHUNKS:
            return ()
        with contextlib.suppress(VaultBusy), self._turn(_BRIEF):
            if reason := _Embedding(store, embedder, self._machine).run(_MOST_TEXTS).reason:
                return (reason,)
        return ()

    def _make_vector(self, embedder: Embedder, text: str, dimension: int = 0) -> "Vectors":
        text = cut_private(text)
        if text not in self._query_vectors:
            vector = embedder.embed([text], "query")[0]
            if dimension not in (0, len(vector)):
                message = f"{embedder.space} answers with {len(vector)} numbers instead of {dimension}"
                raise ProviderFailed(message, "`memory-kb index` makes new vectors")
            if len(self._query_vectors) >= _MOST_QUERIES:
                self._query_vectors.clear()
            self._query_vectors[text] = vector
        return self._query_vectors[text]


def open_vector_search(vault: "Vault") -> VectorSearch:
    """Return the embedding model that the settings ask for, with its vectors in the machine folder."""
    from memory_kb.providers.models import choose_embedder

    return VectorSearch(lambda: choose_embedder(vault.settings.embeddings, vault.environ), vault.machine)
