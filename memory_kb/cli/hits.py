"""Print the hits of a search, as text with emphasised words or as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_kb.cli.output import (
    Options,
    as_plain,
    clean,
    echo,
    format_id,
    one_line,
    print_json,
    say,
    style,
    use_colour,
    wrap,
)

if TYPE_CHECKING:
    from memory_kb.model import Hit, SearchResult

_SNIPPET = 240
#: Less room than this shows nothing of a further line.
_LEAST_PIECE = 60
#: So many lines of a passage are shown.
_LINES = 4
#: So many of the further places of a text are named.
_SHOWN_COPIES = 3


def print_found(options: Options, result: SearchResult, file: str | None = None) -> None:
    """Print the hits of a search, which may have been one for what covers a file."""
    if options.as_json:
        fields = as_plain(result)
        for hit in fields["hits"]:
            for name in ("explanation", "copies", "vault"):
                if not hit[name]:
                    del hit[name]
        print_json(fields)
        return
    from memory_kb.search.query import parse_words

    words = [word.strip('"') for word in parse_words(result.query).terms]
    for reason in result.degraded:
        say(f"note: {reason}")
    notes: dict[tuple[str | None, str, str], list[Hit]] = {}
    for hit in result.hits:
        notes.setdefault((hit.vault, hit.path, hit.title), []).append(hit)
    for first, *others in notes.values():
        print_hit(first, words)
        for hit in others:
            print_further_hit(hit, words)
    if not result.hits and file:
        say(f"No entry's applies_to covers {one_line(file)}{' and says that' if result.query.strip() else ''}.")
    elif not result.hits:
        say("No results. Try other words, or `memory-kb status` to see what is indexed.")


def print_hit(hit: Hit, words: Sequence[str]) -> None:
    """Print one hit of a search: what and where it is, and the part that fits."""
    marks = [hit.kind, hit.scope] + ([] if hit.status in ("active", "compacted") else [hit.status])
    echo(
        f"{style(f'{hit.rank:>2}.', dim=True)} {style(clean(hit.title), bold=True)}  {style(f'{hit.score:.3f}', fg='cyan')}"
    )
    place = f"{hit.vault}:{hit.path}" if hit.vault else hit.path
    echo(
        f"    {style(f'{one_line(place)}:{_lines_of(hit)}', fg='green')}  {style(', '.join(marks), dim=True)}  {style(format_id(hit.id), dim=True)}"
    )
    _print_text(hit, words)


def print_further_hit(hit: Hit, words: Sequence[str]) -> None:
    """Print another hit in the note whose first one is above it."""
    rank, score = style(f"{hit.rank:>2}.", dim=True), style(f"{hit.score:.3f}", fg="cyan")
    echo(f"    {rank} {style(_at_lines(hit), fg='green')}  {score}")
    _print_text(hit, words)


def _at_lines(hit: Hit) -> str:
    return f"{'lines' if hit.end_line > hit.line else 'line'} {_lines_of(hit)}"


def _lines_of(hit: Hit) -> str:
    return f"{hit.line}-{hit.end_line}" if hit.end_line > hit.line else str(hit.line)


def _print_text(hit: Hit, words: Sequence[str]) -> None:
    snippet = make_snippet(hit.text, words)
    if snippet and snippet.lstrip("# ") != hit.title:
        echo(highlight(wrap(clean(snippet)), words))
    if hit.copies:
        shown = ", ".join(map(one_line, hit.copies[:_SHOWN_COPIES]))
        more = ", …" if len(hit.copies) > _SHOWN_COPIES else ""
        echo(style(f"    +{len(hit.copies)} {'copies' if len(hit.copies) > 1 else 'copy'}: {shown}{more}", dim=True))
    for line in hit.explanation:
        echo(style(f"      {line}", dim=True))


def make_snippet(text: str, words: Sequence[str]) -> str:
    r"""Return the lines of a text that hold most of the words, at most four of them.

    Of one long line it is the part that holds most of them.

    Example:
        >>> make_snippet("# Tea\n\n## Steps\n\n1. Boil water.\n2. Wait.\n\nThen\ndrink.", ["water"])
        '## Steps\n1. Boil water.\n2. Wait.\nThen\n…'
        >>> make_snippet("intro " * 60 + "the flaky test " + "outro " * 60, ["flaky"]).count("flaky")
        1
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    # Of headings, the one right above a text is enough.
    lines = [
        line
        for line, below in zip(lines, [*lines[1:], ""], strict=False)
        if not (_is_heading(line) and _is_heading(below))
    ]
    weights = [len({word.casefold() for word in re.findall(_any_of(words), line, re.IGNORECASE)}) for line in lines]
    weights = weights if words else [0] * len(lines)
    best = max(range(len(lines)), key=lambda at: (sum(weights[at : at + _LINES]), weights[at] > 0), default=0)
    best -= best > 0 and _is_heading(lines[best - 1])
    shown: list[str] = []
    room = _SNIPPET
    for line in lines[best : best + _LINES]:
        if room < _LEAST_PIECE:
            break
        shown.append(_cut_line(line, words, room))
        room -= len(shown[-1])
    return "\n".join(shown + ["…"] * (best + len(shown) < len(lines)))


def _is_heading(line: str) -> bool:
    return line.startswith("#")


def _cut_line(line: str, words: Sequence[str], room: int) -> str:
    if len(line) <= room:
        return line
    places = [found.start() for found in re.finditer(_any_of(words), line, re.IGNORECASE)] if words else []
    start = max(places, key=lambda place: sum(place <= other < place + room for other in places), default=0)
    start = max(0, line.rfind(" ", 0, max(0, start - 40)) + 1) if start > 40 else 0
    piece = line[start : start + room].rsplit(" ", 1)[0]
    return f"{'… ' if start else ''}{piece}{' …' if start + len(piece) < len(line) else ''}"


def highlight(text: str, words: Sequence[str]) -> str:
    """Return a text with the words emphasised, where colour is wanted."""
    if not words or not use_colour():
        return text
    return re.sub(_any_of(words), lambda found: style(found.group(), fg="yellow", bold=True), text, flags=re.IGNORECASE)


def _any_of(words: Sequence[str]) -> str:
    """Return an expression for words and their inflections.

    Long words match by their beginning.
    """
    stems = sorted({word if len(word) < 5 else word[: max(4, len(word) - 2)] for word in words}, key=len, reverse=True)
    return (
        r"(?<!\w)(?:" + "|".join(map(re.escape, stems)) + r")\w*"
        if all(word.isascii() for word in words)
        else "|".join(map(re.escape, words))
    )
