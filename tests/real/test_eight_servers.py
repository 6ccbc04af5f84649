"""Eight published servers behind one gateway, surface `direct`, seen by every published client.

The servers span both generations of the protocol: git, time and fetch speak 2026-07-28 as well,
the others the revisions with sessions only.
"""

import json
import threading
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import httpx2
import pytest

from clients import (
    direct,
    gateway_stdio,
    inspector,
    over_http,
    over_sse,
    over_stdio,
    plain,
    text_of,
    tools_of,
    tools_with,
    typescript,
)
from parts import git_repository

pytestmark = pytest.mark.anyio


class Page(BaseHTTPRequestHandler):
    """A site of two pages that notes what was asked for."""

    asked: list[str] = []

    def do_GET(self):
        self.asked.append(self.path)
        pages = {
            "/robots.txt": ("text/plain", b"User-agent: *\nDisallow: /secret\n"),
            "/page": ("text/html", b"<html><body><p>a page of our own</p></body></html>"),
        }
        kind, body = pages.get(self.path, ("text/plain", b""))
        self.send_response(200 if self.path in pages else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder in which the servers work."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "files").mkdir()
    (folder / "files" / "note.txt").write_text("a note on disk\n")
    git_repository(folder / "repository")
    return folder


@pytest.fixture(scope="module")
def servers(parts, world):
    return {
        "everything": parts.everything(),
        "filesystem": parts.filesystem(world / "files"),
        "memory": parts.memory(world / "memory.jsonl"),
        "sequential-thinking": parts.sequential_thinking(),
        "git": parts.git(world / "repository"),
        "time": parts.time(),
        "fetch": parts.fetch(),
        "sqlite": parts.sqlite(world / "shop.db"),
    }


@pytest.fixture(scope="module")
def gateway(start_gateway, servers):
    return start_gateway({"mcpServers": servers})


@pytest.fixture(scope="module")
async def own_lists(servers):
    """What each server lists to a client without capabilities when nothing stands between."""
    lists = {}
    for name, server in servers.items():
        async with direct(server) as client:
            lists[name] = await tools_of(client)
    return lists


@pytest.fixture(scope="module")
def own_names(own_lists):
    names = [name for tools in own_lists.values() for name in tools]
    assert len(names) == len(set(names)), "no two of the eight share a name, so all names are bare"
    return set(names)


@pytest.fixture
def calls(world, site, request):
    """One call for each server and what its answer holds. `request.node` keeps memory's entities apart."""
    entity = request.node.name
    thought = {"thought": "hm", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    return {
        "everything": ("echo", {"message": "hello there"}, "Echo: hello there"),
        "filesystem": ("read_text_file", {"path": str(world / "files" / "note.txt")}, "a note on disk"),
        "memory": (
            "create_entities",
            {"entities": [{"name": entity, "entityType": "test", "observations": ["ran"]}]},
            entity,
        ),
        "sequential-thinking": ("sequentialthinking", thought, '"thoughtNumber": 1'),
        "git": ("git_log", {"repo_path": str(world / "repository")}, "the first commit"),
        "time": ("get_current_time", {"timezone": "UTC"}, '"timezone": "UTC"'),
        "fetch": ("fetch", {"url": f"{site}/page"}, "a page of our own"),
        "sqlite": ("read_query", {"query": "SELECT 6 * 7 AS answer"}, "{'answer': 42}"),
    }


async def make_calls(client, calls):
    for name, arguments, expected in calls.values():
        assert expected in text_of(plain(await client.call_tool(name, arguments)))


async def all_listed(gateway, names):
    async with over_http(gateway) as client:
        await tools_with(client, names)


async def test_every_server_works_without_the_gateway(servers, calls):
    for server, call in calls.items():
        async with direct(servers[server]) as client:
            await make_calls(client, {server: call})


async def test_all_tools_are_listed_as_their_servers_list_them(gateway, own_lists, own_names):
    async with over_http(gateway) as client:
        listed = await tools_with(client, own_names)
        again = await tools_of(client)
    for tools in own_lists.values():
        for name, tool in tools.items():
            assert listed[name] == tool
    # A server may show more to a gateway that declares capabilities; only this one does.
    asks_back = {"get-roots-list", "trigger-elicitation-request", "trigger-elicitation-request-async",
                 "trigger-sampling-request", "trigger-sampling-request-async", "trigger-url-elicitation"}  # fmt: skip
    assert listed.keys() - own_names <= asks_back
    assert list(again) == list(listed)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_python_sdk_over_http(gateway, own_names, calls, mode):
    async with over_http(gateway, mode=mode) as client:
        await tools_with(client, own_names)
        await make_calls(client, calls)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_python_sdk_over_stdio(gateway, own_names, calls, tmp_path, mode):
    async with gateway_stdio(gateway, tmp_path / "data", mode=mode) as client:
        await tools_with(client, own_names)
        await make_calls(client, calls)


async def test_the_python_sdk_over_sse(gateway, own_names, calls):
    async with over_sse(gateway) as client:
        await tools_with(client, own_names)
        await make_calls(client, calls)


@asynccontextmanager
async def through_mcp_remote(parts, gateway, home):
    args = [parts.script("mcp-remote", "dist/proxy.js"), gateway.mcp("direct"), "--transport", "http-only",
            "--header", f"Authorization: Bearer {gateway.token}", "--allow-http", "--silent"]  # fmt: skip
    env = {"HOME": str(home), "MCP_REMOTE_CONFIG_DIR": str(home / "mcp-remote")}
    async with over_stdio("node", args, env) as client:
        yield client


async def test_mcp_remote(parts, gateway, own_names, calls, tmp_path):
    async with through_mcp_remote(parts, gateway, tmp_path) as client:
        await tools_with(client, own_names)
        await make_calls(client, calls)


@pytest.mark.parametrize("sdk", ["1.x", "2.x"])
async def test_the_typescript_sdk(parts, gateway, own_names, calls, tmp_path, sdk):
    await all_listed(gateway, own_names)
    task = {
        "sdk": sdk,
        "url": gateway.mcp("direct"),
        "headers": gateway.headers,
        "calls": [(name, arguments) for name, arguments, _ in calls.values()],
    }
    answer = await anyio.to_thread.run_sync(lambda: typescript(parts, tmp_path, "typescript_client.mjs", task))
    assert own_names <= set(answer["tools"])
    for (_, _, expected), result in zip(calls.values(), answer["results"], strict=True):
        assert expected in text_of(result)


async def test_the_inspector_over_http(parts, gateway, own_names, calls, tmp_path):
    await all_listed(gateway, own_names)
    target = [gateway.mcp("direct"), "--transport", "http", "--header", f"Authorization: Bearer {gateway.token}"]

    def inspect(*args):
        return inspector(parts, tmp_path, target, *args)

    listed = await anyio.to_thread.run_sync(lambda: inspect("--method", "tools/list"))
    assert own_names <= {tool["name"] for tool in listed["tools"]}
    for name, arguments, expected in calls.values():
        pairs = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in arguments.items()]
        args = ["--method", "tools/call", "--tool-name", name, "--tool-arg", *pairs]
        result = await anyio.to_thread.run_sync(lambda args=args: inspect(*args))
        assert expected in text_of(result)


async def test_the_inspector_over_stdio(parts, gateway, servers, own_lists, tmp_path):
    # This client lists once, and no list waits for slow servers longer than it was told to.
    config = tmp_path / "hikite.json"
    few = ["memory", "sequential-thinking"]
    patient = {"mcpServers": {name: servers[name] for name in few}, "limits": {"all_lists": "60s"}}
    config.write_text(json.dumps(patient))
    target = [str(gateway.binary), "stdio", "--config", str(config), "--data", str(tmp_path / "data"),
              "--surface", "direct"]  # fmt: skip
    listed = await anyio.to_thread.run_sync(
        lambda: inspector(parts, tmp_path, [], "--method", "tools/list", "--", *target)
    )
    assert {tool["name"] for tool in listed["tools"]} == {name for server in few for name in own_lists[server]}


async def test_fetch_asked_for_robots_txt_and_obeys_it(gateway, own_names, site):
    async with over_http(gateway) as client:
        await tools_with(client, own_names)
        await client.call_tool("fetch", {"url": f"{site}/page"})
        refused = await client.call_tool("fetch", {"url": f"{site}/secret"})
    assert "/robots.txt" in Page.asked
    assert refused.is_error
    assert "/secret" not in Page.asked


async def test_a_name_that_two_servers_share_carries_the_name_of_its_server(start_gateway, parts, tmp_path):
    servers = {name: parts.memory(tmp_path / f"{name}.jsonl") for name in ("home", "work")}
    gateway = start_gateway({"mcpServers": servers | {"thinking": parts.sequential_thinking()}})
    async with direct(servers["home"]) as client:
        own = await tools_of(client)
    shared = {f"{server}__{name}" for server in servers for name in own}
    async with over_http(gateway) as client:
        assert set(await tools_with(client, shared | {"sequentialthinking"})) == shared | {"sequentialthinking"}
        entity = {"entities": [{"name": "kettle", "entityType": "thing", "observations": []}]}
        await client.call_tool("home__create_entities", entity)
        assert "kettle" in text_of(plain(await client.call_tool("home__read_graph", {})))
        assert "kettle" not in text_of(plain(await client.call_tool("work__read_graph", {})))


async def test_a_call_without_the_token_is_refused(gateway):
    async with httpx2.AsyncClient() as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            accept = {"Accept": "application/json, text/event-stream"}
            answer = await http.post(gateway.mcp("direct"), json=body, headers=accept | headers)
            assert answer.status_code == 401


# A question for each server, in one language or the other; its tool is to be among the first three.
QUESTIONS = {
    "everything": "echo a message back",
    "filesystem": "ファイルの中身を読みたい",
    "memory": "create new entities in the knowledge graph",
    "sequential-thinking": "think through a problem step by step",
    "git": "コミットの履歴を見せて",
    "time": "what time is it now in a time zone",
    "fetch": "ウェブページを取ってきて",
    "sqlite": "run a SELECT query on the database",
}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_search_finds_the_tool_and_runs_it(gateway, own_names, calls, mode):
    await all_listed(gateway, own_names)
    async with over_http(gateway, surface="search", mode=mode) as client:
        assert list(await tools_of(client)) == ["tool_discovery", "tool_execute"]
        for server, question in QUESTIONS.items():
            name, arguments, expected = calls[server]
            key = f"{server}:{name}"
            found = await meaning(client, question)
            assert key in [tool["toolKey"] for tool in found["results"][:3]], (question, found)
            result = plain(await client.call_tool("tool_execute", {"toolKey": key, "arguments": arguments}))
            assert not result.get("isError"), result
            value = result["structuredContent"]["result"]
            assert expected in (value if isinstance(value, str) else json.dumps(value)), result


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_default_opens_modules_calls_tools_and_runs_batches(gateway, own_lists, own_names, calls, mode):
    await all_listed(gateway, own_names)
    async with over_http(gateway, surface=None, mode=mode) as client:
        listed = await tools_of(client)
        assert list(listed) == ["get_module_schema", "call", "batch", "tool_discovery"]
        assert all(f"\n- {server}" in listed["get_module_schema"]["description"] for server in own_lists)
        opened = plain(await client.call_tool("get_module_schema", {"modules": ["time", "git", "nowhere"]}))
        time, git, nowhere = json.loads(text_of(opened))
        assert [time["module"], git["module"]] == ["time", "git"]
        assert {line.split("(")[0] for line in time["tools"]} == own_lists["time"].keys()
        assert nowhere["error"]["code"] == "NOT_FOUND"
        for server, (tool, arguments, expected) in calls.items():
            result = plain(await client.call_tool("call", {"module": server, "tool": tool, "params": arguments}))
            assert not result.get("isError"), result
            assert expected in text_of(result)
        lines = [
            {"id": server, "module": server, "tool": calls[server][0], "params": calls[server][1], "raw_output": True}
            for server in ("everything", "time")
        ]
        jsonl = "\n".join(json.dumps(line) for line in lines)
        ran = plain(await client.call_tool("batch", {"commands": jsonl}))
        answer = json.loads(text_of(ran))
        assert [(task["id"], task["status"]) for task in answer["tasks"]] == [("everything", "ok"), ("time", "ok")]
        assert "hello there" in json.dumps(answer["tasks"][0]["result"])
        assert answer["summary"]["ok"] == 2


async def meaning(client, question):
    """The answer of search once the vectors of all tools are made, which happens beside the questions."""
    with anyio.fail_after(60):
        while True:
            found = plain(await client.call_tool("tool_discovery", {"query": [question]}))
            told = found["_meta"]["hikite/search"]
            if told["provider"] == "hybrid" and told["indexed"] == told["total"]:
                return found["structuredContent"]
            await anyio.sleep(0.2)
