"""Overwrite deleted rows in the databases of a machine folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from memory_kb.index.event_search import SessionIndex
from memory_kb.index.schema import DATABASE
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.vault_index import VaultIndex
from memory_kb.vault import Vault

SESSIONS = ".sessions.db"


def scrub_all(vault_index: VaultIndex, vault: Vault) -> tuple[str, ...]:
    """Bring both databases to what the files say and leave no byte of before; return what could not be done."""
    vault_index.sync()
    with vault_index.writing():
        is_clean = vault_index.use(lambda index: index.scrub())
    vault_index.sync()
    with vault_index.writing():
        vault_index.use(_renew_vectors)
    left = () if is_clean else (f"another process still reads {DATABASE}; end it and purge again",)
    if not (vault.machine / SESSIONS).exists():
        return left
    with closing(SessionIndex(vault.machine, vault.seal)) as sessions:
        is_clean = sessions.scrub()
    return left if is_clean else (*left, f"another process still reads {SESSIONS}; end it and purge again")


def drop_vectors(vault_index: VaultIndex, is_gone: Callable[[str], bool]) -> None:
    """Delete the cached vectors of the passages for which a function says so."""

    def drop(index: SqliteIndex) -> None:
        store = index.vectors
        store.cache.discard([passage.hash for passage in store.passages() if is_gone(passage.text)])

    vault_index.sync()
    with vault_index.writing():
        vault_index.use(drop)


def _renew_vectors(index: SqliteIndex) -> None:
    """Write the vector files anew from the cache, without the rows of what is gone."""
    for vector_file in index.vectors.vector_files():
        index.vectors.drop(vector_file.space)
        index.vectors.attach(vector_file.space)
