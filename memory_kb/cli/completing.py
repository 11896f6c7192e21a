"""Shell completion."""

from __future__ import annotations

import click

from memory_kb.cli.app import cli, shared_options


@click.command("completion")
@shared_options
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_verb(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    memory-kb completion bash >> ~/.bashrc
    memory-kb completion zsh  >> ~/.zshrc
    memory-kb completion fish > ~/.config/fish/completions/memory-kb.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "memory-kb", "_MEMORY_KB_COMPLETE").source())
