"""JSON, tables, hits, runs, `Options`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_kb.kb import KnowledgeBase
    from memory_kb.model import WrittenRun


import dataclasses
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import click

from memory_kb.model import Hit, Problem
from memory_kb.text import short_id

if TYPE_CHECKING:
    from pathlib import Path

    from memory_kb.model import ChangeView, EntryView, RunReport, WrittenRun


_SHOWN_PROBLEMS = 10
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\udc80-\udcff]")
#: Bytes of a name that are no UTF-8, as Python holds them.
_BYTE = re.compile(r"[\udc80-\udcff]")
_SNIPPET = 240


def print_json(value: Any) -> None:
    """Print one JSON object on stdout."""
    import json

    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = _BYTE.sub(lambda found: f"\\{_escape(found.group())}", json.dumps(value, ensure_ascii=False, default=str))
    click.echo(text if encoding == "utf8" else json.dumps(json.loads(text)))


def say(message: str) -> None:
    """Talk to the person, on stderr."""
    click.echo(clean(message), err=True)


def clean(text: str) -> str:
    """Return text with its control characters made visible, those that turn round the order of reading too.

    A note may not drive the terminal.

    Example:
        >>> clean("a\\x1b[31mb")
        'a\\\\x1b[31mb'
        >>> clean("a\\u202eb"), clean("caf\\udce9.md")
        ('a\\\\u202eb', 'caf\\\\xe9.md')
    """
    return _CONTROL.sub(lambda found: _escape(found.group()) if found.group() != "\r" else "", text)


def _escape(character: str) -> str:
    code = ord(character)
    code -= 0xDC00 if _BYTE.match(character) else 0
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    """Return text that stays on one line.

    A path may hold a line break, and fake a line of ours.

    Example:
        >>> one_line("a\\nb")
        'a\\\\x0ab'
    """
    return clean(text).replace("\n", "\\x0a")


def use_colour() -> bool:
    """Tell whether stdout is a terminal that wants colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, **how: Any) -> str:
    """Return text in a style, where colour is wanted."""
    return click.style(text, **how) if use_colour() else text


def print_hit(hit: Hit, words: Sequence[str]) -> None:
    """Print one hit of a search: what and where it is, and the part that fits."""
    marks = [hit.kind, hit.scope] + ([] if hit.status in ("active", "compacted") else [hit.status])
    click.echo(
        f"{style(f'{hit.rank:>2}.', dim=True)} {style(clean(hit.title), bold=True)}  {style(f'{hit.score:.3f}', fg='cyan')}"
    )
    click.echo(
        f"    {style(f'{one_line(hit.path)}:{_lines_of(hit)}', fg='green')}  {style(', '.join(marks), dim=True)}  {style(tell_id(hit.id), dim=True)}"
    )
    _print_text(hit, words)


def print_further_hit(hit: Hit, words: Sequence[str]) -> None:
    """Print another hit in the note whose first one stands above it."""
    rank, score = style(f"{hit.rank:>2}.", dim=True), style(f"{hit.score:.3f}", fg="cyan")
    click.echo(f"    {rank} {style(f'lines {_lines_of(hit)}', fg='green')}  {score}")
    _print_text(hit, words)


def _lines_of(hit: Hit) -> str:
    return f"{hit.line}-{hit.end_line}" if hit.end_line > hit.line else str(hit.line)


def _print_text(hit: Hit, words: Sequence[str]) -> None:
    snippet = make_snippet(hit.text, words)
    if snippet:
        click.echo(f"    {highlight(clean(snippet), words)}")
    if hit.copies:
        click.echo(style(f"    also in {', '.join(map(one_line, hit.copies))}", dim=True))
    for line in hit.explanation:
        click.echo(style(f"      {line}", dim=True))


def print_entry_line(entry: EntryView) -> None:
    """Print an entry on one line."""
    status = "" if entry.status in ("active", "compacted") else f" ({entry.status})"
    place = style(f"{one_line(entry.path)}:{entry.line}", fg="green")
    click.echo(f"{style(tell_id(entry.id), dim=True):<8}  {entry.kind:<12} {clean(entry.title)}{status}  {place}")


def tell_id(entry_id: str) -> str:
    """Return an id as short as it stays telling, fit for a terminal."""
    return clean(short_id(entry_id))


