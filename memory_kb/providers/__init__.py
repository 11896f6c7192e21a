"""Embedding and language models behind one protocol each."""
