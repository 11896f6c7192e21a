"""Import notes and conversations from other tools."""

#: What a source may be.
FORMATS = ("basic-memory", "obsidian", "daily-logs", "claude-export", "chatgpt-export", "mem0", "agents-md")