def make_snippet(text: str, words: Sequence[str]) -> str:
    """Return the part of a text, on one line, that holds most of the words.

    Example:
        >>> make_snippet("intro " * 60 + "the flaky test " + "outro " * 60, ["flaky"]).count("flaky")
        1
    """
    line = " ".join(text.split())
    if len(line) <= _SNIPPET:
        return line
    places = [found.start() for found in re.finditer(_any_of(words), line, re.IGNORECASE)] if words else []
    start = max(places, key=lambda place: sum(place <= other < place + _SNIPPET for other in places), default=0)
    start = max(0, line.rfind(" ", 0, max(0, start - 40)) + 1) if start > 40 else 0
    piece = line[start : start + _SNIPPET].rsplit(" ", 1)[0]
    return f"{'… ' if start else ''}{piece}{' …' if start + len(piece) < len(line) else ''}"


def highlight(text: str, words: Sequence[str]) -> str:
    """Return a text with the words emphasised, where colour is wanted."""
    if not words or not use_colour():
        return text
    return re.sub(
        _any_of(words), lambda found: click.style(found.group(), fg="yellow", bold=True), text, flags=re.IGNORECASE
    )


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


def print_note_problems(problems: Sequence[Problem]) -> None:
    """Tell what is wrong with notes; of a long list that by which text is lost, and of what sorts the rest is."""
    if len(problems) <= _SHOWN_PROBLEMS:
        print_problems(problems)
        return
    from memory_kb.index.rows import by_loss, count_sorts

    ordered = by_loss(problems)
    print_problems(ordered[:_SHOWN_PROBLEMS])
    rest = ordered[_SHOWN_PROBLEMS:]
    say(f"… and {len(rest):,} more ({count_sorts(rest)}); `memory-kb lint` lists them all")


def print_problems(problems: Sequence[Problem], *, limit: int = _SHOWN_PROBLEMS) -> None:
    """Tell what should be mended.

    A long list is cut and says where the rest is.
    """
    for problem in problems[:limit]:
        say(str(problem))
    if len(problems) > limit:
        say(f"… and {len(problems) - limit:,} more; `memory-kb lint` lists them all")


def print_table(rows: Mapping[str, object]) -> None:
    """Print names and values in two columns."""
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        click.echo(f"{name:<{width}}  {clean(str(value))}")


class FileProgress:
    """A line on stderr that counts files.

    It is shown only to a person and only when it takes a while.
    """

    def __init__(self, word: str = "Indexing") -> None:
        self._word = word
        self._started = self._shown = time.monotonic()
        self._is_shown = False
        self._is_wanted = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, done: int) -> None:
        self._show(f"{self._word} … {done:,} files, {time.monotonic() - self._started:.0f} s ")

    def _show(self, line: str) -> None:
        now = time.monotonic()
        if self._is_wanted and now - self._started > 0.3 and now - self._shown > 0.1:
            self._shown, self._is_shown = now, True
            click.echo(f"\r{line}\x1b[K", nl=False, err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)


