"""The verb hook, as help shows it; `answering` does the work."""

from __future__ import annotations

import click

from memory_kb.cli.app import Options, shared_options


@click.command("hook", context_settings={"ignore_unknown_options": True})
@shared_options
@click.argument("event")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.option("--agent", default="claude-code", show_default=True, help="Whose hook it is.")
@click.pass_obj
def hook_verb(options: Options, /, event: str, rest: tuple[str, ...], agent: str) -> None:
    """Answer an agent at EVENT: session-start, prompt, tool, stop, ask or session-end.

    `install` makes agents call this, with what they say as JSON on stdin. It logs the session, prints what the agent should know, or is
    asked to remember, as the JSON that the agent expects, and never fails: errors are lines in log/hooks.log of the vault's machine folder.

    \b
    echo '{"session_id": "s1", "prompt": "fix the upload test"}' | memory-kb hook prompt --agent codex
    """
    from memory_kb.cli.answering import answer

    named = {"--agent": agent, "--vault": options.vault, "--home": options.home}
    answer([event, *rest, *(word for name, value in named.items() if value is not None for word in (name, value))])
