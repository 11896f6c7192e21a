"""The options that several verbs share, and how a text is read from stdin."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from memory_kb.cli.app import option, shared, together
from memory_kb.cli.output import Options
from memory_kb.errors import UsageError

_F = TypeVar("_F", bound=Callable[..., Any])

#: Which vaults of the team's index are searched in place of the one here.
vaults_option = click.option(
    "--vaults",
    metavar="NAMES",
    callback=lambda _, __, names: tuple(name.strip() for name in names.split(",") if name.strip()) if names else (),
    help="Search these vaults of the team's index, with commas between them, or all.",
)


def dry_run_option(help: str = "Show what would change, write nothing.") -> Callable[[_F], _F]:
    """Add `--dry-run`."""
    return shared("--dry-run", "dry_run", help, is_flag=True)


def tag_option() -> Callable[[_F], _F]:
    """Add `--tag`, any number of times."""
    return option("--tag tags", "A tag; may be given several times.", many=True, metavar="TAG")


def job_options(what: str = "it") -> Callable[[_F], _F]:
    """Add `--job` and `--task`, which say what an entry is kept with."""
    return together(
        option("--job", f"Keep {what} with this job."), option("--task", f"Keep {what} with this task of --job.")
    )


def place_options(where: str = "Where it holds.", what: str = "it") -> Callable[[_F], _F]:
    """Add `--scope`, `--job` and `--task`, which say where an entry is kept."""
    scope = option("--scope", where, choice=("project", "global"), default="project")
    return together(scope, job_options(what))


def hide_options(what: str) -> Callable[[_F], _F]:
    """Add `--job` and `--task`, which hide what other jobs and tasks have."""
    return together(
        option("--job", f"Hide the {what} of other jobs."),
        option("--task", f"Hide the {what} of other tasks of --job."),
    )


class Day(click.ParamType[Any]):
    """The type of an option that is a day."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the day that a text names."""
        from memory_kb.text import parse_date

        day = parse_date(value)
        if day is None:
            self.fail(f"{value!r} is not a date such as 2026-03-01", param, ctx)
        return day


def limit_option(help: str, default: int = 10, least: int = 0, most: int | None = None) -> Callable[[_F], _F]:
    """Add `--limit`, short `-k`."""
    return option("-k --limit", help, type=click.IntRange(least, most), default=default)


def text_argument(words: Sequence[str], most: int = -1, errors: str = "surrogateescape") -> str:
    """Return the words of an argument as a text; a single - is what stdin holds, `most` bytes of it at the most."""
    if tuple(words) == ("-",):
        return sys.stdin.buffer.read(most).decode("utf-8", errors) if sys.stdin else ""
    return " ".join(words)


def is_terminal() -> bool:
    """Return whether a person sees what is typed and what comes of it."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())


def _allow_secret(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not is_terminal():
        raise UsageError(
            "--allow-secret works on a terminal only", "a person must see what is stored; edit the file instead"
        )
    ctx.ensure_object(Options).allow_secret = value


#: Only a person at a terminal may give it.
allow_secret_option = option(
    "--allow-secret",
    "Store what only looks like a credential; on a terminal alone.",
    is_flag=True,
    callback=_allow_secret,
    expose_value=False,
)


def need_extra(extra: str, what: str, *modules: str) -> None:
    """Raise UsageError where modules of an extra are not installed."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        problem = f"{what} needs {', '.join(missing)}, not installed here"
        raise UsageError(problem, f'run: pip install "memory-kb[{extra}]"')
