"""57 published servers in one config, started from an empty data folder: none is pushed over the start limit by the others.

The servers are eight published programs, each several times: what counts is that 57 processes of node and Python want to start
at once on a small machine.
"""

import time

import anyio
import httpx2
import pytest

from clients import over_http, plain, text_of
from parts import git_repository

pytestmark = pytest.mark.anyio

SERVERS = 57
LISTED_SECONDS = 600


@pytest.fixture(scope="module")
def servers(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    repository = git_repository(folder / "repository")

    def kinds(number):
        return [
            parts.everything(),
            parts.filesystem(folder),
            parts.memory(folder / f"memory-{number}.jsonl"),
            parts.sequential_thinking(),
            parts.git(repository),
            parts.time(),
            parts.fetch(),
            parts.sqlite(folder / f"shop-{number}.db"),
        ]

    return {f"server-{number}": kinds(number)[number % 8] for number in range(SERVERS)}


async def test_all_of_57_servers_list_their_tools_from_an_empty_folder(start_gateway, servers):
    gateway = start_gateway({"mcpServers": servers})
    deadline = time.monotonic() + LISTED_SECONDS
    async with httpx2.AsyncClient(headers=gateway.headers, timeout=60) as http:
        while True:
            modules = (await http.get(f"{gateway.url}/v1/modules")).json()["modules"]
            modules = [module for module in modules if module["name"] in servers]
            waiting = [module for module in modules if not module.get("tools")]
            if not waiting or time.monotonic() > deadline:
                break
            await anyio.sleep(0.5)
    assert len(modules) == SERVERS
    assert not waiting, (waiting, gateway.log_end())
    # None had to be tried a second time: the wait for a turn does not count against the time a start may take.
    failures = [line for line in gateway.log().splitlines() if "server-" in line and (" WARN " in line or " ERROR " in line)]
    assert not failures, failures
    async with over_http(gateway, surface="modules") as client:
        for number in (5, 13, 53):
            call = {"module": f"server-{number}", "tool": "get_current_time", "params": {"timezone": "UTC"}}
            assert '"timezone"' in text_of(plain(await client.call_tool("call", call))), number