class ShareProgress(FileProgress):
    """A bar on stderr that tells what is done of a known whole, and how long the rest will take."""

    def __init__(self, word: str, unit: str) -> None:
        super().__init__(word)
        self._unit = unit
        self._first: tuple[float, int] | None = None

    def report(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        now = time.monotonic()
        self._first = self._first or (now, done)
        began, before = self._first
        left = (now - began) / (done - before) * (total - done) if done > before else None
        filled = round(20 * done / total) if total else 20
        bar = "█" * filled + "·" * (20 - filled)
        self._show(
            f"{self._word} {bar} {done:,} of {total:,} {self._unit}{f', {show_duration(left)} left' if left is not None else ''} "
        )


def show_duration(seconds: float) -> str:
    """Return a duration in words.

    Example:
        >>> show_duration(8.2), show_duration(200), show_duration(8000)
        ('8 s', '3 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


#: So many files are named of what was written.
_MOST_FILES = 3
#: What a run ends with that had to leave files alone.
CONFLICT = 6
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def finish_run(
    options: Options,
    report: RunReport,
    *,
    dry_run: bool,
    told: Mapping[str, Any] | None = None,
    notes: Iterable[str] = (),
    show: Callable[[], object] | None = None,
    nothing: str = "Nothing changed: it is so already.",
) -> int:
    """Print a run in the way that was asked for; return the exit code.

    Args:
        options: whether to print JSON.
        report: the run.
        dry_run: whether to print what would change.
        told: what `--json` says beside the run.
        notes: what a person should know, each in a sentence.
        show: prints what was done; without it every change has a line.
        nothing: said when nothing was changed and there is no `show`.
    """
    if options.as_json:
        for notice in report.notices:
            say(notice)
        print_json({**(told or {}), **run_as_json(report, dry_run=dry_run)})
        return CONFLICT if report.conflicts else 0
    for note in notes:
        say(note)
    if dry_run:
        print_preview(report)
        return end_run(report)
    if show:
        show()
    else:
        for change in report.changes:
            click.echo(_describe(change))
        if not (report.changes or report.conflicts):
            say(nothing)
    if report.run:
        say(f"`memory-kb undo {report.run}` takes this back.")
    return end_run(report)


def _describe(change: ChangeView) -> str:
    to = f" to {one_line(change.to)}" if change.to else ""
    return f"{change.action} {one_line(change.path)}{to}: {clean(change.reason)}"


def run_as_json(report: RunReport, *, dry_run: bool) -> dict[str, Any]:
    """Return a run as the object that `--json` prints."""
    listed = {
        "run": report.run,
        "verb": report.verb,
        "changes": [dataclasses.asdict(change) for change in report.changes],
        "conflicts": [conflict._asdict() for conflict in report.conflicts],
    }
    return listed | ({"dry_run": True, "diff": report.diff} if dry_run else {})


def print_preview(report: RunReport) -> None:
    """Print what a run would change: the reasons on stderr, a unified diff on stdout."""
    for change in report.changes:
        say(f"would {_describe(change)}")
    for line in report.diff.splitlines():
        click.echo(_coloured(clean(line)) if use_colour() else clean(line))
    if not report.changes:
        say("Nothing would change.")


def _coloured(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return click.style(line, bold=True)
    colour = _COLOURS.get(line[:1])
    return click.style(line, fg=colour) if colour else line


def end_run(report: RunReport) -> int:
    """Tell what was mended and what had to be left; return the exit code."""
    for notice in report.notices:
        say(notice)
    for conflict in report.conflicts:
        say(f"left: {conflict.message}")
    return CONFLICT if report.conflicts else 0


def tell_written(runs: Sequence[WrittenRun]) -> list[str]:
    """Return what was written by a command that could not say so, and how it is taken back.

    Example:
        >>> from memory_kb.model import WrittenRun
        >>> tell_written([WrittenRun("3f9a0c12", "learn", ("memory/learnings/a.md",))])
        ['written before that: memory/learnings/a.md', '  `memory-kb undo 3f9a0c12` takes this back']
        >>> tell_written([WrittenRun("69712e00", "undo", ("memory/a.md",), undoes="3f9a0c12")])[0]
        'taken back before that: run 3f9a0c12, memory/a.md'
    """
    broken = [
        f"run {run.run} ({run.verb}) was interrupted; the next command that writes completes it or strikes it out"
        for run in runs
        if not run.is_whole
    ]
    whole = [run for run in runs if run.is_whole]
    if not whole:
        return broken
    files = list(dict.fromkeys(file for run in whole for file in run.files))
    more = f" and {len(files) - _MOST_FILES:,} more" if len(files) > _MOST_FILES else ""
    undone = ", ".join(run.undoes for run in whole if run.undoes)
    what = f"taken back before that: run {undone}, " if undone else "written before that: "
    sessions = {(run.occasion or "").removeprefix("session ") for run in whole}
    way = (
        f"--session {sessions.pop()}"
        if len(sessions) == 1 and whole[0].occasion
        else " ".join(run.run for run in reversed(whole))
    )
    return [
        f"{what}{', '.join(map(one_line, files[:_MOST_FILES]))}{more}",
        f"  `memory-kb undo {way}` takes this back",
        *broken,
    ]


def how_to_look(vault: Path, here: Path | None) -> str:
    """Return the beginning of a sentence on how git shows what was written, new files too; nothing outside of a repository."""
    import shlex

    from memory_kb.store.git_command import find_repository

    top = find_repository(vault)
    if top is None:
        return ""
    is_here = here is not None and vault.is_relative_to(here) and here.is_relative_to(top)
    git = "git" if is_here else f"git -C {shlex.quote(str(vault))}"
    return f"`{git} status -u` lists what was written, `{git} add -N . && {git} diff` shows it; "


@dataclass(slots=True)
class Options:
    """What every verb takes, given before or after its name."""

    vault: str | None = None
    home: str | None = None
    as_json: bool = False
    written: list[WrittenRun] = field(default_factory=list)

    def open(self) -> KnowledgeBase:
        """Open the vault and pass on what its configuration warns of."""
        from memory_kb.kb import KnowledgeBase

        kb = KnowledgeBase.open(self.vault, self.home)
        kb.writer.on_written = self.written.append
        for warning in kb.vault.warnings:
            say(f"warning: {warning}")
        return kb
