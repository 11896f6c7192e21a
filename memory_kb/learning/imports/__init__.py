"""Readers of what other tools keep: text in, drafts out. None of them writes or reads a file."""
