"""Print text made fit for a terminal, JSON, tables and progress; the `Options` that all commands share."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from memory_kb.lazy_regex import lazy_regex
from memory_kb.text import pluralize, short_id

if TYPE_CHECKING:
    from memory_kb.kb import KnowledgeBase
    from memory_kb.model import Problem
    from memory_kb.reports import EntryView

#: The most problems and findings that are printed one by one.
_SHOWN_PROBLEMS, _SHOWN_FINDINGS = 10, 50
#: Exit codes of a verb that had to leave files alone, and of one that found something to fix.
CONFLICT, FINDINGS = 6, 7
_CONTROL = lazy_regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_CODES = {"red": 31, "green": 32, "yellow": 33, "cyan": 36}
#: What `style` writes in the place of an escape character; no note can know it.
_ESCAPE = f"\x1b{os.urandom(8).hex()}"


def clean(text: str) -> str:
    """Return text with its control characters made visible, those that turn round the order of reading too.

    A note may not drive the terminal.

    Example:
        >>> clean("a\\x1b[31mb")
        'a\\\\x1b[31mb'
        >>> clean("a\\u202eb")
        'a\\\\u202eb'
    """
    return _CONTROL.sub(_escape, text.replace("\r", ""))


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    """Return clean text that stays on one line.

    A path may hold a line break, and fake a line of ours.

    Example:
        >>> one_line("a\\nb")
        'a\\\\x0ab'
    """
    return clean(text).replace("\n", "\\x0a")


def write(data: str, *, err: bool = False) -> None:
    """Write data for another program at once, as it is, on stdout or on stderr."""
    stream = sys.stderr if err else sys.stdout
    stream.write(data)
    stream.flush()


def echo(line: str = "", *, err: bool = False) -> None:
    """Print a line; what a note holds cannot drive the terminal or break it, what `style` returned is drawn."""
    write("\x1b[".join(map(one_line, line.split(_ESCAPE))) + "\n", err=err)


def print_text(text: str) -> None:
    """Print a text of several lines as `echo` prints one."""
    write("\x1b[".join(map(clean, text.rstrip("\n").split(_ESCAPE))) + "\n")


def say(message: str) -> None:
    """Talk to the person, on stderr; further lines are indented, so that no name of a file fakes a line of ours."""
    for line in message.replace("\n", "\n  ").split("\n"):
        echo(line, err=True)


def use_colour() -> bool:
    """Return whether stdout is a terminal that wants colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, *, fg: str | None = None, bold: bool = False, dim: bool = False) -> str:
    """Return text for `echo` in a style, where colour is wanted."""
    codes = [code for code, is_wanted in ((_CODES.get(fg or ""), fg), (1, bold), (2, dim)) if is_wanted]
    if not codes or not use_colour():
        return text
    return "".join(f"{_ESCAPE}{code}m" for code in codes) + f"{text}{_ESCAPE}0m"


def dim_id(entry_id: str, width: int = 0) -> str:
    """Return a shortened id in a column of some width."""
    return style(f"{short_id(entry_id):<{width}}", dim=True)


def format_place(path: str, line: int | str) -> str:
    """Return where something is in a file."""
    return style(f"{path}:{line}", fg="green")


def format_counts(counts: Mapping[str, int]) -> str:
    """Return numbers with what they count.

    Example:
        >>> format_counts({"added": 1200, "removed": 0})
        '1,200 added, 0 removed'
    """
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())


def wrap(text: str, indent: int = 4) -> str:
    """Return clean lines, indented and on a terminal wrapped; what goes on hangs below the text of its list item."""
    text = clean(text)
    if not sys.stdout.isatty():
        return "".join(" " * indent * bool(line.strip()) + line for line in text.splitlines(keepends=True))
    import shutil
    import textwrap

    width = max(40, min(110, shutil.get_terminal_size().columns))
    lines: list[str] = []
    for line in text.split("\n"):
        marker = re.match(r"\s*(?:(?:[-*+]|\d+[.)])\s+)?", line)
        first, rest = " " * indent, " " * (indent + (marker.end() if marker else 0))
        wrapped = textwrap.wrap(
            line, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
        )
        lines += wrapped or [""]
    return "\n".join(lines)


