"""The agents that memory-kb can be installed into, by name."""

from __future__ import annotations

import importlib

from memory_kb.agents.agent import Agent
from memory_kb.errors import UsageError

NAMES = ("claude-code", "codex", "cursor", "gemini-cli", "opencode", "vscode")
#: What they call themselves as MCP clients, and what models call them.
_OTHER_NAMES = {
    "claude": "claude-code",
    "codex-cli": "codex",
    "codex-mcp-client": "codex",
    "cursor-agent": "cursor",
    "cursor-vscode": "cursor",
    "gemini": "gemini-cli",
    "gemini-cli-mcp-client": "gemini-cli",
    "gemini-cli-mcp-client-memory-kb": "gemini-cli",
    "visual-studio-code": "vscode",
}


def recognise(word: str) -> str | None:
    """Return which of our agents somebody means, or None where it is another.

    Example:
        >>> recognise("Claude Code"), recognise("codex-mcp-client"), recognise("claude-reviewer")
        ('claude-code', 'codex', None)
    """
    name = "-".join(word.casefold().replace("_", " ").replace("-", " ").split())
    return name if name in NAMES else _OTHER_NAMES.get(name)


def find_agent(name: str) -> Agent:
    """Return the agent with a name.

    Raises:
        UsageError: there is none that we know.

    Example:
        >>> find_agent("codex").title
        'Codex'
    """
    if name not in NAMES:
        raise UsageError(
            f"memory-kb cannot be installed into {name[:40]!r}",
            f"agents are {', '.join(NAMES)}; any MCP client can run `memory-kb mcp`",
        )
    agent = importlib.import_module(f"memory_kb.agents.{name.replace('-', '_')}").AGENT
    assert isinstance(agent, Agent)
    return agent


def file_names() -> frozenset[str]:
    """Return the files of all agents, as their paths end.

    Example:
        >>> sorted(file_names() & {".mcp.json", "AGENTS.md", ".git/config"})
        ['.mcp.json', 'AGENTS.md']
    """
    found = set[str]()
    for agent in map(find_agent, NAMES):
        found.update(name for names in agent.servers for name in names or ())
        found.update((*(agent.hooks_file or ()), *filter(None, agent.rules)))
    return frozenset(name for name in found if not name.startswith("$"))
