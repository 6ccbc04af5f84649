"""The agent frameworks that people put before hikite: each lists and calls, over HTTP and stdio, on every surface.

OpenAI Agents SDK, pydantic-ai, LangChain's adapters, FastMCP and mcp-use run in an environment of their own; mcporter is
a program. The Rust SDK's client is in hikite/tests/it/foreign.rs.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from clients import stdio_args

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("openai_agents", "pydantic_ai", "langchain", "fastmcp", "mcp_use")
TRANSPORTS = ("http", "stdio")
SECONDS = 300
HELLO = {"message": "hello there"}

# For each surface: what it lists among others, and the call of the server's `echo`.
SURFACES = {
    "direct": ("echo", ["echo", HELLO]),
    "categories": ("call-category-tool", ["call-category-tool", {"category": "all", "name": "echo", "args": HELLO}]),
    "modules": ("get_module_schema", ["call", {"module": "everything", "tool": "echo", "params": HELLO}]),
    "search": ("tool_discovery", ["tool_execute", {"toolKey": "everything:echo", "arguments": HELLO}]),
}


@pytest.fixture(scope="module")
def gateway(start_gateway, parts):
    category = {"description": "Everything there is", "server": "everything"}
    # They list once and never look again: on a busy machine the first list of all may be late.
    limits = {"all_lists": "60s"}
    servers = {"everything": parts.everything()}
    return start_gateway({"mcpServers": servers, "categories": {"all": category}, "limits": limits})


def connection(gateway, transport: str, surface: str, folder: Path) -> dict:
    """How a client of a config gets in."""
    if transport == "http":
        return {"url": gateway.mcp(surface), "headers": gateway.headers}
    args = stdio_args(gateway, folder, surface)
    return {"command": str(gateway.binary), "args": args, "env": gateway.environment()}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_lists_and_calls_on_every_surface(gateway, parts, tmp_path, framework, transport):
    connections = [connection(gateway, transport, surface, tmp_path / surface) for surface in SURFACES]
    tasks = [one | {"calls": [call]} for one, (_, call) in zip(connections, SURFACES.values())]
    # What is imported takes longest, so that one process does all.
    command = [parts.frameworks / "python", "-W", "ignore", HERE / "framework_client.py", framework]
    done = subprocess.run(command, input=json.dumps(tasks), capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    for (surface, (listed, _)), outcome in zip(SURFACES.items(), outcomes, strict=True):
        assert listed in outcome["tools"], surface
        assert "Echo: hello there" in outcome["answers"][0], surface


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_mcporter_lists_and_calls(gateway, parts, tmp_path, transport, surface):
    listed, (tool, arguments) = SURFACES[surface]
    server = connection(gateway, transport, surface, tmp_path / "data")
    config = tmp_path / "mcporter.json"
    config.write_text(json.dumps({"mcpServers": {"hikite": server}}))

    def mcporter(*words: str) -> str:
        program = [parts.node22, parts.script("mcporter", "dist/cli.js"), *words, "--config", config]
        environment = os.environ | {"HOME": str(tmp_path)}
        done = subprocess.run(program, capture_output=True, text=True, timeout=SECONDS, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert f'"{listed}"' in mcporter("list", "hikite", "--json")
    answer = mcporter("call", "--server", "hikite", "--tool", tool, "--args", json.dumps(arguments), "--output", "json")
    assert "Echo: hello there" in answer
