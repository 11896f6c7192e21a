"""The verb mcp."""

from __future__ import annotations

import importlib.util

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.errors import UsageError

_DEFAULT_PLACE = "127.0.0.1:8765"


@click.command("mcp")
@shared_options
@click.option(
    "--http",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value=_DEFAULT_PLACE,
    help=f"Serve over HTTP [default: {_DEFAULT_PLACE}].",
)
@click.option(
    "--token", envvar="MEMORY_KB_MCP_TOKEN", help="What clients over HTTP must show [default: $MEMORY_KB_MCP_TOKEN]."
)
@click.option(
    "--profile",
    type=click.Choice(["default", "full"]),
    default="default",
    show_default=True,
    help="Offer ten tools, or all.",
)
@click.option("--no-watch", is_flag=True, help="Do not keep the index up to date between calls.")
@click.pass_obj
def mcp_verb(options: Options, /, http: str | None, token: str | None, profile: str, no_watch: bool) -> int:
    """Serve the vault to agents over MCP: on standard input and output, or over HTTP.

    Over HTTP it listens to this machine alone; to listen elsewhere takes a token.

    \b
    memory-kb mcp
    memory-kb --vault ~/notes mcp --http 127.0.0.1:9000 --profile full
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("the MCP server needs the SDK, which is not installed", 'run: pip install "memory-kb[mcp]"')
    from memory_kb.mcp.serving import Offer

    offer = Offer(options.vault, options.home, profile, not no_watch)
    if http is None:
        from memory_kb.mcp.stdio import serve_stdio

        return serve_stdio(offer)
    from memory_kb.mcp.http import serve_http
    from memory_kb.serving.place import read_place

    return serve_http(offer, read_place(http), token or None)
