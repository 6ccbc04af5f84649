"""Tools that appear while a server runs, for clients that can be asked for their roots and for more.

Each such client has a session of its own with the server, or a process. What is registered there is offered to that
client and to nobody else: it is listed, announced and can be called, over HTTP and over `hikite stdio`.
"""

import subprocess
import time

import anyio
import pytest
from mcp_types import ElicitResult, ListRootsResult, Root

from clients import gateway_stdio, over_http, plain, tools_of, tools_with
from parts import HERE, server
from test_both_eras import free_port, wait_for

SECONDS = 30
SERVERS = ["ts_http", "ts_stdio", "py_stdio"]


@pytest.fixture(scope="module")
def http_server(parts):
    port = free_port()
    command = ["node", str(HERE / "dynamic_server.mjs"), str(parts.node_modules), str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    wait_for(port)
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


@pytest.fixture(scope="module", params=SERVERS)
def gateway(request, http_server, start_gateway, parts):
    return start_gateway({"mcpServers": {"it": entry(request.param, http_server, parts)}})


def entry(name: str, url: str, parts) -> dict:
    if name == "ts_http":
        return {"type": "http", "url": url}
    if name == "ts_stdio":
        return server(name, "node", HERE / "dynamic_server.mjs", parts.node_modules, "stdio")
    python = server(name, parts.python / "python", "-W", "ignore", HERE / "dynamic_server.py")
    # It asks nothing by itself; who wants a process for each session says so.
    return python | {"share": "never"}


class Heard:
    """A client that can be asked, and what it was told."""

    def __init__(self):
        self.messages = []

    def callbacks(self) -> dict:
        return {
            "elicitation_callback": self.elicit,
            "list_roots_callback": self.roots,
            "message_handler": self.on_message,
        }

    async def elicit(self, _context, _params):
        return ElicitResult(action="decline")

    async def roots(self, _context):
        return ListRootsResult(roots=[Root(uri="file:///tmp")])

    async def on_message(self, message):
        self.messages.append(getattr(message, "method", None))

    async def until(self, method: str) -> None:
        deadline = time.monotonic() + SECONDS
        while method not in self.messages:
            assert time.monotonic() < deadline, f"{method} was not heard: {self.messages}"
            await anyio.sleep(0.05)


@pytest.mark.parametrize("over", ["http", "stdio"])
async def test_a_session_sees_and_calls_what_its_own_server_registers(gateway, over, tmp_path):
    heard = Heard()
    if over == "http":
        connection = over_http(gateway, **heard.callbacks())
    else:
        connection = gateway_stdio(gateway, tmp_path / "data", **heard.callbacks())
    async with connection as client, over_http(gateway, **Heard().callbacks()) as other:
        await tools_with(client, {"unlock"})
        assert "treasure" not in await tools_of(client)
        await client.call_tool("greet", {})
        heard.messages.clear()
        await client.call_tool("unlock", {"word": over})
        await heard.until("notifications/tools/list_changed")
        await tools_with(client, {"unlock", "treasure"})
        result = plain(await client.call_tool("treasure", {}))
        assert result["content"][0]["text"] == f"the treasure of {over}", result
        assert "treasure" not in await tools_of(other), "a session was shown what belongs to another"


async def test_prompts_resources_and_links_of_one_session(http_server, start_gateway):
    gateway = start_gateway({"mcpServers": {"it": {"type": "http", "url": http_server}}})
    heard = Heard()
    async with over_http(gateway, **heard.callbacks()) as client:
        await tools_with(client, {"unlock", "point"})
        await client.call_tool("greet", {})
        heard.messages.clear()
        await client.call_tool("unlock", {"word": "ada"})
        await heard.until("notifications/prompts/list_changed")
        await heard.until("notifications/resources/list_changed")
        prompt = plain(await client.get_prompt("riddle"))
        assert prompt["messages"][0]["content"]["text"] == "the riddle of ada"
        read = plain(await client.read_resource("vault://map"))
        assert read["contents"][0]["text"] == "the map of ada"
        await client.call_tool("point", {})
        # The server itself is asked: what it says of an address that it does not know reaches the client.
        with pytest.raises(Exception, match="vault://hidden"):
            await client.read_resource("vault://hidden")
