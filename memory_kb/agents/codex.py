"""Codex: `config.toml`, `hooks.json` and AGENTS.md. It does not say when a session is over."""

from memory_kb.agents.agent import Agent, Hook

AGENT = Agent(
    name="codex",
    title="Codex",
    servers=((".codex/config.toml",), ("$CODEX_HOME/config.toml",)),
    server_path=("mcp_servers",),
    kind="table",
    hooks=(
        Hook("SessionStart", "session-start", 10),
        Hook("UserPromptSubmit", "prompt", 10),
        Hook("PostToolUse", "tool", 10),
        Hook("Stop", "stop", 10),
    ),
    hooks_file=(".codex/hooks.json", "$CODEX_HOME/hooks.json"),
    question=("stop", "block"),
    rules=("AGENTS.md", "$CODEX_HOME/AGENTS.md"),
    homes={"CODEX_HOME": ".codex"},
)
