"""The commands serve, mcp and lsp."""

from __future__ import annotations

import importlib.util
from typing import Any

from memory_kb.cli.app import flag, option, vaults_option, verb
from memory_kb.cli.output import Options
from memory_kb.errors import UsageError

_DEFAULT_PLACE = "127.0.0.1:8765"


@verb("mcp")
@option(
    "--http",
    f"Serve over HTTP [default: {_DEFAULT_PLACE}].",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value=_DEFAULT_PLACE,
)
@option("--token", "What clients over HTTP must show [default: $MEMORY_KB_MCP_TOKEN].", envvar="MEMORY_KB_MCP_TOKEN")
@option("--profile", "Offer six tools, or all.", choice=["default", "full"], default="default")
@flag("--no-watch", "Do not keep the index up to date between calls.")
@vaults_option
def mcp_verb(options: Options, /, http: str | None, token: str | None, no_watch: bool, **chosen: Any) -> int:
    """Serve the vault to agents over MCP, on standard input and output or over HTTP.

    Over HTTP it listens to this machine alone; to listen elsewhere takes a token.

    \b
    memory-kb mcp
    memory-kb --vault ~/notes mcp --http 127.0.0.1:9000 --profile full
    """
    _need_extra("mcp", "the MCP server", "mcp")
    import anyio

    from memory_kb.http_server import parse_address
    from memory_kb.mcp.server import McpServer, serve_http, serve_stdio
    from memory_kb.workers import NamedVault

    named = NamedVault.absolute(options.vault, options.home)
    server = McpServer(named, is_watching=not no_watch, **chosen)
    return anyio.run(serve_stdio, server) if http is None else serve_http(server, parse_address(http), token or None)


@verb("lsp")
@flag("--stdio", "Speak on standard input and output, which is the default.")
def lsp_verb(options: Options, /, stdio: bool) -> int:  # noqa: ARG001 - editors pass it
    """Serve an editor as a language server.

    It completes links, tags and fields, shows the state of entries, follows and renames links, and says what is wrong
    in a note before it is saved. It writes no note itself: the editor makes its edits, and can undo them. Without
    --vault it serves the vault around the folder that the editor has open.

    \b
    memory-kb lsp
    memory-kb --vault ~/notes lsp
    """
    _need_extra("lsp", "the language server", "pygls")
    from memory_kb.lsp.server import serve_lsp

    return serve_lsp(options.vault, options.home)


@verb("serve")
@option("--host", "Where to listen.", default="127.0.0.1")
@option("--port", "The port; 0 is any that is free.", within=(0, 65535), default=8766)
@option("--token", "What the page asks for once [default: $MEMORY_KB_SERVE_TOKEN].", envvar="MEMORY_KB_SERVE_TOKEN")
@flag("--open is_opening", "Open it in the browser.")
@flag("--no-watch", "Do not keep the index up to date; look at the files before each answer.")
@vaults_option
def serve_verb(options: Options, /, host: str, port: int, token: str, no_watch: bool, **chosen: Any) -> int:
    """Open a page in the browser to search, read and edit.

    Only this machine can reach it; to listen elsewhere takes a token.

    \b
    memory-kb serve --open
    memory-kb --vault ~/notes serve --port 0
    """
    _need_extra("web", "the page", "starlette", "uvicorn", "jinja2", "markdown_it")
    from memory_kb.http_server import ListenAddress
    from memory_kb.web.app import serve_page
    from memory_kb.workers import NamedVault

    named, place = NamedVault.absolute(options.vault, options.home), ListenAddress(host.strip("[]"), port)
    return serve_page(named, place, token or None, is_watching=not no_watch, **chosen)


def _need_extra(extra: str, what: str, *modules: str) -> None:
    """Raise UsageError where modules of an extra are not installed."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        problem = f"{what} needs {', '.join(missing)}, not installed here"
        raise UsageError(problem, f'run: pip install "memory-kb[{extra}]"')
