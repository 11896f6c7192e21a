"""Run the command: map every error to one sentence, a hint and an exit code.

The commonest command lines, `search WORDS` and `index`, are parsed without click, which is slow to load; every other
one, and whatever is wrong with these, is left to click.
"""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import errno
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from memory_kb.cli.output import Options, Progress, echo, print_json, print_note_problems, say
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
        line = read_line(arguments)
        if line:
            follow(line, options)
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
_LIMITS = range(1, 1001)


class PlainCommand(NamedTuple):
    """A command line that needs no parser."""

    verb: str
    words: tuple[str, ...]
    limit: int
    vault: str | None
    home: str | None
    as_json: bool


def read_line(arguments: Sequence[str]) -> PlainCommand | None:
    """Return what a plain command line says; None for any other.

    Example:
        >>> read_line(["search", "flaky", "tests", "-k", "3"])
        PlainCommand(verb='search', words=('flaky', 'tests'), limit=3, vault=None, home=None, as_json=False)
        >>> read_line(["search", "flaky", "--kind", "rule"]), read_line(["index", "--rebuild"]), read_line(["search", "-x"])
        (None, None, None)
    """
    words: list[str] = []
    values: dict[str, str] = {}
    as_json = False
    left = iter(arguments)
    for word in left:
        if word == "--json":
            as_json = True
        elif word in _VALUES:
            values[_VALUES[word]] = next(left, "")
        elif word.startswith("-"):
            return None
        else:
            words.append(word)
    verb, *words = words or [""]
    limit = values.pop("limit", "10" if verb == "search" else "")
    is_plain = (
        (limit.isdecimal() and int(limit) in _LIMITS and any(map(str.strip, words)))
        if verb == "search"
        else verb == "index" and not words and not limit
    )
    if not is_plain or not all(values.values()):
        return None
    return PlainCommand(verb, tuple(words), int(limit or 0), values.get("vault"), values.get("home"), as_json)


def follow(line: PlainCommand, options: Options) -> None:
    """Do what a plain command line says."""
    options.vault, options.home, options.as_json = line.vault, line.home, line.as_json
    if line.verb == "index":
        index_notes(options)
        return
    from memory_kb.cli.hits import print_found
    from memory_kb.model import PER_ENTRY

    with Progress() as progress:
        result = options.kb.search(
            " ".join(line.words), limit=line.limit, per_entry=0 if line.as_json else PER_ENTRY, progress=progress
        )
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
    for notice in report.notices:
        say(f"note: {notice}")
    print_note_problems(report.problems)
    counts = f"{report.added:,} added, {report.changed:,} changed, {report.removed:,} removed, {report.unchanged:,} unchanged"
    embedded = f", {report.embedded:,} embedded" if report.embedded else ""
    echo(f"{counts}{embedded} in {report.seconds:.2f} s")
