"""Learning: what is kept of sessions, planned as changes to notes."""
