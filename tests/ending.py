"""A vault with the logs of sessions that may be ended, for the tests of the end of a session."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb import KnowledgeBase
from memory_kb.store.logs import log_shown

if TYPE_CHECKING:
    from conftest import Files

SESSIONS = Path(__file__).parent / "data/sessions"
LATER = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ONE, OTHER = "burst_20261120T090000_001", "burst_20261119T190000_001"
NOTES: Files = {
    "memory/config.yaml": "",
    "memory/learnings/people.md": "# Ana's notes\n\nNobody rewrites these.\n",
    "memory/learnings/used.md": "---\nid: used # mine\nkind: fact\nreinforcement_count:   2   # twice\n---\nThe suite needs Redis.\n",
    "memory/rules/twice.md": "---\nid: r1\nkind: rule\ntags: [ci]\n---\nRun the linter before every push to the main branch.\n",
    "memory/rules/again.md": "---\nid: r2\nkind: rule\ntags: [ci]\n---\nrun the linter before every push to the main branch\n",
    "memory/CONTINUITY.md": "# Now\n\nWe are mending the upload tests.\n",
    "INTENT.md": "Stage: implementation\n",
}


def make(place: Path, files: Files = NOTES) -> Path:
    """Make a vault with logs of sessions in it, one of which was shown something."""
    vault = place / "vault"
    for name, text in files.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    open_at(place).close()
    logs = vault / "memory/.memory-kb/sessions"
    logs.mkdir()
    for log in SESSIONS.glob("*.jsonl"):
        shutil.copy(log, logs / log.name)
    with open_at(place) as kb:
        kb.sync()
        log_shown(kb.vault, "context", ["used", "r1"], session=ONE, agent="coder", task="t1", injected=True)
    return place


def open_at(place: Path) -> KnowledgeBase:
    """Open the vault of a place, a day after its sessions."""
    return KnowledgeBase.open(place / "vault", place / "home", environ={"HOME": str(place)}, clock=lambda: LATER)
