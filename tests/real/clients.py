"""The published clients, each made ready to talk to a gateway or straight to a server."""

import json
import os
import subprocess
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel

from gateway import Gateway

READ_SECONDS = 60
LIST_SECONDS = 30
HERE = Path(__file__).resolve().parent


def direct(server: dict, mode: str = "legacy", **callbacks) -> Client:
    """The Python SDK on a server of a config, with no gateway between."""
    return over_stdio(server["command"], server["args"], server.get("env", {}), mode, **callbacks)


def over_stdio(command, args, env, mode: str = "legacy", **callbacks) -> Client:
    parameters = StdioServerParameters(command=str(command), args=[str(arg) for arg in args], env=env)
    # The server's own chatter is not part of a test's output.
    transport = stdio_client(parameters, errlog=open(os.devnull, "w"))  # noqa: SIM115
    return Client(transport, mode=mode, read_timeout_seconds=READ_SECONDS, **callbacks)


@asynccontextmanager
async def over_http(gateway: Gateway, surface: str | None = "direct", mode: str = "legacy", **callbacks):
    """The Python SDK over streamable HTTP with the local bearer token."""
    timeout = httpx2.Timeout(30, read=300)
    async with httpx2.AsyncClient(headers=gateway.headers, timeout=timeout) as http:
        transport = streamable_http_client(gateway.mcp(surface), http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=READ_SECONDS, **callbacks) as client:
            yield client


def over_sse(gateway: Gateway, surface: str | None = "direct") -> Client:
    """The Python SDK over the HTTP+SSE transport of 2024-11-05."""
    transport = sse_client(gateway.sse(surface), headers=gateway.headers)
    return Client(transport, mode="legacy", read_timeout_seconds=READ_SECONDS)


def gateway_stdio(gateway: Gateway, folder: Path, surface: str = "direct", mode: str = "legacy", **callbacks) -> Client:
    """The Python SDK on `hikite stdio`, with the same config as `gateway` and a data folder of its own."""
    return over_stdio(gateway.binary, stdio_args(gateway, folder, surface), gateway.environment(), mode, **callbacks)


def stdio_args(gateway: Gateway, folder: Path, surface: str = "direct") -> list[str]:
    return ["stdio", "--config", str(gateway.config), "--data", str(folder), "--surface", surface]


async def tools_of(client: Client) -> dict[str, dict]:
    """Every page of the tool list, by name."""
    tools, cursor = {}, None
    while True:
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        tools |= {tool.name: plain(tool) for tool in page.tools}
        cursor = page.next_cursor
        if not cursor:
            return tools


async def tools_with(client: Client, expected: set[str]) -> dict[str, dict]:
    """The tool list as soon as it holds `expected`: a gateway may answer before slow servers have."""
    deadline = time.monotonic() + LIST_SECONDS
    while True:
        tools = await tools_of(client)
        if expected <= tools.keys():
            return tools
        missing = sorted(expected - tools.keys())
        assert time.monotonic() < deadline, f"not listed after {LIST_SECONDS} s: {missing}"
        await anyio.sleep(0.2)


def plain(model: BaseModel) -> dict:
    """A protocol object as the JSON it was."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def text_of(result: dict) -> str:
    """The text of a tool result that must be a success."""
    assert not result.get("isError"), result
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def inspector(parts, home: Path, target: list[str], *args: str) -> dict:
    """One run of the MCP Inspector's command line."""
    launcher = parts.script("@modelcontextprotocol/inspector", "clients/launcher/build/index.js")
    command = [parts.node22, launcher, "--cli", *target, *args]
    return json.loads(run(command, home))


def typescript(parts, home: Path, script: str, request: dict) -> dict:
    """One run of a TypeScript SDK script in this folder; it reads its task from stdin as JSON."""
    return json.loads(run(["node", HERE / script, parts.node_modules], home, json.dumps(request)))


def run(command: list, home: Path, stdin: str = "") -> str:
    environment = os.environ | {"HOME": str(home)}
    done = subprocess.run(
        [str(word) for word in command], input=stdin, env=environment, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
