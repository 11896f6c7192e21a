"""The `memory-kb` command group: its subcommands, the options that several of them share, and how they end."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from memory_kb import __version__
from memory_kb.cli.output import Options, print_text
from memory_kb.errors import UsageError

_F = TypeVar("_F", bound=Callable[..., Any])

#: The verbs by what they are for.
_SECTIONS = {
    "Every day": "init learn search show list context forget undo status serve install import",
    "Notes": "links rename supersede stats why-not eval benefit",
    "Sessions and what they teach": "session capture extract reflect episode diary premortem assume",
    "Rules and skills": "rules outcome review sweep skills procedure",
    "Work in progress": "ledger handoff continuity stage",
    "Looking after it": ("consolidate maintain reinforce promote compact contradictions cite verify exposure"),
    "The index": "index watch doctor lint model cache",
    "Other programs": "uninstall bridge hook mcp lsp git commit ci export completion",
}
#: The modules of this package and the verbs that each of them defines.
_MODULES = {
    "agents": "install uninstall bridge hook export completion",
    "entries": "init learn forget rename supersede import",
    "evaluate": "ci eval benefit",
    "git": "undo git commit",
    "index": "status index watch doctor lint model cache",
    "learning": "capture extract reflect episode diary",
    "maintenance": "stage consolidate maintain reinforce promote compact contradictions",
    "review": "outcome review exposure cite verify",
    "rules": "rules sweep skills procedure",
    "search": "search show list context links stats why-not",
    "servers": "serve mcp lsp",
    "sessions": "session",
    "working": "ledger handoff continuity premortem assume",
}
_MODULE_OF = {verb: module for module, verbs in _MODULES.items() for verb in verbs.split()}
_VERBS = tuple(verb for verbs in _SECTIONS.values() for verb in verbs.split())
_ALIASES = {"add": "learn", "remember": "learn", "recall": "search", "retrieve": "search"}


class Family(click.Group):
    """A group of verbs, each with its whole summary; without one of them it runs the verb `alone`."""

    def __init__(self, *args: Any, alone: str | None = None, **words: Any) -> None:
        super().__init__(*args, **words)
        self._alone = alone

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the verb `alone` before options that follow no verb."""
        asks_help = {"-h", "--help"}.intersection(args)
        if self._alone and not asks_help and (not args or args[0].startswith("-")) and not {*args} & {*self.commands}:
            args = [self._alone, *args]
        return super().parse_args(ctx, args)

    def sections(self, ctx: click.Context) -> Mapping[str, Iterable[str]]:
        return {"Commands": self.list_commands(ctx)}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every verb with its summary, wrapped instead of cut."""
        for section, verbs in self.sections(ctx).items():
            commands = [(verb, command) for verb in verbs if (command := self.get_command(ctx, verb))]
            shown = [(verb, command.get_short_help_str(10_000)) for verb, command in commands if not command.hidden]
            with formatter.section(section):
                formatter.write_dl(shown, col_max=14)


class _Verbs(Family):
    """A group that loads the module of a verb when it is used, since starting fast is a feature."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        name = _ALIASES.get(cmd_name, cmd_name)
        if name not in _VERBS:
            return None
        module = importlib.import_module(f"memory_kb.cli.{_MODULE_OF[name]}")
        command = getattr(module, f"{name.replace('-', '_')}_verb")
        assert isinstance(command, click.Command)
        return command

    def sections(self, ctx: click.Context) -> Mapping[str, Iterable[str]]:  # noqa: ARG002 - it has more than one
        return {section: verbs.split() for section, verbs in _SECTIONS.items()}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            import difflib

            near = difflib.get_close_matches(args[0], [*_VERBS, *_ALIASES], 1)
            raise click.UsageError(f"No such command {args[0]!r}.{f' Did you mean {near[0]!r}?' if near else ''}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        return (command.name if command else name), command, rest


def verb(
    name: str, family: click.Group | None = None, *, dry_run: bool | str = False, allow_secret: bool = False, **how: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a verb, or one of a family: it takes the shared options, and is given the `Options`.

    Args:
        dry_run: whether it takes `--dry-run`, or the help of that.
        allow_secret: whether it takes `--allow-secret`.
    """

    def make(function: Callable[..., Any]) -> click.Command:
        command: click.Command = (family or click).command(name, **how)(click.pass_obj(function))
        if allow_secret:
            command.params.append(_ALLOW_SECRET)
        if dry_run:
            help = dry_run if isinstance(dry_run, str) else "Show what would change, write nothing."
            command.params.append(_share("--dry-run", "dry_run", help, is_flag=True))
        command.params.extend(SHARED)
        return command

    return make


def option(
    names: str, help: str, *, choice: Iterable[str] = (), many: bool = False, **settings: Any
) -> Callable[[_F], _F]:
    """Add an option: its names with blanks between them, what it is for, and the words or numbers it may take."""
    if choice:
        settings["type"] = click.Choice(tuple(choice))
    if "within" in settings:
        settings["type"] = click.IntRange(*settings.pop("within"))
        settings.setdefault("metavar", "N")
    settings.setdefault("show_default", settings.get("default") is not None)
    return click.option(*names.split(), help=help, multiple=many, **settings)


def flag(names: str, help: str) -> Callable[[_F], _F]:
    """Add an option without a value."""
    return click.option(*names.split(), is_flag=True, help=help)


def together(*options: Callable[[Any], Any]) -> Callable[[_F], _F]:
    """Return options as one, in their order."""
    return lambda function: functools.reduce(lambda inner, one: one(inner), reversed(options), function)


def is_terminal() -> bool:
    """Return whether stdin and stdout are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _share(word: str, name: str, help: str, **settings: Any) -> click.Option:
    """Return an option whose value is in the context's `Options`."""

    def store(ctx: click.Context, _param: click.Parameter, value: object) -> None:
        if value and name == "allow_secret" and not is_terminal():
            hint = "a person must see what is stored; edit the file instead"
            raise UsageError("--allow-secret works on a terminal only", hint)
        if value not in (None, False):
            setattr(ctx.ensure_object(Options), name, value)

    return click.Option([word], help=help, expose_value=False, callback=store, **settings)


#: What every verb takes, before or after its name.
SHARED = (
    _share("--vault", "vault", "The vault, or any folder of notes [default: the nearest one].", metavar="DIR"),
    _share("--home", "home", "The global home [default: $MEMORY_KB_HOME or ~/.memory].", metavar="DIR"),
    _share("--json", "as_json", "Print JSON on stdout.", is_flag=True),
)
_ALLOW = "Store what only looks like a credential; on a terminal alone."
#: Only a person at a terminal may give it.
_ALLOW_SECRET = _share("--allow-secret", "allow_secret", _ALLOW, is_flag=True)
#: Which vaults of the team's index are searched in place of the one here.
vaults_option = click.option(
    "--vaults",
    metavar="NAMES",
    callback=lambda _, __, names: tuple(name.strip() for name in names.split(",") if name.strip()) if names else (),
    help="Search these vaults of the team's index, with commas between them, or all.",
)
tag_option = option("--tag tags", "A tag; may be given several times.", many=True, metavar="TAG")


def job_options(job: str, task: str = "The task of that job.") -> Callable[[_F], _F]:
    """Add `--job` and `--task`, with what each is for."""
    return together(option("--job", job, metavar="JOB"), option("--task", task, metavar="TASK"))


def place_options(where: str = "Where it holds.", what: str = "it") -> Callable[[_F], _F]:
    """Add `--scope`, `--job` and `--task`, which say where an entry is kept."""
    scope = option("--scope", where, choice=("project", "global"), default="project")
    return together(scope, job_options(f"Keep {what} with this job.", f"Keep {what} with this task of --job."))


class Day(click.ParamType[Any]):
    """The type of an option that is a day."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from memory_kb.text import parse_date

        day = parse_date(value)
        if day is None:
            self.fail(f"{value!r} is not a date such as 2026-03-01", param, ctx)
        return day


def limit_option(help: str, default: int = 10, least: int = 0, most: int | None = None) -> Callable[[_F], _F]:
    """Add `--limit`, short `-k`."""
    return option("-k --limit", help, within=(least, most), default=default)


def text_argument(words: Sequence[str], most: int = -1, errors: str = "surrogateescape") -> str:
    """Return the words of an argument as a text; a single - is what stdin holds, `most` bytes of it at the most."""
    if tuple(words) == ("-",):
        return sys.stdin.buffer.read(most).decode("utf-8", errors)
    return " ".join(words)


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=_Verbs, params=[*SHARED], context_settings=_CONTEXT)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version.")
def cli() -> None:
    """Memories for agents and people, in Markdown, with a disposable index.

    \b
    memory-kb init                        make a vault in this folder
    memory-kb learn "Tests need Redis."   keep something
    memory-kb search "flaky tests"        find it again
    memory-kb --vault ~/notes search tax  search any folder of Markdown
    """


def call(arguments: Sequence[str], options: Options) -> int:
    """Parse a command line, run its verb, and return its exit code."""
    try:
        result = cli.main(list(arguments), prog_name="memory-kb", standalone_mode=False, obj=options)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except SystemExit:
        # Click's own way of leaving when the reader of our output has gone, as `head` does.
        raise BrokenPipeError from None
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.exceptions.NoArgsIsHelpError as exc:
        print_text(exc.format_message())
        return 0
    except click.ClickException as exc:
        path = exc.ctx.command_path if isinstance(exc, click.UsageError) and exc.ctx else "memory-kb"
        hint = f"`{path} --help` shows how"
        if isinstance(exc, click.NoSuchOption) and exc.ctx and exc.ctx.command.name == "search":
            hint = "put -- before a query with -words: memory-kb search -- foo -bar"
        raise UsageError(" ".join(exc.format_message().split()), hint) from None
    return result if isinstance(result, int) else 0
