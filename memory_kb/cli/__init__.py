"""The command line: parse, call the knowledge base, print. No rules of its own."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command and leave with its exit code.

    Ctrl-C ends with 130 even while starting.
    """
    # A command makes little garbage that counting references does not free.
    gc.set_threshold(100_000)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
    try:
        if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
            from memory_kb.cli.hook import answer

            answer(sys.argv[2:])
            os._exit(0)
        if sys.argv[1:3] == ["git", "merge-file"] and not {"-h", "--help"}.intersection(sys.argv):
            from memory_kb.git.merge_driver import answer as merge

            os._exit(merge(sys.argv[3:]))
        from memory_kb.cli.entry_point import run

        code = run(sys.argv[1:])
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The reader of our output has seen enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as exc:
        with contextlib.suppress(OSError):
            os.write(2, f"memory-kb: the output cannot be written: {exc.strerror}\n".encode())
        code = 4
    # Everything is closed and flushed; taking the interpreter apart would cost a sixth of a search.
    os._exit(code)
