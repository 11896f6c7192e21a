"""OpenCode: `opencode.json` or `opencode.jsonc`, and AGENTS.md. Its hooks are plugins, which we are not."""

from memory_kb.agents.agent import Agent

_FOLDER = ".config/opencode"
AGENT = Agent(
    name="opencode",
    title="OpenCode",
    servers=(("opencode.json", "opencode.jsonc"), (f"{_FOLDER}/opencode.json", f"{_FOLDER}/opencode.jsonc")),
    server_path=("mcp",),
    kind="local",
    rules=("AGENTS.md", f"{_FOLDER}/AGENTS.md"),
)
