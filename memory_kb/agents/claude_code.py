"""Describe Claude Code: `.mcp.json` and `~/.claude.json`, hooks in `settings.json`, and CLAUDE.md."""

from memory_kb.agents.agent import Agent, Hook

AGENT = Agent(
    name="claude-code",
    title="Claude Code",
    servers=((".mcp.json",), (".claude.json",)),
    server_path=("mcpServers",),
    hooks=(
        Hook("SessionStart", "session-start", 10),
        Hook("UserPromptSubmit", "prompt", 10),
        Hook("PreToolUse", "before-tool", 10, tools="Edit|MultiEdit|Write|NotebookEdit"),
        Hook("PostToolUse", "tool", 10),
        Hook("PostToolUseFailure", "tool", 10),
        Hook("Stop", "stop", 10),
        Hook("SessionEnd", "session-end", 10),
    ),
    hooks_file=(".claude/settings.json", ".claude/settings.json"),
    question=("stop", "block"),
    rules=("CLAUDE.md", ".claude/CLAUDE.md"),
    most_chars=10_000,
    takes_tool_context=True,
    refusal="permission",
    tried="2.1.197",
    programs=("claude",),
    folders=(".claude",),
    clicks=("start it in the project once: it asks whether you trust the folder and its server memory-kb",),
)
