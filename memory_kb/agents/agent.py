"""Describe an agent as data: its files, its hooks, and where our parts go in them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from memory_kb.errors import UsageError

#: The name under which the server is registered.
SERVER = "memory-kb"
#: The moments that `memory-kb hook` knows.
EVENTS = ("session-start", "prompt", "before-tool", "tool", "stop", "ask", "session-end")


class Hook(NamedTuple):
    """A moment in the life of a session: what the agent calls it, and what we do.

    `timeout` is in the agent's own unit; None leaves it to the agent. `tools` is a pattern of the tools for which it
    calls us; "" for all.
    """

    name: str
    event: str
    timeout: int | None = None
    tools: str = ""


class Agent(NamedTuple):
    """An agent as data.

    Attributes:
        servers: the file of MCP servers in a project, and that of the user; None where there is
            none that we know. `kind` is `table` for TOML, else the shape of the JSON value.
        server_path: where servers are in it.
        hooks_file: likewise; its hooks are below `hooks`.
        plugin: likewise, where a program calls the hooks instead; its text is beside the description.
        is_flat: whether a hook is a command, rather than a group of commands.
        defaults: members that the file of hooks must have, with their values.
        rules: the Markdown file that the agent reads at the start, likewise.
        vault: the agent's own variable for the project's folder in an argument; nothing where servers
            are started in that folder.
        context_key: where additional context goes in an answer: "" for Claude Code's form.
        takes_prompt_context: whether context may be added to a prompt, `takes_tool_context` to the result of a tool.
        question: the event at which its model can be asked something before it stops, and the form of that:
            `block` and `deny` are decisions with a reason, `followup` is a message; None where there is no way.
        refusal: how a hook refuses a tool: `permission` is Claude Code's form, `deny` a decision with a reason; ""
            where there is no way.
        has_late_results: whether the exit code of a command is only in the session's transcript.
        late_starts: the reasons of a start at which it drops what a hook gives: that comes with the next prompt.
        most_chars: the longest context that it gives its model whole; None where none was found.
        tried: the version in which all of this was seen to work; "" where nobody looked.
        programs: what it is started as; `folders` are those in a home that it makes.
        clicks: what a person has to do in the agent before it calls us.
    """

    name: str
    title: str
    servers: tuple[tuple[str, ...] | None, tuple[str, ...] | None]
    server_path: tuple[str, ...]
    kind: str = "command"
    hooks: tuple[Hook, ...] = ()
    hooks_file: tuple[str, str] | None = None
    plugin: tuple[str, str] | None = None
    is_flat: bool = False
    defaults: tuple[tuple[str, Any], ...] = ()
    rules: tuple[str | None, str | None] = (None, None)
    vault: str = ""
    context_key: str = ""
    takes_prompt_context: bool = True
    takes_tool_context: bool = False
    question: tuple[str, str] | None = None
    homes: Mapping[str, str] | None = None
    refusal: str = ""
    has_late_results: bool = False
    late_starts: tuple[str, ...] = ()
    most_chars: int | None = None
    tried: str = ""
    clicks: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def hook_for(self, event: str) -> Hook | None:
        """Return the hook that calls us for an event."""
        return next((hook for hook in self.hooks if hook.event == event), None)


class Member(NamedTuple):
    """A member of a JSON object at a path; a default is left alone where there is one, and stays."""

    path: tuple[str, ...]
    value: Any
    is_default: bool = False


class ListItem(NamedTuple):
    """An item of a JSON list at a path, known again by the `memory-kb hook` in its command."""

    path: tuple[str, ...]
    value: Any


class Table(NamedTuple):
    """A TOML table."""

    path: tuple[str, str]
    values: Mapping[str, Any]


class MarkedLines(NamedTuple):
    """Our marked lines in a Markdown file, or in a program with `lead` before the marks."""

    word: str
    lines: str
    lead: str = ""


Part = Member | ListItem | Table | MarkedLines


class AgentFile(NamedTuple):
    """A file of an agent, and our parts of it.

    Attributes:
        names: its name from the project's or the user's folder; where the first is not there and
            another is, that one. `$NAME/` at the front is a variable with its default in
            `Agent.homes`.
        parts: in the order in which they are put in.
    """

    names: tuple[str, ...]
    parts: tuple[Part, ...]


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
        found.update((*(agent.hooks_file or ()), *(agent.plugin or ()), *filter(None, agent.rules)))
    return frozenset(name for name in found if not name.startswith("$"))
