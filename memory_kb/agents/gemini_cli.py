"""Describe Gemini CLI: servers and hooks in `settings.json`, and GEMINI.md. Its timeouts are in milliseconds."""

from memory_kb.agents.agent import Agent, Hook

AGENT = Agent(
    name="gemini-cli",
    title="Gemini CLI",
    servers=((".gemini/settings.json",), (".gemini/settings.json",)),
    server_path=("mcpServers",),
    hooks=(
        Hook("SessionStart", "session-start", 10_000),
        # "auto" is called before each prompt, whether or not there is anything to compress.
        Hook("PreCompress", "session-start", 10_000, tools="manual"),
        Hook("BeforeAgent", "prompt", 10_000),
        Hook("BeforeTool", "before-tool", 10_000, tools="write_file|replace"),
        Hook("AfterTool", "tool", 10_000),
        Hook("AfterAgent", "stop", 10_000),
        Hook("SessionEnd", "session-end", 10_000),
    ),
    hooks_file=(".gemini/settings.json", ".gemini/settings.json"),
    question=("stop", "deny"),
    rules=("GEMINI.md", ".gemini/GEMINI.md"),
    late_starts=("clear", "compact"),
    takes_tool_context=True,
    refusal="deny",
    tried="0.61.0",
    programs=("gemini",),
    folders=(".gemini",),
    clicks=("trust the folder when it asks: without that it reads no settings of the project",),
)
