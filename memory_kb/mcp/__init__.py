"""The MCP server: tools, resources and prompts over the knowledge base. No rules of its own.

Only `server` and `transports` load the SDK; nothing imports them before they are needed.
"""
