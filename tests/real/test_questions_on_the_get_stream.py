"""A server on the TypeScript SDK 1.x that asks on the GET stream of its session.

A question without a related request goes there, and is dropped by the SDK where the stream is not
open yet. The first call of a session that hikite opens must therefore wait for the stream.
"""

import json
import subprocess
import urllib.request

import pytest

from clients import over_http, plain, text_of
from parts import HERE
from talk import Talk
from test_both_eras import free_port, wait_for

pytestmark = pytest.mark.anyio

SESSIONS = 3


@pytest.fixture(scope="module")
def asking(parts):
    port = free_port()
    command = ["node", str(HERE / "asking_server.mjs"), str(parts.node_modules), str(port)]
    with subprocess.Popen(command) as process:
        wait_for(port)
        yield f"http://127.0.0.1:{port}"
        process.kill()


def order(url: str) -> list[list[str]]:
    with urllib.request.urlopen(f"{url}/order", timeout=10) as answer:
        return json.load(answer)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("tool", ["ask_person", "ask_model", "ask_roots"])
async def test_the_first_call_of_a_session_is_asked_and_answered(start_gateway, asking, mode, tool):
    gateway = start_gateway({"mcpServers": {"asking": {"type": "http", "url": f"{asking}/mcp"}}})
    for _ in range(SESSIONS):
        async with over_http(gateway, mode=mode, **Talk().callbacks()) as client:
            answer = json.loads(text_of(plain(await client.call_tool(tool, {}))))
            assert {"ask_person": "action", "ask_model": "role", "ask_roots": "roots"}[tool] in answer
    with_calls = [seen for seen in order(asking) if "tools/call" in seen]
    assert len(with_calls) >= 1
    for seen in with_calls:
        assert seen[:4] == ["initialize", "notifications/initialized", "GET", "tools/call"], seen
