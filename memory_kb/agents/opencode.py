"""Describe OpenCode: `opencode.json` or `opencode.jsonc`, AGENTS.md, and a plugin that calls the hooks."""

from memory_kb.agents.agent import Agent, Hook

_FOLDER = ".config/opencode"
AGENT = Agent(
    name="opencode",
    title="OpenCode",
    servers=(("opencode.json", "opencode.jsonc"), (f"{_FOLDER}/opencode.json", f"{_FOLDER}/opencode.jsonc")),
    server_path=("mcp",),
    kind="local",
    rules=("AGENTS.md", f"{_FOLDER}/AGENTS.md"),
    hooks=(
        Hook("experimental.chat.system.transform", "session-start"),
        Hook("chat.message", "prompt"),
        Hook("tool.execute.after", "tool"),
        Hook("session.idle", "stop"),
        Hook("dispose", "session-end"),
    ),
    plugin=(".opencode/plugins/memory-kb.js", f"{_FOLDER}/plugins/memory-kb.js"),
    takes_tool_context=True,
    tried="1.18.33",
    programs=("opencode",),
    folders=(_FOLDER,),
)