def as_plain(value: Any) -> Any:
    """Return a report as mappings and lists, as every `--json` prints it.

    Example:
        >>> from memory_kb.model import Problem
        >>> as_plain({"problems": (Problem("a.md", 3, "no title"),)})
        {'problems': [{'path': 'a.md', 'line': 3, 'message': 'no title'}]}
    """
    if isinstance(value, str | int | float | None):
        return value
    names = getattr(value, "_fields", None) or getattr(value, "__dataclass_fields__", None)
    if names:
        return {name: as_plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(name): as_plain(one) for name, one in value.items()}
    return [as_plain(one) for one in value] if isinstance(value, tuple | list) else value


def pick(value: Any, *names: str) -> dict[str, Any]:
    """Return some of what a report holds, properties among them, for `--json`.

    Example:
        >>> from memory_kb.model import Problem
        >>> pick(Problem("a.md", 3, "no title"), "path", "line")
        {'path': 'a.md', 'line': 3}
    """
    return {name: getattr(value, name) for name in names}


def print_json(value: Any) -> None:
    """Print one JSON object on stdout; no note that it quotes can drive the terminal."""
    import json

    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = json.dumps(as_plain(value), ensure_ascii=False, default=str)
    text = _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    write(f"{text if encoding == 'utf8' else json.dumps(json.loads(text))}\n")


def print_entry_line(entry: EntryView, width: int = 8) -> None:
    """Print an entry on one line, its id in a column of some width."""
    status = "" if entry.status in ("active", "compacted") else f" ({entry.status})"
    place = format_place(entry.path, entry.line)
    echo(f"{dim_id(entry.id, width)}  {entry.kind:<12} {entry.title}{status}  {place}")


def print_problems(problems: Sequence[Problem], rest: str = "; `memory-kb lint` lists them all") -> None:
    """Say what should be fixed; of a long list only the beginning, and where the rest is.

    What loses text comes before words that are not known.
    """
    groups = _group_unknown_words(sorted(problems, key=lambda one: one.is_unknown_word))
    for group in groups[:_SHOWN_PROBLEMS]:
        say(_describe_group(group))
    left = sum(map(len, groups[_SHOWN_PROBLEMS:]))
    if left:
        say(f"… and {left:,} more{rest}")


def print_notes(notes: Iterable[str]) -> None:
    """Print the notices about an answer on stderr."""
    for note in notes:
        say(f"note: {note}")


def print_findings(options: Options, problems: Sequence[Problem], fields: Any = None, *, whole: bool = True) -> int:
    """Print all findings, or only the first and each unknown word once; return the exit code.

    With `--json` these are the `fields`, or the findings alone.
    """
    code = FINDINGS if problems else 0
    if options.printed_as_json(fields or {"problems": problems}):
        return code
    groups = [[problem] for problem in problems] if whole else _group_unknown_words(problems)
    shown = groups if whole else groups[:_SHOWN_FINDINGS]
    for group in shown:
        echo(_describe_group(group))
    left = len(problems) - sum(map(len, shown))
    if left:
        say(f"… and {left:,} more; --all lists them all")
    elif len(shown) < len(problems):
        say("--all lists every place")
    say(pluralize(len(problems), "finding") if problems else "Nothing to fix.")
    return code


