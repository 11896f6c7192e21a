"""The MCP server; only `server` loads the SDK, and nothing imports that before it is needed."""
