"""A vault comes with a clone: what it may ask for has an upper end, what its person asks for has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import write_files

from memory_kb import KnowledgeBase

Open = Callable[..., KnowledgeBase]
ASKED = [
    ("index", "max_file_bytes", 10**12, 32_000_000),
    ("watch", "debounce", 86_400, 10),
    ("watch", "reconcile_seconds", 10**9, 3_600),
    ("context", "layer_tokens", 10**9, 20_000),
    ("context", "max_chars", 10**9, 100_000),
]


@pytest.mark.parametrize(("group", "name", "asked", "most"), ASKED, ids=[name for _, name, _, _ in ASKED])
def test_a_vault_cannot_raise_a_limit_past_its_maximum(
    folder: Path, home: Path, open_kb: Open, group: str, name: str, asked: int, most: int
) -> None:
    write_files(folder, {"memory/config.yaml": f"{group}:\n  {name}: {asked}\n"})
    kb = open_kb(folder)
    assert getattr(getattr(kb.vault.settings, group), name) == most
    assert any(f"{group}.{name} is {most:,} here" in warning for warning in kb.vault.warnings)
    write_files(home, {"config.yaml": f"{group}:\n  {name}: {most * 2}\n"})
    assert getattr(getattr(open_kb(folder).vault.settings, group), name) == most * 2


def test_a_vault_may_still_lower_and_raise_within_it(folder: Path, open_kb: Open) -> None:
    write_files(folder, {"memory/config.yaml": "index:\n  max_file_bytes: 9000000\ncontext:\n  max_chars: 500\n"})
    kb = open_kb(folder)
    assert (kb.vault.settings.index.max_file_bytes, kb.vault.settings.context.max_chars, kb.vault.warnings) == (
        9_000_000,
        500,
        (),
    )
