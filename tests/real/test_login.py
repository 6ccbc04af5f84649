"""Published clients come in by OAuth: each finds the way by itself, a person agrees, and then it lists and calls.

The person is played by person.py, which sees what a browser would show. Nothing is given to the clients but the
address of hikite.
"""

import json
import os
import subprocess
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import httpx2
import pytest
from authlib.integrations.requests_client import OAuth2Session
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from clients import HERE, plain, text_of
from person import Person

pytestmark = pytest.mark.anyio

CALL = {"name": "echo", "arguments": {"message": "こんにちは"}}


@pytest.fixture(scope="module")
def gateway(start_gateway, parts):
    return start_gateway({"mcpServers": {"everything": parts.everything()}, "server": {"surface": "direct"}})


@pytest.fixture(scope="module")
def person(gateway):
    person = Person()
    person.set_up(gateway)
    return person


class Memory:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_python_sdk_logs_in_lists_and_calls(gateway, person, mode):
    came_back = {}

    async def redirect(url: str) -> None:
        came_back.update(await anyio.to_thread.run_sync(person.authorize, url))

    async def callback() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**{name: came_back.get(name) for name in ("code", "state", "iss")})

    metadata = OAuthClientMetadata(client_name="Python SDK", redirect_uris=["http://127.0.0.1:33417/callback"])
    memory = Memory()
    provider = OAuthClientProvider(gateway.mcp(), metadata, memory, redirect, callback)
    async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
        transport = streamable_http_client(gateway.mcp(), http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert "echo" in names
            assert "こんにちは" in text_of(plain(await client.call_tool(CALL["name"], CALL["arguments"])))
    assert came_back["iss"] == gateway.url
    assert memory.tokens.refresh_token and memory.tokens.expires_in


async def test_a_login_for_a_project_opens_that_project_alone(gateway, person):
    rules = {"name": "work", "members": ["owner"], "permissions": {"allow": ["everything:echo"]}}
    httpx2.post(f"{gateway.url}/v1/projects", headers=gateway.headers, json=rules).raise_for_status()
    came_back, address = {}, f"{gateway.url}/mcp/work"

    async def redirect(url: str) -> None:
        came_back.update(await anyio.to_thread.run_sync(person.authorize, url))

    async def callback() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**{name: came_back.get(name) for name in ("code", "state", "iss")})

    metadata = OAuthClientMetadata(client_name="Python SDK", redirect_uris=["http://127.0.0.1:33418/callback"])
    memory = Memory()
    provider = OAuthClientProvider(address, metadata, memory, redirect, callback)
    async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
        async with Client(streamable_http_client(address, http_client=http), read_timeout_seconds=60) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == {"echo"}
    bearer = {"Authorization": f"Bearer {memory.tokens.access_token}"}
    assert httpx2.get(f"{gateway.url}/v1/me", headers=bearer).json()["project"] == "work"
    tools = httpx2.get(f"{gateway.url}/v1/tools", headers=bearer).json()["tools"]
    assert [tool["name"] for tool in tools] == ["echo"]


def talk(command: list, answer) -> dict:
    """Runs a client that prints where a person must go, and waits for what comes back."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        process.stdin.write(json.dumps(answer(json.loads(line)["authorize"])) + "\n")
        process.stdin.flush()
        said, complaints = process.communicate(timeout=90)
        assert process.returncode == 0, complaints
        return json.loads(said.splitlines()[-1])
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("sdk", ["1.x", "2.x"])
def test_the_typescript_sdk_logs_in_lists_calls_and_refreshes(gateway, person, parts, sdk):
    task = json.dumps({"sdk": sdk, "url": gateway.mcp(), "call": CALL})
    command = [parts.node22, HERE / "typescript_login.mjs", parts.node_modules, task]
    told = talk([str(part) for part in command], person.authorize)
    assert "echo" in told["tools"]
    assert "こんにちは" in text_of(told["result"])
    assert told["refreshed"]


def test_a_strict_client_that_knows_nothing_of_mcp_logs_in_refreshes_and_revokes(gateway, person, parts):
    def answer(url: str) -> str:
        back = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
        return f"{back}?{urlencode(person.authorize(url))}"

    task = json.dumps({"issuer": gateway.url, "resource": gateway.mcp()})
    command = [parts.node22, HERE / "openid_login.mjs", parts.node_modules, task]
    told = talk([str(part) for part in command], answer)
    assert told["me"]["subject"] == "owner"
    assert sorted(told["scope"].split()) == ["call", "read"]
    assert told["after"] == 401, "a revoked grant opens nothing"


def test_authlib_logs_in_and_refreshes(gateway, person):
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    discovered = httpx2.get(f"{gateway.url}/.well-known/oauth-authorization-server").json()
    redirect = "http://127.0.0.1:33420/callback"
    registration = {"client_name": "Authlib", "redirect_uris": [redirect], "token_endpoint_auth_method": "none"}
    client = httpx2.post(discovered["registration_endpoint"], json=registration).json()
    session = OAuth2Session(
        client["client_id"], redirect_uri=redirect, scope="read call", code_challenge_method="S256",
        token_endpoint_auth_method="none",
    )
    verifier = "v" * 64
    url, state = session.create_authorization_url(
        discovered["authorization_endpoint"], code_verifier=verifier, resource=gateway.mcp()
    )
    back = f"{redirect}?{urlencode(person.authorize(url))}"
    token = session.fetch_token(
        discovered["token_endpoint"], authorization_response=back, code_verifier=verifier, state=state
    )
    assert token["token_type"].lower() == "bearer"
    newer = session.refresh_token(discovered["token_endpoint"], token["refresh_token"])
    assert newer["refresh_token"] != token["refresh_token"]
    me = httpx2.get(f"{gateway.url}/v1/me", headers={"Authorization": f"Bearer {newer['access_token']}"}).json()
    assert me["subject"] == "owner"


def test_mcp_remote_logs_in_lists_and_calls(gateway, person, parts, tmp_path):
    script = parts.script("mcp-remote", "dist/proxy.js")
    environment = os.environ | {"HOME": str(tmp_path), "MCP_REMOTE_CONFIG_DIR": str(tmp_path / "auth"), "BROWSER": "true"}
    process = subprocess.Popen(
        [str(parts.node22), script, gateway.mcp(), "33421", "--allow-http", "--host", "127.0.0.1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if f"{gateway.url}/oauth/authorize" in line:
                break
        else:
            pytest.fail("mcp-remote asked for no login:\n" + "".join(said))
        url = next(word for word in line.split() if word.startswith("http"))
        back = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
        answer = httpx2.get(f"{back}?{urlencode(person.authorize(url))}")
        assert answer.status_code == 200, answer.text
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        asked = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": CALL},
        ]
        answers = {}
        for message in asked:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            while "id" in message and message["id"] not in answers:
                line = process.stdout.readline()
                assert line, process.stderr.read()
                told = json.loads(line)
                answers[told.get("id")] = told
        assert "echo" in {tool["name"] for tool in answers[2]["result"]["tools"]}
        assert "こんにちは" in text_of(answers[3]["result"])
    finally:
        process.kill()
        process.wait()
