"""Serve MCP over stdio and HTTP."""

from __future__ import annotations

import json
import logging
import os
import signal
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from memory_kb.mcp.server import make_server, say
from memory_kb.serving.host_check import HostCheck, ListenAddress, bind_socket, run_server
from memory_kb.serving.workers import GRACE_SECONDS, Address, VaultWatcher, Workers
from memory_kb.text import load_json

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


def read_message(line: bytes) -> str | types.JSONRPCError:
    """Return a message as every reader of JSON takes it, or the answer to a line that is no message of JSON-RPC.

    Halves of surrogate pairs become question marks, numbers with too many digits become texts.

    Example:
        >>> read_message(rb'{"jsonrpc": "2.0", "method": "half \\ud83d"}')
        '{"jsonrpc": "2.0", "method": "half ?"}'
        >>> read_message(b"no json").error.code, read_message(b'{"jsonrpc": "2.0", "id": 7}').error.code
        (-32700, -32600)
    """
    try:
        value = load_json(line)
    except ValueError as exc:
        error = types.ErrorData(code=types.PARSE_ERROR, message=f"the line is not JSON: {str(exc)[:100]}")
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=error)
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        named = value.get("id") if isinstance(value, dict) else None
        known = named if isinstance(named, str | int) and not isinstance(named, bool) else None
        error = types.ErrorData(code=types.INVALID_REQUEST, message="the line is no single message of JSON-RPC 2.0")
        return types.JSONRPCError(jsonrpc="2.0", id=known, error=error)
    return text


def take_stdin() -> BinaryIO:
    """Return standard input, and put nothing in its place, so that no child can take what is meant for us."""
    taken = os.fdopen(os.dup(0), "rb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return taken


async def read_messages(lines: BinaryIO, refuse: Callable[[types.JSONRPCError], Awaitable[None]]) -> AsyncIterator[str]:
    """Yield the messages of a client; a line that is none is answered with `refuse`."""
    async for line in anyio.wrap_file(lines):
        message = read_message(line) if line.strip() else None
        if isinstance(message, str):
            yield message
        elif message:
            await refuse(message)


_SESSION = "MEMORY_KB_SESSION"


class ToolService:
    """A server with its workers and its watcher, from the first request to the end.

    What is shown is written down under the session of `MEMORY_KB_SESSION`; a server outside any
    has one of its own, which it counts when it ends.
    """

    def __init__(self, address: Address, profile: str, *, is_watching: bool, vaults: tuple[str, ...] = ()) -> None:
        self._profile, self._is_watching, self._vaults = profile, is_watching, vaults
        self._is_own_session = not address.environ.get(_SESSION)
        self.session = address.environ.get(_SESSION) or f"mcp-{uuid.uuid4().hex[:12]}"
        address.environ[_SESSION] = self.session
        self._workers = Workers(address)
        self._watcher = VaultWatcher(address, say)

    def make_server(self) -> Server[Any]:
        """Return the SDK's server for this service."""
        return make_server(self._workers, self._profile, self.session, self.wake, self._vaults)

    def wake(self) -> None:
        """Begin to watch, if that is wanted and has not begun."""
        if self._is_watching:
            self._watcher.begin()

    def end(self) -> None:
        """Count what was shown, and end the workers and the watcher, within a few seconds."""
        self._watcher.end(0.0)
        counts = self._is_own_session and self._workers.reading.has_opened
        self._workers.close(GRACE_SECONDS, (lambda kb: kb.reinforce(self.session)) if counts else None)
        self._watcher.end(GRACE_SECONDS)


_CTRL_C = 130
#: Seconds between two looks whether the process that started us still lives.
_LOOK_SECONDS = 2.0


async def serve_stdio(service: ToolService) -> int:
    """Serve one client until it closes its end, dies or sends a signal; return the exit code."""
    server = service.make_server()
    async with anyio.create_task_group() as group:
        group.start_soon(_leave_on_signal, service)
        group.start_soon(_leave_when_orphaned, service)
        try:
            messages = read_messages(take_stdin(), lambda fault: writing.send(SessionMessage(fault)))
            async with stdio_server(stdin=messages) as (reading, writing):  # type: ignore[arg-type]
                await server.run(reading, writing, server.create_initialization_options())
        except* (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            say("the client has gone")
        await _leave(service, 0)
    return 0


async def _leave_on_signal(service: ToolService) -> None:
    codes = {signal.SIGTERM: 0, signal.SIGINT: _CTRL_C}
    if os.name == "nt":
        return
    with anyio.open_signal_receiver(*codes) as signals:
        async for number in signals:
            await _leave(service, codes[number])


async def _leave_when_orphaned(service: ToolService) -> None:
    """Leave when the process that started us is gone, though our input was not closed."""
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - nothing reports that
        await anyio.sleep(_LOOK_SECONDS)
    say("the process that started it has ended")
    await _leave(service, 0)


async def _leave(service: ToolService, code: int) -> None:
    """End the process; nothing that still waits, such as for standard input, is to keep it."""
    await anyio.to_thread.run_sync(service.end)
    os._exit(code)


_PATH = "/mcp"
#: Larger than any arguments that are read, so that what is too large follows from the tool.
_MAX_BODY = 32 * 1024 * 1024


def serve_http(service: ToolService, place: ListenAddress, token: str | None) -> int:
    """Serve any number of clients until stopped; return the exit code."""
    from starlette.requests import ClientDisconnect

    listening, bound = bind_socket(place, token, "MEMORY_KB_MCP_TOKEN")
    # A client that goes in the middle of a request is no error of the server.
    logging.getLogger("mcp.server.streamable_http").addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))
    )
    app = service.make_server().streamable_http_app(
        streamable_http_path=_PATH, host=place.host, max_request_body_size=_MAX_BODY
    )
    say(f"listening at http://{bound.shown}{_PATH}")
    service.wake()
    try:
        return run_server(HostCheck(app, bound.host, token), listening)
    finally:
        service.end()
