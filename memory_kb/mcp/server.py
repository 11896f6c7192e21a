"""The server over the official SDK: what a client asks for, done in the lanes and answered.

The SDK's `Server` is used and not its `MCPServer`, whose schemas come from signatures: here they are
declared in few tokens, and names that a model guesses are understood without standing in them.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from memory_kb import __version__
from memory_kb.errors import MemoryKBError
from memory_kb.kb import KnowledgeBase
from memory_kb.mcp import prompts
from memory_kb.mcp.answers import Answer
from memory_kb.mcp.arguments import make_schema, read_arguments
from memory_kb.mcp.faults import explain
from memory_kb.mcp.moretools import PROFILES
from memory_kb.mcp.talk import say
from memory_kb.mcp.tools import Caller, Tool
from memory_kb.serving.lanes import Lane, Lanes

_T = TypeVar("_T")
_Context = ServerRequestContext[Any, Any]
_Result = BaseModel | dict[str, Any] | None
_UNKNOWN_RESOURCE = -32002
#: Requests that a client makes before it knows the server; nothing of ours is loaded for them.
_HANDSHAKE = ("initialize", "server/discover", "ping")


def make_server(lanes: Lanes, profile: str, session: str, on_awake: Callable[[], None]) -> Server[Any]:
    """Return a server for one vault.

    Args:
        lanes: the threads in which the work is done.
        profile: which tools are offered: `default` or `full`.
        session: under which session what is shown is written down.
        on_awake: called at the first request after a handshake, and at every later one.
    """
    desk = _Desk(lanes, PROFILES[profile], session)
    server: Server[Any] = Server(
        "memory-kb",
        version=__version__,
        instructions=prompts.INSTRUCTIONS,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        on_list_resources=desk.list_resources,
        on_list_resource_templates=desk.list_templates,
        on_read_resource=desk.read_resource,
        on_list_prompts=desk.list_prompts,
        on_get_prompt=desk.get_prompt,
    )

    async def wake(ctx: _Context, call_next: Callable[[_Context], Awaitable[_Result]]) -> _Result:
        if ctx.method not in _HANDSHAKE:
            on_awake()
        return await call_next(ctx)

    server.middleware.append(wake)
    return server


def declare(tool: Tool) -> types.Tool:
    """Return a tool as a client sees it."""
    hints = types.ToolAnnotations(
        read_only_hint=tool.is_reading,
        destructive_hint=tool.is_destructive,
        idempotent_hint=tool.is_idempotent or tool.is_reading,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name, description=tool.description, input_schema=make_schema(tool.arguments), annotations=hints
    )


class _Desk:
    """The handlers of the SDK: each turns a request into work for a lane, and what comes of it into an answer."""

    def __init__(self, lanes: Lanes, tools: tuple[Tool, ...], session: str) -> None:
        self._lanes, self._session = lanes, session
        self._tools = {tool.name: tool for tool in tools}

    async def list_tools(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[declare(tool) for tool in self._tools.values()])

    async def call_tool(self, context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, self._say_unknown(params.name))
        lane = self._lanes.choose(is_reading=tool.is_reading)
        caller = self._caller(context)
        try:
            given = read_arguments(tool.arguments, params.arguments or {})
            answer: Answer = await _do(lane, lambda kb: tool.call(kb, given, caller))
        except Exception as exc:  # noqa: BLE001 - whatever goes wrong is told to the model
            return types.CallToolResult(content=[_text(_explain(exc, lane))], is_error=True)
        return types.CallToolResult(content=[_text(answer.text)], structured_content=answer.values)

    async def list_resources(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        institutional = types.Resource(
            uri=prompts.INSTITUTIONAL,
            name="institutional",
            description="What always holds here, whatever the task.",
            mime_type="text/markdown",
        )
        return types.ListResourcesResult(resources=[institutional])

    async def list_templates(
        self, _: _Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        entry = types.ResourceTemplate(
            uri_template=prompts.ENTRY_TEMPLATE,
            name="entry",
            description="One entry in full, by its id.",
            mime_type="text/markdown",
        )
        return types.ListResourceTemplatesResult(resource_templates=[entry])

    async def read_resource(self, _: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        text = await self._serve(lambda kb: prompts.read_resource(kb, uri), _UNKNOWN_RESOURCE)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, text=text, mime_type="text/markdown")]
        )

    async def list_prompts(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        offered = [
            types.Prompt(
                name=prompt.name,
                description=prompt.description,
                arguments=[
                    types.PromptArgument(name=one.name, description=one.description, required=one.is_required)
                    for one in prompt.arguments
                ],
            )
            for prompt in prompts.PROMPTS
        ]
        return types.ListPromptsResult(prompts=offered)

    async def get_prompt(self, context: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt = next((one for one in prompts.PROMPTS if one.name == params.name), None)
        if prompt is None:
            known = ", ".join(one.name for one in prompts.PROMPTS)
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:60]!r}; there are {known}")
        caller, given = self._caller(context), dict(params.arguments or {})
        text = await self._serve(
            lambda kb: prompt.write(kb, read_arguments(prompt.arguments, given), caller), types.INVALID_PARAMS
        )
        return types.GetPromptResult(
            description=prompt.description, messages=[types.PromptMessage(role="user", content=_text(text))]
        )

    async def _serve(self, work: Callable[[KnowledgeBase], str], code: int) -> str:
        """Read something; an error of the caller's has this code.

        Raises:
            MCPError: it cannot be had.
        """
        lane = self._lanes.reading
        try:
            return await _do(lane, work)
        except Exception as exc:  # noqa: BLE001 - whatever goes wrong is told to the client
            known = isinstance(exc, MemoryKBError)
            raise MCPError(code if known else types.INTERNAL_ERROR, _explain(exc, lane)) from None

    def _caller(self, context: _Context) -> Caller:
        params = context.session.client_params
        name = params.client_info.name.strip() if params else ""
        return Caller(" ".join(name.split())[:60] or "agent", self._session)

    def _say_unknown(self, name: str) -> str:
        if name in {tool.name for tool in PROFILES["full"]}:
            return f"{name} is offered by `memory-kb mcp --profile full` only"
        return f"there is no tool {name[:60]!r}; there are {', '.join(self._tools)}"


async def _do(lane: Lane, work: Callable[[KnowledgeBase], _T]) -> _T:
    """Wait for some work of a lane; a call that is cancelled before its turn is not begun."""
    return await asyncio.wrap_future(lane.submit(work))


def _explain(error: Exception, lane: Lane) -> str:
    """Return an error for the client; what it is not to know goes to the log."""
    if not isinstance(error, MemoryKBError):
        traceback.print_exception(error)
    elif not lane.has_opened:
        say(f"{error}{f' ({error.hint})' if error.hint else ''}")
    return explain(error, lane.places())


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)
