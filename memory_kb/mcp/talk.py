"""Talk for whoever reads the server's log: standard output belongs to the protocol."""

from __future__ import annotations

import contextlib
import sys


def say(sentence: str) -> None:
    """Write a sentence to standard error, if anybody still reads it."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"memory-kb mcp: {sentence}\n")
        sys.stderr.flush()