def _group_unknown_words(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Return problems in their order, those of one word that is not known together."""
    groups: dict[object, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(problem.message if problem.is_unknown_word else problem, []).append(problem)
    return list(groups.values())


def _describe_group(group: Sequence[Problem]) -> str:
    others = len(group) - 1
    return f"{group[0]} (and in {pluralize(others, 'more place')})" if others else str(group[0])


def print_rows(
    rows: Iterable[Sequence[object]], styles: Sequence[Mapping[str, Any]] = (), *, numbers: bool = False
) -> None:
    """Print rows in aligned columns, each in a style; with `numbers` all but the first are aligned to the right."""
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    looks = (*styles, *({},) * len(widths))
    for row in cells:
        last = max((at for at, cell in enumerate(row) if cell), default=0)
        shown = list[str]()
        for at, cell in enumerate(row[: last + 1]):
            width = widths[at] if numbers or at < last else 0
            shown.append(style(cell.rjust(width) if numbers and at else cell.ljust(width), **looks[at]))
        echo("  ".join(shown))


def print_listing(
    options: Options, fields: Any, rows: Iterable[Sequence[object]], empty: str, notes: Iterable[str] = ()
) -> None:
    """Print a list: as JSON where that is asked for, else in columns, or a sentence where there is nothing."""
    if options.printed_as_json(fields):
        return
    listed = list(rows)
    print_rows(listed, [{"fg": "green"}])
    if not listed:
        say(empty)
    print_notes(notes)


def print_document(options: Options, fields: Any, text: str, empty: str, notes: Iterable[str] = ()) -> None:
    """Print a text: as JSON where that is asked for, or a sentence where there is none."""
    if options.printed_as_json(fields):
        return
    if text:
        print_text(text)
    else:
        say(empty)
    print_notes(notes)


def print_table(rows: Mapping[str, object]) -> None:
    """Print names and values in two columns, without the names that have none."""
    print_rows([(name, value) for name, value in rows.items() if value not in (None, "")], [{"dim": True}])


class Options:
    """What every verb takes, given before or after its name."""

    def __init__(self) -> None:
        self.vault: str | None = None
        self.home: str | None = None
        self.as_json = False
        self.dry_run = False
        self.allow_secret = False
        self._kb: KnowledgeBase | None = None

    def printed_as_json(self, value: Any) -> bool:
        """Print a value as JSON if `--json` was given; return whether it was printed."""
        if self.as_json:
            print_json(value)
        return self.as_json

    @property
    def kb(self) -> KnowledgeBase:
        """The knowledge base, opened when it is first asked for; what its configuration warns of is passed on."""
        if self._kb is None:
            from memory_kb.kb import KnowledgeBase

            self._kb = KnowledgeBase.open(self.vault, self.home, allow_secret=self.allow_secret)
            for warning in self._kb.vault.warnings:
                say(f"warning: {warning}")
        return self._kb

    def close(self) -> None:
        if self._kb is not None:
            self._kb.close()


#: Seconds between two states: on one line of a terminal, and as lines of a log.
_PAUSE, _LOG_PAUSE = 0.1, 10.0
#: What takes less, in seconds, is not worth a line.
_SOON = 0.3


class ProgressLine:
    """What is done, of how much and how fast: a line that changes on a terminal, elsewhere one every ten seconds."""

    def __init__(self, word: str = "Indexing", unit: str = "files") -> None:
        self._word, self._unit = word, unit
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = time.monotonic() + (_SOON - _PAUSE if self._is_terminal else 0)
        self._first: tuple[float, int] | None = None
        self._is_shown = False

    def __call__(self, done: int, total: int = 0) -> None:
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)
        if sys.stderr is None or now - self._shown < (_PAUSE if self._is_terminal else _LOG_PAUSE):
            return
        self._shown, self._is_shown = now, True
        state = describe_progress(done, total, self._unit, (done - before) / (now - began) if now > began else 0.0)
        if self._is_terminal:
            write(f"\r{self._word} {state} \x1b[K", err=True)
        else:
            echo(f"{self._word} {state}", err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Clear the line on a terminal, so that something else can be printed."""
        if self._is_shown and self._is_terminal:
            write("\r\x1b[K", err=True)
        self._is_shown = False


def describe_progress(done: int, total: int, unit: str, rate: float) -> str:
    """Return how far work has come, at a rate by the second.

    Example:
        >>> describe_progress(640, 0, "files", 320.4)
        '… 640 files, 320 a second'
        >>> describe_progress(600, 1200, "passages", 3.0)
        '██████████·········· 600 of 1,200 passages, 3 a second, 0:03:20 left'
    """
    from datetime import timedelta

    speed = f", {rate:,.0f} a second" if rate >= 1 else ""
    if not total:
        return f"… {done:,} {unit}{speed}"
    filled = round(20 * done / total)
    left = f", {timedelta(seconds=round((total - done) / rate))} left" if rate else ""
    return f"{'█' * filled}{'·' * (20 - filled)} {done:,} of {total:,} {unit}{speed}{left}"
