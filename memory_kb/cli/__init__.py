"""The command line: parse, call the knowledge base, print. No rules of its own.

Every error becomes one sentence, a hint and an exit code here.
"""

from __future__ import annotations

import errno
import gc
import os
import sys

from memory_kb import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from memory_kb.cli.output import Options

#: The options of a command line that is run without click.
_VALUES = {"--vault": "vault", "--home": "home", "--limit": "limit", "-k": "limit"}


def main() -> NoReturn:
    """Run the command and leave with its exit code; Ctrl-C ends with 130 even while starting."""
    # A command makes little garbage that counting references does not free; what is loaded before is searched for it.
    gc.set_threshold(100_000)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process
    try:
        if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
            from memory_kb.cli.hook import answer_hook, read_hook_arguments

            answer_hook(read_hook_arguments(sys.argv[2:]))
            os._exit(0)
        if sys.argv[1:3] == ["git", "merge-file"] and not {"-h", "--help"}.intersection(sys.argv):
            from memory_kb.git.merge_driver import run_merge_driver

            os._exit(run_merge_driver(sys.argv[3:]))
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
        import contextlib

        with contextlib.suppress(OSError):
            os.write(2, f"memory-kb: the output cannot be written: {exc.strerror}\n".encode())
        code = 4
    # Everything is closed and flushed; taking the interpreter apart would cost a sixth of a search.
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code; an error is one sentence, and what to do next."""
    from memory_kb.cli.output import Options
    from memory_kb.errors import MemoryKBError, explain_refusal

    options = Options()
    as_json = "--json" in arguments
    for stream in (sys.stdout, sys.stderr):  # no text of a note can make printing it fail
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if os.environ.get("NO_COLOR"):
        os.environ.pop("FORCE_COLOR", None)
    try:
        try:
            if "_MEMORY_KB_COMPLETE" not in os.environ and _run_plain(arguments, options):
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
        return _fail(explain_refusal(exc), "unreadable", hint, 4, as_json=as_json)
    except Exception as exc:  # noqa: BLE001 - whatever is left is a bug, and is reported as one
        import traceback

        from memory_kb.cli.output import echo

        for line in traceback.format_exc().splitlines():
            echo(line, err=True)
        hint = "this is a bug in memory-kb; please report it with the lines above"
        return _fail(f"{type(exc).__name__}: {exc}", "bug", hint, 1, as_json=as_json)


def split_plain(arguments: Sequence[str], options: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the words of a command line without `--json`, and the values of some options by their names.

    Example:
        >>> split_plain(["prompt", "--agent", "codex", "--vault=/notes"], {"--agent": "agent", "--vault": "vault"})
        (['prompt'], {'agent': 'codex', 'vault': '/notes'})
    """
    words: list[str] = []
    values: dict[str, str] = {}
    left = iter(arguments)
    for word in left:
        name, is_given, value = word.partition("=")
        if name in options:
            values[options[name]] = value if is_given else next(left, "")
        elif word != "--json":
            words.append(word)
    return words, values


def _run_plain(arguments: Sequence[str], options: Options) -> bool:
    """Run a search without filters, or `index`, without click, which is slow to load; return whether it was one.

    Every other command line, and whatever is wrong with these, is left to click.
    """
    words, values = split_plain(arguments, _VALUES)
    if any(word.startswith("-") for word in words):
        return False
    verb, query = words[:1], " ".join(words[1:])
    is_search = verb == ["search"] and bool(query.strip())
    is_index = verb == ["index"] and not query and "limit" not in values
    limit = values.pop("limit", "10")
    if not (is_search or is_index) or not all(values.values()) or not (limit.isdecimal() and 1 <= int(limit) <= 1000):
        return False
    from memory_kb.cli.print_hits import index_and_print, search_and_print

    options.vault, options.home, options.as_json = values.get("vault"), values.get("home"), "--json" in arguments
    if is_index:
        index_and_print(options)
    else:
        search_and_print(options, options.kb, query, limit=int(limit))
    return True


def _fail(message: str, code: str, hint: str | None, exit_code: int, *, as_json: bool) -> int:
    from memory_kb.cli.output import print_json, say

    if as_json:
        print_json({"error": message, "code": code, "hint": hint})
    else:
        say(f"memory-kb: {message}")
        if hint:
            say(f"  {hint}")
    return exit_code
