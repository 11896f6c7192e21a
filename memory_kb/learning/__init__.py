"""Learning: what is kept of sessions, planned as changes to notes."""

#: What to do after an assumption is recorded.
RECOMMENDATIONS = ("continue", "notify", "escalate")
