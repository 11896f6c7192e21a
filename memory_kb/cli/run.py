"""Run the command: map every error to one sentence, a hint and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from memory_kb.cli.output import Options, print_json, say
from memory_kb.errors import MemoryKBError, explain_refusal


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code.

    Errors are one sentence and what to do next.
    """
    options = Options()
    try:
        code = _run(arguments, options)
    except BrokenPipeError:
        raise
    except OSError as exc:
        for line in _describe_written(options):
            exc.add_note(line)
        raise
    for line in _describe_written(options):
        say(line)
    return code


def _describe_written(options: Options) -> Sequence[str]:
    """Return what to say of notes that a verb wrote without coming to its end, where it says what it did."""
    if not options.written:
        return ()
    from memory_kb.cli.runs import describe_written

    return describe_written(options.written)


def _run(arguments: Sequence[str], options: Options) -> int:
    as_json = "--json" in arguments
    _prepare_streams()
    try:
        try:
            return _dispatch(arguments, options)
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
        return _fail(
            explain_refusal(exc),
            "system",
            "check the name, the permissions and the space on the disk",
            4,
            as_json=as_json,
        )
    except Exception as exc:  # noqa: BLE001 - whatever is left is a bug, and is reported as one
        import traceback

        traceback.print_exc()
        return _fail(
            f"{type(exc).__name__}: {exc}",
            "bug",
            "this is a bug in memory-kb; please report it with the lines above",
            1,
            as_json=as_json,
        )


def _dispatch(arguments: Sequence[str], options: Options) -> int:
    """Run a verb: the most frequent ones without click, which takes as long to load as they take to work."""
    if arguments and "_MEMORY_KB_COMPLETE" not in os.environ:
        from memory_kb.cli.plain import follow, read_line

        line = read_line(arguments)
        if line:
            follow(line, options)
            options.written.clear()
            return 0
    from memory_kb.cli.app import call

    return call(arguments, options)


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
