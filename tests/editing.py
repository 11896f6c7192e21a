"""A vault that is open in an editor, for the tests of the language server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Files, write_files
from lsp_client import Editor
from support import entry, notes_of

Vault = Callable[[Files], Path]

POSTGRES = entry(
    "Staging runs Postgres 15, see [[Redis cache]].",
    id="staging-db",
    kind="fact",
    title="Staging database",
    tags="[db, staging]",
)
REDIS = entry(
    "# Redis cache\n\nFlushed every night. ^flush\n\n## Keys\n\nPrefixed by tenant.",
    id="redis-cache",
    kind="fact",
    tags="[db, cache]",
)
RULE = entry(
    "Always pin the image.",
    id="pin-image",
    kind="rule",
    links="[{to: staging-db, relation: elaborates}]",
    status="proposed",
)

FILES = {
    "memory/config.yaml": "",
    "memory/learnings/staging.md": POSTGRES,
    "memory/learnings/redis.md": REDIS,
    "memory/review/pin.md": RULE,
    "README.md": "# No note of the vault\n\n[[\n",
}
CLOCK = {"MEMORY_KB_NOW": "2026-11-21T12:00:00+00:00"}


@pytest.fixture
def folder(vault: Vault) -> Path:
    return vault(FILES)


class Reading(NamedTuple):
    """An editor that many tests share, on a vault that none of them may change."""

    editor: Editor
    folder: Path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reading]:
    folder = write_files(tmp_path_factory.mktemp("shared") / "vault", FILES)
    editor = Editor(folder.parent / "home", "--vault", folder, cwd=folder.parent, env=CLOCK)
    editor.start()
    before = notes_of(folder)
    yield Reading(editor, folder)
    editor.kill()
    assert notes_of(folder) == before


@pytest.fixture
def read(shared: Reading) -> Iterator[Reading]:
    """The shared editor without any note open."""
    yield shared
    shared.editor.close_notes()


@pytest.fixture
def edit(folder: Path, home: Path) -> Iterator[Callable[..., Editor]]:
    """A function that starts an editor on the vault; it is gone when the test ends."""
    editors: list[Editor] = []

    def start(capabilities: dict[str, Any] | None = None, **env: str) -> Editor:
        editor = Editor(home, "--vault", folder, cwd=folder.parent, env={**CLOCK, **env})
        editors.append(editor)
        editor.start(capabilities=capabilities)
        return editor

    yield start
    for editor in editors:
        editor.kill()


Edit = Callable[..., Editor]


def draft(editor: Editor, folder: Path, text: str, name: str = "memory/learnings/draft.md") -> str:
    """Open a note that is not saved."""
    uri = editor.open(folder / name, "[[")
    editor.type(uri, text, 3)
    return uri


def actions(editor: Editor, uri: str, word: str) -> dict[str, dict[str, Any]]:
    place = editor.at(uri, word)["position"]
    asked = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    return {one["title"]: one for one in editor.ask("textDocument/codeAction", asked)}
