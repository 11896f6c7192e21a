"""Learning: what is worth keeping, planned as changes to notes."""
