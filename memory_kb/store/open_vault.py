"""Open a vault, or make one: its configuration, its MEMORY.md and its machine folder."""

import contextlib
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import InvalidSettings, UsageError, VaultNotFound
from memory_kb.machine_seal import load_seal_key
from memory_kb.regular_files import MACHINE
from memory_kb.settings import load_settings
from memory_kb.store.machine_folder import choose_machine, prepare_machine
from memory_kb.vault import Vault, find_vault, is_memory_folder, vaults_around, working_folder

_CONFIG = """\
# MEMORY.md beside this file is yours: write there freely. `memory-kb learn` makes a file for each learning in folders beside it.
# Settings of this vault; what is not set here has its default. docs/settings.md lists them all.
# ranking:
#   half_life_days: 90        # an entry counts half after this long without use
#   prominence_exponent: 0.1  # 0 ranks by the words alone
# ignore: [node_modules, drafts]
"""

#: Files beside `memory/` that belong to the vault.
_TOP_NOTES = ("MEMORY.md", "institutional.md", "INTENT.md", "README.md")
#: Folders that are looked through for notes outside of a new vault.
_MOST_FOLDERS = 1_000


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


def reopen_vault(known: Vault) -> Vault:
    """Open a vault once more, as it is now: moved, or with other settings.

    Raises:
        VaultNotFound: the vault or its `memory/` is gone; it may have been moved away for a while.
    """
    keep_memory(known)
    return open_vault(
        *known.named,
        environ=known.environ,
        clock=known.clock,
        allow_secret=known.allows_secrets,
        trust_watcher=known.trusts_watcher,
    )


def keep_memory(known: Vault) -> None:
    """Make sure that a vault can be opened again with its `memory/`, and not as the plain folder around that.

    Where its name leads elsewhere by now, as that of a link may, another vault is opened.

    Raises:
        VaultNotFound: the folder is gone; it may have been moved away for a while.
    """
    memory = known.memory
    if memory is None or Path(os.path.realpath(known.named[0])) not in (known.folder, memory):
        return
    if is_memory_folder(memory):
        return
    # Through a link the notes of any folder would become memories.
    if memory.is_symlink() or not memory.is_dir():
        raise VaultNotFound(f"{memory} is gone", "put it back, or start this again without it")
    prepare_machine(memory / MACHINE, load_seal_key(known.environ, [memory]))


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


class CreatedVault(NamedTuple):
    """A vault's folder, the files that had to be made for it, and the folder of the vault that it is in.

    `notes_beside` are the notes in the folder of one that is new, which are outside of it.
    """

    folder: Path
    created: tuple[Path, ...]
    notes_beside: int = 0
    around: Path | None = None


def create_vault(folder: str, environ: Mapping[str, str]) -> CreatedVault:
    """Make `folder/memory` with what a vault needs; existing files stay as they are."""
    place = Path(folder).expanduser()
    memory = place / "memory"
    real = Path(os.path.realpath(place))
    enclosing = () if is_memory_folder(real / "memory") else vaults_around(real)
    others = ((vault, is_among) for vault, is_among in enclosing if is_among or vault != real)
    around, is_among_notes = next(others, (None, False))
    if is_among_notes:
        raise UsageError(
            f"no vault can be made in {folder}: it is among the notes of the vault {around}",
            "that vault is found from there without `init`; name a folder outside of its memory/ for another one",
        )
    is_new, created = not memory.exists(), list[Path]()
    try:
        memory.mkdir(parents=True, exist_ok=True)
        # Anything in MEMORY.md would count as known.
        for file, text in ((memory / "config.yaml", _CONFIG), (memory / "MEMORY.md", "")):
            with contextlib.suppress(FileExistsError), file.open("x", encoding="utf-8") as stream:
                stream.write(text)
                created.append(file)
        if not (memory / MACHINE).exists():
            created.append(memory / MACHINE)
        prepare_machine(memory / MACHINE, load_seal_key(environ, [memory]))
    except OSError as exc:
        blocked = next((one for one in (memory, place) if one.exists() and not one.is_dir()), None)
        reason = f"{blocked} is a file" if blocked else exc.strerror
        hint = "rename that file, or choose another folder" if blocked else "choose a folder that you may write to"
        raise VaultNotFound(f"no vault can be made in {folder}: {reason}", hint) from exc
    beside = _count_notes_beside(place) if is_new else 0
    return CreatedVault(real, tuple(created), beside, around)


def _count_notes_beside(place: Path) -> int:
    """Return how many notes a folder has that are not in its vault; of a large tree only the first folders are read."""
    count = 0
    for _, folders, names in islice(os.walk(place), _MOST_FOLDERS):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("memory", "node_modules")]
        count += sum(name.endswith(".md") and name not in _TOP_NOTES for name in names)
    return count
