"""Parse the commonest command lines, `search WORDS` and `index`, without click, which is slow to load.

Every other one, and whatever is wrong with these, is left to click.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memory_kb.cli.output import Options, echo, print_note_problems, say
from memory_kb.cli.progress import Progress

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

    with Progress() as progress:
        result = options.kb.search(" ".join(line.words), limit=line.limit, progress=progress)
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
