"""Run the command: map every error to one sentence, a hint and an exit code.

The commonest command lines, `search WORDS` and `index`, are parsed without click, which is slow to load; every other
one, and whatever is wrong with these, is left to click.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from memory_kb.cli.output import Options, Progress, echo, print_json, print_notes, print_problems, say
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
        hint = "check the name, the permissions and the space on the disk"
        return _fail(explain_refusal(exc), "system", hint, 4, as_json=as_json)
    except Exception as exc:  # noqa: BLE001 - whatever is left is a bug, and is reported as one
        import traceback

        traceback.print_exc()
        hint = "this is a bug in memory-kb; please report it with the lines above"
        return _fail(f"{type(exc).__name__}: {exc}", "bug", hint, 1, as_json=as_json)


def _dispatch(arguments: Sequence[str], options: Options) -> int:
    """Run a verb: the most frequent ones without click, which takes as long to load as they take to work."""
    if "_MEMORY_KB_COMPLETE" not in os.environ and _run_plain(arguments, options):
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


_VALUES = {"--vault": "vault", "--home": "home", "--limit": "limit", "-k": "limit"}


def _run_plain(arguments: Sequence[str], options: Options) -> bool:
    """Run a search without filters, or `index`; return whether the command line says no more than that."""
    words: list[str] = []
    values: dict[str, str] = {}
    left = iter(arguments)
    for word in left:
        if word in _VALUES:
            values[_VALUES[word]] = next(left, "")
        elif not word.startswith("-"):
            words.append(word)
        elif word != "--json":
            return False
    verb, query = words[:1], " ".join(words[1:])
    is_search = verb == ["search"] and bool(query.strip())
    is_index = verb == ["index"] and not query and "limit" not in values
    limit = values.pop("limit", "10")
    if not (is_search or is_index) or not all(values.values()) or not (limit.isdecimal() and 1 <= int(limit) <= 1000):
        return False
    options.vault, options.home, options.as_json = values.get("vault"), values.get("home"), "--json" in arguments
    if is_index:
        index_notes(options)
    else:
        _search(options, query, int(limit))
    return True


def _search(options: Options, query: str, limit: int) -> None:
    from memory_kb.cli.hits import print_found
    from memory_kb.model import PER_ENTRY

    with Progress() as progress:
        per_entry = 0 if options.as_json else PER_ENTRY
        result = options.kb.search(query, limit=limit, per_entry=per_entry, progress=progress)
    print_found(options, result)


def index_notes(options: Options, *, rebuild: bool = False, embed: bool = True) -> None:
    """Bring the index up to date, and print what changed."""
    with Progress() as progress, Progress("Embedding", "passages") as embedding:
        report = options.kb.sync(
            rebuild=rebuild,
            embed=embed,
            progress=progress,
            embed_progress=embedding,
            on_wait=lambda: say("waiting for another process that is indexing …"),
        )
    if options.answer(report._asdict() | {"seconds": round(report.seconds, 3)}):
        return
    print_notes(report.notices)
    print_problems(report.problems)
    counts = f"{report.added:,} added, {report.changed:,} changed, {report.removed:,} removed, {report.unchanged:,} unchanged"
    embedded = f", {report.embedded:,} embedded" if report.embedded else ""
    echo(f"{counts}{embedded} in {report.seconds:.2f} s")
