"""The page for people: search, read, decide, fix. It calls the knowledge base and renders the result; no rules of its own.

Starlette and Jinja2 are loaded by `app` and `serving` alone, which nothing imports before they are needed.
"""
