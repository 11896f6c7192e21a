"""The `memory-kb` group: its verbs, what all of them share, and how they end."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from memory_kb.cli.output import Options, print_json, say
from memory_kb.errors import MemoryKBError, explain_refusal

_F = TypeVar("_F", bound=Callable[..., Any])

#: The verbs by what they are for: verb -> the module of this package that defines it, under the same name.
_SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Notes": {
        "init": "entries",
        "learn": "entries",
        "show": "search",
        "list": "search",
        "links": "search",
        "forget": "entries",
        "rename": "entries",
        "undo": "git",
    },
    "Finding": {
        "search": "search",
        "why-not": "search",
        "context": "search",
        "stats": "search",
        "eval": "git",
    },
    "Sessions and what they teach": {
        "session": "sessions",
        "capture": "episodes",
        "extract": "episodes",
        "reflect": "episodes",
        "episode": "episodes",
        "diary": "episodes",
        "premortem": "episodes",
        "assume": "episodes",
    },
    "Rules and skills": {
        "rules": "rules",
        "outcome": "review",
        "review": "review",
        "sweep": "rules",
        "skills": "skills",
        "procedure": "skills",
    },
    "Work in progress": {
        "ledger": "working",
        "handoff": "working",
        "continuity": "working",
        "stage": "maintenance",
    },
    "Looking after it": {
        "consolidate": "maintenance",
        "maintain": "maintenance",
        "reinforce": "maintenance",
        "promote": "maintenance",
        "compact": "maintenance",
        "contradictions": "maintenance",
        "cite": "citations",
        "verify": "citations",
        "exposure": "review",
    },
    "The index": {
        "index": "index",
        "watch": "index",
        "status": "index",
        "doctor": "index",
        "lint": "index",
        "model": "index",
        "cache": "index",
    },
    "Other programs": {
        "install": "agents",
        "uninstall": "agents",
        "hook": "agents",
        "mcp": "agents",
        "lsp": "entries",
        "serve": "agents",
        "git": "git",
        "commit": "git",
        "ci": "git",
        "import": "agents",
        "export": "agents",
        "completion": "agents",
    },
}
_VERBS = {verb: module for section in _SECTIONS.values() for verb, module in section.items()}
_ALIASES = {"add": "learn", "remember": "learn", "recall": "search", "retrieve": "search"}


class _Verbs(click.Group):
    """A group that loads the module of a verb when it is used.

    Starting fast is a feature.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        name = _ALIASES.get(cmd_name, cmd_name)
        if name not in _VERBS:
            return None
        module = importlib.import_module(f"memory_kb.cli.{_VERBS[name]}")
        command = getattr(module, f"{name.replace('-', '_')}_verb")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - max(map(len, _VERBS)) - 5
        for section, verbs in _SECTIONS.items():
            with formatter.section(section):
                commands = ((verb, command) for verb in verbs if (command := self.get_command(ctx, verb)))
                formatter.write_dl(
                    [(verb, command.get_short_help_str(room)) for verb, command in commands if not command.hidden]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            import difflib

            near = difflib.get_close_matches(args[0], [*_VERBS, *_ALIASES], 1)
            raise click.UsageError(f"No such command {args[0]!r}.{f' Did you mean {near[0]!r}?' if near else ''}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        return (command.name if command else name), command, rest


def _store(name: str) -> Callable[[click.Context, click.Parameter, object], object]:
    def callback(ctx: click.Context, _param: click.Parameter, value: object) -> object:
        options = ctx.ensure_object(Options)
        if value:
            setattr(options, name, value)
        return value

    return callback


def shared_options(function: _F) -> _F:
    """Add `--vault`, `--home` and `--json`.

    What they say is in the context's `Options`.
    """
    shared: dict[str, Any] = {"expose_value": False, "is_eager": True}
    for option in (
        click.option("--json", is_flag=True, help="Print JSON on stdout.", callback=_store("as_json"), **shared),
        click.option(
            "--home",
            metavar="DIR",
            help="The global home [default: $MEMORY_KB_HOME or ~/.memory].",
            callback=_store("home"),
            **shared,
        ),
        click.option(
            "--vault",
            metavar="DIR",
            help="The vault, or any folder of notes [default: the nearest one].",
            callback=_store("vault"),
            **shared,
        ),
    ):
        function = option(function)
    return function


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from memory_kb import __version__

        click.echo(f"memory-kb {__version__}")
        ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@shared_options
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version."
)
def cli() -> None:
    """Memories for agents and people: Markdown notes, searched at once.

    \b
    memory-kb init                        make a vault in this folder
    memory-kb learn "Tests need Redis."   keep something
    memory-kb search "flaky tests"        find it again
    memory-kb --vault ~/notes search tax  search any folder of Markdown
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code.

    Errors are one sentence and what to do next.
    """
    options = Options()
    try:
        code = _run(arguments, options)
    except BrokenPipeError:
        raise
    except OSError as exc:
        for line in _tell_written(options):
            exc.add_note(line)
        raise
    for line in _tell_written(options):
        say(line)
    return code


def _tell_written(options: Options) -> Sequence[str]:
    """Return what to say of notes that a verb wrote without coming to its end, where it says what it did."""
    if not options.written:
        return ()
    from memory_kb.cli.output import tell_written

    return tell_written(options.written)


def _run(arguments: Sequence[str], options: Options) -> int:
    as_json = "--json" in arguments
    _prepare_streams()
    try:
        result = cli.main(list(arguments), prog_name="memory-kb", standalone_mode=False, obj=options)
        options.written.clear()
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except SystemExit:
        # Click's own way of leaving when the reader of our output has gone, as `head` does.
        raise BrokenPipeError from None
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.format_message())
        return 0
    except click.ClickException as exc:
        if isinstance(exc, click.NoSuchOption) and exc.ctx and exc.ctx.command.name == "search":
            return _fail(
                exc.format_message(),
                "usage",
                "put -- before a query with -words: memory-kb search -- foo -bar",
                2,
                as_json=as_json,
            )
        hint = f"`{exc.ctx.command_path} --help` shows how" if isinstance(exc, click.UsageError) and exc.ctx else None
        return _fail(exc.format_message(), "usage", hint, exc.exit_code, as_json=as_json)
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
    return result if isinstance(result, int) else 0


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
