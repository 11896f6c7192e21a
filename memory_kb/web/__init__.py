"""The page for people; Starlette and Jinja2 are loaded when its server starts, not before."""
