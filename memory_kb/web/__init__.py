"""The page for people: search, read, decide, fix. It calls the knowledge base and renders the result; no rules of its own.

Starlette and Jinja2 are loaded when the server starts, not before.
"""
