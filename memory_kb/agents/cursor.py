"""Describe Cursor: `mcp.json`, `hooks.json` and AGENTS.md. Context is added at the start and to results of tools, not to prompts."""

from memory_kb.agents.agent import Agent, Hook

AGENT = Agent(
    name="cursor",
    title="Cursor",
    servers=((".cursor/mcp.json",), (".cursor/mcp.json",)),
    server_path=("mcpServers",),
    hooks=(
        Hook("sessionStart", "session-start"),
        Hook("beforeSubmitPrompt", "prompt"),
        Hook("postToolUse", "tool"),
        Hook("postToolUseFailure", "tool"),
        Hook("afterAgentResponse", "stop"),
        Hook("stop", "ask"),
        Hook("sessionEnd", "session-end"),
    ),
    hooks_file=(".cursor/hooks.json", ".cursor/hooks.json"),
    is_flat=True,
    defaults=(("version", 1),),
    rules=("AGENTS.md", None),
    vault="${workspaceFolder}",
    context_key="additional_context",
    takes_prompt_context=False,
    takes_tool_context=True,
    most_chars=10_000,
    question=("ask", "followup"),
    programs=("cursor", "cursor-agent"),
    folders=(".cursor",),
    clicks=("switch the server memory-kb on, in Settings under MCP",),
)
