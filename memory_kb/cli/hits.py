"""Print the hits of a search, as text with emphasised words or as JSON."""

from __future__ import annotations

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
    for reason in result.degraded:
        say(f"note: {reason}")
    notes: dict[tuple[str | None, str, str], list[Hit]] = {}
    for hit in result.hits:
        notes.setdefault((hit.vault, hit.path, hit.title), []).append(hit)
    for first, *others in notes.values():
        print_hit(first, result.query)
        for hit in others:
            print_further_hit(hit, result.query)
    if not result.hits and file:
        say(f"No entry's applies_to covers {one_line(file)}{' and says that' if result.query.strip() else ''}.")
    elif not result.hits:
        say("No results. Try other words, or `memory-kb status` to see what is indexed.")


def print_hit(hit: Hit, query: str) -> None:
    """Print one hit of a search: what and where it is, and how the passage begins."""
    marks = [hit.kind, hit.scope] + ([] if hit.status in ("active", "compacted") else [hit.status])
    echo(
        f"{style(f'{hit.rank:>2}.', dim=True)} {style(clean(hit.title), bold=True)}  {style(f'{hit.score:.3f}', fg='cyan')}"
    )
    place = f"{hit.vault}:{hit.path}" if hit.vault else hit.path
    echo(
        f"    {style(f'{one_line(place)}:{_lines_of(hit)}', fg='green')}  {style(', '.join(marks), dim=True)}  {style(format_id(hit.id), dim=True)}"
    )
    _print_text(hit, query)


def print_further_hit(hit: Hit, query: str) -> None:
    """Print another hit in the note whose first one is above it."""
    rank, score = style(f"{hit.rank:>2}.", dim=True), style(f"{hit.score:.3f}", fg="cyan")
    lines = f"{'lines' if hit.end_line > hit.line else 'line'} {_lines_of(hit)}"
    echo(f"    {rank} {style(lines, fg='green')}  {score}")
    _print_text(hit, query)


def _lines_of(hit: Hit) -> str:
    return f"{hit.line}-{hit.end_line}" if hit.end_line > hit.line else str(hit.line)


def _print_text(hit: Hit, query: str) -> None:
    lines = [line.rstrip() for line in hit.text.splitlines() if line.strip()]
    if lines and lines[0].lstrip("# ") == hit.title:
        del lines[0]
    if lines:
        rest = ["…"] if len(lines) > _LINES else []
        echo(highlight(wrap(clean("\n".join(lines[:_LINES] + rest))), query))
    if hit.copies:
        shown = ", ".join(map(one_line, hit.copies[:_SHOWN_COPIES]))
        more = ", …" if len(hit.copies) > _SHOWN_COPIES else ""
        echo(style(f"    +{len(hit.copies)} {'copies' if len(hit.copies) > 1 else 'copy'}: {shown}{more}", dim=True))
    for line in hit.explanation:
        echo(style(f"      {line}", dim=True))


def highlight(text: str, query: str) -> str:
    """Return a text with the words of a query emphasised, where colour is wanted."""
    if not use_colour():
        return text
    from memory_kb.web.highlight import mark

    return "".join(style(one.text, fg="yellow", bold=True) if one.is_hit else one.text for one in mark(text, query))
