"""Settings of agents as people write them, for the tests of installing."""

from __future__ import annotations

CLAUDE_SETTINGS = """{
    "permissions": {"allow": ["Bash(git *)"], "deny": []},
    "hooks": {
        "PostToolUse": [
            {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "./format.sh"}]}
        ],
        "Stop": []
    }, "model":   "opus"
}"""
CODEX_CONFIG = """# my model
model = "gpt-5"  # the large one
notify = ["say", "done"]

[mcp_servers.docs]
command = "docs"
args = [
  "[not a table]",
  "x", # two
]

[projects."/home/me/code"]
trust_level = "trusted"
"""
