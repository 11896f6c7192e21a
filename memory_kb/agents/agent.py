"""What an agent's module says: its files, what goes into them, its hooks, and how it takes an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

#: The name under which the server is registered.
SERVER = "memory-kb"
#: The moments that `memory-kb hook` knows.
EVENTS = ("session-start", "prompt", "tool", "stop", "ask", "session-end")


class Hook(NamedTuple):
    """A moment in the life of a session: what the agent calls it, and what we do.

    `timeout` is in the agent's own unit; None leaves it to the agent.
    """

    name: str
    event: str
    timeout: int | None = None


class Agent(NamedTuple):
    """An agent as data.

    Attributes:
        servers: the file of MCP servers in a project, and that of the user; None where there is
            none that we know. `kind` is `table` for TOML, else the shape of the JSON value.
        server_path: where servers stand in it.
        hooks_file: likewise; its hooks stand below `hooks`.
        is_flat: whether a hook is a command, rather than a group of commands.
        defaults: members that the file of hooks must have, with their values.
        rules: the Markdown file that the agent reads at the start, likewise.
        vault: the agent's own variable for the project's folder in an argument; nothing where servers
            are started in that folder.
        context_key: where additional context goes in an answer: "" for Claude Code's form.
        takes_prompt_context: whether context may be added to a prompt.
        question: the event at which its model can be asked something before it stops, and the form of that:
            `block` and `deny` are decisions with a reason, `followup` is a message; None where there is no way.
    """

    name: str
    title: str
    servers: tuple[tuple[str, ...] | None, tuple[str, ...] | None]
    server_path: tuple[str, ...]
    kind: str = "command"
    hooks: tuple[Hook, ...] = ()
    hooks_file: tuple[str, str] | None = None
    is_flat: bool = False
    defaults: tuple[tuple[str, Any], ...] = ()
    rules: tuple[str | None, str | None] = (None, None)
    vault: str = ""
    context_key: str = ""
    takes_prompt_context: bool = True
    question: tuple[str, str] | None = None
    homes: Mapping[str, str] | None = None

    def hook_for(self, event: str) -> Hook | None:
        """Return the hook that calls us for an event."""
        return next((hook for hook in self.hooks if hook.event == event), None)
