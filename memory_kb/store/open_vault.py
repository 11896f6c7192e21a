"""Open a vault: find it, read its settings and prepare its machine folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from memory_kb.errors import InvalidSettings
from memory_kb.settings import load_settings
from memory_kb.store.machine_folder import choose_machine
from memory_kb.vault import Vault, find_vault, working_folder


def open_vault(
    vault: str | os.PathLike[str] | None,
    home: str | os.PathLike[str] | None,
    *,
    environ: Mapping[str, str] | None,
    clock: Callable[[], datetime] | None,
    allow_secret: bool,
    trust_watcher: bool,
) -> Vault:
    """Find a vault, read its settings and prepare its machine folder; see `KnowledgeBase.open`."""
    variables = os.environ if environ is None else environ
    found = find_vault(vault, home, environ=variables, cwd=working_folder())
    loaded = load_settings(found.home / "config.yaml", found.config_file, variables)
    machine = choose_machine(found, loaded.settings.index.path, variables)
    named = os.path.abspath(os.path.expanduser(vault or variables.get("MEMORY_KB_VAULT") or found.folder))
    return found._replace(
        machine=machine.folder,
        seal=machine.seal,
        settings=loaded.settings,
        warnings=(*loaded.warnings, *machine.notices),
        environ=variables,
        clock=clock or _read_clock(variables),
        named=(named, os.fspath(home) if home else None),
        allows_secrets=allow_secret,
        trusts_watcher=trust_watcher,
    )


def _read_clock(environ: Mapping[str, str]) -> Callable[[], datetime]:
    """Return the clock; `MEMORY_KB_NOW` stops it, for repeatable answers."""
    fixed = environ.get("MEMORY_KB_NOW")
    if not fixed:
        return lambda: datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(fixed)
    except ValueError as exc:
        raise InvalidSettings(f"MEMORY_KB_NOW is {fixed!r}", "write a moment as 2026-03-01T12:00:00Z") from exc
    return lambda: moment if moment.tzinfo else moment.replace(tzinfo=UTC)
