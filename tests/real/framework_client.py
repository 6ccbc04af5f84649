"""Lists and calls with the MCP client of an agent framework, and prints what came of it.

    python framework_client.py FRAMEWORK < [{"url", "headers" | "command", "args", "env", "calls": [[name, arguments]]}]

Runs in the environment of the frameworks (tests/pins/requirements-frameworks.txt), which is not that of the tests. Prints
[{"tools": [names], "answers": [texts]}] as JSON, one for each server it was told of.
"""

import asyncio
import json
import os
import sys

os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"
SECONDS = 120


async def openai_agents(task: dict) -> dict:
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    kind, keys = (MCPServerStreamableHttp, ("url", "headers")) if "url" in task else (MCPServerStdio, ("command", "args", "env"))
    params = {key: task[key] for key in keys}
    async with kind(params=params, client_session_timeout_seconds=SECONDS) as server:
        tools = [tool.name for tool in await server.list_tools()]
        answers = [texts((await server.call_tool(name, args)).content) for name, args in task["calls"]]
    return {"tools": tools, "answers": answers}


async def pydantic_ai(task: dict) -> dict:
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(fastmcp_transport(task), read_timeout=SECONDS, init_timeout=SECONDS) as toolset:
        tools = [tool.name for tool in await toolset.list_tools()]
        answers = [as_text(await toolset.direct_call_tool(name, args)) for name, args in task["calls"]]
    return {"tools": tools, "answers": answers}


async def langchain(task: dict) -> dict:
    from langchain_mcp_adapters.client import MultiServerMCPClient

    kept = ("url", "headers") if "url" in task else ("command", "args", "env")
    connection = {key: task[key] for key in kept} | {"transport": "streamable_http" if "url" in task else "stdio"}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"hikite": connection}).get_tools()}
    answers = [as_text(await tools[name].ainvoke(args)) for name, args in task["calls"]]
    return {"tools": list(tools), "answers": answers}


async def fastmcp(task: dict) -> dict:
    from fastmcp import Client

    async with Client(fastmcp_transport(task), timeout=SECONDS, init_timeout=SECONDS) as client:
        tools = [tool.name for tool in await client.list_tools()]
        answers = [texts((await client.call_tool(name, args)).content) for name, args in task["calls"]]
    return {"tools": tools, "answers": answers}


async def mcp_use(task: dict) -> dict:
    from mcp_use import MCPClient

    kept = ("url",) if "url" in task else ("command", "args", "env")
    server = {key: task[key] for key in kept}
    if "url" in task:
        # With a token among the headers it begins a login all the same; this is its own way to be given one.
        server["auth"] = next(iter(task["headers"].values())).removeprefix("Bearer ")
    client = MCPClient.from_dict({"mcpServers": {"hikite": server}})
    session = await client.create_session("hikite")
    try:
        tools = [tool.name for tool in await session.list_tools()]
        answers = [texts((await session.call_tool(name, args)).content) for name, args in task["calls"]]
    finally:
        await client.close_all_sessions()
    return {"tools": tools, "answers": answers}


def fastmcp_transport(task: dict):
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if "url" in task:
        return StreamableHttpTransport(task["url"], headers=task["headers"])
    return StdioTransport(task["command"], task["args"], env=task["env"], keep_alive=False)


def texts(content: list) -> str:
    return "\n".join(block.text for block in content)


def as_text(answer: object) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, default=str)


FRAMEWORKS = {one.__name__: one for one in (openai_agents, pydantic_ai, langchain, fastmcp, mcp_use)}


async def main(framework: str) -> list[dict]:
    return [await FRAMEWORKS[framework](task) for task in json.load(sys.stdin)]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
