"""Logs of agents: reading transcripts, and what happens at the end of a session."""
