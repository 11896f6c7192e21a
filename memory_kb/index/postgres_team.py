"""Choose between the team's index that the configuration names and the index of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.errors import InvalidSettings, UsageError
from memory_kb.index.schema import SCHEMA_VERSION
from memory_kb.reports import TeamState, TeamVault
from memory_kb.store.git_command import ask_git, find_repository
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from psycopg import Connection

    from memory_kb.index.postgres import PostgresIndex, VectorTables
    from memory_kb.index.postgres_publish import Clone
    from memory_kb.index.sqlite import SqliteIndex

#: In place of the names of vaults: all that one may see.
ALL = "all"


class Unreachable(Exception):
    """The server of the team's index does not answer, or refuses; says why in a sentence."""


class Team:
    """The team's index as one vault of it sees it."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._settings = vault, vault.settings.index
        self._connection: Connection | None = None
        self._tables: VectorTables = {}

    @property
    def name(self) -> str | None:
        """What the person's own configuration calls this vault; None where it is not in the team's index.

        Raises:
            InvalidSettings: a line of `index.vaults` is no NAME=FOLDER.
        """
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
        from memory_kb.index.postgres_schema import connect

        try:
            if self._connection is not None:
                with suppress(psycopg.OperationalError):
                    self._connection.execute("SELECT 1")
                if self._connection.closed:
                    self._connection = None
            self._connection = self._connection or connect(self._settings.url)
            yield self._connection
        except psycopg.errors.InsufficientPrivilege as exc:
            raise Unreachable(f"the team's index refuses: {_first_line(exc)}") from exc
        except psycopg.OperationalError as exc:
            self.close()
            raise Unreachable(f"the team's index cannot be reached: {_first_line(exc)}") from exc
        except psycopg.Error as exc:
            raise Unreachable(f"the team's index fails: {_first_line(exc)}") from exc

    def publish(self, local: SqliteIndex, patience: float) -> tuple[str, ...]:
        """Bring this vault's part of the team's index to what the machine's own holds; say what prevents it.

        Another writer is waited for, at most `patience` seconds.
        """
        name = self.name
        if not self._settings.url or name is None:
            return ()
        from memory_kb.index.postgres_publish import publish

        try:
            clone = self._find_clone()
            if isinstance(clone, str):
                return (f"{name} of the team's index is left as it is: {clone}",)
            with self.connected() as connection:
                reason = publish(connection, name, local, clone, self._made_with, patience)
        except Unreachable as exc:
            return (str(exc),)
        if reason:
            return (f"{name} of the team's index is left as it is: {reason}",)
        return ()

    @property
    def _made_with(self) -> str:
        chosen = self._settings
        return f"{chosen.tokenizer}; rows {SCHEMA_VERSION}; at most {chosen.max_file_bytes} bytes a file"

    def _find_clone(self) -> Clone | str:
        """Return which clone this is, or why it does not speak for the vault."""
        import hashlib
        import platform

        from memory_kb.index.postgres_publish import Clone

        folder = os.path.realpath(self._vault.folder)
        name = hashlib.sha256(f"{platform.node()}\n{folder}".encode(errors="surrogatepass")).hexdigest()[:16]
        head = self._git("log", "-1", "--format=%H %ct") if find_repository(self._vault.folder) else ""
        if not head:
            return Clone(name)
        wanted = self._settings.branch or self._git("rev-parse", "--abbrev-ref", "origin/HEAD").removeprefix("origin/")
        current = self._git("symbolic-ref", "--short", "-q", "HEAD")
        if wanted and current != wanted and (current or not self._is_on(wanted)):
            return f"this clone is on {current or 'a commit of its own'}, and {wanted} is what is indexed"
        commit, _, seconds = head.partition(" ")
        return Clone(name, commit, int(seconds))

    def _is_on(self, branch: str) -> bool:
        """Return whether the commit that is checked out is one of a branch."""
        asked = (self._ask("merge-base", "--is-ancestor", "HEAD", ref) for ref in (f"origin/{branch}", branch))
        return any(answer is not None for answer in asked)

    def _git(self, *arguments: str) -> str:
        return (self._ask(*arguments) or b"").decode("utf-8", "replace").strip()

    def _ask(self, *arguments: str) -> bytes | None:
        return ask_git(self._vault.folder, self._vault.environ, arguments)

    def describe(self) -> TeamState | None:
        """Return the state of the server and of the vaults that one may see; None where no server is named."""
        from memory_kb.index.postgres_schema import list_vaults
        from memory_kb.index.postgres_vectors import describe_search

        if not self._settings.url:
            return None
        server = self._settings.url.rpartition("@")[2].rpartition("//")[2]
        try:
            with self.connected() as connection:
                seen = list_vaults(connection)
                number = connection.info.server_version // 10_000
                nearest = describe_search(connection, ((one.space, one.vectors) for one in seen if one.space))
        except Unreachable as exc:
            return TeamState(self.name, server, problem=str(exc))
        vaults = tuple(
            TeamVault(one.name, one.generation, one.revision or None, one.chunks, one.vectors) for one in seen
        )
        return TeamState(self.name, f"{server} (PostgreSQL {number})", vaults, nearest)

    @contextmanager
    def opened(self, names: Sequence[str]) -> Iterator[tuple[PostgresIndex, tuple[str, ...]]]:
        """Open some vaults of the team's index, or all that one may see, with what the asker should know.

        Raises:
            UsageError: one of the names is that of no vault that one may see.
            InvalidSettings: no server is named, or it cannot be used as it is.
            Unreachable: the server does not answer.
        """
        from memory_kb.index.postgres import PostgresIndex
        from memory_kb.index.postgres_schema import list_vaults

        with self.connected() as connection:
            seen = {vault.name: vault for vault in list_vaults(connection)}
            wanted = list(seen) if ALL in names else list(dict.fromkeys(names))
            unseen = [name for name in wanted if name not in seen]
            if unseen:
                raise UsageError(
                    f"there is no vault {', '.join(unseen)} in the team's index that you may see",
                    f"you may see: {', '.join(seen) or 'none'}",
                )
            chosen = [seen[name] for name in wanted]
            fitting = [vault for vault in chosen if vault.made_with.startswith(f"{self._settings.tokenizer};")]
            apart = [vault.name for vault in chosen if vault not in fitting]
            notes = (
                (f"not searched, since their words are cut by another tokenizer: {', '.join(apart)}",) if apart else ()
            )
            with closing(PostgresIndex(connection, fitting, self._settings.tokenizer, self._tables)) as index:
                yield index, notes


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
