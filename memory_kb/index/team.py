"""Choose between the team's index that the configuration names and the index of this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.errors import InvalidSettings, UsageError
from memory_kb.index.schema import SCHEMA_VERSION
from memory_kb.reports import TeamState, TeamVault
from memory_kb.store.git_command import GitQueries
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from psycopg import Connection

    from memory_kb.index.postgres import PostgresIndex
    from memory_kb.index.postgres_vectors import VectorTables
    from memory_kb.index.sqlite import SqliteIndex

#: In place of the names of vaults: all that one may see.
ALL = "all"
#: How long git may take to say which commit is checked out.
_GIT_SECONDS = 20.0


class Unreachable(Exception):
    """The server of the team's index does not answer, or refuses; the message says why."""


class Team:
    """The team's index as one vault of it sees it."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._settings = vault, vault.settings.index
        self._connection: Connection | None = None
        self._tables: VectorTables = {}
        #: A transaction of one thread must have nothing of another in it.
        self._lock = threading.RLock()

    @property
    def name(self) -> str | None:
        """The name of this vault in the person's own configuration; None if it is not in the team's index."""
        for line in self._settings.vaults:
            name, equals, folder = line.partition("=")
            if not equals or not name or set(name) & set(":, ") or name == ALL:
                raise InvalidSettings(
                    f"index.vaults has {line[:80]!r}", "write NAME=FOLDER, the name without spaces, commas and colons"
                )
            if os.path.realpath(Path(folder).expanduser()) == os.path.realpath(self._vault.folder):
                return name
        return None

    def close(self) -> None:
        """End the connection; there is a new one when it is needed again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """Connect to the server, or use the connection that there is.

        Raises:
            InvalidSettings: none is named, or it cannot be used as it is.
            Unreachable: it does not answer, or ends the connection.
        """
        if not self._settings.url:
            raise InvalidSettings(
                "no team's index is named", "set index.url in your own configuration, or MEMORY_KB_INDEX_URL"
            )
        try:
            import psycopg
        except ImportError as exc:
            raise InvalidSettings("index.url needs PostgreSQL's driver", "pip install 'memory-kb[postgres]'") from exc
        from memory_kb.index.postgres_schema import connect_postgres

        try:
            with self._lock:
                if self._connection is not None:
                    with suppress(psycopg.OperationalError):
                        self._connection.execute("SELECT 1")
                if self._connection is None or self._connection.closed:
                    self._connection = connect_postgres(self._settings.url)
                yield self._connection
        except psycopg.Error as exc:
            is_gone = isinstance(exc, psycopg.OperationalError)
            if is_gone:
                self.close()
            is_refused = isinstance(exc, psycopg.errors.InsufficientPrivilege)
            said = "refuses" if is_refused else "cannot be reached" if is_gone else "fails"
            reason = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
            raise Unreachable(f"the team's index {said}: {reason}") from exc

    def publish(self, local: SqliteIndex, patience: float) -> tuple[str, ...]:
        """Update this vault's part of the team's index from the machine's own; return what prevents it.

        Another writer is waited for, at most `patience` seconds.
        """
        name = self.name
        if not self._settings.url or name is None:
            return ()
        from memory_kb.index.postgres_publish import VaultCopy, publish

        history = GitQueries(self._vault.folder, self._vault.environ, _GIT_SECONDS)
        commit, seconds = history.dated_head()
        other = history.other_branch(self._settings.branch) if commit else None
        reason = f"this clone is on {other[0]}, and {other[1]} is what is indexed" if other else ""
        chosen = self._settings
        made_with = f"{chosen.tokenizer}; rows {SCHEMA_VERSION}; at most {chosen.max_file_bytes} bytes a file"
        try:
            if not other:
                clone = VaultCopy(self._name_folder(), commit, seconds)
                with self.connected() as connection:
                    reason = publish(connection, name, local, clone, made_with, patience)
        except Unreachable as exc:
            return (str(exc),)
        return (f"{name} of the team's index is left as it is: {reason}",) if reason else ()

    def _name_folder(self) -> str:
        """Return what distinguishes the vault's folder from those of other clones, without saying where it is."""
        import hashlib
        import platform

        place = f"{platform.node()}\n{os.path.realpath(self._vault.folder)}"
        return hashlib.sha256(place.encode(errors="surrogatepass")).hexdigest()[:16]

    def describe(self) -> TeamState | None:
        """Return the state of the server and of the vaults that one may see; None where no server is named."""
        if not self._settings.url:
            return None
        from memory_kb.index.postgres_schema import list_vaults
        from memory_kb.index.postgres_vectors import describe_search

        server = self._settings.url.rpartition("@")[2].rpartition("//")[2]
        try:
            with self.connected() as connection:
                seen = list_vaults(connection)
                number = connection.info.server_version // 10_000
                nearest = describe_search(connection)
        except Unreachable as exc:
            return TeamState(self.name, server, problem=str(exc))
        vaults = tuple(
            TeamVault(one.name, one.generation, one.revision or None, one.chunks, one.vectors) for one in seen
        )
        return TeamState(self.name, f"{server} (PostgreSQL {number})", vaults, nearest)

    @contextmanager
    def opened(self, names: Sequence[str]) -> Iterator[tuple[PostgresIndex, tuple[str, ...]]]:
        """Open some vaults of the team's index, or all that one may see; return notes for the user with them.

        One state of them is read throughout, whatever others commit meanwhile.
        """
        from memory_kb.index.postgres import PostgresIndex
        from memory_kb.index.postgres_schema import list_vaults

        with self.connected() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            seen = {vault.name: vault for vault in list_vaults(connection)}
            wanted = list(seen) if ALL in names else list(dict.fromkeys(names))
            if unseen := [name for name in wanted if name not in seen]:
                raise UsageError(
                    f"there is no vault {', '.join(unseen)} in the team's index that you may see",
                    f"you may see: {', '.join(seen) or 'none'}",
                )
            tokenizer = self._settings.tokenizer
            fitting = [seen[name] for name in wanted if seen[name].made_with.startswith(f"{tokenizer};")]
            apart = ", ".join(name for name in wanted if seen[name] not in fitting)
            notes = (f"not searched, since their words are cut by another tokenizer: {apart}",) if apart else ()
            with closing(PostgresIndex(connection, fitting, tokenizer, self._tables)) as index:
                yield index, notes
