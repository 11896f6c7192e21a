"""Give what waits for a busy machine all the time it needs, in the processes of the tests.

A search that waited a second for another process, or a hook that may index for a part of one, answers with less. Where
a test is about that answer, it sets the limit itself.
"""

from __future__ import annotations

from memory_kb import services
from memory_kb.agents import hooks, self_test
from memory_kb.cli import output
from memory_kb.context import service
from memory_kb.index import vault_index
from memory_kb.working import continuity

#: As good as for ever: only what hangs takes as long.
LONG = 60.0


def be_patient() -> None:
    """Set the limits of time that a machine with nothing else to do keeps."""
    services._HOOK_INDEX_SECONDS = LONG
    vault_index._SEARCH_WAIT_SECONDS = vault_index._FIRST_INDEX_WAIT_SECONDS = LONG
    output._LOG_PAUSE = self_test._PATIENCE = LONG
    hooks._GIT_SECONDS = service._GIT_SECONDS = continuity._PATIENCE = LONG
