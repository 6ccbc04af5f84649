"""A small server on the Python SDK that offers more once it is unlocked.

    python dynamic_server.py

It speaks stdio. `dynamic_server.mjs` is the same on the TypeScript SDK 1.x; see there.
"""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("dynamic")


@server.tool()
async def unlock(word: str, ctx: Context) -> str:
    def treasure() -> str:
        return f"the treasure of {word}"

    server.add_tool(treasure, name="treasure", description="Only after unlocking.")
    # To a client with a session, and to one that listens.
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "unlocked"


@server.tool()
async def greet() -> str:
    return "hello"


server.run("stdio")
