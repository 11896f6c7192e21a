"""The page for people: search, read, decide, fix. It renders what the knowledge base returns, with no rules of its own.

Starlette and Jinja2 are loaded when the server starts, not before.
"""
