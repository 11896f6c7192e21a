"""The verb serve."""

from __future__ import annotations

import importlib.util

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.errors import UsageError

_NEEDED = ("starlette", "uvicorn", "jinja2", "markdown_it")


@click.command("serve")
@shared_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8766, show_default=True, help="The port; 0 is any that is free."
)
@click.option(
    "--token", envvar="MEMORY_KB_SERVE_TOKEN", help="What the page asks for once [default: $MEMORY_KB_SERVE_TOKEN]."
)
@click.option("--open", "is_opening", is_flag=True, help="Open it in the browser.")
@click.option(
    "--no-watch", is_flag=True, help="Do not keep the index up to date; look at the files before each answer."
)
@click.pass_obj
def serve_verb(options: Options, /, host: str, port: int, token: str | None, is_opening: bool, no_watch: bool) -> int:
    """Serve a page to search, read, judge and edit what the vault knows.

    Only this machine can reach it; to listen elsewhere takes a token.

    \b
    memory-kb serve --open
    memory-kb --vault ~/notes serve --port 0
    MEMORY_KB_SERVE_TOKEN=$(openssl rand -hex 16) memory-kb serve --host 0.0.0.0
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the page needs {', '.join(missing)}, and not all of that is installed",
            'run: pip install "memory-kb[web]"',
        )
    from memory_kb.serving.place import Place
    from memory_kb.web.serving import Offer, serve

    return serve(
        Offer(options.vault, options.home, Place(host.strip("[]"), port), token or None, is_opening, not no_watch)
    )
