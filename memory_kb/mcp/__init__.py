"""The MCP server: tools, resources and prompts over the knowledge base. No rules of its own.

The SDK is loaded by `server`, `stdio` and `web` alone, which nothing imports before it is needed.
"""
