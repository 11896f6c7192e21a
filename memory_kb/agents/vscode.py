"""Describe VS Code: `.vscode/mcp.json` and AGENTS.md, in a project only."""

from memory_kb.agents.agent import Agent

AGENT = Agent(
    name="vscode",
    title="VS Code",
    servers=((".vscode/mcp.json",), None),
    server_path=("servers",),
    kind="stdio",
    rules=("AGENTS.md", None),
    vault="${workspaceFolder}",
    programs=("code",),
    folders=(".vscode",),
    clicks=("start the server memory-kb, above its name in .vscode/mcp.json",),
)
