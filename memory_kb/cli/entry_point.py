"""Run the command: map every error to one sentence, a hint and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from memory_kb.cli.fast_path import run_plain
from memory_kb.cli.output import Options, print_json, say
from memory_kb.errors import MemoryKBError, explain_refusal


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code.

    Errors are one sentence and what to do next.
    """
    options = Options()
    as_json = "--json" in arguments
    _prepare_streams()
    try:
        try:
            if "_MEMORY_KB_COMPLETE" not in os.environ and run_plain(arguments, options):
                return 0
            from memory_kb.cli.app import call

            return call(arguments, options)
        finally:
            options.close()
    except KeyboardInterrupt:
        return 130
    except MemoryKBError as exc:
        return _fail(str(exc), exc.code, exc.hint, exc.exit_code, as_json=as_json)
    except BrokenPipeError:
        raise
    except OSError as exc:
        if exc.filename is None and exc.errno in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        hint = "check the name, the permissions and the space on the disk"
        return _fail(explain_refusal(exc), "system", hint, 4, as_json=as_json)
    except Exception as exc:  # noqa: BLE001 - whatever is left is a bug, and is reported as one
        import traceback

        traceback.print_exc()
        hint = "this is a bug in memory-kb; please report it with the lines above"
        return _fail(f"{type(exc).__name__}: {exc}", "bug", hint, 1, as_json=as_json)


def _fail(message: str, code: str, hint: str | None, exit_code: int, *, as_json: bool) -> int:
    if as_json:
        print_json({"error": message, "code": code, "hint": hint})
    else:
        say(f"memory-kb: {message}")
        if hint:
            say(f"  {hint}")
    return exit_code


def _prepare_streams() -> None:
    """Make sure that no text of a note can make printing it fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if os.environ.get("NO_COLOR"):
        os.environ.pop("FORCE_COLOR", None)
