"""The verbs search, show and why-not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from memory_kb.errors import UnknownEntry, UnreadableInput
from memory_kb.index.port import NOT_EMBEDDED, EmbeddedQuery
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.model import NOWHERE, FilterWords, Freshness, Hit, SearchResult
from memory_kb.private_text import cut_private
from memory_kb.store.logs import log_shown

if TYPE_CHECKING:
    from memory_kb.index.port import Progress
    from memory_kb.index.postgres import PostgresIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.providers.models import Models
    from memory_kb.reports import EntryView, WhyNot
    from memory_kb.search.agent_memory import AgentMemory
    from memory_kb.search.pipeline import Search
    from memory_kb.search.query import Request
    from memory_kb.vault import Vault

_BY_MEANING = "to search by meaning too: pip install 'memory-kb[local]', then `memory-kb model fetch`"


class Searching:
    """The verbs search, show and why-not."""

    def __init__(self, vault: Vault, index: VaultIndex, get_models: Callable[[], Models]) -> None:
        self._vault = vault
        self._index = index
        self._get_models = get_models
        self._agent_memory: AgentMemory | None = None

    def close(self) -> None:
        """Free the index of agents' own memories; a later search makes another."""
        if self._agent_memory:
            self._agent_memory.close()
            self._agent_memory = None

    def search(
        self,
        query: str = "",
        *,
        limit: int = 10,
        mode: str = "auto",
        max_chars: int = 0,
        explain: bool = False,
        sync: bool = True,
        is_typing: bool = False,
        per_entry: int = 0,
        vaults: Sequence[str] = (),
        progress: Progress | None = None,
        **filters: Unpack[FilterWords],
    ) -> SearchResult:
        """Return what the vault knows about a query, best first.

        Args:
            query: words in any language; `"exact phrases"` and `-excluded` words are honoured.
            limit: the most hits to return; the first ones are the same for every limit.
            mode: `text` looks for words, `vector` for meaning, `hybrid` for both; `auto` for both
                where there are vectors. Without them all answer in text; those that asked say so.
            max_chars: stop before the hits' texts get longer than this together; 0 for no budget.
            explain: say how each score came about.
            sync: look for changed files first.
            is_typing: the query may end in the beginning of a word; the hits do not count as shown to anybody.
            per_entry: the most hits of one entry while others match, for a list that people read; 0 for any number.
            vaults: search these vaults of the team's index instead, `all` for all that one may see.
            progress: called with the number of files done, should the index have to be built.
            filters: `kind`, `type`, `learning_type`, `scope`, `tag` and `status` keep entries with
                one of these words, `file` those whose `applies_to` covers the path (the query may
                then be empty), `since` those dated on or after a day; with `job` and `task` their
                siblings are hidden.

        Raises:
            UsageError: a filter is not a word of the format.
        """
        from memory_kb.search.query import Request

        request = Request(
            cut_private(query),
            self._index.filters(**filters),
            max(0, limit),
            max_chars,
            explain,
            mode,
            is_typing=is_typing,
            per_entry=per_entry,
        )
        if vaults:
            return self._search_team(request, vaults, sync=sync, progress=progress)
        result = self.search_vault(request, sync=sync, progress=progress)
        if is_typing:
            return result
        log_shown(
            self._vault, "search", (hit.id for hit in result.hits), query=query or None, task=request.filters.task
        )
        return self._add_agent_memory(request, result)

    def _add_agent_memory(self, request: Request, result: SearchResult) -> SearchResult:
        """Return a result with the hits in agents' own memories among those of the vault."""
        theirs = self.search_agent_memory(request)
        if not theirs:
            return result
        from memory_kb.search.agent_memory import merge_hits

        return result._replace(hits=merge_hits(request.text, result.hits, theirs, request.limit, request.max_chars))

    def search_vault(self, request: Request, *, sync: bool = True, progress: Progress | None = None) -> SearchResult:
        """Update the index, embed the query, and search this vault without agents' own memories."""

        def search(index: SqliteIndex) -> SearchResult:
            pending, degraded = self._index.refresh(progress) if sync else (None, ())
            if not sync and index.generation == 0:
                degraded = ("this vault was never indexed; run the search without --no-sync, or `memory-kb index`",)
            elif not sync and index.is_partial:
                degraded = ("the first indexing has not ended yet; some notes are not searched",)
            if request.filters.file == NOWHERE:
                degraded += ("the file is outside the project, and no applies_to covers it",)
            if request.filters.job and not self._vault.scope_folder("job", request.filters.job).is_dir():
                degraded += (f"there is no job {request.filters.job!r}",)
            prepared, failed = self.prepare(index, request)
            with index.snapshot():
                result = self._rank(index, prepared, (*self._index.take_notices(), *degraded), failed)
            return result._replace(freshness=result.freshness._replace(pending=pending))

        return self._index.use(search)

    def prepare(self, index: SqliteIndex, request: Request) -> tuple[Search, tuple[str, ...]]:
        """Let the models name the key terms of a long query and embed it; return the search, and what failed.

        A command takes seconds to start, so no search waits for a language model that is one.
        """
        notes: tuple[str, ...] = ()
        if self._vault.settings.llm.provider not in ("none", "offline", "command"):
            from memory_kb.search.key_terms import name_key_terms

            request, notes = name_key_terms(request, self._vault, self._get_models())
        search, reasons = self._embed(index, request)
        return search, (*notes, *reasons)

    def _embed(self, index: SqliteIndex | PostgresIndex, request: Request) -> tuple[Search, tuple[str, ...]]:
        """Return the search for a request, with its query as a vector where there is one, and what failed."""
        from memory_kb.search.pipeline import Search
        from memory_kb.search.query import parse_query

        embedded = NOT_EMBEDDED
        if request.mode != "text" and parse_query(request.text).terms:
            if self._index.may_embed:
                vectors = self._index.vector_search
                if isinstance(index, SqliteIndex):
                    embedded = vectors.embed_query(index, request.text)
                else:
                    embedded = vectors.embed_team_query(index, request.text, request.filters)
            if embedded == NOT_EMBEDDED and request.mode != "auto":
                lack = "search needs an embedding provider, and there is none; this is a text search"
                embedded = EmbeddedQuery(None, (f"{request.mode} {lack}",))
        cosines, reasons = embedded
        return Search(request, self._vault.settings.ranking, self._vault.today(), cosines), reasons

    def _rank(
        self, index: SqliteIndex | PostgresIndex, search: Search, degraded: tuple[str, ...], failed: tuple[str, ...]
    ) -> SearchResult:
        """Rank the hits of one index, and name the files that it holds only in part."""
        from memory_kb.search.pipeline import FEW_WORDS, retrieve

        hits, notes = retrieve(index, search)
        if self._index.may_embed and not failed:
            notes = tuple(f"{note}; {_BY_MEANING}" if note == FEW_WORDS else note for note in notes)
        cut, faults = index.cut_files(), index.faults(search.request.filters)
        if cut or faults:
            from memory_kb.index.note_chunks import describe_cut, describe_faults

            failed += (*describe_faults(faults), *describe_cut(cut))
        text, mode = search.request.text, search.request.mode
        mode = "text" if search.cosines is None else "vector" if mode == "vector" else "hybrid"
        return SearchResult(text, mode, hits, (*degraded, *failed, *notes), Freshness(index.generation, None))

    def search_agent_memory(self, request: Request, *, only_ungiven: bool = False) -> tuple[Hit, ...]:
        """Return what agents remember by themselves about a request."""
        memory = self._open_agent_memory()
        return memory.search(request, only_ungiven=only_ungiven) if memory else ()

    def _open_agent_memory(self) -> AgentMemory | None:
        from memory_kb.search.agent_memory import AgentMemory, is_on

        if self._agent_memory is None and is_on(self._vault):
            self._agent_memory = AgentMemory(self._vault)
        return self._agent_memory

    def _search_team(
        self, request: Request, vaults: Sequence[str], *, sync: bool, progress: Progress | None
    ) -> SearchResult:
        """Search vaults of the team's index, or this one on its own where the server does not answer."""
        from memory_kb.index.team import ALL, Unreachable

        team = self._index.team
        try:
            degraded: tuple[str, ...] = ()
            if sync and team.name is not None and {team.name, ALL}.intersection(vaults):
                degraded = self._index.refresh(progress).reasons + self._index.publish(patience=0)
            with team.opened(vaults) as (index, notes):
                search, failed = self._embed(index, request)
                result = self._rank(index, search, (*degraded, *notes), failed)
                return result._replace(hits=tuple(map(_name_vault, result.hits)))
        except Unreachable as exc:
            result = self.search_vault(request, sync=sync, progress=progress)
            return result._replace(degraded=(f"{exc}; only the vault here was searched", *result.degraded))

    def show(self, wanted: str, *, vaults: Sequence[str] = ()) -> EntryView:
        """Return an entry with its source text, also one of an agent's own memory.

        It is named by its id, a unique beginning of one, `path.md:LINE`, its title, an alias or its file's name. What
        the vault has comes first. With `vaults` it is an entry of these vaults of the team's index, with its indexed
        text; its path may have the vault's name before it.

        Raises:
            ProviderFailed: the server of the team's index does not answer.
            UnknownEntry: there is none.
            UnreadableInput: it names a file that is there and was not indexed; it says why.
            AmbiguousId: there are several.
        """
        from memory_kb.index.listing import Listing, view

        if vaults:
            from memory_kb.errors import ProviderFailed
            from memory_kb.index.team import Unreachable

            try:
                with self._index.team.opened(vaults) as (index, _):
                    entry = index.find(wanted)
                    return view(entry, index.contents(entry))
            except Unreachable as exc:
                raise ProviderFailed(str(exc)) from exc
        try:
            return Listing(self._vault, self._index).show(wanted)
        except (UnknownEntry, UnreadableInput):
            memory = self._open_agent_memory()
            if memory and (found := memory.show(wanted)):
                return found
            raise

    def why_not(
        self,
        query: str,
        wanted: str,
        *,
        limit: int = 10,
        mode: str = "auto",
        max_chars: int = 0,
        vaults: Sequence[str] = (),
        **filters: Unpack[FilterWords],
    ) -> WhyNot:
        """Return where a search lost an entry, and what it would have needed there.

        The arguments are those of `search`; the entry is named as for `show`.

        Raises:
            UnknownEntry: there is none.
            AmbiguousId: several vaults have one.
            UsageError: a filter is not a word of the format.
        """
        from memory_kb.search.query import Request

        request = Request(query, self._index.filters(**filters), max(1, limit), max_chars, mode=mode)
        if not vaults:
            return self._index.use(lambda index: self._explain_in_vault(index, request, wanted))
        from memory_kb.index.team import Unreachable
        from memory_kb.search.why_not import explain_absence

        try:
            with self._index.team.opened(vaults) as (team_index, notes):
                search, failed = self._embed(team_index, request)
                why = explain_absence(team_index, search, team_index.find(wanted))
                return why._replace(degraded=(*notes, *failed))
        except Unreachable as exc:
            answer = self._index.use(lambda index: self._explain_in_vault(index, request, wanted))
            return answer._replace(degraded=(f"{exc}; only the vault here was asked", *answer.degraded))

    def _explain_in_vault(self, index: SqliteIndex, request: Request, wanted: str) -> WhyNot:
        """Update the index, and explain what a search in this vault does not show."""
        from memory_kb.index.listing import explain_unread, find_entry_by_name
        from memory_kb.reports import WhyNot
        from memory_kb.search.why_not import explain_absence

        self._index.refresh()
        search, failed = self.prepare(index, request)
        with index.snapshot():
            if unread := explain_unread(self._vault, index, wanted):
                return WhyNot(request.text, wanted, wanted.partition(":")[0], "not-indexed", unread, degraded=failed)
            why = explain_absence(index, search, find_entry_by_name(self._vault, index, wanted))
            return why._replace(degraded=failed)


def _name_vault(hit: Hit) -> Hit:
    """Return a hit of the team's index with its vault apart from its path."""
    vault, _, path = hit.path.partition(":")
    return hit._replace(vault=vault, path=path)
