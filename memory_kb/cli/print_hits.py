"""Search and print the hits, and index and print what changed; click, which is slow to load, is not needed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory_kb.cli.output import (
    Options,
    ProgressLine,
    as_plain,
    dim_id,
    echo,
    format_counts,
    format_place,
    pick,
    print_json,
    print_notes,
    print_problems,
    print_text,
    say,
    style,
    use_colour,
    wrap,
)
from memory_kb.model import PER_ENTRY, Hit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_kb.kb import KnowledgeBase

#: So many lines of a passage are shown, and so many of the further places of a text.
_LINES, _SHOWN_COPIES = 4, 3


def index_and_print(options: Options, *, rebuild: bool = False, embed: bool = True) -> None:
    """Bring the index up to date, and print what changed."""
    with ProgressLine() as progress, ProgressLine("Embedding", "passages") as embedding:
        report = options.kb.sync(
            rebuild=rebuild,
            embed=embed,
            progress=progress,
            embed_progress=embedding,
            on_wait=lambda: say("waiting for another process that is indexing …"),
        )
    if options.printed_as_json(report._asdict() | {"seconds": round(report.seconds, 3)}):
        return
    print_notes(report.notices)
    print_problems(report.problems)
    counts = pick(report, "added", "changed", "removed", "unchanged", *(["embedded"] if report.embedded else []))
    echo(f"{format_counts(counts)} in {report.seconds:.2f} s")


def search_and_print(options: Options, kb: KnowledgeBase, query: str, **filters: Any) -> None:
    """Search, and print what was found."""
    with ProgressLine() as progress:
        result = kb.search(query, per_entry=0 if options.as_json else PER_ENTRY, progress=progress, **filters)
    if options.as_json:
        fields = as_plain(result)
        for hit in fields["hits"]:
            for name in ("explanation", "copies", "vault"):
                if not hit[name]:
                    del hit[name]
        print_json(fields)
        return
    print_notes(result.degraded)
    for hits in result.notes:
        for number, hit in enumerate(hits):
            _print_hit(hit, result.query, is_further=number > 0)
    if not result.hits and (file := filters.get("file")):
        say(f"No entry that answers this applies to {file}.")
    elif not result.hits:
        say("No results. Try other words, or `memory-kb status` to see what is indexed.")


def _print_hit(hit: Hit, query: str, *, is_further: bool) -> None:
    """Print a hit: what and where it is, and some lines of the passage; of a further one in its note only the lines."""
    where = f"{hit.line}-{hit.end_line}" if hit.end_line > hit.line else str(hit.line)
    rank, score = style(f"{hit.rank:>2}.", dim=True), style(f"{hit.score:.3f}", fg="cyan")
    if is_further:
        word = "lines" if hit.end_line > hit.line else "line"
        echo(f"    {rank} {style(f'{word} {where}', fg='green')}  {score}")
    else:
        marks = [hit.kind, hit.scope] + ([] if hit.status in ("active", "compacted") else [hit.status])
        place = format_place(f"{hit.vault}:{hit.path}" if hit.vault else hit.path, where)
        echo(f"{rank} {style(hit.title, bold=True)}  {score}")
        echo(f"    {place}  {style(', '.join(marks), dim=True)}  {dim_id(hit.id)}")
    lines = [line.rstrip() for line in hit.text.splitlines() if line.strip()]
    if lines and lines[0].lstrip("# ") == hit.title:
        del lines[0]
    if lines:
        print_text(_highlight(wrap("\n".join(_choose_lines(lines, query))), query))
    if hit.copies:
        shown = ", ".join(hit.copies[:_SHOWN_COPIES])
        more = ", …" if len(hit.copies) > _SHOWN_COPIES else ""
        echo(style(f"    +{len(hit.copies)} {'copies' if len(hit.copies) > 1 else 'copy'}: {shown}{more}", dim=True))
    for line in hit.explanation:
        echo(style(f"      {line}", dim=True))


def _choose_lines(lines: Sequence[str], query: str) -> list[str]:
    """Return the few lines of a passage that say the most words of a query, the first ones where none say more."""
    from memory_kb.stop_words import stop_words  # a search has it, `index` does without

    words = [word.strip(".,:;!?\"'()") for word in query.casefold().split()]
    stop = stop_words(words)
    # Endings change, and to import what knows them would slow every search down.
    beginnings = {word[: max(4, min(6, len(word) - 2))] for word in words if word and word not in stop}
    said = [{one for one in beginnings if one in line.casefold()} for line in lines]
    last = max(0, len(lines) - _LINES)
    starts = [0, *(min(at, last) for at, found in enumerate(said) if found)]
    start = max(starts, key=lambda start: len(set[str]().union(*said[start : start + _LINES])))
    chosen = list(lines[start : start + _LINES])
    if start > 0:
        chosen.insert(0, "…")
    if start < last:
        chosen.append("…")
    return chosen


def _highlight(text: str, query: str) -> str:
    """Return a text with the words of a query emphasised, where colour is wanted."""
    if not use_colour():
        return text
    from memory_kb.context.highlight import read_query_words

    pieces = enumerate(read_query_words(query).split(text))
    return "".join(style(piece, fg="yellow", bold=True) if number % 2 else piece for number, piece in pieces)
