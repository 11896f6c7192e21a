"""Describe Codex: `config.toml`, `hooks.json` and AGENTS.md. Only its transcripts have the exit codes of commands."""

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
        Hook("PreToolUse", "before-tool", 10, tools="apply_patch|Edit|Write"),
        Hook("PostToolUse", "tool", 10),
        Hook("Stop", "stop", 10),
        Hook("SessionEnd", "session-end", 10),
    ),
    hooks_file=(".codex/hooks.json", "$CODEX_HOME/hooks.json"),
    question=("stop", "block"),
    rules=("AGENTS.md", "$CODEX_HOME/AGENTS.md"),
    homes={"CODEX_HOME": ".codex"},
    has_late_results=True,
    takes_tool_context=True,
    refusal="permission",
    tried="0.169.0",
    programs=("codex",),
    folders=(".codex",),
    clicks=(
        "trust the project: without that it does not read the .codex folder",
        "review the hooks: type /hooks, it runs none before",
    ),
)
