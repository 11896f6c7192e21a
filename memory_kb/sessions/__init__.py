"""Logs of agents: reading transcripts, and what happens at the end of a session."""

#: The transcripts that can be imported.
TRANSCRIPT_FORMATS = ("claude-code", "codex", "gemini-cli", "opencode", "cursor", "specstory", "aider", "markdown")
