"""A folder of notes to call the command on, for the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Files

NOTES = {
    "guide/retries.md": "# Retries\n\nRetry the handshake before asserting that the stream is flaky.\n",
    "guide/backup.md": "---\ntitle: Backups\ntags: [ops]\n---\nThe nightly backup runs at two.\n",
    "ünïcode.md": "Grüße aus der Küche.\n",
}


@pytest.fixture
def notes(vault: Callable[[Files], Path]) -> Path:
    """A plain folder of three notes."""
    return vault(NOTES)
