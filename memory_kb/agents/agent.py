"""The agents we know, as data: their files, their hooks, and where our parts go in them."""

from collections.abc import Mapping
from typing import NamedTuple

from memory_kb.errors import UsageError

#: The name under which the server is registered.
SERVER = "memory-kb"
#: The moments that `memory-kb hook` knows.
EVENTS = ("session-start", "prompt", "before-tool", "tool", "stop", "ask", "session-end")


class Hook(NamedTuple):
    """A moment in the life of a session: what the agent calls it, and what we do.

    `tools` is a pattern of the tools for which it calls us; "" for all. `timeout` is set where the agent allows this
    hook less time than the others.
    """

    name: str
    event: str
    tools: str = ""
    timeout: int | None = None


class Agent(NamedTuple):
    """An agent as data.

    Attributes:
        servers: the file of MCP servers in a project, and that of the user; None where there is
            none that we know. `kind` is `table` for TOML, else the shape of the JSON value.
        servers_key: where servers are in it.
        hooks_file: likewise; its hooks are below `hooks`.
        timeout: of a hook, in the agent's own unit; None leaves it to the agent.
        plugin: likewise, where a program calls the hooks instead; its text is beside the description.
        is_flat: whether a hook is a command, rather than a group of commands.
        hooks_head: what a file of hooks that is made begins with.
        rules: the Markdown file that the agent reads at the start, likewise.
        vault: the agent's own variable for the project's folder in an argument; nothing where servers
            are started in that folder.
        context_key: where additional context goes in an answer: "" for Claude Code's form.
        takes_prompt_context: whether context may be added to a prompt.
        question: the event at which its model can be asked something before it stops, and the form of that:
            `context` is additional context, `block` and `deny` are decisions with a reason, `followup` is a message;
            None where there is no way.
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
    servers_key: str
    kind: str = "command"
    hooks: tuple[Hook, ...] = ()
    hooks_file: tuple[str, str] | None = None
    timeout: int | None = None
    plugin: tuple[str, str] | None = None
    is_flat: bool = False
    hooks_head: str = ""
    rules: tuple[str | None, str | None] = (None, None)
    vault: str = ""
    context_key: str = ""
    takes_prompt_context: bool = True
    question: tuple[str, str] | None = None
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


_AGENTS = (
    Agent(
        name="claude-code",
        title="Claude Code",
        servers=((".mcp.json",), (".claude.json",)),
        servers_key="mcpServers",
        hooks=(
            Hook("SessionStart", "session-start"),
            Hook("UserPromptSubmit", "prompt"),
            Hook("PreToolUse", "before-tool", tools="Edit|MultiEdit|Write|NotebookEdit"),
            Hook("PostToolUse", "tool"),
            Hook("PostToolUseFailure", "tool"),
            Hook("Stop", "stop"),
            Hook("SessionEnd", "session-end"),
        ),
        hooks_file=(".claude/settings.json", ".claude/settings.json"),
        timeout=10,
        # A decision to block would be shown as an error, and its reason given to the model twice.
        question=("stop", "context"),
        rules=("CLAUDE.md", ".claude/CLAUDE.md"),
        most_chars=10_000,
        refusal="permission",
        tried="2.1.332",
        programs=("claude",),
        folders=(".claude",),
        clicks=(
            "start it in the project once, and say yes to the folder and to its server memory-kb: the default is no",
        ),
    ),
    # Only its transcripts have the exit codes of commands.
    Agent(
        name="codex",
        title="Codex",
        servers=((".codex/config.toml",), ("$CODEX_HOME/config.toml",)),
        servers_key="mcp_servers",
        kind="table",
        hooks=(
            Hook("SessionStart", "session-start"),
            Hook("UserPromptSubmit", "prompt"),
            Hook("PreToolUse", "before-tool", tools="apply_patch|Edit|Write"),
            Hook("PostToolUse", "tool"),
            Hook("Stop", "stop"),
            Hook("SessionEnd", "session-end", timeout=3),
        ),
        hooks_file=(".codex/hooks.json", "$CODEX_HOME/hooks.json"),
        timeout=10,
        question=("stop", "block"),
        rules=("AGENTS.md", "$CODEX_HOME/AGENTS.md"),
        has_late_results=True,
        refusal="permission",
        tried="0.171.0",
        programs=("codex",),
        folders=(".codex",),
        clicks=(
            "trust the project: without that it does not read the .codex folder",
            "review the hooks: type /hooks, it runs none before",
        ),
    ),
    # Context is added at the start and to results of tools, not to prompts.
    Agent(
        name="cursor",
        title="Cursor",
        servers=((".cursor/mcp.json",), (".cursor/mcp.json",)),
        servers_key="mcpServers",
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
        hooks_head='{\n  "version": 1\n}\n',
        rules=("AGENTS.md", None),
        vault="${workspaceFolder}",
        context_key="additional_context",
        takes_prompt_context=False,
        most_chars=10_000,
        question=("ask", "followup"),
        programs=("cursor", "cursor-agent"),
        folders=(".cursor",),
        clicks=("switch the server memory-kb on, in Settings under MCP",),
    ),
    Agent(
        name="gemini-cli",
        title="Gemini CLI",
        servers=((".gemini/settings.json",), (".gemini/settings.json",)),
        servers_key="mcpServers",
        hooks=(
            Hook("SessionStart", "session-start"),
            # "auto" is called before each prompt, whether or not there is anything to compress.
            Hook("PreCompress", "session-start", tools="manual"),
            Hook("BeforeAgent", "prompt"),
            Hook("BeforeTool", "before-tool", tools="write_file|replace"),
            Hook("AfterTool", "tool"),
            Hook("AfterAgent", "stop"),
            Hook("SessionEnd", "session-end"),
        ),
        hooks_file=(".gemini/settings.json", ".gemini/settings.json"),
        timeout=10_000,
        question=("stop", "deny"),
        rules=("GEMINI.md", ".gemini/GEMINI.md"),
        late_starts=("clear", "compact"),
        refusal="deny",
        tried="0.61.0",
        programs=("gemini",),
        folders=(".gemini",),
        clicks=("trust the folder when it asks: without that it reads no settings of the project",),
    ),
    # A plugin calls the hooks.
    Agent(
        name="opencode",
        title="OpenCode",
        servers=(
            ("opencode.json", "opencode.jsonc"),
            (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
        ),
        servers_key="mcp",
        kind="local",
        rules=("AGENTS.md", ".config/opencode/AGENTS.md"),
        hooks=(
            Hook("experimental.chat.system.transform", "session-start"),
            Hook("chat.message", "prompt"),
            Hook("tool.execute.after", "tool"),
            Hook("session.idle", "stop"),
            Hook("dispose", "session-end"),
        ),
        plugin=(".opencode/plugins/memory-kb.js", ".config/opencode/plugins/memory-kb.js"),
        tried="1.18.33",
        programs=("opencode",),
        folders=(".config/opencode",),
    ),
    # In a project only.
    Agent(
        name="vscode",
        title="VS Code",
        servers=((".vscode/mcp.json",), None),
        servers_key="servers",
        kind="stdio",
        rules=("AGENTS.md", None),
        vault="${workspaceFolder}",
        programs=("code",),
        folders=(".vscode",),
        clicks=("start the server memory-kb, above its name in .vscode/mcp.json",),
    ),
)
AGENT_NAMES = tuple(agent.name for agent in _AGENTS)
#: It runs the hooks of Claude Code, and calls itself so as an MCP client.
_COPILOT_CLI = "copilot-cli"
#: What they call themselves as MCP clients, and what models call them.
_OTHER_NAMES = {
    "claude": "claude-code",
    "codex-cli": "codex",
    "codex-mcp-client": "codex",
    _COPILOT_CLI: _COPILOT_CLI,
    "cursor-agent": "cursor",
    "cursor-vscode": "cursor",
    "gemini": "gemini-cli",
    "gemini-cli-mcp-client": "gemini-cli",
    "gemini-cli-mcp-client-memory-kb": "gemini-cli",
    "visual-studio-code": "vscode",
}


def recognise(word: str) -> str | None:
    """Return the known agent that a name stands for, or None.

    Example:
        >>> recognise("Claude Code"), recognise("codex-mcp-client"), recognise("claude-reviewer")
        ('claude-code', 'codex', None)
    """
    name = "-".join(word.casefold().replace("_", " ").replace("-", " ").split())
    return name if name in AGENT_NAMES else _OTHER_NAMES.get(name)


def find_agent(name: str) -> Agent:
    """Return the agent with a name."""
    agent = next((one for one in _AGENTS if one.name == name), None)
    if agent is None:
        raise UsageError(
            f"memory-kb knows no agent {name[:40]!r}",
            f"agents are {', '.join(AGENT_NAMES)}; any MCP client can run `memory-kb mcp`",
        )
    return agent


def find_caller(name: str, environ: Mapping[str, str]) -> Agent:
    """Return the agent that calls a hook: Copilot CLI runs those of Claude Code, and takes context in another form.

    Example:
        >>> find_caller("claude-code", {"COPILOT_CLI": "1"}).name, find_caller("codex", {"COPILOT_CLI": "1"}).name
        ('copilot-cli', 'codex')
    """
    agent = find_agent(name)
    # One of the two may be started by the other.
    if name != "claude-code" or not environ.get("COPILOT_CLI") or environ.get("CLAUDE_CODE_ENTRYPOINT"):
        return agent
    return agent._replace(
        name=_COPILOT_CLI,
        title="Copilot CLI",
        context_key="additionalContext",
        question=("stop", "block"),
        most_chars=None,
        tried="1.0.102",
    )


def agent_file_names() -> frozenset[str]:
    """Return the files of all agents, as their paths end."""
    found = set[str]()
    for agent in _AGENTS:
        found.update(name for names in agent.servers for name in names or ())
        found.update((*(agent.hooks_file or ()), *(agent.plugin or ()), *filter(None, agent.rules)))
    return frozenset(name for name in found if not name.startswith("$"))
