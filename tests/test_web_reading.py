"""What the page reads in its threads: what was written before, and no result of a state that has passed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_kb import KnowledgeBase
from memory_kb.index.vault_index import WATCHER_LOCK
from memory_kb.vault import hold_lock
from memory_kb.web.site import Site, SiteInfo
from memory_kb.workers import NamedVault


@pytest.fixture
def folder(vault: Callable[[dict[str, str]], Path]) -> Path:
    return vault({"memory/config.yaml": "", "memory/learnings/a.md": "A zebra was seen.\n"})


@pytest.fixture
def site(folder: Path, home: Path) -> Iterator[Site]:
    one = Site(
        NamedVault(str(folder), str(home), {"HOME": str(home.parent)}),
        SiteInfo("vault", "mark", is_local=True),
    )
    yield one
    one.close(60.0)


def count(kb: KnowledgeBase) -> int:
    return len(kb.search("okapi").hits)


def test_what_was_written_while_a_watcher_indexed_is_read(
    site: Site, folder: Path, open_kb: Callable[..., KnowledgeBase]
) -> None:
    async def work() -> None:
        kb = open_kb(folder)
        kb.sync()
        with hold_lock(kb.vault.machine / WATCHER_LOCK, 0.0):
            with hold_lock(kb.vault.machine / "index.lock", 0.0):
                learned = await site.run("write", lambda kb: kb.learn("An okapi was seen."))
            assert await site.run("read", lambda kb: site.cached(kb, "okapis", count)) == 1
            await site.run("write", lambda kb: kb.forget(learned.id))
            assert await site.run("read", count) == 0

    asyncio.run(work())


def test_a_result_is_kept_for_the_state_that_it_was_read_in(
    site: Site, folder: Path, open_kb: Callable[..., KnowledgeBase]
) -> None:
    """What is indexed while it is read is in the next result."""

    def look(kb: KnowledgeBase) -> int:
        found = count(kb)
        if not found:
            open_kb(folder).learn("An okapi was seen.")
        return found

    async def work() -> None:
        open_kb(folder).sync()
        assert await site.run("read", lambda kb: site.cached(kb, "okapis", look)) == 0
        assert await site.run("read", lambda kb: site.cached(kb, "okapis", look)) == 1

    asyncio.run(work())
